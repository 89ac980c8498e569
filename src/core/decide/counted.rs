//! A row with an evidence counted in: its attempts, its doubt, its sent times. The ladder is judged on that.

use super::Moment;
use crate::core::action::Step;
use crate::core::evidence::{Evidence, Finding};
use crate::core::row::{Doubt, Row};
use crate::core::time::Timestamp;

/// The row with this evidence counted and its send dated: what the ladder is judged on.
pub(super) fn after(row: &Row, finding: &Finding, moment: Moment) -> Row {
    let mut row = Row {
        attempts: row.attempts.saturating_add(u32::from(counts(row, finding))),
        doubt: doubt_after(row, finding.evidence, moment.now),
        ..row.clone()
    };
    if row.step == Step::Send && !proves_unsent(finding.evidence) {
        row.first_sent_at = Some(row.first_sent_at.map_or(row.claimed_at, |first| first.min(row.claimed_at)));
        row.last_sent_at = Some(row.last_sent_at.map_or(moment.now, |last| last.max(moment.now)));
    }
    row
}

/// Whether nothing of a send can have left: the evidence gives the claim's sent times back.
pub(super) fn proves_unsent(evidence: Evidence) -> bool {
    match evidence {
        Evidence::NotSent | Evidence::Stopped(_) | Evidence::Spent | Evidence::RungGone | Evidence::Unsendable => true,
        Evidence::Accepted | Evidence::Found | Evidence::Mismatch | Evidence::Deferred | Evidence::Blocked => false,
        Evidence::Rejected { .. } | Evidence::KeyConflict | Evidence::InFlight | Evidence::NoAnswer => false,
        Evidence::UnknownAnswer | Evidence::Lapsed | Evidence::Absent | Evidence::Neutralised => false,
        Evidence::Inconclusive | Evidence::Proof => false,
    }
}

/// Whether the budget of attempts counts it.
pub(super) fn counts(row: &Row, finding: &Finding) -> bool {
    let counted = match finding.evidence {
        Evidence::Accepted | Evidence::Mismatch | Evidence::Rejected { .. } | Evidence::KeyConflict => true,
        Evidence::NoAnswer | Evidence::UnknownAnswer => true,
        Evidence::Deferred => finding.retry_after.is_none(),
        Evidence::Blocked | Evidence::InFlight | Evidence::Found | Evidence::Proof | Evidence::Lapsed => false,
        Evidence::Absent | Evidence::Neutralised | Evidence::Inconclusive => false,
        Evidence::NotSent | Evidence::Stopped(_) | Evidence::Spent | Evidence::RungGone | Evidence::Unsendable => false,
    };
    row.step == Step::Send && counted
}

/// The doubt with this evidence in it: a doubtful attempt of its own, a word on an older doubt, or neither.
fn doubt_after(row: &Row, evidence: Evidence, now: Timestamp) -> Option<Doubt> {
    let several = || Some(Doubt { since: row.doubt.map_or(now, |d| d.since), attempt: None });
    match evidence {
        Evidence::NoAnswer | Evidence::UnknownAnswer => match row.doubt {
            None => Some(Doubt { since: now, attempt: Some(row.attempt) }),
            Some(doubt) if doubt.attempt == Some(row.attempt) => Some(doubt),
            Some(_) => several(),
        },
        Evidence::InFlight | Evidence::Mismatch | Evidence::KeyConflict => several(),
        Evidence::Rejected { .. } if row.doubt.is_some() => several(),
        Evidence::Rejected { .. } | Evidence::NotSent | Evidence::Deferred | Evidence::Blocked => row.doubt,
        Evidence::Accepted | Evidence::Found | Evidence::Proof | Evidence::Lapsed => row.doubt,
        Evidence::Absent | Evidence::Neutralised | Evidence::Inconclusive => row.doubt,
        Evidence::Stopped(_) | Evidence::Spent | Evidence::RungGone | Evidence::Unsendable => row.doubt,
    }
}
