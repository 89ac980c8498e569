//! Statements: prepared once in a session of our own; through a pooler unnamed, each in a transaction with our settings.
//!
//! Preparing saves the planning of long statements: planning a claim takes the server longer than carrying it out (2 to 6
//! ms beside 1.4 ms for ten rows, PostgreSQL 15). Through a pooler nothing that is prepared is still there the next time,
//! so there each is planned anew; BEGIN, the settings, the statement and
//! COMMIT leave together, and take no more ways than a prepared one.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use deadpool_postgres::Object;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Error, IsolationLevel, Row, Statement};

use super::cluster::Whereabouts;
use super::crowd::Place;
use super::param::Param;
use super::session::{Way, local_settings};
use super::{Ledger, LedgerError};
use crate::clock::stopwatch;

/// SQLSTATE read_only_sql_transaction: what a session writes to has become a standby.
const READ_ONLY_TRANSACTION: &str = "25006";

/// A session of the pool, for one verb. It goes back when dropped.
pub(super) struct Session {
    object: Object,
    /// Goes after it.
    _place: Place,
    way: Way,
    distrust: Distrust,
    whereabouts: Whereabouts,
}

impl Ledger {
    /// A session of the pool, as soon as one is free.
    pub(super) async fn session(&self) -> Result<Session, LedgerError> {
        let (object, place) = loop {
            let closed = || LedgerError::Unreachable("the sessions are closed".to_owned());
            let place = self.crowd.place().await.ok_or_else(closed)?;
            match self.pool.get().await.map_err(LedgerError::from) {
                Ok(object) => break (object, place),
                // Others of ours have theirs: one of those has to do.
                Err(error) if error.is_crowd() && self.pool.status().size > 0 => self.crowd.give_up(place),
                Err(error) => return Err(error),
            }
        };
        // Asked only now: whoever opened this one has told.
        let way = if self.is_pooled() { Way::Pooled } else { Way::Direct };
        Ok(Session {
            object,
            _place: place,
            way,
            distrust: self.distrust.clone(),
            whereabouts: self.whereabouts.clone(),
        })
    }

    /// Whether sessions lead through a pooler, as far as any has been opened.
    pub fn is_pooled(&self) -> bool {
        self.pooled.load(Ordering::Acquire)
    }
}

impl Session {
    /// A statement made ready: the next step sends it.
    pub async fn prepare<'s>(&'s self, sql: &'s str) -> Result<Ready<'s>, Error> {
        let prepared = match self.way {
            Way::Direct => Some(self.object.prepare_cached(sql).await.inspect_err(|error| self.distrust.learn(error))?),
            Way::Pooled => None,
        };
        Ok(Ready { session: self, sql, prepared })
    }

    /// The rows of a statement, in a transaction of its own.
    pub async fn query(&self, sql: &str, params: &[&dyn Param]) -> Result<Vec<Row>, Error> {
        self.prepare(sql).await?.query(params).await
    }

    /// As [`Self::query`], of a statement that gives at most one row.
    pub async fn query_opt(&self, sql: &str, params: &[&dyn Param]) -> Result<Option<Row>, Error> {
        Ok(self.query(sql, params).await?.into_iter().next())
    }

    /// As [`Self::query`], of a statement that always gives a row.
    pub async fn query_one(&self, sql: &str, params: &[&dyn Param]) -> Result<Row, LedgerError> {
        self.query_opt(sql, params).await?.ok_or(LedgerError::Unreadable { what: "an answer that always has a row" })
    }

    /// For single unnamed statements that no setting matters to.
    pub fn plain(&self) -> &Client {
        &self.object
    }

