//! The ladder: what to try next while an outcome is unknown.

use std::time::Duration;

use super::contract::{Absence, Asking, KeyMode, Rung, Window};
use super::moment::Moment;
use super::reason::Reason;
use super::row::Row;
use super::terms::Terms;
use super::time::Timestamp;

/// The next rung, and why a resend was not it where that was asked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Climb {
    /// The first rung that is possible.
    pub rung: Rung,
    /// Why not earlier: the review age, or what stands against a resend.
    pub because: Option<Reason>,
}

/// The first rung that is possible. `resend` = whether the evidence leaves a resend open; `instead` = the
/// ladder of the contract's rule for this answer, where it has one.
pub fn climb(row: &Row, terms: &Terms, moment: &Moment, resend: bool, instead: Option<&[Rung]>) -> Climb {
    if is_overdue(row, terms, moment) {
        return Climb { rung: Rung::Review, because: Some(Reason::ReviewAfter) };
    }
    let mut because = None;
    for rung in instead.unwrap_or(&terms.contract.reconcile) {
        match rung {
            Rung::Resend if !resend => {}
            Rung::Resend => match may_resend(row, terms, moment.now) {
                Ok(()) => return Climb { rung: Rung::Resend, because },
                Err(reason) => because = Some(reason),
            },
            Rung::Lookup if terms.contract.lookup.is_some() => return Climb { rung: Rung::Lookup, because },
            Rung::Cancel if terms.contract.cancel.is_some() => return Climb { rung: Rung::Cancel, because },
            Rung::Lookup | Rung::Cancel => {}
            Rung::Review => break,
        }
    }
    Climb { rung: Rung::Review, because }
}

/// Whether the outcome has been unknown for longer than `review_after`, its destination's pauses not counted.
pub fn is_overdue(row: &Row, terms: &Terms, moment: &Moment) -> bool {
    let age = |since| moment.now.since(since).saturating_sub(moment.paused);
    row.doubt.is_some_and(|doubt| age(doubt.since) >= terms.policy.review_after)
}

/// Which budget is spent, if one is.
pub fn spent(row: &Row, terms: &Terms, now: Timestamp) -> Option<Reason> {
    if row.attempts >= terms.policy.attempts_max {
        return Some(Reason::AttemptsExhausted);
    }
    if terms.policy.affordable.is_some_and(|attempts| row.attempts >= attempts) {
        return Some(Reason::SpendExhausted);
    }
    elapsed(row, terms, now)
}

/// The elapsed budget alone: what bounds evidence that no attempt counts.
pub fn elapsed(row: &Row, terms: &Terms, now: Timestamp) -> Option<Reason> {
    (now.since(row.budget_from) >= terms.policy.elapsed_max).then_some(Reason::ElapsedExhausted)
}

/// Whether the same request may leave again at `at`, and what stands against it (R18).
pub fn may_resend(row: &Row, terms: &Terms, at: Timestamp) -> Result<(), Reason> {
    if let Some(stop) = row.stop {
        return Err(stop.into());
    }
    if row.cancel_sent {
        return Err(Reason::Neutralised);
    }
    if let Some(reason) = spent(row, terms, at) {
        return Err(reason);
    }
    if !row.sent_under.is(terms.pins) {
        return Err(Reason::PinsChanged);
    }
    match resend_ends(row, terms) {
        ResendEnds::Never => Ok(()),
        ResendEnds::At(end) if at.plus(terms.policy.timeout) <= end => Ok(()),
        ResendEnds::At(_) => Err(Reason::KeyWindowClosed),
        ResendEnds::NotAllowed => Err(Reason::NothingPromised),
    }
}

/// Until when a repeat can arrive and still be recognised.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ResendEnds {
    /// Nothing makes a repeat safe.
    NotAllowed,
    /// Until this moment of database time.
    At(Timestamp),
    /// As long as it takes.
    Never,
}

/// Until when a repeat can arrive and still be recognised. A first send that nothing dates counts as long ago.
pub fn resend_ends(row: &Row, terms: &Terms) -> ResendEnds {
    use super::contract::Effect;
    let first = row.first_sent_at.unwrap_or(Timestamp::from_micros(i64::MIN));
    match (terms.policy.effect, &terms.contract.key) {
        (Effect::Unreconcilable, _) => ResendEnds::NotAllowed,
        (Effect::ReadOnly | Effect::Idempotent, _) => ResendEnds::At(first.plus(terms.policy.resend_within)),
        (Effect::Keyed | Effect::Compensatable, None) => ResendEnds::NotAllowed,
        (Effect::Keyed | Effect::Compensatable, Some(key)) => match (key.mode, key.window) {
            (KeyMode::Natural | KeyMode::Receiver, _) => ResendEnds::At(first.plus(terms.policy.resend_within)),
            (KeyMode::Dedupe | KeyMode::Conflict, Some(Window::Forever)) => ResendEnds::Never,
            (KeyMode::Dedupe | KeyMode::Conflict, Some(Window::For(window))) => {
                ResendEnds::At(first.plus(window).minus(key.margin))
            }
            (KeyMode::Dedupe | KeyMode::Conflict, None) => ResendEnds::NotAllowed,
        },
    }
}

/// Whether an answer asked for under this claim came late enough to prove something.
pub fn is_settled(row: &Row, asking: Option<&Asking>) -> bool {
    match (asking.map(|a| a.absence), row.last_sent_at) {
        (Some(Absence::After(delay)), Some(last)) => row.claimed_at > last.plus(delay),
        (Some(Absence::Never) | None, _) | (Some(Absence::After(_)), None) => false,
    }
}

/// How long until the destination is asked (again): the first moment of the contract's timetable after `now`, which
/// counts from the last send. A timetable has no memory, so a restart doesn't start it over.
pub fn next_asking(asking: &Asking, last_sent_at: Timestamp, now: Timestamp) -> Duration {
    let passed = now.since(last_sent_at);
    let mut at = asking.first_after;
    let mut last = Duration::from_secs(30);
    for gap in &asking.repeat {
        if passed < at {
            return at - passed;
        }
        last = *gap;
        at = at.saturating_add(last);
    }
    if passed < at {
        return at - passed;
    }
    let period = last.as_nanos().max(1);
    let into = (passed - at).as_nanos() % period;
    Duration::from_nanos(u64::try_from(period - into).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn asking_follows_the_timetable_and_repeats_its_last_gap() {
        let s = Duration::from_secs;
        let asking = Asking { first_after: s(5), repeat: vec![s(30), s(300)], absence: Absence::Never };
        let t = |secs: u64| Timestamp::from_micros(0).plus(s(secs));
        let next = |now| next_asking(&asking, t(0), t(now)).as_secs();
        assert_eq!([next(0), next(5), next(34), next(35), next(334)], [5, 30, 1, 300, 1]);
        assert_eq!([next(335), next(634), next(635)], [300, 1, 300]);
    }
}
