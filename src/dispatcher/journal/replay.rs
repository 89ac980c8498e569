//! What a journal holds at a start goes to the ledger. Doing it twice does nothing the second time: an attempt that is in
//! the history was written before, whoever wrote it.

use std::time::Duration;

use uuid::Uuid;

use super::Journal;
use super::record::Kept;
use crate::core::action::Step;
use crate::dispatcher::telling::Telling;
use crate::ledger::{DatabaseClock, LateTestimony, Ledger, LedgerError, Settlement, Standing};
use crate::log::events::{self, About, Replayed};

/// Between two tries at a row that somebody else has locked; each try waits for the lock itself.
const LOCKED: Duration = Duration::from_millis(100);
/// So many tries in silence. Nothing is claimed meanwhile, so then it is an outage, and told as one.
const TRIES: u32 = 8;
/// How far back claims of a worker that is gone are looked for: longer than any lease.
const LONG_AGO: Duration = Duration::from_secs(86_400);

/// What became of an outcome.
enum Fate {
    Written,
    Late,
    /// The ledger had it, or the row has gone on without it.
    Known,
    Refused,
}

impl Journal {
    /// Writes down what was in the file at the start. Nothing must be claimed before this has returned `Ok`; where the
    /// ledger doesn't answer it goes on where it stopped.
    ///
    /// # Errors
    /// Of the session and of the ledger as a whole, and where somebody else keeps a row locked; and where the file was
    /// written for another ledger.
    pub(in crate::dispatcher) async fn replay(&self, ledger: &Ledger, id: Uuid) -> Result<(), LedgerError> {
        let Some(inner) = &self.0 else { return Ok(()) };
        inner.lock().ledger = Some(id);
        let (mut replayed, telling) = (Replayed::default(), Telling::default());
        let done = self.replay_frames(ledger, id, &mut replayed, &telling).await;
        telling.tell_counts();
        done?;
        if replayed != Replayed::default() {
            events::journal_replayed(&replayed);
            inner.clear().await;
        }
        Ok(())
    }

    async fn replay_frames(
        &self,
        ledger: &Ledger,
        id: Uuid,
        replayed: &mut Replayed,
        telling: &Telling,
    ) -> Result<(), LedgerError> {
        let Some(inner) = &self.0 else { return Ok(()) };
        loop {
            let Some(frame) = inner.lock().found.first().cloned() else { break };
            if frame.ledger != id {
                return Err(LedgerError::OtherLedger { theirs: frame.ledger, ours: id });
            }
            let theirs = ledger.on_behalf_of(&frame.worker);
            for kept in &frame.outcomes {
                replayed.outcomes += 1;
                match write_down(&theirs, kept, telling).await? {
                    Fate::Written => replayed.written += 1,
                    Fate::Late => replayed.late += 1,
                    Fate::Known => replayed.known += 1,
                    Fate::Refused => replayed.refused += 1,
                }
            }
            for mark in &frame.unanswered {
                replayed.given_back += ledger.give_back(&frame.worker, *mark, LONG_AGO).await?;
            }
            inner.lock().found.remove(0);
        }
        Ok(())
    }
}

async fn write_down(ledger: &Ledger, kept: &Kept, telling: &Telling) -> Result<Fate, LedgerError> {
    let mut tries = 0;
    loop {
        tries += 1;
        match try_to_write_down(ledger, kept, telling).await {
            Err(error) if error.passes() && tries < TRIES => tokio::time::sleep(LOCKED).await,
            Err(error) if error.passes() => return Err(error),
            Err(error) if error.is_session() || error.is_of_the_ledger() => return Err(error),
            Err(error) => {
                telling.refused_of(about(kept), kept.evidence, &error);
                return Ok(Fate::Refused);
            }
            Ok(fate) => return Ok(fate),
        }
    }
}

async fn try_to_write_down(ledger: &Ledger, kept: &Kept, telling: &Telling) -> Result<Fate, LedgerError> {
    let clock = ledger.clock().await?;
    let action = kept.settlement.action;
    let settlement = aged(kept, clock);
    if ledger.settle(std::slice::from_ref(&settlement)).await?.contains(&settlement.row.attempt) {
        return Ok(Fate::Written);
    }
    let standing = ledger.standing(&[&settlement]).await?;
    let sent = settlement.history.as_ref().filter(|history| history.kind == Step::Send);
    let receipt = settlement.transition.receipt.as_deref().unwrap_or_default();
    match (standing.get(&settlement.row.attempt), sent) {
        (Some(Standing::SettledBefore), _) | (None, None) => Ok(Fate::Known),
        // There is no row to add to, but a send has left: the log is all that tells of it.
        (None, Some(_)) => {
            telling.testified(about(kept), kept.evidence, receipt, None);
            Ok(Fate::Late)
        }
        // Only a send testifies. Where the row is still that worker's, its claim lapses and finds what this has told.
        (Some(Standing::Changed(_) | Standing::Overtaken), Some(history)) => {
            let told = LateTestimony {
                action,
                attempt: settlement.row.attempt,
                fence: settlement.fence,
                number: settlement.row.attempts.saturating_add(1),
                evidence: kept.evidence,
                receipt: settlement.transition.receipt.as_deref(),
                pins: kept.pins,
                history,
                left: (clock.at_most_since(settlement.row.claimed_at), {
                    clock.at_least_since(settlement.row.claimed_at.plus(kept.timeout))
                }),
            };
            let meaning = ledger.testify(told).await?;
            telling.testified(about(kept), kept.evidence, receipt, meaning);
            Ok(Fate::Late)
        }
        (Some(Standing::Changed(_) | Standing::Overtaken), None) => Ok(Fate::Known),
    }
}

/// With the time since its claim.
fn aged(kept: &Kept, clock: DatabaseClock) -> Settlement {
    let mut settlement = kept.settlement.clone();
    if let Some(history) = &mut settlement.history {
        history.started_ago = clock.at_most_since(settlement.row.claimed_at);
    }
    settlement
}

fn about(kept: &Kept) -> About<'_> {
    About {
        action: kept.settlement.action,
        operation: &kept.operation,
        destination: &kept.destination,
        attempt: kept.settlement.transition.attempts,
        fence: kept.settlement.fence,
    }
}
