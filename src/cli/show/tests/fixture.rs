//! Stories made by hand. It is 10:44:07 UTC on 29 November 2026, and an hour earlier 09:44:07.

use std::time::Duration;

use uuid::Uuid;

use super::super::View;
use super::super::page::page;
use crate::cli::print::screen::Screen;
use crate::core::action::{ActionId, AttemptId, State, Step};
use crate::core::contract::{
    Absence, Asking, By, Contract, Effect, Key, KeyMode, Lookup, Place, Question, Rung, When, Window,
};
use crate::core::request::RequestTemplate;
use crate::core::retry::Backoff;
use crate::core::row::{Doubt, SentUnder};
use crate::core::target::Operation;
use crate::core::terms::{Pins, Policy, Terms};
use crate::core::time::Timestamp;
use crate::ledger::{Committed, Content, Entry, EntryKind, Note, Position, Story, Weight};

pub const NOW: Timestamp = Timestamp::from_micros(1_795_949_047_000_000);
pub const PINS: Pins = Pins([1; 16]);

/// So many seconds ago.
pub fn ago(seconds: u64) -> Timestamp {
    NOW.minus(Duration::from_secs(seconds))
}

fn second() -> Duration {
    Duration::from_secs(1)
}

/// The attempt of that number.
pub fn attempt(number: u32) -> Uuid {
    Uuid::from_u128(u128::from(number))
}

/// Committed a quarter of an hour ago and never sent.
pub fn committed() -> Story {
    let id = "0197c0de-6a1e-7c3b-9f0e-2d5d1c1f7a55".parse().expect("an id");
    Story {
        now: NOW,
        committed: Committed {
            id: ActionId(id),
            tenant: "acme".into(),
            principal: "release-bot".into(),
            operation: "announcement.deliver".into(),
            retry_key: "publication-17".into(),
            event_id: Some("evt-9".into()),
            proposal_id: None,
            workflow_id: Some("rel-88".into()),
            traceparent: None,
            content_type: Some("application/json".into()),
            content: Some(Content {
                params: None,
                header_names: vec![],
                body: Some(Weight { bytes: 38, sha256: "9f2c".repeat(16) }),
            }),
            ordering_key: None,
            not_before: None,
            expires_at: None,
            authority: None,
            created_at: ago(900),
        },
        standing: Position {
            state: State::Pending,
            step: Step::Send,
            label: "pending".into(),
            sentence: "Committed; delivery pending.".into(),
            took_effect: None,
            due_at: Some(ago(900)),
            fence: 0,
            attempt: None,
            attempts: 0,
            worker: None,
            budget_from: ago(900),
            first_sent_at: None,
            last_sent_at: None,
            doubt: None,
            proof: None,
            cancel_sent_at: None,
            overridden: false,
            sent_under: SentUnder::Nothing,
            reason: None,
            receipt: None,
            closed_at: None,
        },
        cancellation: None,
        revocations: vec![],
        history: vec![],
        compensates: None,
        compensated_by: vec![],
        queue: None,
        inventory: None,
    }
}

/// One send, begun so many seconds ago and ended 7 s later.
pub fn send(number: u32, seconds: u64, evidence: &str, verdict: &str) -> Entry {
    Entry {
        attempt: attempt(number),
        number,
        kind: EntryKind::Send,
        fence: i64::from(number),
        worker: Some("web-2#41c9".into()),
        idempotency_key: Some("0197c0de-6a1e-7c3b-9f0e-2d5d1c1f7a55".into()),
        started_at: Some(ago(seconds)),
        deadline_at: Some(ago(seconds - 10)),
        finished_at: ago(seconds - 7),
        evidence: evidence.into(),
        verdict: verdict.into(),
        status: None,
        receipt: None,
        detail: None,
        decided_by: None,
    }
}

/// Something else that was learnt so many seconds ago.
pub fn other(kind: EntryKind, seconds: u64, evidence: &str, verdict: &str) -> Entry {
    let mut entry = send(9, seconds + 7, evidence, verdict);
    entry.kind = kind;
    entry.attempt = Uuid::from_u128(u128::from(seconds) + 1000);
    entry
}

