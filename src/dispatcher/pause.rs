//! When nothing but a probe goes to a destination, and why: what its answers, or their absence, say about it. Pure: the
//! time and the dice are arguments.
//!
//! | word | a pause begins | a pause ends |
//! |---|---|---|
//! | answered | | `unreachable` and `silent`: at once; `credentials`: where a probe brought it |
//! | refused our credentials | at once | |
//! | not reached, proved unsent | with the fifth in a row: `unreachable` | |
//! | no answer once a byte may have left, or only a gateway's (502, 503, 504) | with the tenth in a row: `silent` | |
//!
//! What has not been reached takes nothing from an action but time, so a few proofs are enough. A missing answer is a
//! doubt about an action, and each further send into the silence would be another one, with an attempt of its budget: so
//! that pauses too, only later, since slow answers to some may come between those of others.
//!
//! It takes everything again at once when it is back. What it bears at once is what `max_in_flight` and `rate` say; where
//! that is too much for it just then, it says so, and is paused again.

use std::collections::VecDeque;
use std::time::Duration;

use crate::clock::Uptime;
use crate::core::reason::Reason;
use crate::core::retry::{Backoff, Dice};

/// Between probes.
const PROBES: Backoff = Backoff { initial: Duration::from_secs(1), multiplier: 2.0, max: Duration::from_secs(30) };
/// So many in a row that were not reached.
const UNREACHED: u32 = 5;
/// So many in a row without an answer, those counted that were not reached.
const SILENT: u32 = 10;
/// How many past pauses of a destination are remembered.
const REMEMBERED: usize = 64;

/// Why a destination is paused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Why {
    /// It refused our credentials, or there are none to be had. A person has to act.
    Credentials,
    /// Proved, again and again: nothing reaches it.
    Unreachable,
    /// Requests reach it, or may, and no answer comes.
    Silent,
}

impl Why {
    /// Its name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Credentials => "credentials",
            Self::Unreachable => "unreachable",
            Self::Silent => "silent",
        }
    }
}

/// What happened that began a pause, or keeps it up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Cause {
    /// Why.
    pub why: Why,
    /// What was learnt last.
    pub reason: Option<Reason>,
    /// HTTP status, where an answer came.
    pub status: Option<u16>,
}

/// What one request has said about its destination.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Word {
    /// It answered.
    Answered,
    /// It cannot be used, or may not.
    Trouble(Cause),
    /// It was asked something and nothing came back; whether it was reached is not told.
    Unheard,
    /// Nothing: no request was made.
    Nothing,
}

/// A pause that goes on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pause {
    /// Why.
    pub cause: Cause,
    /// From when on.
    pub since: Uptime,
    /// When the next probe is due.
    pub next_probe: Uptime,
    /// Probes that did not end it.
    pub probes: u32,
    /// A probe is under way, until then at most: the end of its lease, whatever becomes of who carries it out.
    probing_until: Option<Uptime>,
    /// Waits so far, for the length of the next one.
    waits: u32,
}

impl Pause {
    fn begin(cause: Cause, now: Uptime, dice: Dice) -> Self {
        let next_probe = now.plus(PROBES.delay(1, dice));
        Self { cause, since: now, next_probe, probes: 0, probing_until: None, waits: 1 }
    }

    /// When it may be probed next: after the wait, and not beside another probe.
    pub fn waits_until(&self) -> Uptime {
        self.probing_until.map_or(self.next_probe, |end| self.next_probe.max(end))
    }

    fn probe_did_not_end_it(&mut self, now: Uptime, dice: Dice) {
        self.waits = self.waits.saturating_add(1);
        self.probes = self.probes.saturating_add(1);
        self.next_probe = now.plus(PROBES.delay(self.waits, dice));
        self.probing_until = None;
    }
}

/// What a word changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Change {
    /// Nothing that anybody has to know.
    None,
    /// A probe did not end the pause.
    Probed,
    /// The destination is paused from now on, or for another reason.
    Paused(Cause),
    /// It takes sends again.
    Resumed {
        /// Why it was paused.
        why: Why,
        /// How long.
        paused: Duration,
        /// How many probes that took.
        probes: u32,
    },
}

/// How one destination stands.
#[derive(Debug, Default)]
pub struct Standing {
    now: Option<Pause>,
    /// Beginning and end of pauses that are over.
    past: VecDeque<(Uptime, Uptime)>,
    /// Since the last answer: requests that were not reached, and those without an answer, these counted too.
    unreached: u32,
    unanswered: u32,
    /// It asked for patience until then.
    patient_until: Option<Uptime>,
}

impl Standing {
    /// The pause that goes on.
    pub fn pause(&self) -> Option<Pause> {
        self.now
    }

    /// How many requests it takes now: any number, one (a probe), or none.
    pub fn takes(&self, now: Uptime) -> u32 {
        match self.now {
            _ if self.patient_until.is_some_and(|until| now < until) => 0,
            None => u32::MAX,
            Some(pause) => u32::from(now >= pause.waits_until()),
        }
    }

