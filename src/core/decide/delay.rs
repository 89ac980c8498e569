//! How long a row waits for its next step.

use std::time::Duration;

use super::Moment;
use super::counted::counts;
use crate::core::action::Step;
use crate::core::contract::Asking;
use crate::core::evidence::{Evidence, Finding};
use crate::core::ladder;
use crate::core::retry;
use crate::core::row::Row;
use crate::core::terms::Terms;
use crate::core::time::Timestamp;

/// When to send again: our own backoff, or the wait that was asked for where that is longer. What no attempt counts
/// is paced by the number of claims; where the destination is paused, by its probes, so that a row which has been one of
/// them does not wait on when it is back.
pub(super) fn delay(row: &Row, finding: &Finding, terms: &Terms, moment: Moment) -> Duration {
    let counted = counts(row, finding) || matches!(finding.evidence, Evidence::Absent | Evidence::Lapsed);
    let probe = moment.probed && matches!(finding.evidence, Evidence::NotSent | Evidence::Blocked);
    let tries = match (counted, probe) {
        (true, _) => row.attempts,
        (false, true) => 1,
        (false, false) => row.claims,
    };
    let own = terms.policy.backoff.delay(tries, moment.dice).max(finding.wait.unwrap_or(Duration::ZERO));
    match finding.retry_after {
        Some(asked) => retry::asked_delay(asked, own, terms.policy.retry_after_max, moment.dice),
        None => own,
    }
}

pub(super) fn step_delay(step: Step, row: &Row, finding: &Finding, terms: &Terms, moment: Moment) -> Duration {
    let asked_from = row.last_sent_at.unwrap_or(moment.now);
    match step {
        Step::Send => {
            let gap = terms.contract.key.as_ref().map_or(Duration::ZERO, |key| key.min_gap);
            delay(row, finding, terms, moment).max(gap)
        }
        Step::Lookup | Step::Cancel => asking_delay(terms.contract.asking(step), asked_from, finding, terms, moment),
        Step::Conclude | Step::Review => Duration::ZERO,
    }
}

pub(super) fn asking_delay(
    asking: Option<&Asking>,
    asked_from: Timestamp,
    finding: &Finding,
    terms: &Terms,
    moment: Moment,
) -> Duration {
    let own = asking.map_or(terms.policy.backoff.max, |a| ladder::next_asking(a, asked_from, moment.now));
    finding.retry_after.map_or(own, |asked| retry::asked_delay(asked, own, terms.policy.retry_after_max, moment.dice))
}
