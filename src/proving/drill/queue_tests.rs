//! What the referee finds of serial queues, in a small world of one queue: 1 is delivered, 4 after a doubt, 7 is refused.

use super::kinds::Kind;
use super::promise::Promise;
use super::queues::QueueFigures;
use super::records::{Answer, Attempt, Desk, Request, World, Written};
use super::referee::judge;
use super::testing::{at, attempt, decision, effect, entry, id, order, request, world};
use crate::core::action::State;

/// A line of the history that was written at this time, under this fence.
fn line(number: u128, evidence: &str, verdict: &str, ms: u64, fence: i64) -> Attempt {
    Attempt { finished_at: at(ms), fence, ..attempt(number, evidence, verdict) }
}

fn sent(number: u32, attempt: u128, ms: u64, fence: i64, took_effect: bool) -> Request {
    Request { at: at(ms), fence: Some(fence), ..request(number, Kind::Keyed, attempt, took_effect) }
}

fn queue() -> World {
    let mut world = world();
    world.plan.orders = (1..=7).map(|number| order(number, Kind::Keyed)).collect();
    for order in &mut world.plan.orders {
        order.committed = order.number % 3 == 1;
        order.queue = Some(0);
    }
    let mut entries = [
        entry(1, Kind::Keyed, State::Succeeded),
        entry(4, Kind::Keyed, State::Succeeded),
        entry(7, Kind::Keyed, State::TerminalFailure),
    ];
    entries[0].attempts = vec![line(11, "accepted", "succeeded", 300, 1)];
    entries[1].attempts =
        vec![line(41, "no_answer", "outcome_unknown", 450, 1), line(42, "accepted", "succeeded", 600, 2)];
    entries[2].attempts = vec![line(71, "rejected", "terminal_failure", 800, 1)];
    for (entry, ms) in entries.iter_mut().zip([300, 600, 800]) {
        entry.closed_at = Some(at(ms));
    }
    world.entries = entries.into();
    world.requests = vec![
        sent(1, 11, 100, 1, true),
        sent(4, 41, 400, 1, true),
        sent(4, 42, 550, 2, false),
        sent(7, 71, 700, 1, false),
    ];
    world.effects = vec![effect(1, Kind::Keyed, 11), effect(4, Kind::Keyed, 41)];
    let told = [(1, 0), (4, 20), (7, 40)];
    world.desk = Desk {
        written: told.map(|(order, ms)| Written { order, action: id(order.into()), at: at(ms) }).into(),
        tried: told.map(|(order, ms)| (order, at(ms))).into(),
        answers: told
            .map(|(order, ms)| Answer { order, action: id(order.into()), created: true, at: at(ms + 10) })
            .into(),
        ..Desk::default()
    };
    world
}

/// 1 is refused, tried again before 4 begins, and delivered at that time.
fn tried_again(world: &mut World, ms: u64) {
    let retry = Attempt { finished_at: at(350), ..decision(12, "retry", "pending", 1) };
    let (first, again) = (line(11, "rejected", "terminal_failure", 300, 1), line(13, "accepted", "succeeded", ms, 2));
    world.entries[0].attempts = vec![first, retry, again];
    world.entries[0].closed_at = Some(at(ms));
    world.requests[0].took_effect = false;
    world.requests.push(sent(1, 13, ms - 10, 2, true));
}

fn found(world: &World) -> Vec<Promise> {
    judge(world).into_iter().map(|violation| violation.promise).collect()
}

#[test]
fn r30_r27_a_queue_that_went_one_after_another_is_well_and_says_what_was_looked_at() {
    let world = queue();
    assert_eq!(found(&world), []);
    let expected = QueueFigures { queues: 1, actions: 3, longest: 3, pairs: 3, behind_unknown: 1, held: 1, late: 0 };
    assert_eq!(QueueFigures::of(&world), expected);
}

