//! Messages, tickets, issues, records, queues, and what HTTP itself promises.

use outboxd::proving::fake::{Reply, Seen};
use serde_json::{Value, json};

use super::Do::{Again, Look, New, Other};
use super::{Api, JSON, Known, Preset, at, header, json};

/// Gives the earlier message of the nonce, if it is told to look.
fn discord(api: &mut Api, ask: &Seen) -> Reply {
    let nonce = at(ask, "/nonce");
    assert!(nonce.len() <= 25 && at(ask, "/enforce_nonce") == "true", "{}", ask.text());
    match api.mood {
        "limited" => json(429, &json!({"retry_after": 0.65, "global": false})).header("Retry-After", "1"),
        "limited in front" => Reply::new(429).header("Retry-After", "3"),
        _ => api.once(&nonce, ask, |id| json(200, &json!({ "id": id }))),
    }
}

/// Says of every request with a key whether the key was new. What stands in front of it says nothing.
fn zendesk(api: &mut Api, ask: &Seen) -> Reply {
    let key = header(ask, "idempotency-key");
    let looked = |reply: Reply, found| reply.header("x-idempotency-lookup", found);
    match (api.known(&key, ask), api.mood) {
        (_, "gateway") => Reply::new(502),
        (Known::OtherBody(_), _) => looked(json(400, &json!({"error": "IdempotentRequestError"})), "hit"),
        (Known::Same(reply), _) => looked(reply, "hit"),
        (Known::Nothing, "breaks") => looked(api.acts_and_forgets(500), "miss"),
        (Known::Nothing, "wrong") => {
            let reply = api.keep(&key, ask, json(422, &json!({"error": "RecordInvalid"})));
            looked(reply, "miss")
        }
        (Known::Nothing, _) => {
            let reply = api.once(&key, ask, |id| json(201, &json!({"ticket": { "id": id }})));
            looked(reply, "miss")
        }
    }
}

/// Takes the id that it is given, once. Answers 200 to almost everything.
fn linear(api: &mut Api, ask: &Seen) -> Reply {
    let error = |message: &str| json!({"errors": [{ "message": message }], "data": null});
    let failed = |kind: &str| json!({"errors": [{"message": "no", "extensions": { "type": kind }}]});
    if api.mood == "logged out" {
        return json(401, &error("Authentication required"));
    }
    if !ask.text().contains("issueCreate") {
        let id = at(ask, "/variables/id");
        let found = api.thing(&id).is_some() && api.mood != "slow";
        let other = if api.mood == "another" { "x" } else { id.as_str() };
        return json(200, &if found { json!({"data": {"issue": { "id": other }}}) } else { error("Entity not found") });
    }
    let id = at(ask, "/variables/input/id");
    let body: Value = match api.mood {
        "limited" => failed("ratelimited"),
        "no token" | "bad token" => failed("authentication error"),
        "odd" => error("something else"),
        "not done" => json!({"data": {"issueCreate": {"success": false}}}),
        _ if api.thing(&id).is_some() => error("conflict on insert of Issue - Entity Issue with id already exists"),
        _ => {
            api.happens_as(&id);
            json!({"data": {"issueCreate": {"success": true, "issue": { "id": "e" }}}})
        }
    };
    json(if ["limited", "bad token"].contains(&api.mood) { 400 } else { 200 }, &body)
}

/// Makes or updates the record of the path.
fn salesforce(api: &mut Api, ask: &Seen) -> Reply {
    match (api.known(&ask.path, ask), api.mood) {
        (_, "several") => Reply::new(300),
        (_, "limited") => json(403, &json!([{"errorCode": "REQUEST_LIMIT_EXCEEDED"}])),
        (_, "forbidden") => json(403, &json!([{"errorCode": "INSUFFICIENT_ACCESS"}])),
        (_, "locked") => json(400, &json!([{"errorCode": "UNABLE_TO_LOCK_ROW"}])),
        (_, "breaks") => Reply::new(500),
        (Known::Nothing, _) => api.once(&ask.path, ask, |id| json(201, &json!({ "id": id }))),
        (Known::Same(_) | Known::OtherBody(_), _) => Reply::new(204),
    }
}

/// The draft to the letter: the key is quoted.
fn draft(api: &mut Api, ask: &Seen) -> Reply {
    let key = header(ask, "idempotency-key");
    assert!(key.len() == 38 && key.starts_with('"') && key.ends_with('"'), "{key}");
    match (api.known(&key, ask), api.mood) {
        (_, "busy") => Reply::new(409),
        (Known::OtherBody(_), _) => Reply::new(422),
        (Known::Same(_) | Known::Nothing, _) => api.once(&key, ask, |_| Reply::new(201)),
    }
}

/// What is put is there; how often does not matter.
fn resource(api: &mut Api, ask: &Seen) -> Reply {
    let reply = api.once(&ask.path, ask, |_| Reply::new(201));
    if api.mood == "breaks" { Reply::new(503) } else { reply }
}

