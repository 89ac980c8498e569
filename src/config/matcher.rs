//! Matchers: which answers something speaks of.

#![allow(clippy::wildcard_enum_match_arm, reason = "TOML's values are not our enum: what is not expected is refused")]

use serde_json::Value;
use toml::de::DeValue;

use super::http;
use super::place::json_pointer;
use super::problem::Reported;
use super::table::{Table, type_of};
use crate::core::contract::{JsonIs, StatusSet, TextIs, When};

/// The matcher under a key.
pub(super) fn when(parent: &Table<'_>, key: &str) -> Result<When, Reported> {
    when_if(parent, key)?.ok_or_else(|| parent.missing(key))
}

/// The matcher under a key, if it is given.
pub(super) fn when_if(parent: &Table<'_>, key: &str) -> Result<Option<When>, Reported> {
    let Some(table) = parent.sub(key)? else { return Ok(None) };
    let (status, headers, json) = (statuses(&table), headers(&table), json(&table));
    let when = When { status: status?, headers: headers?, json: json? };
    match when == When::default() && table.item("error").is_none() {
        true => Err(parent.wrong(key, "must have at least one of `status`, `header`, `json`")),
        false => Ok(Some(when)),
    }
}

fn statuses(table: &Table<'_>) -> Result<Option<Vec<StatusSet>>, Reported> {
    table.read("status", |item| match item.value {
        DeValue::Array(sets) if sets.is_empty() => Err("must not be an empty list".to_owned()),
        DeValue::Array(sets) => sets.iter().map(|set| status(set.get_ref())).collect(),
        one => Ok(vec![status(one)?]),
    })
}

fn status(value: &DeValue<'_>) -> Result<StatusSet, String> {
    let text = match value {
        DeValue::String(text) => text.to_string(),
        DeValue::Integer(number) => number.to_string(),
        other => return Err(format!("must be a status like 409 or \"4xx\", found {}", type_of(other))),
    };
    let class = text.strip_suffix("xx").and_then(|digit| digit.parse().ok()).filter(|class| (1..=5).contains(class));
    let exact = text.parse().ok().filter(|status| text.len() == 3 && (100..=599).contains(status));
    match (class, exact) {
        (Some(class), _) if text.len() == 3 => Ok(StatusSet::Class(class)),
        (_, Some(exact)) => Ok(StatusSet::Exact(exact)),
        (_, None) => Err(format!("must be a status like 409 or \"4xx\", found {text:?}")),
    }
}

fn headers(table: &Table<'_>) -> Result<Vec<(String, TextIs)>, Reported> {
    table.each("header", |name, value| match value {
        DeValue::String(text) => Ok((http::header_name(name)?, TextIs::new(text.as_ref()))),
        other => Err(format!("has `{name}`, which must be a string, found {}", type_of(other))),
    })
}

fn json(table: &Table<'_>) -> Result<Vec<(String, JsonIs)>, Reported> {
    table.each("json", |pointer, value| Ok((json_pointer(pointer)?, json_is(value)?)))
}

fn json_is(value: &DeValue<'_>) -> Result<JsonIs, String> {
    match value {
        DeValue::String(text) => Ok(match text.as_ref() {
            "*" => JsonIs::Present,
            "[]" => JsonIs::Exactly(Value::Array(vec![])),
            "{}" => JsonIs::Exactly(Value::Object(serde_json::Map::new())),
            pattern => JsonIs::Text(TextIs::new(pattern)),
        }),
        DeValue::Boolean(value) => Ok(JsonIs::Exactly(Value::Bool(*value))),
        DeValue::Integer(number) if number.radix() == 10 => Ok(JsonIs::Text(TextIs::new(number.as_str()))),
        other => Err(format!("must hold strings, booleans or integers, found {}", type_of(other))),
    }
}
