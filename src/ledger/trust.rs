//! Which sessions are still believed in: not one that has become read-only, and not one that says nothing any more.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio_postgres::Error;

use super::LedgerError;
use crate::clock::stopwatch;

/// SQLSTATE read_only_sql_transaction: what a session writes to has become a standby.
const READ_ONLY_TRANSACTION: &str = "25006";

/// How long a statement may go without an answer. The server ends its own work at 30 s (`statement_timeout`) and a dead
/// peer is found out by TCP, so what is silent for longer is a proxy that takes bytes and gives none, or a COMMIT that
/// waits for a synchronous standby.
const PATIENCE: Duration = Duration::from_secs(40);
/// Twice as long after each silence, up to this: while a COMMIT waits for its standby, each try holds another session of
/// the server's.
const MOST_PATIENCE: Duration = Duration::from_secs(3600);

/// What sessions have taught. Shared by all of a pool.
#[derive(Clone)]
pub(super) struct Trust(Arc<Learnt>);

struct Learnt {
    /// Sessions that were opened before it are not used again.
    since: Mutex<Option<Instant>>,
    patience: Duration,
    /// How many statements in a row went without an answer.
    silences: AtomicU32,
}

/// Why a statement has no rows to give.
#[derive(Debug)]
pub(super) enum QueryError {
    /// No answer for so long.
    Silence(Duration),
    /// The server or the driver said so.
    Said(Error),
}

impl From<QueryError> for LedgerError {
    fn from(error: QueryError) -> Self {
        match error {
            QueryError::Silence(patience) => Self::Unreachable(format!("no answer for {patience:?}")),
            QueryError::Said(error) => error.into(),
        }
    }
}

impl Trust {
    /// In all sessions, with that much patience.
    pub fn new(patience: Duration) -> Self {
        Self(Arc::new(Learnt { since: Mutex::default(), patience, silences: AtomicU32::new(0) }))
    }

    /// In all sessions.
    pub fn usual() -> Self {
        Self::new(PATIENCE)
    }

    /// The answer to what a session was asked. After a silence, and after one that shows it to be read-only, no session
    /// that is open now is used again.
    pub async fn answer<T>(&self, asked: impl Future<Output = Result<T, Error>>) -> Result<T, QueryError> {
        let patience = self.patience();
        let Ok(answer) = tokio::time::timeout(patience, asked).await else {
            self.0.silences.fetch_add(1, Ordering::Relaxed);
            self.lose();
            return Err(QueryError::Silence(patience));
        };
        self.0.silences.store(0, Ordering::Relaxed);
        answer.map_err(|error| {
            if error.code().is_some_and(|code| code.code() == READ_ONLY_TRANSACTION) {
                self.lose();
            }
            QueryError::Said(error)
        })
    }

    /// Whether a session that was opened then may be used.
    pub fn trusts(&self, opened: Instant) -> bool {
        self.0.since.lock().unwrap_or_else(PoisonError::into_inner).is_none_or(|since| opened > since)
    }

    fn lose(&self) {
        *self.0.since.lock().unwrap_or_else(PoisonError::into_inner) = Some(stopwatch());
    }

    fn patience(&self) -> Duration {
        let doubled = 2_u32.saturating_pow(self.0.silences.load(Ordering::Relaxed));
        self.0.patience.saturating_mul(doubled).min(MOST_PATIENCE.max(self.0.patience))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn patience_grows_with_each_silence_and_is_as_it_was_after_an_answer() {
        let trust = Trust::new(Duration::from_millis(2));
        let opened = stopwatch();
        for patience in [2, 4, 8] {
            assert_eq!(trust.patience(), Duration::from_millis(patience));
            let silence = trust.answer(std::future::pending::<Result<(), Error>>()).await.expect_err("no answer");
            let silence = LedgerError::from(silence);
            assert!(silence.is_session() && !silence.says_undone(), "{silence}");
        }
        assert!(!trust.trusts(opened));
        trust.answer(std::future::ready(Ok(()))).await.expect("an answer");
        assert_eq!(trust.patience(), Duration::from_millis(2));
        assert!(trust.trusts(stopwatch()), "one that is opened afterwards");
    }

    #[test]
    fn patience_has_an_end() {
        let trust = Trust::usual();
        assert!(trust.patience() > Duration::from_secs(30), "the server's own limit comes first");
        trust.0.silences.store(u32::MAX, Ordering::Relaxed);
        assert_eq!(trust.patience(), MOST_PATIENCE);
    }
}
