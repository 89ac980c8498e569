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

/// What an error says about the statement, the session and the ledger.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    /// The session is gone or useless, or there was none: nothing can be said about the statement.
    Session,
    /// The same, because the server has no session left for us.
    Crowd,
    /// The same, because it is with another cluster.
    OtherCluster,
    /// The statement was refused for what passes by itself: somebody else's lock, or the like.
    Passing,
    /// It was refused whatever rows it is about: a missing grant or table, a plan that is no more, a disk.
    Ledger,
    /// It was refused for its rows.
    Row,
    /// This binary and the schema don't fit.
    Schema,
    /// Nothing was asked: it is another ledger.
    OtherLedger,
    /// The configuration asks for what cannot be.
    Config,
    /// The ledger was read, or changed, and not as it should be.
    Other,
}

/// What the server's refusal of a statement is about.
fn refusal(sqlstate: &str) -> Kind {
    let of = |classes: &[&str]| classes.iter().any(|class| sqlstate.starts_with(class));
    // 57P01..57P05: shutdown; 25006: read-only; 08: connection; 53: out of resources
    if of(&["57P", "25006", "08", "53"]) {
        Kind::Session
    // lock_not_available, serialization_failure, deadlock_detected, query_canceled
    } else if of(&["55P03", "40001", "40P01", "57014"]) {
        Kind::Passing
    // 0A: feature_not_supported, as of a plan whose result is another by now; 26: a prepared statement that is gone;
    // 42: names and rights; 58 and XX: the system and what is broken in it
    } else if of(&["0A", "26", "42", "58", "XX"]) {
        Kind::Ledger
    } else {
        Kind::Row
    }
}

impl LedgerError {
    fn kind(&self) -> Kind {
        match self {
            // too_many_connections
            Self::TurnedAway { sqlstate, .. } if sqlstate == "53300" => Kind::Crowd,
            Self::Unreachable(_) | Self::TurnedAway { .. } | Self::ReadOnly => Kind::Session,
            Self::Refused { sqlstate, .. } => refusal(sqlstate),
            Self::OtherCluster(_) => Kind::OtherCluster,
            Self::OtherLedger { .. } => Kind::OtherLedger,
            Self::NoSchema | Self::Older { .. } | Self::Newer { .. } => Kind::Schema,
            Self::NoDirectSession(_) => Kind::Config,
            Self::Unreadable { .. } | Self::Migration(_) => Kind::Other,
        }
    }

    /// Whether this binary and the schema don't fit, which no waiting mends.
    pub fn is_schema(&self) -> bool {
        self.kind() == Kind::Schema
    }

    /// Whether this is not the ledger that it was, which only a person can judge.
    pub fn is_stranger(&self) -> bool {
        matches!(self.kind(), Kind::OtherCluster | Kind::OtherLedger)
    }

    /// Whether the configuration asks for what cannot be.
    pub fn is_config(&self) -> bool {
        self.kind() == Kind::Config
    }

    /// Whether a statement was refused for what passes by itself: somebody else's lock, or the like.
    pub fn passes(&self) -> bool {
        self.kind() == Kind::Passing
    }

    /// Whether a statement was refused whatever rows it is about. It says nothing about a row, and may be over in a moment.
    pub fn is_of_the_ledger(&self) -> bool {
        self.kind() == Kind::Ledger
    }

    /// Whether the server itself says that the statement has done nothing. Where the session ended nobody knows.
    pub fn says_undone(&self) -> bool {
        matches!(self.kind(), Kind::Passing | Kind::Ledger | Kind::Row)
    }

    /// Whether the server has no session left for us.
    pub fn is_crowd(&self) -> bool {
        self.kind() == Kind::Crowd
    }

    /// Whether the session itself is gone or useless, so that nothing can be said about the statement.
    pub fn is_session(&self) -> bool {
        matches!(self.kind(), Kind::Session | Kind::Crowd | Kind::OtherCluster)
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
             outbox_operator for the commands of a person; bodies are for the schema's owner alone"
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
