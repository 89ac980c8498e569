//! Everything that is known about one action, as a value (R21).

mod read;

use std::time::Duration;

use uuid::Uuid;

use crate::core::action::{ActionId, AttemptId, State, Step, Stop};
use crate::core::row::{Doubt, Row, SentUnder};
use crate::core::time::Timestamp;

/// The most entries of a history that are read: the latest.
pub const HISTORY_MAX: usize = 1000;

/// What the ledger knows of an action.
#[derive(Clone, PartialEq, Debug)]
pub enum Told {
    /// All of it.
    Whole(Box<Story>),
    /// It was pruned: its identity and its end.
    Pruned(Tombstone),
    /// Nothing under this id.
    Nothing,
}

/// One action: what was committed, where it stands, what happened, what is linked to it. Of one moment.
#[derive(Clone, PartialEq, Debug)]
pub struct Story {
    /// The database's time when it was read; every age counts to it.
    pub now: Timestamp,
    /// What was committed.
    pub committed: Committed,
    /// Where it stands.
    pub standing: Position,
    /// Who asked to cancel it.
    pub cancellation: Option<Note>,
    /// Revocations that speak of it, oldest first.
    pub revocations: Vec<Revocation>,
    /// Oldest first; of a longer history the latest [`HISTORY_MAX`].
    pub history: Vec<Entry>,
    /// What it compensates.
    pub compensates: Option<Linked>,
    /// What compensates it.
    pub compensated_by: Vec<Linked>,
    /// Its place in a serial queue; `None` where it is in none, or has left it.
    pub queue: Option<InQueue>,
    /// The operation as a daemon has last written it down; `None` where none has.
    pub inventory: Option<Inventory>,
}

/// What was committed. Names of columns of `outbox.action`; the body stays where it is.
#[derive(Clone, PartialEq, Debug)]
#[allow(missing_docs, reason = "the columns of outbox.action")]
pub struct Committed {
    pub id: ActionId,
    pub tenant: String,
    pub principal: String,
    pub operation: String,
    pub retry_key: String,
    pub event_id: Option<String>,
    pub proposal_id: Option<String>,
    pub workflow_id: Option<String>,
    pub traceparent: Option<String>,
    pub content_type: Option<String>,
    /// `None` where this role may not read it.
    pub content: Option<Content>,
    pub ordering_key: Option<String>,
    pub not_before: Option<Timestamp>,
    pub expires_at: Option<Timestamp>,
    pub authority: Option<String>,
    pub created_at: Timestamp,
}

/// What is in an action, but for what may be secret or heavy.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Content {
    /// A JSON object.
    pub params: Option<String>,
    /// Without their values: those may be secrets.
    pub header_names: Vec<String>,
    /// `None` where there is no body.
    pub body: Option<Weight>,
}

/// A body, without the body.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Weight {
    /// Its length.
    pub bytes: u64,
    /// In hexadecimal digits.
    pub sha256: String,
}

/// Where an action stands. Names of columns of `outbox.delivery` and `outbox.status`.
#[derive(Clone, PartialEq, Debug)]
#[allow(missing_docs, reason = "the columns of outbox.delivery")]
pub struct Position {
    pub state: State,
    pub step: Step,
    pub label: String,
    pub sentence: String,
    /// `None` = not known: it is open, or was closed as not done and then confirmed, and nobody has decided.
    pub took_effect: Option<bool>,
    pub due_at: Option<Timestamp>,
    pub fence: i64,
    pub attempt: Option<Uuid>,
    pub attempts: u32,
    pub worker: Option<String>,
    pub budget_from: Timestamp,
    pub first_sent_at: Option<Timestamp>,
    pub last_sent_at: Option<Timestamp>,
    pub doubt: Option<Doubt>,
    pub proof: Option<String>,
    pub cancel_sent_at: Option<Timestamp>,
    pub overridden: bool,
    pub sent_under: SentUnder,
    pub reason: Option<String>,
    pub receipt: Option<String>,
    pub closed_at: Option<Timestamp>,
}

/// Where an action stands in its serial queue.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct InQueue {
    /// It is the one that has the turn.
    pub has_turn: bool,
    /// It is closed as not delivered, and holds the queue until it is tried again or released.
    pub holds: bool,
    /// Who has the turn; `None` = it is being given.
    pub head: Option<Head>,
    /// How many wait before it, counted up to [`crate::ledger::WAITING_MAX`]; 0 where it has the turn.
    pub before: i64,
    /// How many wait behind it, counted up to the same.
    pub behind: i64,
}

/// The action that has the turn of a serial queue.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Head {
    /// Which.
    pub id: ActionId,
    /// Its label in `outbox.status`.
    pub label: String,
    /// Why it stands there.
    pub reason: Option<String>,
}

