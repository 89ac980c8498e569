//! One claim from beginning to end: `next_step`, a request, `decide`. What comes back is written down by the settler.

use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use tokio_util::sync::CancellationToken;

use super::route::Route;
use crate::clock::Uptime;
use crate::core::action::Step;
use crate::core::decide::{self, Moment, Transition};
use crate::core::evidence::{Evidence, Finding};
use crate::core::next_step::{Plan, next_step};
use crate::core::queue::queue_after;
use crate::core::reason::Reason;
use crate::core::retry::Dice;
use crate::destination::{Claim, Limits};
use crate::failpoint::{self, Point};
use crate::ledger::{Claimed, History, Settlement};
use crate::log::events;

/// What one claim learnt, and what that means.
pub struct Outcome {
    /// Where it went.
    pub route: Arc<Route>,
    /// The claim.
    pub claimed: Claimed,
    /// What it learnt.
    pub finding: Finding,
    /// What it did outside; `None` = nothing.
    pub tried: Option<Step>,
    /// The decision.
    pub transition: Transition,
    /// The drain's time ran out while it was under way.
    pub cut_short: bool,
}

/// Carries one claim out. `abandon` ends it early when the drain's time has run out.
pub async fn deliver(route: Arc<Route>, claimed: Claimed, abandon: &CancellationToken) -> Outcome {
    match next_step(&claimed.row, &route.operation.terms) {
        Plan::Conclude(finding) => conclude(route, claimed, finding, None),
        Plan::Send { .. } if claimed.oversize.is_some() => {
            let bytes = claimed.oversize.unwrap_or_default();
            let detail = format!("its body has {bytes} bytes, more than body_max_bytes");
            let finding = Finding::because(Evidence::Unsendable, Reason::Unsendable).with_detail(detail);
            conclude(route, claimed, finding, Some(Step::Send))
        }
        Plan::Send { not_after } => {
            let deadline = claimed.lease.deadline;
            let leave_before = not_after.map_or(deadline, |end| claimed.uptime_of(end).min(deadline));
            let limits = Limits { deadline, leave_before };
            // A panic or an abandoned wait is an attempt without an answer: it may have left.
            let unknown = Finding::because(Evidence::NoAnswer, Reason::WorkerLost);
            let mut finding = guarded(Box::pin(send(&route, &claimed, limits)), &claimed, unknown, abandon).await;
            if finding.reason == Some(Reason::LeaseLost) && leave_before < deadline {
                finding.reason = Some(Reason::KeyWindowClosed);
            }
            let mut outcome = conclude(route, claimed, finding, Some(Step::Send));
            outcome.cut_short = abandon.is_cancelled() && outcome.finding.reason == Some(Reason::WorkerLost);
            outcome
        }
        Plan::Lookup => {
            let finding = guarded(Box::pin(look_up(&route, &claimed)), &claimed, unsettled(), abandon).await;
            conclude(route, claimed, finding, Some(Step::Lookup))
        }
        Plan::Cancel => {
            let finding = guarded(Box::pin(cancel(&route, &claimed)), &claimed, unsettled(), abandon).await;
            conclude(route, claimed, finding, Some(Step::Cancel))
        }
    }
}

/// Asking that came to nothing: it may be asked again.
fn unsettled() -> Finding {
    Finding::because(Evidence::Inconclusive, Reason::Inconclusive)
}

/// The decision about what a claim has learnt.
fn conclude(route: Arc<Route>, claimed: Claimed, finding: Finding, tried: Option<Step>) -> Outcome {
    let moment = moment(&route, &claimed);
    let transition = decide::decide(&claimed.row, &finding, &route.operation.terms, moment);
    Outcome { route, claimed, finding, tried, transition, cut_short: false }
}

/// A claim that is handed back before anything was tried.
pub fn hand_back(route: Arc<Route>, claimed: Claimed) -> Outcome {
    let transition = decide::untouched(&claimed.row);
    let finding = Finding::because(Evidence::NotSent, Reason::NotReached);
    Outcome { route, claimed, finding, tried: None, transition, cut_short: false }
}

