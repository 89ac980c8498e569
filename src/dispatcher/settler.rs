//! Writes decisions down, in batches; what was overtaken becomes late testimony.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Notify, mpsc};
use tokio_util::sync::CancellationToken;

use super::delivery::Outcome;
use super::health::{Health, Who};
use super::journal::Journal;
use super::telling::Telling;
use crate::core::action::{ActionId, Step};
use crate::ledger::{LateTestimony, Ledger, LedgerError, Settlement, Standing};

/// The most decisions in one statement.
const BATCH: usize = 256;
/// After a batch of so many, more are on their way: the next one waits for them.
const BUSY: usize = 8;
const GATHER: Duration = Duration::from_millis(4);
/// The most decisions that wait for rows which somebody else has locked, and as many that wait to be tried.
const ASIDE: usize = 1024;
/// The most decisions that are taken in before those before them are written. Where more wait, those who learnt them keep
/// their slots, and nothing more is claimed.
const TAKEN_IN: usize = 4 * BATCH;
/// Between two tries at a row that somebody else has locked, where the ledger doesn't answer.
const UNWELL: Duration = Duration::from_secs(1);

/// What did not end as it should have.
#[derive(Debug, Default)]
pub struct Unsettled {
    /// Actions whose send was cut short.
    pub cut_short: Vec<ActionId>,
    /// Others, whose decision could not be written.
    pub unwritten: Vec<ActionId>,
}

/// Writes what arrives until the sender is gone.
pub struct Settler {
    /// Where.
    pub ledger: Ledger,
    /// Whether everything so far could be written.
    pub health: Health,
    /// What is said of it.
    pub telling: Arc<Telling>,
    /// What the ledger does not have.
    pub journal: Journal,
    /// Rings where a serial queue has moved on, for the claims.
    pub turns: Arc<Notify>,
    /// The drain's time has run out, and the time for last words too: stop trying.
    pub give_up: CancellationToken,
}

impl Settler {
    /// Runs until every sender is gone.
    pub async fn run(self, outcomes: mpsc::Receiver<Outcome>) -> Unsettled {
        let (aside, locked) = mpsc::channel(ASIDE);
        let (mut all, still_locked) = tokio::join!(self.settle_all(outcomes, Some(aside)), self.settle_locked(locked));
        all.unwritten.extend(still_locked);
        all
    }

    async fn settle_all(
        &self,
        mut outcomes: mpsc::Receiver<Outcome>,
        aside: Option<mpsc::Sender<Outcome>>,
    ) -> Unsettled {
        let (mut all, mut open) = (Unsettled::default(), Vec::with_capacity(BATCH));
        let mut busy = false;
        loop {
            let known = open.len();
            if open.is_empty() && outcomes.recv_many(&mut open, BATCH).await == 0 {
                return all;
            }
            // One statement for forty costs little more than one for ten; the few don't wait.
            if busy {
                tokio::time::sleep(GATHER).await;
            }
            // What came during an outage goes along: nothing is claimed before all of it has been written.
            while open.len() < TAKEN_IN
                && let Ok(outcome) = outcomes.try_recv()
            {
                open.push(outcome);
            }
            busy = open.len() >= BUSY;
            all.cut_short.extend(open[known..].iter().filter(|o: &&Outcome| o.cut_short).map(|o| o.claimed.intent.id));
            all.unwritten.extend(self.settle_some(&mut open, aside.as_ref()).await);
            if open.is_empty() && outcomes.is_empty() {
                self.health.well(Who::Settles);
            }
        }
    }

