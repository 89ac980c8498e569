//! The referee itself: it finds nothing in a world that is well, and everything that can be broken in it.

use super::kinds::{Kind, Repeats};
use super::promise::Promise;
use super::records::{Cancel, Office, Request, World};
use super::referee::judge;
use super::testing::{at, attempt, decision, effect, entry, id, order, request, world};
use crate::core::action::State;

fn found(world: &World) -> Vec<Promise> {
    judge(world).into_iter().map(|violation| violation.promise).collect()
}

#[test]
fn r30_a_world_that_is_well_has_no_violation() {
    assert_eq!(found(&world()), []);
}

#[test]
fn r30_each_thing_that_can_be_broken_is_found() {
    type Break = fn(&mut World);
    let breaks: [(&str, Promise, Break); 30] = [
        ("a second effect", Promise::Duplicate, |w| w.effects.push(effect(1, Kind::Keyed, 12))),
        ("a second effect of what is held", Promise::Duplicate, |w| {
            w.effects.push(effect(4, Kind::Unreconcilable, 41));
        }),
        ("a second effect, the first undone", Promise::Duplicate, |w| {
            w.effects[0].void = true;
            w.effects.push(effect(1, Kind::Keyed, 12));
        }),
        ("succeeded without effect", Promise::FalseState, |w| drop(w.effects.remove(0))),
        ("succeeded, and undone", Promise::FalseState, |w| w.effects[0].void = true),
        ("not delivered, with effect", Promise::FalseState, |w| w.effects.push(effect(2, Kind::Lookup, 21))),
        ("nothing in doubt, with effect", Promise::FalseState, |w| {
            w.entries[0].state = State::Pending;
            w.entries[0].due_at = Some(at(3000));
        }),
        ("another receipt", Promise::FalseState, |w| w.entries[0].receipt = Some("r-7".to_owned())),
        ("contradicted", Promise::FalseState, |w| w.entries[1].attempts[0].verdict = "contradicts".to_owned()),
        ("read without a request", Promise::FalseState, |w| drop(w.requests.pop())),
        ("committed without action", Promise::Lost, |w| drop(w.entries.remove(1))),
        ("open and never due", Promise::Lost, |w| w.entries[1] = entry(2, Kind::Lookup, State::Pending)),
        ("still open", Promise::Lost, |w| {
            w.entries[1] = entry(2, Kind::Lookup, State::RetryableFailure);
            w.entries[1].due_at = Some(at(3000));
        }),
        ("a rolled back action", Promise::NotCommitted, |w| w.entries.push(entry(3, Kind::Keyed, State::Pending))),
        ("a rolled back request", Promise::NotCommitted, |w| w.requests.push(request(3, Kind::Keyed, 31, false))),
        ("another key", Promise::KeyChanged, |w| w.requests[1].key = Some("key-7".to_owned())),
        ("other content", Promise::KeyChanged, |w| w.requests[1].content = 7),
        ("a key that was not sent", Promise::KeyChanged, |w| w.entries[0].attempts[0].key = Some("key-7".to_owned())),
        ("sent without a record", Promise::Unrecorded, |w| drop(w.entries[0].attempts.remove(0))),
        ("one claim sent twice", Promise::SentTwice, |w| w.requests[1].attempt = Some(id(11))),
        ("cancelled for certain, and done", Promise::SentAfterStop, |w| {
            w.desk.cancels.push(Cancel { order: 1, certain: true, at: at(50) });
        }),
        ("sent long after its deadline", Promise::SentAfterStop, |w| {
            w.entries[0].expires_at = Some(at(0));
            w.requests[1].at = at(60_000);
        }),
        ("two actions of one order", Promise::Identity, |w| w.desk.answers[0].action = id(2)),
        ("held, and nobody decides", Promise::Lost, |w| w.office = Some(Office::default())),
        ("happened, they say", Promise::Decision, |w| {
            w.entries[1].attempts.push(decision(22, "happened", "succeeded", 1));
        }),
        ("did not happen, they say", Promise::Decision, |w| {
            w.entries[0].attempts.push(decision(13, "did_not_happen", "terminal_failure", 1));
        }),
        ("decided, and sent again", Promise::Decision, |w| {
            w.entries[0].attempts.push(decision(13, "happened", "succeeded", 0));
        }),
        ("wanted again, and never sent", Promise::Decision, |w| {
            w.entries[1].attempts.push(decision(22, "send_again", "outcome_unknown", 1));
        }),
        ("called not done before it arrived", Promise::Decision, |w| {
            w.entries[1].attempts.push(decision(22, "did_not_happen", "terminal_failure", 1));
            w.requests[2].at = at(801);
        }),
        ("a worker that ended", Promise::Worker, |w| w.deserters.push("worker 0".to_owned())),
    ];
    for (what, promise, break_it) in breaks {
        let mut broken = world();
        break_it(&mut broken);
        assert!(found(&broken).contains(&promise), "{what}: {:?}", judge(&broken));
    }
}

