//! The claims: what is due is taken, and handed to deliveries, as far as there are slots.

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::sync::mpsc;

use super::delivery::{self, Outcome};
use super::health::{Health, Who};
use super::pauses::{Change, Pauses};
use super::rest::Sleeper;
use super::route::Route;
use super::slots::{Slot, Slots};
use super::walk::{Found, Walk, place};
use super::{Settings, Stop};
use crate::core::contract::Effect;
use crate::core::next_step::{Plan, next_step};
use crate::ledger::{Claimed, InventoryRow, Ledger, LedgerError, Want};
use crate::log::events;

/// Claims until it is told to stop.
pub struct Claimer {
    /// How.
    pub settings: Settings,
    /// From where.
    pub ledger: Ledger,
    /// Where to.
    pub routes: Vec<Arc<Route>>,
    /// How many destinations the routes lead to.
    pub destinations: usize,
    /// How much at once.
    pub slots: Arc<Slots>,
    /// Where not.
    pub pauses: Arc<Pauses>,
    /// Until when.
    pub stop: Stop,
    /// To the settler.
    pub outcomes: mpsc::Sender<Outcome>,
    /// How far.
    pub walk: Walk,
    /// Between claims.
    pub sleeper: Sleeper,
}

impl Claimer {
    /// Claims, and hands claims to deliveries, until the drain begins.
    pub async fn run(mut self, health: &Health) -> Result<(), LedgerError> {
        let (mut started, mut inventory_written) = (false, false);
        while !self.stop.drain.is_cancelled() {
            // Evidence in memory is settled before anything is claimed.
            tokio::select! {
                () = health.settled() => {}
                // Nobody writes down any more what deliveries learn.
                () = self.outcomes.closed() => break,
                () = self.stop.drain.cancelled() => break,
            }
            let claimed = async {
                if !inventory_written {
                    self.write_inventory().await?;
                }
                self.claim().await
            }
            .await;
            match claimed {
                Ok(found) => {
                    health.well(Who::Claims);
                    inventory_written = true;
                    if !std::mem::replace(&mut started, true) {
                        events::started(
                            env!("CARGO_PKG_VERSION"),
                            self.ledger.worker(),
                            self.routes.len(),
                            self.destinations,
                        );
                    }
                    self.rest(found).await;
                }
                Err(error) if error.is_schema() => {
                    events::schema_refused(&error);
                    self.sleeper.leave().await;
                    return Err(error);
                }
                Err(error) => {
                    // Whatever it was, the schema may be another one when the database is back.
                    inventory_written = false;
                    tokio::select! {
                        () = tokio::time::sleep(health.lost(Who::Claims, &error)) => {}
                        () = self.stop.drain.cancelled() => {}
                    }
                }
            }
        }
        self.sleeper.leave().await;
        Ok(())
    }

