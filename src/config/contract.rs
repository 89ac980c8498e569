//! `[contract.NAME]`: what a destination promises about one operation.

use std::collections::BTreeMap;
use std::time::Duration;

use super::key::{self, Keyed, Notes};
use super::nearest::did_you_mean;
use super::pace;
use super::place::{compare, place_if, source, source_if};
use super::problem::Reported;
use super::table::Table;
use super::trust::{self, Mark, Trust};
use super::{ask, consistent, rule};
use crate::core::action::ActionId;
use crate::core::contract::{Contract, Receipt, Reference, WaitAt, WaitFormat};
use crate::core::credentials::Scheme;

/// A contract as it is shown to people: the promise, and where it is written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Promise {
    /// What the destination promises.
    pub contract: Contract,
    /// Which operation of which API.
    pub title: Option<String>,
    /// Where it is written.
    pub sources: Vec<Written>,
    /// How sure single values are, where that differs from the sources.
    pub marks: Vec<Mark>,
    /// Part of this program, not of the configuration's file.
    pub built_in: bool,
    /// The path of an operation's request must have the key's placeholder.
    pub(super) needs_place: bool,
    /// How late a repeat may leave that no memory of the key guards, where the operation does not say it.
    pub(super) resend_within: Option<Duration>,
    /// What is written about the key for people.
    pub(super) key_notes: Notes,
    /// The longest reference it takes, in bytes.
    pub(super) ref_max_bytes: Option<u32>,
    /// The note of each rule.
    pub(super) rule_notes: Vec<Option<String>>,
}

/// Where a promise is written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Written {
    /// The page.
    pub url: String,
    /// How sure what was read there is.
    pub trust: Trust,
    /// The day it was read.
    pub seen: Option<String>,
}

impl Promise {
    /// How sure it is: as sure as its surest source, unless something that decides an outcome is less so. `None` where
    /// nothing says it.
    pub fn trust(&self) -> Option<Trust> {
        let surest = self.sources.iter().map(|source| source.trust).min();
        let deciding = self.marks.iter().filter(|mark| mark.decides(&self.contract)).map(|mark| mark.trust);
        deciding.chain(surest).max()
    }

    /// The note of each rule, in the order of the contract's rules.
    pub fn rule_notes(&self) -> &[Option<String>] {
        &self.rule_notes
    }

    /// The values that decide an outcome and that nobody has verified, as in `key.window`. Nothing may rest on them
    /// unless the operation's owner says so.
    pub fn unverified(&self) -> Vec<String> {
        if !self.sources.is_empty() && self.sources.iter().all(|source| source.trust == Trust::Memory) {
            return vec!["everything in it".to_owned()];
        }
        self.marks
            .iter()
            .filter(|mark| mark.decides(&self.contract) && mark.trust == Trust::Memory)
            .map(Mark::path)
            .collect()
    }
}

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
    let (title, sources, marks) = (table.text_if("title"), sources(table), trust::marks(table));
    let reconcile = rule::rungs(table, "reconcile").and_then(|given| table.settle("reconcile", given, |_| None));
    let (key, reference) = (key::parse(table), reference(table));
    let (receipt, compare, retry_after) = (receipt(table), compare(table), retry_after(table));
    let rules = table.list("rule").and_then(|rules| {
        let read: Vec<_> = rules.iter().map(|table| Ok((rule::parse(table)?, table.text_if("note")?))).collect();
        read.into_iter().collect::<Result<Vec<_>, _>>()
    });
    let (lookup, cancel, hint) = (ask::lookup(table), ask::cancel(table), ask::hint(table));
    let (sign, pace) = (sign(table), pace::pace(table));
    schema?;
    transport?;
    let (key, key_notes, needs_place, resend_within) = match key? {
        Some(Keyed { key, needs_place, resend_within, notes }) => (Some(key), notes, needs_place, resend_within),
        None => (None, Notes::default(), false, None),
    };
    let (rules, rule_notes) = rules?.into_iter().unzip();
    let (reference, ref_max_bytes) = reference?.unzip();
    let contract = Contract {
        name: name.to_owned(),
        key,
        reference,
        receipt: receipt?,
        compare: compare?,
        retry_after: retry_after?,
        pace: pace?,
        rules,
        reconcile: reconcile?,
        lookup: lookup?,
        cancel: cancel?,
        hint: hint?,
        sign: sign?,
    };
    consistent::check(table, &contract, needs_place)?;
    Ok(Promise {
        contract,
        title: title?,
        sources: sources?,
        marks: marks?,
        built_in,
        needs_place,
        resend_within,
        key_notes,
        ref_max_bytes: ref_max_bytes.flatten(),
        rule_notes,
    })
}

