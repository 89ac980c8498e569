//! What the application will do, drawn from a seed: which notes, when, in which session, and how each ends.

use std::collections::BTreeSet;
use std::time::Duration;

use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};

/// Application sessions at once.
pub const SESSIONS: usize = 4;
/// One note after another so far apart on average …
const PACE: Duration = Duration::from_millis(60);
/// … and all of them within this time.
const SPREAD: Duration = Duration::from_secs(12);
/// One transaction is rolled back for so many that are committed.
const COMMITTED_PER_ROLL_BACK: u32 = 9;
/// One event of so many is delivered twice.
const EVENTS_PER_REPEAT: u32 = 6;
/// How long after the first a repeated event comes, milliseconds; the least is at the same time, in another session.
const REPEAT_AFTER_MS: [u64; 3] = [0, 400, 1500];

/// How a transaction ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ending {
    /// What it wrote holds.
    Commit,
    /// It never was.
    RollBack,
}

/// One transaction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ask {
    /// When, from the beginning.
    pub at: Duration,
    /// Which note, from 1.
    pub note: u32,
    /// How it ends.
    pub ending: Ending,
}

/// Everything the application will do.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Plan {
    /// Each session's transactions, in the order of their time.
    pub sessions: Vec<Vec<Ask>>,
    /// Notes whose transaction is committed.
    pub committed: BTreeSet<u32>,
    /// Notes whose transaction is rolled back; never tried again.
    pub rolled_back: BTreeSet<u32>,
    /// Those committed notes whose event is delivered twice.
    pub twice: BTreeSet<u32>,
}

impl Plan {
    /// Draws a plan with `notes` committed notes. The same seed draws the same plan.
    pub fn draw(seed: u64, notes: u32) -> Self {
        let mut rng = StdRng::seed_from_u64(seed);
        let rolled_back_count = notes.div_ceil(COMMITTED_PER_ROLL_BACK);
        let total = notes + rolled_back_count;
        let mut numbers: Vec<u32> = (1..=total).collect();
        numbers.shuffle(&mut rng);
        let (rolled_back, committed) = numbers.split_at(rolled_back_count as usize);
        let twice = &committed[..notes.div_ceil(EVENTS_PER_REPEAT) as usize];
        let mut plan = Self {
            sessions: vec![Vec::new(); SESSIONS],
            committed: committed.iter().copied().collect(),
            rolled_back: rolled_back.iter().copied().collect(),
            twice: twice.iter().copied().collect(),
        };
        let gap = (SPREAD / total).min(PACE);
        for note in 1..=total {
            let at = gap * note + gap.mul_f64(rng.random_range(0.0..1.0));
            let ending = if plan.rolled_back.contains(&note) { Ending::RollBack } else { Ending::Commit };
            let session = note as usize % SESSIONS;
            plan.sessions[session].push(Ask { at, note, ending });
            if plan.twice.contains(&note) {
                let later = REPEAT_AFTER_MS[rng.random_range(0..REPEAT_AFTER_MS.len())];
                let at = at + Duration::from_millis(later);
                plan.sessions[(session + 1) % SESSIONS].push(Ask { at, note, ending });
            }
        }
        for asks in &mut plan.sessions {
            asks.sort_by_key(|ask| (ask.at, ask.note));
        }
        plan
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_holds_what_was_asked_for() {
        for notes in [1, 2, 40, 180, 10_000] {
            let plan = Plan::draw(7, notes);
            assert_eq!(plan.committed.len(), notes as usize);
            assert!(plan.rolled_back.is_disjoint(&plan.committed));
            assert!(plan.twice.is_subset(&plan.committed));
            let asks: Vec<Ask> = plan.sessions.iter().flatten().copied().collect();
            let count = |note: u32| asks.iter().filter(|ask| ask.note == note).count();
            if notes <= 180 {
                assert!(plan.committed.iter().all(|note| count(*note) == 1 + usize::from(plan.twice.contains(note))));
                assert!(plan.rolled_back.iter().all(|note| count(*note) == 1));
            }
            assert!(asks.iter().all(|ask| (ask.ending == Ending::RollBack) == plan.rolled_back.contains(&ask.note)));
            let last = asks.iter().map(|ask| ask.at).max().unwrap();
            assert!(last < Duration::from_secs(14), "{last:?}");
        }
    }

    #[test]
    fn a_seed_draws_one_plan() {
        assert_eq!(Plan::draw(3, 50), Plan::draw(3, 50));
        assert_ne!(Plan::draw(3, 50), Plan::draw(4, 50));
    }

    #[test]
    fn no_session_repeats_its_own_event() {
        let plan = Plan::draw(1, 180);
        for asks in &plan.sessions {
            let notes: BTreeSet<u32> = asks.iter().map(|ask| ask.note).collect();
            assert_eq!(notes.len(), asks.len());
        }
    }
}
