//! Evidence: a fact learnt under one claim. A fact about a destination is never an error.

use std::time::Duration;

use super::action::Stop;
use super::contract::{Rung, Scope};
use super::reason::Reason;

/// The kinds of fact. [`super::decide`] has an arm for each.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Evidence {
    /// The answer confirms it and the contract's checks hold.
    Accepted,
    /// A lookup found it.
    Found,
    /// Confirmed, but not what was intended, or not provably ours.
    Mismatch,
    /// Proved: no byte of the request left, or the destination said that it did not look at it (HTTP/2).
    NotSent,
    /// The destination said: not done, try later.
    Deferred,
    /// The destination refused our credentials.
    Blocked,
    /// Refused for good by contract.
    Rejected {
        /// The answer carries the contract's mark of a replayed first answer.
        replayed: bool,
    },
    /// The destination knows the key with other content.
    KeyConflict,
    /// The destination is still working on the first request.
    InFlight,
    /// No answer, once a byte may have left.
    NoAnswer,
    /// An answer that does not say whether it took effect.
    UnknownAnswer,
    /// The worker that held the row is gone.
    Lapsed,
    /// A lookup did not find it.
    Absent,
    /// A cancel by key was confirmed.
    Neutralised,
    /// A lookup or cancel settled nothing.
    Inconclusive,
    /// It must not be sent any more.
    Stopped(Stop),
    /// Its budget was spent before anything was sent.
    Spent,
    /// The step it was due for is no longer possible; nothing was done.
    RungGone,
    /// No valid request can be built from it; nothing was sent.
    Unsendable,
    /// Late testimony of success was waiting in the row.
    Proof,
}

impl Evidence {
    /// The name stored in `outbox.attempt.evidence` and written to logs.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Accepted => "accepted",
            Self::Found => "found",
            Self::Mismatch => "mismatch",
            Self::NotSent => "not_sent",
            Self::Deferred => "deferred",
            Self::Blocked => "blocked",
            Self::Rejected { replayed: false } => "rejected",
            Self::Rejected { replayed: true } => "rejected_replay",
            Self::KeyConflict => "key_conflict",
            Self::InFlight => "in_flight",
            Self::NoAnswer => "no_answer",
            Self::UnknownAnswer => "unknown_answer",
            Self::Lapsed => "lapsed",
            Self::Absent => "absent",
            Self::Neutralised => "neutralised",
            Self::Inconclusive => "inconclusive",
            Self::Stopped(_) => "stopped",
            Self::Spent => "spent",
            Self::RungGone => "rung_gone",
            Self::Unsendable => "unsendable",
            Self::Proof => "proof",
        }
    }
}

/// One piece of evidence with what came along with it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Finding {
    /// The fact.
    pub evidence: Evidence,
    /// Why, as a short code.
    pub reason: Option<Reason>,
    /// The HTTP status, where an answer came.
    pub status: Option<u16>,
    /// The destination's own reference for the effect.
    pub receipt: Option<String>,
    /// Diagnostic text from outside: bounded, one line, cleaned of secrets.
    pub detail: Option<String>,
    /// The destination asked for this wait, already measured from when the answer came.
    pub retry_after: Option<Duration>,
    /// Of whom that was asked, where the contract knows.
    pub pause: Option<Scope>,
    /// The contract's rule asks for this wait.
    pub wait: Option<Duration>,
    /// The contract's rule replaces the ladder for this answer.
    pub then: Option<Vec<Rung>>,
}

impl Finding {
    /// A bare fact.
    pub const fn new(evidence: Evidence, reason: Option<Reason>) -> Self {
        Self {
            evidence,
            reason,
            status: None,
            receipt: None,
            detail: None,
            retry_after: None,
            pause: None,
            wait: None,
            then: None,
        }
    }

    /// A fact with its reason.
    pub const fn because(evidence: Evidence, reason: Reason) -> Self {
        Self::new(evidence, Some(reason))
    }

    /// The same with diagnostic text.
    #[must_use]
    pub fn with_detail(mut self, detail: impl Into<String>) -> Self {
        self.detail = Some(detail.into());
        self
    }
}
