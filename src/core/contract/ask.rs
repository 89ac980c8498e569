//! Asking a destination about an action: whether it took effect (lookup), or that it must not (cancel by key).

use std::time::Duration;

use serde_json::Value;

use super::{Place, Source, When};
use crate::core::request::RequestTemplate;

/// A request about an action. Its placeholders are `{key}`, `{ref}` and the action's params.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Question {
    /// Method, path, query and headers.
    pub request: RequestTemplate,
    /// A JSON body; the strings in it may hold `{key}` and `{ref}`, or be a single placeholder. `None` = no body.
    pub body: Option<Value>,
}

/// Whether it took effect.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Lookup {
    /// What it asks by.
    pub by: By,
    /// What is asked.
    pub question: Question,
    /// Answers that say: it is there.
    pub found: When,
    /// Answers that say: it is not there. `None` = no answer says so.
    pub absent: Option<When>,
    /// Where the answer names the effect.
    pub receipt: Option<Source>,
    /// What was found must be what was sent.
    pub compare: Vec<Compare>,
    /// When, how often, and what an absence is worth.
    pub asking: Asking,
}

impl Lookup {
    /// One that knows no answer for "not there", names no receipt and compares nothing.
    pub fn new(by: By, question: Question, found: When, asking: Asking) -> Self {
        Self { by, question, found, absent: None, receipt: None, compare: vec![], asking }
    }
}

/// What a lookup asks by.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum By {
    /// The idempotency key.
    Key,
    /// The reference that was planted in the request.
    Reference,
}

impl By {
    /// Both, with their names in `by = "…"`.
    pub const ALL: [(Self, &'static str); 2] = [(Self::Key, "key"), (Self::Reference, "ref")];
}

/// That it must not take effect any more.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Cancel {
    /// What is asked.
    pub question: Question,
    /// Answers that say: it has no effect, and will have none.
    pub done: When,
    /// When, how often, and when such an answer is final.
    pub asking: Asking,
}

/// A value of an answer that must equal one that was sent.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Compare {
    /// Where in the answer: a JSON pointer (RFC 6901).
    pub answer: String,
    /// Where in the request that was sent.
    pub sent: Place,
}

/// The timing of a lookup or a cancel.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Asking {
    /// From the last send to the first asking: the destination's index lag.
    pub first_after: Duration,
    /// Between one asking and the next; the last one repeats. Never empty.
    pub repeat: Vec<Duration>,
    /// What "not there" proves.
    pub absence: Absence,
}

/// What "not there" proves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Absence {
    /// Nothing, ever.
    Never,
    /// That nothing happened, if asked later than this after the last send ended.
    After(Duration),
}

impl Absence {
    /// The proof's delay, where there is one.
    pub const fn after(self) -> Option<Duration> {
        match self {
            Self::Never => None,
            Self::After(delay) => Some(delay),
        }
    }
}
