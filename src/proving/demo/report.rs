//! The report: what the ledger says beside what the destination recorded. Every figure is counted from those two.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::book::Entry;
use super::check::{self, Violation};
use super::desk::Answers;
use super::doubt::{self, Doubts};
use super::fate::{Move, Received};
use super::plan::Plan;
use crate::core::action::State;
use crate::proving::fake::EffectRecord;

/// What both sides have recorded when everything is over.
pub struct Facts<'a> {
    /// What the application meant to do.
    pub plan: &'a Plan,
    /// What it was answered.
    pub answers: &'a Answers,
    /// The ledger.
    pub entries: &'a [Entry],
    /// The destination: every request, and what was done with it.
    pub received: &'a [Received],
    /// The destination: every effect.
    pub effects: &'a [EffectRecord],
    /// The destination: effects beyond the first of the same action.
    pub duplicates: usize,
}

/// The figures.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Report {
    /// What everything was drawn from.
    pub seed: u64,
    /// How long it took, seconds.
    pub seconds: f64,
    /// The application.
    pub desk: DeskFigures,
    /// Actions by state, every state named.
    pub ledger: BTreeMap<&'static str, usize>,
    /// The destination.
    pub destination: DestinationFigures,
    /// Attempts whose outcome was unknown.
    pub doubts: Doubts,
    /// What is not as promised; empty when all is well.
    pub violations: Vec<Violation>,
}

/// What the application did.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct DeskFigures {
    /// Notes written, rolled back ones included.
    pub notes: usize,
    /// Notes whose transaction was rolled back on purpose.
    pub rolled_back: usize,
    /// Of those, how many the destination was asked for: must be 0.
    pub rolled_back_sent: usize,
    /// Announcements asked for and committed, each note counted once.
    pub asked: usize,
    /// Of those, how many were asked for twice on purpose.
    pub asked_twice: usize,
    /// Of those, how many took effect more than once: must be 0.
    pub asked_twice_sent_twice: usize,
}

/// What the destination did.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct DestinationFigures {
    /// Requests that arrived.
    pub requests: usize,
    /// Effects, duplicates included.
    pub effects: usize,
    /// Effects beyond the first of the same action: must be 0.
    pub duplicates: usize,
    /// Requests it recognised by their key as repeats, and took no effect again.
    pub recognised: usize,
    /// Notes refused for good.
    pub rejected: usize,
    /// Requests told to come back later (429); these took no effect.
    pub throttled: usize,
    /// Answers hidden after the effect, by silence or a reset connection.
    pub hidden: usize,
    /// Connections reset before any effect.
    pub lost: usize,
}

impl Report {
    /// Counts and checks.
    pub fn of(facts: &Facts<'_>, seed: u64, seconds: f64) -> Self {
        let doubts = doubt::find(facts.entries, facts.received);
        Self {
            seed,
            seconds: (seconds * 10.0).round() / 10.0,
            desk: desk(facts),
            ledger: by_state(facts.entries),
            destination: destination(facts),
            doubts: Doubts::count(&doubts),
            violations: check::all(facts, &doubts),
        }
    }

    /// How many actions are in a state.
    pub fn in_state(&self, state: State) -> usize {
        self.ledger.get(state.as_str()).copied().unwrap_or(0)
    }
}

fn by_state(entries: &[Entry]) -> BTreeMap<&'static str, usize> {
    let count = |state: &State| entries.iter().filter(|e| e.state == state.as_str()).count();
    State::ALL.iter().map(|state| (state.as_str(), count(state))).collect()
}

fn desk(facts: &Facts<'_>) -> DeskFigures {
    let requested: BTreeSet<u32> = facts.received.iter().filter_map(|r| r.note).collect();
    let effects: BTreeMap<&str, usize> = check::effects_by_action(facts.effects);
    let twice = facts.entries.iter().filter(|entry| facts.plan.twice.iter().any(|n| entry.is_of(*n)));
    DeskFigures {
        notes: facts.plan.committed.len() + facts.plan.rolled_back.len(),
        rolled_back: facts.plan.rolled_back.len(),
        rolled_back_sent: facts.plan.rolled_back.intersection(&requested).count(),
        asked: facts.answers.len(),
        asked_twice: facts.answers.values().filter(|answers| answers.len() > 1).count(),
        asked_twice_sent_twice: twice
            .filter(|entry| effects.get(entry.action.to_string().as_str()).is_some_and(|times| *times > 1))
            .count(),
    }
}

fn destination(facts: &Facts<'_>) -> DestinationFigures {
    let count = |wanted: fn(Move) -> bool| facts.received.iter().filter(|r| wanted(r.did)).count();
    let refused = |r: &&Received| matches!(r.did, Move::Refuse(_));
    DestinationFigures {
        requests: facts.received.len(),
        effects: facts.effects.iter().map(|e| e.times).sum(),
        duplicates: facts.duplicates,
        recognised: facts.effects.iter().map(|e| e.replays).sum(),
        rejected: facts.received.iter().filter(refused).map(|r| r.note).collect::<BTreeSet<_>>().len(),
        throttled: count(|did| did == Move::Throttle),
        hidden: count(Move::hides),
        lost: count(|did| did == Move::Lose),
    }
}
