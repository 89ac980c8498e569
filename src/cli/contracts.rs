//! `outboxd contracts`

use std::collections::BTreeMap;
use std::path::PathBuf;

use clap::Args;
use serde_json::{Value, json};

use super::inventory::{self, Row};
use super::print::screen::Screen;
use super::{Exit, print, set_up};
use crate::config::{self, Promise, Secrets, Trust};

/// Which, and how it is shown.
#[derive(Args)]
pub struct Options {
    /// Print this one as TOML that can be pasted into a configuration
    name: Option<String>,
    /// A configuration file, whose own contracts are shown too
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// JSON: an array, or one object
    #[arg(long)]
    json: bool,
}

/// Lists the contracts, or prints one.
pub fn run(options: &Options) -> Exit {
    let contracts = match &options.config {
        None => config::contracts(),
        Some(path) => match set_up::load(path, Secrets::Ignore) {
            Ok(config) => config.contracts,
            Err(exit) => return exit,
        },
    };
    let Some(name) = &options.name else {
        let text = if options.json { list_json(&contracts).to_string() } else { list(&contracts, Screen::of_stdout()) };
        return print::out(&(text + "\n"));
    };
    let Some(promise) = contracts.get(name) else {
        eprintln!("{}", unknown(name, &contracts));
        return Exit::Failed;
    };
    let text = if options.json { one_json(promise).to_string() } else { one(promise) };
    print::out(&(text + "\n"))
}

fn list(contracts: &BTreeMap<String, Promise>, screen: Screen) -> String {
    let row = |promise: &Promise| {
        let contract = &promise.contract;
        let own = if promise.built_in { "" } else { " (of this file)" };
        Row {
            cells: vec![
                contract.name.clone(),
                inventory::key(contract),
                inventory::asked(contract),
                inventory::ladder(&contract.reconcile),
                inventory::trust(promise.trust()).to_owned(),
            ],
            beneath: vec![("  ", format!("{}{own}", promise.title.as_deref().unwrap_or("without a title")))],
        }
    };
    let rows: Vec<_> = contracts.values().map(row).collect();
    let table = inventory::table(&["contract", "key · window", "lookup", "on unknown", "trust"], &rows, screen);
    format!("{table}\n\nOne of them with its sources: outboxd contracts NAME")
}

fn list_json(contracts: &BTreeMap<String, Promise>) -> Value {
    Value::Array(contracts.values().map(inventory::as_json).collect())
}

/// The contract as TOML. What else there is to know stands above it as comments.
fn one(promise: &Promise) -> String {
    let mut lines: Vec<String> = Vec::new();
    if let Some(about) = about(promise) {
        lines.extend(about.lines().map(str::to_owned));
        lines.push(String::new());
    }
    lines.push("How sure it is:".to_owned());
    lines.extend(
        promise
            .sources
            .iter()
            .map(|source| source.trust)
            .collect::<std::collections::BTreeSet<_>>()
            .into_iter()
            .map(|trust| format!("  {}", meaning(trust))),
    );
    lines.extend(promise.marks.iter().map(|mark| format!("  {}: {}", mark.path(), mark.trust.as_str())));
    let unverified = promise.unverified();
    if !unverified.is_empty() {
        lines.push(format!("  {} is unverified: an operation needs `allow_unverified = true`", unverified.join(", ")));
    }
    if promise.sources.is_empty() && promise.marks.is_empty() {
        lines.push("  nothing is said".to_owned());
    }
    let comment = |line: String| if line.is_empty() { "#\n".to_owned() } else { format!("# {line}\n") };
    let comments: String = lines.into_iter().map(comment).collect();
    format!("{comments}\n{}", promise.describe().trim_end())
}

fn one_json(promise: &Promise) -> Value {
    let mut value = inventory::as_json(promise);
    let sources: Vec<_> = (promise.sources.iter())
        .map(|source| json!({ "url": source.url, "trust": source.trust.as_str(), "seen": source.seen }))
        .collect();
    let marks: BTreeMap<String, &str> = promise.marks.iter().map(|mark| (mark.path(), mark.trust.as_str())).collect();
    if let Some(members) = value.as_object_mut() {
        members.insert("about".to_owned(), json!(about(promise)));
        members.insert("sources".to_owned(), json!(sources));
        members.insert("trust_of".to_owned(), json!(marks));
        members.insert("toml".to_owned(), json!(promise.describe()));
    }
    value
}

/// What one must know of it, where it is built in.
fn about(promise: &Promise) -> Option<String> {
    config::about(&promise.contract.name).filter(|_| promise.built_in)
}

fn meaning(trust: Trust) -> &'static str {
    match trust {
        Trust::Official => "official: read on a page of whoever promises it",
        Trust::Source => "source: read in their own specification, client library or source code",
        Trust::Relayed => "relayed: quoted by somebody else, or reported from what was observed",
        Trust::Memory => "memory: nobody has verified it",
    }
}

/// What to say of a name that is none: the nearest, or those that hold it.
fn unknown(name: &str, contracts: &BTreeMap<String, Promise>) -> String {
    let known = || contracts.keys().map(String::as_str);
    let near: Vec<&str> = match config::nearest(name, known()) {
        Some(near) => vec![near],
        None => known().filter(|known| known.contains(name)).collect(),
    };
    let hint = match near.as_slice() {
        [] => "; outboxd contracts lists them".to_owned(),
        near => format!("; did you mean {}?", near.join(" or ")),
    };
    format!("there is no contract {name:?}{hint}")
}
