//! Whatever is learnt, in whatever order: doubt ends only by proof about that doubt.

use std::time::Duration;

use proptest::prelude::*;

use super::fixture::{at, doubtful, secs, terms};
use super::*;
use crate::core::action::Stop;
use crate::core::retry::Dice;

/// Everything that can be learnt under a claim with this step.
const fn evidence_of(step: Step) -> &'static [Evidence] {
    match step {
        Step::Send => &[
            Evidence::NotSent,
            Evidence::Deferred,
            Evidence::Blocked,
            Evidence::Rejected { replayed: false },
            Evidence::InFlight,
            Evidence::NoAnswer,
            Evidence::UnknownAnswer,
            Evidence::Unsendable,
            Evidence::RungGone,
            Evidence::Spent,
            Evidence::Stopped(Stop::Cancelled),
        ],
        Step::Lookup => &[Evidence::Inconclusive, Evidence::Absent],
        Step::Cancel => &[Evidence::Inconclusive, Evidence::Neutralised],
        Step::Conclude | Step::Review => &[Evidence::Lapsed, Evidence::Stopped(Stop::AuthorityRevoked)],
    }
}

/// The row after a settle, claimed again a moment later.
fn claimed_again(row: &Row, told: &Transition, now: Timestamp, step: Step) -> Row {
    let cleared = told.sent == SentTimes::Cleared;
    Row {
        claimed_at: now,
        step,
        attempts: told.attempts,
        claims: row.claims + 1,
        doubt: told.doubt,
        first_sent_at: row.first_sent_at.filter(|_| !cleared),
        // Each send may have left until now.
        last_sent_at: row.last_sent_at.filter(|_| !cleared).map(|last| if row.step == Step::Send { now } else { last }),
        ..row.clone()
    }
}

proptest! {
    #[test]
    fn r14_doubt_never_ends_but_by_proof_about_it(
        findings in proptest::collection::vec((0..1000_u64, any::<prop::sample::Index>()), 1..40),
        step in proptest::sample::select(vec![Step::Send, Step::Lookup, Step::Cancel, Step::Conclude]),
    ) {
        let terms = terms();
        let (mut row, mut now, mut step) = (doubtful(), at(1000), step);
        for (gap, pick) in findings {
            now = now.plus(secs(gap));
            row.claimed_at = now;
            row.step = step;
            let evidence = *pick.get(evidence_of(step));
            let moment = Moment { now, paused: Duration::ZERO, probed: false, dice: Dice::new(0.5) };
            let told = decide(&row, &Finding::because(evidence, Reason::Timeout), &terms, moment);
            // "Not there", asked late enough after the last send, is the one proof among these; "cancelled" the other.
            let asking = terms.contract.asking(step);
            let proof = matches!(evidence, Evidence::Absent | Evidence::Neutralised)
                && ladder::is_settled(&row, asking);
            match told.next {
                Next::Unknown { step: next, .. } => {
                    prop_assert!(told.doubt.is_some());
                    row = claimed_again(&row, &told, now, next);
                    step = next;
                }
                Next::Held => {
                    prop_assert!(told.doubt.is_some());
                    return Ok(());
                }
                Next::Pending { .. } | Next::TerminalFailure | Next::RetryableFailure { .. } => {
                    prop_assert!(proof, "{evidence:?} under {step:?} ended the doubt as {:?}", told.next);
                    return Ok(());
                }
                Next::Succeeded => prop_assert!(false, "{evidence:?} is no success"),
            }
        }
    }
}
