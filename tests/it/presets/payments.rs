//! Payments whose APIs say much: Stripe, Adyen, Square, Increase.

use outboxd::proving::fake::{Reply, Seen};
use serde_json::json;

use super::Do::{Again, Cancel, Look, New, Other};
use super::{Api, JSON, Known, Preset, at, field, header, json};

const FORM: Preset =
    Preset { content_type: "application/x-www-form-urlencoded", body: "amount=2000&currency=eur&note=hello", ..JSON };

/// Keeps every answer once the endpoint has begun, a 500 too, and gives it again. Its search lags.
fn stripe_v1(api: &mut Api, ask: &Seen) -> Reply {
    if ask.path == "/v1/payment_intents/search" {
        let query = field(ask.query.as_deref().unwrap_or_default(), "query");
        let reference = query.strip_prefix("metadata['outbox_ref']:'").and_then(|rest| rest.strip_suffix('\''));
        let found = api.thing(reference.expect("a search by our reference")).filter(|_| api.mood != "lagging");
        let amount = if api.mood == "changed" { 1999 } else { 2000 };
        let data: Vec<_> = found.iter().map(|id| json!({"id": id, "amount": amount, "currency": "eur"})).collect();
        return json(200, &json!({ "data": data }));
    }
    match api.mood {
        "limited" => return Reply::new(429).header("Stripe-Should-Retry", "true"),
        "busy" => return json(409, &json!({"error": {"code": "idempotency_key_in_use"}})),
        "hiccup" => return Reply::new(503).header("Stripe-Should-Retry", "true"),
        _ => {}
    }
    let key = header(ask, "idempotency-key");
    match api.known(&key, ask) {
        Known::Same(reply) => reply.header("Idempotent-Replayed", "true"),
        Known::OtherBody(_) => json(400, &json!({"error": {"type": "idempotency_error"}})),
        Known::Nothing => {
            let reference = match ask.path.as_str() {
                "/v1/payment_intents" => field(&ask.text(), "metadata[outbox_ref]"),
                _ => key.clone(),
            };
            let reply = match api.mood {
                "declined" => json(402, &json!({"error": {"type": "card_error"}})),
                "breaks" => {
                    api.happens_as(&reference);
                    json(500, &json!({"error": {"type": "api_error"}}))
                }
                _ => json(200, &json!({"id": api.happens_as(&reference), "amount": 2000})),
            };
            api.keep(&key, ask, reply)
        }
    }
}

/// Repeats nothing that succeeded and takes up what was not finished.
fn stripe_v2(api: &mut Api, ask: &Seen) -> Reply {
    let key = header(ask, "idempotency-key");
    match (api.known(&key, ask), api.mood) {
        (_, "breaks") => Reply::new(500),
        (Known::OtherBody(_), _) => Reply::new(400),
        (Known::Same(_) | Known::Nothing, _) => api.once(&key, ask, |id| json(200, &json!({ "id": id }))),
    }
}

/// Answers with the key where it took it. What is not transient is the key's last word.
fn adyen(api: &mut Api, ask: &Seen) -> Reply {
    let key = header(ask, "idempotency-key");
    assert_eq!(at(ask, "/reference"), header(ask, "outbox-action"));
    let echo = |reply: Reply| reply.header("Idempotency-Key", key.clone());
    match (api.mood, api.known(&key, ask)) {
        ("transient", _) => echo(Reply::new(500).header("Transient-Error", "true")),
        ("transient without key", _) => Reply::new(500).header("Transient-Error", "true"),
        ("store down", _) => json(503, &json!({"errorCode": "703"})),
        ("working", _) => json(409, &json!({"status": 409, "errorCode": "704"})),
        ("wrong", _) => echo(json(422, &json!({"errorCode": "130"}))),
        (_, Known::Same(reply) | Known::OtherBody(reply)) => reply,
        ("breaks", Known::Nothing) => {
            api.happens();
            api.keep(&key, ask, echo(json(500, &json!({"errorCode": "905"}))))
        }
        (_, Known::Nothing) => api.once(&key, ask, |id| echo(json(200, &json!({ "pspReference": id })))),
    }
}

/// Can cancel by the key, whether or not there is a payment.
fn square(api: &mut Api, ask: &Seen) -> Reply {
    let key = at(ask, "/idempotency_key");
    let error = |status, code| json(status, &json!({"errors": [{ "code": code }]}));
    match (ask.path.as_str(), api.mood) {
        ("/v2/payments/cancel", "breaks") => error(500, "INTERNAL_SERVER_ERROR"),
        ("/v2/payments/cancel", _) => {
            api.effects -= usize::from(api.kept.remove(&key).is_some());
            json(200, &json!({}))
        }
        (_, "limited") => error(429, "RATE_LIMITED"),
        (_, "hiccup") => error(500, "TEMPORARY_ERROR"),
        (_, _) => match api.known(&key, ask) {
            Known::OtherBody(_) => error(400, "IDEMPOTENCY_KEY_REUSED"),
            Known::Same(_) | Known::Nothing => api.once(&key, ask, |id| json(200, &json!({"payment": { "id": id }}))),
        },
    }
}

