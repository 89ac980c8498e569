//! Doubts: attempts whose outcome was unknown, what had really happened, and what settled each.

use std::collections::HashMap;

use serde::Serialize;
use uuid::Uuid;

use super::book::{Attempt, Entry};
use super::fate::{Move, Received};
use crate::core::action::State;
use crate::core::evidence::Evidence;

/// What had really happened when the ledger could only say "unknown".
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cause {
    /// It took effect; the destination never answered.
    Withheld,
    /// It took effect; the destination reset the connection.
    Reset,
    /// The destination reset the connection before any effect.
    Lost,
    /// The destination answered, but later than was waited for.
    AnsweredLate,
    /// The request never reached the destination.
    NeverArrived,
}

/// What settled it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum End {
    /// Sent again under the same key; the destination recognised it and changed nothing.
    Recognised,
    /// Sent again under the same key; the destination had not taken the first, so it took this one.
    TakenThen,
    /// An answer that came after the attempt had been given up.
    LateAnswer,
    /// A later attempt was refused for good, or proved that nothing had happened.
    NotDone,
    /// Nothing.
    Open,
}

/// One attempt in doubt.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Doubt {
    /// Whose.
    pub action: Uuid,
    /// Which attempt.
    pub attempt: Uuid,
    /// What had really happened.
    pub cause: Cause,
    /// What settled it.
    pub end: End,
}

/// Doubts in figures. The causes add up to `attempts`, and so do the ends.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize)]
pub struct Doubts {
    /// Attempts whose outcome was unknown.
    pub attempts: usize,
    /// Actions they belong to.
    pub actions: usize,
    /// Cause: it took effect, no answer came.
    pub withheld: usize,
    /// Cause: it took effect, the connection was reset.
    pub reset: usize,
    /// Cause: the connection was reset before any effect.
    pub lost: usize,
    /// Cause: the answer came too late.
    pub answered_late: usize,
    /// Cause: the request never arrived.
    pub never_arrived: usize,
    /// End: sent again under the same key, and recognised.
    pub recognised: usize,
    /// End: sent again under the same key, and taken then.
    pub taken_then: usize,
    /// End: a late answer.
    pub late_answer: usize,
    /// End: it did not happen.
    pub not_done: usize,
    /// Not settled.
    pub open: usize,
}

/// Every doubt of these actions, seen from both sides.
pub fn find(entries: &[Entry], received: &[Received]) -> Vec<Doubt> {
    let did: HashMap<Uuid, Move> = received.iter().filter_map(|r| Some((r.attempt?, r.did))).collect();
    // The attempt whose request changed the world, by action.
    let mut effective: HashMap<Uuid, Option<Uuid>> = HashMap::new();
    for request in received.iter().filter(|r| r.did.takes_effect()) {
        if let Some(action) = request.action {
            effective.entry(action).or_insert(request.attempt);
        }
    }
    let mut doubts = Vec::new();
    for entry in entries {
        let taken_by = effective.get(&entry.action).copied().flatten();
        for (place, attempt) in entry.attempts.iter().enumerate().filter(|(_, a)| a.leaves_doubt()) {
            doubts.push(Doubt {
                action: entry.action,
                attempt: attempt.attempt,
                cause: did.get(&attempt.attempt).map_or(Cause::NeverArrived, |did| cause(*did)),
                end: end(entry, &entry.attempts[place + 1..], taken_by),
            });
        }
    }
    doubts
}

fn cause(did: Move) -> Cause {
    match did {
        Move::Withhold => Cause::Withheld,
        Move::Reset => Cause::Reset,
        Move::Lose => Cause::Lost,
        Move::Answer | Move::Throttle | Move::Refuse(_) => Cause::AnsweredLate,
    }
}

/// The first word after it that leaves nothing in doubt.
fn end(entry: &Entry, later: &[Attempt], taken_by: Option<Uuid>) -> End {
    let accepted = |a: &&Attempt| a.evidence == Evidence::Accepted.as_str();
    let succeeded = entry.state == State::Succeeded.as_str();
    let Some(word) = later.iter().find(|a| a.verdict != State::OutcomeUnknown.as_str() && !a.leaves_doubt()) else {
        return End::Open;
    };
    if word.kind == "late" && succeeded {
        return End::LateAnswer;
    }
    match Some(word).filter(accepted) {
        Some(word) if taken_by == Some(word.attempt) => End::TakenThen,
        Some(_) => End::Recognised,
        None => End::NotDone,
    }
}

