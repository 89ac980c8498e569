//! Requests: the send of an action, and questions about it.

mod ask;
mod fill;
mod headers;
mod hint;
mod in_body;
mod members;
mod origin;
mod planting;
mod sent;
mod sign;
mod stem;
mod unbuildable;

use std::borrow::Cow;

use bytes::Bytes;
use hyper::header::{self, HeaderValue};
use hyper::{Method, Request};

pub(super) use ask::carries;
use fill::Values;
pub(super) use planting::carries_key;
use planting::{What, body, plantings};
pub(super) use sent::Sent;
use stem::Draft;
pub(super) use stem::{OUTBOXD, Stem, basic};
pub(super) use unbuildable::Unbuildable;

use super::Claim;
use crate::core::action::Intent;
use crate::core::target::Operation;

/// A request, its body apart.
pub(super) struct Built {
    pub(super) request: Request<()>,
    pub(super) body: Bytes,
}

impl Built {
    fn new(mut request: Request<()>, body: Bytes) -> Self {
        // RFC 9110 section 8.6; hyper leaves it out and some servers answer 411.
        if body.is_empty() && matches!(*request.method(), Method::POST | Method::PUT | Method::PATCH) {
            request.headers_mut().insert(header::CONTENT_LENGTH, HeaderValue::from_static("0"));
        }
        Self { request, body }
    }
}

impl Stem {
    /// The send of one attempt, from the operation's templates and the action's intent.
    pub(super) fn send(&self, operation: &Operation, intent: &Intent, claim: &Claim) -> Result<Built, Unbuildable> {
        let template = &operation.request;
        let plantings = plantings(operation, intent.id);
        let mut own = Vec::new();
        for planting in &plantings {
            match planting.path() {
                // Only the key identifies a resource; nothing else of ours belongs into a path.
                Some(name) if planting.what != What::Key || !template.path_takes(planting.place) => {
                    return Err(Unbuildable::NotInPath { name: name.to_owned(), what: planting.what });
                }
                Some(name) => own.push((Cow::Borrowed(name), planting.text())),
                None => {}
            }
        }
        let draft = Draft {
            template,
            values: &Values::new(intent.params.as_deref(), own),
            plantings: &plantings,
            content_type: intent.content_type.as_deref(),
            given: intent.headers.as_deref(),
        };
        // Every attempt of an action is the same message.
        let head = self.named(self.head(&draft, intent, claim)?, intent.id.0)?;
        Ok(Built::new(head, body(intent, &plantings)?))
    }
}

#[cfg(test)]
mod tests;