fn sources(table: &Table<'_>) -> Result<Vec<Written>, Reported> {
    let read = |table: &Table<'_>| {
        let (url, trust, seen) = (table.text("url"), table.choice("trust", &Trust::ALL), table.text_if("seen"));
        Ok(Written { url: url?, trust: trust?, seen: seen? })
    };
    let read: Vec<_> = table.list("sources")?.iter().map(read).collect();
    read.into_iter().collect()
}

/// Our own reference, and how long it may be.
fn reference(contract: &Table<'_>) -> Result<Option<(Reference, Option<u32>)>, Reported> {
    let Some(table) = contract.sub("ref")? else { return Ok(None) };
    let place = place_if(&table, "place").and_then(|place| place.ok_or_else(|| table.missing("place")));
    let max_bytes = table.integer_if("max_bytes")?;
    let length = Reference::render(ActionId(uuid::Uuid::nil())).len();
    if let Some(max) = max_bytes.filter(|max| length > *max as usize) {
        return Err(table.wrong("max_bytes", format!("is {max}, but a reference is {length} bytes long")));
    }
    Ok(Some((Reference { place: place? }, max_bytes)))
}

fn receipt(contract: &Table<'_>) -> Result<Receipt, Reported> {
    let Some(table) = contract.sub("receipt")? else { return Ok(Receipt::default()) };
    let id = table.texts("id").and_then(|texts| {
        let read: Result<Vec<_>, _> = texts.iter().map(|text| source(text)).collect();
        read.map_err(|complaint| table.wrong("id", complaint))
    });
    let request_id = source_if(&table, "request_id");
    Ok(Receipt { id: id?, request_id: request_id? })
}

/// How requests must be signed.
fn sign(contract: &Table<'_>) -> Result<Option<Scheme>, Reported> {
    let Some(table) = contract.sub("sign")? else { return Ok(None) };
    let scheme = table.choice("scheme", &Scheme::PROMISED)?;
    let per_attempt = &scheme.headers()[1..];
    let same = |given: &[String]| {
        given.len() == per_attempt.len() && per_attempt.iter().all(|name| given.iter().any(|one| one == name))
    };
    match table.texts("per_attempt")? {
        given if given.is_empty() || same(&given) => Ok(Some(scheme)),
        _ => Err(table.wrong("per_attempt", format!("must be {}, or left out", per_attempt.join(" and ")))),
    }
}

/// Where an answer says how long to wait.
fn retry_after(contract: &Table<'_>) -> Result<Vec<WaitAt>, Reported> {
    let Some(table) = contract.sub("pace")? else { return Ok(vec![]) };
    let read = |text: &String| {
        let (at, format) = text.rsplit_once(';').unwrap_or((text, ""));
        let format = WaitFormat::ALL.into_iter().find(|(_, name)| *name == format.trim());
        let Some((format, _)) = format else {
            let formats = WaitFormat::ALL.map(|(_, name)| name).join(", ");
            return Err(format!(
                "must be a place and one of {formats}, like \"header:Retry-After;rfc9110\", found {text:?}"
            ));
        };
        Ok(WaitAt { at: source(at.trim())?, format })
    };
    let read: Result<_, _> = table.texts("retry_after")?.iter().map(read).collect();
    read.map_err(|complaint| table.wrong("retry_after", complaint))
}
