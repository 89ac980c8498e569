//! Writes decisions down, in batches; what was overtaken becomes late testimony.

use std::collections::HashMap;
use std::sync::Arc;

use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;

use super::delivery::Outcome;
use super::reconnect::Outage;
use super::tally::Tally;
use super::telling;
use crate::core::action::{ActionId, Step};
use crate::ledger::{LateTestimony, Ledger, LedgerError, Settlement, Standing};
use crate::log::events;

/// The most decisions in one statement.
const BATCH: usize = 256;
/// How often a row that somebody else has locked is tried again before it is left to lapse.
const TRIES: u32 = 20;

/// Writes what arrives until the sender is gone.
pub struct Settler {
    /// Where.
    pub ledger: Ledger,
    /// From the deliveries.
    pub outcomes: mpsc::Receiver<Outcome>,
    /// Whether everything so far could be written. While it could not, nothing is claimed.
    pub healthy: watch::Sender<bool>,
    /// For the stats line.
    pub tally: Arc<Tally>,
    /// The drain's time has run out: stop trying.
    pub abandon: CancellationToken,
}

impl Settler {
    /// Runs until every sender is gone; returns the actions that were abandoned: their send was cut short, or their
    /// decision could not be written.
    pub async fn run(mut self) -> Vec<ActionId> {
        let mut lost = Vec::new();
        let mut batch = Vec::with_capacity(BATCH);
        while self.outcomes.recv_many(&mut batch, BATCH).await > 0 {
            lost.extend(batch.iter().filter(|o: &&Outcome| o.cut_short).map(|o| o.claimed.intent.id));
            lost.extend(self.settle_all(std::mem::take(&mut batch)).await);
        }
        lost
    }

    /// Until all are written, or time has run out.
    async fn settle_all(&self, mut open: Vec<Outcome>) -> Vec<ActionId> {
        let mut outage: Option<Outage> = None;
        let mut tries = 0;
        while !open.is_empty() {
            match self.settle_once(&mut open, tries).await {
                Ok(()) => {
                    tries += 1;
                    if let Some(outage) = outage.take() {
                        self.healthy.send_replace(true);
                        events::ledger_back(outage.lasted(), outage.tries());
                    }
                }
                Err(error) => {
                    if outage.is_none() {
                        self.healthy.send_replace(false);
                        events::ledger_lost(&error);
                    }
                    let wait = outage.get_or_insert_with(Outage::begin).wait();
                    tokio::select! {
                        () = tokio::time::sleep(wait) => {}
                        () = self.abandon.cancelled() => return open.iter().filter(|o| !o.cut_short).map(|o| o.claimed.intent.id).collect(),
                    }
                }
            }
        }
        Vec::new()
    }

    /// One round; what is left in `open` wants another. Errors are of the session; a statement that the server
    /// refuses is taken apart.
    async fn settle_once(&self, open: &mut Vec<Outcome>, tries: u32) -> Result<(), LedgerError> {
        let settlements: Vec<Settlement> = open.iter().map(Outcome::settlement).collect();
        let written = match self.ledger.settle(&settlements).await {
            Ok(written) => written,
            Err(error) if error.is_session() => return Err(error),
            Err(_) if open.len() > 1 => return self.one_by_one(open, tries).await,
            Err(error) => return self.refused(open, tries, error).await,
        };
        let mut missing: Vec<Outcome> = Vec::new();
        for outcome in open.drain(..) {
            if written.contains(&outcome.claimed.intent.id) {
                telling::settled(&outcome, &self.tally);
            } else {
                missing.push(outcome);
            }
        }
        if missing.is_empty() {
            return Ok(());
        }
        let by_action: HashMap<ActionId, &Settlement> = settlements.iter().map(|s| (s.action, s)).collect();
        let asked: Vec<&Settlement> =
            missing.iter().filter_map(|o| by_action.get(&o.claimed.intent.id).copied()).collect();
        let standing = match self.ledger.standing(&asked).await {
            Ok(standing) => standing,
            Err(error) => {
                *open = missing;
                return Err(error);
            }
        };
        let mut late = Vec::new();
        for mut outcome in missing {
            match standing.get(&outcome.claimed.intent.id) {
                Some(Standing::SettledBefore) => telling::settled(&outcome, &self.tally),
                Some(Standing::Changed(row)) => {
                    outcome.claimed.row.clone_from(row);
                    outcome.decide_again();
                    open.push(outcome);
                }
                Some(Standing::Overtaken) if outcome.tried == Some(Step::Send) => late.push(outcome),
                // Only a send testifies; a pruned row has nothing to add to.
                Some(Standing::Overtaken) | None => telling::overtaken(&outcome),
            }
        }
        self.testify_all(late, open).await
    }

    async fn testify_all(&self, mut late: Vec<Outcome>, open: &mut Vec<Outcome>) -> Result<(), LedgerError> {
        while let Some(outcome) = late.pop() {
            let Some(history) = outcome.history() else { continue };
            let told = LateTestimony {
                claimed: &outcome.claimed,
                finding: &outcome.finding,
                pins: outcome.route.operation.terms.pins,
                history: &history,
            };
            match self.ledger.testify(told).await {
                Ok(meaning) => telling::late(&outcome, meaning),
                Err(error) => {
                    open.push(outcome);
                    open.append(&mut late);
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    /// One bad row must not hold up the others.
    async fn one_by_one(&self, open: &mut Vec<Outcome>, tries: u32) -> Result<(), LedgerError> {
        let mut rest = std::mem::take(open);
        while let Some(outcome) = rest.pop() {
            let mut one = vec![outcome];
            let done = Box::pin(self.settle_once(&mut one, tries)).await;
            open.append(&mut one);
            if let Err(error) = done {
                open.append(&mut rest);
                return Err(error);
            }
        }
        Ok(())
    }

    /// A single row was refused. A lock passes; anything else does not, and the row is left to lapse, which is doubt.
    async fn refused(&self, open: &mut Vec<Outcome>, tries: u32, error: LedgerError) -> Result<(), LedgerError> {
        let passes = match &error {
            // lock_not_available, serialization_failure, deadlock_detected, query_canceled
            LedgerError::Refused { sqlstate, .. } => ["55P03", "40001", "40P01", "57014"].contains(&sqlstate.as_str()),
            LedgerError::Unreachable(_) | LedgerError::ReadOnly | LedgerError::NoSchema => false,
            LedgerError::Older { .. } | LedgerError::Newer { .. } => false,
            LedgerError::Unreadable { .. } | LedgerError::Migration(_) => false,
        };
        if passes && tries < TRIES {
            tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        } else {
            for outcome in open.drain(..) {
                events::settle_refused(outcome.claimed.intent.id, &error);
            }
        }
        Ok(())
    }
}
