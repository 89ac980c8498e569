//! Marking sends that are about to leave.

use std::collections::HashSet;

use uuid::Uuid;

use super::{Claimed, Ledger, LedgerError};
use crate::core::action::ActionId;

const MARK: &str = include_str!("../../sql/mark.sql");

/// The actions whose mark is durable. The others must not be sent.
pub type Marked = HashSet<ActionId>;

impl Ledger {
    /// Marks the sends of these claims. See `sql/mark.sql`.
    pub async fn mark(&self, claimed: &[Claimed]) -> Result<Marked, LedgerError> {
        let mut sorted: Vec<&Claimed> = claimed.iter().collect();
        sorted.sort_unstable_by_key(|c| c.intent.id);
        let actions: Vec<Uuid> = sorted.iter().map(|c| c.intent.id.0).collect();
        let fences: Vec<i64> = sorted.iter().map(|c| c.fence.0).collect();
        let attempts: Vec<Uuid> = sorted.iter().map(|c| c.row.attempt.0).collect();
        let client = self.pool.get().await?;
        let statement = client.prepare_cached(MARK).await?;
        let rows = client.query(&statement, &[&actions, &fences, &attempts]).await?;
        rows.iter().map(|row| Ok(ActionId(row.try_get(0)?))).collect()
    }
}
