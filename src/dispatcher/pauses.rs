//! How the destinations stand, shared by the claims, the deliveries and those who tell of it. Kept in memory: a daemon
//! that is started anew finds out anew.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, watch};

use super::delivery::Outcome;
use super::pause::{Cause, Change, Pause, Standing, Why, Word};
use super::route::Route;
use super::slots::Open;
use crate::clock::Uptime;
use crate::core::action::Step;
use crate::core::contract::Scope;
use crate::core::evidence::{Evidence, Finding};
use crate::core::reason::Reason;
use crate::core::retry::Dice;
use crate::log::events;

/// How each destination stands, by its number.
#[derive(Debug)]
pub struct Pauses {
    standings: Mutex<Standings>,
    /// Goes on by one whenever a pause begins, ends or has been probed.
    version: watch::Sender<u64>,
    /// A probe is due sooner than it was.
    sooner: Notify,
}

/// Destinations, and operations of them that were asked for patience.
#[derive(Debug, Default)]
struct Standings {
    destinations: Vec<Standing>,
    /// Until when, by the number of the operation.
    operations: Vec<Option<Uptime>>,
}

/// A pause of an operation whose contract doesn't say that it is one is a guess: others are tried again after that.
const GUESS: Duration = Duration::from_secs(30);
/// A wait shorter than that is not worth a line.
const WORTH_A_LINE: Duration = Duration::from_secs(5);

impl Pauses {
    /// None is paused, and none is known.
    pub fn new() -> Self {
        Self { standings: Mutex::default(), version: watch::Sender::new(0), sooner: Notify::new() }
    }

    /// So many destinations and operations are known from now on, never fewer than before.
    pub fn know(&self, destinations: usize, operations: usize) {
        let mut standings = self.lock();
        let (known, of) = (standings.destinations.len(), standings.operations.len());
        standings.destinations.resize_with(known.max(destinations), Standing::default);
        standings.operations.resize(of.max(operations), None);
    }

    /// The destination is not as it was when it was paused, or somebody says so: its next probe is due at once.
    pub fn probe_soon(&self, destination: usize) {
        if let Some(standing) = self.lock().destinations.get_mut(destination) {
            standing.probe_soon(Uptime::now());
        }
        self.sooner.notify_one();
    }

    /// Waits until a probe is due sooner than it was.
    pub async fn sooner(&self) {
        self.sooner.notified().await;
    }

