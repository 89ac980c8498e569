//! `outboxd operations`: the inventory.

use clap::Args;
use serde_json::{Value, json};

use super::inventory::{self, Row, said};
use super::print::screen::Screen;
use super::{ConfigFile, Exit, print, set_up};
use crate::config::{self, Config, Secrets};
use crate::core::contract::{Contract, Effect, Rung};
use crate::core::target::{Cost, Operation};

/// Where the configuration is, and how it is shown.
#[derive(Args)]
pub struct Options {
    /// One JSON array
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    file: ConfigFile,
}

/// Prints what each operation means, costs and does when its outcome is unknown, and what its owner should know.
pub fn run(options: &Options) -> Exit {
    let config = match set_up::load(&options.file.config, Secrets::Ignore) {
        Ok(config) => config,
        Err(exit) => return exit,
    };
    let text = if options.json { as_json(&config).to_string() } else { as_table(&config, Screen::of_stdout()) };
    print::out(&(text + "\n"))
}

fn as_table(config: &Config, screen: Screen) -> String {
    if config.operations.is_empty() {
        return "no operations are configured".to_owned();
    }
    let rows: Vec<_> = config.operations.values().map(|operation| row(config, operation)).collect();
    inventory::table(
        &["operation", "effect", "key · window", "lookup", "timeout", "attempts", "budget", "on unknown"],
        &rows,
        screen,
    )
}

fn row(config: &Config, operation: &Operation) -> Row {
    let (policy, contract) = (&operation.terms.policy, &operation.terms.contract);
    let budget = match operation.cost {
        Some(Cost { max: Some(max), .. }) => format!("{max:.2}"),
        Some(Cost { attempt, max: None }) => format!("{attempt:.2} each"),
        None => "–".to_owned(),
    };
    let mut beneath = vec![
        ("  ", format!("{} (owner: {})", operation.meaning, operation.owner)),
        (
            "  ",
            format!(
                "to {} under {}, confirmed by {}",
                operation.target,
                contract.name,
                confirmation(contract).join(" or ")
            ),
        ),
    ];
    beneath.extend(warnings(config, operation).map(|sentence| ("  ⚠ ", sentence)));
    Row {
        cells: vec![
            operation.name.clone(),
            effect(policy.effect).to_owned(),
            inventory::key(contract),
            inventory::asked(contract),
            said(policy.timeout),
            format!("{} / {}", policy.attempts_max, said(policy.elapsed_max)),
            budget,
            inventory::ladder(&config::ladder(operation)),
        ],
        beneath,
    }
}

fn as_json(config: &Config) -> Value {
    let one = |operation: &Operation| {
        let (policy, contract) = (&operation.terms.policy, &operation.terms.contract);
        let rungs: Vec<_> = config::ladder(operation).into_iter().map(Rung::as_str).collect();
        json!({
            "operation": operation.name,
            "meaning": operation.meaning,
            "owner": operation.owner,
            "effect": effect(policy.effect),
            "destination": operation.target,
            "contract": config.contracts.get(&contract.name).map(inventory::as_json),
            "confirmation": confirmation(contract),
            "timeout_ms": policy.timeout.as_millis() as u64,
            "attempts_max": policy.attempts_max,
            "attempts_affordable": policy.affordable,
            "elapsed_max_ms": policy.elapsed_max.as_millis() as u64,
            "review_after_ms": policy.review_after.as_millis() as u64,
            "cost_attempt": operation.cost.map(|cost| cost.attempt),
            "cost_max": operation.cost.and_then(|cost| cost.max),
            "on_unknown": rungs,
            "warnings": warnings(config, operation).collect::<Vec<_>>(),
        })
    };
    Value::Array(config.operations.values().map(one).collect())
}

fn warnings<'c>(config: &Config, operation: &'c Operation) -> impl Iterator<Item = String> + use<'c> {
    let all = config.warnings().into_iter();
    all.filter(|warning| warning.operation == operation.name).map(|warning| warning.sentence)
}

/// What says that it took effect (R20).
fn confirmation(contract: &Contract) -> Vec<&'static str> {
    let answer = match contract.compare.is_empty() {
        true => "its answer",
        false => "its answer, compared with what was sent",
    };
    let lookup = contract.lookup.as_ref().map(|_| "a lookup");
    std::iter::once(answer).chain(lookup).collect()
}

fn effect(effect: Effect) -> &'static str {
    Effect::ALL.iter().find(|(known, _)| *known == effect).map_or("", |(_, name)| name)
}