impl Outcome {
    /// As the ledger wants it.
    pub fn settlement(&self) -> Settlement {
        Settlement {
            action: self.claimed.intent.id,
            fence: self.claimed.fence,
            row: self.claimed.row.clone(),
            transition: self.transition.clone(),
            history: self.history(),
            lane: self.claimed.lane,
            queue: queue_after(&self.transition, self.route.operation.hold_on_failure),
        }
    }

    /// As the history wants it; `None` where nothing was tried.
    pub fn history(&self) -> Option<History> {
        let key = self.route.operation.terms.contract.key.as_ref();
        self.tried.map(|kind| History {
            kind,
            idempotency_key: key.map(|key| key.form.render(self.claimed.intent.id)),
            started_ago: Uptime::now().since(self.claimed.lease.asked_at),
            deadline_in: self.claimed.lease.timeout,
            evidence: self.finding.evidence.as_str(),
            status: self.finding.status,
            detail: self.finding.detail.clone(),
        })
    }

    /// Decides again, about the row as it stands now.
    pub fn decide_again(&mut self) {
        let waiting = self.claimed.row.proof.is_some();
        let finding = match next_step(&self.claimed.row, &self.route.operation.terms) {
            Plan::Conclude(proof) if waiting => proof,
            Plan::Conclude(_) | Plan::Send { .. } | Plan::Lookup | Plan::Cancel => self.finding.clone(),
        };
        let moment = moment(&self.route, &self.claimed);
        self.transition = decide::decide(&self.claimed.row, &finding, &self.route.operation.terms, moment);
    }
}

fn moment(route: &Route, claimed: &Claimed) -> Moment {
    let now = claimed.database_now();
    let paused = claimed
        .row
        .doubt
        .map_or(Duration::ZERO, |doubt| route.pauses.paused_within(route.destination_index, now.since(doubt.since)));
    let probed = route.pauses.is_paused(route.destination_index);
    Moment { now, paused, probed, dice: Dice::new(rand::random()) }
}

async fn send(route: &Route, claimed: &Claimed, limits: Limits) -> Finding {
    #[cfg(feature = "test-hooks")]
    test_hook(&claimed.intent);
    failpoint::reach(Point::BeforeFirstByte);
    let finding = route.destination.send(&route.operation, &claimed.intent, &claim(claimed), limits).await;
    failpoint::reach(Point::AfterAnswer);
    finding
}

async fn look_up(route: &Route, claimed: &Claimed) -> Finding {
    route.destination.look_up(&route.operation, &claimed.intent, &claim(claimed), whole_lease(claimed)).await
}

async fn cancel(route: &Route, claimed: &Claimed) -> Finding {
    route.destination.cancel(&route.operation, &claimed.intent, &claim(claimed), whole_lease(claimed)).await
}

fn whole_lease(claimed: &Claimed) -> Limits {
    Limits { deadline: claimed.lease.deadline, leave_before: claimed.lease.deadline }
}

/// The claim, as it goes along with requests.
pub fn claim(claimed: &Claimed) -> Claim {
    Claim { attempt: claimed.row.attempt, fence: claimed.fence }
}

/// What comes of a request, or `otherwise` after a panic or where nobody waits for it any more.
async fn guarded(
    // Boxed, because what is spawned is copied as a whole, with room for every kind of request.
    request: Pin<Box<impl Future<Output = Finding>>>,
    claimed: &Claimed,
    otherwise: Finding,
    abandon: &CancellationToken,
) -> Finding {
    tokio::select! {
        // An answer that is there counts, also in the moment in which nobody waits any more.
        biased;
        finding = AssertUnwindSafe(request).catch_unwind() => match finding {
            Ok(finding) => finding,
            Err(_) => {
                events::panicked(claimed.intent.id, &claimed.intent.operation);
                otherwise.with_detail("the delivery panicked")
            }
        },
        () = abandon.cancelled() => otherwise.with_detail("the daemon stopped before an answer came"),
    }
}

/// The one test-only hook: a delivery whose params say so panics.
#[cfg(feature = "test-hooks")]
#[allow(clippy::panic, reason = "that is what it is for")]
fn test_hook(intent: &crate::core::action::Intent) {
    if intent.params.as_deref().is_some_and(|params| params.contains("\"test_hook_panic\"")) {
        panic!("asked for by a test");
    }
}
