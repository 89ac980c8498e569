//! Mistakes that must be caught, as wrappers around the real rules. [`Mistake::None`] is the real rules.
//!
//! Those about statements and workers are switches in [`super::mirror`] and [`super::steps`]; production code has none.

use super::world::{ABSENCE, LEASE, ticks};
use crate::core::action::{AttemptId, Step};
use crate::core::decide::{self, Moment, Transition};
use crate::core::evidence::{Evidence, Finding};
use crate::core::late::{self, LateRow, Testimony};
use crate::core::next_step::{self, Plan};
use crate::core::reason::Reason;
use crate::core::row::{Doubt, Row, SentUnder};
use crate::core::terms::Terms;

/// What is done wrong.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mistake {
    None,
    // In `next_step`.
    WindowJudgedWhenScheduled,
    PinsNotCompared,
    // In `decide`.
    EarlierDoubtForgotten,
    AbsentTrustedAtOnce,
    AbsentDatedByDecision,
    BlindRetryAfterNoAnswer,
    DeferredClearsDoubt,
    NotSentClearsDoubt,
    ResendAfterKeyConflict,
    StopClosesDoubt,
    RejectionBelievedInDoubt,
    SecondDoubtKeepsFirstName,
    SuccessBelievedAfterCancel,
    // In `testify`.
    LateSuccessDropped,
    LateNotSentClearsAnyDoubt,
    LateDoubtDropped,
    // In the statements.
    NoFenceOnSettle,
    NoAttemptOnSettle,
    DoubtNotComparedOnSettle,
    DigestNotReadAgain,
    ClaimTimeAsLastSent,
    WideningGivenBack,
    LookupWrittenOverWidening,
    LateWideningForgotten,
    SendsUnmarked,
    // In the worker.
    LeaseTrustedForEver,
}

impl Mistake {
    /// Whether an overtaken claim can still write what it decided.
    pub const fn reads_stale_claims(self) -> bool {
        matches!(self, Self::NoFenceOnSettle | Self::NoAttemptOnSettle)
    }

    pub fn next_step(self, row: &Row, terms: &Terms) -> Plan {
        let plan = next_step::next_step(row, terms);
        match (self, &plan) {
            (Self::WindowJudgedWhenScheduled, Plan::Conclude(f)) if f.reason == Some(Reason::KeyWindowClosed) => {
                Plan::Send { not_after: None }
            }
            (Self::WindowJudgedWhenScheduled, Plan::Send { .. }) => Plan::Send { not_after: None },
            (Self::PinsNotCompared, Plan::Conclude(f)) if f.reason == Some(Reason::PinsChanged) => {
                next_step::next_step(&Row { sent_under: SentUnder::These(terms.pins), ..row.clone() }, terms)
            }
            _ => plan,
        }
    }

    pub fn decide(self, row: &Row, finding: &Finding, terms: &Terms, moment: Moment) -> Transition {
        let mut row = row.clone();
        let mut finding = finding.clone();
        let named = row.doubt;
        match (self, finding.evidence) {
            (Self::EarlierDoubtForgotten, _)
            | (Self::DeferredClearsDoubt, Evidence::Deferred)
            | (Self::NotSentClearsDoubt, Evidence::NotSent)
            | (Self::StopClosesDoubt, Evidence::Stopped(_))
            | (Self::RejectionBelievedInDoubt, Evidence::Rejected { .. }) => row.doubt = None,
            (Self::AbsentTrustedAtOnce, Evidence::Absent) => {
                row.last_sent_at = Some(row.claimed_at.minus(ticks(ABSENCE + LEASE + 1)));
            }
            (Self::AbsentDatedByDecision, Evidence::Absent) => row.claimed_at = moment.now,
            (Self::BlindRetryAfterNoAnswer, Evidence::NoAnswer) => {
                row.doubt = None;
                finding = Finding::new(Evidence::NotSent, None);
            }
            (Self::ResendAfterKeyConflict, Evidence::KeyConflict) => finding = Finding::new(Evidence::InFlight, None),
            (Self::SuccessBelievedAfterCancel, Evidence::Accepted | Evidence::Found | Evidence::Proof) => {
                row.cancel_sent = false;
            }
            _ => {}
        }
        let mut transition = decide::decide(&row, &finding, terms, moment);
        if self == Self::SecondDoubtKeepsFirstName
            && let (Some(doubt), Some(Doubt { attempt: Some(first), .. })) = (&mut transition.doubt, named)
        {
            doubt.attempt = Some(first);
        }
        transition
    }

    pub fn testify(self, row: &LateRow, attempt: AttemptId, evidence: Evidence) -> Testimony {
        match (self, evidence) {
            (Self::LateSuccessDropped, Evidence::Accepted) => Testimony::Record,
            (Self::LateNotSentClearsAnyDoubt, Evidence::NotSent) => {
                let doubt = row.doubt.map(|doubt| Doubt { attempt: Some(attempt), ..doubt });
                late::testify(&LateRow { doubt, ..*row }, attempt, evidence)
            }
            _ => {
                let testimony = late::testify(row, attempt, evidence);
                let dropped = self == Self::LateDoubtDropped && testimony == Testimony::Doubt;
                if dropped { Testimony::Record } else { testimony }
            }
        }
    }

    /// Whether the claim of a row in that step takes it for one that may have been sent, told only by its step.
    pub fn lapses_by_step(self, step: Step) -> bool {
        self == Self::ClaimTimeAsLastSent && step == Step::Send
    }
}
