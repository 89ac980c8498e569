//! The table above `decide`, cell by cell; the rows of the design that one evidence splits into stand as several.

use super::fixture::*;
use super::*;
use crate::core::action::Stop;
use crate::core::contract::{Absence, Effect};
use crate::core::next_step::Plan;
use crate::core::row::SentUnder;

/// A next state without its delay.
#[derive(PartialEq, Eq, Debug)]
enum To {
    Succeeded,
    Terminal(Reason),
    Pending,
    Retryable,
    Unknown(Step),
    Held(Reason),
}

fn to(transition: &Transition) -> To {
    let reason = || transition.reason.expect("a reason");
    match transition.next {
        Next::Succeeded => To::Succeeded,
        Next::TerminalFailure => To::Terminal(reason()),
        Next::Pending { .. } => To::Pending,
        Next::RetryableFailure { .. } => To::Retryable,
        Next::Unknown { step, .. } => To::Unknown(step),
        Next::Held => To::Held(reason()),
    }
}

const STOPPED: Evidence = Evidence::Stopped(Stop::Cancelled);
const REJECTED: Evidence = Evidence::Rejected { replayed: false };
const REPLAYED: Evidence = Evidence::Rejected { replayed: true };

#[test]
fn r13_not_in_doubt_each_evidence_has_its_cell() {
    let row = fresh();
    let table = [
        (Evidence::Accepted, To::Succeeded),
        (Evidence::Found, To::Succeeded),
        (Evidence::Proof, To::Succeeded),
        (Evidence::Mismatch, To::Held(Reason::Timeout)),
        (Evidence::KeyConflict, To::Held(Reason::KeyConflict)),
        (Evidence::NotSent, To::Pending),
        (Evidence::Deferred, To::Retryable),
        (Evidence::Blocked, To::Retryable),
        (REJECTED, To::Terminal(Reason::Rejected)),
        (REPLAYED, To::Terminal(Reason::Rejected)),
        (Evidence::InFlight, To::Unknown(Step::Send)),
        (Evidence::NoAnswer, To::Unknown(Step::Send)),
        (Evidence::UnknownAnswer, To::Unknown(Step::Send)),
        (Evidence::Lapsed, To::Pending),
        (Evidence::Absent, To::Pending),
        (Evidence::Inconclusive, To::Pending),
        (Evidence::Neutralised, To::Held(Reason::Neutralised)),
        (STOPPED, To::Terminal(Reason::Cancelled)),
        (Evidence::Spent, To::Terminal(Reason::Timeout)),
        (Evidence::Unsendable, To::Terminal(Reason::Unsendable)),
        (Evidence::RungGone, To::Pending),
    ];
    for (evidence, expected) in table {
        let transition = verdict(&row, evidence);
        assert_eq!(to(&transition), expected, "{evidence:?}");
        let unknown = matches!(transition.next, Next::Unknown { .. } | Next::Held);
        assert_eq!(transition.doubt.is_some(), unknown, "{evidence:?}: doubt exactly where the outcome is unknown");
    }
}

