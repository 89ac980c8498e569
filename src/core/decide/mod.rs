//! What a finding means for the row it was learnt about.
//!
//! | evidence | not in doubt | in doubt |
//! |---|---|---|
//! | Accepted, Found, Proof | succeeded (held after a cancel by key) | same |
//! | Mismatch, KeyConflict | unknown, held | same |
//! | NotSent | pending, given back; elapsed spent → terminal | unknown → ladder, doubt unchanged |
//! | Deferred | retryable; budget spent → terminal | unknown → ladder, doubt unchanged |
//! | Blocked | retryable, not counted; elapsed spent → terminal | unknown → ladder, doubt unchanged |
//! | Rejected | terminal | ladder without resend; terminal only as a replay under unchanged pins in the open window |
//! | InFlight, NoAnswer, UnknownAnswer | unknown → ladder | same |
//! | Lapsed | by budgets pending | unknown → ladder (the claim has counted it and set the doubt) |
//! | Absent, settled | as Inconclusive | changed pins → held; stopped or cancelled by key → terminal; else by budgets pending |
//! | Neutralised, settled | unknown, held | changed pins → held; else terminal `neutralised` |
//! | Absent or Neutralised too early, Inconclusive | lookup: stopped → terminal, else by budgets pending; cancel: held | ask again |
//! | Stopped | terminal | ladder without resend |
//! | Spent, Unsendable | terminal | ladder without resend |
//! | RungGone | by budgets pending; after a cancel by key terminal | ladder without resend |

mod counted;
mod delay;

use std::time::Duration;

use super::action::Step;
use super::contract::{Contract, KeyMode, Rung, Window};
use super::evidence::{Evidence, Finding};
use super::ladder::{self, Climb};
pub use super::moment::Moment;
use super::next_step::step_of;
use super::reason::Reason;
use super::row::{Doubt, Row};
use super::terms::Terms;
use super::time::Timestamp;
use counted::{after, proves_unsent};
use delay::{delay, step_delay};

/// What becomes of the row.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Transition {
    /// Where it stands now.
    pub next: Next,
    /// Why.
    pub reason: Option<Reason>,
    /// The destination's reference.
    pub receipt: Option<String>,
    /// Sends that counted, this one included.
    pub attempts: u32,
    /// The doubt that remains. `None` in every state but unknown.
    pub doubt: Option<Doubt>,
    /// What becomes of the sent times.
    pub sent: SentTimes,
    /// The operator's `send_again` was not used up: nothing left.
    pub override_back: bool,
}

/// Where a row stands after a decision.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs, reason = "the states of core::action::State, with when and what next")]
pub enum Next {
    Succeeded,
    TerminalFailure,
    Pending {
        delay: Duration,
    },
    RetryableFailure {
        delay: Duration,
    },
    /// Unknown, and this is tried next.
    Unknown {
        step: Step,
        delay: Duration,
    },
    /// Unknown, and only a person can decide.
    Held,
}

/// What becomes of `first_sent_at` and `last_sent_at`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SentTimes {
    /// As they are.
    Keep,
    /// The send is over: nothing of it can leave any more.
    Ended,
    /// Nothing was sent: as before the claim.
    GivenBack,
    /// Nothing that was sent is in doubt any more.
    Cleared,
}

