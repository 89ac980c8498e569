//! The referee: application, ledger and destinations compared, action by action. It knows nothing of how outboxd works
//! but what it promises, and expects no more of a destination than its contract says.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::{Duration, SystemTime};

use uuid::Uuid;

use super::decisions;
use super::kinds::{Kind, LEASE_MARGIN, NETWORK_KEEPS, Repeats, TIMEOUT};
use super::paces;
use super::promise::{Promise, Violation};
use super::queues;
use super::records::{Effect, Entry, Request, What, World};
use crate::core::action::State;
use crate::core::reason::Reason;

/// How long after a stop a request may still arrive: it was claimed before, under a lease, and was on its way.
pub const STILL_ARRIVES: Duration =
    Duration::from_millis((TIMEOUT.as_millis() + LEASE_MARGIN.as_millis() + NETWORK_KEEPS.as_millis() + 1000) as u64);

/// The world, with its parts found quickly.
struct Bench<'a> {
    world: &'a World,
    by_order: HashMap<u32, &'a Entry>,
    by_action: HashMap<Uuid, &'a Entry>,
    written: HashSet<u32>,
    sends: BTreeMap<Uuid, Vec<&'a Request>>,
    effects: HashMap<Uuid, Vec<&'a Effect>>,
}

/// Everything that is not as promised.
pub fn judge(world: &World) -> Vec<Violation> {
    let mut bench = Bench {
        world,
        by_order: world.entries.iter().map(|entry| (entry.order, entry)).collect(),
        by_action: world.entries.iter().map(|entry| (entry.action, entry)).collect(),
        written: world.desk.written.iter().map(|written| written.order).collect(),
        sends: BTreeMap::new(),
        effects: HashMap::new(),
    };
    for request in world.requests.iter().filter(|request| request.what == What::Send) {
        bench.sends.entry(request.action.unwrap_or_default()).or_default().push(request);
    }
    for effect in &world.effects {
        bench.effects.entry(effect.action.unwrap_or_default()).or_default().push(effect);
    }
    let mut found = [
        bench.committed(),
        bench.identity(),
        bench.recorded(),
        bench.keys(),
        bench.duplicates(),
        bench.states(),
        bench.lost(),
        bench.stops(),
        bench.compensations(),
        decisions::judge(world),
        queues::judge(world),
        paces::judge(world),
    ]
    .concat();
    let worker = |what: &String| violation(Promise::Worker, what.clone());
    found.extend(world.deserters.iter().map(worker));
    found
}

fn violation(promise: Promise, what: impl Into<String>) -> Violation {
    Violation { promise, what: what.into(), action: None, story: Vec::new() }
}

impl<'a> Bench<'a> {
    fn of(&self, entry: &Entry, promise: Promise, what: impl Into<String>) -> Violation {
        Violation::of(self.world, entry, promise, what)
    }

    fn effects_of(&self, action: Uuid) -> &[&'a Effect] {
        self.effects.get(&action).map_or(&[], Vec::as_slice)
    }

    fn is_live(&self, action: Uuid) -> bool {
        self.effects_of(action).iter().any(|effect| !effect.void)
    }

    /// What was rolled back is nowhere; what was committed is in the ledger.
    fn committed(&self) -> Vec<Violation> {
        let mut found = Vec::new();
        for entry in self.world.entries.iter().filter(|entry| !self.written.contains(&entry.order)) {
            found.push(self.of(
                entry,
                Promise::NotCommitted,
                format!("order {} is not in the application's table", entry.order),
            ));
        }
        for request in self.world.requests.iter().filter(|request| request.what == What::Send) {
            let order = request.order.unwrap_or(0);
            if !self.written.contains(&order) {
                found.push(violation(Promise::NotCommitted, format!("order {order} was not committed, and was sent")));
            }
        }
        for order in self.world.desk.written.iter().filter(|written| !self.by_order.contains_key(&written.order)) {
            found.push(violation(Promise::Lost, format!("order {} is committed and has no action", order.order)));
        }
        found
    }

