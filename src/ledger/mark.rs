//! Marking what is about to leave: sends of some operations, and every cancel by key.

use std::collections::HashSet;

use uuid::Uuid;

use super::{Claimed, Ledger, LedgerError};
use crate::core::action::ActionId;

const MARK: &str = include_str!("../../sql/mark.sql");
const MARK_CANCEL: &str = include_str!("../../sql/mark_cancel.sql");

/// The actions whose mark is durable. For the others nothing must leave.
pub type Marked = HashSet<ActionId>;

impl Ledger {
    /// Marks the sends of these claims. See `sql/mark.sql`.
    pub async fn mark(&self, claimed: &[Claimed]) -> Result<Marked, LedgerError> {
        self.mark_by(MARK, claimed).await
    }

    /// Records that cancels by key of these claims are about to leave; whoever sends one holds its row as
    /// `cancel_sent` from then on. See `sql/mark_cancel.sql`.
    pub async fn mark_cancels(&self, claimed: &[Claimed]) -> Result<Marked, LedgerError> {
        self.mark_by(MARK_CANCEL, claimed).await
    }

    async fn mark_by(&self, sql: &str, claimed: &[Claimed]) -> Result<Marked, LedgerError> {
        let mut sorted: Vec<&Claimed> = claimed.iter().collect();
        sorted.sort_unstable_by_key(|c| c.intent.id);
        let actions: Vec<Uuid> = sorted.iter().map(|c| c.intent.id.0).collect();
        let fences: Vec<i64> = sorted.iter().map(|c| c.fence.0).collect();
        let attempts: Vec<Uuid> = sorted.iter().map(|c| c.row.attempt.0).collect();
        let session = self.session().await?;
        let rows = session.query(sql, &[&actions, &fences, &attempts]).await?;
        rows.iter().map(|row| Ok(ActionId(row.try_get(0)?))).collect()
    }
}
