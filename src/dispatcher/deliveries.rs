//! Claims under way, each in a task of its own. It holds its slot until its outcome is with the settler.

use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::Stop;
use super::delivery::{self, Outcome};
use super::health::Health;
use super::journal::Journal;
use super::pauses::Pauses;
use super::route::Route;
use super::slots::Slot;
use crate::core::next_step::Plan;
use crate::ledger::{Claimed, Ledger, LedgerError, Marked};

/// What every delivery needs.
pub struct Deliveries {
    /// Where marks are written.
    pub ledger: Ledger,
    /// To the settler, who outlives all that hold this.
    pub outcomes: mpsc::Sender<Outcome>,
    /// What is learnt about destinations.
    pub pauses: Arc<Pauses>,
    /// Until when.
    pub stop: Stop,
    /// Whether anything can be written down.
    pub health: Health,
    /// What could not be.
    pub journal: Journal,
}

/// What is written down before anything leaves.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Writes {
    /// That it is sent now: a send that can neither be repeated nor looked up.
    Send,
    /// That a cancel by key is sent now: the key is spent from then on.
    Cancel,
}

impl Writes {
    /// What that is for this claim; `None` = nothing.
    pub fn first(plan: &Plan, claimed: &Claimed, route: &Route) -> Option<Self> {
        let operation = &route.operation;
        match plan {
            Plan::Send { .. } => operation.terms.marks_sends().then_some(Self::Send),
            Plan::Cancel => {
                let claim = delivery::claim(claimed);
                route.destination.can_cancel(operation, &claimed.intent, &claim).then_some(Self::Cancel)
            }
            Plan::Lookup | Plan::Conclude(_) => None,
        }
    }
}

impl Deliveries {
    /// Carries one out.
    pub fn start(self: &Arc<Self>, route: &Arc<Route>, claimed: Claimed, slot: Slot) {
        tokio::spawn(Arc::clone(self).carry_out(Arc::clone(route), claimed, slot));
    }

    /// Gives one back: nothing was tried.
    pub fn hand_back(self: &Arc<Self>, route: &Arc<Route>, claimed: Claimed, slot: Slot) {
        let (deliveries, outcome) = (Arc::clone(self), delivery::hand_back(Arc::clone(route), claimed));
        tokio::spawn(async move { deliveries.learnt(outcome, slot).await });
    }

    /// Writes down what must be durable before anything leaves, then carries out those claims where it is. Whoever claims
    /// waits for that, so that what is claimed leaves at the pace at which it was; where nobody waits any more, it goes on
    /// to its end all the same. The error is that of the writing, unless somebody has locked those rows.
    pub fn start_written(
        self: &Arc<Self>,
        route: &Arc<Route>,
        writes: Writes,
        held: Vec<(Claimed, Slot)>,
    ) -> JoinHandle<Result<(), LedgerError>> {
        let (deliveries, route) = (Arc::clone(self), Arc::clone(route));
        tokio::spawn(async move {
            let claims: Vec<Claimed> = held.iter().map(|(claimed, _)| claimed.clone()).collect();
            let written = async {
                match writes {
                    Writes::Send => deliveries.ledger.mark(&claims).await,
                    Writes::Cancel => deliveries.ledger.mark_cancels(&claims).await,
                }
            };
            let written = tokio::select! {
                written = written => written,
                () = deliveries.stop.abandon.cancelled() => Ok(Marked::default()),
            };
            for (mut claimed, slot) in held {
                let is_written = written.as_ref().is_ok_and(|written| written.contains(&claimed.intent.id));
                let closed = writes == Writes::Send && deliveries.pauses.closed_since(&route, claimed.lease.asked_at);
                // Overtaken, or not known to be written, or an answer has asked for patience meanwhile: nothing leaves, and
                // the row says so.
                if !is_written || closed {
                    deliveries.hand_back(&route, claimed, slot);
                    continue;
                }
                claimed.row.cancel_sent |= writes == Writes::Cancel;
                deliveries.start(&route, claimed, slot);
            }
            match written {
                Err(error) if !error.passes() => Err(error),
                Ok(_) | Err(_) => Ok(()),
            }
        })
    }

    async fn carry_out(self: Arc<Self>, route: Arc<Route>, claimed: Claimed, slot: Slot) {
        // What could not be written down is not sent.
        let outcome = if self.stop.drain.is_cancelled() || !self.health.is_settled() {
            delivery::hand_back(route, claimed)
        } else {
            delivery::deliver(route, claimed, &self.stop.abandon).await
        };
        self.learnt(outcome, slot).await;
    }

    async fn learnt(&self, mut outcome: Outcome, slot: Slot) {
        self.pauses.learnt(&outcome);
        // Evidence may have to wait for long; what was sent is not needed any more.
        outcome.claimed.intent.body = Bytes::new();
        self.journal.learnt(&outcome);
        let _ = self.outcomes.send(outcome).await;
        drop(slot);
    }
}