/// One object per key for ever, and a list that can be filtered by it.
fn increase(api: &mut Api, ask: &Seen) -> Reply {
    if ask.method == "GET" {
        let found = api.thing(&field(ask.query.as_deref().unwrap_or_default(), "idempotency_key")).map(str::to_owned);
        return json(
            200,
            &match (found, api.mood) {
                (None, _) | (_, "lagging") => json!({"data": []}),
                (Some(id), "changed") => json!({"data": [{"id": id, "amount": 99}]}),
                (Some(id), "terse") => json!({"data": [{ "id": id }]}),
                (Some(id), "two") => json!({"data": [{"id": id, "amount": 100}, {"id": "e9", "amount": 100}]}),
                (Some(id), _) => json!({"data": [{"id": id, "amount": 100}]}),
            },
        );
    }
    let key = header(ask, "idempotency-key");
    match api.known(&key, ask) {
        Known::Same(reply) => reply.header("Idempotent-Replayed", "true"),
        Known::OtherBody(_) => json(409, &json!({"type": "idempotency_key_already_used_error", "resource_id": "e1"})),
        Known::Nothing => {
            let reply = json(200, &json!({"id": api.happens_as(&key), "amount": 100}));
            api.keep(&key, ask, reply)
        }
    }
}

pub(super) const PRESETS: &[Preset] = &[
    Preset {
        contract: "stripe.v1.payment_intents.create",
        path: "/v1/payment_intents",
        api: stripe_v1,
        script: &[
            (New, "limited", "deferred"),
            (Again, "busy", "in_flight after 2s → resend lookup review"),
            (Again, "hiccup", "unknown_answer → resend lookup review"),
            (Again, "", "accepted e1"),
            (Again, "", "accepted e1"),
            (Other, "", "key_conflict"),
            (New, "declined", "rejected"),
            (Again, "", "rejected_replay"),
            (New, "lost", "no_answer → resend lookup review"),
            (Again, "", "accepted e2"),
            (New, "breaks", "unknown_answer → lookup review"),
            (Again, "", "unknown_answer → lookup review"),
            (Look, "lagging", "absent"),
            (Look, "", "found e3"),
            (Look, "changed", "mismatch e3"),
        ],
        effects: 3,
        ..FORM
    },
    Preset {
        contract: "stripe.v1.post",
        path: "/v1/refunds",
        api: stripe_v1,
        script: &[
            (New, "limited", "deferred"),
            (Again, "busy", "in_flight after 2s → resend review"),
            (Again, "hiccup", "unknown_answer → resend review"),
            (Again, "lost", "no_answer → resend review"),
            (Again, "", "accepted e1"),
            (Other, "", "key_conflict"),
            (New, "declined", "rejected"),
            (Again, "", "rejected_replay"),
            (New, "breaks", "unknown_answer → review"),
        ],
        effects: 2,
        ..FORM
    },
    Preset {
        contract: "stripe.v2.post",
        api: stripe_v2,
        script: &[
            (New, "breaks", "unknown_answer → resend review"),
            (Again, "", "accepted e1"),
            (Again, "", "accepted e1"),
            (New, "lost", "no_answer → resend review"),
            (Again, "", "accepted e2"),
        ],
        effects: 2,
        ..JSON
    },
    Preset {
        contract: "adyen.checkout.payments",
        path: "/v72/payments",
        api: adyen,
        script: &[
            (New, "lost", "no_answer → resend review"),
            (Again, "", "accepted e1"),
            (New, "transient", "unknown_answer after 5s → resend review"),
            (Again, "transient without key", "unknown_answer after 5s → review"),
            (Again, "", "accepted e2"),
            (New, "store down", "deferred"),
            (Again, "working", "unknown_answer → review"),
            (Again, "wrong", "rejected"),
            (New, "breaks", "unknown_answer → review"),
            (Again, "", "unknown_answer → review"),
        ],
        effects: 3,
        ..JSON
    },
    Preset {
        contract: "square.payments.create",
        operation: "allow_unverified = true",
        path: "/v2/payments",
        api: square,
        script: &[
            (New, "", "accepted e1"),
            (Again, "", "accepted e1"),
            (Other, "", "key_conflict"),
            (New, "limited", "deferred"),
            (Again, "hiccup", "unknown_answer → cancel review"),
            (Cancel, "", "neutralised"),
            (New, "lost", "no_answer → cancel review"),
            (Cancel, "breaks", "inconclusive"),
            (Cancel, "", "neutralised"),
            (Cancel, "", "neutralised"),
        ],
        effects: 1,
        ..JSON
    },
    Preset {
        contract: "increase.ach_transfers.create",
        path: "/ach_transfers",
        body: "{\"amount\":100.00,\"statement_descriptor\":\"hello\"}",
        api: increase,
        script: &[
            (New, "lost", "no_answer → resend lookup review"),
            (Again, "", "accepted e1"),
            (Other, "", "key_conflict"),
            (Look, "lagging", "absent"),
            (Look, "", "found e1"),
            (Look, "changed", "mismatch e1"),
            (Look, "terse", "inconclusive"),
            (Look, "two", "mismatch"),
        ],
        effects: 1,
        ..JSON
    },
];
