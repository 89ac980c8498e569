//! A receiver that follows Standard Webhooks: it looks at the signature, and knows a message by its id.

use outboxd::proving::fake::{Reply, Seen};

use super::Do::{Again, New};
use super::{Api, JSON, Preset, header};
use crate::support::webhook;

/// Shared with the receiver.
pub const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

fn receiver(api: &mut Api, ask: &Seen) -> Reply {
    if let Err(why) = webhook::verify(ask, SECRET, 5) {
        return Reply::new(400).body(why);
    }
    let id = header(ask, "webhook-id");
    assert!(!id.contains('.'), "{id}");
    match api.mood {
        "throttles" => Reply::new(429).header("Retry-After", "7"),
        "has moved" => Reply::new(301).header("Location", "https://elsewhere.example"),
        "wants no more" => Reply::new(410),
        "breaks" => Reply::new(502),
        _ => api.once(&id, ask, |_| Reply::new(204)),
    }
}

pub const PRESETS: &[Preset] = &[Preset {
    contract: "standard-webhooks.deliver",
    destination: "auth = { sign = { scheme = \"standard-webhooks\", secrets = [{ env = \"SIGNING_KEY\" }] } }",
    api: receiver,
    script: &[
        (New, "breaks", "unknown_answer → resend review"),
        (Again, "lost", "no_answer → resend review"),
        (Again, "", "accepted"),
        (New, "throttles", "deferred after 7s"),
        (Again, "has moved", "deferred"),
        (Again, "wants no more", "blocked"),
        (Again, "", "accepted"),
    ],
    effects: 2,
    ..JSON
}];
