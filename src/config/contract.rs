//! `[contract.NAME]`: what a destination promises about one operation.

use std::collections::BTreeMap;

use super::key::{self, Keyed};
use super::nearest::did_you_mean;
use super::problem::Reported;
use super::rule;
use super::table::Table;
use crate::core::contract::{Contract, Receipt, Source};

/// A contract as it is shown to people: the promise, and where it is written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Promise {
    /// What the destination promises.
    pub contract: Contract,
    /// Which operation of which API.
    pub title: Option<String>,
    /// Where it is written.
    pub sources: Vec<Written>,
    /// Part of this program, not of the configuration's file.
    pub built_in: bool,
    /// The path of an operation's request must have the key's placeholder.
    pub(super) needs_place: bool,
}

/// Where a promise is written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Written {
    /// The page.
    pub url: String,
    /// `official`, `source`, `relayed` or `memory`.
    pub trust: &'static str,
    /// The day it was read.
    pub seen: Option<String>,
}

const TRUST: [(&str, &str); 4] =
    [("official", "official"), ("source", "source"), ("relayed", "relayed"), ("memory", "memory")];

/// Reads all contracts of the file and all built-in ones. `None` = it exists, and what is wrong with it is reported.
pub(super) fn parse_all(
    own: &[(String, Table<'_>)],
    built_in: &[(String, Table<'_>)],
) -> BTreeMap<String, Option<Promise>> {
    let mut promises = BTreeMap::new();
    for (name, table) in built_in {
        promises.insert(name.clone(), parse(name, table, true).ok());
    }
    for (name, table) in own {
        let whole = extended(name, table, own, built_in);
        promises.insert(name.clone(), whole.and_then(|whole| parse(name, &whole, false)).ok());
    }
    promises
}

/// The table over all that it extends. A contract that extends its own name extends the built-in one.
fn extended<'a>(
    name: &str,
    table: &Table<'a>,
    own: &[(String, Table<'a>)],
    built_in: &[(String, Table<'a>)],
) -> Result<Table<'a>, Reported> {
    let of = |list: &[(String, Table<'a>)], name: &str| {
        list.iter().find(|(known, _)| known == name).map(|(_, table)| table.clone())
    };
    let mut whole = table.clone();
    let mut passed = vec![name.to_owned()];
    let mut last = table.clone();
    while let Some(base) = last.text_if("extends")? {
        let own_base = of(own, &base).filter(|_| passed.last() != Some(&base));
        let is_own = own_base.is_some();
        let Some(found) = own_base.or_else(|| of(built_in, &base)) else {
            let known = own.iter().chain(built_in).map(|(known, _)| known.as_str()).filter(|known| *known != name);
            let hint = did_you_mean(&base, known);
            return Err(last.wrong("extends", format!("names the contract {base:?}, which does not exist{hint}")));
        };
        if is_own && passed.contains(&base) {
            return Err(table.wrong("extends", "goes round in a circle"));
        }
        whole = whole.over(&found);
        passed.push(base);
        last = found;
        if !is_own {
            break;
        }
    }
    Ok(whole)
}

fn parse(name: &str, table: &Table<'_>, built_in: bool) -> Result<Promise, Reported> {
    let (schema, transport) = (table.integer("schema"), table.choice("transport", &[((), "http")]));
    let (title, sources) = (table.text_if("title"), sources(table));
    let reconcile = rule::rungs(table, "reconcile").and_then(|given| table.settle("reconcile", given, |_| None));
    let key = key::parse(table);
    let receipt = receipt(table);
    let rules = table.list("rule").and_then(|rules| {
        let read: Vec<_> = rules.iter().map(rule::parse).collect();
        read.into_iter().collect::<Result<Vec<_>, _>>()
    });
    schema?;
    transport?;
    let (key, needs_place) = match key? {
        Some(Keyed { key, needs_place }) => (Some(key), needs_place),
        None => (None, false),
    };
    let contract = Contract { key, receipt: receipt?, rules: rules?, reconcile: reconcile?, ..Contract::silent(name) };
    Ok(Promise { contract, title: title?, sources: sources?, built_in, needs_place })
}

fn sources(table: &Table<'_>) -> Result<Vec<Written>, Reported> {
    let read = |table: &Table<'_>| {
        let (url, trust, seen) = (table.text("url"), table.choice("trust", &TRUST), table.text_if("seen"));
        Ok(Written { url: url?, trust: trust?, seen: seen? })
    };
    let read: Vec<_> = table.list("sources")?.iter().map(read).collect();
    read.into_iter().collect()
}

fn receipt(contract: &Table<'_>) -> Result<Receipt, Reported> {
    let Some(table) = contract.sub("receipt")? else { return Ok(Receipt::default()) };
    let place = |key| {
        let text = table.text_if(key)?;
        text.map(|text| source(&text).map_err(|complaint| table.wrong(key, complaint))).transpose()
    };
    let (id, request_id) = (place("id"), place("request_id"));
    Ok(Receipt { id: id?.into_iter().collect(), request_id: request_id? })
}

fn source(text: &str) -> Result<Source, String> {
    match text.split_once(':') {
        Some(("header", name)) => super::http::header_name(name).map(Source::Header),
        Some(("json", pointer)) => key::json_pointer(pointer).map(Source::Json),
        Some(_) | None => Err(format!("must be `header:Name` or `json:/pointer`, found {text:?}")),
    }
}
