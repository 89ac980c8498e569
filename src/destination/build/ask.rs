//! Questions about an action: a lookup, a cancel by key.

use std::borrow::Cow;

use bytes::Bytes;
use serde_json::Value;

use super::fill::Values;
use super::stem::Draft;
use super::{Built, Stem, Unbuildable, carries_key};
use crate::core::action::{ActionId, Intent};
use crate::core::contract::{Contract, Question, Reference};
use crate::core::request::{Part, Template};
use crate::core::target::Operation;
use crate::destination::Claim;

/// The placeholder of the idempotency key.
const KEY: &str = "key";

/// The placeholder of our reference.
const REFERENCE: &str = "ref";

/// The placeholders that a string may hold anywhere, in braces.
const ANYWHERE: [(&str, &str); 2] = [(KEY, "{key}"), (REFERENCE, "{ref}")];

/// Own placeholders and what they stand for.
pub(super) type Own<'a> = Vec<(Cow<'a, str>, Cow<'a, str>)>;

impl Stem {
    /// The request that asks it. Key and reference stand where its placeholders are, and nowhere else.
    pub(in crate::destination) fn question(
        &self,
        question: &Question,
        contract: &Contract,
        intent: &Intent,
        claim: &Claim,
    ) -> Result<Built, Unbuildable> {
        let values = Values::new(intent.params.as_deref(), ours(contract, intent.id));
        let draft = Draft {
            template: &question.request,
            values: &values,
            plantings: &[],
            content_type: question.body.as_ref().map(|_| "application/json"),
            given: None,
        };
        // A question is a message of its own: under the id of the send, a receiver would take it for a repeat.
        let head = self.named(self.head(&draft, intent, claim)?, claim.attempt.0)?;
        let body = question.body.as_ref().map(|body| filled(body, &values)).transpose()?;
        Ok(Built::new(head, body.map_or_else(Bytes::new, |body| Bytes::from(body.to_string()))))
    }
}

/// Key and reference of an action, where its contract has them. The key is not quoted: quotes belong to a header.
pub(super) fn ours<'a>(contract: &Contract, id: ActionId) -> Own<'a> {
    let key = contract.key.as_ref().map(|key| (Cow::Borrowed(KEY), Cow::Owned(key.form.render(id))));
    let reference = contract.reference.as_ref().map(|_| (Cow::Borrowed(REFERENCE), Cow::Owned(Reference::render(id))));
    key.into_iter().chain(reference).collect()
}

/// Whether the question names the action by the key or the reference that its sends are planted with, so that an
/// answer to it speaks of that action and of no other. In its path, query or body: a header may go unread.
pub(in crate::destination) fn carries(question: &Question, operation: &Operation) -> bool {
    let is_ours = |name: &str| match name {
        KEY => carries_key(operation),
        REFERENCE => operation.terms.contract.reference.is_some(),
        _ => false,
    };
    let request = &question.request;
    let values = request.query.iter().map(|(_, value)| value);
    std::iter::once(&request.path).chain(values).any(|template| template.params().any(is_ours))
        || question
            .body
            .as_ref()
            .is_some_and(|body| ANYWHERE.iter().any(|(name, placeholder)| is_ours(name) && mentions(body, placeholder)))
}

fn mentions(body: &Value, placeholder: &str) -> bool {
    match body {
        Value::String(text) => text.contains(placeholder),
        Value::Array(items) => items.iter().any(|item| mentions(item, placeholder)),
        Value::Object(members) => members.values().any(|member| mentions(member, placeholder)),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

/// The body with its placeholders filled in. Every brace that belongs to none is literal: GraphQL is full of them.
pub(super) fn filled(body: &Value, values: &Values<'_>) -> Result<Value, Unbuildable> {
    Ok(match body {
        Value::String(text) => match sole_placeholder(text) {
            Some(name) => values.json(name)?,
            None => Value::String(filled_text(text, values)?),
        },
        Value::Array(items) => Value::Array(items.iter().map(|item| filled(item, values)).collect::<Result<_, _>>()?),
        Value::Object(members) => {
            let member = |(name, member): (&String, &Value)| Ok((name.clone(), filled(member, values)?));
            Value::Object(members.iter().map(member).collect::<Result<_, _>>()?)
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => body.clone(),
    })
}

/// The name, where the text is one placeholder and nothing else.
pub(super) fn sole_placeholder(text: &str) -> Option<&str> {
    let template = Template::parse(text).ok()?;
    matches!(template.parts(), [Part::Param(_)]).then(|| text.strip_prefix('{')?.strip_suffix('}')).flatten()
}

fn filled_text(text: &str, values: &Values<'_>) -> Result<String, Unbuildable> {
    let mut out = text.to_owned();
    for (name, placeholder) in ANYWHERE {
        if out.contains(placeholder) {
            out = out.replace(placeholder, &values.get(name)?);
        }
    }
    Ok(out)
}

#[cfg(test)]
#[path = "ask_tests.rs"]
mod tests;
