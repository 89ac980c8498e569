//! What to do with a row that has just been claimed.

use super::action::Step;
use super::contract::Rung;
use super::evidence::{Evidence, Finding};
use super::ladder::{self, ResendEnds};
use super::reason::Reason;
use super::row::Row;
use super::terms::Terms;
use super::time::Timestamp;

/// The plan for one claim.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Plan {
    /// Send it; no byte may leave after this moment, where there is one.
    Send {
        /// The end of the key's memory, for a resend.
        not_after: Option<Timestamp>,
    },
    /// Ask the destination.
    Lookup,
    /// Cancel it by its key.
    Cancel,
    /// Nothing to do outside: this is what is known.
    Conclude(Finding),
}

/// What to do with a row that has just been claimed. Looks at stops and budgets only before a send.
pub fn next_step(row: &Row, terms: &Terms) -> Plan {
    let conclude = |evidence, reason| Plan::Conclude(Finding::new(evidence, reason));
    if let Some(receipt) = &row.proof {
        let mut finding = Finding::new(Evidence::Proof, None);
        finding.receipt = (!receipt.is_empty()).then(|| receipt.clone());
        return Plan::Conclude(finding);
    }
    match row.step {
        Step::Lookup if terms.contract.lookup.is_some() => Plan::Lookup,
        Step::Cancel if terms.contract.cancel.is_some() => Plan::Cancel,
        // The contract has changed since the rung was chosen.
        Step::Lookup | Step::Cancel => conclude(Evidence::RungGone, None),
        Step::Conclude | Step::Review => match row.stop {
            Some(stop) => conclude(Evidence::Stopped(stop), Some(stop.into())),
            None => conclude(Evidence::Lapsed, row.doubt.map(|_| Reason::WorkerLost)),
        },
        // For good: whatever was decided or has changed since.
        Step::Send if row.cancel_sent => conclude(Evidence::RungGone, Some(Reason::Neutralised)),
        Step::Send if row.overridden => Plan::Send { not_after: None },
        Step::Send if row.doubt.is_none() => match ladder::spent(row, terms, row.claimed_at) {
            Some(reason) => conclude(Evidence::Spent, Some(reason)),
            None => Plan::Send { not_after: None },
        },
        Step::Send => match ladder::may_resend(row, terms, row.claimed_at) {
            Ok(()) => Plan::Send {
                not_after: match ladder::resend_ends(row, terms) {
                    ResendEnds::At(end) => Some(end),
                    ResendEnds::Never | ResendEnds::NotAllowed => None,
                },
            },
            Err(reason) => conclude(Evidence::RungGone, Some(reason)),
        },
    }
}

/// The step that a rung stands for; `None` = held.
pub const fn step_of(rung: Rung) -> Option<Step> {
    match rung {
        Rung::Resend => Some(Step::Send),
        Rung::Lookup => Some(Step::Lookup),
        Rung::Cancel => Some(Step::Cancel),
        Rung::Review => None,
    }
}
