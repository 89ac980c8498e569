//! How a destination asks for patience, and of whom.

use std::time::Duration;

use super::Source;

/// Who has to be patient.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Scope {
    /// The action that was told so, and no other.
    Action,
    /// Every action of its operation.
    Operation,
    /// Everything that goes to the destination.
    Destination,
}

impl Scope {
    /// Every scope, with its name.
    pub const ALL: [(Self, &'static str); 3] =
        [(Self::Action, "action"), (Self::Operation, "operation"), (Self::Destination, "destination")];

    /// Its name.
    pub fn as_str(self) -> &'static str {
        Self::ALL.iter().find(|(scope, _)| *scope == self).map_or("", |(_, name)| name)
    }
}

/// Of whom an answer that says when to come back speaks.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum PauseScope {
    /// Always of these.
    Always(Scope),
    /// The answer says it itself.
    Said {
        /// Where.
        at: Source,
        /// What is said there, and what that means; anything else means the action.
        words: Vec<(String, Scope)>,
    },
}

/// How a destination is to be paced.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Pace {
    /// Between two requests of the operation, from one daemon; `None` = no matter.
    pub min_gap: Option<Duration>,
    /// `None` = the contract doesn't say.
    pub scope: Option<PauseScope>,
}
