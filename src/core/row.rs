//! A row as a claim hands it over.

use super::action::{AttemptId, Step, Stop};
use super::terms::Pins;
use super::time::Timestamp;

/// What the ledger knew when the claim took the row.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Row {
    /// This claim.
    pub attempt: AttemptId,
    /// The database's time of the claim; a lookup is dated by it.
    pub claimed_at: Timestamp,
    /// What this claim is to do.
    pub step: Step,
    /// Sends that counted so far.
    pub attempts: u32,
    /// How often it has been claimed, this claim included: paces what no attempt counts.
    pub claims: u32,
    /// When it was committed: nothing was sent before.
    pub committed_at: Timestamp,
    /// Where the elapsed budget starts.
    pub budget_from: Timestamp,
    /// No send left before it. As it was before this claim.
    pub first_sent_at: Option<Timestamp>,
    /// No send can leave after it. As it was before this claim.
    pub last_sent_at: Option<Timestamp>,
    /// An earlier attempt may have taken effect.
    pub doubt: Option<Doubt>,
    /// Late testimony of success that waits for whoever settles; its receipt, empty where it had none.
    pub proof: Option<String>,
    /// A cancel by key has been sent, ever: the key is spent.
    pub cancel_sent: bool,
    /// An operator's `send_again` that this claim uses up.
    pub overridden: bool,
    /// What the send was pinned to.
    pub sent_under: SentUnder,
    /// Why it must not be sent any more.
    pub stop: Option<Stop>,
}

/// An attempt may have taken effect and nothing has settled that yet.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Doubt {
    /// Since when.
    pub since: Timestamp,
    /// The one doubtful attempt; `None` = several.
    pub attempt: Option<AttemptId>,
}

/// The pins of what has been sent.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum SentUnder {
    /// Nothing has been sent.
    Nothing,
    /// All of it under these.
    These(Pins),
    /// Under more than one; equal to none.
    Mixed,
}

impl SentUnder {
    /// As `outbox.delivery.sent_digest` has it; equal to no pins where it is empty.
    pub fn from_digest(digest: Option<&[u8]>) -> Self {
        match digest {
            None => Self::Nothing,
            Some(digest) => <[u8; 16]>::try_from(digest).map_or(Self::Mixed, |digest| Self::These(Pins(digest))),
        }
    }

    /// The inverse of [`SentUnder::from_digest`].
    pub fn digest(&self) -> Option<&[u8]> {
        match self {
            Self::Nothing => None,
            Self::These(Pins(digest)) => Some(digest),
            Self::Mixed => Some(&[]),
        }
    }

    /// Whether everything that was sent, was sent under `pins`.
    pub fn is(self, pins: Pins) -> bool {
        match self {
            Self::Nothing | Self::Mixed => false,
            Self::These(sent) => sent == pins,
        }
    }
}
