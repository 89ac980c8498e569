//! Claims whose answers never came: what they took is given back as soon as the ledger can be asked, instead of lapsing
//! into doubt. Nothing of it was sent, and nobody but the worker that claimed can know that.
//!
//! The server may still be carrying such a claim out when it is asked the first time, so it is asked again until the
//! claim is found or its time is over.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::clock::Uptime;
use crate::ledger::{ClaimMark, Ledger, LedgerError};
use crate::log::events;

/// The longest that a statement of ours runs (`statement_timeout`): a claim that has taken nothing by then never will,
/// unless its request is on its way for longer.
const LONGEST_CLAIM: Duration = Duration::from_secs(30);
/// Between two looks for one claim; doubles up to [`LONGEST_WAIT`].
const SHORTEST_WAIT: Duration = Duration::from_millis(250);
const LONGEST_WAIT: Duration = Duration::from_secs(5);

/// A claim that has been asked for.
#[derive(Clone, Copy, Debug)]
struct Asked {
    mark: ClaimMark,
    at: Uptime,
    /// How long it may take until its leases have ended, from when the server has it.
    time: Duration,
    /// When its leases have ended even where it was carried out at the last moment: then whoever finds its rows takes them.
    until: Uptime,
    /// When it is looked for next.
    next: Uptime,
    wait: Duration,
    /// Its answer is not awaited any more.
    lost: bool,
}

/// Claims that have been asked for and not answered.
#[derive(Debug, Default)]
pub struct Orphans(Mutex<Vec<Asked>>);

impl Orphans {
    /// A claim is asked for now, with leases of this length at most. Returns the mark to claim under.
    pub fn ask(&self, longest_lease: Duration) -> ClaimMark {
        let (mark, at) = (ClaimMark::new(), Uptime::now());
        let time = LONGEST_CLAIM.saturating_add(longest_lease);
        self.lock().push(Asked { mark, at, time, until: at.plus(time), next: at, wait: SHORTEST_WAIT, lost: false });
        mark
    }

    /// It has been answered.
    pub fn answered(&self, mark: ClaimMark) {
        self.lock().retain(|asked| asked.mark != mark);
    }

    /// No answer will come any more.
    pub fn lost(&self, mark: ClaimMark) {
        for asked in self.lock().iter_mut().filter(|asked| asked.mark == mark) {
            // What a proxy held back until now may reach the server now.
            (asked.lost, asked.until) = (true, Uptime::now().plus(asked.time));
        }
    }

    /// Those that no answer will come to any more.
    pub fn lost_marks(&self) -> Vec<ClaimMark> {
        self.lock().iter().filter(|asked| asked.lost).map(|asked| asked.mark).collect()
    }

    /// When the next look is due.
    pub fn next_look_in(&self) -> Duration {
        self.lock().iter().filter(|asked| asked.lost).map(|asked| asked.next.left()).min().unwrap_or(Duration::MAX)
    }

    /// Gives back what can be found of the lost claims whose next look is due.
    pub async fn give_back(&self, ledger: &Ledger) -> Result<(), LedgerError> {
        let due: Vec<Asked> = self.lock().iter().filter(|asked| asked.lost && asked.next.is_over()).copied().collect();
        for asked in due {
            let found = ledger.give_back(ledger.worker(), asked.mark, Uptime::now().since(asked.at)).await?;
            if found > 0 {
                events::claims_given_back(found);
            }
            if found > 0 || asked.until.is_over() {
                self.answered(asked.mark);
            } else {
                self.later(asked.mark);
            }
        }
        Ok(())
    }

    /// At the end of a daemon: looks once more for every claim that was not answered, within the bound.
    pub async fn give_back_all(&self, ledger: &Ledger, within: Duration) {
        for asked in self.lock().iter_mut() {
            (asked.lost, asked.next) = (true, asked.at);
        }
        ledger.close_idle_sessions();
        // What cannot be given back now lapses, and so does what a claim takes after this.
        let _ = tokio::time::timeout(within, self.give_back(ledger)).await;
    }

    fn later(&self, mark: ClaimMark) {
        for asked in self.lock().iter_mut().filter(|asked| asked.mark == mark) {
            asked.next = Uptime::now().plus(asked.wait);
            asked.wait = (asked.wait * 2).min(LONGEST_WAIT);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Asked>> {
        // Each change is a single step.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