    /// One claim over all operations; what it brings is under way when this returns.
    pub(super) async fn claim(&mut self) -> Result<Found, LedgerError> {
        self.walk.turn = self.walk.turn.wrapping_add(1);
        let shares = self.slots.shares(&self.walk.hungry, &self.pauses.open(), self.walk.turn);
        let wants: Vec<Want> = (self.routes.iter().zip(&shares))
            .flat_map(|(route, share)| {
                let asking = asking_part(*share, self.walk.turn);
                [(false, share - asking), (true, asking)].map(|(asks, free)| (route, asks, free))
            })
            .filter(|(_, _, free)| *free > 0)
            .map(|(route, asks, free)| Want {
                operation: route.operation.name.clone(),
                asks,
                free,
                timeout: route.operation.terms.policy.timeout,
                margin: self.settings.lease_margin,
                after: self.walk.after[place(route.index, asks)].clone(),
                pins: route.operation.terms.pins,
                marks: route.operation.terms.marks_sends(),
            })
            .collect();
        let full = shares.contains(&0);
        if wants.is_empty() {
            return Ok(Found { some: false, hungry: true, partly: false, full });
        }
        let claims = self.ledger.claim(&wants).await?;
        let mut got = vec![0; self.routes.len() * 2];
        let some = !claims.claimed.is_empty();
        let mut to_mark: BTreeMap<usize, Vec<(Claimed, Slot)>> = BTreeMap::new();
        for claimed in claims.claimed {
            let Some(route) = self.routes.iter().find(|r| r.operation.name == claimed.intent.operation) else {
                continue;
            };
            got[place(route.index, claimed.asked)] += 1;
            let slot = self.slots.take(route.index);
            self.pauses.claimed(route.destination_index);
            let marks = route.operation.terms.marks_sends()
                && matches!(next_step(&claimed.row, &route.operation.terms), Plan::Send { .. });
            if marks {
                to_mark.entry(route.index).or_default().push((claimed, slot));
            } else {
                self.start(route, claimed, slot);
            }
        }
        for (route, held) in to_mark {
            self.mark_and_start(&self.routes[route], held).await;
        }
        let (mut hungry, mut partly) = (false, false);
        let mut eaters = vec![false; self.routes.len()];
        for next in claims.next_after {
            let route = self.routes.iter().find(|r| r.operation.name == next.operation);
            let want = wants.iter().find(|w| w.operation == next.operation && w.asks == next.asks);
            if let (Some(route), Some(want)) = (route, want) {
                let place = place(route.index, next.asks);
                let ate_all = got[place] >= want.free;
                let more = self.walk.went(place, next.after, got[place]);
                eaters[route.index] |= ate_all || more;
                hungry |= ate_all;
                partly |= more && !ate_all;
            }
        }
        for (hungry, (eats, share)) in self.walk.hungry.iter_mut().zip(eaters.iter().zip(&shares)) {
            if *share > 0 {
                *hungry = *eats;
            }
        }
        Ok(Found { some, hungry, partly, full })
    }

    /// Starts one delivery. It holds its slot until its outcome is with the settler.
    fn start(&self, route: &Arc<Route>, claimed: Claimed, slot: Slot) {
        let (route, outcomes, pauses, stop) =
            (Arc::clone(route), self.outcomes.clone(), Arc::clone(&self.pauses), self.stop.clone());
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
    async fn mark_and_start(&self, route: &Arc<Route>, held: Vec<(Claimed, Slot)>) {
        let claims: Vec<Claimed> = held.iter().map(|(claimed, _)| claimed.clone()).collect();
        let marked = self.ledger.mark(&claims).await;
        for (claimed, slot) in held {
            match &marked {
                Ok(marked) if marked.contains(&claimed.intent.id) => self.start(route, claimed, slot),
                // Overtaken, or not known to be marked: nothing is sent, and the row says so.
                Ok(_) | Err(_) => {
                    let outcome = delivery::hand_back(Arc::clone(route), claimed);
                    report(&self.pauses, &outcome);
                    let _ = self.outcomes.send(outcome).await;
                    drop(slot);
                }
            }
        }
    }

    async fn write_inventory(&self) -> Result<(), LedgerError> {
        self.ledger.check_schema().await?;
        let effect = |of| Effect::ALL.iter().find(|(e, _)| *e == of).map_or("", |(_, name)| *name);
        let rows: Vec<InventoryRow<'_>> = (self.routes.iter().map(|r| &r.operation))
            .map(|operation| InventoryRow {
                operation: &operation.name,
                destination: &operation.target,
                effect: effect(operation.terms.policy.effect),
                contract: &operation.terms.contract.name,
                meaning: &operation.meaning,
                owner: &operation.owner,
                absence: operation.terms.contract.absence(),
            })
            .collect();
        self.ledger.write_inventory(&rows).await
    }
}

/// How many of an operation's slots are for lookups and cancels: a small part, so that a backlog of doubts doesn't keep
/// sends waiting; every fourth time the only one there is, so that sends don't keep doubts waiting either.
fn asking_part(share: u32, turn: usize) -> u32 {
    match share {
        0 | 1 => share * u32::from(turn % 4 == 3),
        _ => (share / 8).max(1),
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
