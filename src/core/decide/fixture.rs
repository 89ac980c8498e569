//! A row, and terms under which everything is possible: what the tests of the table decide upon.

use std::time::Duration;

use uuid::Uuid;

use super::*;
use crate::core::action::AttemptId;
use crate::core::contract::{Absence, Asking, By, Cancel, Effect, Key, Lookup, Place, Question, When};
use crate::core::request::RequestTemplate;
use crate::core::retry::{Backoff, Dice};
use crate::core::row::SentUnder;
use crate::core::terms::{Pins, Policy};

pub(super) const PINS: Pins = Pins([1; 16]);
pub(super) const OTHER_PINS: Pins = Pins([2; 16]);
pub(super) const ME: AttemptId = AttemptId(Uuid::from_u128(10));
pub(super) const EARLIER: AttemptId = AttemptId(Uuid::from_u128(9));

pub(super) fn secs(n: u64) -> Duration {
    Duration::from_secs(n)
}

pub(super) fn at(seconds: u64) -> Timestamp {
    Timestamp::from_micros(1_700_000_000_000_000).plus(secs(seconds))
}

/// Claimed at 1000 s, budget from 0 s; where in doubt, first sent at 900 s and last at 910 s.
pub(super) fn fresh() -> Row {
    Row {
        attempt: ME,
        claimed_at: at(1000),
        step: Step::Send,
        attempts: 1,
        claims: 3,
        committed_at: at(0),
        budget_from: at(0),
        first_sent_at: None,
        last_sent_at: None,
        doubt: None,
        proof: None,
        cancel_sent: false,
        overridden: false,
        sent_under: SentUnder::These(PINS),
        stop: None,
    }
}

pub(super) fn doubtful() -> Row {
    let doubt = Some(Doubt { since: at(905), attempt: Some(EARLIER) });
    Row { first_sent_at: Some(at(900)), last_sent_at: Some(at(910)), doubt, ..fresh() }
}

pub(super) fn asking(absence: Absence) -> Asking {
    Asking { first_after: secs(5), repeat: vec![secs(30)], absence }
}

pub(super) fn question() -> Question {
    Question { request: RequestTemplate::bare("GET"), body: None }
}

pub(super) fn lookup(absence: Absence) -> Lookup {
    Lookup::new(By::Key, question(), When::default(), asking(absence))
}

/// Resend, then lookup, then cancel, then a person; everything is possible.
pub(super) fn terms() -> Terms {
    Terms {
        policy: Policy {
            effect: Effect::Keyed,
            timeout: secs(10),
            attempts_max: 5,
            affordable: None,
            elapsed_max: secs(86_400),
            backoff: Backoff { initial: secs(1), multiplier: 2.0, max: secs(60) },
            retry_after_max: secs(3600),
            review_after: secs(86_400),
            resend_within: secs(3600),
        },
        contract: Contract {
            key: Some(Key {
                window: Some(Window::For(secs(7200))),
                margin: secs(600),
                ..Key::new(KeyMode::Dedupe, Place::Header("idempotency-key".into()))
            }),
            reconcile: vec![Rung::Resend, Rung::Lookup, Rung::Cancel, Rung::Review],
            lookup: Some(lookup(Absence::After(secs(60)))),
            cancel: Some(Cancel {
                question: question(),
                done: When::default(),
                asking: asking(Absence::After(secs(60))),
            }),
            ..Contract::silent("test")
        },
        pins: PINS,
    }
}

pub(super) fn moment() -> Moment {
    Moment { now: at(1002), paused: Duration::ZERO, probed: false, dice: Dice::new(0.5) }
}

pub(super) fn verdict(row: &Row, evidence: Evidence) -> Transition {
    verdict_under(row, evidence, &terms())
}

pub(super) fn verdict_under(row: &Row, evidence: Evidence, terms: &Terms) -> Transition {
    decide(row, &Finding::because(evidence, Reason::Timeout), terms, moment())
}