/// Takes a message once and answers a repeat as if it had. Says of its errors in the body which they are.
fn sqs(api: &mut Api, ask: &Seen) -> Reply {
    let error = |status, name: &str| json(status, &json!({ "__type": name }));
    match api.mood {
        "limited" => return error(400, "com.amazonaws.sqs#RequestThrottled"),
        "limited in front" => return error(503, "ThrottlingException"),
        "key limited" => return error(400, "com.amazonaws.sqs#KmsThrottled"),
        "wrong" => return error(400, "com.amazonaws.sqs#InvalidMessageContents"),
        _ => {}
    }
    api.once(&at(ask, "/MessageDeduplicationId"), ask, |id| json(200, &json!({ "MessageId": id })))
}

pub(super) const PRESETS: &[Preset] = &[
    Preset {
        contract: "discord.message.create",
        path: "/channels/{channel}/messages",
        params: "{\"channel\":\"7\"}",
        api: discord,
        script: &[
            (New, "limited", "deferred after 650ms"),
            (Again, "limited in front", "deferred after 3s"),
            (Again, "lost", "no_answer → resend review"),
            (Again, "", "accepted e1"),
            (Other, "", "accepted e1"),
            (New, "", "accepted e2"),
        ],
        effects: 2,
        ..JSON
    },
    Preset {
        contract: "zendesk.tickets.create",
        path: "/api/v2/tickets.json",
        api: zendesk,
        script: &[
            (New, "lost", "no_answer → resend review"),
            (Again, "", "accepted e1"),
            (Other, "", "key_conflict"),
            (New, "breaks", "unknown_answer → review"),
            (New, "gateway", "unknown_answer → review"),
            (New, "wrong", "rejected"),
            (Again, "", "rejected_replay"),
        ],
        effects: 2,
        ..JSON
    },
    Preset {
        contract: "linear.issue.create",
        path: "/graphql",
        body: "{\"query\":\"mutation($input:IssueCreateInput!){issueCreate(input:$input){success issue{id}}}\",\
               \"variables\":{\"input\":{\"title\":\"hello\"}}}",
        api: linear,
        script: &[
            (New, "limited", "deferred"),
            (Again, "no token", "blocked"),
            (Again, "bad token", "blocked"),
            (Again, "logged out", "blocked"),
            (Again, "odd", "unknown_answer → resend lookup review"),
            (Again, "not done", "unknown_answer → resend lookup review"),
            (Again, "", "accepted e"),
            (New, "lost", "no_answer → resend lookup review"),
            (Again, "", "unknown_answer after 1s → lookup review"),
            (Look, "slow", "inconclusive"),
            (Look, "", "found 8650e887-92c8-4d15-b1aa-4a27e3f16b65"),
            (Look, "another", "mismatch x"),
        ],
        effects: 2,
        ..JSON
    },
    Preset {
        contract: "salesforce.sobject.upsert",
        method: "PATCH",
        path: "/services/data/v60.0/sobjects/Invoice__c/Ref__c/{external_id}",
        api: salesforce,
        script: &[
            (New, "breaks", "unknown_answer → resend review"),
            (Again, "", "accepted e1"),
            (Again, "", "accepted"),
            (New, "lost", "no_answer → resend review"),
            (Again, "", "accepted"),
            (New, "several", "rejected"),
            (New, "limited", "deferred"),
            (Again, "locked", "deferred"),
            (Again, "forbidden", "rejected"),
        ],
        effects: 2,
        ..JSON
    },
    Preset {
        contract: "http.idempotency-key",
        own: "key.window = \"1d\"",
        api: draft,
        script: &[
            (New, "busy", "in_flight after 2s → resend review"),
            (Again, "lost", "no_answer → resend review"),
            (Again, "", "accepted"),
            (Other, "", "key_conflict"),
        ],
        effects: 1,
        ..JSON
    },
    Preset {
        contract: "http.put",
        method: "PUT",
        path: "/shelves/{shelf}/boxes/b1",
        params: "{\"shelf\":\"s1\"}",
        api: resource,
        script: &[
            (New, "breaks", "unknown_answer → resend review"),
            (Again, "lost", "no_answer → resend review"),
            (Again, "", "accepted"),
        ],
        effects: 1,
        ..JSON
    },
    Preset {
        contract: "aws.sqs.fifo.send",
        path: "/",
        content_type: "application/x-amz-json-1.0",
        api: sqs,
        script: &[
            (New, "limited", "deferred"),
            (Again, "limited in front", "deferred"),
            (Again, "key limited", "deferred"),
            (Again, "lost", "no_answer → resend review"),
            (Again, "", "accepted e1"),
            (Other, "", "accepted e1"),
            (New, "wrong", "rejected"),
        ],
        effects: 1,
        ..JSON
    },
];
