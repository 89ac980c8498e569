//! The loop that joins ledger and destinations: claim → `next_step` → send → evidence → `decide` → settle.

mod delivery;
mod health;
mod pauses;
mod reconnect;
mod rest;
mod route;
mod settler;
mod slots;
mod stats;
mod tally;
mod telling;
mod walk;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::core::action::ActionId;
use crate::core::next_step::{Plan, next_step};
use crate::core::target::{Operation, Secret, Target};
use crate::destination::Destination;
use crate::ledger::{Claimed, InventoryRow, Ledger, LedgerError, Want, next_due_in};
use crate::log::events;
use delivery::Outcome;
use health::{Health, Who};
use pauses::{Change, Pauses};
use rest::{Rest, Sleeper};
use route::Route;
use settler::Settler;
use slots::{Limit, Slot, Slots};
use tally::Tally;
use walk::{SHORTEST_LOOK, Walk};

/// How the daemon runs.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Sends at once, over all operations.
    pub max_in_flight: u32,
    /// What a lease outlives its operation's timeout by.
    pub lease_margin: Duration,
    /// The longest sleep.
    pub poll_interval: Duration,
    /// How long a stop waits for sends that are under way.
    pub drain_timeout: Duration,
    /// Between two stats lines.
    pub stats_interval: Duration,
    /// A direct session for the doorbell; `None` polls.
    pub bell: Option<Secret>,
}

/// What is dispatched.
#[derive(Clone, Debug)]
pub struct Catalogue {
    /// Destinations by name.
    pub targets: BTreeMap<String, Target>,
    /// Operations, each with the most sends at once.
    pub operations: Vec<(Operation, u32)>,
}

/// How a daemon is told to end.
#[derive(Clone, Debug, Default)]
pub struct Stop {
    /// Claim nothing more, wait for what is under way.
    pub drain: CancellationToken,
    /// Don't wait.
    pub abandon: CancellationToken,
}

/// The daemon.
pub struct Dispatcher {
    settings: Settings,
    ledger: Ledger,
    routes: Vec<Arc<Route>>,
    slots: Arc<Slots>,
    pauses: Arc<Pauses>,
    tally: Arc<Tally>,
    targets: usize,
}

impl Dispatcher {
    /// Builds the clients; claims nothing yet. An operation whose destination is not in the catalogue is left out;
    /// the configuration refuses such an operation before it gets here.
    pub fn new(settings: Settings, ledger: Ledger, catalogue: Catalogue) -> Self {
        let names: Vec<&String> = catalogue.targets.keys().collect();
        let destinations: Vec<Arc<Destination>> =
            catalogue.targets.values().map(|target| Arc::new(Destination::new(target.clone()))).collect();
        let mut routes = Vec::new();
        let mut limits = Vec::new();
        for (operation, operation_max) in catalogue.operations {
            let Ok(destination_index) = names.binary_search(&&operation.target) else { continue };
            limits.push(Limit { destination: destination_index, operation_max });
            let destination = Arc::clone(&destinations[destination_index]);
            routes.push(Arc::new(Route { operation, index: routes.len(), destination, destination_index }));
        }
        let destination_max = catalogue.targets.values().map(|target| target.max_in_flight).collect();
        Self {
            slots: Slots::new(settings.max_in_flight, destination_max, limits),
            pauses: Arc::new(Pauses::new(destinations.len())),
            tally: Arc::new(Tally::default()),
            targets: destinations.len(),
            settings,
            ledger,
            routes,
        }
    }

