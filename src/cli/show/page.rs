//! The page that a tired operator reads, from top to bottom.

use std::fmt::Write as _;
use std::time::Duration;

use super::choices::{self, Verdict};
use super::{View, history, known, queue};
use crate::cli::print::screen::Screen;
use crate::cli::print::text::{detail, name};
use crate::cli::print::words::{age, clock, grouped};
use crate::destination::one_line;
use crate::ledger::{Content, Linked, Story, Tombstone};

/// The most bytes of a hint: it is pasted, so it is not wrapped.
const HINT_MAX_BYTES: usize = 4000;

/// The whole story of an action.
pub fn page(view: &View<'_>, screen: Screen) -> String {
    let mut out = head(view, screen);
    section(&mut out, screen, "What is known");
    for line in known::known(view) {
        let _ = writeln!(out, "{}", screen.wrapped(&line, 2));
    }
    section(&mut out, screen, "History (UTC)");
    out.push_str(&history::show(view.story));
    links(&mut out, view.story, screen);
    decisions(&mut out, view, screen);
    match &view.story.committed.content {
        Some(Content { body: Some(body), .. }) => {
            let _ = writeln!(out, "\nBody {} bytes, sha256 {}; show it with --body", grouped(body.bytes), body.sha256);
        }
        Some(Content { body: None, .. }) => {}
        None => {
            out.push_str("\nThis role may not read what is in it (params, headers, body); the schema's owner may.\n")
        }
    }
    out
}

fn section(out: &mut String, screen: Screen, title: &str) {
    let _ = writeln!(out, "\n{}", screen.bold(title));
}

fn head(view: &View<'_>, screen: Screen) -> String {
    let c = &view.story.committed;
    let from_inventory = || view.story.inventory.as_ref().and_then(|inventory| inventory.destination.as_deref());
    let destination = view.operation.map(|operation| operation.target.as_str()).or_else(from_inventory);
    let what = match destination {
        Some(destination) => format!("{} → {}", name(&c.operation), name(destination)),
        None => name(&c.operation),
    };
    let label = label(view.story);
    let is_calm = matches!(view.story.standing.label.as_str(), "succeeded" | "pending" | "dispatching");
    let gap = screen.readable().saturating_sub(what.chars().count() + label.chars().count()).max(4);
    let painted = if is_calm { label.to_owned() } else { screen.warn(label) };
    let mut out = format!("{}{:gap$}{painted}\n", screen.bold(&what), "");
    let whose = match (c.tenant.as_str(), c.principal.as_str()) {
        ("", "") => String::new(),
        (tenant, "") => format!("{}    ", name(tenant)),
        ("", principal) => format!("by {}    ", name(principal)),
        (tenant, principal) => format!("{} / {}    ", name(tenant), name(principal)),
    };
    let _ = writeln!(out, "{whose}retry key {}    action {}", name(&c.retry_key), c.id);
    if let Some(key) = view.story.history.iter().rev().find_map(|entry| entry.idempotency_key.as_deref()) {
        let _ = writeln!(out, "key at the destination {}", name(key));
    }
    if let Some(content) = &c.content {
        if let Some(params) = content.params.as_deref().filter(|params| *params != "{}") {
            let _ = writeln!(out, "params {}", detail(params));
        }
        if !content.header_names.is_empty() {
            let names: Vec<String> = content.header_names.iter().map(|header| name(header)).collect();
            let _ = writeln!(out, "headers {} (values are not shown)", names.join(", "));
        }
    }
    out
}

/// The label in words.
fn label(story: &Story) -> &'static str {
    let in_doubt = story.standing.doubt.is_some();
    match story.standing.label.as_str() {
        "pending" if story.queue.as_ref().is_some_and(|queue| !queue.has_turn) => "committed, waiting for its turn",
        "pending" if story.stop().is_some() => "stopped, nothing will be sent",
        "pending" => "committed, delivery pending",
        "dispatching" if in_doubt => "outcome unknown, a worker has it",
        "dispatching" => "a worker has it",
        "succeeded" => "succeeded",
        "retryable_failure" => "not done yet, to be tried again",
        "terminal_failure" if story.standing.took_effect.is_none() => "closed as not done, CONTRADICTED",
        "terminal_failure" if story.standing.took_effect == Some(true) => "closed as not done, but it happened",
        "terminal_failure" if queue::holds(story) => "did not happen, holds its queue",
        "terminal_failure" => "did not happen, closed",
        "awaiting_resend" => "outcome unknown, to be sent again",
        "awaiting_reconciliation" => "outcome unknown, being reconciled",
        "awaiting_review" => "outcome unknown, needs review",
        _ => "in a state that this version does not know",
    }
}