#[test]
fn r14_in_doubt_each_evidence_has_its_cell() {
    let table = [
        (Evidence::Accepted, To::Succeeded),
        (Evidence::Found, To::Succeeded),
        (Evidence::Proof, To::Succeeded),
        (Evidence::Mismatch, To::Held(Reason::Timeout)),
        (Evidence::KeyConflict, To::Held(Reason::KeyConflict)),
        (Evidence::NotSent, To::Unknown(Step::Send)),
        (Evidence::Deferred, To::Unknown(Step::Send)),
        (Evidence::Blocked, To::Unknown(Step::Send)),
        (REJECTED, To::Unknown(Step::Lookup)),
        (REPLAYED, To::Terminal(Reason::Rejected)),
        (Evidence::InFlight, To::Unknown(Step::Send)),
        (Evidence::NoAnswer, To::Unknown(Step::Send)),
        (Evidence::UnknownAnswer, To::Unknown(Step::Send)),
        (Evidence::Lapsed, To::Unknown(Step::Send)),
        (STOPPED, To::Unknown(Step::Lookup)),
        (Evidence::Spent, To::Unknown(Step::Lookup)),
        (Evidence::Unsendable, To::Unknown(Step::Lookup)),
        (Evidence::RungGone, To::Unknown(Step::Lookup)),
    ];
    for (evidence, expected) in table {
        let transition = verdict(&doubtful(), evidence);
        assert_eq!(to(&transition), expected, "{evidence:?}");
        match transition.next {
            Next::Unknown { .. } | Next::Held => {
                assert_eq!(transition.doubt.map(|d| d.since), Some(at(905)), "{evidence:?}: the doubt keeps its age");
            }
            Next::Succeeded | Next::TerminalFailure | Next::Pending { .. } | Next::RetryableFailure { .. } => {
                assert_eq!(transition.doubt, None, "{evidence:?}");
            }
        }
    }
}

#[test]
fn r19_an_absence_is_proof_only_after_the_settle_time() {
    let asked = |claimed_at| Row { step: Step::Lookup, claimed_at, ..doubtful() };
    assert_eq!(to(&verdict(&asked(at(970)), Evidence::Absent)), To::Unknown(Step::Lookup), "60 s are not over yet");
    assert_eq!(to(&verdict(&asked(at(971)), Evidence::Absent)), To::Pending);

    let mut never = terms();
    never.contract.lookup = Some(lookup(Absence::Never));
    assert_eq!(to(&verdict_under(&asked(at(1000)), Evidence::Absent, &never)), To::Unknown(Step::Lookup));

    let stopped = Row { stop: Some(Stop::Deadline), ..asked(at(1000)) };
    assert_eq!(to(&verdict(&stopped, Evidence::Absent)), To::Terminal(Reason::Deadline));
    let spent = Row { attempts: 5, ..asked(at(1000)) };
    assert_eq!(to(&verdict(&spent, Evidence::Absent)), To::Terminal(Reason::AttemptsExhausted));
    let moved = Row { sent_under: SentUnder::These(OTHER_PINS), ..asked(at(1000)) };
    assert_eq!(to(&verdict(&moved, Evidence::Absent)), To::Held(Reason::PinsChanged));
    assert_eq!(to(&verdict(&moved, Evidence::Found)), To::Succeeded, "found counts under any pins");
    let undated = Row { last_sent_at: None, ..asked(at(1000)) };
    assert_eq!(to(&verdict(&undated, Evidence::Absent)), To::Unknown(Step::Lookup), "nothing says when it was sent");
}

#[test]
fn r19_an_inconclusive_lookup_is_asked_again_until_something_behind_it_is_possible() {
    let asked = |claimed_at| Row { step: Step::Lookup, claimed_at, ..doubtful() };
    assert_eq!(to(&verdict(&asked(at(950)), Evidence::Inconclusive)), To::Unknown(Step::Lookup));
    assert_eq!(to(&verdict(&asked(at(1000)), Evidence::Inconclusive)), To::Unknown(Step::Cancel));
    let mut last = terms();
    last.contract.reconcile = vec![Rung::Lookup, Rung::Review];
    assert_eq!(to(&verdict_under(&asked(at(1000)), Evidence::Inconclusive, &last)), To::Unknown(Step::Lookup));
}