#[test]
fn r30_r27_whatever_can_be_broken_in_a_queue_is_found() {
    type Break = fn(&mut World);
    let breaks: [(&str, Break); 10] = [
        ("sent while the one before is under way", |w| w.requests[1].at = at(250)),
        ("sent while the one before is unknown", |w| w.requests[3].at = at(500)),
        ("sent while the one before is tried again later", |w| {
            w.entries[1].attempts[0].verdict = "retryable_failure".to_owned();
            w.requests[3].at = at(500);
        }),
        ("sent though the one before has never ended", |w| {
            let lines = w.entries[1].attempts.clone();
            w.entries[1] = entry(4, Kind::Keyed, State::OutcomeUnknown);
            w.entries[1].attempts = lines;
            w.entries[1].attempts[1].verdict = "outcome_unknown".to_owned();
        }),
        ("overtaken", |w| {
            w.requests[3].at = at(50);
            w.entries[2].attempts[0].finished_at = at(60);
            w.entries[2].closed_at = Some(at(60));
            // Whatever it is, its failure holds nobody here.
            w.entries[2]
                .attempts
                .push(Attempt { finished_at: at(65), ..decision(72, "release", "terminal_failure", 1) });
        }),
        ("overtook what was never sent", |w| {
            w.entries[0] = entry(1, Kind::Keyed, State::TerminalFailure);
            w.entries[0].closed_at = Some(at(2000));
            w.requests.remove(0);
            w.effects.remove(0);
        }),
        ("sent although a failure held", |w| {
            w.entries[0].state = State::TerminalFailure;
            w.entries[0].receipt = None;
            w.entries[0].attempts = vec![line(11, "rejected", "terminal_failure", 300, 1)];
            w.requests[0].took_effect = false;
            w.effects.remove(0);
        }),
        ("tried again, and passed over", |w| tried_again(w, 900)),
        ("took effect after its end", |w| w.requests[2] = sent(4, 42, 650, 2, true)),
        ("came long after its end", |w| w.requests[2].at = at(60_000)),
    ];
    for (what, break_it) in breaks {
        let mut broken = queue();
        break_it(&mut broken);
        let found = found(&broken);
        let is_it = |promise: &Promise| *promise == Promise::QueueOrder;
        assert!(!found.is_empty() && found.iter().all(is_it), "{what}: {:?}", judge(&broken));
    }
}

#[test]
fn r30_r27_what_is_not_promised_is_no_fault() {
    type Change = fn(&mut World);
    let changes: [(&str, Change); 7] = [
        ("transactions that overlap go in any order", |w| {
            w.desk.tried = [(1, 0), (4, 5), (7, 5)].map(|(order, ms)| (order, at(ms))).into();
            w.requests[3].at = at(50);
            w.entries[2].attempts[0].finished_at = at(60);
            w.entries[2].closed_at = Some(at(60));
            w.entries[2]
                .attempts
                .push(Attempt { finished_at: at(65), ..decision(72, "release", "terminal_failure", 1) });
        }),
        ("what was overtaken by its own repeat may arrive later", |w| {
            w.requests.push(sent(1, 11, 1000, 1, false));
            w.requests.remove(0);
            w.requests.push(sent(1, 12, 150, 1, true));
            w.entries[0].attempts.push(line(12, "lapsed", "outcome_unknown", 200, 1));
            w.entries[0].attempts.sort_by_key(|line| line.finished_at);
        }),
        ("what is cancelled while it waits leaves at once", |w| {
            w.plan.orders[0].cancelled = Some(std::time::Duration::ZERO);
            w.entries[0] = entry(1, Kind::Keyed, State::TerminalFailure);
            w.entries[0].closed_at = Some(at(2000));
            w.requests.remove(0);
            w.effects.remove(0);
        }),
        ("a person lets the next go", |w| {
            w.entries[0].state = State::TerminalFailure;
            w.entries[0].receipt = None;
            let release = Attempt { finished_at: at(350), ..decision(12, "release", "terminal_failure", 1) };
            w.entries[0].attempts = vec![line(11, "rejected", "terminal_failure", 300, 1), release];
            w.requests[0].took_effect = false;
            w.effects.remove(0);
        }),
        ("one may have had the turn when another is tried again", |w| tried_again(w, 680)),
        ("what is tried again later goes after others", |w| {
            let again = Attempt { finished_at: at(850), ..decision(72, "retry", "pending", 1) };
            w.entries[2].attempts.extend([again, line(73, "rejected", "terminal_failure", 1000, 2)]);
            w.entries[2].closed_at = Some(at(1000));
            w.requests.push(sent(7, 73, 900, 2, false));
        }),
        ("what is proved not to have happened lets an earlier one go first", |w| {
            w.desk.tried = [(1, 0), (4, 5), (7, 40)].map(|(order, ms)| (order, at(ms))).into();
            w.requests[1] = sent(4, 41, 50, 1, false);
            w.requests[2] = sent(4, 42, 550, 3, true);
            w.entries[1].attempts = vec![
                line(41, "no_answer", "outcome_unknown", 60, 1),
                line(43, "absent", "pending", 90, 2),
                line(42, "accepted", "succeeded", 600, 3),
            ];
        }),
    ];
    for (what, change) in changes {
        let mut world = queue();
        change(&mut world);
        assert_eq!(found(&world), [], "{what}: {:?}", judge(&world));
    }
}
