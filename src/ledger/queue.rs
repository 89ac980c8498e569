//! Serial queues: giving turns, and saying where nothing moves.

use super::{Ledger, LedgerError};
use crate::core::action::ActionId;
use crate::core::time::Timestamp;

pub(super) const PROMOTE: &str = include_str!("../../sql/promote.sql");
const MEND: &str = include_str!("../../sql/mend_queues.sql");
const HELD: &str = include_str!("../../sql/queues_held.sql");

/// The most turns looked at.
const LOOKED_AT_MOST: i64 = 1_000_000;
/// The most actions counted behind one.
pub const WAITING_MAX: i64 = 10_000;

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

/// A serial queue in which somebody waits for what does not come to its end, and what that is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HeldQueue {
    /// The action that has the turn.
    pub head: ActionId,
    /// Its operation.
    pub operation: String,
    /// Whose queue it is.
    pub tenant: String,
    /// Its ordering key.
    pub ordering_key: String,
    /// How it stands: its label in `outbox.status`.
    pub label: String,
    /// Why.
    pub reason: Option<String>,
    /// When something becomes of it; `None` where only a person can decide, or where it is closed.
    pub due_at: Option<Timestamp>,
    /// It is closed as not delivered, and holds the queue until it is tried again or released.
    pub holds: bool,
    /// Since when: it was closed, became unknown, or got its turn.
    pub since: Timestamp,
    /// How many wait behind it, counted up to [`WAITING_MAX`].
    pub waiting: i64,
}

impl Ledger {
    /// The queues that have been held the longest, at most `limit`.
    pub async fn held_queues(&self, limit: u32) -> Result<Vec<HeldQueue>, LedgerError> {
        let session = self.session().await?;
        let rows = session.query(HELD, &[&LOOKED_AT_MOST, &i64::from(limit), &WAITING_MAX]).await?;
        let held = rows.iter().map(|row| {
            Ok(HeldQueue {
                head: ActionId(row.try_get("action_id")?),
                operation: row.try_get("operation")?,
                tenant: row.try_get("tenant")?,
                ordering_key: row.try_get("ordering_key")?,
                label: row.try_get("label")?,
                reason: row.try_get("reason")?,
                due_at: row.try_get("due_at")?,
                holds: row.try_get("holds")?,
                since: row.try_get("since")?,
                waiting: row.try_get("waiting")?,
            })
        });
        held.collect()
    }

    /// Gives turns and parks what has arrived. Anybody may, at any time. See `sql/promote.sql`.
    pub async fn promote(&self) -> Result<Promoted, LedgerError> {
        let row = self.session().await?.query_one(PROMOTE, &[]).await?;
        Ok(Promoted { moved: row.try_get("moved")?, turns: row.try_get("turns")? })
    }

    /// Looks for queues that nobody would move on, from `after` on. See `sql/mend_queues.sql`.
    pub async fn mend_queues(&self, after: Option<i64>) -> Result<Mended, LedgerError> {
        let row = self.session().await?.query_one(MEND, &[&after]).await?;
        Ok(Mended { queues: row.try_get("mended")?, after: row.try_get("next_after")? })
    }
}