    /// Begins a transaction of several statements.
    pub async fn transaction(&mut self) -> Result<Transaction<'_>, Error> {
        let begun = self.object.build_transaction().start().await?;
        Transaction::set_up(begun, self.way, self.distrust.clone(), &self.whereabouts).await
    }

    /// Begins one that sees the same from its first statement to its last, and writes nothing.
    pub async fn snapshot(&mut self) -> Result<Transaction<'_>, Error> {
        let begun = self.object.build_transaction().isolation_level(IsolationLevel::RepeatableRead).read_only(true);
        Transaction::set_up(begun.start().await?, self.way, self.distrust.clone(), &self.whereabouts).await
    }

    async fn unnamed(&self, sql: &str, params: &[&dyn Param]) -> Result<Vec<Row>, Error> {
        let begin = "begin isolation level read committed;".to_owned() + local_settings();
        let params = typed(params);
        // Each is on its way before the first is waited for, so that a transaction never waits for us, and ends whoever
        // loses interest.
        let (begun, same, rows, committed) = tokio::join!(
            biased;
            self.object.batch_execute(&begin),
            self.whereabouts.compare(self.plain()),
            self.object.query_typed(sql, &params),
            self.object.batch_execute("commit"),
        );
        begun?;
        same?;
        let rows = rows?;
        committed?;
        Ok(rows)
    }
}

/// A statement that needs nothing more than its parameters.
pub(super) struct Ready<'s> {
    session: &'s Session,
    sql: &'s str,
    /// `None` = unnamed.
    prepared: Option<Statement>,
}

impl Ready<'_> {
    /// Its rows, in a transaction of its own. It is on its way after the first poll.
    pub async fn query(&self, params: &[&dyn Param]) -> Result<Vec<Row>, Error> {
        let rows = match &self.prepared {
            Some(statement) => {
                let params: Vec<&(dyn ToSql + Sync)> = params.iter().map(|param| *param as _).collect();
                self.session.object.query(statement, &params).await
            }
            None => self.session.unnamed(self.sql, params).await,
        };
        rows.inspect_err(|error| self.session.distrust.learn(error))
    }
}

/// Several statements. Rolled back when dropped; unnamed statements whatever the session.
pub(super) struct Transaction<'a> {
    transaction: deadpool_postgres::Transaction<'a>,
    distrust: Distrust,
}

impl<'a> Transaction<'a> {
    async fn set_up(
        transaction: deadpool_postgres::Transaction<'a>,
        way: Way,
        distrust: Distrust,
        whereabouts: &Whereabouts,
    ) -> Result<Self, Error> {
        match way {
            Way::Direct => {}
            Way::Pooled => {
                transaction.batch_execute(local_settings()).await?;
                whereabouts.compare(&*transaction).await?;
            }
        }
        Ok(Self { transaction, distrust })
    }

    /// The rows of a statement.
    pub async fn query(&self, sql: &str, params: &[&dyn Param]) -> Result<Vec<Row>, Error> {
        let rows = self.transaction.query_typed(sql, &typed(params)).await;
        rows.inspect_err(|error| self.distrust.learn(error))
    }

    /// Of a statement that gives at most one row.
    pub async fn query_opt(&self, sql: &str, params: &[&dyn Param]) -> Result<Option<Row>, Error> {
        Ok(self.query(sql, params).await?.into_iter().next())
    }

    /// Takes it back.
    pub async fn rollback(self) -> Result<(), Error> {
        self.transaction.rollback().await
    }

    /// Makes it durable.
    pub async fn commit(self) -> Result<(), Error> {
        self.transaction.commit().await
    }
}

fn typed<'a>(params: &[&'a dyn Param]) -> Vec<(&'a (dyn ToSql + Sync), Type)> {
    params.iter().map(|param| (*param as _, param.sql_type())).collect()
}

/// Sessions older than this moment are not used again: one of them was found to be read-only, as after a failover.
#[derive(Clone, Default)]
pub(super) struct Distrust(Arc<Mutex<Option<Instant>>>);

impl Distrust {
    fn learn(&self, error: &Error) {
        if error.code().is_some_and(|code| code.code() == READ_ONLY_TRANSACTION) {
            *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(stopwatch());
        }
    }

    /// Whether a session that was opened then may be used.
    pub fn trusts(&self, opened: Instant) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).is_none_or(|since| opened > since)
    }
}
