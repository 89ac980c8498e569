//! What is said about rows once the ledger has agreed: the first few of a kind in full, the rest as counts, and how a
//! destination's answers are, once each way.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::delivery::Outcome;
use super::restraint::{Line, Restraint};
use super::tally::Tally;
use super::trouble::{Change, Trouble, Word};
use crate::clock::Uptime;
use crate::core::action::Step;
use crate::core::decide::Next;
use crate::core::evidence::Evidence;
use crate::core::late::Testimony;
use crate::core::reason::Reason;
use crate::log::events::{self, About, Counted, Learnt};

/// Counts are told at least so often, and not more often than that, whatever the interval of the figures.
const LONGEST: Duration = Duration::from_secs(60);
const SHORTEST: Duration = Duration::from_secs(1);

/// What has been said, by destination.
#[derive(Debug, Default)]
pub struct Telling {
    tally: Arc<Tally>,
    told: Mutex<BTreeMap<String, Told>>,
}

#[derive(Debug)]
struct Told {
    restraint: Restraint,
    trouble: Trouble,
    /// What was learnt by the last one that was only counted.
    last: Option<(&'static str, Option<u16>, String)>,
}

fn about(outcome: &Outcome) -> About<'_> {
    About {
        action: outcome.claimed.intent.id,
        operation: &outcome.route.operation.name,
        destination: &outcome.route.operation.target,
        attempt: outcome.transition.attempts,
        fence: outcome.claimed.fence,
    }
}

fn learnt(outcome: &Outcome) -> Learnt<'_> {
    Learnt {
        evidence: outcome.finding.evidence.as_str(),
        reason: outcome.transition.reason.map_or("", Reason::code),
        status: outcome.finding.status,
        detail: outcome.finding.detail.as_deref().unwrap_or_default(),
    }
}

impl Telling {
    /// Nothing has been said yet.
    pub fn new(tally: Arc<Tally>) -> Self {
        Self { tally, told: Mutex::default() }
    }

    /// Tells what was counted, every interval, for as long as it is asked to.
    pub async fn rounds(self: Arc<Self>, interval: Duration) {
        loop {
            tokio::time::sleep(interval.clamp(SHORTEST, LONGEST)).await;
            self.round();
        }
    }

    /// A decision has been written.
    pub fn settled(&self, outcome: &Outcome) {
        self.hear(outcome);
        let (about, learnt) = (about(outcome), learnt(outcome));
        let receipt = outcome.transition.receipt.as_deref().unwrap_or_default();
        let state = match outcome.transition.next {
            Next::Succeeded => {
                self.tally.delivered();
                events::delivered(about, receipt);
                if let Some(detail) = outcome.finding.detail.as_deref()
                    && self.allows(Line::Unread, about, learnt)
                {
                    events::receipt_unread(about, detail);
                }
                "succeeded"
            }
            Next::TerminalFailure => {
                if self.allows(Line::NotDelivered, about, learnt) {
                    events::not_delivered(about, learnt);
                }
                "terminal_failure"
            }
            Next::Pending { delay } => {
                events::postponed(about, learnt, delay);
                "pending"
            }
            Next::RetryableFailure { delay } => {
                events::postponed(about, learnt, delay);
                "retryable_failure"
            }
            Next::Unknown { step, delay } => {
                if self.allows(Line::Unknown, about, learnt) {
                    events::outcome_unknown(about, learnt, step, delay);
                }
                return;
            }
            Next::Held => {
                if self.allows(Line::Held, about, learnt) {
                    events::held(about, learnt);
                }
                return;
            }
        };
        if let Some(doubt) = outcome.claimed.row.doubt
            && self.allows(Line::Resolved, about, learnt)
        {
            let by = match (outcome.finding.evidence, outcome.tried) {
                (Evidence::Proof, _) => "late testimony",
                (_, Some(Step::Send)) => "resend",
                (_, Some(Step::Lookup)) => "lookup",
                (_, Some(Step::Cancel)) => "cancel",
                (_, Some(Step::Conclude | Step::Review) | None) => "conclusion",
            };
            let unknown = outcome.claimed.database_now().since(doubt.since);
            events::outcome_resolved(about, by, state, unknown, receipt);
        }
    }

    /// Late testimony has been written, or its row is gone.
    pub fn late(&self, outcome: &Outcome, testimony: Option<Testimony>) {
        self.hear(outcome);
        let receipt = outcome.finding.receipt.as_deref().unwrap_or_default();
        self.testified(about(outcome), outcome.finding.evidence, receipt, testimony);
    }

    /// The same of whatever claim.
    pub fn testified(&self, about: About<'_>, evidence: Evidence, receipt: &str, testimony: Option<Testimony>) {
        let meaning = match testimony {
            // Nothing but this line tells of it, so it is not counted away.
            None => return events::late_testimony(about, evidence.as_str(), "the ledger does not have the action"),
            Some(Testimony::Record) => "recorded",
            Some(Testimony::Close) => "succeeded",
            Some(Testimony::Wait) => "proof waits for whoever holds the action",
            Some(Testimony::Hold) => "held for review",
            Some(Testimony::ClearToPending | Testimony::ClearToRetryable) => "doubt cleared",
            Some(Testimony::Doubt) => "outcome unknown",
            Some(Testimony::Contradicts) => return events::contradicted(about, receipt),
        };
        self.told_late(about, evidence, meaning);
    }

