//! Counting open rows, and when the next is due.

use std::time::Duration;

use super::values::micros;
use super::{Ledger, LedgerError};
use crate::core::time::Timestamp;

const STATS: &str = include_str!("../../sql/stats.sql");
const OVERDUE_ELSEWHERE: &str = include_str!("../../sql/overdue_elsewhere.sql");
const NEXT_DUE: &str = include_str!("../../sql/next_due.sql");

/// The most rows counted of each of the two indexes.
const COUNTED_AT_MOST: i64 = 200_000;

/// Open rows by what they wait for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct OpenRows {
    /// Pending and due.
    pub due: i64,
    /// Pending, due later.
    pub scheduled: i64,
    /// Retryable failures.
    pub retrying: i64,
    /// Held by a worker, of any daemon.
    pub in_flight: i64,
    /// Outcome unknown, those for review included.
    pub unknown: i64,
    /// Held for a person.
    pub review: i64,
    /// How long the oldest due row has been due, milliseconds; 0 where none is.
    pub oldest_due_ms: i64,
    /// How long the oldest doubt has lasted, milliseconds; 0 where there is none.
    pub oldest_unknown_ms: i64,
}

impl Ledger {
    /// Counts open rows; a very large backlog is counted up to a bound.
    pub async fn open_rows(&self) -> Result<OpenRows, LedgerError> {
        let session = self.session().await?;
        let row = session.query_one(STATS, &[&COUNTED_AT_MOST]).await?;
        Ok(OpenRows {
            due: row.try_get("due")?,
            scheduled: row.try_get("scheduled")?,
            retrying: row.try_get("retrying")?,
            in_flight: row.try_get("in_flight")?,
            unknown: row.try_get("unknown")?,
            review: row.try_get("review")?,
            oldest_due_ms: row.try_get("oldest_due_ms")?,
            oldest_unknown_ms: row.try_get("oldest_unknown_ms")?,
        })
    }
}

/// How long until a row of these operations is due; zero where one is, `None` where nothing waits. Of each: its name,
/// whether rows that ask are meant, and since when due rows are looked at.
pub async fn next_due_in(
    ledger: &Ledger,
    streams: &[(&str, bool, Option<Timestamp>)],
) -> Result<Option<Duration>, LedgerError> {
    let session = ledger.session().await?;
    let operations: Vec<&str> = streams.iter().map(|(operation, _, _)| *operation).collect();
    let asks: Vec<bool> = streams.iter().map(|(_, asks, _)| *asks).collect();
    let since: Vec<Timestamp> = streams.iter().map(|(_, _, since)| since.unwrap_or(Timestamp::EARLIEST)).collect();
    let row = session.query_one(NEXT_DUE, &[&operations, &asks, &since]).await?;
    let due_in: Option<i64> = row.try_get(0)?;
    Ok(due_in.map(|micros| Duration::from_micros(u64::try_from(micros).unwrap_or(0))))
}

/// Operations that are none of `ours` and whose actions have been due for longer than `overdue`.
pub async fn overdue_elsewhere(ledger: &Ledger, ours: &[&str], overdue: Duration) -> Result<Vec<String>, LedgerError> {
    let session = ledger.session().await?;
    let rows = session.query(OVERDUE_ELSEWHERE, &[&ours.to_vec(), &micros(overdue)]).await?;
    rows.iter().map(|row| Ok(row.try_get(0)?)).collect()
}
