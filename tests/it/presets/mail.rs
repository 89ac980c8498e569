//! Mail: Resend, Brevo, Emailit, Nylas, HubSpot.

use outboxd::proving::fake::{Reply, Seen};
use serde_json::json;
use uuid::Uuid;

use super::Do::{Again, New, Other};
use super::{Api, JSON, Known, Preset, at, header, json};

fn resend(api: &mut Api, ask: &Seen) -> Reply {
    let key = header(ask, "idempotency-key");
    match (api.known(&key, ask), api.mood) {
        (_, "busy") => json(409, &json!({"name": "concurrent_idempotent_requests"})),
        (_, "limited") => Reply::new(429).header("Retry-After", "1"),
        (Known::OtherBody(_), _) => json(409, &json!({"name": "invalid_idempotent_request"})),
        (Known::Same(_) | Known::Nothing, _) => api.once(&key, ask, |id| json(200, &json!({ "id": id }))),
    }
}

/// Wants a version 4 UUID.
fn brevo(api: &mut Api, ask: &Seen) -> Reply {
    let key = at(ask, "/headers/idempotencyKey");
    match Uuid::parse_str(&key).map(|key| key.get_version_num()) {
        Ok(4) => api.once(&key, ask, |id| json(201, &json!({ "messageId": id }))),
        Ok(_) | Err(_) => Reply::new(400),
    }
}

/// Gives the answer of success again, whatever the body of the repeat; any other answer frees the key.
fn emailit(api: &mut Api, ask: &Seen) -> Reply {
    match api.mood {
        "busy" => Reply::new(409),
        "wrong" => Reply::new(422),
        "breaks" => api.acts_and_forgets(500),
        _ => api.once(&header(ask, "idempotency-key"), ask, |id| json(200, &json!({ "id": id }))),
    }
}

/// Keeps every answer, errors too.
fn nylas(api: &mut Api, ask: &Seen) -> Reply {
    let key = header(ask, "idempotency-key");
    let error = |status, kind: &str| json(status, &json!({"request_id": "r", "error": { "type": kind }}));
    match (api.known(&key, ask), api.mood) {
        (_, "busy") => error(409, "api.concurrent_idempotent_request"),
        (Known::OtherBody(_), _) => error(409, "api.invalid_idempotent_request"),
        (Known::Same(reply), _) => reply.header("Idempotent-Response", "true"),
        (Known::Nothing, "wrong") => api.keep(&key, ask, error(400, "invalid_request_error")),
        (Known::Nothing, "breaks") => {
            api.happens();
            api.keep(&key, ask, error(503, "provider_error"))
        }
        (Known::Nothing, _) => api.once(&key, ask, |id| json(200, &json!({"data": { "id": id }}))),
    }
}

fn hubspot(api: &mut Api, ask: &Seen) -> Reply {
    api.once(&at(ask, "/message/sendId"), ask, |id| json(200, &json!({ "statusId": id })))
}

pub(super) const PRESETS: &[Preset] = &[
    Preset {
        contract: "resend.emails.send",
        path: "/emails",
        api: resend,
        script: &[
            (New, "limited", "deferred after 1s"),
            (Again, "lost", "no_answer → resend review"),
            (Again, "busy", "in_flight after 2s → resend review"),
            (Again, "", "accepted e1"),
            (Other, "", "key_conflict"),
        ],
        effects: 1,
        ..JSON
    },
    Preset {
        contract: "brevo.smtp.send",
        path: "/v3/smtp/email",
        api: brevo,
        script: &[(New, "lost", "no_answer → resend review"), (Again, "", "accepted e1"), (New, "", "accepted e2")],
        effects: 2,
        ..JSON
    },
    Preset {
        contract: "emailit.emails.send",
        path: "/v2/emails",
        api: emailit,
        script: &[
            (New, "busy", "in_flight after 5s → resend review"),
            (Again, "lost", "no_answer → resend review"),
            (Again, "", "accepted e1"),
            (Other, "", "accepted e1"),
            (New, "wrong", "rejected"),
            (New, "breaks", "unknown_answer → review"),
            // Why nobody does that by himself: it is another one.
            (Again, "", "accepted e3"),
        ],
        effects: 3,
        ..JSON
    },
    Preset {
        contract: "nylas.messages.send",
        path: "/v3/grants/{grant}/messages/send",
        params: "{\"grant\":\"g1\"}",
        api: nylas,
        script: &[
            (New, "lost", "no_answer → resend review"),
            (Again, "busy", "in_flight after 2s → resend review"),
            (Again, "", "accepted e1"),
            (Other, "", "key_conflict"),
            (New, "wrong", "rejected"),
            (Again, "", "rejected_replay"),
            (New, "breaks", "unknown_answer → review"),
            (Again, "", "unknown_answer → review"),
        ],
        effects: 2,
        ..JSON
    },
    Preset {
        contract: "hubspot.single_send",
        own: "key.window = \"1d\"",
        path: "/marketing/v3/transactional/single-email/send",
        api: hubspot,
        script: &[(New, "lost", "no_answer → resend review"), (Again, "", "accepted e1")],
        effects: 1,
        ..JSON
    },
];
