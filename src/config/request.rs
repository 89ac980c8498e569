//! `request`: how requests of an operation, and those about an action, are built.

#![allow(clippy::wildcard_enum_match_arm, reason = "TOML's values are not our enum: what is not expected is refused")]

use toml::de::DeValue;

use super::http;
use super::problem::Reported;
use super::table::{Table, type_of};
use crate::core::request::{RequestTemplate, Template};

/// `request` of an operation.
pub(super) fn parse(operation: &Table<'_>) -> Result<RequestTemplate, Reported> {
    let Some(table) = operation.sub("request")? else { return Err(operation.missing("request")) };
    template(&table)
}

/// What a request of an operation and one about an action have in common.
pub(super) fn template(table: &Table<'_>) -> Result<RequestTemplate, Reported> {
    let method = table
        .text("method")
        .and_then(|method| http::method(&method).map_err(|complaint| table.wrong("method", complaint)));
    let path =
        table.text("path").and_then(|path| http::path(&path).map_err(|complaint| table.wrong("path", complaint)));
    let query = templates(table, "query", |name| match name.is_empty() {
        true => Err("must not hold an empty name".to_owned()),
        false => Ok(name.to_owned()),
    });
    let headers = templates(table, "headers", fixed_header);
    Ok(RequestTemplate { method: method?, path: path?, query: query?, headers: headers? })
}

fn fixed_header(name: &str) -> Result<String, String> {
    match http::request_header_name(name)? {
        name if name == "authorization" => {
            Err("cannot set `authorization`: credentials belong in the destination's `auth`".to_owned())
        }
        name => Ok(name),
    }
}

/// Names and templates, in the order given.
fn templates(
    table: &Table<'_>,
    key: &str,
    name_of: impl Fn(&str) -> Result<String, String>,
) -> Result<Vec<(String, Template)>, Reported> {
    let mut read = Vec::new();
    let mut refused = None;
    for (name, item, _) in table.entries(key)? {
        let value = match item.value {
            DeValue::String(text) if !http::is_header_value(text) => {
                Err(format!("has a control character in `{}`", name.escape_debug()))
            }
            DeValue::String(text) => {
                http::template(text).map_err(|complaint| format!("has `{name}`, which {complaint}"))
            }
            other => Err(format!("has `{name}`, which must be a string, found {}", type_of(other))),
        };
        let pair =
            name_of(&name).and_then(|name| match read.iter().any(|(known, _)| *known == name) && key == "headers" {
                true => Err(format!("has `{name}` twice")),
                false => Ok((name, value?)),
            });
        match pair {
            Ok(pair) => read.push(pair),
            Err(complaint) => {
                refused = Some(table.report(item.at, format!("`{key}` in {} {complaint}", table.title())));
            }
        }
    }
    refused.map_or(Ok(read), Err)
}
