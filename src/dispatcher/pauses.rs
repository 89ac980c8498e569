//! Destinations that refuse our credentials are paused, in memory, and probed by one send or lookup at a time.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::clock::Uptime;

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

/// How many past pauses of a destination are remembered.
const REMEMBERED: usize = 64;

/// Which destinations are paused.
#[derive(Debug)]
pub struct Pauses(Mutex<Vec<Standing>>);

/// One destination.
#[derive(Debug, Default)]
struct Standing {
    now: Option<Pause>,
    /// Beginning and end of pauses that are over.
    past: VecDeque<(Uptime, Uptime)>,
}

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
    /// None is, and none is known.
    pub fn new() -> Self {
        Self(Mutex::default())
    }

    /// So many destinations are known from now on, never fewer than before.
    pub fn know(&self, destinations: usize) {
        let mut pauses = self.lock();
        let known = pauses.len();
        pauses.resize_with(known.max(destinations), Standing::default);
    }

    /// The destination is not as it was when it was paused: its next probe is due at once.
    pub fn probe_soon(&self, destination: usize) {
        if let Some(pause) = self.lock().get_mut(destination).and_then(|standing| standing.now.as_mut()) {
            pause.next_probe = Uptime::now();
            pause.wait = SHORTEST;
        }
    }

    /// How many sends each destination takes now: all, one (a probe), or none.
    pub fn open(&self) -> Vec<u32> {
        self.lock()
            .iter()
            .map(|standing| match standing.now {
                None => u32::MAX,
                Some(pause) if !pause.probing && pause.next_probe.is_over() => 1,
                Some(_) => 0,
            })
            .collect()
    }

    /// How long until the next probe; `None` where nothing is paused.
    pub fn next_probe_in(&self) -> Option<Duration> {
        self.lock().iter().filter_map(|s| s.now).filter(|p| !p.probing).map(|p| p.next_probe.left()).min()
    }

    /// A claim for the destination has been made: where it is paused, that is the probe.
    pub fn claimed(&self, destination: usize) {
        if let Some(pause) = &mut self.lock()[destination].now {
            pause.probing = true;
        }
    }

    /// A claim for the destination ended without a send: if it was the probe, the next claim is.
    pub fn not_sent(&self, destination: usize) {
        if let Some(pause) = &mut self.lock()[destination].now {
            pause.probing = false;
        }
    }

    /// How long the destination has been paused within the last `age`, since this daemon was started.
    pub fn paused_within(&self, destination: usize, age: Duration) -> Duration {
        let from = Uptime::now().minus(age);
        let pauses = self.lock();
        let standing = &pauses[destination];
        let current = standing.now.map(|pause| (pause.since, Uptime::now()));
        let within = |(begin, end): (Uptime, Uptime)| end.since(begin.max(from));
        standing.past.iter().copied().chain(current).map(within).sum()
    }

    /// What came of a request to the destination. `blocked` = it refused our credentials; `contact` = it answered.
    pub fn learnt(&self, destination: usize, blocked: bool, contact: bool) -> Change {
        let mut pauses = self.lock();
        let Standing { now: slot, past } = &mut pauses[destination];
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
                let now = Uptime::now();
                let (paused, probes) = (now.since(pause.since), pause.probes + 1);
                past.push_back((pause.since, now));
                if past.len() > REMEMBERED {
                    past.pop_front();
                }
                *slot = None;
                Change::Resumed { paused, probes }
            }
            Some(_) => Change::None,
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Standing>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pauses(destinations: usize) -> Pauses {
        let pauses = Pauses::new();
        pauses.know(destinations);
        pauses
    }

    #[test]
    fn r15_a_changed_destination_is_probed_at_once_and_more_may_become_known() {
        let pauses = pauses(1);
        for _ in 0..5 {
            pauses.learnt(0, true, true);
            pauses.claimed(0);
        }
        pauses.learnt(0, true, true);
        assert_eq!(pauses.open(), [0]);
        pauses.know(2);
        pauses.probe_soon(0);
        pauses.probe_soon(1);
        pauses.probe_soon(2);
        assert_eq!(pauses.open(), [1, u32::MAX]);
        pauses.claimed(0);
        pauses.learnt(0, true, true);
        assert!(pauses.next_probe_in().is_some_and(|wait| wait <= 2 * SHORTEST), "the waits begin anew");
    }

    #[test]
    fn r15_refused_credentials_pause_the_destination_until_a_probe_passes() {
        let pauses = pauses(2);
        assert_eq!(pauses.learnt(0, false, true), Change::None);
        assert_eq!(pauses.learnt(0, true, true), Change::Paused);
        assert_eq!(pauses.open(), [0, u32::MAX], "only this destination, and not before its probe is due");
        assert!(pauses.next_probe_in().is_some_and(|wait| wait <= SHORTEST));

        pauses.claimed(0);
        assert_eq!(pauses.learnt(0, true, true), Change::None);
        assert!(pauses.next_probe_in().is_some_and(|wait| wait > SHORTEST), "the wait has doubled");

        pauses.claimed(0);
        assert!(matches!(pauses.learnt(0, false, true), Change::Resumed { probes: 2, .. }));
        assert_eq!(pauses.open(), [u32::MAX, u32::MAX]);
    }

    #[test]
    fn r15_a_probe_that_sends_nothing_leaves_its_turn_to_the_next() {
        let pauses = pauses(1);
        pauses.learnt(0, true, true);
        pauses.claimed(0);
        assert_eq!(pauses.next_probe_in(), None);
        pauses.not_sent(0);
        assert!(pauses.next_probe_in().is_some_and(|wait| wait <= SHORTEST));
    }

    #[test]
    fn a_send_that_was_under_way_does_not_end_the_pause() {
        let pauses = pauses(1);
        pauses.learnt(0, true, true);
        assert_eq!(pauses.learnt(0, false, true), Change::None);
        assert_eq!(pauses.open(), [0]);
    }

    #[test]
    fn the_time_of_pauses_is_known_also_when_they_are_over() {
        let pauses = pauses(1);
        let hour = Duration::from_secs(3600);
        assert_eq!(pauses.paused_within(0, hour), Duration::ZERO);
        pauses.learnt(0, true, true);
        std::thread::sleep(Duration::from_millis(20));
        assert!(pauses.paused_within(0, hour) >= Duration::from_millis(20));
        pauses.claimed(0);
        pauses.learnt(0, false, true);
        assert!(pauses.paused_within(0, hour) >= Duration::from_millis(20));
        assert_eq!(pauses.paused_within(0, Duration::ZERO), Duration::ZERO, "a doubt that is younger than the pause");
    }
}