#[test]
fn a_cancel_by_key_neutralises_only_after_its_settle_time_and_under_the_same_pins() {
    let asked = |claimed_at| Row { step: Step::Cancel, claimed_at, cancel_sent: true, ..doubtful() };
    assert_eq!(to(&verdict(&asked(at(1000)), Evidence::Neutralised)), To::Terminal(Reason::Neutralised));
    assert_eq!(to(&verdict(&asked(at(950)), Evidence::Neutralised)), To::Unknown(Step::Cancel));
    assert_eq!(to(&verdict(&asked(at(1000)), Evidence::Accepted)), To::Held(Reason::Contradicted));
    assert_eq!(to(&verdict(&asked(at(1000)), Evidence::Proof)), To::Held(Reason::Contradicted));
    let moved = Row { sent_under: SentUnder::Mixed, ..asked(at(1000)) };
    assert_eq!(to(&verdict(&moved, Evidence::Neutralised)), To::Held(Reason::PinsChanged));
    let cleared = Row { step: Step::Cancel, cancel_sent: true, ..fresh() };
    assert_eq!(to(&verdict(&cleared, Evidence::Inconclusive)), To::Held(Reason::Inconclusive));
}

#[test]
fn r14_a_replayed_refusal_speaks_only_under_the_same_pins_and_within_the_window() {
    let late = Row { first_sent_at: Some(at(0)), ..doubtful() };
    let after_window = Moment { now: at(7200), ..moment() };
    let finding = Finding::because(REPLAYED, Reason::Rejected);
    assert_eq!(to(&decide(&late, &finding, &terms(), after_window)), To::Unknown(Step::Lookup));
    let moved = Row { sent_under: SentUnder::These(OTHER_PINS), ..doubtful() };
    assert_eq!(to(&verdict(&moved, REPLAYED)), To::Unknown(Step::Lookup));
    // The refusal may be of a send that a lookup has proved absent since: older than first_sent_at.
    let older = Moment { now: at(6600), ..moment() };
    assert_eq!(to(&decide(&doubtful(), &finding, &terms(), older)), To::Unknown(Step::Lookup));
    // So may one from before an operator's retry, which moves where the budgets start.
    let retried = Row { budget_from: at(890), ..doubtful() };
    assert_eq!(to(&decide(&retried, &finding, &terms(), older)), To::Unknown(Step::Lookup));
}

#[test]
fn r18_after_a_cancel_by_key_nothing_is_ever_sent() {
    let spent = |row: Row| Row { cancel_sent: true, ..row };
    let asked = Row { step: Step::Lookup, ..spent(doubtful()) };
    assert_eq!(to(&verdict(&asked, Evidence::Absent)), To::Terminal(Reason::Neutralised));
    assert_eq!(to(&verdict(&spent(fresh()), Evidence::RungGone)), To::Terminal(Reason::Neutralised));
    for row in [spent(fresh()), spent(doubtful()), spent(Row { overridden: true, ..doubtful() })] {
        let plan = crate::core::next_step::next_step(&row, &terms());
        assert_eq!(plan, Plan::Conclude(Finding::because(Evidence::RungGone, Reason::Neutralised)));
    }
}

#[test]
fn r23_nothing_is_sent_once_the_budget_is_spent() {
    let sends = |row: &Row| crate::core::next_step::next_step(row, &terms());
    assert_eq!(sends(&fresh()), Plan::Send { not_after: None });
    let spent = |reason| Plan::Conclude(Finding::because(Evidence::Spent, reason));
    let tried = Row { attempts: terms().policy.attempts_max, ..fresh() };
    assert_eq!(sends(&tried), spent(Reason::AttemptsExhausted));
    let old = Row { claimed_at: fresh().budget_from.plus(terms().policy.elapsed_max), ..fresh() };
    assert_eq!(sends(&old), spent(Reason::ElapsedExhausted));
}

