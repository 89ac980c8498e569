//! Statements: prepared once in a session of our own; through a pooler unnamed, each in a transaction with our settings.
//!
//! Preparing saves the planning of long statements: planning a claim takes the server longer than carrying it out (2 to 6
//! ms beside 1.4 ms for ten rows, PostgreSQL 15). Through a pooler nothing that is prepared is still there the next time,
//! so there each is planned anew; BEGIN, the settings, the statement and
//! COMMIT leave together, and take no more ways than a prepared one.

use std::sync::atomic::Ordering;

use deadpool_postgres::Object;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Error, IsolationLevel, Row, Statement};

use super::cluster::Whereabouts;
use super::crowd::Place;
use super::param::Param;
use super::session::{Way, local_settings};
use super::trust::{QueryError, Trust};
use super::{Ledger, LedgerError};

/// A session of the pool, for one verb. It goes back when dropped.
pub(super) struct Session {
    object: Object,
    /// Goes after it.
    _place: Place,
    way: Way,
    trust: Trust,
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
        Ok(Session { object, _place: place, way, trust: self.trust.clone(), whereabouts: self.whereabouts.clone() })
    }

    /// Whether sessions lead through a pooler, as far as any has been opened.
    pub fn is_pooled(&self) -> bool {
        self.pooled.load(Ordering::Acquire)
    }
}

impl Session {
    /// A statement made ready: the next step sends it.
    pub async fn prepare<'s>(&'s self, sql: &'s str) -> Result<Ready<'s>, QueryError> {
        let prepared = match self.way {
            Way::Direct => Some(self.trust.answer(self.object.prepare_cached(sql)).await?),
            Way::Pooled => None,
        };
        Ok(Ready { session: self, sql, prepared })
    }

    /// The rows of a statement, in a transaction of its own.
    pub async fn query(&self, sql: &str, params: &[&dyn Param]) -> Result<Vec<Row>, QueryError> {
        self.prepare(sql).await?.query(params).await
    }

    /// As [`Self::query`], of a statement that gives at most one row.
    pub async fn query_opt(&self, sql: &str, params: &[&dyn Param]) -> Result<Option<Row>, QueryError> {
        Ok(self.query(sql, params).await?.into_iter().next())
    }

    /// As [`Self::query`], of a statement that always gives a row.
    pub async fn query_one(&self, sql: &str, params: &[&dyn Param]) -> Result<Row, LedgerError> {
        self.query_opt(sql, params).await?.ok_or(LedgerError::Unreadable { what: "an answer that always has a row" })
    }

    /// The schema's version; `None` where there is no schema.
    pub async fn schema_version(&self) -> Result<Option<i32>, QueryError> {
        self.trust.answer(super::migrate::version(&self.object)).await
    }

    /// Begins a transaction of several statements.
    pub async fn transaction(&mut self) -> Result<Transaction<'_>, QueryError> {
        let begun = self.trust.answer(self.object.build_transaction().start()).await?;
        Transaction::set_up(begun, self.way, &self.trust, &self.whereabouts).await
    }

    /// Begins one that sees the same from its first statement to its last, and writes nothing.
    pub async fn snapshot(&mut self) -> Result<Transaction<'_>, QueryError> {
        let begun = self.object.build_transaction().isolation_level(IsolationLevel::RepeatableRead).read_only(true);
        let begun = self.trust.answer(begun.start()).await?;
        Transaction::set_up(begun, self.way, &self.trust, &self.whereabouts).await
    }

    async fn unnamed(&self, sql: &str, params: &[&dyn Param]) -> Result<Vec<Row>, Error> {
        let begin = "begin isolation level read committed;".to_owned() + local_settings();
        let params = typed(params);
        // Each is on its way before the first is waited for, so that a transaction never waits for us, and ends whoever
        // loses interest.
        let (begun, same, rows, committed) = tokio::join!(
            biased;
            self.object.batch_execute(&begin),
            self.whereabouts.compare(&**self.object),
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
    pub async fn query(&self, params: &[&dyn Param]) -> Result<Vec<Row>, QueryError> {
        let session = self.session;
        match &self.prepared {
            Some(statement) => {
                let params: Vec<&(dyn ToSql + Sync)> = params.iter().map(|param| *param as _).collect();
                session.trust.answer(session.object.query(statement, &params)).await
            }
            None => session.trust.answer(session.unnamed(self.sql, params)).await,
        }
    }
}

/// Several statements. Rolled back when dropped; unnamed statements whatever the session.
pub(super) struct Transaction<'a> {
    transaction: deadpool_postgres::Transaction<'a>,
    trust: &'a Trust,
}

impl<'a> Transaction<'a> {
    async fn set_up(
        transaction: deadpool_postgres::Transaction<'a>,
        way: Way,
        trust: &'a Trust,
        whereabouts: &Whereabouts,
    ) -> Result<Self, QueryError> {
        match way {
            Way::Direct => {}
            Way::Pooled => {
                trust.answer(transaction.batch_execute(local_settings())).await?;
                trust.answer(whereabouts.compare(&*transaction)).await?;
            }
        }
        Ok(Self { transaction, trust })
    }

    /// The rows of a statement.
    pub async fn query(&self, sql: &str, params: &[&dyn Param]) -> Result<Vec<Row>, QueryError> {
        self.trust.answer(self.transaction.query_typed(sql, &typed(params))).await
    }

    /// Of a statement that gives at most one row.
    pub async fn query_opt(&self, sql: &str, params: &[&dyn Param]) -> Result<Option<Row>, QueryError> {
        Ok(self.query(sql, params).await?.into_iter().next())
    }

    /// Takes it back.
    pub async fn rollback(self) -> Result<(), QueryError> {
        self.trust.answer(self.transaction.rollback()).await
    }

    /// Makes it durable.
    pub async fn commit(self) -> Result<(), QueryError> {
        self.trust.answer(self.transaction.commit()).await
    }
}

fn typed<'a>(params: &[&'a dyn Param]) -> Vec<(&'a (dyn ToSql + Sync), Type)> {
    params.iter().map(|param| (*param as _, param.sql_type())).collect()
}
