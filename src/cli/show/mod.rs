//! `outboxd show`: the whole story of one action. Everything below [`View`] is a function from facts to text.

mod choices;
mod doubt;
mod evidence;
mod facts;
mod history;
mod json;
mod known;
mod page;
mod queue;
mod ruled_out;
#[cfg(test)]
mod tests;

use std::path::Path;

use base64::Engine as _;
use clap::Args;
use serde_json::Value;
use uuid::Uuid;

use super::print::screen::Screen;
use super::print::words::day;
use super::print::{self, text};
use super::standing::obstacle;
use super::{ConfigFile, Exit, action_id, set_up};
use crate::config::{Config, Promise};
use crate::core::action::{ActionId, Intent};
use crate::core::target::Operation;
use crate::destination::Destination;
use crate::ledger::{DaemonSeen, Story, Told, Tombstone};

/// Which action, and how it is shown.
#[derive(Args)]
pub struct Options {
    /// The action's id, whole
    #[arg(value_name = "ACTION", value_parser = action_id::parse)]
    action: Uuid,
    /// Print the body that is sent, and nothing else; what is not text is escaped
    #[arg(long)]
    body: bool,
    /// One JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    file: ConfigFile,
}

/// A story and what this configuration says of its operation.
pub struct View<'a> {
    /// What the ledger knows.
    pub story: &'a Story,
    /// The operation; `None` where the configuration does not have it.
    pub operation: Option<&'a Operation>,
    /// What its contract notes at each of its rules; may be shorter than they are.
    pub notes: &'a [Option<String>],
    /// What commands must be given to find the same ledger; empty where that is the default.
    pub config: String,
    /// Where a person may look, by the contract's hint; or why that cannot be said.
    pub hint: Option<Result<String, String>>,
    /// Why nothing is sent to its destination now, as a sentence.
    pub obstacle: Option<String>,
}

/// Tells it.
pub async fn run(options: Options) -> Exit {
    let (config, ledger) = match set_up::open(&options.file.config).await {
        Ok(open) => open,
        Err(exit) => return exit,
    };
    let id = ActionId(options.action);
    let told = async {
        let told = ledger.story(id).await?;
        let intent = match &told {
            Told::Whole(story) if options.body || needs_hint(story, &config) => ledger.intent(id).await?,
            Told::Whole(_) | Told::Pruned(_) | Told::Nothing => None,
        };
        Ok((told, intent, ledger.daemons().await?))
    };
    let (told, intent, daemons) = match set_up::patiently(told).await {
        Ok(told) => told,
        Err(error) => return set_up::failed("read the action", &error),
    };
    match told {
        Told::Nothing => {
            eprintln!("there is no action {id} in {}, and none is remembered", config.database.place());
            Exit::Failed
        }
        Told::Pruned(stone) => pruned(&options, &config, &stone),
        Told::Whole(story) => whole(&options, &config, &story, intent.as_ref(), &daemons),
    }
}

fn pruned(options: &Options, config: &Config, stone: &Tombstone) -> Exit {
    if options.json {
        print::out(&(json::tombstone(stone).to_string() + "\n"))
    } else if options.body {
        eprintln!("action {} was pruned: its body is gone", stone.id);
        Exit::Failed
    } else {
        let identity = config.limits.get(&stone.operation).map(|limits| limits.keep.identity);
        print::out(&page::grave(stone, identity, Screen::of_stdout()))
    }
}

fn whole(options: &Options, config: &Config, story: &Story, intent: Option<&Intent>, daemons: &[DaemonSeen]) -> Exit {
    let operation = config.operations.get(&story.committed.operation);
    let hint = operation.zip(intent).and_then(|(operation, intent)| hint(config, operation, intent, story));
    let promise = operation.and_then(|operation| config.contracts.get(&operation.terms.contract.name));
    let notes = promise.map_or(&[][..], Promise::rule_notes);
    let obstacle = operation.and_then(|operation| obstacle(config, daemons, &operation.target, story.now));
    let view = View { story, operation, notes, config: given(&options.file.config), hint, obstacle };
    let body = intent.map_or(&[][..], |intent| &intent.body);
    if options.json {
        let mut value = json::story(&view);
        if options.body {
            add_body(&mut value, body);
        }
        print::out(&format!("{value}\n"))
    } else if options.body {
        print::out(&(text::body(body) + "\n"))
    } else {
        print::out(&page::page(&view, Screen::of_stdout()))
    }
}

/// Whether a person is to be told where to look: the contract says where, something is to be decided, and this role may
/// read what a question is made from.
fn needs_hint(story: &Story, config: &Config) -> bool {
    let operation = config.operations.get(&story.committed.operation);
    let undecided = !story.standing.state.is_closed() || story.standing.took_effect.is_none();
    undecided
        && story.committed.content.is_some()
        && operation.is_some_and(|operation| operation.terms.contract.hint.is_some())
}

/// The contract's hint about this action, or why there is none to be had. Nothing is asked.
fn hint(config: &Config, operation: &Operation, intent: &Intent, story: &Story) -> Option<Result<String, String>> {
    operation.terms.contract.hint.as_ref()?;
    let target = config.targets.get(&operation.target)?;
    let sent_on = story.standing.last_sent_at.map(day);
    match Destination::new(target.clone()) {
        Ok(destination) => destination.hint(operation, intent, sent_on.as_deref()),
        Err(error) => Some(Err(error.to_string())),
    }
}

/// `--config FILE`, where it is not the default.
pub(super) fn given(path: &Path) -> String {
    match path.to_str() {
        Some(super::DEFAULT_CONFIG) => String::new(),
        Some(path) => format!("--config {}", text::shell(path)),
        None => "--config FILE".to_owned(),
    }
}

/// Bytes that are no text travel as base64.
fn add_body(value: &mut Value, body: &[u8]) {
    let (key, body) = match std::str::from_utf8(body) {
        Ok(text) => ("body", text.to_owned()),
        Err(_) => ("body_base64", base64::engine::general_purpose::STANDARD.encode(body)),
    };
    if let Some(object) = value.as_object_mut() {
        object.insert(key.to_owned(), Value::from(body));
    }
}