/// Who did what, and why.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Note {
    /// When.
    pub at: Timestamp,
    /// Who.
    pub by: String,
    /// Why.
    pub reason: String,
}

/// A revocation that matches the action.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Revocation {
    /// Its number.
    pub number: i64,
    /// When, by whom and why.
    pub made: Note,
    /// The same of its end; `None` = it is in force.
    pub lifted: Option<Note>,
}

/// One entry of the history. Evidence and verdict as they are stored: another version may have written them.
#[derive(Clone, PartialEq, Debug)]
#[allow(missing_docs, reason = "the columns of outbox.attempt")]
pub struct Entry {
    pub attempt: Uuid,
    pub number: u32,
    pub kind: EntryKind,
    pub fence: i64,
    pub worker: Option<String>,
    pub idempotency_key: Option<String>,
    pub started_at: Option<Timestamp>,
    pub deadline_at: Option<Timestamp>,
    pub finished_at: Timestamp,
    pub evidence: String,
    pub verdict: String,
    pub status: Option<u16>,
    pub receipt: Option<String>,
    pub detail: Option<String>,
    pub decided_by: Option<String>,
}

/// What an entry of the history is about.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[allow(missing_docs, reason = "the names in outbox.attempt.kind")]
pub enum EntryKind {
    Send,
    Lookup,
    Cancel,
    Late,
    Decision,
}

impl EntryKind {
    /// Every kind, with its name in `outbox.attempt.kind`.
    pub const ALL: [(Self, &'static str); 5] = [
        (Self::Send, "send"),
        (Self::Lookup, "lookup"),
        (Self::Cancel, "cancel"),
        (Self::Late, "late"),
        (Self::Decision, "decision"),
    ];

    /// The public name.
    pub fn as_str(self) -> &'static str {
        Self::ALL.iter().find(|(kind, _)| *kind == self).map_or("", |(_, name)| name)
    }
}

/// Another action that this one compensates or is compensated by.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Linked {
    /// Which.
    pub id: ActionId,
    /// `None` where nothing is remembered of it.
    pub operation: Option<String>,
    /// Where it stands; `None` where nothing is remembered of it.
    pub label: Option<String>,
    /// The destination's reference.
    pub receipt: Option<String>,
    /// `None` = not known (yet).
    pub took_effect: Option<bool>,
}

/// An operation as a daemon has last written it down.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[allow(missing_docs, reason = "the columns of outbox.operation")]
pub struct Inventory {
    pub destination: Option<String>,
    pub contract: Option<String>,
    pub owner: Option<String>,
    /// How long after the last send an absence proves something; `None` = never.
    pub absence: Option<Duration>,
}

/// What is left of a pruned action.
#[derive(Clone, PartialEq, Eq, Debug)]
#[allow(missing_docs, reason = "the columns of outbox.tombstone")]
pub struct Tombstone {
    pub now: Timestamp,
    pub id: ActionId,
    pub tenant: String,
    pub principal: String,
    pub operation: String,
    pub retry_key: String,
    pub state: String,
    pub receipt: Option<String>,
    pub created_at: Timestamp,
    pub closed_at: Timestamp,
}

impl Story {
    /// The row as a claim of this moment would find it, for asking the rules about it.
    pub fn as_row(&self) -> Row {
        let standing = &self.standing;
        Row {
            attempt: AttemptId(standing.attempt.unwrap_or_default()),
            claimed_at: self.now,
            step: standing.step,
            attempts: standing.attempts,
            claims: u32::try_from(standing.fence).unwrap_or(u32::MAX),
            committed_at: self.committed.created_at,
            budget_from: standing.budget_from,
            first_sent_at: standing.first_sent_at,
            last_sent_at: standing.last_sent_at,
            doubt: standing.doubt,
            proof: standing.proof.clone(),
            cancel_sent: standing.cancel_sent_at.is_some(),
            overridden: standing.overridden,
            sent_under: standing.sent_under,
            stop: self.stop(),
        }
    }

    /// Why it must not be sent any more, in the order of `sql/claim.sql`.
    pub fn stop(&self) -> Option<Stop> {
        let seen = |code: &str| self.standing.reason.as_deref() == Some(code);
        if self.cancellation.is_some() {
            Some(Stop::Cancelled)
        } else if self.committed.expires_at.is_some_and(|end| end <= self.now) {
            Some(Stop::Deadline)
        } else if self.revocations.iter().any(|revocation| revocation.lifted.is_none()) {
            Some(Stop::AuthorityRevoked)
        } else if seen("cancelled") {
            Some(Stop::Cancelled)
        } else if seen("deadline") {
            Some(Stop::Deadline)
        } else if seen("authority_revoked") {
            Some(Stop::AuthorityRevoked)
        } else {
            None
        }
    }
}
