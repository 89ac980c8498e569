//! The report of a drill: the figures, what is not as promised, and the stories of a few actions.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;
use uuid::Uuid;

use super::faults::Faults;
use super::figures::Figures;
use super::kinds::Kind;
use super::promise::{Promise, Violation};
use super::records::{Entry, World};
use super::referee;
use super::show;
use super::soak::Soak;
use super::story::{self, Event};
use super::{Options, Scenario};

/// Of how many actions the story is told.
const STORIES: usize = 6;

/// All of it.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Report {
    /// What everything was drawn from.
    pub seed: u64,
    /// Committed orders.
    pub actions: u32,
    /// Daemons.
    pub workers: usize,
    /// What to type to do it again.
    pub again: String,
    /// How long it took, seconds.
    pub seconds: f64,
    /// Whether everything came to rest in time.
    pub rested: bool,
    /// The figures.
    pub figures: Figures,
    /// How often each promise was broken: all must be 0.
    pub broken: BTreeMap<Promise, usize>,
    /// What is below what must be expected.
    pub shortfall: Option<String>,
    /// Whether anything has grown, of a soak.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub soak: Option<Soak>,
    /// What is not as promised; empty when all is well.
    pub violations: Vec<Violation>,
    /// What went wrong on the way, as planned.
    pub faults: Vec<String>,
    /// What happened to a few actions.
    pub stories: Vec<Story>,
}

/// What happened to one action.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Story {
    /// Which.
    pub action: Uuid,
    /// Under which contract.
    pub kind: &'static str,
    /// Where it ended.
    pub state: &'static str,
    /// How often it took effect.
    pub effects: usize,
    /// Oldest first.
    pub events: Vec<Event>,
}

impl Report {
    /// Counts, and judges.
    pub fn of(world: &World, faults: &Faults, soak: Option<Soak>, options: Options, took: Duration) -> Self {
        let figures = Figures::of(world);
        let violations = referee::judge(world);
        let count = |promise: &Promise| violations.iter().filter(|v| v.promise == *promise).count();
        let (actions, _) = options.extent();
        let scenario = match options.scenario {
            Scenario::Storm => "",
            Scenario::Soak => " --scenario soak",
        };
        let minutes = options.minutes.map(|minutes| format!(" --minutes {minutes}")).unwrap_or_default();
        Self {
            seed: options.seed,
            actions,
            workers: options.workers,
            again: format!(
                "outboxd drill{scenario} --seed {} --actions {actions} --workers {}{minutes}",
                options.seed, options.workers
            ),
            seconds: (took.as_secs_f64() * 10.0).round() / 10.0,
            rested: world.rested.is_some(),
            broken: Promise::ALL.iter().map(|promise| (*promise, count(promise))).collect(),
            shortfall: figures.shortfall(),
            faults: show::plan(faults),
            stories: stories(world, &violations),
            soak,
            figures,
            violations,
        }
    }

    /// Whether every promise held.
    pub fn is_well(&self) -> bool {
        let grown = self.soak.as_ref().is_some_and(|soak| !soak.grown.is_empty());
        self.rested && self.violations.is_empty() && self.shortfall.is_none() && !grown
    }
}

/// The stories worth telling: what is not as promised first, then the most eventful action of several kinds.
fn stories(world: &World, violations: &[Violation]) -> Vec<Story> {
    let mut chosen: Vec<Uuid> = Vec::new();
    for action in violations.iter().filter_map(|violation| violation.action) {
        if !chosen.contains(&action) && chosen.len() < STORIES {
            chosen.push(action);
        }
    }
    let eventful = |entry: &&Entry| entry.attempts.iter().map(|a| if a.kind == "late" { 4 } else { 1 }).sum::<usize>();
    let most = Kind::ALL.into_iter().filter_map(|kind| {
        let of_kind = world.entries.iter().filter(|entry| entry.kind == kind && entry.was_unknown());
        of_kind.max_by_key(eventful)
    });
    let mut most: Vec<&Entry> = most.collect();
    most.sort_by_key(|entry| std::cmp::Reverse(eventful(entry)));
    chosen.extend(
        most.iter().map(|entry| entry.action).filter(|action| !violations.iter().any(|v| v.action == Some(*action))),
    );
    chosen.truncate(STORIES);
    let told = |action: Uuid| {
        let entry = world.entries.iter().find(|entry| entry.action == action)?;
        Some(Story {
            action,
            kind: entry.kind.name(),
            state: entry.state.as_str(),
            effects: world.effects.iter().filter(|effect| effect.action == Some(action)).count(),
            events: story::of(world, action),
        })
    };
    chosen.into_iter().filter_map(told).collect()
}
