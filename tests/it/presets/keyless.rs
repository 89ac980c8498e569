//! APIs without any key: what is asked twice happens twice, so nothing is asked twice.

use outboxd::proving::fake::{Reply, Seen};
use serde_json::json;

use super::Do::{Again, New};
use super::{Api, JSON, Preset, json};

/// Says 403 as well as 429, and when to come back in one of two headers.
fn github(api: &mut Api, _: &Seen) -> Reply {
    match api.mood {
        "limited" => Reply::new(403).header("Retry-After", "60"),
        "used up" => Reply::new(429)
            .header("X-RateLimit-Remaining", "0")
            .header("X-RateLimit-Reset", "784111777")
            .header("Date", "Sun, 06 Nov 1994 08:49:17 GMT"),
        "forbidden" => Reply::new(403).header("X-RateLimit-Remaining", "59"),
        "breaks" => {
            api.happens();
            Reply::new(502)
        }
        _ => json(201, &json!({ "id": api.happens() })),
    }
}

/// Answers 200 to everything but a page of its load balancer.
fn slack(api: &mut Api, _: &Seen) -> Reply {
    match api.mood {
        "limited" => json(429, &json!({"ok": false, "error": "ratelimited"})).header("Retry-After", "30"),
        "page" => Reply::new(200).body("<html>"),
        "" | "lost" => json(200, &json!({"ok": true, "channel": "C1", "ts": api.happens()})),
        error => json(200, &json!({"ok": false, "error": error})),
    }
}

fn telegram(api: &mut Api, _: &Seen) -> Reply {
    match api.mood {
        "limited" => json(429, &json!({"ok": false, "parameters": {"retry_after": 7}})),
        "wrong" => json(400, &json!({"ok": false, "description": "Bad Request: chat not found"})),
        "limited in the body" => json(200, &json!({"ok": false, "error_code": 429})),
        "bad token" => json(401, &json!({"ok": false, "error_code": 401})),
        "bad token in the body" => json(200, &json!({"ok": false, "error_code": 401})),
        "no such bot" => json(404, &json!({"ok": false, "error_code": 404})),
        "page" => Reply::new(200).body("<html>"),
        _ => json(200, &json!({"ok": true, "result": {"message_id": api.happens()}})),
    }
}

fn twilio(api: &mut Api, _: &Seen) -> Reply {
    let sid = api.happens();
    match api.mood {
        "breaks" => Reply::new(500),
        "limited" => {
            api.effects -= 1;
            json(429, &json!({"code": 20429}))
        }
        _ => json(201, &json!({ "sid": sid })),
    }
}

fn intercom(api: &mut Api, _: &Seen) -> Reply {
    json(200, &json!({ "id": api.happens() }))
}

fn sendgrid(api: &mut Api, _: &Seen) -> Reply {
    Reply::new(202).header("X-Message-Id", api.happens())
}

/// Promises nothing.
fn anything(api: &mut Api, _: &Seen) -> Reply {
    api.happens();
    match api.mood {
        "breaks" => Reply::new(500),
        "gateway" => Reply::new(504),
        _ => Reply::new(200),
    }
}

pub(super) const PRESETS: &[Preset] = &[
    Preset {
        contract: "github.post",
        path: "/repos/o/r/issues",
        api: github,
        script: &[
            (New, "limited", "deferred after 1m"),
            (Again, "used up", "deferred after 20s"),
            (Again, "forbidden", "rejected"),
            (New, "", "accepted e1"),
            // Here twice is two.
            (Again, "", "accepted e2"),
            (New, "breaks", "unknown_answer → review"),
            (New, "lost", "no_answer → review"),
        ],
        effects: 4,
        ..JSON
    },
    Preset {
        contract: "slack.chat.postMessage",
        path: "/api/chat.postMessage",
        api: slack,
        script: &[
            (New, "limited", "deferred after 30s"),
            (Again, "rate_limited", "deferred"),
            // No message is at fault: its queue waits for a better token.
            (Again, "not_authed", "blocked"),
            (Again, "invalid_auth", "blocked"),
            (Again, "account_inactive", "blocked"),
            (Again, "token_expired", "blocked"),
            (Again, "token_revoked", "blocked"),
            (Again, "", "accepted e1"),
            (New, "internal_error", "unknown_answer → review"),
            (New, "fatal_error", "unknown_answer → review"),
            (New, "request_timeout", "unknown_answer → review"),
            (New, "service_unavailable", "unknown_answer → review"),
            (New, "channel_not_found", "rejected"),
            (New, "page", "unknown_answer → review"),
            (New, "lost", "no_answer → review"),
        ],
        effects: 2,
        ..JSON
    },
    Preset {
        contract: "telegram.message.send",
        path: "/sendMessage",
        api: telegram,
        script: &[
            (New, "limited", "deferred after 7s"),
            (Again, "limited in the body", "deferred"),
            (Again, "bad token", "blocked"),
            (Again, "bad token in the body", "blocked"),
            (Again, "no such bot", "blocked"),
            (Again, "", "accepted e1"),
            (New, "wrong", "rejected"),
            (New, "page", "unknown_answer → review"),
            (New, "lost", "no_answer → review"),
        ],
        effects: 2,
        ..JSON
    },
    Preset {
        contract: "twilio.messages.create",
        path: "/2010-04-01/Accounts/{sid}/Messages.json",
        params: "{\"sid\":\"AC1\"}",
        content_type: "application/x-www-form-urlencoded",
        body: "To=%2B15550001&From=%2B15550002&Body=hello",
        api: twilio,
        script: &[
            (New, "limited", "deferred"),
            (Again, "", "accepted e1"),
            (New, "breaks", "unknown_answer → review"),
            (New, "lost", "no_answer → review"),
        ],
        effects: 3,
        ..JSON
    },
    Preset {
        contract: "intercom.messages.create",
        path: "/messages",
        api: intercom,
        script: &[(New, "", "accepted e1"), (New, "lost", "no_answer → review")],
        effects: 2,
        ..JSON
    },
    Preset {
        contract: "sendgrid.mail.send",
        path: "/v3/mail/send",
        api: sendgrid,
        script: &[(New, "", "accepted e1"), (New, "lost", "no_answer → review")],
        effects: 2,
        ..JSON
    },
    Preset {
        contract: "http.post",
        api: anything,
        script: &[
            (New, "", "accepted"),
            (New, "breaks", "unknown_answer → review"),
            (New, "gateway", "unknown_answer → review"),
            (New, "lost", "no_answer → review"),
        ],
        effects: 4,
        ..JSON
    },
];
