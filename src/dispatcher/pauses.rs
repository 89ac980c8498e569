//! Destinations that refuse our credentials are paused, in memory, and probed by one send at a time.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::clock::Uptime;
use crate::core::evidence::Evidence;

/// The first probe's wait; it doubles up to [`LONGEST`].
const SHORTEST: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_secs(30);

#[derive(Clone, Copy, Debug)]
struct Pause {
    since: Uptime,
    next_probe: Uptime,
    wait: Duration,
    probes: u32,
    probing: bool,
}

/// Which destinations are paused.
#[derive(Debug)]
pub struct Pauses(Mutex<Vec<Option<Pause>>>);

/// What an answer changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Change {
    /// Nothing.
    None,
    /// The destination is paused from now on.
    Paused,
    /// It takes sends again.
    Resumed {
        /// How long it was paused.
        paused: Duration,
        /// How many probes that took.
        probes: u32,
    },
}

impl Pauses {
    /// None is.
    pub fn new(destinations: usize) -> Self {
        Self(Mutex::new(vec![None; destinations]))
    }

    /// How many sends each destination takes now: all, one (a probe), or none.
    pub fn open(&self) -> Vec<u32> {
        self.lock()
            .iter()
            .map(|pause| match pause {
                None => u32::MAX,
                Some(pause) if !pause.probing && pause.next_probe.is_over() => 1,
                Some(_) => 0,
            })
            .collect()
    }

    /// How long until the next probe; `None` where nothing is paused.
    pub fn next_probe_in(&self) -> Option<Duration> {
        self.lock().iter().flatten().filter(|p| !p.probing).map(|p| p.next_probe.left()).min()
    }

    /// A claim for the destination has been made: where it is paused, that is the probe.
    pub fn claimed(&self, destination: usize) {
        if let Some(pause) = &mut self.lock()[destination] {
            pause.probing = true;
        }
    }

    /// A claim for the destination ended without a send: if it was the probe, the next claim is.
    pub fn not_sent(&self, destination: usize) {
        if let Some(pause) = &mut self.lock()[destination] {
            pause.probing = false;
        }
    }

    /// What came of a send to the destination. `contact` = the destination answered.
    pub fn learnt(&self, destination: usize, evidence: Evidence, contact: bool) -> Change {
        let mut pauses = self.lock();
        let slot = &mut pauses[destination];
        let blocked = evidence == Evidence::Blocked;
        match slot {
            None if !blocked => Change::None,
            None => {
                let now = Uptime::now();
                let next_probe = now.plus(SHORTEST);
                *slot = Some(Pause { since: now, next_probe, wait: SHORTEST, probes: 0, probing: false });
                Change::Paused
            }
            Some(pause) if blocked || !contact => {
                // Those that were under way when the pause began are no probes.
                if pause.probing {
                    pause.wait = (pause.wait * 2).min(LONGEST);
                    pause.probes += 1;
                    pause.next_probe = Uptime::now().plus(pause.wait);
                    pause.probing = false;
                }
                Change::None
            }
            Some(pause) if pause.probing => {
                let (paused, probes) = (Uptime::now().since(pause.since), pause.probes + 1);
                *slot = None;
                Change::Resumed { paused, probes }
            }
            Some(_) => Change::None,
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Option<Pause>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn r15_refused_credentials_pause_the_destination_until_a_probe_passes() {
        let pauses = Pauses::new(2);
        assert_eq!(pauses.learnt(0, Evidence::Accepted, true), Change::None);
        assert_eq!(pauses.learnt(0, Evidence::Blocked, true), Change::Paused);
        assert_eq!(pauses.open(), [0, u32::MAX], "only this destination, and not before its probe is due");
        assert!(pauses.next_probe_in().is_some_and(|wait| wait <= SHORTEST));

        pauses.claimed(0);
        assert_eq!(pauses.learnt(0, Evidence::Blocked, true), Change::None);
        assert!(pauses.next_probe_in().is_some_and(|wait| wait > SHORTEST), "the wait has doubled");

        pauses.claimed(0);
        assert!(matches!(pauses.learnt(0, Evidence::Accepted, true), Change::Resumed { probes: 2, .. }));
        assert_eq!(pauses.open(), [u32::MAX, u32::MAX]);
    }

    #[test]
    fn r15_a_probe_that_sends_nothing_leaves_its_turn_to_the_next() {
        let pauses = Pauses::new(1);
        pauses.learnt(0, Evidence::Blocked, true);
        pauses.claimed(0);
        assert_eq!(pauses.next_probe_in(), None);
        pauses.not_sent(0);
        assert!(pauses.next_probe_in().is_some_and(|wait| wait <= SHORTEST));
    }

    #[test]
    fn a_send_that_was_under_way_does_not_end_the_pause() {
        let pauses = Pauses::new(1);
        pauses.learnt(0, Evidence::Blocked, true);
        assert_eq!(pauses.learnt(0, Evidence::Accepted, true), Change::None);
        assert_eq!(pauses.open(), [0]);
    }
}