    /// Each order has one action, whoever asked how often.
    fn identity(&self) -> Vec<Violation> {
        let mut found = Vec::new();
        let mut created: HashMap<u32, usize> = HashMap::new();
        for answer in &self.world.desk.answers {
            *created.entry(answer.order).or_default() += usize::from(answer.created);
            let Some(entry) = self.by_order.get(&answer.order) else { continue };
            if answer.action != entry.action {
                found.push(self.of(entry, Promise::Identity, "it was answered with another action"));
            }
        }
        for written in &self.world.desk.written {
            let Some(entry) = self.by_order.get(&written.order) else { continue };
            if written.action != entry.action {
                found.push(self.of(entry, Promise::Identity, "the application has written down another action"));
            }
            if created.get(&written.order).is_some_and(|times| *times > 1) {
                found.push(self.of(entry, Promise::Identity, "two of its transactions were told that they created it"));
            }
        }
        if self.by_order.len() != self.world.entries.len() {
            found.push(violation(Promise::Identity, "two actions of one order"));
        }
        found
    }

    /// Nothing is sent without a record; nothing twice under one claim.
    fn recorded(&self) -> Vec<Violation> {
        let mut found = Vec::new();
        for (action, sends) in &self.sends {
            let Some(entry) = self.by_action.get(action) else {
                found.push(violation(
                    Promise::Unrecorded,
                    format!("action {action} was sent, and the ledger does not know it"),
                ));
                continue;
            };
            let recorded = |request: &Request| {
                entry.attempts.iter().any(|a| Some(a.attempt) == request.attempt && a.kind != "lookup")
            };
            if let Some(request) = sends.iter().find(|request| !recorded(request)) {
                let attempt = request.attempt.unwrap_or_default();
                found.push(self.of(
                    entry,
                    Promise::Unrecorded,
                    format!("attempt {attempt} was sent, and its history does not have it"),
                ));
            }
            let attempts: HashSet<_> = sends.iter().map(|request| request.attempt).collect();
            if attempts.len() < sends.len() {
                found.push(self.of(entry, Promise::SentTwice, "the destination has seen one attempt twice"));
            }
        }
        for request in self.world.requests.iter().filter(|request| request.what == What::Cancel) {
            let entry = request.action.and_then(|action| self.by_action.get(&action));
            if let Some(entry) = entry.filter(|entry| !entry.cancel_sent) {
                found.push(self.of(
                    entry,
                    Promise::Unrecorded,
                    "a cancel by key was sent, and the ledger does not say so",
                ));
            }
        }
        found
    }

    /// Every attempt carries the same key and the same content.
    fn keys(&self) -> Vec<Violation> {
        let mut found = Vec::new();
        for (action, sends) in &self.sends {
            let Some(entry) = self.by_action.get(action) else { continue };
            if !same(sends, entry.kind) {
                found.push(self.of(entry, Promise::KeyChanged, "two attempts differ in key, content or path"));
            }
            let other = |a: &&super::records::Attempt| {
                a.key.is_some()
                    && sends.iter().any(|r| r.attempt == Some(a.attempt) && r.key.is_some() && r.key != a.key)
            };
            if entry.attempts.iter().any(|attempt| other(&attempt)) {
                found.push(self.of(entry, Promise::KeyChanged, "the history has another key than was sent"));
            }
        }
        found
    }

    /// Effects beyond the first, where the contract promises that there are none.
    fn duplicates(&self) -> Vec<Violation> {
        let promised = |entry: &&Entry| entry.kind.repeats() == Repeats::Never;
        let mut found = Vec::new();
        for entry in self.world.entries.iter().filter(promised) {
            let count = self.effects_of(entry.action).len();
            if count > 1 {
                found.push(self.of(entry, Promise::Duplicate, format!("it took effect {count} times")));
            }
        }
        found
    }

