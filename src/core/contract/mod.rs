//! What a destination promises about one operation. A `Contract` that exists has been checked by the configuration.

mod ask;
mod key;
mod matcher;
mod pace;

use std::time::Duration;

pub use ask::{Absence, Asking, By, Cancel, Compare, Lookup, Question};
pub use key::{Encode, Key, KeyForm, KeyMode, Place, Reference, Window};
pub use matcher::{JsonIs, StatusSet, TextIs, When};
pub use pace::{Pace, PauseScope, Scope};

use super::action::Step;
use super::credentials::Scheme;

/// One rung of the ladder that is climbed while an outcome is unknown.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Rung {
    /// Send the same bytes again under the same key.
    Resend,
    /// Ask whether it took effect.
    Lookup,
    /// Cancel it by its key.
    Cancel,
    /// Hold it for a person. Always the last, written or not.
    Review,
}

impl Rung {
    /// The name in `reconcile` and `then`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Resend => "resend",
            Self::Lookup => "lookup",
            Self::Cancel => "cancel",
            Self::Review => "review",
        }
    }
}

/// The promise.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Contract {
    /// As named in the configuration.
    pub name: String,
    /// How a repeat is recognised; `None` where nothing is promised.
    pub key: Option<Key>,
    /// Where our reference is planted for a later lookup; `None` where there is none.
    pub reference: Option<Reference>,
    /// Where the answer names the effect.
    pub receipt: Receipt,
    /// An answer that confirms must echo what was sent.
    pub compare: Vec<Compare>,
    /// Where an answer says how long to wait; the first that is there. Empty = the header `Retry-After`.
    pub retry_after: Vec<WaitAt>,
    /// How often it may be asked, and of whom its `retry_after` speaks.
    pub pace: Pace,
    /// First match wins, before the defaults.
    pub rules: Vec<Rule>,
    /// What to try, in order, while an outcome is unknown.
    pub reconcile: Vec<Rung>,
    /// How to ask whether it took effect.
    pub lookup: Option<Lookup>,
    /// How to cancel it by its key.
    pub cancel: Option<Cancel>,
    /// What to show a person who must decide. Nothing is decided by it.
    pub hint: Option<Question>,
    /// How requests must be signed; `None` where the destination does not ask for it.
    pub sign: Option<Scheme>,
}

impl Contract {
    /// Nothing is promised.
    pub fn silent(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            key: None,
            reference: None,
            receipt: Receipt::default(),
            compare: vec![],
            retry_after: vec![],
            pace: Pace::default(),
            rules: vec![],
            reconcile: vec![Rung::Review],
            lookup: None,
            cancel: None,
            hint: None,
            sign: None,
        }
    }

    /// How long after the last send a word of the destination that nothing happened proves it, for lookup and cancel
    /// alike; `None` where it never does.
    pub fn absence(&self) -> Option<Duration> {
        [Step::Lookup, Step::Cancel].into_iter().filter_map(|step| self.asking(step)?.absence.after()).max()
    }

    /// The timing of a lookup or a cancel; `None` for the other steps, and where the contract has none.
    pub fn asking(&self, step: Step) -> Option<&Asking> {
        match step {
            Step::Lookup => self.lookup.as_ref().map(|lookup| &lookup.asking),
            Step::Cancel => self.cancel.as_ref().map(|cancel| &cancel.asking),
            Step::Send | Step::Conclude | Step::Review => None,
        }
    }
}

/// Where an answer says how long to wait.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WaitAt {
    /// The place.
    pub at: Source,
    /// How it is written there.
    pub format: WaitFormat,
}

/// How a wait is written.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum WaitFormat {
    /// Whole seconds or an HTTP date (RFC 9110 section 10.2.3).
    Rfc9110,
    /// Whole seconds.
    Seconds,
    /// Seconds with a fraction.
    SecondsFloat,
    /// Seconds since the Unix epoch.
    Epoch,
}

impl WaitFormat {
    /// Every format, with its name behind the `;`.
    pub const ALL: [(Self, &'static str); 4] = [
        (Self::Rfc9110, "rfc9110"),
        (Self::Seconds, "seconds"),
        (Self::SecondsFloat, "seconds-float"),
        (Self::Epoch, "epoch"),
    ];
}

/// Where an answer names the effect.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Receipt {
    /// The destination's reference for the effect, stored as the action's receipt: the first of these that is there.
    pub id: Vec<Source>,
    /// The destination's reference for the request, kept in the attempt's detail.
    pub request_id: Option<Source>,
}

/// A place in an answer.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Source {
    /// A header, name in lower case.
    Header(String),
    /// A JSON pointer (RFC 6901) into the body.
    Json(String),
}

/// What a matching answer means.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Class {
    /// It took effect.
    Applied,
    /// It had taken effect before; the repeat was recognised.
    Duplicate,
    /// Not done; try later.
    NotApplied,
    /// Refused for good.
    Rejected,
    /// Our credentials are refused.
    Blocked,
    /// The first request is still being worked on.
    InFlight,
    /// The key is known with other content.
    KeyConflict,
    /// It may or may not have taken effect.
    Unknown,
}

impl Class {
    /// Every class, with its name in `class = "…"`.
    pub const ALL: [(Self, &'static str); 8] = [
        (Self::Applied, "applied"),
        (Self::Duplicate, "duplicate"),
        (Self::NotApplied, "not_applied"),
        (Self::Rejected, "rejected"),
        (Self::Blocked, "blocked"),
        (Self::InFlight, "in_flight"),
        (Self::KeyConflict, "key_conflict"),
        (Self::Unknown, "unknown"),
    ];
}

/// One rule of a contract.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Rule {
    /// The answers it speaks of.
    pub when: When,
    /// What they mean.
    pub class: Class,
    /// Replaces the ladder for these answers.
    pub then: Option<Vec<Rung>>,
    /// The earliest next step.
    pub wait: Option<Duration>,
}

/// How much harm a repeat could do; what the operation's owner declares (R20).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Effect {
    /// Changes nothing at the destination.
    ReadOnly,
    /// Repeating it leaves the same result.
    Idempotent,
    /// The destination recognises a repeat by a key or reference.
    Keyed,
    /// A repeat can be undone by another action.
    Compensatable,
    /// A repeat does harm and nothing can tell whether it happened.
    Unreconcilable,
}

impl Effect {
    /// Every effect class, with its name in `effect = "…"`.
    pub const ALL: [(Self, &'static str); 5] = [
        (Self::ReadOnly, "read_only"),
        (Self::Idempotent, "idempotent"),
        (Self::Keyed, "keyed"),
        (Self::Compensatable, "compensatable"),
        (Self::Unreconcilable, "unreconcilable"),
    ];

    /// Whether a repeat is harmless without any key.
    pub const fn repeats_freely(self) -> bool {
        match self {
            Self::ReadOnly | Self::Idempotent => true,
            Self::Keyed | Self::Compensatable | Self::Unreconcilable => false,
        }
    }
}
