//! The figures of a drill. Every one is counted from what the sides have written down.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde::Serialize;
use uuid::Uuid;

use super::faults::Fault;
use super::kinds::{Kind, Repeats, Settles};
use super::moves::Move;
use super::paces::PaceFigures;
use super::plan::Order;
use super::queues::QueueFigures;
use super::records::{Entry, Request, What, World};
use super::referee;
use crate::core::action::State;

/// Of so many that could be settled without a person, the share that must have been; below a few it says nothing.
pub const SETTLED_EXPECTED: f64 = 95.0;
/// The fewest of which a share is judged.
pub const FEW: usize = 20;

/// All of them.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Figures {
    /// Orders written by the application, each with one action.
    pub committed: usize,
    /// Orders that were rolled back on purpose.
    pub rolled_back: usize,
    /// Orders that were asked for more than once.
    pub asked_again: usize,
    /// Actions by state, every state named.
    pub states: BTreeMap<&'static str, usize>,
    /// Actions that were held for a person.
    pub held: usize,
    /// Why, by reason.
    pub held_because: BTreeMap<String, usize>,
    /// Of those, how many wait still.
    pub held_still: usize,
    /// What the operator decided, by decision; some actions more than once.
    pub decided: BTreeMap<String, usize>,
    /// Decisions that the ledger refused, to be made again later.
    pub refused: usize,
    /// Actions whose outcome was unknown at some time.
    pub unknown: usize,
    /// Their share, percent.
    pub unknown_percent: f64,
    /// Of those, the ones whose destination can be asked, or told to undo it.
    pub asked: Settled,
    /// Of those, the ones that can be repeated for as long as the drill lasts: nothing stops them, and their
    /// destination does not refuse them.
    pub repeatable: Settled,
    /// The share of all actions that were held for a person, percent.
    pub review_percent: f64,
    /// Requests that reached a destination.
    pub requests: usize,
    /// Effects there.
    pub effects: usize,
    /// Effects beyond one an action, where the contract promises none: must be 0.
    pub duplicates: usize,
    /// Effects beyond one an action, where the contract allows for them.
    pub allowed_repeats: usize,
    /// Actions that were sent more than once.
    pub repeated: usize,
    /// Of those, the share that kept key and content, percent: must be 100.
    pub keys_kept_percent: f64,
    /// Late testimonies that were recorded.
    pub late: usize,
    /// Of those, how many changed something.
    pub late_used: usize,
    /// From commit to the end, of closed actions that stood in no queue and were not held, seconds.
    pub seconds_to_end: Times,
    /// Serial queues.
    pub queues: QueueFigures,
    /// Rates and bounds.
    pub paces: PaceFigures,
    /// By kind of contract.
    pub kinds: Vec<KindFigures>,
    /// By kind of fault.
    pub faults: Vec<FaultFigures>,
}

/// Unknown outcomes that can be settled without a person, and how many were.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Settled {
    /// How many can be.
    pub can_be: usize,
    /// How many were.
    pub were: usize,
    /// Their share, percent; `None` where there were none.
    pub percent: Option<f64>,
}

/// The middle and the end of a distribution, seconds.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Times {
    /// Half are faster.
    pub median: f64,
    /// One in a hundred is slower.
    pub p99: f64,
}

/// One kind of contract.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct KindFigures {
    /// Which.
    pub kind: &'static str,
    /// What it promises.
    pub promise: &'static str,
    /// Actions.
    pub actions: usize,
    /// Succeeded.
    pub succeeded: usize,
    /// Closed as not delivered.
    pub not_delivered: usize,
    /// Of all, those that were held for a person.
    pub held: usize,
    /// Not closed.
    pub open: usize,
    /// Were unknown at some time.
    pub unknown: usize,
    /// Of those, closed without a person.
    pub settled: usize,
    /// Effects beyond one an action.
    pub duplicates: usize,
    /// Why duplicates are no fault here; `None` = there must be none.
    pub duplicates_allowed: Option<&'static str>,
}

/// One kind of fault.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct FaultFigures {
    /// Which.
    pub fault: &'static str,
    /// How often it happened.
    pub times: usize,
    /// Attempts of unknown outcome that were under way meanwhile.
    pub attempts_in_doubt: usize,
}

