//! What a contract adds to what the application gave: the key, our reference, and the fields that switch the
//! destination's memory on.

use std::borrow::Cow;
use std::fmt;

use bytes::Bytes;
use serde_json::Value;

use super::in_body::{into_form, into_json};
use super::unbuildable::Unbuildable;
use crate::core::action::{ActionId, Intent};
use crate::core::contract::{KeyMode, Place, Reference};
use crate::core::target::Operation;

/// What is planted, for messages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::destination) enum What {
    /// The idempotency key.
    Key,
    /// Our reference.
    Reference,
    /// A fixed field of the contract.
    Field,
}

impl fmt::Display for What {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Key => "the idempotency key",
            Self::Reference => "the reference",
            Self::Field => "a fixed field of the contract",
        })
    }
}

/// A value and where it stands in the request.
pub(super) struct Planting<'c> {
    pub(super) place: &'c Place,
    pub(super) what: What,
    value: Cow<'c, Value>,
}

impl Planting<'_> {
    /// The value where only text can stand.
    pub(super) fn text(&self) -> Cow<'_, str> {
        match self.value.as_ref() {
            Value::String(text) => Cow::Borrowed(text),
            other @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_)) => {
                Cow::Owned(other.to_string())
            }
        }
    }

    /// The header that it is, name in lower case.
    pub(super) fn header(&self) -> Option<&str> {
        match self.place {
            Place::Header(name) => Some(name),
            Place::Json(_) | Place::Form(_) | Place::Query(_) | Place::Path(_) => None,
        }
    }

    /// The query parameter that it is.
    pub(super) fn query(&self) -> Option<&str> {
        match self.place {
            Place::Query(name) => Some(name),
            Place::Json(_) | Place::Form(_) | Place::Header(_) | Place::Path(_) => None,
        }
    }

    /// The placeholder of the path that it stands for.
    pub(super) fn path(&self) -> Option<&str> {
        match self.place {
            Place::Path(name) => Some(name),
            Place::Json(_) | Place::Form(_) | Place::Header(_) | Place::Query(_) => None,
        }
    }
}

/// Whether the operation's sends carry the key. A `natural` one may stand for a path that the application made up
/// itself; then it is nowhere.
pub(in crate::destination) fn carries_key(operation: &Operation) -> bool {
    operation.terms.contract.key.as_ref().is_some_and(|key| match (&key.place, key.mode) {
        (Place::Path(_), KeyMode::Natural) => operation.request.path_takes(&key.place),
        (Place::Path(_), KeyMode::Dedupe | KeyMode::Conflict | KeyMode::Receiver) => true,
        (Place::Header(_) | Place::Json(_) | Place::Form(_) | Place::Query(_), _) => true,
    })
}

/// Everything that a send of that action is planted with. The key comes last, so that it has the last word.
pub(super) fn plantings(operation: &Operation, id: ActionId) -> Vec<Planting<'_>> {
    let contract = &operation.terms.contract;
    let own = |place, what, text: String| Planting { place, what, value: Cow::Owned(Value::String(text)) };
    let mut all = Vec::new();
    if let Some(reference) = &contract.reference {
        all.push(own(&reference.place, What::Reference, Reference::render(id)));
    }
    if let Some(key) = &contract.key {
        let fields = key.also.iter();
        all.extend(fields.map(|(place, value)| Planting { place, what: What::Field, value: Cow::Borrowed(value) }));
        if carries_key(operation) {
            all.push(own(&key.place, What::Key, key.render(id)));
        }
    }
    all
}

/// The body with what is planted in it; every other byte as it was given.
pub(super) fn body(intent: &Intent, plantings: &[Planting<'_>]) -> Result<Bytes, Unbuildable> {
    let mut body = intent.body.clone();
    for planting in plantings {
        match planting.place {
            Place::Json(pointer) => {
                body = into_json(&body, pointer, &planting.value.to_string())
                    .map(Bytes::from)
                    .ok_or_else(|| Unbuildable::NotInJson { pointer: pointer.clone(), what: planting.what })?;
            }
            Place::Form(field) => {
                body = into_form(&body, field, &planting.text())
                    .map(Bytes::from)
                    .ok_or(Unbuildable::NotInForm { what: planting.what })?;
            }
            Place::Header(_) | Place::Query(_) | Place::Path(_) => {}
        }
    }
    Ok(body)
}
