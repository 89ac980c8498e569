//! What a destination's answers look like.

use serde_json::json;

use super::moves::Move;
use super::records::Effect;
use crate::proving::fake::{Behaviour, Effect as Fakes, Reply, RetryAfter};

/// The answer that belongs to a move. Effects are counted in the drill's own book, so that of the fake has none.
pub fn answer(did: Move, receipt: &str, text: &str, replayed: bool, conflict: bool) -> Behaviour {
    let done = match (replayed, conflict) {
        (true, true) => Reply::json(409, json!({ "error": "known", "id": receipt }).to_string()),
        (true, false) => {
            Reply::json(200, json!({ "id": receipt, "text": text }).to_string()).header("idempotent-replayed", "true")
        }
        (false, _) => Reply::json(201, json!({ "id": receipt, "text": text }).to_string()),
    };
    let given = Behaviour::reply(done);
    debug_assert!(given.effect == Fakes::None);
    match did {
        Move::Answer => given,
        Move::AnswerLate => given.delayed(did.takes()),
        Move::Withhold => given.withholding(),
        Move::Reset | Move::Lose => given.resetting(),
        Move::Stutter => given.stuttering(),
        Move::Break => Behaviour::refuse(500),
        Move::Fail => Behaviour::refuse(502),
        Move::Throttle => Behaviour::throttle(&RetryAfter::Seconds(1)),
        Move::Refuse => Behaviour::refuse(422),
    }
}

/// The first request under this key is still being worked on.
pub fn in_progress() -> Behaviour {
    Behaviour::reply(Reply::json(409, r#"{"error":"in_progress"}"#))
}

/// What a lookup has found.
pub fn found(effects: &[&Effect]) -> Behaviour {
    let items: Vec<_> = effects.iter().map(|effect| json!({ "id": effect.receipt, "text": effect.text })).collect();
    Behaviour::reply(Reply::json(200, json!({ "items": items }).to_string()))
}

/// A cancel has been carried out; how many effects there were does not matter.
pub fn cancelled(voided: usize) -> Behaviour {
    Behaviour::reply(Reply::json(200, json!({ "cancelled": voided }).to_string()))
}
