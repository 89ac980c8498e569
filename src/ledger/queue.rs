//! Serial queues: giving turns.

use super::{Ledger, LedgerError};

pub(super) const PROMOTE: &str = include_str!("../../sql/promote.sql");
const MEND: &str = include_str!("../../sql/mend_queues.sql");

/// What there was to see to.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Promoted {
    /// Rows that were parked, got their turn or gave it back; 0 also where somebody else is at it.
    pub moved: i64,
    /// Rows that got their turn.
    pub turns: i64,
}

/// Queues that nobody would have moved on.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Mended {
    /// How many are marked now; the next [`Ledger::promote`] sees to them.
    pub queues: i64,
    /// Where to go on; `None` = these were the last ones.
    pub after: Option<i64>,
}

impl Ledger {
    /// Gives turns and parks what has arrived. Anybody may, at any time. See `sql/promote.sql`.
    pub async fn promote(&self) -> Result<Promoted, LedgerError> {
        let client = self.pool.get().await?;
        let statement = client.prepare_cached(PROMOTE).await?;
        let row = client.query_one(&statement, &[]).await?;
        Ok(Promoted { moved: row.try_get("moved")?, turns: row.try_get("turns")? })
    }

    /// Looks for queues that nobody would move on, from `after` on. See `sql/mend_queues.sql`.
    pub async fn mend_queues(&self, after: Option<i64>) -> Result<Mended, LedgerError> {
        let client = self.pool.get().await?;
        let statement = client.prepare_cached(MEND).await?;
        let row = client.query_one(&statement, &[&after]).await?;
        Ok(Mended { queues: row.try_get("mended")?, after: row.try_get("next_after")? })
    }
}
