//! `outboxd show`: the whole story of one action. Everything below [`View`] is a function from facts to text.

mod choices;
mod evidence;
mod facts;
mod history;
mod json;
mod known;
mod page;
#[cfg(test)]
mod tests;

use std::path::Path;

use base64::Engine as _;
use clap::Args;
use serde_json::Value;
use uuid::Uuid;

use super::print::paint::Paint;
use super::print::{self, text};
use super::{ConfigFile, Exit, set_up};
use crate::core::action::ActionId;
use crate::core::target::Operation;
use crate::ledger::{Story, Told};

/// Which action, and how it is shown.
#[derive(Args)]
pub struct Options {
    /// The action's id, whole
    #[arg(value_name = "ACTION")]
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
    /// What commands must be given to find the same ledger; empty where that is the default.
    pub config: String,
    /// Where a person may look, by the contract's hint.
    pub hint: Option<String>,
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
        let body = if options.body { ledger.body(id).await? } else { None };
        Ok((told, body))
    };
    let (told, body) = match set_up::patiently(told).await {
        Ok(told) => told,
        Err(error) => return set_up::failed("read the action", &error),
    };
    let paint = Paint::of_stdout();
    match told {
        Told::Nothing => {
            eprintln!("there is no action {id} in {}, and none is remembered", config.database.place());
            Exit::Failed
        }
        Told::Pruned(stone) if options.json => print::out(&(json::tombstone(&stone).to_string() + "\n")),
        Told::Pruned(_) if options.body => {
            eprintln!("action {id} was pruned: its body is gone");
            Exit::Failed
        }
        Told::Pruned(stone) => {
            let identity = config.limits.get(&stone.operation).map(|limits| limits.keep.identity);
            print::out(&page::grave(&stone, identity, paint))
        }
        Told::Whole(story) => {
            let operation = config.operations.get(&story.committed.operation);
            let view = View { story: &story, operation, config: given(&options.file.config), hint: None };
            if options.json {
                let mut value = json::story(&view);
                if options.body {
                    add_body(&mut value, body.as_deref());
                }
                print::out(&format!("{value}\n"))
            } else if options.body {
                print::out(&(text::body(&body.unwrap_or_default()) + "\n"))
            } else {
                print::out(&page::page(&view, paint))
            }
        }
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
fn add_body(value: &mut Value, body: Option<&[u8]>) {
    let (key, body) = match body.map(std::str::from_utf8) {
        None => ("body", Value::Null),
        Some(Ok(text)) => ("body", Value::from(text)),
        Some(Err(_)) => {
            let encoded = base64::engine::general_purpose::STANDARD.encode(body.unwrap_or_default());
            ("body_base64", Value::from(encoded))
        }
    };
    if let Some(object) = value.as_object_mut() {
        object.insert(key.to_owned(), body);
    }
}
