//! `[[contract.NAME.rule]]`: what answers mean.

#![allow(clippy::wildcard_enum_match_arm, reason = "TOML's values are not our enum: what is not expected is refused")]

use serde_json::Value;
use toml::de::DeValue;

use super::http;
use super::key::json_pointer;
use super::later::{self, NOT_YET};
use super::nearest::nearest;
use super::problem::Reported;
use super::table::{Table, type_of};
use crate::core::contract::{Class, JsonIs, Rule, Rung, StatusSet, TextIs, When};

const RUNGS: [Rung; 4] = [Rung::Resend, Rung::Lookup, Rung::Cancel, Rung::Review];

pub(super) fn parse(table: &Table<'_>) -> Result<Rule, Reported> {
    let when = when(table);
    let class = table.choice("class", &Class::ALL);
    let then = rungs(table, "then");
    let wait = table.duration_if("wait");
    Ok(Rule { when: when?, class: class?, then: then?, wait: wait? })
}

/// A ladder, if it is given; `review` ends it, written or not.
pub(super) fn rungs(table: &Table<'_>, key: &str) -> Result<Option<Vec<Rung>>, Reported> {
    table.read(key, |item| {
        let DeValue::Array(names) = item.value else {
            return Err(format!("must be a list like [\"resend\", \"review\"], found {}", type_of(item.value)));
        };
        let mut ladder = Vec::new();
        for name in names.iter() {
            let Some(name) = name.get_ref().as_str() else {
                return Err(format!("must hold strings, found {}", type_of(name.get_ref())));
            };
            let known = RUNGS.into_iter().find(|rung| rung.as_str() == name);
            let rung = known.ok_or_else(|| {
                let near = nearest(name, RUNGS.iter().map(|rung| rung.as_str()));
                let hint = near.map(|name| format!("; did you mean \"{name}\"?")).unwrap_or_default();
                format!("has {name:?}, which is none of \"resend\", \"review\"{hint}")
            })?;
            if !later::rung(rung) {
                return Err(format!("has \"{name}\", which {NOT_YET}"));
            }
            if ladder.contains(&rung) {
                return Err(format!("has \"{name}\" twice"));
            }
            if ladder.contains(&Rung::Review) {
                return Err(format!("has \"{name}\" behind \"review\", where it is never reached"));
            }
            ladder.push(rung);
        }
        if !ladder.contains(&Rung::Review) {
            ladder.push(Rung::Review);
        }
        Ok(ladder)
    })
}

fn when(rule: &Table<'_>) -> Result<When, Reported> {
    let Some(table) = rule.sub("when")? else { return Err(rule.missing("when")) };
    let (status, headers, json) = (statuses(&table), headers(&table), json(&table));
    let when = When { status: status?, headers: headers?, json: json? };
    match when == When::default() && table.item("error").is_none() {
        true => Err(rule.wrong("when", "must have at least one of `status`, `header`, `json`")),
        false => Ok(when),
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
    each(table, "header", |name, value| match value {
        DeValue::String(text) => Ok((http::header_name(name)?, TextIs::new(text.as_ref()))),
        other => Err(format!("has `{name}`, which must be a string, found {}", type_of(other))),
    })
}

fn json(table: &Table<'_>) -> Result<Vec<(String, JsonIs)>, Reported> {
    each(table, "json", |pointer, value| Ok((json_pointer(pointer)?, json_is(value)?)))
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

/// What stands in a table of free names, each read; all that is wrong is reported.
fn each<T>(
    table: &Table<'_>,
    key: &str,
    read: impl Fn(&str, &DeValue<'_>) -> Result<T, String>,
) -> Result<Vec<T>, Reported> {
    let mut values = Vec::new();
    let mut refused = None;
    for (name, item, _) in table.entries(key)? {
        match read(&name, item.value) {
            Ok(value) => values.push(value),
            Err(complaint) => {
                refused = Some(table.report(item.at, format!("`{key}` in {} {complaint}", table.title())));
            }
        }
    }
    refused.map_or(Ok(values), Err)
}