    /// What the ledger calls done is done, and what it calls not done is not.
    fn states(&self) -> Vec<Violation> {
        let mut found = Vec::new();
        for entry in &self.world.entries {
            let effects = self.effects_of(entry.action);
            let wrong = match entry.state {
                State::Succeeded if entry.kind == Kind::ReadOnly => {
                    let sent = self.sends.contains_key(&entry.action);
                    (!sent).then(|| "it is succeeded and was never sent".to_owned())
                }
                State::Succeeded if !self.is_live(entry.action) => {
                    Some("it is succeeded, and the destination has no effect of it".to_owned())
                }
                State::Succeeded => {
                    let named = entry.receipt.as_ref();
                    let known = named.is_none_or(|receipt| effects.iter().any(|effect| &effect.receipt == receipt));
                    (!known).then(|| {
                        format!("its receipt {} is none of the destination's", named.map_or("", String::as_str))
                    })
                }
                State::TerminalFailure => {
                    self.is_live(entry.action).then(|| "it is closed as not delivered, and it took effect".to_owned())
                }
                State::Pending | State::RetryableFailure => self
                    .is_live(entry.action)
                    .then(|| format!("it is {}, with nothing in doubt, and it took effect", entry.state.as_str())),
                State::Dispatching | State::OutcomeUnknown => None,
            };
            found.extend(wrong.map(|what| self.of(entry, Promise::FalseState, what)));
            if entry.attempts.iter().any(|attempt| attempt.verdict == "contradicts") {
                found.push(self.of(
                    entry,
                    Promise::FalseState,
                    "it was confirmed after it had been closed as not delivered",
                ));
            }
        }
        found
    }

    /// Everything is closed, held, or will be looked at again.
    fn lost(&self) -> Vec<Violation> {
        let mut found = Vec::new();
        for entry in self.world.entries.iter().filter(|entry| !entry.is_closed() && !entry.is_held()) {
            let original = entry.compensates.and_then(|action| self.by_action.get(&action));
            let waits = original.is_some_and(|original| !original.is_closed());
            if entry.due_at.is_none() {
                found.push(self.of(
                    entry,
                    Promise::Lost,
                    format!("it is {} and nothing will ever come of it", entry.state.as_str()),
                ));
            } else if !waits {
                let what = format!("it has not come to rest: {}, step {}", entry.state.as_str(), entry.step);
                found.push(self.of(entry, Promise::Lost, what));
            }
        }
        found
    }

    /// Nothing leaves after a stop.
    fn stops(&self) -> Vec<Violation> {
        let mut found = Vec::new();
        for entry in &self.world.entries {
            let cancel = self.world.desk.cancels.iter().find(|cancel| cancel.order == entry.order);
            if cancel.is_some_and(|cancel| cancel.certain) && !self.effects_of(entry.action).is_empty() {
                found.push(self.of(entry, Promise::SentAfterStop, "its cancellation was certain, and it took effect"));
            }
            let grant = self.world.plan.order(entry.order).and_then(|order| order.grant);
            let revoked = self.world.desk.revoked.iter().filter(|(revoked, ..)| Some(*revoked) == grant);
            let mut stops: Vec<(SystemTime, Option<SystemTime>)> = revoked.map(|(_, from, to)| (*from, *to)).collect();
            stops.extend(cancel.map(|cancel| (cancel.at, None)));
            stops.extend(entry.expires_at.map(|at| (at, None)));
            let late = |request: &&&Request| {
                stops.iter().any(|(from, to)| request.at > *from + STILL_ARRIVES && to.is_none_or(|to| request.at < to))
            };
            let sends = self.sends.get(&entry.action).map_or(&[][..], Vec::as_slice);
            if sends.iter().find(late).is_some() {
                found.push(self.of(entry, Promise::SentAfterStop, "it was sent long after it had been stopped"));
            }
        }
        found
    }

    /// A compensation is done only where its original was, and is called needless only where it was not.
    fn compensations(&self) -> Vec<Violation> {
        let mut found = Vec::new();
        for entry in &self.world.entries {
            let Some(original) = entry.compensates else { continue };
            let done = self.is_live(original);
            if !self.effects_of(entry.action).is_empty() && !done {
                found.push(self.of(entry, Promise::Compensation, "it took effect, and what it compensates did not"));
            }
            if entry.reason.as_deref() == Some(Reason::NothingToCompensate.code()) && done {
                found.push(self.of(
                    entry,
                    Promise::Compensation,
                    "it was called needless, and what it compensates took effect",
                ));
            }
        }
        found
    }
}

/// Whether all sends of one action are the same. Where an account changes on the way its path does, too.
pub fn same(sends: &[&Request], kind: Kind) -> bool {
    sends.windows(2).all(|pair| {
        (&pair[0].key, pair[0].content) == (&pair[1].key, pair[1].content)
            && (kind == Kind::Moving || pair[0].path == pair[1].path)
    })
}