impl Figures {
    /// Counts.
    pub fn of(world: &World) -> Self {
        let entries = &world.entries;
        let count = |wanted: &dyn Fn(&Entry) -> bool| entries.iter().filter(|entry| wanted(entry)).count();
        let unknown = count(&Entry::was_unknown);
        let held = count(&Entry::was_held);
        let unhindered = |entry: &Entry| world.plan.order(entry.order).is_some_and(is_unhindered);
        let settled = |by: Settles| {
            let can_be = |entry: &Entry| {
                let hindered = by == Settles::ByRepeating && !unhindered(entry);
                entry.was_unknown() && entry.kind.settles() == by && !hindered
            };
            let (can_be, were) =
                (count(&can_be), count(&|entry| can_be(entry) && entry.is_closed() && !entry.was_held()));
            Settled { can_be, were, percent: percent(were, can_be) }
        };
        let kinds: Vec<KindFigures> = Kind::ALL.into_iter().map(|kind| by_kind(world, kind)).collect();
        let sends = sends(world);
        let repeated = sends.values().filter(|(_, sends)| sends.len() > 1);
        let kept = repeated.clone().filter(|(kind, sends)| referee::same(sends, *kind)).count();
        let late = |used: bool| {
            let changed = |verdict: &str| verdict != "record" && verdict != "contradicts";
            let attempts = entries.iter().flat_map(|entry| &entry.attempts);
            attempts.filter(|a| a.kind == "late" && (!used || changed(&a.verdict))).count()
        };
        let asked: BTreeSet<u32> =
            world.desk.answers.iter().filter(|answer| !answer.created).map(|a| a.order).collect();
        let mut held_because = BTreeMap::new();
        let found = |entry: &Entry| world.office.as_ref()?.held.get(&entry.action).cloned();
        for entry in entries.iter().filter(|entry| entry.was_held()) {
            let reason = found(entry).or_else(|| entry.reason.clone());
            *held_because.entry(reason.unwrap_or_default()).or_default() += 1;
        }
        let mut decided = BTreeMap::new();
        for decision in entries.iter().flat_map(Entry::decisions) {
            *decided.entry(decision.evidence.clone()).or_default() += 1;
        }
        let duplicates = |allowed: bool| {
            kinds.iter().filter(|kind| kind.duplicates_allowed.is_some() == allowed).map(|kind| kind.duplicates).sum()
        };
        Self {
            committed: world.desk.written.len(),
            rolled_back: world.plan.orders.iter().filter(|order| !order.committed).count(),
            asked_again: asked.len(),
            states: State::ALL.iter().map(|state| (state.as_str(), count(&|entry| entry.state == *state))).collect(),
            held,
            held_because,
            held_still: count(&Entry::is_held),
            decided,
            refused: world.office.as_ref().map_or(0, |office| office.refused),
            unknown,
            unknown_percent: percent(unknown, entries.len()).unwrap_or(0.0),
            asked: settled(Settles::ByAsking),
            repeatable: settled(Settles::ByRepeating),
            review_percent: percent(held, entries.len()).unwrap_or(0.0),
            requests: world.requests.len(),
            effects: world.effects.len(),
            duplicates: duplicates(false),
            allowed_repeats: duplicates(true),
            repeated: repeated.clone().count(),
            keys_kept_percent: percent(kept, repeated.count()).unwrap_or(100.0),
            late: late(false),
            late_used: late(true),
            seconds_to_end: times(entries.iter().filter(|entry| goes_its_way(world, entry))),
            queues: QueueFigures::of(world),
            paces: PaceFigures::of(world),
            kinds,
            faults: by_fault(world),
        }
    }

    /// What is below what must be expected, in words.
    pub fn shortfall(&self) -> Option<String> {
        let all = [(self.asked, "can be asked about"), (self.repeatable, "can be repeated")];
        all.into_iter().find_map(|(settled, which)| {
            let share = settled.percent.filter(|share| settled.can_be >= FEW && *share < SETTLED_EXPECTED)?;
            Some(format!(
                "{} of {} unknown outcomes that {which} were settled without a person ({share} %), less than \
                 {SETTLED_EXPECTED} %",
                settled.were, settled.can_be
            ))
        })
    }
}

