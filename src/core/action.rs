//! What an action is, where it can stand, and what may be done with it next.

use std::fmt;

use bytes::Bytes;
use uuid::Uuid;

/// The identity of one intended effect (R1). Minted by `outbox.enqueue`, never by whoever retries.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ActionId(pub Uuid);

/// The identity of one claim, minted by the claim. With the fence it identifies who may settle.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct AttemptId(pub Uuid);

/// The fencing token: one more with every claim of the action.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Fence(pub i64);

impl fmt::Display for ActionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
impl fmt::Display for AttemptId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
impl fmt::Display for Fence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// What was committed: the part of an action that a request is built from. Immutable.
#[derive(Clone, PartialEq, Eq)]
pub struct Intent {
    /// Whose effect it is, and what the idempotency key is rendered from.
    pub id: ActionId,
    /// Empty when the application has no tenants.
    pub tenant: String,
    /// The kind of effect; a key of the configuration's `[operation.…]`.
    pub operation: String,
    /// W3C trace context as given at enqueue.
    pub traceparent: Option<String>,
    /// JSON object text with values for `{placeholders}` in URL and headers.
    pub params: Option<String>,
    /// JSON object text with extra request headers.
    pub headers: Option<String>,
    /// `Content-Type` of the body; `None` where there is no body.
    pub content_type: Option<String>,
    /// The bytes that are sent, as they were given.
    pub body: Bytes,
}

/// Says which action, never what is in it: bodies and headers hold what does not belong in a log.
impl fmt::Debug for Intent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Intent")
            .field("id", &self.id)
            .field("operation", &self.operation)
            .field("body_bytes", &self.body.len())
            .finish_non_exhaustive()
    }
}

/// Where an action stands. Each state asserts something about the world, not about what the code did.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum State {
    /// Nothing has been sent, or it is proved that nothing happened.
    Pending,
    /// A worker holds the lease.
    Dispatching,
    /// The destination confirmed that it took it. Closed.
    Succeeded,
    /// The destination said: not done, try later.
    RetryableFailure,
    /// It did not take effect and will not be tried again. Closed.
    TerminalFailure,
    /// An attempt may have taken effect.
    OutcomeUnknown,
}

impl State {
    /// Every state, in the order in which a reader meets them.
    pub const ALL: [Self; 6] = [
        Self::Pending,
        Self::Dispatching,
        Self::Succeeded,
        Self::RetryableFailure,
        Self::TerminalFailure,
        Self::OutcomeUnknown,
    ];

    /// The public name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Dispatching => "dispatching",
            Self::Succeeded => "succeeded",
            Self::RetryableFailure => "retryable_failure",
            Self::TerminalFailure => "terminal_failure",
            Self::OutcomeUnknown => "outcome_unknown",
        }
    }

    /// The state of that public name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == name)
    }

    /// A closed row never changes again, except by an operator's recorded decision.
    pub const fn is_closed(self) -> bool {
        match self {
            Self::Succeeded | Self::TerminalFailure => true,
            Self::Pending | Self::Dispatching | Self::RetryableFailure | Self::OutcomeUnknown => false,
        }
    }
}

/// What the next claim of a row is to do; while it is dispatching, what its worker is doing.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Step {
    /// Send it, for the first time or again under the same key.
    Send,
    /// Ask the destination whether it took effect.
    Lookup,
    /// Cancel it at the destination by its key.
    Cancel,
    /// Nothing outside: conclude from what is known.
    Conclude,
    /// Nothing: only a person can decide.
    Review,
}

impl Step {
    /// Every step.
    pub const ALL: [Self; 5] = [Self::Send, Self::Lookup, Self::Cancel, Self::Conclude, Self::Review];

    /// The public name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Send => "send",
            Self::Lookup => "lookup",
            Self::Cancel => "cancel",
            Self::Conclude => "conclude",
            Self::Review => "review",
        }
    }

    /// The step of that public name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|step| step.as_str() == name)
    }
}

/// Why an action must not be sent any more, seen by the claiming transaction (R22).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Stop {
    /// Its cancellation was requested.
    Cancelled,
    /// Its `expires_at` has passed.
    Deadline,
    /// The authority it was committed under was revoked.
    AuthorityRevoked,
    /// What it compensates did not happen.
    NothingToCompensate,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_states_and_steps_survive_a_round_trip() {
        for state in State::ALL {
            assert_eq!(State::parse(state.as_str()), Some(state));
        }
        for step in Step::ALL {
            assert_eq!(Step::parse(step.as_str()), Some(step));
        }
        assert_eq!(State::parse("failed"), None);
    }

    #[test]
    fn debug_of_an_intent_shows_no_content() {
        let intent = Intent {
            id: ActionId(Uuid::nil()),
            tenant: "t".into(),
            operation: "op".into(),
            traceparent: None,
            params: Some("{\"p\":\"secret-param\"}".into()),
            headers: Some("{\"h\":\"secret-header\"}".into()),
            content_type: None,
            body: Bytes::from_static(b"secret-body"),
        };
        assert!(!format!("{intent:?}").contains("secret"));
    }
}