impl Doubts {
    /// Counts them.
    pub fn count(doubts: &[Doubt]) -> Self {
        let mut figures = Self { attempts: doubts.len(), ..Self::default() };
        figures.actions = doubts.iter().map(|d| d.action).collect::<std::collections::BTreeSet<_>>().len();
        for doubt in doubts {
            *match doubt.cause {
                Cause::Withheld => &mut figures.withheld,
                Cause::Reset => &mut figures.reset,
                Cause::Lost => &mut figures.lost,
                Cause::AnsweredLate => &mut figures.answered_late,
                Cause::NeverArrived => &mut figures.never_arrived,
            } += 1;
            *match doubt.end {
                End::Recognised => &mut figures.recognised,
                End::TakenThen => &mut figures.taken_then,
                End::LateAnswer => &mut figures.late_answer,
                End::NotDone => &mut figures.not_done,
                End::Open => &mut figures.open,
            } += 1;
        }
        figures
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{attempt, entry, id, received};
    use super::*;

    fn one(moves: &[(u128, Move)], attempts: Vec<Attempt>, state: &str) -> Vec<(Cause, End)> {
        let seen: Vec<Received> = moves.iter().map(|(number, did)| received(1, *number, *did)).collect();
        find(&[entry(1, state, attempts)], &seen).iter().map(|d| (d.cause, d.end)).collect()
    }

    #[test]
    fn a_hidden_answer_ends_when_the_resend_is_recognised() {
        let attempts = vec![
            attempt(11, "no_answer", "outcome_unknown"),
            attempt(12, "deferred", "outcome_unknown"),
            attempt(13, "accepted", "succeeded"),
        ];
        let moves = [(11, Move::Withhold), (12, Move::Throttle), (13, Move::Answer)];
        assert_eq!(one(&moves, attempts, "succeeded"), [(Cause::Withheld, End::Recognised)]);
    }

    #[test]
    fn every_doubtful_attempt_is_accounted_for() {
        let attempts = vec![
            attempt(11, "no_answer", "outcome_unknown"),
            attempt(12, "no_answer", "outcome_unknown"),
            attempt(13, "accepted", "succeeded"),
        ];
        let moves = [(11, Move::Lose), (12, Move::Reset), (13, Move::Answer)];
        let both = [(Cause::Lost, End::Recognised), (Cause::Reset, End::Recognised)];
        assert_eq!(one(&moves, attempts, "succeeded"), both);
    }

    #[test]
    fn a_lost_request_is_taken_by_the_resend() {
        let attempts = vec![attempt(11, "no_answer", "outcome_unknown"), attempt(12, "accepted", "succeeded")];
        let moves = [(11, Move::Lose), (12, Move::Answer)];
        assert_eq!(one(&moves, attempts, "succeeded"), [(Cause::Lost, End::TakenThen)]);
    }

    #[test]
    fn what_nothing_settles_is_open() {
        let attempts = vec![attempt(11, "no_answer", "outcome_unknown"), attempt(12, "rejected", "outcome_unknown")];
        assert_eq!(one(&[(12, Move::Refuse(422))], attempts, "outcome_unknown"), [(Cause::NeverArrived, End::Open)]);
    }

    #[test]
    fn a_late_answer_is_told_apart() {
        let mut late = attempt(11, "accepted", "succeeded");
        late.kind = "late".to_owned();
        let attempts = vec![attempt(11, "no_answer", "outcome_unknown"), late];
        assert_eq!(one(&[(11, Move::Answer)], attempts, "succeeded"), [(Cause::AnsweredLate, End::LateAnswer)]);
    }

    #[test]
    fn causes_and_ends_add_up() {
        let doubt = |attempt, cause, end| Doubt { action: id(1), attempt: id(attempt), cause, end };
        let figures = Doubts::count(&[
            doubt(1, Cause::Withheld, End::Recognised),
            doubt(2, Cause::Lost, End::TakenThen),
            doubt(3, Cause::Reset, End::Open),
        ]);
        let f = figures;
        assert_eq!((f.attempts, f.actions, f.open), (3, 1, 1));
        assert_eq!(f.withheld + f.reset + f.lost + f.answered_late + f.never_arrived, f.attempts);
        assert_eq!(f.recognised + f.taken_then + f.late_answer + f.not_done + f.open, f.attempts);
    }
}
