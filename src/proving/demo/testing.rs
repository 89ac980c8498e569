//! Small words for the unit tests.

use uuid::Uuid;

use super::book::{Attempt, Entry};
use super::fate::{Move, Received};

/// An id made from a number.
pub fn id(number: u128) -> Uuid {
    Uuid::from_u128(number)
}

/// The action of note `note`, in this state.
pub fn entry(note: u32, state: &str, attempts: Vec<Attempt>) -> Entry {
    let succeeded = state == "succeeded";
    Entry {
        action: id(note.into()),
        retry_key: format!("note-{note}"),
        state: state.to_owned(),
        reason: (state == "terminal_failure").then(|| "rejected".to_owned()),
        receipt: succeeded.then(|| format!("r-{note}")),
        attempts,
    }
}

/// A send.
pub fn attempt(number: u128, evidence: &str, verdict: &str) -> Attempt {
    Attempt {
        attempt: id(number),
        kind: "send".to_owned(),
        number: 1,
        evidence: evidence.to_owned(),
        verdict: verdict.to_owned(),
        status: None,
        finished: "10:31:02.114".to_owned(),
    }
}

/// A request of note `note` under this attempt.
pub fn received(note: u32, attempt: u128, did: Move) -> Received {
    Received { note: Some(note), action: Some(id(note.into())), attempt: Some(id(attempt)), did }
}