/// Sent once, no answer, and now this step; due as given.
pub fn in_doubt(step: Step, label: &str, reason: &str, due_at: Option<Timestamp>) -> Story {
    let mut story = committed();
    let lost = Entry {
        detail: Some("connection closed, after 512 bytes of the request and 0 of an answer".into()),
        ..send(1, 785, "no_answer", "outcome_unknown")
    };
    story.history.push(lost);
    story.standing = Position {
        state: State::OutcomeUnknown,
        step,
        label: label.into(),
        due_at,
        fence: 1,
        attempts: 1,
        first_sent_at: Some(ago(785)),
        last_sent_at: Some(ago(778)),
        doubt: Some(Doubt { since: ago(778), attempt: Some(AttemptId(attempt(1))) }),
        sent_under: SentUnder::These(PINS),
        reason: Some(reason.into()),
        ..story.standing
    };
    story
}

/// Held for a person because nothing is promised.
pub fn held() -> Story {
    in_doubt(Step::Review, "awaiting_review", "connection_lost", None)
}

/// Closed, so many seconds ago.
pub fn closed(mut story: Story, state: State, reason: Option<&str>, seconds: u64) -> Story {
    story.standing = Position {
        state,
        step: Step::Conclude,
        label: state.as_str().into(),
        took_effect: Some(state == State::Succeeded),
        due_at: None,
        doubt: None,
        reason: reason.map(Into::into),
        closed_at: Some(ago(seconds)),
        ..story.standing
    };
    story
}

/// Somebody's note.
pub fn note(seconds: u64, by: &str, reason: &str) -> Note {
    Note { at: ago(seconds), by: by.into(), reason: reason.into() }
}

/// An operation under a contract, with this effect.
pub fn operation(effect: Effect, contract: Contract) -> Operation {
    Operation {
        name: "announcement.deliver".into(),
        meaning: "Tell a channel".into(),
        owner: "release-desk".into(),
        target: "announcements".into(),
        request: RequestTemplate::bare("POST"),
        terms: Terms {
            policy: Policy {
                effect,
                timeout: 10 * second(),
                attempts_max: 5,
                affordable: None,
                elapsed_max: 86_400 * second(),
                backoff: Backoff { initial: second(), multiplier: 2.0, max: 60 * second() },
                retry_after_max: 3600 * second(),
                review_after: 86_400 * second(),
                resend_within: 3600 * second(),
            },
            contract,
            pins: PINS,
        },
        response_max_bytes: 65_536,
        hold_on_failure: false,
        cost: None,
    }
}

/// Nothing is promised.
pub fn silent() -> Operation {
    operation(Effect::Compensatable, Contract::silent("http.post"))
}

/// A key that is remembered for so many seconds.
pub fn keyed(window: u64) -> Operation {
    let key = Key {
        window: Some(Window::For(Duration::from_secs(window))),
        margin: Duration::from_secs(60),
        ..Key::new(KeyMode::Dedupe, Place::Header("idempotency-key".into()))
    };
    let contract = Contract { key: Some(key), reconcile: vec![Rung::Resend], ..Contract::silent("keyed") };
    operation(Effect::Keyed, contract)
}

/// A lookup that is proof so many seconds after the last send.
pub fn asked(absence: u64) -> Operation {
    let asking = Asking {
        first_after: 5 * second(),
        repeat: vec![30 * second()],
        absence: Absence::After(Duration::from_secs(absence)),
    };
    let question = Question { request: RequestTemplate::bare("GET"), body: None };
    let lookup = Lookup::new(By::Reference, question, When::default(), asking);
    let contract = Contract { lookup: Some(lookup), reconcile: vec![Rung::Lookup], ..Contract::silent("asked") };
    operation(Effect::Compensatable, contract)
}

/// The page.
pub fn text(story: &Story, operation: Option<&Operation>) -> String {
    noted(story, operation, &[])
}

/// The page, with what the contract notes at its rules.
pub fn noted(story: &Story, operation: Option<&Operation>, notes: &[Option<String>]) -> String {
    page(&View { story, operation, notes, config: String::new(), hint: None, obstacle: None }, Screen::plain())
}

/// A page must hold each of these, wherever its lines are wrapped, and none of those.
pub fn says(text: &str, parts: &[&str], never: &[&str]) {
    let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
    for part in parts {
        assert!(flat.contains(part), "{part:?} is not in:\n{text}");
    }
    for part in never {
        assert!(!flat.contains(part), "{part:?} is in:\n{text}");
    }
    assert!(!flat.to_lowercase().contains("failed"), "{text}");
}
