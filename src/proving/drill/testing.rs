//! A small world in which everything went well, to be broken by tests.

use std::time::{Duration, SystemTime};

use uuid::Uuid;

use super::kinds::Kind;
use super::moves::Move;
use super::plan::{Order, Plan};
use super::records::{Answer, Attempt, Desk, Effect, Entry, Request, What, World, Written};
use crate::core::action::State;

/// So many milliseconds after the beginning.
pub fn at(ms: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(1_800_000_000) + Duration::from_millis(ms)
}

/// An id made from a number.
pub fn id(number: u128) -> Uuid {
    Uuid::from_u128(number)
}

/// An order as planned.
pub fn order(number: u32, kind: Kind) -> Order {
    Order {
        number,
        kind,
        at: Duration::ZERO,
        committed: true,
        again: None,
        cancelled: None,
        expires: None,
        grant: None,
        undoes: None,
        queue: None,
        moves: vec![Move::Answer],
    }
}

/// An action of an order, in this state, without history.
pub fn entry(order: u32, kind: Kind, state: State) -> Entry {
    let closed = matches!(state, State::Succeeded | State::TerminalFailure);
    Entry {
        action: id(order.into()),
        kind,
        order,
        state,
        step: if state == State::OutcomeUnknown { "review" } else { "conclude" }.to_owned(),
        due_at: None,
        reason: None,
        receipt: (state == State::Succeeded && kind != Kind::ReadOnly).then(|| format!("r-{order}")),
        doubt: state == State::OutcomeUnknown,
        cancel_sent: false,
        compensates: None,
        expires_at: None,
        created_at: at(0),
        closed_at: closed.then(|| at(900)),
        attempts: Vec::new(),
    }
}

/// A send of an order, as the history has it.
pub fn attempt(number: u128, evidence: &str, verdict: &str) -> Attempt {
    Attempt {
        attempt: id(number),
        kind: "send".to_owned(),
        fence: 1,
        worker: Some("w".to_owned()),
        key: None,
        evidence: evidence.to_owned(),
        verdict: verdict.to_owned(),
        status: None,
        started_at: Some(at(100)),
        finished_at: at(300),
    }
}

/// A person's decision, after claims up to this fence.
pub fn decision(number: u128, evidence: &str, verdict: &str, fence: i64) -> Attempt {
    let kind = "decision".to_owned();
    Attempt { kind, fence, started_at: None, finished_at: at(800), ..attempt(number, evidence, verdict) }
}

/// A send of an order, as its destination has it.
pub fn request(order: u32, kind: Kind, attempt: u128, took_effect: bool) -> Request {
    Request {
        at: at(200),
        what: What::Send,
        kind: Some(kind),
        order: Some(order),
        action: Some(id(order.into())),
        attempt: Some(id(attempt)),
        fence: Some(1),
        key: Some(format!("key-{order}")),
        path: format!("/{}", kind.name()),
        content: order.into(),
        did: "answers".to_owned(),
        receipt: took_effect.then(|| format!("r-{order}")),
        took_effect,
    }
}

/// The effect of an order.
pub fn effect(order: u32, kind: Kind, attempt: u128) -> Effect {
    Effect {
        at: at(200),
        kind,
        order: Some(order),
        action: Some(id(order.into())),
        attempt: Some(id(attempt)),
        receipt: format!("r-{order}"),
        key: Some(format!("key-{order}")),
        reference: None,
        text: format!("order {order}"),
        void: false,
    }
}

/// 1: keyed, delivered after a repeat. 2: refused. 3: rolled back. 4: unreconcilable, took effect, held. 5: read only.
pub fn world() -> World {
    let kinds = [Kind::Keyed, Kind::Lookup, Kind::Keyed, Kind::Unreconcilable, Kind::ReadOnly];
    let mut orders: Vec<Order> = (1..).zip(kinds).map(|(number, kind)| order(number, kind)).collect();
    orders[2].committed = false;
    let mut entries = vec![
        entry(1, Kind::Keyed, State::Succeeded),
        entry(2, Kind::Lookup, State::TerminalFailure),
        entry(4, Kind::Unreconcilable, State::OutcomeUnknown),
        entry(5, Kind::ReadOnly, State::Succeeded),
    ];
    entries[0].attempts = vec![attempt(11, "no_answer", "outcome_unknown"), attempt(12, "accepted", "succeeded")];
    entries[1].attempts = vec![attempt(21, "rejected", "terminal_failure")];
    entries[2].attempts = vec![attempt(41, "no_answer", "outcome_unknown")];
    entries[3].attempts = vec![attempt(51, "accepted", "succeeded")];
    let written = [1, 2, 4, 5].map(|order| Written { order, action: id(order.into()), at: at(0) });
    let answers = [1, 2, 4, 5].map(|order| Answer { order, action: id(order.into()), created: true, at: at(1) });
    World {
        plan: Plan { orders, revocations: Vec::new(), spread: Duration::from_secs(1) },
        desk: Desk { written: written.into(), answers: answers.into(), ..Desk::default() },
        entries,
        requests: vec![
            request(1, Kind::Keyed, 11, true),
            request(1, Kind::Keyed, 12, false),
            request(2, Kind::Lookup, 21, false),
            request(4, Kind::Unreconcilable, 41, true),
            request(5, Kind::ReadOnly, 51, false),
        ],
        effects: vec![effect(1, Kind::Keyed, 11), effect(4, Kind::Unreconcilable, 41)],
        office: None,
        faults: Vec::new(),
        said: Vec::new(),
        rested: Some(at(2000)),
        deserters: Vec::new(),
    }
}