    /// Whether it has been paused since then, or wants patience: what was claimed by then is no probe either.
    pub fn closed_since(&self, claimed_at: Uptime, now: Uptime) -> bool {
        self.patient_until.is_some_and(|until| now < until) || self.now.is_some_and(|pause| claimed_at < pause.since)
    }

    /// When it may take more than it does now; `None` where that is not a matter of time, as where its probe is due and
    /// nothing is there to probe with.
    pub fn opens_at(&self, now: Uptime) -> Option<Uptime> {
        let patient = self.patient_until.filter(|until| now < *until);
        let at = match (self.now, patient) {
            (None, patient) => patient,
            (Some(pause), patient) => {
                let probe = pause.waits_until();
                Some(patient.map_or(probe, |until| probe.max(until)))
            }
        };
        at.filter(|at| now < *at)
    }

    /// Nothing goes to it until then, or until the later moment it asked for before. Returns that one.
    pub fn be_patient(&mut self, until: Uptime) -> Option<Uptime> {
        let before = self.patient_until;
        self.patient_until = Some(before.map_or(until, |before| before.max(until)));
        before
    }

    /// A claim has been made, and holds until `end`: where it has been paused since before, that is the probe.
    pub fn claimed(&mut self, claimed_at: Uptime, end: Uptime) {
        if let Some(pause) = self.now.as_mut().filter(|pause| claimed_at >= pause.since) {
            pause.probing_until = Some(end);
        }
    }

    /// Its next probe is due at once, and the waits begin anew: it may not be any more as it was.
    pub fn probe_soon(&mut self, now: Uptime) {
        if let Some(pause) = &mut self.now {
            pause.next_probe = now;
            pause.waits = 0;
        }
    }

    /// How long it has been paused from `from` on.
    pub fn paused_since(&self, from: Uptime, now: Uptime) -> Duration {
        let current = self.now.map(|pause| (pause.since, now));
        let within = |(begin, end): (Uptime, Uptime)| end.since(begin.max(from));
        self.past.iter().copied().chain(current).map(within).sum()
    }

    /// What a request has said that was claimed at `claimed_at`. Those that were under way when a pause began are no
    /// probes of it.
    pub fn learnt(&mut self, word: Word, claimed_at: Uptime, now: Uptime, dice: Dice) -> Change {
        let was_probe = self.now.is_some_and(|pause| pause.probing_until.is_some() && claimed_at >= pause.since);
        match word {
            Word::Nothing => {
                if let Some(pause) = self.now.as_mut().filter(|_| was_probe) {
                    pause.probing_until = None;
                }
                Change::None
            }
            Word::Answered => {
                (self.unreached, self.unanswered) = (0, 0);
                match self.now {
                    Some(pause) if was_probe || pause.cause.why != Why::Credentials => self.resume(pause, now),
                    Some(_) | None => Change::None,
                }
            }
            Word::Unheard => self.goes_on(None, was_probe, now, dice),
            Word::Trouble(cause) => {
                self.count(cause.why);
                match self.now {
                    None if self.is_enough(cause.why) => {
                        self.now = Some(Pause::begin(cause, now, dice));
                        Change::Paused(cause)
                    }
                    None => Change::None,
                    // It is there after all, and says something else.
                    Some(pause) if cause.why == Why::Credentials && pause.cause.why != Why::Credentials => {
                        self.now = Some(Pause { since: pause.since, ..Pause::begin(cause, now, dice) });
                        Change::Paused(cause)
                    }
                    Some(_) => self.goes_on(Some(cause), was_probe, now, dice),
                }
            }
        }
    }

    fn count(&mut self, why: Why) {
        match why {
            Why::Credentials => (self.unreached, self.unanswered) = (0, 0),
            Why::Unreachable => {
                self.unreached = self.unreached.saturating_add(1);
                self.unanswered = self.unanswered.saturating_add(1);
            }
            Why::Silent => {
                self.unreached = 0;
                self.unanswered = self.unanswered.saturating_add(1);
            }
        }
    }

    fn is_enough(&self, why: Why) -> bool {
        match why {
            Why::Credentials => true,
            Why::Unreachable => self.unreached >= UNREACHED || self.unanswered >= SILENT,
            Why::Silent => self.unanswered >= SILENT,
        }
    }

    fn goes_on(&mut self, cause: Option<Cause>, was_probe: bool, now: Uptime, dice: Dice) -> Change {
        match self.now.as_mut().filter(|_| was_probe) {
            None => Change::None,
            Some(pause) => {
                // Refused connections become silence, or the other way round: what was learnt last is shown.
                if let Some(cause) = cause.filter(|_| pause.cause.why != Why::Credentials) {
                    pause.cause = cause;
                }
                pause.probe_did_not_end_it(now, dice);
                Change::Probed
            }
        }
    }

    fn resume(&mut self, pause: Pause, now: Uptime) -> Change {
        self.past.push_back((pause.since, now));
        if self.past.len() > REMEMBERED {
            self.past.pop_front();
        }
        self.now = None;
        Change::Resumed { why: pause.cause.why, paused: now.since(pause.since), probes: pause.probes + 1 }
    }
}

#[cfg(test)]
#[path = "pause_tests.rs"]
mod tests;