/// What a finding means.
pub fn decide(row: &Row, finding: &Finding, terms: &Terms, moment: Moment) -> Transition {
    let in_doubt = row.doubt.is_some();
    let row = &after(row, finding, moment);
    let now = moment.now;
    let spent = |otherwise| ladder::spent(row, terms, now).map_or(otherwise, Verdict::Fail);
    let elapsed = |otherwise| ladder::elapsed(row, terms, now).map_or(otherwise, Verdict::Fail);
    let climb = |resend| Verdict::Climb(ladder::climb(row, terms, &moment, resend, finding.then.as_deref()));
    let same_pins = row.sent_under.is(terms.pins);
    let hold = |reason| Verdict::Hold(reason);
    // The key is spent: what did not happen is not tried again.
    let unless_neutralised = |otherwise| if row.cancel_sent { Verdict::Fail(Reason::Neutralised) } else { otherwise };
    let stopped_or = |otherwise| row.stop.map_or(otherwise, |stop| Verdict::Fail(stop.into()));

    let verdict = match (finding.evidence, in_doubt) {
        (Evidence::Accepted | Evidence::Found | Evidence::Proof, _) if row.cancel_sent => hold(Reason::Contradicted),
        (Evidence::Accepted | Evidence::Found | Evidence::Proof, _) => Verdict::Succeed,
        (Evidence::Mismatch, _) => hold(finding.reason.unwrap_or(Reason::Mismatch)),
        (Evidence::KeyConflict, _) => hold(Reason::KeyConflict),

        (Evidence::NotSent, false) => elapsed(Verdict::Pend),
        (Evidence::Deferred, false) => spent(Verdict::Retry),
        (Evidence::Blocked, false) => elapsed(Verdict::Retry),
        (Evidence::NotSent | Evidence::Deferred | Evidence::Blocked, true) => climb(true),

        (Evidence::Rejected { .. }, false) => Verdict::Fail(Reason::Rejected),
        (Evidence::Rejected { replayed: true }, true) if same_pins && replay_speaks(row, &terms.contract, now) => {
            Verdict::Fail(Reason::Rejected)
        }
        (Evidence::Rejected { .. }, true) => climb(false),

        (Evidence::InFlight | Evidence::NoAnswer | Evidence::UnknownAnswer, _) => climb(true),
        (Evidence::Lapsed, true) => climb(true),
        (Evidence::Lapsed, false) => stopped_or(spent(Verdict::Pend)),

        (Evidence::Absent | Evidence::Neutralised, true) if !same_pins => hold(Reason::PinsChanged),
        (Evidence::Absent, true) if ladder::is_settled(row, terms.contract.asking(Step::Lookup)) => {
            stopped_or(unless_neutralised(spent(Verdict::Pend)))
        }
        (Evidence::Neutralised, true) if ladder::is_settled(row, terms.contract.asking(Step::Cancel)) => {
            Verdict::Fail(Reason::Neutralised)
        }
        (Evidence::Absent | Evidence::Neutralised | Evidence::Inconclusive, true) => ask_again(row, terms, &moment),
        (Evidence::Neutralised, false) => hold(Reason::Neutralised),
        (Evidence::Absent | Evidence::Inconclusive, false) if row.step == Step::Cancel => hold(Reason::Inconclusive),
        (Evidence::Absent | Evidence::Inconclusive, false) => stopped_or(spent(Verdict::Pend)),

        (Evidence::Stopped(stop), false) => Verdict::Fail(stop.into()),
        (Evidence::Spent, false) => Verdict::Fail(finding.reason.unwrap_or(Reason::AttemptsExhausted)),
        (Evidence::Unsendable, false) => Verdict::Fail(Reason::Unsendable),
        (Evidence::RungGone, false) => unless_neutralised(spent(Verdict::Pend)),
        (Evidence::Stopped(_) | Evidence::Spent | Evidence::Unsendable | Evidence::RungGone, true) => climb(false),
    };
    write_down(verdict, row, finding, terms, moment)
}

/// A claim handed back before anything was tried: the row as it was, due at once.
pub fn untouched(row: &Row) -> Transition {
    let delay = Duration::ZERO;
    Transition {
        next: match row.doubt {
            Some(_) => Next::Unknown { step: row.step, delay },
            None => Next::Pending { delay },
        },
        reason: row.stop.filter(|_| row.doubt.is_some()).map(Reason::from),
        receipt: None,
        attempts: row.attempts,
        doubt: row.doubt,
        sent: if row.doubt.is_some() { SentTimes::GivenBack } else { SentTimes::Cleared },
        override_back: row.overridden,
    }
}

/// A verdict of the table, before times and columns are worked out.
#[derive(Clone, Copy)]
enum Verdict {
    Succeed,
    Fail(Reason),
    Pend,
    Retry,
    Hold(Reason),
    Climb(Climb),
}