    /// Sees each beginning and end of a pause, and each probe.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.version.subscribe()
    }

    /// How many requests each destination takes now: all, one (a probe), or none; each operation all or none.
    pub fn open(&self) -> Open {
        let now = Uptime::now();
        let standings = self.lock();
        let patient = |until: &Option<Uptime>| if until.is_some_and(|until| now < until) { 0 } else { u32::MAX };
        Open {
            destinations: standings.destinations.iter().map(|standing| standing.takes(now)).collect(),
            operations: standings.operations.iter().map(patient).collect(),
        }
    }

    /// The pauses that go on.
    pub fn paused(&self) -> Vec<Option<Pause>> {
        self.lock().destinations.iter().map(Standing::pause).collect()
    }

    /// Whether the destination is paused.
    pub fn is_paused(&self, destination: usize) -> bool {
        self.lock().destinations[destination].pause().is_some()
    }

    /// How long until the next probe, or the end of a wait that was asked for; `None` where nothing waits.
    pub fn opens_in(&self) -> Option<Duration> {
        let now = Uptime::now();
        let standings = self.lock();
        let probes = standings.destinations.iter().filter_map(|standing| standing.opens_at(now));
        let waits = standings.operations.iter().flatten().copied().filter(|until| *until > now);
        probes.chain(waits).min().map(|at| at.since(now))
    }

    /// A claim for the destination has been made: where it is paused, that is the probe.
    pub fn claimed(&self, destination: usize, claimed_at: Uptime, lease_ends: Uptime) {
        self.lock().destinations[destination].claimed(claimed_at, lease_ends);
    }

    /// Whether an answer that came after a claim was asked for has closed the way: then nothing of the claim leaves.
    pub fn closed_since(&self, route: &Route, claimed_at: Uptime) -> bool {
        let now = Uptime::now();
        let standings = self.lock();
        let patient = standings.operations[route.operation_number].is_some_and(|until| now < until);
        patient || standings.destinations[route.destination_index].closed_since(claimed_at, now)
    }

    /// How long the destination has been paused within the last `age`, since this daemon was started.
    pub fn paused_within(&self, destination: usize, age: Duration) -> Duration {
        let now = Uptime::now();
        self.lock().destinations[destination].paused_since(now.minus(age), now)
    }

    /// What came of a claim. Says so where that begins or ends a pause.
    pub fn learnt(&self, outcome: &Outcome) {
        self.be_patient(outcome);
        let destination = outcome.route.destination_index;
        let word = word(outcome);
        let dice = Dice::new(rand::random());
        let change =
            self.lock().destinations[destination].learnt(word, outcome.claimed.lease.asked_at, Uptime::now(), dice);
        if change != Change::None {
            self.version.send_modify(|version| *version += 1);
        }
        let name = &outcome.route.operation.target;
        let detail = outcome.finding.detail.as_deref().unwrap_or_default();
        match change {
            Change::None | Change::Probed => {}
            Change::Paused(Cause { why, reason, status }) => {
                let reason = reason.map_or("", Reason::code);
                match why {
                    Why::Credentials => events::destination_paused(name, reason, status),
                    Why::Unreachable => events::destination_unreachable(name, reason, detail),
                    Why::Silent => events::destination_silent(name, reason, status, detail),
                }
            }
            Change::Resumed { why, paused, probes } => events::destination_resumed(name, why.as_str(), paused, probes),
        }
    }

    /// Where an answer said when to come back: for as long nothing of what it spoke of leaves.
    fn be_patient(&self, outcome: &Outcome) {
        let finding = &outcome.finding;
        let asked = finding.evidence == Evidence::Deferred || finding.status == Some(429);
        let Some(wait) = finding.retry_after.filter(|_| asked) else { return };
        let terms = &outcome.route.operation.terms;
        let wait = wait.min(terms.policy.retry_after_max);
        let (scope, wait) = match finding.pause {
            Some(scope) => (scope, wait),
            // Actions that name the host themselves say nothing about one another's.
            None if outcome.route.host_from_data => (Scope::Action, wait),
            None => (Scope::Operation, wait.min(GUESS)),
        };
        let now = Uptime::now();
        let until = now.plus(wait);
        let was = match scope {
            Scope::Action => return,
            Scope::Operation => {
                let mut standings = self.lock();
                let held = &mut standings.operations[outcome.route.operation_number];
                held.replace(held.map_or(until, |before| before.max(until)))
            }
            Scope::Destination => self.lock().destinations[outcome.route.destination_index].be_patient(until),
        };
        // One line for all that were told so together.
        if wait >= WORTH_A_LINE && was.is_none_or(|was| was <= now) {
            let operation = &outcome.route.operation;
            events::destination_throttled(&operation.target, &operation.name, scope.as_str(), wait);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Standings> {
        self.standings.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What came of a claim, as far as it speaks of the destination.
fn word(outcome: &Outcome) -> Word {
    let Some(tried) = outcome.tried else { return Word::Nothing };
    let finding = &outcome.finding;
    let trouble = |why| Word::Trouble(Cause { why, reason: finding.reason, status: finding.status });
    // A lookup can be refused for our credentials too; its evidence is that it settled nothing. Without a token there is
    // nothing to send with.
    let without = [Reason::CredentialsRefused, Reason::CredentialsUnavailable];
    if finding.evidence == Evidence::Blocked || finding.reason.is_some_and(|reason| without.contains(&reason)) {
        return trouble(Why::Credentials);
    }
    // Actions that name the host themselves say nothing about one another's.
    let one_host = !outcome.route.host_from_data;
    if finding.status.is_some() {
        return if one_host && is_a_gateways(finding) { trouble(Why::Silent) } else { Word::Answered };
    }
    match (finding.evidence, finding.reason) {
        (Evidence::NotSent, Some(Reason::LeaseLost | Reason::KeyWindowClosed)) => Word::Nothing,
        // It said itself that it did not look at it.
        (Evidence::NotSent, Some(Reason::StreamRefused)) => Word::Answered,
        (Evidence::NotSent, _) if one_host => trouble(Why::Unreachable),
        // That was us.
        (Evidence::NoAnswer, Some(Reason::WorkerLost)) => Word::Unheard,
        (Evidence::NoAnswer, _) if one_host => trouble(Why::Silent),
        (Evidence::NotSent | Evidence::NoAnswer, _) => Word::Unheard,
        // Bytes came that are no answer.
        (Evidence::UnknownAnswer, _) => Word::Answered,
        (Evidence::Inconclusive, _) if matches!(tried, Step::Lookup | Step::Cancel) => Word::Unheard,
        (Evidence::Accepted | Evidence::Found | Evidence::Mismatch | Evidence::Deferred | Evidence::Blocked, _) => {
            Word::Nothing
        }
        (Evidence::Rejected { .. } | Evidence::KeyConflict | Evidence::InFlight | Evidence::Lapsed, _) => Word::Nothing,
        (Evidence::Absent | Evidence::Neutralised | Evidence::Inconclusive | Evidence::Stopped(_), _) => Word::Nothing,
        (Evidence::Spent | Evidence::RungGone | Evidence::Unsendable | Evidence::Proof, _) => Word::Nothing,
    }
}

/// A status with which a gateway says that nothing answers behind it, and the contract has no other meaning for it
/// (RFC 9110 sections 15.6.3 to 15.6.5).
fn is_a_gateways(finding: &Finding) -> bool {
    let settles_nothing = matches!(finding.evidence, Evidence::UnknownAnswer | Evidence::Inconclusive);
    settles_nothing && matches!(finding.status, Some(502..=504))
}
