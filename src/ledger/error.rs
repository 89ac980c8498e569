//! What can go wrong with the ledger. No message holds a URL or a password.

use std::error::Error as _;

/// Fits after "failed to …:".
#[derive(Debug, thiserror::Error)]
pub enum LedgerError {
    /// No session, or it broke.
    #[error("no session with the database: {0}")]
    Unreachable(String),
    /// The server refused a session: login, a database that is gone or takes no connections, too many clients.
    #[error("the database refused a session: {message} (SQLSTATE {sqlstate})")]
    TurnedAway {
        /// Five characters.
        sqlstate: String,
        /// The server's message.
        message: String,
    },
    /// The server refused a statement.
    #[error("the database refused: {message} (SQLSTATE {sqlstate}){}", fix(sqlstate))]
    Refused {
        /// Five characters.
        sqlstate: String,
        /// The server's message, without the values in its detail.
        message: String,
    },
    /// Every session would be read-only: a standby, or a server before its failover is over.
    #[error("the database only allows reading")]
    ReadOnly,
    /// What was asked for needs a session with the server itself, and the configuration gives none: what to change.
    #[error("{0}")]
    NoDirectSession(&'static str),
    /// There is no `outbox` schema.
    #[error("there is no outbox schema in this database; run `outboxd migrate`")]
    NoSchema,
    /// It is older than this binary needs.
    #[error("the outbox schema has version {has}, this binary needs {needs}; run `outboxd migrate`")]
    Older {
        /// What the database has.
        has: i32,
        /// What this binary was built for.
        needs: i32,
    },
    /// It is newer than this binary knows (exit code 69).
    #[error("the outbox schema has version {has}, this binary knows {knows}; install a newer outboxd")]
    Newer {
        /// What the database has.
        has: i32,
        /// What this binary was built for.
        knows: i32,
    },
    /// What is remembered of its cluster is not what it is.
    #[error(
        "this ledger was last used on another cluster or timeline ({0}). A failover or a restored backup may \
         have lost what was recorded, and sent: compare with the destinations, then run `outboxd migrate --accept-timeline`"
    )]
    OtherCluster(
        /// As remembered, and as read.
        String,
    ),
    /// The journal was written for another ledger.
    #[error(
        "the journal was written for another ledger ({theirs}, this one is {ours}); use the database that it belongs to, \
         or move it away"
    )]
    OtherLedger {
        /// The journal's.
        theirs: uuid::Uuid,
        /// This one.
        ours: uuid::Uuid,
    },
    /// A value in a row is not one of those this binary knows.
    #[error("a row of {what} holds what this binary does not know")]
    Unreadable {
        /// Table and column.
        what: &'static str,
    },
    /// A migration could not be applied.
    #[error("failed to migrate: {0}")]
    Migration(String),
}

impl LedgerError {
    /// Whether this binary and the schema don't fit, which no waiting mends.
    pub fn is_schema(&self) -> bool {
        match self {
            Self::NoSchema | Self::Older { .. } | Self::Newer { .. } => true,
            Self::Unreachable(_) | Self::TurnedAway { .. } | Self::Refused { .. } | Self::ReadOnly => false,
            Self::Unreadable { .. } | Self::Migration(_) | Self::NoDirectSession(_) => false,
            Self::OtherCluster(_) | Self::OtherLedger { .. } => false,
        }
    }

    /// Whether this is not the ledger that it was, which only a person can judge.
    pub fn is_stranger(&self) -> bool {
        match self {
            Self::OtherCluster(_) | Self::OtherLedger { .. } => true,
            Self::NoSchema | Self::Older { .. } | Self::Newer { .. } => false,
            Self::Unreachable(_) | Self::TurnedAway { .. } | Self::Refused { .. } | Self::ReadOnly => false,
            Self::Unreadable { .. } | Self::Migration(_) | Self::NoDirectSession(_) => false,
        }
    }

    /// Whether the configuration asks for what cannot be.
    pub fn is_config(&self) -> bool {
        match self {
            Self::NoDirectSession(_) => true,
            Self::NoSchema | Self::Older { .. } | Self::Newer { .. } => false,
            Self::Unreachable(_) | Self::TurnedAway { .. } | Self::Refused { .. } | Self::ReadOnly => false,
            Self::Unreadable { .. } | Self::Migration(_) => false,
            Self::OtherCluster(_) | Self::OtherLedger { .. } => false,
        }
    }

    /// Whether a statement was refused for what passes by itself: somebody else's lock, or the like.
    pub fn passes(&self) -> bool {
        match self {
            // lock_not_available, serialization_failure, deadlock_detected, query_canceled
            Self::Refused { sqlstate, .. } => ["55P03", "40001", "40P01", "57014"].contains(&sqlstate.as_str()),
            Self::Unreachable(_) | Self::TurnedAway { .. } | Self::ReadOnly => false,
            Self::NoSchema | Self::Older { .. } | Self::Newer { .. } => false,
            Self::Unreadable { .. } | Self::Migration(_) | Self::NoDirectSession(_) => false,
            Self::OtherCluster(_) | Self::OtherLedger { .. } => false,
        }
    }