    /// In turn, for as long as their rows are locked. Each try waits for the lock itself; no pause lies between two, in
    /// which a claim that passes by could take a row whose lease has ended.
    async fn settle_locked(&self, mut locked: mpsc::Receiver<Outcome>) -> Vec<ActionId> {
        let (mut lost, mut waiting) = (Vec::new(), VecDeque::new());
        loop {
            if waiting.is_empty() {
                match locked.recv().await {
                    Some(outcome) => waiting.push_back(outcome),
                    None => return lost,
                }
            }
            while waiting.len() < ASIDE
                && let Ok(outcome) = locked.try_recv()
            {
                waiting.push_back(outcome);
            }
            let mut one: Vec<Outcome> = waiting.pop_front().into_iter().collect();
            lost.extend(self.settle_some(&mut one, None).await);
            waiting.extend(one);
        }
    }

    /// One round, and a wait where the ledger doesn't answer; what is left in `open` wants another. Returns what was
    /// given up.
    async fn settle_some(&self, open: &mut Vec<Outcome>, aside: Option<&mpsc::Sender<Outcome>>) -> Vec<ActionId> {
        let named: Vec<ActionId> = open.iter().filter(|o| !o.cut_short).map(|o| o.claimed.intent.id).collect();
        let mut batch: Vec<Outcome> = open.drain(..open.len().min(BATCH)).collect();
        let round = async {
            let mut locked = Vec::new();
            let done = self.settle_once(&mut batch, &mut locked).await;
            // Those in front have waited longest.
            batch.append(open);
            open.append(&mut batch);
            for outcome in locked {
                match aside {
                    None => open.push(outcome),
                    Some(aside) => {
                        if let Err(full) = aside.try_send(outcome) {
                            open.push(full.into_inner());
                        }
                    }
                }
            }
            match (done, aside) {
                (Ok(()), Some(_) | None) => {}
                (Err(error), Some(_)) => {
                    if error.is_of_the_ledger() {
                        // What was prepared in them may be what is refused.
                        self.ledger.close_idle_sessions();
                    }
                    let wait = self.health.lost(Who::Settles, &error);
                    self.journal.hurry();
                    tokio::time::sleep(wait).await;
                }
                // Claims go on beside a locked row, so its outage is not theirs.
                (Err(error), None) => {
                    self.health.look_at(&error);
                    tokio::time::sleep(UNWELL).await;
                }
            }
        };
        tokio::select! {
            () = round => return Vec::new(),
            () = self.give_up.cancelled() => {}
        }
        open.clear();
        named
    }

    /// What is left in `open` wants another round, and so does `locked` when somebody else lets go of its rows. Errors
    /// are of the session or of the ledger as a whole; a statement that the server refuses is taken apart.
    async fn settle_once(&self, open: &mut Vec<Outcome>, locked: &mut Vec<Outcome>) -> Result<(), LedgerError> {
        let settlements: Vec<Settlement> = open.iter().map(Outcome::settlement).collect();
        let settle = self.ledger.settle(&settlements);
        let settle = self.health.unless_slow(Who::Settles, settle, || self.journal.hurry());
        let written = match settle.await {
            Ok(written) => written,
            Err(error) if error.is_session() => return Err(error),
            Err(_) if open.len() > 1 => return self.one_by_one(open, locked).await,
            Err(error) if error.is_of_the_ledger() => return Err(error),
            Err(error) => {
                self.refused(open.drain(..), &error, locked);
                return Ok(());
            }
        };
        if settlements.iter().any(Settlement::leaves_queue) {
            self.turns.notify_one();
        }
        let mut missing: Vec<Outcome> = Vec::new();
        for outcome in open.drain(..) {
            if written.contains(&outcome.claimed.row.attempt) {
                self.journal.forget(outcome.claimed.row.attempt);
                self.telling.settled(&outcome);
            } else {
                missing.push(outcome);
            }
        }
        if missing.is_empty() {
            return Ok(());
        }
        let asked: Vec<&Settlement> = settlements.iter().filter(|s| !written.contains(&s.row.attempt)).collect();
        let standing = match self.ledger.standing(&asked).await {
            Ok(standing) => standing,
            Err(error) if error.is_session() || error.is_of_the_ledger() => {
                *open = missing;
                return Err(error);
            }
            Err(error) => {
                self.refused(missing, &error, locked);
                return Ok(());
            }
        };
        let mut late = Vec::new();
        for mut outcome in missing {
            match standing.get(&outcome.claimed.row.attempt) {
                Some(Standing::SettledBefore) => {
                    self.journal.forget(outcome.claimed.row.attempt);
                    self.telling.settled(&outcome);
                }
                Some(Standing::Changed(row)) => {
                    outcome.claimed.row.clone_from(row);
                    outcome.decide_again();
                    open.push(outcome);
                }
                Some(Standing::Overtaken) if outcome.tried == Some(Step::Send) => late.push(outcome),
                // Only a send testifies.
                Some(Standing::Overtaken) => {
                    self.journal.forget(outcome.claimed.row.attempt);
                    self.telling.overtaken(&outcome);
                }
                // There is no row to add to, but a send has left: the log is all that tells of it.
                None => {
                    self.journal.forget(outcome.claimed.row.attempt);
                    match outcome.tried {
                        Some(Step::Send) => self.telling.late(&outcome, None),
                        Some(Step::Lookup | Step::Cancel | Step::Conclude | Step::Review) | None => {
                            self.telling.overtaken(&outcome);
                        }
                    }
                }
            }
        }
        self.testify_all(late, open, locked).await
    }

