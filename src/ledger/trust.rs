//! Which sessions are still believed in: not one that has become read-only, and not one that says nothing any more.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
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
/// Twice as long where another was silent not long ago, up to this: while a COMMIT waits for its standby, each try holds
/// another session of the server's. What is answered meanwhile, such as reading, says nothing about that.
const MOST_PATIENCE: Duration = Duration::from_secs(3600);
/// Not long ago: so many times as long as it had been waited for.
const NOT_LONG_AGO: u32 = 3;

/// What sessions have taught. Shared by all of a pool.
#[derive(Clone)]
pub(super) struct Trust(Arc<Learnt>);

struct Learnt {
    /// Sessions that were opened before it are not used again.
    since: Mutex<Option<Instant>>,
    patience: Duration,
    last_silence: Mutex<Option<Silence>>,
}

#[derive(Clone, Copy)]
struct Silence {
    at: Instant,
    after: Duration,
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
        Self(Arc::new(Learnt { since: Mutex::default(), patience, last_silence: Mutex::default() }))
    }

    /// In all sessions.
    pub fn usual() -> Self {
        Self::new(PATIENCE)
    }

    /// The answer to what a session was asked. After a silence, and after one that shows it to be read-only, no session
    /// that is open now is used again.
    pub async fn answer<T>(&self, asked: impl Future<Output = Result<T, Error>>) -> Result<T, QueryError> {
        let patience = self.patience(stopwatch());
        let Ok(answer) = tokio::time::timeout(patience, asked).await else {
            *lock(&self.0.last_silence) = Some(Silence { at: stopwatch(), after: patience });
            self.lose();
            return Err(QueryError::Silence(patience));
        };
        answer.map_err(|error| {
            if error.code().is_some_and(|code| code.code() == READ_ONLY_TRANSACTION) {
                self.lose();
            }
            QueryError::Said(error)
        })
    }

    /// Whether a session that was opened then may be used.
    pub fn trusts(&self, opened: Instant) -> bool {
        lock(&self.0.since).is_none_or(|since| opened > since)
    }

    fn lose(&self) {
        *lock(&self.0.since) = Some(stopwatch());
    }

    fn patience(&self, now: Instant) -> Duration {
        let not_long_ago = |last: &Silence| now.saturating_duration_since(last.at) < last.after * NOT_LONG_AGO;
        match lock(&self.0.last_silence).filter(not_long_ago) {
            Some(last) => last.after.saturating_mul(2).min(MOST_PATIENCE),
            None => self.0.patience,
        }
    }
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    // Each change is a single step.
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn patience_grows_with_each_silence_whatever_is_answered_meanwhile() {
        let trust = Trust::new(Duration::from_millis(200));
        let opened = stopwatch();
        for patience in [200, 400, 800] {
            assert_eq!(trust.patience(stopwatch()), Duration::from_millis(patience));
            let silence = trust.answer(std::future::pending::<Result<(), Error>>()).await.expect_err("no answer");
            let silence = LedgerError::from(silence);
            assert!(silence.is_session() && !silence.says_undone(), "{silence}");
            trust.answer(std::future::ready(Ok(()))).await.expect("an answer");
        }
        assert!(!trust.trusts(opened));
        assert!(trust.trusts(stopwatch()), "one that is opened afterwards");
    }

    #[tokio::test]
    async fn silences_at_once_count_as_one() {
        let trust = Trust::new(Duration::from_millis(200));
        let silence = || trust.answer(std::future::pending::<Result<(), Error>>());
        assert!(matches!(tokio::join!(silence(), silence(), silence()), (Err(_), Err(_), Err(_))));
        assert_eq!(trust.patience(stopwatch()), Duration::from_millis(400));
    }

    #[test]
    fn patience_has_an_end_and_is_as_it_was_long_after_a_silence() {
        let trust = Trust::usual();
        let now = stopwatch();
        assert!(trust.patience(now) > Duration::from_secs(30), "the server's own limit comes first");
        *lock(&trust.0.last_silence) = Some(Silence { at: now, after: MOST_PATIENCE });
        assert_eq!(trust.patience(now), MOST_PATIENCE);
        assert_eq!(trust.patience(now + MOST_PATIENCE * NOT_LONG_AGO), PATIENCE);
    }
}
