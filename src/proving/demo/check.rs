//! The demo's own checks: the ledger and the destination compared action by action.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use serde::Serialize;
use uuid::Uuid;

use super::book::Entry;
use super::doubt::{Doubt, End};
use super::fate::Move;
use super::report::Facts;
use crate::core::action::State;
use crate::core::reason::Reason;
use crate::proving::fake::EffectRecord;

/// Something that is not as promised.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Violation {
    /// What.
    pub what: String,
    /// With which action; `None` where the ledger has none for it.
    pub action: Option<Uuid>,
    /// What the ledger says of that action, oldest first.
    pub history: Vec<String>,
}

impl Violation {
    /// One that no action of the ledger belongs to.
    pub fn without_action(what: impl Into<String>) -> Self {
        Self { what: what.into(), action: None, history: Vec::new() }
    }

    fn of(entry: &Entry, what: impl Into<String>) -> Self {
        Self { what: what.into(), action: Some(entry.action), history: entry.told() }
    }
}

impl Entry {
    /// Whether it is the action of this note.
    pub fn is_of(&self, note: u32) -> bool {
        self.retry_key.strip_prefix("note-").and_then(|n| n.parse().ok()) == Some(note)
    }
}

/// How many effects each action had.
pub fn effects_by_action(effects: &[EffectRecord]) -> BTreeMap<&str, usize> {
    let mut times = BTreeMap::new();
    for effect in effects {
        *times.entry(effect.action.as_deref().unwrap_or("no action")).or_default() += effect.times;
    }
    times
}

/// Everything that is not as promised.
pub fn all(facts: &Facts<'_>, doubts: &[Doubt]) -> Vec<Violation> {
    [asking(facts), effects(facts), refusals(facts), closing(facts, doubts), hiding(facts)].concat()
}

/// What is committed is asked for once, what is rolled back never.
fn asking(facts: &Facts<'_>) -> Vec<Violation> {
    let by_key: HashMap<&str, &Entry> = facts.entries.iter().map(|e| (e.retry_key.as_str(), e)).collect();
    let entry_of = |note: u32| by_key.get(format!("note-{note}").as_str()).copied();
    let mut found = Vec::new();
    for note in &facts.plan.rolled_back {
        if let Some(entry) = entry_of(*note) {
            found.push(Violation::of(entry, format!("note {note} was rolled back and its action is in the ledger")));
        }
        if facts.received.iter().any(|r| r.note == Some(*note)) {
            found.push(Violation::without_action(format!("note {note} was rolled back and was sent")));
        }
    }
    for note in &facts.plan.committed {
        let answers = facts.answers.get(note).map_or(&[][..], Vec::as_slice);
        let Some(entry) = entry_of(*note) else {
            found.push(Violation::without_action(format!("note {note} was committed and has no action")));
            continue;
        };
        if answers.iter().filter(|answer| answer.created).count() != 1 {
            found.push(Violation::of(entry, format!("note {note} was not created by just one of its transactions")));
        }
        if answers.iter().any(|answer| answer.action != entry.action) {
            found.push(Violation::of(entry, format!("note {note} was answered with another action")));
        }
    }
    found
}

/// Succeeded actions and effects are the same, one to one, by action and by receipt.
fn effects(facts: &Facts<'_>) -> Vec<Violation> {
    let times = effects_by_action(facts.effects);
    let receipts: HashMap<&str, &str> =
        facts.effects.iter().filter_map(|e| Some((e.action.as_deref()?, e.receipt.as_str()))).collect();
    let mut found = Vec::new();
    let mut known = HashSet::new();
    for entry in facts.entries {
        let action = entry.action.to_string();
        let count = times.get(action.as_str()).copied().unwrap_or(0);
        if count > 1 {
            found.push(Violation::of(entry, format!("it took effect {count} times")));
        }
        if entry.state == State::Succeeded.as_str() {
            if count == 0 {
                found.push(Violation::of(entry, "it is succeeded and the destination has no effect of it"));
            } else if entry.receipt.as_deref() != receipts.get(action.as_str()).copied() {
                found.push(Violation::of(entry, "its receipt is not the destination's"));
            }
        } else if count > 0 {
            found.push(Violation::of(entry, "it took effect and is not succeeded"));
        }
        known.insert(action);
    }
    for action in times.keys().filter(|action| !known.contains(**action)) {
        found.push(Violation::without_action(format!("an effect of {action}, which the ledger does not know")));
    }
    if facts.duplicates > 0 && found.is_empty() {
        found.push(Violation::without_action(format!("the destination counts {} duplicates", facts.duplicates)));
    }
    found
}

/// What the destination refused for good is what the ledger has closed as rejected.
fn refusals(facts: &Facts<'_>) -> Vec<Violation> {
    let refused: BTreeSet<Uuid> =
        facts.received.iter().filter(|r| matches!(r.did, Move::Refuse(_))).filter_map(|r| r.action).collect();
    let differs = |entry: &&Entry| {
        let closed = entry.state == State::TerminalFailure.as_str();
        closed != refused.contains(&entry.action)
            || (closed && entry.reason.as_deref() != Some(Reason::Rejected.code()))
    };
    let what = "the ledger and the destination differ about whether it was refused for good";
    facts.entries.iter().filter(differs).map(|entry| Violation::of(entry, what)).collect()
}

/// Nothing is left open, and no doubt is left standing.
fn closing(facts: &Facts<'_>, doubts: &[Doubt]) -> Vec<Violation> {
    let open: HashSet<Uuid> = doubts.iter().filter(|d| d.end == End::Open).map(|d| d.action).collect();
    let mut found = Vec::new();
    for entry in facts.entries {
        if !entry.is_closed() {
            found.push(Violation::of(entry, format!("it is still open ({})", entry.state)));
        } else if open.contains(&entry.action) {
            found.push(Violation::of(entry, "it is closed and nothing in its history settles its doubt"));
        }
    }
    found
}

