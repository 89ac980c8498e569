//! One claim over all operations: asked for, and what it brings put under way.

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::sync::mpsc;

use super::delivery::{self, Outcome};
use super::pauses::{Change, Pauses};
use super::route::Route;
use super::slots::Slot;
use super::walk::Walk;
use super::{Dispatcher, Stop};
use crate::core::next_step::{Plan, next_step};
use crate::ledger::{Claimed, LedgerError, Want};
use crate::log::events;

/// What a claim found.
#[derive(Clone, Copy)]
pub(super) struct Found {
    /// At least one row.
    pub(super) some: bool,
    /// Some operation had as much due as it could take.
    pub(super) hungry: bool,
    /// Some operation had slots left, and tenants that have not been looked at.
    pub(super) partly: bool,
    /// Some operation could take nothing.
    pub(super) full: bool,
}

impl Dispatcher {
    /// One claim over all operations; what it brings is under way when this returns.
    pub(super) async fn claim(
        &self,
        walk: &mut Walk,
        stop: &Stop,
        outcomes: &mpsc::Sender<Outcome>,
    ) -> Result<Found, LedgerError> {
        walk.turn = walk.turn.wrapping_add(1);
        let shares = self.slots.shares(&walk.hungry, &self.pauses.open(), walk.turn);
        let wants: Vec<Want> = (self.routes.iter().zip(&shares).zip(&walk.after))
            .filter(|((_, share), _)| **share > 0)
            .map(|((route, share), after)| Want {
                operation: route.operation.name.clone(),
                free: *share,
                timeout: route.operation.terms.policy.timeout,
                margin: self.settings.lease_margin,
                after: after.clone(),
                pins: route.operation.terms.pins,
                marks: route.operation.terms.marks_sends(),
            })
            .collect();
        let full = shares.contains(&0);
        if wants.is_empty() {
            return Ok(Found { some: false, hungry: true, partly: false, full });
        }
        let claims = self.ledger.claim(&wants).await?;
        let mut got = vec![0; self.routes.len()];
        let some = !claims.claimed.is_empty();
        let mut to_mark: BTreeMap<usize, Vec<(Claimed, Slot)>> = BTreeMap::new();
        for claimed in claims.claimed {
            let Some(route) = self.routes.iter().find(|r| r.operation.name == claimed.intent.operation) else {
                continue;
            };
            got[route.index] += 1;
            let slot = self.slots.take(route.index);
            self.pauses.claimed(route.destination_index);
            let marks = route.operation.terms.marks_sends()
                && matches!(next_step(&claimed.row, &route.operation.terms), Plan::Send { .. });
            if marks {
                to_mark.entry(route.index).or_default().push((claimed, slot));
            } else {
                self.start(route, claimed, slot, stop, outcomes);
            }
        }
        for (route, held) in to_mark {
            self.mark_and_start(&self.routes[route], held, stop, outcomes).await;
        }
        let (mut hungry, mut partly) = (false, false);
        for (name, next_after) in claims.next_after {
            if let Some(route) = self.routes.iter().find(|r| r.operation.name == name) {
                let ate_all = got[route.index] >= shares[route.index];
                let more = walk.went(route.index, next_after, got[route.index]);
                walk.hungry[route.index] = ate_all || more;
                hungry |= ate_all;
                partly |= more && !ate_all;
            }
        }
        Ok(Found { some, hungry, partly, full })
    }

    /// Starts one delivery. It holds its slot until its outcome is with the settler.
    fn start(&self, route: &Arc<Route>, claimed: Claimed, slot: Slot, stop: &Stop, outcomes: &mpsc::Sender<Outcome>) {
        let (route, outcomes, pauses, stop) =
            (Arc::clone(route), outcomes.clone(), Arc::clone(&self.pauses), stop.clone());
        tokio::spawn(async move {
            let outcome = if stop.drain.is_cancelled() {
                delivery::hand_back(route, claimed)
            } else {
                delivery::deliver(route, claimed, &stop.abandon).await
            };
            report(&pauses, &outcome);
            // The settler outlives every sender.
            let _ = outcomes.send(outcome).await;
            drop(slot);
        });
    }

    /// Marks sends that can neither be repeated nor looked up, then starts those whose mark is durable.
    async fn mark_and_start(
        &self,
        route: &Arc<Route>,
        held: Vec<(Claimed, Slot)>,
        stop: &Stop,
        outcomes: &mpsc::Sender<Outcome>,
    ) {
        let claims: Vec<Claimed> = held.iter().map(|(claimed, _)| claimed.clone()).collect();
        let marked = self.ledger.mark(&claims).await;
        for (claimed, slot) in held {
            match &marked {
                Ok(marked) if marked.contains(&claimed.intent.id) => self.start(route, claimed, slot, stop, outcomes),
                // Overtaken, or not known to be marked: nothing is sent, and the row says so.
                Ok(_) | Err(_) => {
                    let outcome = delivery::hand_back(Arc::clone(route), claimed);
                    report(&self.pauses, &outcome);
                    let _ = outcomes.send(outcome).await;
                    drop(slot);
                }
            }
        }
    }

    /// A whole walk over the tenants, or as much of it as finds something.
    pub(super) async fn look(
        &self,
        walk: &mut Walk,
        stop: &Stop,
        outcomes: &mpsc::Sender<Outcome>,
    ) -> Result<Found, LedgerError> {
        loop {
            let found = self.claim(walk, stop, outcomes).await?;
            if found.some || !found.partly || stop.drain.is_cancelled() {
                return Ok(found);
            }
        }
    }
}

fn report(pauses: &Pauses, outcome: &Outcome) {
    if outcome.tried.is_none() {
        return pauses.not_sent(outcome.route.destination_index);
    }
    let name = &outcome.route.operation.target;
    let answered = outcome.finding.status.is_some();
    match pauses.learnt(outcome.route.destination_index, outcome.finding.evidence, answered) {
        Change::None => {}
        Change::Paused => events::destination_paused(name, outcome.finding.status),
        Change::Resumed { paused, probes } => events::destination_resumed(name, paused, probes),
    }
}