/// A replayed refusal speaks of every request under the key only while the key is remembered: another that is still on
/// its way would find it unknown and take effect. What is remembered may be older than `first_sent_at`: an earlier
/// send that a lookup has since proved absent, or that came before an operator's retry, may have left its refusal. No
/// send is older than the commit.
fn replay_speaks(row: &Row, contract: &Contract, now: Timestamp) -> bool {
    match (&contract.key, row.first_sent_at) {
        (Some(key), Some(first)) => match (key.mode, key.window) {
            (KeyMode::Dedupe | KeyMode::Conflict, Some(Window::For(window))) => {
                now < first.min(row.committed_at).plus(window).minus(key.margin)
            }
            (KeyMode::Dedupe | KeyMode::Conflict, Some(Window::Forever)) => true,
            (KeyMode::Dedupe | KeyMode::Conflict, None) | (KeyMode::Natural | KeyMode::Receiver, _) => false,
        },
        (None, _) | (Some(_), None) => false,
    }
}

/// Asks again by the contract's timetable; once the settle time has passed without an answer, a rung behind the
/// lookup is tried instead, where there is one.
fn ask_again(row: &Row, terms: &Terms, moment: &Moment) -> Verdict {
    if ladder::is_overdue(row, terms, moment) {
        return Verdict::Hold(Reason::ReviewAfter);
    }
    let (rung, step) = match row.step {
        Step::Cancel => (Rung::Cancel, Step::Cancel),
        Step::Send | Step::Lookup | Step::Conclude | Step::Review => (Rung::Lookup, Step::Lookup),
    };
    let ladder = &terms.contract.reconcile;
    let behind = ladder.iter().position(|r| *r == rung).map_or(&[][..], |at| &ladder[at + 1..]);
    if ladder::is_settled(row, terms.contract.asking(step)) {
        let next = ladder::climb(row, terms, moment, true, Some(behind));
        if next.rung != Rung::Review {
            return Verdict::Climb(next);
        }
    }
    Verdict::Climb(Climb { rung, because: None })
}

fn write_down(verdict: Verdict, row: &Row, finding: &Finding, terms: &Terms, moment: Moment) -> Transition {
    let (next, reason) = match verdict {
        Verdict::Succeed => (Next::Succeeded, None),
        Verdict::Fail(reason) => (Next::TerminalFailure, Some(reason)),
        Verdict::Pend => (Next::Pending { delay: delay(row, finding, terms, moment) }, finding.reason),
        Verdict::Retry => (Next::RetryableFailure { delay: delay(row, finding, terms, moment) }, finding.reason),
        Verdict::Hold(reason) => (Next::Held, Some(reason)),
        Verdict::Climb(Climb { rung, because }) => match step_of(rung) {
            Some(step) => (
                Next::Unknown { step, delay: step_delay(step, row, finding, terms, moment) },
                finding.reason.or(because),
            ),
            None => (Next::Held, because.or(finding.reason).or(Some(Reason::NothingPromised))),
        },
    };
    let unsent = proves_unsent(finding.evidence);
    let (doubt, reason, sent) = match next {
        Next::Unknown { .. } | Next::Held => (
            row.doubt.or(Some(Doubt { since: moment.now, attempt: None })),
            // A stop stays known while the outcome is unknown, also when the revocation is lifted meanwhile.
            row.stop.map(Reason::from).or(reason),
            if row.step != Step::Send && !unsent {
                SentTimes::Keep
            } else if unsent {
                SentTimes::GivenBack
            } else {
                SentTimes::Ended
            },
        ),
        Next::Pending { .. } | Next::RetryableFailure { .. } => (None, reason, SentTimes::Cleared),
        Next::Succeeded | Next::TerminalFailure => (
            None,
            reason,
            if unsent {
                SentTimes::GivenBack
            } else if row.step == Step::Send {
                SentTimes::Ended
            } else {
                SentTimes::Keep
            },
        ),
    };
    Transition {
        next,
        reason,
        receipt: finding.receipt.clone(),
        attempts: row.attempts,
        doubt,
        sent,
        // A closed row has no send to come (`closed_waits_for_nothing`).
        override_back: row.overridden
            && unsent
            && matches!(next, Next::Pending { .. } | Next::Unknown { .. } | Next::Held),
    }
}

#[cfg(test)]
mod fixture;
#[cfg(test)]
mod property_test;
#[cfg(test)]
mod table_test;