/// Each answer that was hidden after an effect left the outcome unknown, and nothing else.
fn hiding(facts: &Facts<'_>) -> Vec<Violation> {
    let mut found = Vec::new();
    let by_action: HashMap<Uuid, &Entry> = facts.entries.iter().map(|e| (e.action, e)).collect();
    for request in facts.received.iter().filter(|r| r.did.hides()) {
        let Some(entry) = request.action.and_then(|action| by_action.get(&action)) else { continue };
        let recorded = entry.attempts.iter().filter(|a| Some(a.attempt) == request.attempt);
        if !recorded.clone().any(super::book::Attempt::leaves_doubt) {
            found.push(Violation::of(entry, "its answer was hidden after the effect and no attempt says so"));
        } else if recorded
            .clone()
            .any(|a| a.leaves_doubt() && a.kind == "send" && a.verdict != State::OutcomeUnknown.as_str())
        {
            found.push(Violation::of(entry, "its answer was hidden after the effect and it was not called unknown"));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::super::desk::{Answer, Answers};
    use super::super::doubt;
    use super::super::fate::Received;
    use super::super::plan::Plan;
    use super::super::testing::{attempt, entry, id, received};
    use super::*;

    /// One note that was published, one that was rolled back, one that was refused, one in doubt for a while.
    struct Story {
        plan: Plan,
        answers: Answers,
        entries: Vec<Entry>,
        received: Vec<Received>,
        effects: Vec<EffectRecord>,
        duplicates: usize,
    }

    fn effect(note: u32) -> EffectRecord {
        let action = Some(id(note.into()).to_string());
        EffectRecord {
            key: action.clone(),
            action,
            receipt: format!("r-{note}"),
            times: 1,
            replays: 0,
            other_content: 0,
        }
    }

    impl Story {
        fn new() -> Self {
            let answer = |note: u32, created| Answer { action: id(note.into()), created };
            Self {
                plan: Plan {
                    sessions: Vec::new(),
                    committed: [1, 3, 4].into(),
                    rolled_back: [2].into(),
                    twice: [1].into(),
                },
                answers: [
                    (1, vec![answer(1, true), answer(1, false)]),
                    (3, vec![answer(3, true)]),
                    (4, vec![answer(4, true)]),
                ]
                .into(),
                entries: vec![
                    entry(1, "succeeded", vec![attempt(11, "accepted", "succeeded")]),
                    entry(3, "terminal_failure", vec![attempt(31, "rejected", "terminal_failure")]),
                    entry(
                        4,
                        "succeeded",
                        vec![attempt(41, "no_answer", "outcome_unknown"), attempt(42, "accepted", "succeeded")],
                    ),
                ],
                received: vec![
                    received(1, 11, Move::Answer),
                    received(3, 31, Move::Refuse(422)),
                    received(4, 41, Move::Withhold),
                    received(4, 42, Move::Answer),
                ],
                effects: vec![effect(1), effect(4)],
                duplicates: 0,
            }
        }

        fn violations(&self) -> Vec<String> {
            let facts = Facts {
                plan: &self.plan,
                answers: &self.answers,
                entries: &self.entries,
                received: &self.received,
                effects: &self.effects,
                duplicates: self.duplicates,
            };
            let doubts = doubt::find(&self.entries, &self.received);
            all(&facts, &doubts).into_iter().map(|v| v.what).collect()
        }
    }

    #[test]
    fn a_story_that_went_well_has_no_violation() {
        assert_eq!(Story::new().violations(), Vec::<String>::new());
    }

    #[test]
    fn each_thing_that_can_go_wrong_is_named() {
        type Break = fn(&mut Story);
        let breaks: [(Break, &str); 13] = [
            (|s| s.effects[0].times = 2, "2 times"),
            (|s| s.effects.push(effect(4)), "2 times"),
            (|s| s.duplicates = 1, "1 duplicates"),
            (|s| drop(s.effects.pop()), "no effect of it"),
            (|s| s.effects.push(effect(9)), "does not know"),
            (|s| s.effects.push(effect(3)), "took effect and is not succeeded"),
            (|s| s.effects[0].receipt = "r-7".into(), "not the destination's"),
            (|s| s.received.push(received(2, 21, Move::Answer)), "was rolled back and was sent"),
            (|s| s.entries.push(entry(2, "succeeded", vec![])), "its action is in the ledger"),
            (|s| s.entries[0].state = "pending".into(), "still open"),
            (|s| drop(s.entries[2].attempts.pop()), "settles its doubt"),
            (|s| s.answers.get_mut(&1).unwrap()[1].created = true, "one of its transactions"),
            (|s| s.entries[2].attempts[0].evidence = "rejected".into(), "no attempt says so"),
        ];
        for (number, (break_it, wanted)) in breaks.into_iter().enumerate() {
            let mut story = Story::new();
            break_it(&mut story);
            let violations = story.violations();
            assert!(violations.iter().any(|what| what.contains(wanted)), "{number}: {wanted:?} in {violations:?}");
        }
    }

    #[test]
    fn a_violation_carries_the_history_of_its_action() {
        let entry = entry(4, "outcome_unknown", vec![attempt(41, "no_answer", "outcome_unknown")]);
        let violation = Violation::of(&entry, "it is still open");
        assert_eq!(violation.action, Some(id(4)));
        assert_eq!(violation.history[0], "10:31:02.114 send 1: no_answer, then outcome_unknown");
    }
}
