//! Rates and bounds of a tenant, as the destination has seen them. Both are a daemon's own, so each is looked at alone;
//! one that is started again begins rested, and is another.

use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, SystemTime};

use serde::Serialize;
use uuid::Uuid;

use super::faults::Fault;
use super::kinds::{Kind, LEASE_MARGIN, NETWORK_KEEPS, TENANT_MAX, TIMEOUT, rate};
use super::promise::{Promise, Violation};
use super::records::{Attempt, Entry, Request, What, World};

/// How long after its token was taken a request may leave: as long as its lease allows.
const LEAVES_WITHIN: Duration = TIMEOUT.saturating_add(LEASE_MARGIN);

/// A request, with what the ledger knows of it.
#[derive(Clone, Copy)]
struct Arrival<'a> {
    entry: &'a Entry,
    request: &'a Request,
    attempt: &'a Attempt,
}

/// What was looked at.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize)]
pub struct PaceFigures {
    /// Requests that reached the destination with a rate.
    pub rated: usize,
    /// The most of one daemon within a second …
    pub fullest: usize,
    /// … and within ten.
    pub fullest_ten: usize,
    /// Requests of operations that bound what a tenant has at once.
    pub bounded: usize,
}

/// Everything that went too fast.
pub fn judge(world: &World) -> Vec<Violation> {
    let mut found = Vec::new();
    for arrivals in by_daemon(world, Kind::is_rated).values() {
        found.extend(too_many(world, arrivals));
    }
    for arrivals in by_daemon(world, Kind::is_bounded).values() {
        found.extend(at_once(world, arrivals));
    }
    found
}

/// In every window at most the burst, what the rate brings meanwhile, and one that is under way between two tokens.
fn too_many(world: &World, arrivals: &[Arrival]) -> Option<Violation> {
    let (burst, a_second) = rate();
    arrivals.iter().enumerate().find_map(|(place, last)| {
        arrivals[..place].iter().enumerate().find_map(|(earlier, first)| {
            let count = place - earlier + 1;
            let window = between(first.request.at, last.request.at);
            // Requests that left one after another may arrive together.
            let dark = is_dark(world, last.entry.kind.way(), first.request.at, last.request.at);
            let late = LEAVES_WITHIN + if dark { NETWORK_KEEPS } else { Duration::ZERO };
            let allowed = f64::from(burst) + 1.0 + f64::from(a_second) * (window + late).as_secs_f64();
            let ms = window.as_millis();
            (as_figure(count) > allowed).then(|| {
                Violation::of(
                    world,
                    last.entry,
                    Promise::Pace,
                    format!("{count} requests of one daemon came within {ms} ms, and its rate allows for {allowed:.1}"),
                )
            })
        })
    })
}

/// Whoever is claimed before another's request has arrived, and within its time, is under way beside it.
fn at_once(world: &World, arrivals: &[Arrival]) -> Option<Violation> {
    let sends: Vec<&Arrival> = arrivals.iter().filter(|arrival| arrival.attempt.kind == "send").collect();
    sends.iter().find_map(|last| {
        let now = last.request.at;
        if is_dark(world, last.entry.kind.way(), now, now) {
            return None;
        }
        let tenant = tenant(world, last.entry);
        let beside = sends.iter().filter(|other| {
            let same = other.entry.kind == last.entry.kind && self::tenant(world, other.entry) == tenant;
            let claimed = other.attempt.started_at.is_some_and(|at| at < now && now <= at + TIMEOUT);
            let is_itself = other.attempt.attempt == last.attempt.attempt;
            let another = other.entry.action != last.entry.action;
            same && claimed && other.request.at >= now && (is_itself || another)
        });
        let count = beside.count();
        (count > TENANT_MAX as usize).then(|| {
            Violation::of(
                world,
                last.entry,
                Promise::Pace,
                format!("one daemon had {count} of one tenant under way at once, and {TENANT_MAX} is the most"),
            )
        })
    })
}

fn tenant(world: &World, entry: &Entry) -> Option<&'static str> {
    world.plan.order(entry.order).map(super::plan::Order::tenant)
}

/// Requests of some kinds by the daemon that sent them, in the order of their arrival.
fn by_daemon<'a>(world: &'a World, wanted: fn(Kind) -> bool) -> BTreeMap<&'a str, Vec<Arrival<'a>>> {
    let attempts: HashMap<Uuid, (&Entry, &Attempt)> = (world.entries.iter())
        .flat_map(|entry| entry.attempts.iter().map(move |attempt| (attempt.attempt, (entry, attempt))))
        .collect();
    let mut found: BTreeMap<&str, Vec<Arrival>> = BTreeMap::new();
    for request in &world.requests {
        let Some((entry, attempt)) = request.attempt.and_then(|attempt| attempts.get(&attempt)) else { continue };
        let Some(worker) = attempt.worker.as_deref().filter(|_| wanted(entry.kind)) else { continue };
        found.entry(worker).or_default().push(Arrival { entry, request, attempt });
    }
    for arrivals in found.values_mut() {
        arrivals.sort_by_key(|arrival| arrival.request.at);
    }
    found
}

/// Whether what arrived then may have waited in the dark.
fn is_dark(world: &World, way: usize, from: SystemTime, to: SystemTime) -> bool {
    world.faults.iter().any(|happened| {
        matches!(happened.fault, Fault::DarkWay(dark, _) if dark == way)
            && happened.from <= to
            && happened.to + NETWORK_KEEPS >= from
    })
}

fn between(from: SystemTime, to: SystemTime) -> Duration {
    to.duration_since(from).unwrap_or(Duration::ZERO)
}

#[allow(clippy::cast_precision_loss, reason = "counts of a drill")]
fn as_figure(count: usize) -> f64 {
    count as f64
}

impl PaceFigures {
    /// Counts.
    pub fn of(world: &World) -> Self {
        let rated = by_daemon(world, Kind::is_rated);
        let within = |seconds| {
            let most = |arrivals: &Vec<Arrival>| {
                let until = |last: &Arrival| {
                    let close = |first: &&Arrival| {
                        first.request.at <= last.request.at
                            && between(first.request.at, last.request.at) < Duration::from_secs(seconds)
                    };
                    arrivals.iter().filter(close).count()
                };
                arrivals.iter().map(until).max()
            };
            rated.values().filter_map(most).max().unwrap_or(0)
        };
        let bounded = by_daemon(world, Kind::is_bounded);
        let sends = |arrival: &&Arrival| arrival.request.what == What::Send;
        Self {
            rated: rated.values().map(Vec::len).sum(),
            fullest: within(1),
            fullest_ten: within(10),
            bounded: bounded.values().flatten().filter(sends).count(),
        }
    }
}
