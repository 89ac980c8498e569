//! What happened to one action, told from all sides in the order of time.

use std::time::SystemTime;

use serde::Serialize;
use uuid::Uuid;

use super::records::{Attempt, Entry, What, World};

/// Who tells.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Side {
    /// The application.
    Application,
    /// The ledger.
    Ledger,
    /// A worker.
    Worker,
    /// A destination.
    Destination,
    /// What was done to all of them.
    Fault,
}

impl Side {
    /// For people.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Application => "application",
            Self::Ledger => "ledger",
            Self::Worker => "worker",
            Self::Destination => "destination",
            Self::Fault => "fault",
        }
    }
}

/// One thing that happened.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Event {
    /// When.
    #[serde(skip)]
    pub at: SystemTime,
    /// The same for people, UTC.
    pub time: String,
    /// Who says so.
    pub side: Side,
    /// What.
    pub text: String,
}

/// Everything that happened to an action, oldest first; and the faults from its first to its last moment.
pub fn of(world: &World, action: Uuid) -> Vec<Event> {
    let Some(entry) = world.entries.iter().find(|entry| entry.action == action) else { return Vec::new() };
    let mut events = Vec::new();
    application(world, entry, &mut events);
    for attempt in &entry.attempts {
        ledger(attempt, &mut events);
    }
    let reason = entry.reason.as_deref().map(|reason| format!(" ({reason})")).unwrap_or_default();
    if let Some(closed) = entry.closed_at {
        events.push(event(closed, Side::Ledger, format!("closed as {}{reason}", entry.state.as_str())));
    }
    for request in world.requests.iter().filter(|request| request.action == Some(action)) {
        let what = match request.what {
            What::Send => "the request",
            What::Lookup => "a lookup",
            What::Cancel => "a cancel by key",
        };
        let effect = if request.took_effect { "; EFFECT" } else { "" };
        let receipt = request.receipt.as_deref().map(|receipt| format!(" {receipt}")).unwrap_or_default();
        let fence = request.fence.map(|fence| format!(" under fence {fence}")).unwrap_or_default();
        events.push(event(
            request.at,
            Side::Destination,
            format!("{what} arrives{fence}{effect}{receipt}: it {}", request.did),
        ));
    }
    for said in world.said.iter().filter(|said| said.action == action) {
        events.push(event(said.at, Side::Worker, format!("worker {}: {}", said.worker, said.text)));
    }
    let (first, last) = (events.iter().map(|event| event.at).min(), events.iter().map(|event| event.at).max());
    if let (Some(first), Some(last)) = (first, last) {
        for happened in world.faults.iter().filter(|happened| happened.to >= first && happened.from <= last) {
            events.push(event(
                happened.from,
                Side::Fault,
                format!("{}{}", happened.fault, lasting(happened.from, happened.to)),
            ));
        }
    }
    events.sort_by_key(|event| (event.at, event.side));
    if !entry.is_closed() {
        let at = events.last().map_or(entry.created_at, |event| event.at);
        events.push(event(at, Side::Ledger, format!("now {}, step {}{reason}", entry.state.as_str(), entry.step)));
    }
    events
}

fn application(world: &World, entry: &Entry, events: &mut Vec<Event>) {
    let desk = &world.desk;
    let kind = entry.kind.name();
    events.extend(desk.written.iter().filter(|written| written.order == entry.order).map(|written| {
        event(written.at, Side::Application, format!("order {} is written, with a {kind} action", entry.order))
    }));
    events.extend(desk.answers.iter().filter(|answer| answer.order == entry.order).map(|answer| {
        let told = if answer.created { "committed" } else { "committed once more: the same action" };
        event(answer.at, Side::Application, told.to_owned())
    }));
    events.extend(desk.cancels.iter().filter(|cancel| cancel.order == entry.order).map(|cancel| {
        let told = if cancel.certain { "cancelled, for certain" } else { "cancellation requested" };
        event(cancel.at, Side::Application, told.to_owned())
    }));
    let grant = world.plan.order(entry.order).and_then(|order| order.grant);
    for (_, from, to) in desk.revoked.iter().filter(|(revoked, ..)| Some(*revoked) == grant) {
        events.push(event(*from, Side::Application, "its authority is revoked".to_owned()));
        events.extend(to.map(|to| event(to, Side::Application, "its authority is given back".to_owned())));
    }
    events.extend(entry.expires_at.map(|at| event(at, Side::Application, "its deadline".to_owned())));
}

fn ledger(attempt: &Attempt, events: &mut Vec<Event>) {
    let who = attempt.worker.as_deref().map(|worker| format!(" by {worker}")).unwrap_or_default();
    let status = attempt.status.map(|status| format!(" ({status})")).unwrap_or_default();
    if let Some(started) = attempt.started_at {
        events.push(event(started, Side::Ledger, format!("{} claimed{who}, fence {}", attempt.kind, attempt.fence)));
    }
    events.push(event(
        attempt.finished_at,
        Side::Ledger,
        format!("{}, fence {}: {}{status}, then {}", attempt.kind, attempt.fence, attempt.evidence, attempt.verdict),
    ));
}

fn event(at: SystemTime, side: Side, text: String) -> Event {
    Event { at, time: clock(at), side, text }
}

fn lasting(from: SystemTime, to: SystemTime) -> String {
    match to.duration_since(from) {
        Ok(time) if time.as_millis() > 50 => format!(" for {:.1} s", time.as_secs_f64()),
        Ok(_) | Err(_) => String::new(),
    }
}

/// HH:MM:SS.mmm, UTC.
pub fn clock(at: SystemTime) -> String {
    let text = humantime::format_rfc3339_millis(at).to_string();
    text.get(11..23).unwrap_or(&text).to_owned()
}

/// As one line.
pub fn line(event: &Event) -> String {
    format!("{} {:<11} {}", event.time, event.side.name(), event.text)
}