    async fn testify_all(
        &self,
        mut late: Vec<Outcome>,
        open: &mut Vec<Outcome>,
        locked: &mut Vec<Outcome>,
    ) -> Result<(), LedgerError> {
        while let Some(outcome) = late.pop() {
            let Some(history) = outcome.history() else { continue };
            let pins = outcome.route.operation.terms.pins;
            let told = LateTestimony::of(&outcome.claimed, &outcome.finding, pins, &history);
            match self.ledger.testify(told).await {
                Ok(meaning) => {
                    self.journal.forget(outcome.claimed.row.attempt);
                    self.telling.late(&outcome, meaning);
                    if outcome.claimed.lane.is_some() {
                        self.turns.notify_one();
                    }
                }
                Err(error) if error.is_session() => {
                    open.push(outcome);
                    open.append(&mut late);
                    return Err(error);
                }
                Err(error) => self.refused([outcome], &error, locked),
            }
        }
        Ok(())
    }

    /// One bad row must not hold up the others. What is refused of all of them is the matter of none.
    async fn one_by_one(&self, open: &mut Vec<Outcome>, locked: &mut Vec<Outcome>) -> Result<(), LedgerError> {
        let (mut rest, mut bad) = (std::mem::take(open), Vec::new());
        let (mut why, mut some_are_taken) = (None, false);
        while let Some(outcome) = rest.pop() {
            let (mut one, locked_before) = (vec![outcome], locked.len());
            match Box::pin(self.settle_once(&mut one, locked)).await {
                Ok(()) => {
                    some_are_taken |= locked.len() == locked_before;
                    open.append(&mut one);
                }
                Err(error) if error.is_of_the_ledger() => {
                    bad.append(&mut one);
                    why = Some(error);
                }
                Err(error) => {
                    [&mut one, &mut rest, &mut bad].into_iter().for_each(|left| open.append(left));
                    return Err(error);
                }
            }
        }
        match why {
            Some(error) if some_are_taken => {
                self.refused(bad, &error, locked);
                Ok(())
            }
            Some(error) => {
                open.append(&mut bad);
                Err(error)
            }
            None => Ok(()),
        }
    }

    /// The server refused what concerns these rows alone. A lock passes; anything else does not, and the row is left to
    /// lapse, which is doubt.
    fn refused(&self, outcomes: impl IntoIterator<Item = Outcome>, error: &LedgerError, locked: &mut Vec<Outcome>) {
        for outcome in outcomes {
            if error.passes() {
                locked.push(outcome);
            } else {
                self.journal.forget(outcome.claimed.row.attempt);
                self.telling.refused(&outcome, error);
            }
        }
    }
}
