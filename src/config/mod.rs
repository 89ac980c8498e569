//! TOML into types that cannot be wrong.
//!
//! [`Config::load`] reads the file with the place of every value (`table`), asks the reference which keys there are
//! (`reference`), and collects everything that is wrong (`problem`) before it gives up: a person fixes a file
//! once. What comes out needs no further check.

mod agreement;
mod ask;
mod body;
mod builtin;
mod canonical;
mod consistent;
mod contract;
mod daemon;
mod database;
mod destination;
mod duration;
mod http;
mod key;
mod later;
mod matcher;
mod nearest;
mod operation;
mod pace;
mod place;
mod problem;
mod question;
mod read;
mod reference;
mod request;
mod rule;
mod secret;
mod table;
#[cfg(test)]
mod tests;
mod trust;
mod warnings;

use std::collections::BTreeMap;
use std::path::Path;

use toml::de::DeTable;

pub use builtin::{about, contracts};
pub use contract::{Promise, Written};
pub use daemon::{Dispatcher, Log, LogFormat, LogLevel};
pub use database::{Database, Place};
pub use duration::show;
pub use nearest::nearest;
pub use operation::{Keep, Limits};
pub use problem::{Problem, Refusal};
pub use reference::{Fallback, KeyDoc, Kind, Need, reference};
pub use secret::Secrets;
pub use trust::{Mark, Trust};
pub use warnings::{Warning, ladder};

use crate::core::target::{Operation, Target};
use operation::Known;
use problem::{Origin, Problems};
use secret::Sources;
use table::{Layer, Table};

/// A configuration that was accepted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Config {
    /// Where the ledger is.
    pub database: Database,
    /// The loop that delivers.
    pub dispatcher: Dispatcher,
    /// What the daemon says.
    pub log: Log,
    /// The external systems, by name.
    pub targets: BTreeMap<String, Target>,
    /// The kinds of effect, by name. Each one's target exists.
    pub operations: BTreeMap<String, Operation>,
    /// What the daemon observes for each operation; the same names as `operations`.
    pub limits: BTreeMap<String, Limits>,
    /// Every contract, built-in ones too, by name.
    pub contracts: BTreeMap<String, Promise>,
}

impl Config {
    /// Reads a file. Secrets come from the process's environment and from files beside this one.
    pub fn load(path: &Path, secrets: Secrets) -> Result<Self, Refusal> {
        let name = path.display().to_string();
        let text = std::fs::read_to_string(path).map_err(|error| {
            let message =
                format!("the configuration {}; name another file with --config", secret::why_unreadable(&error));
            Refusal { problems: vec![Problem { file: name.clone(), line: None, message }] }
        })?;
        Self::parse(&text, &name, secrets, &|variable| std::env::var(variable).ok())
    }

    /// Reads a text. `file_name` is what messages call it and what relative paths of secrets start from.
    pub fn parse(
        text: &str,
        file_name: &str,
        secrets: Secrets,
        env: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Self, Refusal> {
        let problems = Problems::default();
        let origin = Origin::new(file_name, text);
        let built_in = builtin::trees(&problems);
        let tree = tree(&problems, &origin, text);
        let directory = Path::new(file_name).parent().unwrap_or(Path::new("")).to_owned();
        let sources = Sources { secrets, env, directory };
        let config = tree.and_then(|tree| {
            let built_in = builtin::tables(&problems, &built_in);
            let top = Table::top(&problems, Layer { table: &tree, origin: &origin });
            Self::of(&top, &built_in, &sources)
        });
        match config {
            Some(config) if problems.is_empty() => Ok(config),
            Some(_) | None => Err(problems.into_refusal()),
        }
    }

    /// `None` where a problem was reported.
    fn of(top: &Table<'_>, built_in: &[(String, Table<'_>)], sources: &Sources<'_>) -> Option<Self> {
        let database = match top.sub("database") {
            Ok(Some(table)) => Database::parse(&table, sources),
            Ok(None) => Err(top.missing("database")),
            Err(reported) => Err(reported),
        };
        let dispatcher =
            top.sub_or_default("dispatcher").and_then(|table| Dispatcher::parse(&table, &sources.directory));
        let log = top.sub_or_default("log").and_then(|table| Log::parse(&table));
        let targets: BTreeMap<_, _> = top
            .named("destination")
            .into_iter()
            .map(|(name, table)| (name.clone(), destination::parse(&name, &table, sources).ok()))
            .collect();
        let promises = contract::parse_all(&top.named("contract"), built_in);
        let known = Known { targets: &targets, promises: &promises };
        let (mut operations, mut limits) = (BTreeMap::new(), BTreeMap::new());
        for (name, table) in top.named("operation") {
            if let Ok((operation, limit)) = operation::parse(&name, &table, &known) {
                operations.insert(name.clone(), operation);
                limits.insert(name, limit);
            }
        }
        let targets = targets.into_iter().filter_map(|(name, target)| Some((name, target?))).collect();
        let contracts = promises.into_iter().filter_map(|(name, promise)| Some((name, promise?))).collect();
        Some(Self {
            database: database.ok()?,
            dispatcher: dispatcher.ok()?,
            log: log.ok()?,
            targets,
            operations,
            limits,
            contracts,
        })
    }
}

/// The tree of a text. Where the syntax is broken nothing else is said: what follows from a misread line is noise. A
/// key that stands twice breaks nothing around it.
fn tree<'t>(problems: &Problems, origin: &Origin, text: &'t str) -> Option<DeTable<'t>> {
    const TWICE: &str = "duplicate key";
    let (tree, errors) = DeTable::parse_recoverable(text);
    let mut broken = false;
    for error in errors {
        let span = error.span().unwrap_or_default();
        let twice = error.message() == TWICE;
        let message = match text.get(span.clone()).filter(|_| twice) {
            Some(key) => format!("`{}` stands here a second time; write it once", key.trim_matches(['"', '\''])),
            None => format!("not valid TOML: {}", error.message()),
        };
        broken |= !twice;
        problems.report(origin.at(span.start), message);
    }
    (!broken).then(|| tree.into_inner())
}
