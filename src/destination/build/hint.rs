//! What a person can ask who must decide: one line, never with credentials.

use std::borrow::Cow;

use serde_json::Value;

use super::ask::{filled, ours, sole_placeholder};
use super::fill::Values;
use super::planting::{body, plantings};
use super::sent::form_field;
use super::stem::Draft;
use super::{Stem, Unbuildable};
use crate::core::action::Intent;
use crate::core::contract::Question;
use crate::core::target::Operation;

/// The placeholder of the day of the last send.
const SENT_DATE: &str = "sent.date";

/// The placeholder of the destination's `account`.
const ACCOUNT: &str = "account";

/// What the placeholders of the sent body begin with.
const BODY: &str = "body.";

impl Stem {
    /// The hint's request: method, URL and body. Besides the placeholders of a question it knows `{body.NAME}`,
    /// `{sent.date}` (`sent_on`) and `{account}`.
    pub(in crate::destination) fn hint(
        &self,
        hint: &Question,
        operation: &Operation,
        intent: &Intent,
        sent_on: Option<&str>,
    ) -> Result<String, Unbuildable> {
        let contract = &operation.terms.contract;
        let mut own = ours(contract, intent.id);
        own.extend(sent_on.map(|day| (Cow::Borrowed(SENT_DATE), Cow::Borrowed(day))));
        own.extend(self.account.as_deref().map(|account| (Cow::Borrowed(ACCOUNT), Cow::Borrowed(account))));
        let sent = body(intent, &plantings(operation, intent.id)).unwrap_or_else(|_| intent.body.clone());
        for name in placeholders(hint) {
            if let Some(value) = name.strip_prefix(BODY).and_then(|field| body_field(&sent, field)) {
                own.push((Cow::Borrowed(name), Cow::Owned(value)));
            }
        }
        let values = Values::new(intent.params.as_deref(), own);
        let draft = Draft { template: &hint.request, values: &values, plantings: &[], content_type: None, given: None };
        let (uri, _) = self.uri(&draft)?;
        let line = format!("{} {uri}", hint.request.method);
        Ok(match &hint.body {
            Some(body) => format!("{line} {}", filled(body, &values)?),
            None => line,
        })
    }
}

/// Every placeholder of the hint.
fn placeholders(hint: &Question) -> Vec<&str> {
    let request = &hint.request;
    let mut names: Vec<&str> = request.path.params().collect();
    names.extend(request.query.iter().flat_map(|(_, value)| value.params()));
    if let Some(body) = &hint.body {
        add_placeholders(&mut names, body);
    }
    names
}

fn add_placeholders<'a>(names: &mut Vec<&'a str>, body: &'a Value) {
    match body {
        Value::String(text) => names.extend(sole_placeholder(text)),
        Value::Array(items) => items.iter().for_each(|item| add_placeholders(names, item)),
        Value::Object(members) => members.values().for_each(|member| add_placeholders(names, member)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// A top-level member of a JSON body, or a field of a form.
fn body_field(body: &[u8], name: &str) -> Option<String> {
    match serde_json::from_slice::<Value>(body) {
        Ok(Value::Object(members)) => match members.get(name)? {
            Value::String(text) => Some(text.clone()),
            number @ (Value::Number(_) | Value::Bool(_)) => Some(number.to_string()),
            Value::Null | Value::Array(_) | Value::Object(_) => None,
        },
        Ok(_) => None,
        Err(_) => form_field(body, name),
    }
}
