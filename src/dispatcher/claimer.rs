//! The claims: what is due is taken, and handed to deliveries, as far as there are slots.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Notify, watch};

use super::deliveries::{Deliveries, Writes};
use super::edge::Edge;
use super::health::{Health, Who};
use super::journal::Journal;
use super::orphans::Orphans;
use super::pauses::Pauses;
use super::rates::Rates;
use super::rest::Sleeper;
use super::roster::Roster;
use super::slots::{Open, Slot, Slots, Stream};
use super::walk::{Found, Walk};
use super::{Settings, Stop};
use crate::clock::Uptime;
use crate::core::next_step::{Plan, next_step};
use crate::ledger::{Claimed, Ledger, LedgerError, Room, Want};
use crate::log::events;

/// Claims until it is told to stop.
pub struct Claimer {
    /// How.
    pub settings: Settings,
    /// From where.
    pub ledger: Ledger,
    /// Where to.
    pub roster: Arc<Roster>,
    /// Where to from the next claim on.
    pub rosters: watch::Receiver<Arc<Roster>>,
    /// How much at once.
    pub slots: Slots,
    /// How often.
    pub rates: Rates,
    /// Where not.
    pub pauses: Arc<Pauses>,
    /// Until when.
    pub stop: Stop,
    /// What becomes of it.
    pub deliveries: Arc<Deliveries>,
    /// How far.
    pub walk: Walk,
    /// And from where.
    pub edge: Edge,
    /// Between claims.
    pub sleeper: Sleeper,
    /// Which claims were not answered.
    pub orphans: Arc<Orphans>,
    /// Whether anything can be written down.
    pub health: Health,
    /// What could not be.
    pub journal: Journal,
    /// Rings where a serial queue has moved on.
    pub turns: Arc<Notify>,
    /// The database refuses to move them on, and that has been said.
    pub queues_refused: bool,
    /// A claim has taken what is of no operation here, and that has been said.
    pub not_ours: bool,
}

impl Claimer {
    /// Claims, and hands claims to deliveries, until the drain begins.
    pub async fn run(mut self) -> Result<(), LedgerError> {
        let (mut started, mut inventory_written) = (false, false);
        while !self.stop.drain.is_cancelled() {
            // Evidence in memory is settled before anything is claimed.
            tokio::select! {
                () = async { tokio::join!(self.health.settled(), self.journal.sound()); } => {}
                () = self.health.doubted() => match self.ledger.is_ours().await {
                    Err(error) if error.is_schema() || error.is_stranger() => return self.refused(error).await,
                    Ok(()) | Err(_) => continue,
                },
                // Nobody writes down any more what deliveries learn.
                () = self.deliveries.outcomes.closed() => break,
                () = self.stop.drain.cancelled() => break,
            }
            if self.take_roster() {
                inventory_written = false;
            }
            let claimed = async {
                if !inventory_written {
                    self.write_inventory().await?;
                }
                if !started {
                    self.sleeper.begin().await?;
                }
                self.orphans.give_back(&self.ledger).await?;
                self.claim().await
            }
            .await;
            match claimed {
                Ok(found) => {
                    self.health.well(Who::Claims);
                    inventory_written = true;
                    if !std::mem::replace(&mut started, true) {
                        events::started(
                            env!("CARGO_PKG_VERSION"),
                            self.ledger.worker(),
                            self.roster.routes.len(),
                            self.roster.destinations,
                        );
                    }
                    self.rest(found).await;
                }
                Err(error) if error.is_schema() || error.is_stranger() => return self.refused(error).await,
                Err(error) if error.is_config() => {
                    events::sessions_refused(&error);
                    return Err(error);
                }
                Err(error) => {
                    // Whatever it was, the schema may be another one when the database is back.
                    inventory_written = false;
                    tokio::select! {
                        () = tokio::time::sleep(self.health.lost(Who::Claims, &error)) => {}
                        () = self.stop.drain.cancelled() => {}
                    }
                }
            }
        }
        self.sleeper.leave().await;
        Ok(())
    }

    /// The end: what no waiting mends.
    async fn refused(&mut self, error: LedgerError) -> Result<(), LedgerError> {
        match error.is_schema() {
            true => events::schema_refused(&error),
            false => events::ledger_refused(&error),
        }
        self.sleeper.leave().await;
        Err(error)
    }

    /// Goes over to a new roster, where there is one.
    fn take_roster(&mut self) -> bool {
        let roster = Arc::clone(&self.rosters.borrow_and_update());
        if Arc::ptr_eq(&roster, &self.roster) {
            return false;
        }
        self.slots.limited(self.settings.max_in_flight, &roster.destination_max, &roster.limits);
        self.rates.limited(&roster.destination_rates, &roster.operation_rates);
        self.walk = Walk::new(self.slots.streams().len());
        self.edge = Edge::new(self.slots.streams().len(), self.settings.poll_interval);
        events::reloaded(roster.routes.len(), roster.destinations, roster.changed.len());
        self.roster = roster;
        true
    }