    /// Runs until told to stop; returns the actions that were abandoned. Where the schema turns out not to fit this
    /// binary it drains and ends with that error; a database that doesn't answer is waited for.
    pub async fn run(self, stop: Stop) -> Result<Vec<ActionId>, LedgerError> {
        let (outcomes, received) = mpsc::channel(usize::try_from(self.settings.max_in_flight).unwrap_or(256).max(256));
        let (health, give_up) = (Health::new(), CancellationToken::new());
        let settler = Settler {
            ledger: self.ledger.clone(),
            health: health.clone(),
            tally: Arc::clone(&self.tally),
            give_up: give_up.clone(),
        };
        let settler = tokio::spawn(settler.run(received));
        let timer = tokio::spawn(run_out(stop.clone(), self.settings.drain_timeout, give_up));
        let lines = tokio::spawn(stats::run(
            self.ledger.clone(),
            Arc::clone(&self.tally),
            self.settings.stats_interval,
            stop.drain.clone(),
        ));
        let claimed = tokio::select! {
            claimed = self.claim_until_told(&stop, &outcomes, &health) => claimed,
            // A claim that the database doesn't answer; whatever it may have taken lapses.
            () = stop.abandon.cancelled() => Ok(()),
        };

        events::draining(self.slots.in_use(), self.settings.drain_timeout);
        drop(outcomes); // the deliveries under way hold the others
        let abandoned = match settler.await {
            Ok(abandoned) => abandoned,
            Err(ended) => match ended.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                Err(_) => Vec::new(),
            },
        };
        timer.abort();
        lines.abort();
        for action in &abandoned {
            events::abandoned(*action);
        }
        events::stopped(abandoned.len());
        claimed.map(|()| abandoned)
    }

    /// Claims, and hands claims to deliveries, until the drain begins.
    async fn claim_until_told(
        &self,
        stop: &Stop,
        outcomes: &mpsc::Sender<Outcome>,
        health: &Health,
    ) -> Result<(), LedgerError> {
        let mut walk = Walk::new(self.routes.len());
        let mut sleeper = Sleeper::new(self.settings.bell.clone());
        let (mut started, mut inventory_written) = (false, false);
        while !stop.drain.is_cancelled() {
            // Evidence in memory is settled before anything is claimed.
            tokio::select! {
                () = health.settled() => {}
                // Nobody writes down any more what deliveries learn.
                () = outcomes.closed() => break,
                () = stop.drain.cancelled() => break,
            }
            let claimed = async {
                if !inventory_written {
                    self.write_inventory().await?;
                }
                self.claim(&mut walk, stop, outcomes).await
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
                            self.targets,
                        );
                    }
                    self.rest(found, &mut walk, &mut sleeper, stop, outcomes).await;
                }
                Err(error) if error.is_schema() => {
                    events::schema_refused(&error);
                    sleeper.leave().await;
                    return Err(error);
                }
                Err(error) => {
                    // Whatever it was, the schema may be another one when the database is back.
                    inventory_written = false;
                    tokio::select! {
                        () = tokio::time::sleep(health.lost(Who::Claims, &error)) => {}
                        () = stop.drain.cancelled() => {}
                    }
                }
            }
        }
        sleeper.leave().await;
        Ok(())
    }

    /// One claim over all operations; what it brings is under way when this returns.
    async fn claim(
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

    /// Sleeps as long as there is nothing to claim.
    async fn rest(
        &self,
        found: Found,
        walk: &mut Walk,
        sleeper: &mut Sleeper,
        stop: &Stop,
        outcomes: &mpsc::Sender<Outcome>,
    ) {
        if found.hungry || found.partly {
            return self.await_slots(found, stop).await;
        }
        if found.some {
            return;
        }
        match sleeper.approach().await {
            Rest::Look(after) => {
                tokio::select! {
                    () = tokio::time::sleep(after) => {}
                    () = stop.drain.cancelled() => {}
                }
            }
            Rest::Sleep => {
                // Whatever was committed before the door was kept rang nobody.
                let looked = self.look(walk, stop, outcomes).await;
                if matches!(looked, Ok(Found { some: false, hungry: false, .. })) {
                    let at_most = self.until_due(walk).await.min(sleeper.retry_in());
                    tokio::select! {
                        () = tokio::time::sleep(at_most) => {}
                        () = sleeper.rung() => {}
                        () = self.slots.freed(), if found.full => {}
                        () = stop.drain.cancelled() => {}
                    }
                }
            }
        }
        sleeper.leave().await;
    }

    /// A whole walk over the tenants, or as much of it as finds something.
    async fn look(&self, walk: &mut Walk, stop: &Stop, outcomes: &mpsc::Sender<Outcome>) -> Result<Found, LedgerError> {
        loop {
            let found = self.claim(walk, stop, outcomes).await?;
            if found.some || !found.partly || stop.drain.is_cancelled() {
                return Ok(found);
            }
        }
    }

    /// More is due than there were slots for: waits until a claim is worth its way.
    async fn await_slots(&self, found: Found, stop: &Stop) {
        if found.full && !found.partly {
            let probe = self.pauses.next_probe_in().unwrap_or(Duration::MAX);
            tokio::select! {
                () = self.slots.freed() => {}
                () = tokio::time::sleep(probe.min(self.settings.poll_interval)) => {}
                () = stop.drain.cancelled() => return,
            }
        }
        let enough = self.settings.max_in_flight.div_ceil(4);
        let coalesce = tokio::time::sleep(COALESCE);
        tokio::pin!(coalesce);
        while self.settings.max_in_flight.saturating_sub(self.slots.in_use()) < enough {
            tokio::select! {
                () = self.slots.freed() => {}
                () = &mut coalesce => return,
                () = stop.drain.cancelled() => return,
            }
        }
    }

    /// How long until something is due, at most the poll interval. What waits for a slot or a probe is not due here.
    async fn until_due(&self, walk: &mut Walk) -> Duration {
        let shares = self.slots.shares(&vec![false; self.routes.len()], &self.pauses.open(), 0);
        let open: Vec<&str> = (self.routes.iter().zip(&shares))
            .filter(|(_, share)| **share > 0)
            .map(|(route, _)| route.operation.name.as_str())
            .collect();
        let due = next_due_in(&self.ledger, &open).await.ok().flatten().unwrap_or(Duration::MAX);
        let probe = self.pauses.next_probe_in().unwrap_or(Duration::MAX);
        // What is due and yet was not claimed is locked by somebody else: look again soon, then less and less often.
        let due = if due.is_zero() { walk.locked_out() } else { due.max(SHORTEST_LOOK) };
        due.min(probe.max(SHORTEST_LOOK)).min(self.settings.poll_interval)
    }

    async fn write_inventory(&self) -> Result<(), LedgerError> {
        self.ledger.check_schema().await?;
        let effect =
            |of| crate::core::contract::Effect::ALL.iter().find(|(e, _)| *e == of).map_or("", |(_, name)| *name);
        let rows: Vec<InventoryRow<'_>> = (self.routes.iter().map(|r| &r.operation))
            .map(|operation| InventoryRow {
                operation: &operation.name,
                destination: &operation.target,
                effect: effect(operation.terms.policy.effect),
                contract: &operation.terms.contract.name,
                meaning: &operation.meaning,
                owner: &operation.owner,
            })
            .collect();
        self.ledger.write_inventory(&rows).await
    }
}

/// How long the settler goes on after the drain's time has run out: for what was cut short just then.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// From the first word of a stop on: the drain's time, and then the time for last words.
async fn run_out(stop: Stop, drain_timeout: Duration, give_up: CancellationToken) {
    stop.drain.cancelled().await;
    tokio::select! {
        () = tokio::time::sleep(drain_timeout) => stop.abandon.cancel(),
        () = stop.abandon.cancelled() => {}
    }
    tokio::time::sleep(LAST_WORDS).await;
    give_up.cancel();
}

/// While more is due than slots are free: how long a claim waits for slots to come together.
const COALESCE: Duration = Duration::from_millis(2);

/// What a claim found.
#[derive(Clone, Copy)]
struct Found {
    /// At least one row.
    some: bool,
    /// Some operation had as much due as it could take.
    hungry: bool,
    /// Some operation had slots left, and tenants that have not been looked at.
    partly: bool,
    /// Some operation could take nothing.
    full: bool,
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