    /// A claim was overtaken and has nothing to say.
    pub fn overtaken(&self, outcome: &Outcome) {
        self.told_late(about(outcome), outcome.finding.evidence, "nothing was sent under it");
    }

    /// The ledger refused a decision; the row is left to lapse.
    pub fn refused(&self, outcome: &Outcome, error: &dyn Display) {
        self.refused_of(about(outcome), outcome.finding.evidence, error);
    }

    /// The same of whatever claim.
    pub fn refused_of(&self, about: About<'_>, evidence: Evidence, error: &dyn Display) {
        let learnt = Learnt { evidence: evidence.as_str(), reason: "", status: None, detail: &error.to_string() };
        if self.allows(Line::Refused, about, learnt) {
            events::settle_refused(about, error);
        }
    }

    fn told_late(&self, about: About<'_>, evidence: Evidence, meaning: &str) {
        let learnt = Learnt { evidence: evidence.as_str(), reason: "", status: None, detail: meaning };
        if self.allows(Line::Late, about, learnt) {
            events::late_testimony(about, evidence.as_str(), meaning);
        }
    }

    /// Tells what has been counted since the last time, and begins anew.
    pub fn tell_counts(&self) {
        for (destination, told) in self.lock().iter_mut() {
            told.tell_counts(destination);
        }
    }

    fn round(&self) {
        for (destination, told) in self.lock().iter_mut() {
            told.tell_counts(destination);
            match told.trouble.round() {
                Change::Over { lasted, troubled } => events::destination_well(destination, lasted, troubled),
                Change::None | Change::Begun { .. } => {}
            }
        }
    }

    /// Whether this line is written; where it is not, it stands in the next counts, and at debug.
    fn allows(&self, line: Line, about: About<'_>, learnt: Learnt<'_>) -> bool {
        let allowed = self.of(about.destination, |told| {
            let allowed = told.restraint.allows(line);
            if !allowed {
                told.last = Some((learnt.reason, learnt.status, learnt.detail.to_owned()));
            }
            allowed
        });
        if !allowed {
            events::counted(line.as_str(), about, learnt);
        }
        allowed
    }

    /// What an attempt says about how its destination's answers are.
    fn hear(&self, outcome: &Outcome) {
        let Some(word) = word(outcome) else { return };
        let route = &outcome.route;
        // That it is paused says it better; probes and what was under way add nothing.
        if word == Word::Trouble && route.pauses.is_paused(route.destination_index) {
            return;
        }
        let destination = &route.operation.target;
        match self.of(destination, |told| told.trouble.learnt(word, Uptime::now())) {
            Change::Begun { troubled, attempts, within } => {
                events::destination_troubled(destination, troubled, attempts, within, learnt(outcome));
            }
            Change::None | Change::Over { .. } => {}
        }
    }

    fn of<T>(&self, destination: &str, act: impl FnOnce(&mut Told) -> T) -> T {
        let mut all = self.lock();
        match all.get_mut(destination) {
            Some(told) => act(told),
            None => act(all.entry(destination.to_owned()).or_insert_with(Told::new)),
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Told>> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Told {
    fn new() -> Self {
        Self { restraint: Restraint::new(), trouble: Trouble::default(), last: None }
    }

    fn tell_counts(&mut self, destination: &str) {
        let of = |line| self.restraint.counted(line);
        let counted = Counted {
            unknown: of(Line::Unknown),
            resolved: of(Line::Resolved),
            not_delivered: of(Line::NotDelivered),
            late: of(Line::Late),
            unread: of(Line::Unread),
            refused: of(Line::Refused),
        };
        let held = of(Line::Held);
        let last = self.last.take();
        if counted != Counted::default() {
            let (reason, status, detail) = last.as_ref().map_or(("", None, ""), |(r, s, d)| (*r, *s, d));
            events::outcomes_counted(destination, &counted, Learnt { evidence: "", reason, status, detail });
        }
        if held > 0 {
            events::more_held(destination, held);
        }
        self.restraint.round();
    }
}

/// Whether an attempt got something out of its destination; `None` where that says nothing about the destination.
fn word(outcome: &Outcome) -> Option<Word> {
    outcome.tried?;
    // Actions that name the host themselves say nothing about one another's.
    if outcome.route.host_from_data {
        return None;
    }
    let finding = &outcome.finding;
    match finding.evidence {
        Evidence::Accepted | Evidence::Found | Evidence::Mismatch | Evidence::Rejected { .. } => Some(Word::Well),
        Evidence::KeyConflict | Evidence::InFlight | Evidence::Absent | Evidence::Neutralised => Some(Word::Well),
        Evidence::NotSent | Evidence::NoAnswer => match finding.reason {
            // That was us.
            Some(Reason::LeaseLost | Reason::KeyWindowClosed | Reason::WorkerLost) => None,
            Some(_) | None => Some(Word::Trouble),
        },
        Evidence::Deferred | Evidence::UnknownAnswer => Some(Word::Trouble),
        // A lookup may settle nothing although it was answered well.
        Evidence::Inconclusive => {
            finding.status.is_none_or(|status| status == 429 || status >= 500).then_some(Word::Trouble)
        }
        // Of the pauses.
        Evidence::Blocked => None,
        Evidence::Lapsed | Evidence::Stopped(_) | Evidence::Spent | Evidence::RungGone => None,
        Evidence::Unsendable | Evidence::Proof => None,
    }
}