#[test]
fn r18_a_resend_needs_window_pins_budget_and_leave() {
    let next = |row: &Row| to(&verdict(row, Evidence::NoAnswer));
    assert_eq!(next(&doubtful()), To::Unknown(Step::Send));
    // 7200 s of window less 600 s of margin and 10 s of timeout: 6590 s
    let closed = Moment { now: at(900 + 6590 + 1), ..moment() };
    let no_answer = Finding::because(Evidence::NoAnswer, Reason::Timeout);
    assert_eq!(to(&decide(&doubtful(), &no_answer, &terms(), closed)), To::Unknown(Step::Lookup));
    let open = Moment { now: at(900 + 6590), ..moment() };
    assert_eq!(to(&decide(&doubtful(), &no_answer, &terms(), open)), To::Unknown(Step::Send));
    assert_eq!(next(&Row { sent_under: SentUnder::Mixed, ..doubtful() }), To::Unknown(Step::Lookup));
    assert_eq!(next(&Row { attempts: 4, ..doubtful() }), To::Unknown(Step::Lookup), "this one was the fifth");
    assert_eq!(next(&Row { stop: Some(Stop::AuthorityRevoked), ..doubtful() }), To::Unknown(Step::Lookup));
    assert_eq!(next(&Row { cancel_sent: true, ..doubtful() }), To::Unknown(Step::Lookup));
    let mut unpublished = terms();
    unpublished.contract.key.as_mut().expect("a key").window = None;
    assert_eq!(to(&verdict_under(&doubtful(), Evidence::NoAnswer, &unpublished)), To::Unknown(Step::Lookup));
}

#[test]
fn r21_an_unreconcilable_action_runs_once_and_is_held() {
    let mut terms = terms();
    terms.policy.effect = Effect::Unreconcilable;
    terms.contract.reconcile = vec![Rung::Resend, Rung::Review];
    assert_eq!(to(&verdict_under(&fresh(), Evidence::NoAnswer, &terms)), To::Held(Reason::NothingPromised));
    assert!(terms.marks_sends());
}

#[test]
fn r23_spent_budgets_close_only_what_is_not_in_doubt() {
    let spent = |row: Row| Row { attempts: 4, ..row };
    assert_eq!(to(&verdict(&spent(fresh()), Evidence::Deferred)), To::Terminal(Reason::AttemptsExhausted));
    assert_eq!(to(&verdict(&spent(doubtful()), Evidence::Deferred)), To::Unknown(Step::Lookup));
    let old = |row: Row| Row { budget_from: at(1002).minus(secs(86_400)), ..row };
    assert_eq!(to(&verdict(&old(fresh()), Evidence::NotSent)), To::Terminal(Reason::ElapsedExhausted));
    assert_eq!(to(&verdict(&old(fresh()), Evidence::Blocked)), To::Terminal(Reason::ElapsedExhausted));
    assert_eq!(to(&verdict(&old(doubtful()), Evidence::NotSent)), To::Unknown(Step::Lookup));
    let overdue = Moment { now: at(905).plus(secs(86_400)), ..moment() };
    let no_answer = Finding::because(Evidence::NoAnswer, Reason::Timeout);
    assert_eq!(to(&decide(&doubtful(), &no_answer, &terms(), overdue)), To::Held(Reason::ReviewAfter));
}

#[test]
fn r23_only_what_the_table_says_counts_as_an_attempt() {
    let counted = |evidence| verdict(&fresh(), evidence).attempts - fresh().attempts;
    for evidence in [Evidence::Accepted, REJECTED, Evidence::NoAnswer, Evidence::UnknownAnswer, Evidence::Deferred] {
        assert_eq!(counted(evidence), 1, "{evidence:?}");
    }
    for evidence in [Evidence::NotSent, Evidence::Blocked, Evidence::InFlight, Evidence::Lapsed, STOPPED] {
        assert_eq!(counted(evidence), 0, "{evidence:?}");
    }
    let asked = Finding { retry_after: Some(secs(7)), ..Finding::because(Evidence::Deferred, Reason::Throttled) };
    let transition = decide(&fresh(), &asked, &terms(), moment());
    assert_eq!(transition.attempts, 1, "a wait that was asked for is no attempt");
    assert!(
        matches!(transition.next, Next::RetryableFailure { delay } if delay >= secs(7)),
        "R15: Retry-After is honoured"
    );
}

