//! The inventory of operations (R20).

use std::time::Duration;

use super::values::micros;
use super::{Ledger, LedgerError};

const INVENTORY: &str = include_str!("../../sql/inventory.sql");

/// One operation, as `outbox.operation` has it.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "the keys of [operation.…]")]
pub struct InventoryRow<'a> {
    pub operation: &'a str,
    pub destination: &'a str,
    pub effect: &'a str,
    pub contract: &'a str,
    pub meaning: &'a str,
    pub owner: &'a str,
    /// How long after the last send an absence proves something: the longest that the contract says.
    pub absence: Option<Duration>,
    pub hold_on_failure: bool,
    /// The most bytes that a body may have.
    pub body_max: u64,
}

impl Ledger {
    /// Writes the inventory. See `sql/inventory.sql`.
    pub async fn write_inventory(&self, rows: &[InventoryRow<'_>]) -> Result<(), LedgerError> {
        let column = |of: fn(&InventoryRow<'_>) -> String| -> Vec<String> { rows.iter().map(of).collect() };
        let absence: Vec<Option<i64>> = rows.iter().map(|r| r.absence.map(micros)).collect();
        let body_max: Vec<i64> = rows.iter().map(|r| i64::try_from(r.body_max).unwrap_or(i64::MAX)).collect();
        let holds: Vec<bool> = rows.iter().map(|r| r.hold_on_failure).collect();
        let session = self.session().await?;
        session
            .query(
                INVENTORY,
                &[
                    &column(|r| r.operation.to_owned()),
                    &column(|r| r.destination.to_owned()),
                    &column(|r| r.effect.to_owned()),
                    &column(|r| r.contract.to_owned()),
                    &column(|r| r.meaning.to_owned()),
                    &column(|r| r.owner.to_owned()),
                    &absence,
                    &holds,
                    &body_max,
                ],
            )
            .await?;
        Ok(())
    }
}
