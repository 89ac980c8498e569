//! Before the first claim, and after every outage: whether this is our ledger, what the journal still holds, and what this
//! daemon dispatches.

use super::claimer::Claimer;
use crate::core::contract::Effect;
use crate::ledger::{InventoryRow, LedgerError, Recognised};
use crate::log::events;

impl Claimer {
    /// Compares schema and cluster, replays the journal, and writes the inventory.
    pub(super) async fn write_inventory(&self) -> Result<(), LedgerError> {
        self.ledger.check_schema().await?;
        let Recognised { ledger, readable } = self.ledger.recognise().await?;
        if !readable {
            events::cluster_unreadable();
        }
        self.journal.replay(&self.ledger, ledger).await?;
        let effect = |of| Effect::ALL.iter().find(|(e, _)| *e == of).map_or("", |(_, name)| *name);
        let rows: Vec<InventoryRow<'_>> = (self.roster.routes.iter().map(|r| &r.operation))
            .map(|operation| InventoryRow {
                operation: &operation.name,
                destination: &operation.target,
                effect: effect(operation.terms.policy.effect),
                contract: &operation.terms.contract.name,
                meaning: &operation.meaning,
                owner: &operation.owner,
                absence: operation.terms.contract.absence(),
                hold_on_failure: operation.hold_on_failure,
                body_max: self.settings.body_max_bytes,
            })
            .collect();
        self.ledger.write_inventory(&rows).await
    }
}