#[test]
fn r14_the_doubtful_attempt_is_named_while_it_is_the_only_one() {
    let named = |row: &Row, evidence| verdict(row, evidence).doubt.and_then(|d| d.attempt);
    assert_eq!(named(&fresh(), Evidence::NoAnswer), Some(ME));
    assert_eq!(named(&fresh(), Evidence::InFlight), None);
    for evidence in [Evidence::NotSent, Evidence::Deferred, Evidence::Blocked, Evidence::Lapsed] {
        assert_eq!(named(&doubtful(), evidence), Some(EARLIER), "{evidence:?}");
    }
    for evidence in [Evidence::NoAnswer, Evidence::UnknownAnswer, REJECTED, Evidence::InFlight, Evidence::KeyConflict] {
        assert_eq!(named(&doubtful(), evidence), None, "{evidence:?}");
    }
}

#[test]
fn r13_sent_times_are_given_back_only_by_proof_that_nothing_left() {
    let sent = |row: &Row, evidence| verdict(row, evidence).sent;
    assert_eq!(sent(&doubtful(), Evidence::NotSent), SentTimes::GivenBack);
    assert_eq!(sent(&doubtful(), Evidence::RungGone), SentTimes::GivenBack);
    assert_eq!(sent(&doubtful(), Evidence::Deferred), SentTimes::Ended);
    assert_eq!(sent(&fresh(), Evidence::NoAnswer), SentTimes::Ended);
    assert_eq!(sent(&fresh(), Evidence::NotSent), SentTimes::Cleared);
    assert_eq!(sent(&fresh(), Evidence::Deferred), SentTimes::Cleared);
    assert_eq!(sent(&fresh(), STOPPED), SentTimes::GivenBack);
    let lookup = Row { step: Step::Lookup, ..doubtful() };
    assert_eq!(sent(&lookup, Evidence::Inconclusive), SentTimes::Keep);
    let overridden = Row { overridden: true, ..doubtful() };
    assert!(verdict(&overridden, Evidence::NotSent).override_back);
    assert!(!verdict(&overridden, Evidence::NoAnswer).override_back);
    let cleared = Row { overridden: true, budget_from: at(1002).minus(secs(86_400)), ..fresh() };
    let closed = verdict(&cleared, Evidence::NotSent);
    assert_eq!((closed.next, closed.override_back), (Next::TerminalFailure, false), "the table refuses it otherwise");
}

#[test]
fn r22_a_stop_stays_known_while_the_outcome_is_unknown() {
    let stopped = Row { stop: Some(Stop::AuthorityRevoked), step: Step::Lookup, ..doubtful() };
    assert_eq!(verdict(&stopped, Evidence::Inconclusive).reason, Some(Reason::AuthorityRevoked));
    let conclude = Row { stop: Some(Stop::Cancelled), step: Step::Conclude, ..fresh() };
    assert_eq!(to(&verdict(&conclude, Evidence::Lapsed)), To::Terminal(Reason::Cancelled));
}

#[test]
fn the_rule_of_an_answer_replaces_the_ladder_and_sets_the_wait() {
    let finding =
        Finding { then: Some(vec![Rung::Review]), ..Finding::because(Evidence::UnknownAnswer, Reason::UnknownAnswer) };
    assert_eq!(to(&decide(&fresh(), &finding, &terms(), moment())), To::Held(Reason::UnknownAnswer));
    let waiting = Finding { wait: Some(secs(90)), ..Finding::because(Evidence::InFlight, Reason::InFlight) };
    let transition = decide(&fresh(), &waiting, &terms(), moment());
    assert!(matches!(transition.next, Next::Unknown { step: Step::Send, delay } if delay >= secs(90)));
}

#[test]
fn an_untouched_claim_goes_back_as_it_was() {
    let back = untouched(&doubtful());
    assert_eq!(to(&back), To::Unknown(Step::Send));
    assert_eq!((back.doubt, back.attempts, back.sent), (doubtful().doubt, 1, SentTimes::GivenBack));
    assert_eq!(to(&untouched(&fresh())), To::Pending);
}
