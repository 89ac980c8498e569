//! What stands in a request, for an answer to be compared with.

use std::borrow::Cow;
use std::cell::OnceCell;

use percent_encoding::percent_decode_str;
use serde_json::Value;

use super::fill::Values;
use super::{Built, carries_key};
use crate::core::action::Intent;
use crate::core::contract::{Place, Reference};
use crate::core::target::Operation;

/// A send, as it was built.
pub(in crate::destination) struct Sent<'a> {
    operation: &'a Operation,
    intent: &'a Intent,
    built: &'a Built,
    json: OnceCell<Option<Value>>,
}

impl<'a> Sent<'a> {
    pub(in crate::destination) fn new(operation: &'a Operation, intent: &'a Intent, built: &'a Built) -> Self {
        Self { operation, intent, built, json: OnceCell::new() }
    }

    /// Whether the place is that of the key or of our reference.
    pub(in crate::destination) fn is_ours(operation: &Operation, place: &Place) -> bool {
        let contract = &operation.terms.contract;
        (carries_key(operation) && contract.key.as_ref().is_some_and(|key| key.place == *place))
            || contract.reference.as_ref().is_some_and(|reference| reference.place == *place)
    }

    /// What stands there; `None` where nothing does, or more than one thing. At the place of the key or the reference
    /// it is that, without what its place adds to it.
    pub(in crate::destination) fn value(&self, place: &Place) -> Option<Value> {
        let id = self.intent.id;
        let contract = &self.operation.terms.contract;
        let key = contract.key.as_ref().filter(|_| carries_key(self.operation));
        if let Some(key) = key.filter(|key| key.place == *place) {
            return Some(Value::String(key.form.render(id)));
        }
        if contract.reference.as_ref().is_some_and(|reference| reference.place == *place) {
            return Some(Value::String(Reference::render(id)));
        }
        match place {
            Place::Header(name) => {
                self.built.request.headers().get(name)?.to_str().ok().map(|text| Value::String(text.to_owned()))
            }
            Place::Json(pointer) => self.json()?.pointer(pointer).cloned(),
            Place::Form(field) => form_field(&self.built.body, field).map(Value::String),
            Place::Query(name) => only_pair(self.built.request.uri().query()?, name).map(Value::String),
            Place::Path(name) => self.param(name).map(Value::String),
        }
    }

    fn json(&self) -> Option<&Value> {
        self.json.get_or_init(|| serde_json::from_slice(&self.built.body).ok()).as_ref()
    }

    fn param(&self, name: &str) -> Option<String> {
        Values::new(self.intent.params.as_deref(), vec![]).get(name).ok().map(Cow::into_owned)
    }
}

/// The one field of that name in a form-encoded body.
pub(super) fn form_field(body: &[u8], field: &str) -> Option<String> {
    only_pair(std::str::from_utf8(body).ok()?, field)
}

/// The value of the one `name=value` of that name.
fn only_pair(pairs: &str, name: &str) -> Option<String> {
    let decoded = |text: &str| percent_decode_str(&text.replace('+', " ")).decode_utf8().ok().map(Cow::into_owned);
    let mut values = pairs
        .split('&')
        .map(|pair| pair.split_once('=').unwrap_or((pair, "")))
        .filter(|(given, _)| decoded(given).as_deref() == Some(name));
    match (values.next(), values.next()) {
        (Some((_, value)), None) => decoded(value),
        (Some(_), Some(_)) | (None, _) => None,
    }
}
