//! What must not be, and what is said where it is.

use serde::Serialize;
use uuid::Uuid;

use super::records::{Entry, World};
use super::story;

/// What is broken.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Promise {
    /// An effect more than the contract allows for.
    Duplicate,
    /// The ledger says succeeded or not delivered, and the destination disagrees.
    FalseState,
    /// Committed, and neither closed, held nor due; or it has not come to rest.
    Lost,
    /// Another key or other content in a later attempt.
    KeyChanged,
    /// Asked for in a transaction that was rolled back.
    NotCommitted,
    /// Sent without a record of the attempt.
    Unrecorded,
    /// Sent twice under one claim.
    SentTwice,
    /// Sent after it was stopped, or done although its cancellation was certain.
    SentAfterStop,
    /// An order and its action do not belong together one to one.
    Identity,
    /// A compensation without what it compensates, or the other way round.
    Compensation,
    /// Two of a serial queue at once, or in another order than they were committed.
    QueueOrder,
    /// A rate or a bound was not kept.
    Pace,
    /// A person has decided, and it is not as they said.
    Decision,
    /// A worker ended by itself, or did not drain.
    Worker,
}

impl Promise {
    /// Every promise.
    pub const ALL: [Self; 14] = [
        Self::Duplicate,
        Self::FalseState,
        Self::Lost,
        Self::KeyChanged,
        Self::NotCommitted,
        Self::Unrecorded,
        Self::SentTwice,
        Self::SentAfterStop,
        Self::Identity,
        Self::Compensation,
        Self::QueueOrder,
        Self::Pace,
        Self::Decision,
        Self::Worker,
    ];

    /// What must not be, for people.
    pub const fn told(self) -> &'static str {
        match self {
            Self::Duplicate => "a second effect where the contract promises none",
            Self::FalseState => "the ledger says one thing, the destination another",
            Self::Lost => "an action that is neither closed, held nor due",
            Self::KeyChanged => "another key or other content in a repeat",
            Self::NotCommitted => "something of a transaction that was rolled back",
            Self::Unrecorded => "a request without a record of its attempt",
            Self::SentTwice => "two requests under one claim",
            Self::SentAfterStop => "a send after cancellation, deadline or revocation",
            Self::Identity => "an order with another action, or none",
            Self::Compensation => "a compensation without its original, or the reverse",
            Self::QueueOrder => "an order sent before those of its queue had ended",
            Self::Pace => "more requests than a rate or a tenant's bound allows",
            Self::Decision => "an operator's decision that is not kept",
            Self::Worker => "a worker that ended by itself",
        }
    }
}

/// Something that is not as promised.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Violation {
    /// Which promise.
    pub promise: Promise,
    /// What.
    pub what: String,
    /// With which action; `None` where none belongs to it.
    pub action: Option<Uuid>,
    /// What happened, from all sides, oldest first.
    pub story: Vec<String>,
}

impl Violation {
    /// With the story of an action.
    pub fn of(world: &World, entry: &Entry, promise: Promise, what: impl Into<String>) -> Self {
        let story = story::of(world, entry.action).iter().map(story::line).collect();
        Self { promise, what: what.into(), action: Some(entry.action), story }
    }
}
