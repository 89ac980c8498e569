//! Payments whose APIs say less: PayPal, Plaid, GoCardless, Checkout.com, Qonto, Whop.

use outboxd::proving::fake::{Reply, Seen};
use serde_json::json;

use super::Do::{Again, New, Other};
use super::{Api, JSON, Known, Preset, at, header, json};

/// A repeat is told what is true by then; of two at once the second may be refused.
fn paypal(api: &mut Api, ask: &Seen) -> Reply {
    let key = header(ask, "paypal-request-id");
    match api.mood {
        "busy" => Reply::new(409),
        "breaks" => Reply::new(500),
        "wrong" => json(422, &json!({"name": "UNPROCESSABLE_ENTITY"})),
        _ => api.once(&key, ask, |id| json(201, &json!({"id": id, "status": "CREATED"}))),
    }
}

/// Refuses a batch id that it knows, with a link to the batch.
fn payouts(api: &mut Api, ask: &Seen) -> Reply {
    let key = at(ask, "/sender_batch_header/sender_batch_id");
    match api.known(&key, ask) {
        Known::Same(_) | Known::OtherBody(_) => json(400, &json!({"links": [{"href": "/v1/payments/payouts/e1"}]})),
        Known::Nothing => api.once(&key, ask, |id| json(201, &json!({"batch_header": { "payout_batch_id": id }}))),
    }
}

/// One transfer for one authorisation, which may exist although the answer was 500.
fn plaid(api: &mut Api, ask: &Seen) -> Reply {
    let reply = api.once(&at(ask, "/authorization_id"), ask, |id| json(200, &json!({"transfer": { "id": id }})));
    if api.mood == "breaks" { Reply::new(500) } else { reply }
}

/// Refuses a repeat with the id of what the first made.
fn gocardless(api: &mut Api, ask: &Seen) -> Reply {
    let key = header(ask, "idempotency-key");
    let error = json!({"reason": "idempotent_creation_conflict", "links": {"conflicting_resource_id": "e1"}});
    match (api.known(&key, ask), api.mood) {
        (Known::Nothing, _) => api.once(&key, ask, |id| json(201, &json!({"payments": { "id": id }}))),
        (_, "odd") => json(409, &json!({"error": {"errors": [error.clone(), error]}})),
        (_, _) => json(409, &json!({"error": {"type": "invalid_state", "errors": [error]}})),
    }
}

/// Keeps answers of success only.
fn checkout(api: &mut Api, ask: &Seen) -> Reply {
    match api.mood {
        "breaks" => api.acts_and_forgets(502),
        _ => api.once(&header(ask, "cko-idempotency-key"), ask, |id| json(201, &json!({ "id": id }))),
    }
}

/// Keeps answers of success only, and gives them whatever the body.
fn qonto(api: &mut Api, ask: &Seen) -> Reply {
    match api.mood {
        "breaks" => api.acts_and_forgets(500),
        _ => api.once(&header(ask, "x-qonto-idempotency-key"), ask, |_| Reply::new(200)),
    }
}

/// Keeps every answer; where the first broke off it says so until the key expires.
fn whop(api: &mut Api, ask: &Seen) -> Reply {
    let key = header(ask, "idempotency-key");
    let error = |status, code: &str| json(status, &json!({"error": { "code": code }}));
    match (api.known(&key, ask), api.mood) {
        (_, "busy") => error(409, "idempotency_request_in_progress"),
        (_, "broke off") => error(409, "idempotency_outcome_unknown"),
        (Known::Same(reply), _) => reply.header("Idempotent-Replayed", "true"),
        (Known::OtherBody(_), _) => error(400, "idempotency_key_mismatch"),
        (Known::Nothing, "wrong") => api.keep(&key, ask, error(422, "invalid")),
        (Known::Nothing, _) => api.once(&key, ask, |id| json(200, &json!({ "id": id }))),
    }
}

pub(super) const PRESETS: &[Preset] = &[
    Preset {
        contract: "paypal.orders.create",
        path: "/v2/checkout/orders",
        api: paypal,
        script: &[
            (New, "lost", "no_answer → resend review"),
            (Again, "busy", "unknown_answer → resend review"),
            (Again, "breaks", "unknown_answer → resend review"),
            (Again, "", "accepted e1"),
            (New, "wrong", "rejected"),
        ],
        effects: 1,
        ..JSON
    },
    Preset {
        contract: "paypal.payments.v2.post",
        path: "/v2/payments/captures/{capture}/refund",
        params: "{\"capture\":\"c1\"}",
        api: paypal,
        script: &[(New, "lost", "no_answer → resend review"), (Again, "", "accepted e1"), (Again, "", "accepted e1")],
        effects: 1,
        ..JSON
    },
    Preset {
        contract: "paypal.payouts.create",
        path: "/v1/payments/payouts",
        api: payouts,
        script: &[
            (New, "", "accepted e1"),
            (New, "lost", "no_answer → resend review"),
            // In doubt and without the mark of a replay, so a person finds the link in it.
            (Again, "", "rejected"),
        ],
        effects: 2,
        ..JSON
    },
    Preset {
        contract: "plaid.transfer.create",
        path: "/transfer/create",
        body: "{\"authorization_id\":\"a1\"}",
        api: plaid,
        script: &[
            (New, "breaks", "unknown_answer → resend review"),
            (Again, "lost", "no_answer → resend review"),
            (Again, "", "accepted e1"),
        ],
        effects: 1,
        ..JSON
    },
    Preset {
        contract: "gocardless.payments.create",
        own: "key.window = \"1d\"",
        path: "/payments",
        api: gocardless,
        script: &[
            (New, "lost", "no_answer → resend review"),
            (Again, "", "accepted e1"),
            (Again, "odd", "mismatch"),
            (New, "", "accepted e2"),
        ],
        effects: 2,
        ..JSON
    },
    Preset {
        contract: "checkout.payments.create",
        path: "/payments",
        api: checkout,
        script: &[
            (New, "lost", "no_answer → resend review"),
            (Again, "", "accepted e1"),
            (New, "breaks", "unknown_answer → review"),
            // Why nobody does that by himself: it is another one.
            (Again, "", "accepted e3"),
        ],
        effects: 3,
        ..JSON
    },
    Preset {
        contract: "qonto.post",
        api: qonto,
        script: &[
            (New, "lost", "no_answer → resend review"),
            (Again, "", "accepted"),
            (Other, "", "accepted"),
            (New, "breaks", "unknown_answer → review"),
        ],
        effects: 2,
        ..JSON
    },
    Preset {
        contract: "whop.post",
        api: whop,
        script: &[
            (New, "lost", "no_answer → resend review"),
            (Again, "busy", "in_flight after 30s → resend review"),
            (Again, "broke off", "unknown_answer → resend review"),
            (Again, "", "accepted e1"),
            (Other, "", "key_conflict"),
            (New, "wrong", "rejected"),
            (Again, "", "rejected_replay"),
        ],
        effects: 1,
        ..JSON
    },
];
