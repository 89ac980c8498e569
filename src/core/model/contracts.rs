//! The kinds of contract that are explored, as the terms that the real rules read.

use super::world::{ABSENCE, ATTEMPTS, ELAPSED, MARGIN, RESEND_WITHIN, REVIEW_AFTER, TIMEOUT, WINDOW, pins, ticks};
use crate::core::contract::{
    Absence, Asking, By, Cancel, Contract, Effect, Key, KeyMode, Lookup, Place, Question, Rung, When, Window,
};
use crate::core::request::RequestTemplate;
use crate::core::retry::Backoff;
use crate::core::terms::{Policy, Terms};

/// A kind of contract.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    NothingPromised,
    Unreconcilable,
    KeyLong,
    KeyShort,
    LookupSettled,
    LookupNever,
    KeyAndLookup,
    LookupThenResend,
    KeyAndCancel,
    CancelFirst,
    CancelThenLookup,
    LookupAndCancel,
    Natural,
}

/// What the destination does, and the terms under each of the two sets of pins.
#[derive(Debug)]
pub struct Promise {
    /// How long it remembers a key; `None` = it takes none.
    pub memory: Memory,
    terms: [Terms; 2],
}

/// How a destination treats a repeat.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Memory {
    /// As another request.
    None,
    /// By its key, for so long.
    For(i8),
    /// By its key, for ever.
    Forever,
    /// The same result again.
    Natural,
}

impl Promise {
    pub fn new(kind: Kind) -> Self {
        Self { memory: memory(kind), terms: [terms(kind, 1), terms(kind, 2)] }
    }

    /// The terms under pins 1 or 2.
    pub fn terms(&self, pins: u8) -> &Terms {
        &self.terms[usize::from(pins - 1)]
    }
}

fn memory(kind: Kind) -> Memory {
    match kind {
        Kind::NothingPromised | Kind::LookupSettled | Kind::LookupNever => Memory::None,
        Kind::LookupAndCancel | Kind::CancelThenLookup => Memory::None,
        Kind::KeyLong => Memory::Forever,
        Kind::Natural => Memory::Natural,
        // An unreconcilable operation never resends, whatever its destination would make of it.
        Kind::Unreconcilable | Kind::KeyShort | Kind::KeyAndLookup | Kind::LookupThenResend => Memory::For(WINDOW),
        Kind::KeyAndCancel | Kind::CancelFirst => Memory::For(WINDOW),
    }
}

fn terms(kind: Kind, number: u8) -> Terms {
    use Rung::{Cancel, Lookup, Resend, Review};
    let settled = Absence::After(ticks(ABSENCE));
    let never = Absence::Never;
    let (reconcile, lookup, cancel) = match kind {
        Kind::NothingPromised => (vec![Review], None, None),
        Kind::Unreconcilable | Kind::KeyLong | Kind::KeyShort | Kind::Natural => (vec![Resend, Review], None, None),
        Kind::LookupSettled => (vec![Lookup, Review], Some(settled), None),
        Kind::LookupNever => (vec![Lookup, Review], Some(never), None),
        Kind::KeyAndLookup => (vec![Resend, Lookup, Review], Some(settled), None),
        Kind::LookupThenResend => (vec![Lookup, Resend, Review], Some(settled), None),
        Kind::KeyAndCancel => (vec![Resend, Cancel, Review], None, Some(settled)),
        Kind::CancelFirst => (vec![Cancel, Resend, Review], None, Some(settled)),
        Kind::LookupAndCancel => (vec![Lookup, Cancel, Review], Some(settled), Some(settled)),
        Kind::CancelThenLookup => (vec![Cancel, Lookup, Review], Some(settled), Some(settled)),
    };
    let key = match memory(kind) {
        Memory::None => None,
        Memory::For(window) => Some((KeyMode::Dedupe, Some(Window::For(ticks(window))))),
        Memory::Forever => Some((KeyMode::Dedupe, Some(Window::Forever))),
        Memory::Natural => Some((KeyMode::Natural, None)),
    };
    Terms {
        policy: Policy {
            effect: match kind {
                Kind::Unreconcilable => Effect::Unreconcilable,
                Kind::Natural => Effect::Idempotent,
                Kind::NothingPromised | Kind::LookupSettled | Kind::LookupNever => Effect::Compensatable,
                Kind::LookupAndCancel | Kind::CancelThenLookup => Effect::Compensatable,
                Kind::KeyLong | Kind::KeyShort | Kind::KeyAndLookup | Kind::LookupThenResend => Effect::Keyed,
                Kind::KeyAndCancel | Kind::CancelFirst => Effect::Keyed,
            },
            timeout: ticks(TIMEOUT),
            attempts_max: ATTEMPTS.into(),
            affordable: None,
            elapsed_max: ticks(ELAPSED),
            backoff: Backoff { initial: ticks(1), multiplier: 1.0, max: ticks(1) },
            retry_after_max: ticks(1),
            review_after: ticks(REVIEW_AFTER),
            resend_within: ticks(RESEND_WITHIN),
        },
        contract: Contract {
            key: key.map(|(mode, window)| Key {
                window,
                margin: ticks(MARGIN),
                ..Key::new(mode, Place::Header("idempotency-key".into()))
            }),
            reconcile,
            lookup: lookup.map(looking),
            cancel: cancel.map(cancelling),
            ..Contract::silent(format!("{kind:?}"))
        },
        pins: pins(number),
    }
}

fn asking(absence: Absence) -> Asking {
    Asking { first_after: ticks(1), repeat: vec![ticks(1)], absence }
}

/// What is asked is the world's business.
fn question() -> Question {
    Question { request: RequestTemplate::bare("GET"), body: None }
}

fn looking(absence: Absence) -> Lookup {
    Lookup::new(By::Key, question(), When::default(), asking(absence))
}

fn cancelling(absence: Absence) -> Cancel {
    Cancel { question: question(), done: When::default(), asking: asking(absence) }
}