    /// One claim over all streams; what it brings is under way when this returns.
    pub(super) async fn claim(&mut self) -> Result<Found, LedgerError> {
        self.walk.turn = self.walk.turn.wrapping_add(1);
        let open = self.open();
        let shares = self.slots.shares(&self.walk.hungry, &open, self.walk.turn);
        let passed_over = self.slots.room(&open).iter().zip(&shares).any(|(room, share)| *room && *share == 0);
        let wants: Vec<Want> =
            (0..shares.len()).filter(|at| shares[*at] > 0).map(|at| self.want(at, shares[at])).collect();
        // What a tenant has due that has all it may is not to be had either.
        let full = shares.contains(&0) || self.slots.some_tenant_is_full();
        if wants.is_empty() {
            return Ok(Found { some: false, hungry: true, partly: false, full, passed_over: false, others: false });
        }
        let longest_lease = wants.iter().map(|want| want.timeout.saturating_add(want.margin)).max();
        let asked = Uptime::now();
        let mark = self.orphans.ask(longest_lease.unwrap_or_default());
        let left = self.slots.bytes_left();
        let small = left.small.min(self.settings.body_max_bytes);
        let room = Room { small, large: left.large, body_max: self.settings.body_max_bytes };
        let claim = self.ledger.claim_as(mark, &wants, room);
        let claims = match self.health.unless_slow(Who::Claims, claim, || {}).await {
            Ok(claims) => claims,
            Err(error) => {
                match error.says_undone() {
                    true => self.orphans.answered(mark),
                    // It may have been carried out all the same.
                    false => self.orphans.lost(mark),
                }
                return Err(error);
            }
        };
        self.orphans.answered(mark);
        let took = Uptime::now().since(asked);
        let mut some = !claims.claimed.is_empty();
        let mut got = vec![0; shares.len()];
        let mut first: BTreeMap<(usize, Writes), Vec<(Claimed, Slot)>> = BTreeMap::new();
        for claimed in claims.claimed {
            let Some((at, stream)) = self.stream(&claimed.intent.operation, claimed.asked) else {
                // Not by our statement. Nothing of it is sent; said once, and its lease ends by itself.
                if !std::mem::replace(&mut self.not_ours, true) {
                    events::claim_not_ours(&claimed.intent.operation);
                }
                continue;
            };
            got[at] += 1;
            let slot = self.slots.take(stream, &claimed.intent.tenant, claimed.intent.body.len());
            let route = &self.roster.routes[stream.operation];
            let plan = next_step(&claimed.row, &route.operation.terms);
            if !matches!(plan, Plan::Conclude(_)) {
                if self.pauses.closed_since(route, claimed.lease.asked_at) {
                    self.deliveries.hand_back(route, claimed, slot);
                    continue;
                }
                self.rates.spend(route.destination_index, route.operation_number);
            }
            let lease_ends = claimed.lease.deadline.plus(self.settings.lease_margin);
            self.pauses.claimed(route.destination_index, claimed.lease.asked_at, lease_ends);
            match Writes::first(&plan, &claimed, route) {
                Some(writes) => first.entry((stream.operation, writes)).or_default().push((claimed, slot)),
                None => self.deliveries.start(route, claimed, slot),
            }
        }
        let mut unwritten = Ok(());
        for ((route, writes), held) in first {
            let written = self.deliveries.start_written(&self.roster.routes[route], writes, held).await;
            // A panic in it has let go of its slots, and its leases end.
            unwritten = unwritten.and(written.unwrap_or(Ok(())));
        }
        let (mut hungry, mut partly) = (false, false);
        for next in claims.next_after {
            if let Some((at, _)) = self.stream(&next.operation, next.asks) {
                let since =
                    wants.iter().find(|w| w.operation == next.operation && w.asks == next.asks).and_then(|w| w.since);
                let whole = self.walk.after[at].is_empty() && next.after.is_empty();
                self.edge.met(at, since, took, whole, next.oldest);
                let eaten = got[at] + next.put_off;
                let ate_all = eaten >= shares[at];
                let more = self.walk.went(at, next.after, eaten);
                self.walk.hungry[at] = ate_all || more;
                hungry |= ate_all;
                partly |= more && !ate_all;
            }
        }
        unwritten?;
        if claims.unplaced {
            some |= self.give_turns().await?;
        }
        let passed_over = self.walk.passes_over(some, passed_over);
        let others = hungry && {
            let open = self.open();
            self.slots.room(&open).contains(&true)
        };
        // What waits for room waits for a slot.
        Ok(Found { some, hungry, partly, full: full || claims.heavy, passed_over, others })
    }

    /// How many requests may leave now: as pauses and rates have it.
    pub(super) fn open(&mut self) -> Open {
        let mut open = self.pauses.open();
        self.rates.narrow(&mut open);
        open
    }

    /// How long until pauses and rates may let more leave than now.
    pub(super) fn opens_in(&self) -> Duration {
        let waits = [self.pauses.opens_in(), self.rates.more_in()];
        waits.into_iter().flatten().min().unwrap_or(Duration::MAX)
    }

    fn want(&self, at: usize, free: u32) -> Want {
        let stream = self.slots.streams()[at];
        let operation = &self.roster.routes[stream.operation].operation;
        Want {
            operation: operation.name.clone(),
            asks: stream.asks,
            free,
            timeout: operation.terms.policy.timeout,
            margin: self.settings.lease_margin,
            after: self.walk.after[at].clone(),
            pins: operation.terms.pins,
            marks: operation.terms.marks_sends(),
            since: self.edge.since(at, self.walk.hungry[at]),
            tenants: self.slots.tenants(stream),
        }
    }

    /// The stream of an operation's rows, and its place among the streams.
    fn stream(&self, operation: &str, asks: bool) -> Option<(usize, Stream)> {
        let mut streams = self.slots.streams().iter().copied().enumerate();
        streams.find(|(_, s)| s.asks == asks && self.roster.routes[s.operation].operation.name == operation)
    }
}