fn links(out: &mut String, story: &Story, screen: Screen) {
    if story.compensates.is_none() && story.compensated_by.is_empty() {
        return;
    }
    section(out, screen, "Links");
    let mut line = |what: &str, linked: &Linked| {
        let operation = linked.operation.as_deref().map_or("forgotten".to_owned(), name);
        let label = linked.label.as_deref().map(|label| format!(", {}", name(&label.replace('_', " "))));
        let receipt = linked.receipt.as_deref().map(|receipt| format!(", receipt {}", name(receipt)));
        let (label, receipt) = (label.unwrap_or_default(), receipt.unwrap_or_default());
        let _ = writeln!(out, "  {what:14}  {}  {operation}{label}{receipt}", linked.id);
    };
    if let Some(original) = &story.compensates {
        line("compensates", original);
    }
    for compensation in &story.compensated_by {
        line("compensated by", compensation);
    }
}

fn decisions(out: &mut String, view: &View<'_>, screen: Screen) {
    let choices = choices::choices(view);
    if choices.is_empty() {
        return;
    }
    section(out, screen, choices::heading(view.story));
    match &view.hint {
        Some(Ok(hint)) => {
            let _ = writeln!(out, "  Look at: {}", one_line(hint.as_bytes(), HINT_MAX_BYTES));
        }
        Some(Err(why)) => {
            let why = format!("Where to look, by the contract's hint, cannot be said: {}.", detail(why));
            let _ = writeln!(out, "{}", screen.wrapped(&why, 2));
        }
        None => {}
    }
    for choice in choices {
        let _ = match &choice.verdict {
            Verdict::Possible(risk) => {
                writeln!(out, "  {}\n    {}\n{}", choice.says, screen.bold(&choice.command), screen.wrapped(risk, 4))
            }
            Verdict::Refused(why) => {
                writeln!(out, "{}", screen.wrapped(&format!("{} Not possible: {why}", choice.says), 2))
            }
        };
    }
}

/// What is left of a pruned action. `identity` = how long the configuration keeps such a memory.
pub fn grave(stone: &Tombstone, identity: Option<Duration>, screen: Screen) -> String {
    let label = format!("{}, pruned", stone.state.replace('_', " "));
    let mut out = format!("{}    {}\n", screen.bold(&name(&stone.operation)), name(&label));
    let whose = match (stone.tenant.as_str(), stone.principal.as_str()) {
        ("", "") => String::new(),
        (tenant, "") => format!("{}    ", name(tenant)),
        ("", principal) => format!("by {}    ", name(principal)),
        (tenant, principal) => format!("{} / {}    ", name(tenant), name(principal)),
    };
    let _ = writeln!(out, "{whose}retry key {}    action {}", name(&stone.retry_key), stone.id);
    section(&mut out, screen, "What is remembered");
    let receipt = match &stone.receipt {
        Some(receipt) => format!("; receipt {}", name(receipt)),
        None => String::new(),
    };
    let ends = match stone.state.as_str() {
        "succeeded" => "it took effect",
        "terminal_failure" => "it did not take effect",
        _ => "its end is in a word that this version does not know",
    };
    let lived = format!(
        "Committed {} UTC and closed {} UTC, {} ago: {ends}{receipt}.",
        clock(stone.created_at, stone.now),
        clock(stone.closed_at, stone.now),
        age(stone.now.since(stone.closed_at))
    );
    let _ = writeln!(out, "{}", screen.wrapped(&lived, 2));
    let until =
        identity.map(|identity| format!(" until about {} UTC", clock(stone.closed_at.plus(identity), stone.now)));
    let memory = format!(
        "Its body and history are gone. Its retry key is remembered{}: whoever enqueues it again gets this answer and \
         no new action.",
        until.unwrap_or_default()
    );
    let _ = writeln!(out, "{}", screen.wrapped(&memory, 2));
    out
}