#[test]
fn r30_a_second_effect_is_no_fault_where_no_contract_promises_that_there_is_none() {
    for kind in Kind::ALL {
        let mut world = world();
        world.plan.orders.push(order(6, kind));
        world.entries.push(entry(6, kind, State::Succeeded));
        world.entries[4].attempts =
            vec![attempt(61, "no_answer", "outcome_unknown"), attempt(62, "accepted", "succeeded")];
        world.desk.written.push(super::records::Written { order: 6, action: id(6), at: at(0) });
        world.requests.extend([request(6, kind, 61, true), request(6, kind, 62, true)]);
        world.effects.extend([effect(6, kind, 61), effect(6, kind, 62)]);
        let expected = match kind.repeats() {
            Repeats::Never => vec![Promise::Duplicate],
            Repeats::Possible(_) => vec![],
        };
        assert_eq!(found(&world), expected, "{kind:?}");
    }
}

#[test]
fn r30_r21_what_an_operator_has_decided_truthfully_is_well() {
    let mut world = world();
    world.office = Some(Office::default());
    let held = world.entries.iter_mut().find(|entry| entry.order == 4).expect("it is held");
    let line = held.attempts[0].clone();
    *held = entry(4, Kind::Unreconcilable, State::Succeeded);
    held.attempts = vec![line, decision(42, "happened", "succeeded", 1)];
    // Called not done, tried again, and refused again.
    let retried = &mut world.entries[1].attempts;
    retried.push(decision(22, "did_not_happen", "terminal_failure", 1));
    retried.push(decision(23, "retry", "pending", 1));
    let mut again = attempt(24, "rejected", "terminal_failure");
    again.fence = 2;
    retried.push(again);
    world.requests.push(Request { fence: Some(2), at: at(850), ..request(2, Kind::Lookup, 24, false) });
    assert_eq!(found(&world), []);
}

#[test]
fn r30_r7_a_compensation_goes_with_its_original() {
    let mut world = world();
    world.plan.orders.push(order(6, Kind::Refund));
    world.entries.push(entry(6, Kind::Refund, State::Succeeded));
    world.entries[4].compensates = Some(id(1));
    world.entries[4].attempts = vec![attempt(61, "accepted", "succeeded")];
    world.desk.written.push(super::records::Written { order: 6, action: id(6), at: at(0) });
    world.requests.push(request(6, Kind::Refund, 61, true));
    world.effects.push(effect(6, Kind::Refund, 61));
    assert_eq!(found(&world), []);
    let mut needless = world.clone();
    needless.entries[4].compensates = Some(id(2));
    assert_eq!(found(&needless), [Promise::Compensation]);
    world.entries[4] = super::records::Entry {
        compensates: Some(id(1)),
        reason: Some("nothing_to_compensate".to_owned()),
        ..entry(6, Kind::Refund, State::TerminalFailure)
    };
    world.effects.pop();
    world.requests.pop();
    assert_eq!(found(&world), [Promise::Compensation]);
    // While its original is open a compensation may wait.
    let original = world.entries.iter_mut().find(|entry| entry.order == 1).expect("the original");
    *original = entry(1, Kind::Keyed, State::OutcomeUnknown);
    original.attempts = vec![attempt(11, "no_answer", "outcome_unknown"), attempt(12, "no_answer", "outcome_unknown")];
    world.entries[4] = super::records::Entry {
        compensates: Some(id(1)),
        due_at: Some(at(3000)),
        ..entry(6, Kind::Refund, State::Pending)
    };
    assert_eq!(found(&world), []);
}

#[test]
fn r30_the_story_of_an_action_is_told_from_all_sides() {
    let mut broken = world();
    broken.effects.push(effect(1, Kind::Keyed, 12));
    let told = judge(&broken);
    let story = told[0].story.join("\n");
    for part in
        ["application", "order 1 is written", "ledger", "no_answer, then outcome_unknown", "destination", "EFFECT"]
    {
        assert!(story.contains(part), "{part:?} in\n{story}");
    }
}