/// Whether nothing stops an order, and its destination does not refuse it.
fn is_unhindered(order: &Order) -> bool {
    let stopped = order.cancelled.is_some() || order.expires.is_some() || order.grant.is_some();
    !stopped && !order.moves.contains(&Move::Refuse)
}

fn sends(world: &World) -> BTreeMap<Uuid, (Kind, Vec<&Request>)> {
    let mut sends: BTreeMap<Uuid, (Kind, Vec<&Request>)> = BTreeMap::new();
    for request in world.requests.iter().filter(|request| request.what == What::Send) {
        if let (Some(action), Some(kind)) = (request.action, request.kind) {
            sends.entry(action).or_insert((kind, Vec::new())).1.push(request);
        }
    }
    sends
}

fn by_kind(world: &World, kind: Kind) -> KindFigures {
    let entries: Vec<&Entry> = world.entries.iter().filter(|entry| entry.kind == kind).collect();
    let count = |wanted: &dyn Fn(&Entry) -> bool| entries.iter().filter(|entry| wanted(entry)).count();
    let mut effects: BTreeMap<Option<Uuid>, usize> = BTreeMap::new();
    for effect in world.effects.iter().filter(|effect| effect.kind == kind) {
        *effects.entry(effect.action).or_default() += 1;
    }
    KindFigures {
        kind: kind.name(),
        promise: kind.promise(),
        actions: entries.len(),
        succeeded: count(&|entry| entry.state == State::Succeeded),
        not_delivered: count(&|entry| entry.state == State::TerminalFailure),
        held: count(&Entry::was_held),
        open: count(&|entry| !entry.is_closed()),
        unknown: count(&Entry::was_unknown),
        settled: count(&|entry| entry.was_unknown() && entry.is_closed() && !entry.was_held()),
        duplicates: effects.values().map(|times| times - 1).sum(),
        duplicates_allowed: match kind.repeats() {
            Repeats::Never => None,
            Repeats::Possible(why) => Some(why),
        },
    }
}

fn by_fault(world: &World) -> Vec<FaultFigures> {
    let doubtful = || {
        let attempts = world.entries.iter().flat_map(|entry| &entry.attempts);
        attempts.filter(|a| a.kind == "send" && a.verdict == State::OutcomeUnknown.as_str())
    };
    let figures = |name: &'static str| {
        let happened: Vec<_> = world.faults.iter().filter(|happened| happened.fault.name() == name).collect();
        let meanwhile = |a: &&super::records::Attempt| {
            happened.iter().any(|h| h.to >= a.started_at.unwrap_or(a.finished_at) && h.from <= a.finished_at)
        };
        FaultFigures { fault: name, times: happened.len(), attempts_in_doubt: doubtful().filter(meanwhile).count() }
    };
    Fault::NAMES.into_iter().map(figures).collect()
}

/// Whether neither a queue nor a person has taken their time about it.
fn goes_its_way(world: &World, entry: &Entry) -> bool {
    let queued = world.plan.order(entry.order).is_some_and(|order| order.queue.is_some());
    !queued && !entry.was_held()
}

fn times<'a>(entries: impl Iterator<Item = &'a Entry>) -> Times {
    let took = |entry: &Entry| entry.closed_at?.duration_since(entry.created_at).ok();
    let mut all: Vec<Duration> = entries.filter_map(took).collect();
    all.sort();
    let at = |share: usize| {
        let place = (all.len().saturating_mul(share) / 100).min(all.len().saturating_sub(1));
        all.get(place).map_or(0.0, |time| round(time.as_secs_f64()))
    };
    Times { median: at(50), p99: at(99) }
}

#[allow(clippy::cast_precision_loss, reason = "figures for people")]
fn percent(part: usize, whole: usize) -> Option<f64> {
    (whole > 0).then(|| round(part as f64 * 100.0 / whole as f64))
}

fn round(figure: f64) -> f64 {
    (figure * 10.0).round() / 10.0
}
