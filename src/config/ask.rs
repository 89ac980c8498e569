//! `[contract.NAME.lookup]`, `cancel` and `hint`: asking the destination about an action.

use std::time::Duration;

use serde_json::Value;

use super::duration;
use super::place::{compare, source_if};
use super::problem::Reported;
use super::table::Table;
use super::{body, matcher, request};
use crate::core::contract::{Absence, Asking, By, Cancel, Lookup, Question};

pub(super) fn lookup(contract: &Table<'_>) -> Result<Option<Lookup>, Reported> {
    let Some(table) = contract.sub("lookup")? else { return Ok(None) };
    let (by, question, asking) = (table.choice("by", &By::ALL), question(&table), asking(&table));
    let (found, absent) = (matcher::when(&table, "found"), matcher::when_if(&table, "absent"));
    let (receipt, compare) = (source_if(&table, "receipt"), compare(&table));
    let lookup = Lookup {
        by: by?,
        question: question?,
        found: found?,
        absent: absent?,
        receipt: receipt?,
        compare: compare?,
        asking: asking?,
    };
    if lookup.absent.is_none() && lookup.asking.absence != Absence::Never {
        let remedy = "say which answers mean \"not there\" in `absent`, or write \"never\"";
        return Err(table.wrong("absence", format!("believes an answer that no matcher recognises; {remedy}")));
    }
    Ok(Some(lookup))
}

pub(super) fn cancel(contract: &Table<'_>) -> Result<Option<Cancel>, Reported> {
    let Some(table) = contract.sub("cancel")? else { return Ok(None) };
    let (question, done, asking) = (question(&table), matcher::when(&table, "done"), asking(&table));
    Ok(Some(Cancel { question: question?, done: done?, asking: asking? }))
}

pub(super) fn hint(contract: &Table<'_>) -> Result<Option<Question>, Reported> {
    let Some(table) = contract.sub("hint")? else { return Ok(None) };
    question(&table).map(Some)
}

fn question(about: &Table<'_>) -> Result<Question, Reported> {
    let Some(table) = about.sub("request")? else { return Err(about.missing("request")) };
    let request = request::template(&table);
    let body = match table.read("body", |item| body::json(item.value))? {
        Some(body @ Value::Object(_)) => Some(body),
        Some(_) => return Err(table.wrong("body", "must be a table, which is sent as a JSON object")),
        None => None,
    };
    Ok(Question { request: request?, body })
}

/// When to ask, how often, and what an answer proves.
fn asking(table: &Table<'_>) -> Result<Asking, Reported> {
    let (first_after, repeat) = (table.duration("first_after"), table.durations_if("repeat"));
    let absence = table.text("absence").and_then(|text| {
        let after = match text.split_once(':') {
            _ if text == "never" => Ok(Absence::Never),
            Some(("after", delay)) => duration::parse(delay).map(Absence::After),
            Some(_) | None => Err(format!("must be \"never\" or like \"after:60s\", found {text:?}")),
        };
        after.map_err(|complaint| table.wrong("absence", complaint))
    });
    let often = || [30, 300, 3600].map(Duration::from_secs).to_vec();
    Ok(Asking { first_after: first_after?, repeat: repeat?.unwrap_or_else(often), absence: absence? })
}
