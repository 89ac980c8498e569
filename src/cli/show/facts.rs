//! What follows from a history: how often it was sent, what the last answer was, since when it was unknown.

use std::collections::HashMap;

use uuid::Uuid;

use crate::core::action::{State, Step};
use crate::core::time::Timestamp;
use crate::ledger::{Entry, EntryKind, Story};

/// Whether a request left.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Left {
    /// It is proved that no byte did.
    No,
    /// Nobody knows: the worker was lost while it may have been sending.
    Perhaps,
    /// At least a byte may have.
    Yes,
}

/// Whether the request of this entry left; `None` = the entry is about something else.
pub fn left(entry: &Entry) -> Option<Left> {
    match entry.kind {
        EntryKind::Lookup | EntryKind::Cancel | EntryKind::Decision => None,
        EntryKind::Send | EntryKind::Late => Some(match entry.evidence.as_str() {
            "not_sent" | "unsendable" => Left::No,
            "lapsed" => Left::Perhaps,
            _ => Left::Yes,
        }),
    }
}

/// The sends of an action. What a late testimony says of an attempt counts more than that its worker was lost.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Sends {
    /// How many left.
    pub certain: usize,
    /// How many may have left.
    pub perhaps: usize,
    /// How many tries reached nobody.
    pub unsent: usize,
    /// When the first of those that (perhaps) left began.
    pub first: Option<Timestamp>,
    /// When the last one began.
    pub last: Option<Timestamp>,
}

/// Counts them.
pub fn sends(story: &Story) -> Sends {
    let mut of_attempt: HashMap<Uuid, Left> = HashMap::new();
    for entry in &story.history {
        if let Some(left) = left(entry) {
            let known = of_attempt.entry(entry.attempt).or_insert(left);
            if entry.kind == EntryKind::Late {
                *known = left;
            }
        }
    }
    let count = |left| of_attempt.values().filter(|known| **known == left).count();
    let mut began: Vec<Timestamp> = story
        .history
        .iter()
        .filter(|entry| of_attempt.get(&entry.attempt).is_some_and(|left| *left != Left::No))
        .filter(|entry| left(entry).is_some())
        .map(|entry| entry.started_at.unwrap_or(entry.finished_at))
        .collect();
    began.sort_unstable();
    Sends {
        certain: count(Left::Yes),
        perhaps: count(Left::Perhaps),
        unsent: count(Left::No),
        first: began.first().copied(),
        last: began.last().copied(),
    }
}

/// Whether a worker is sending it now, as far as the ledger knows.
pub fn is_being_sent(story: &Story) -> bool {
    story.standing.state == State::Dispatching && story.standing.step == Step::Send
}

/// The last thing that was learnt under a send or late testimony.
pub fn last_send(story: &Story) -> Option<&Entry> {
    story.history.iter().rev().find(|entry| left(entry).is_some())
}

/// What was learnt of the sends that are in doubt, the latest first.
pub fn answered_in_doubt(story: &Story) -> impl Iterator<Item = &Entry> {
    let sends = story.history[doubt_begins(story)..].iter().rev();
    sends.filter(|entry| left(entry) == Some(Left::Yes))
}

/// Where what has been unknown since then begins in the history: a doubt that was cleared ends what came before it.
fn doubt_begins(story: &Story) -> usize {
    let clears = |entry: &Entry| matches!(entry.verdict.as_str(), "pending" | "retryable_failure");
    story.history.iter().rposition(clears).map_or(0, |at| at + 1)
}

/// The last answer to a lookup or a cancel that came after the last send.
pub fn last_asked(story: &Story) -> Option<&Entry> {
    story.history.iter().rev().take_while(|entry| left(entry).is_none()).find(|entry| match entry.kind {
        EntryKind::Lookup | EntryKind::Cancel => true,
        EntryKind::Send | EntryKind::Late | EntryKind::Decision => false,
    })
}

/// The decision that made it what it is; `None` where something was learnt since. That its queue goes on changes
/// nothing about the action.
pub fn last_decision(story: &Story) -> Option<&Entry> {
    let last = story.history.iter().rev().find(|entry| entry.evidence != "release");
    last.filter(|entry| entry.kind == EntryKind::Decision)
}

/// The testimony that contradicts how the action was closed, whatever was decided about it since.
pub fn contradiction(story: &Story) -> Option<&Entry> {
    let contradicts = |entry: &&Entry| entry.kind == EntryKind::Late && entry.verdict == "contradicts";
    story.history.iter().rev().find(contradicts)
}

/// Since when it was unknown before it was closed; `None` where it is open or never was unknown.
pub fn was_unknown_since(story: &Story) -> Option<Timestamp> {
    story.standing.closed_at?;
    story.history[doubt_begins(story)..]
        .iter()
        .find(|entry| entry.verdict == "outcome_unknown")
        .map(|entry| entry.finished_at)
}
