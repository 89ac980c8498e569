//! Serial queues: turns are given between two claims, and queues that nobody would move on are looked for now and then.

use super::claimer::Claimer;
use crate::ledger::{Ledger, LedgerError};
use crate::log::events;

impl Claimer {
    /// Sees to what waits for its turn. True where there was something to do: another claim may find more. Where the
    /// database refuses it, that holds up the queues and nothing else.
    pub(super) async fn give_turns(&mut self) -> Result<bool, LedgerError> {
        match self.ledger.promote().await {
            Ok(promoted) => {
                self.queues_refused = false;
                Ok(promoted.moved > 0)
            }
            Err(error) if error.is_session() || error.is_schema() => Err(error),
            Err(error) => {
                if !std::mem::replace(&mut self.queues_refused, true) {
                    events::queues_refused(&error);
                }
                Ok(false)
            }
        }
    }
}

/// A part of the queues, from `after` on; where to go on the next time. Where the ledger doesn't answer, that is said
/// elsewhere.
pub async fn mend(ledger: &Ledger, after: Option<i64>) -> Option<i64> {
    match ledger.mend_queues(after).await {
        Ok(mended) => {
            if mended.queues > 0 {
                events::queues_mended(mended.queues);
            }
            mended.after
        }
        Err(_) => after,
    }
}
