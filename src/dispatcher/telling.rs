//! What is said about a row once the ledger has agreed.

use super::delivery::Outcome;
use super::tally::Tally;
use crate::core::action::Step;
use crate::core::decide::Next;
use crate::core::evidence::Evidence;
use crate::core::late::Testimony;
use crate::log::events::{self, About, Learnt};

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
        reason: outcome.transition.reason.map_or("", |reason| reason.code()),
        status: outcome.finding.status,
        detail: outcome.finding.detail.as_deref().unwrap_or_default(),
    }
}

/// A decision has been written.
pub fn settled(outcome: &Outcome, tally: &Tally) {
    let about = about(outcome);
    let receipt = outcome.transition.receipt.as_deref().unwrap_or_default();
    let state = match outcome.transition.next {
        Next::Succeeded => {
            tally.delivered();
            events::delivered(about, receipt);
            if let Some(detail) = &outcome.finding.detail {
                events::receipt_unread(about, detail);
            }
            "succeeded"
        }
        Next::TerminalFailure => {
            events::not_delivered(about, learnt(outcome));
            "terminal_failure"
        }
        Next::Pending { delay } => {
            events::postponed(about, learnt(outcome), delay);
            "pending"
        }
        Next::RetryableFailure { delay } => {
            events::postponed(about, learnt(outcome), delay);
            "retryable_failure"
        }
        Next::Unknown { step, delay } => return events::outcome_unknown(about, learnt(outcome), step, delay),
        Next::Held => return events::held(about, learnt(outcome)),
    };
    if let Some(doubt) = outcome.claimed.row.doubt {
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
pub fn late(outcome: &Outcome, testimony: Option<Testimony>) {
    let receipt = outcome.finding.receipt.as_deref().unwrap_or_default();
    testified(about(outcome), outcome.finding.evidence, receipt, testimony);
}

/// The same of whatever claim.
pub fn testified(about: About<'_>, evidence: Evidence, receipt: &str, testimony: Option<Testimony>) {
    let meaning = match testimony {
        None => "the ledger does not have the action",
        Some(Testimony::Record) => "recorded",
        Some(Testimony::Close) => "succeeded",
        Some(Testimony::Wait) => "proof waits for whoever holds the action",
        Some(Testimony::Hold) => "held for review",
        Some(Testimony::ClearToPending | Testimony::ClearToRetryable) => "doubt cleared",
        Some(Testimony::Doubt) => "outcome unknown",
        Some(Testimony::Contradicts) => {
            return events::contradicted(about, receipt);
        }
    };
    events::late_testimony(about, evidence.as_str(), meaning);
}

/// A claim was overtaken and has nothing to say.
pub fn overtaken(outcome: &Outcome) {
    events::late_testimony(about(outcome), outcome.finding.evidence.as_str(), "nothing was sent under it");
}