    /// Whether a statement was refused whatever rows it is about: a missing grant or table, a plan that is no more, a disk.
    /// It says nothing about a row, and may be over in a moment.
    pub fn is_of_the_ledger(&self) -> bool {
        match self {
            // 0A: feature_not_supported, as of a plan whose result is another by now; 26: a prepared statement that is
            // gone; 42: names and rights; 58 and XX: the system and what is broken in it
            Self::Refused { sqlstate, .. } => {
                ["0A", "26", "42", "58", "XX"].iter().any(|class| sqlstate.starts_with(class))
            }
            Self::Unreachable(_) | Self::TurnedAway { .. } | Self::ReadOnly => false,
            Self::NoSchema | Self::Older { .. } | Self::Newer { .. } => false,
            Self::Unreadable { .. } | Self::Migration(_) | Self::NoDirectSession(_) => false,
            Self::OtherCluster(_) | Self::OtherLedger { .. } => false,
        }
    }

    /// Whether the server itself says that the statement has done nothing. Where the session ended nobody knows.
    pub fn says_undone(&self) -> bool {
        match self {
            Self::Refused { .. } => !self.is_session(),
            Self::Unreachable(_) | Self::TurnedAway { .. } | Self::ReadOnly => false,
            Self::NoSchema | Self::Older { .. } | Self::Newer { .. } => false,
            Self::Unreadable { .. } | Self::Migration(_) | Self::NoDirectSession(_) => false,
            Self::OtherCluster(_) | Self::OtherLedger { .. } => false,
        }
    }

    /// Whether the server has no session left for us.
    pub fn is_crowd(&self) -> bool {
        match self {
            // too_many_connections
            Self::TurnedAway { sqlstate, .. } => sqlstate == "53300",
            Self::Refused { .. } | Self::Unreachable(_) | Self::ReadOnly => false,
            Self::NoSchema | Self::Older { .. } | Self::Newer { .. } => false,
            Self::Unreadable { .. } | Self::Migration(_) | Self::NoDirectSession(_) => false,
            Self::OtherCluster(_) | Self::OtherLedger { .. } => false,
        }
    }

    /// Whether the session itself is gone or useless, so that nothing can be said about the statement.
    pub fn is_session(&self) -> bool {
        match self {
            Self::Unreachable(_) | Self::TurnedAway { .. } | Self::ReadOnly | Self::OtherCluster(_) => true,
            // 57P01..57P05: shutdown; 25006: read-only; 08: connection; 53: out of resources
            Self::Refused { sqlstate, .. } => {
                sqlstate.starts_with("57P")
                    || sqlstate == "25006"
                    || sqlstate.starts_with("08")
                    || sqlstate.starts_with("53")
            }
            Self::NoSchema | Self::Older { .. } | Self::Newer { .. } => false,
            Self::Unreadable { .. } | Self::Migration(_) | Self::NoDirectSession(_) => false,
            Self::OtherLedger { .. } => false,
        }
    }
}

impl LedgerError {
    /// The same, where it came of opening a session: nothing was said about any statement of ours.
    fn of_a_session(self) -> Self {
        if let Self::Refused { sqlstate, message } = self { Self::TurnedAway { sqlstate, message } } else { self }
    }
}

impl From<tokio_postgres::Error> for LedgerError {
    fn from(error: tokio_postgres::Error) -> Self {
        match error.as_db_error() {
            Some(db) if db.code().code() == OTHER_CLUSTER => Self::OtherCluster(db.message().to_owned()),
            Some(db) => Self::Refused { sqlstate: db.code().code().to_owned(), message: db.message().to_owned() },
            None => Self::Unreachable(chain(&error)),
        }
    }
}

impl From<deadpool_postgres::PoolError> for LedgerError {
    fn from(error: deadpool_postgres::PoolError) -> Self {
        use deadpool_postgres::{HookError, PoolError};
        match error {
            PoolError::Backend(backend) | PoolError::PostCreateHook(HookError::Backend(backend)) => {
                Self::from(backend).of_a_session()
            }
            PoolError::PostCreateHook(HookError::Message(text)) if text == READ_ONLY => Self::ReadOnly,
            PoolError::PostCreateHook(HookError::Message(text)) => Self::Unreachable(text.into_owned()),
            PoolError::Timeout(_) | PoolError::Closed | PoolError::NoRuntimeSpecified => {
                Self::Unreachable(error.to_string())
            }
        }
    }
}

/// What to do about a refusal, where one thing is it.
fn fix(sqlstate: &str) -> &'static str {
    match sqlstate {
        // insufficient_privilege
        "42501" => {
            "; deploy/roles.sql has the roles to grant: outbox_dispatcher for `outboxd run`, `check` and `prune`, \
             outbox_operator for the commands of a person"
        }
        _ => "",
    }
}

/// SQLSTATE of `outbox.same_cluster`.
const OTHER_CLUSTER: &str = "OB421";

/// What the session hook says where it finds a read-only session.
pub(super) const READ_ONLY: &str = "read-only session";

/// An error and its causes, in one line.
fn chain(error: &tokio_postgres::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        let inner_text = inner.to_string();
        if !text.contains(&inner_text) {
            text.push_str(": ");
            text.push_str(&inner_text);
        }
        cause = inner.source();
    }
    text
}
