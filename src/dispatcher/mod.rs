//! The loop that joins ledger and destinations: claim → `next_step` → send → evidence → `decide` → settle.

mod claiming;
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
use crate::core::target::{Operation, Secret, Target};
use crate::destination::Destination;
use crate::ledger::{InventoryRow, Ledger, LedgerError, next_due_in};
use crate::log::events;
use claiming::Found;
use delivery::Outcome;
use health::{Health, Who};
use pauses::Pauses;
use rest::{Rest, Sleeper};
use route::Route;
use settler::Settler;
use slots::{Limit, Slots};
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
