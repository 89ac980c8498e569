//! `outboxd show`: the story of an action that a real daemon has made.

use outboxd::proving::fake::{Behaviour, Reply};

use crate::support::World;
use crate::support::cli::holds;
use crate::support::world::NOTHING_PROMISED;

/// A note whose answer was lost, under a contract that promises nothing.
async fn held_note(world: &mut World) -> uuid::Uuid {
    world.contract = NOTHING_PROMISED.into();
    world.operation = "effect = \"unreconcilable\"\ntimeout = \"500ms\"".into();
    world.fake.behave(|_, _| Behaviour::accept().without_dedupe().closing());
    let sql = "select action_id from outbox.enqueue('note.publish', '{\"note\":\"n\\u001b[2J\"}', 'publication-17',
        tenant => 'acme', principal => 'release-bot', event_id => 'evt-9', workflow_id => 'rel-88',
        headers => '{\"x-token\":\"s3cret-of-a-caller\"}')";
    let action = world.db.one(sql, &[]).await;
    let daemon = world.daemon().await;
    world.until(action, "awaiting_review").await;
    drop(daemon);
    action
}

#[tokio::test(flavor = "multi_thread")]
async fn r21_the_story_of_a_held_action_says_what_is_known_and_what_may_be_decided() {
    let mut world = World::new().await;
    let action = held_note(&mut world).await;
    let id = action.to_string();
    let page = world.says(&["show", &id]).await.done();
    holds(
        &page,
        &[
            "note.publish → fake",
            "outcome unknown, needs review",
            &format!("acme / release-bot retry key publication-17 action {id}"),
            "headers x-token (values are not shown)",
            "Sent once,",
            "The destination promises nothing for this operation (contract test): no key memory, no lookup.",
            "It is never sent again unless a person decides so.",
            "So it may or may not have taken effect, and sending it again could make it happen twice.",
            "committed workflow rel-88, event evt-9",
            "attempt 1 sent worker ",
            "no answer connection closed",
            &format!("outboxd resolve {id} --happened"),
            &format!("outboxd resolve {id} --send-again --by YOU --reason WHY --config "),
            "You accept that it may happen twice.",
            "show it with --body",
        ],
    );
    assert!(!page.contains("s3cret") && !page.contains('\u{1b}'), "{page}");
    assert!(page.contains(&sha256_of_body(&world, &id).await), "{page}");
    // The time it took to settle is over, so what was sent cannot arrive any more.
    world.until_true("(select last_sent_at < clock_timestamp() from outbox.delivery)").await;
    holds(&world.says(&["show", &id]).await.done(), &["--did-not-happen --by YOU"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn r18_a_repeat_that_a_contract_rules_out_after_an_answer_is_called_a_risk_with_the_contracts_note() {
    let mut world = World::new().await;
    world.contract = "[contract.\"test\"]\nextends = \"checkout.payments.create\"\n".into();
    world.fake.behave(|_, _| Behaviour::accept().answering(Reply::json(500, "{\n \"error\": \"try again\"}")));
    let action = world.enqueue("n-1").await;
    let daemon = world.daemon().await;
    world.until(action, "awaiting_review").await;
    drop(daemon);
    let page = world.says(&["show", &action.to_string()]).await.done();
    holds(
        &page,
        &[
            "sending it again could make it happen twice.",
            "After what was answered, nothing promises that a repeat is recognised. The contract notes: Nothing is kept \
             under the key, so a repeat would be another payment if this one went through.",
            "After what was answered, nothing promises that it is recognised: it may happen twice.",
        ],
    );
    assert!(!page.contains("A repeat is recognised until") && !page.contains("promises to recognise until"), "{page}");
    assert_eq!(world.fake.effects().len(), 1);
}

async fn sha256_of_body(world: &World, id: &str) -> String {
    let sql = "select encode(sha256(body), 'hex') from outbox.action where action_id = $1::text::uuid";
    world.db.one(sql, &[&id]).await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_body_is_printed_as_it_is_sent_but_for_what_moves_a_cursor() {
    let world = World::new().await;
    let action: uuid::Uuid = world
        .db
        .one(
            "select action_id from outbox.enqueue_bytes('note.publish', '\\x1b5b324a0a68c3a9ff'::bytea, 'text/plain', 'k')",
            &[],
        )
        .await;
    let id = action.to_string();
    assert_eq!(world.says(&["show", &id, "--body"]).await.done(), "\\u{1b}[2J\nhé\\xff\n");
    let value = world.says(&["show", &id, "--body", "--json"]).await.json();
    assert_eq!((value["body_base64"].as_str(), value.get("body")), (Some("G1sySgpow6n/"), None));
    let text = world.enqueue("n-1").await.to_string();
    assert_eq!(world.says(&["show", &text, "--body"]).await.done(), "{\"note\":\"n-1\"}\n");
    assert_eq!(world.says(&["show", &text, "--body", "--json"]).await.json()["body"], "{\"note\":\"n-1\"}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_delivered_action_says_how_it_was_settled_after_how_much_doubt() {
    let world = World::new().await;
    world.fake.behave(|_, before| match before {
        0 => Behaviour::accept().resetting(),
        _ => Behaviour::accept(),
    });
    let action = world.enqueue("n-1").await;
    let daemon = world.daemon().await;
    world.until(action, "succeeded").await;
    drop(daemon);
    let page = world.says(&["show", &action.to_string()]).await.done();
    let receipt = world.standing(action).await.receipt.expect("a receipt");
    holds(
        &page,
        &["Sent twice, first", "It took effect:", &format!("receipt {receipt}"), "Its outcome had been unknown for"],
    );
    assert!(!page.contains("You may"), "{page}");
    let value = world.says(&["show", &action.to_string(), "--json"]).await.json();
    assert_eq!(value["standing"]["state"], "succeeded");
    let learnt: Vec<&str> =
        value["history"].as_array().unwrap().iter().map(|e| e["evidence"].as_str().unwrap()).collect();
    assert_eq!(learnt, ["no_answer", "accepted"]);
    assert_eq!(value["choices"], serde_json::json!([]));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_action_of_an_operation_that_was_taken_out_of_the_configuration_is_still_told() {
    let mut world = World::new().await;
    let action = held_note(&mut world).await;
    let config = world.config().replace("[operation.\"note.publish\"]", "[operation.\"note.other\"]");
    let page = world.says_with(&config, &["show", &action.to_string()]).await.done();
    holds(&page, &["This configuration does not have the operation", "for destination fake under contract test."]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_id_that_nobody_knows_is_said_to_be_unknown_and_half_an_id_is_refused() {
    let world = World::new().await;
    let said = world.says(&["show", "0197c0de-6a1e-7c3b-9f0e-2d5d1c1f7a55"]).await.refused();
    assert!(said.contains("there is no action 0197c0de-6a1e-7c3b-9f0e-2d5d1c1f7a55"), "{said}");
    let half = world.says(&["show", "0197c0de"]).await;
    assert_eq!(half.code, 2, "{half:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn r5_a_pruned_action_is_told_from_its_tombstone() {
    let world = World::new().await;
    let action = world.enqueue("n-1").await;
    world
        .db
        .run(
            "insert into outbox.tombstone select action_id, tenant, principal, operation, retry_key, input_hash, 'succeeded',
               'a-77', created_at, now() from outbox.action;
             delete from outbox.delivery; delete from outbox.action",
        )
        .await;
    let id = action.to_string();
    let page = world.says(&["show", &id]).await.done();
    holds(&page, &["succeeded, pruned", "it took effect; receipt a-77", "Its retry key is remembered until about"]);
    let value = world.says(&["show", &id, "--json"]).await.json();
    assert_eq!((value["pruned"].as_bool(), value["state"].as_str()), (Some(true), Some("succeeded")));
    assert!(world.says(&["show", &id, "--body"]).await.refused().contains("its body is gone"));
}

#[tokio::test(flavor = "multi_thread")]
async fn r7_a_compensation_and_its_original_are_linked_both_ways() {
    let world = World::new().await;
    let original = world.enqueue("n-1").await;
    let sql = "select action_id from outbox.enqueue('note.publish', '{}', 'undo n-1', compensates => $1)";
    let undo: uuid::Uuid = world.db.one(sql, &[&original]).await;
    holds(
        &world.says(&["show", &undo.to_string()]).await.done(),
        &[
            &format!("compensates {original} note.publish, pending"),
            &format!("It waits until {original}, which it compensates, is known to have happened."),
        ],
    );
    holds(
        &world.says(&["show", &original.to_string()]).await.done(),
        &[&format!("compensated by {undo} note.publish, pending")],
    );
    world.db.run("set enable_seqscan = off").await;
    let sql = "explain (format json) select action_id from outbox.action where compensates = gen_random_uuid()";
    let plan: serde_json::Value = world.db.one(sql, &[]).await;
    assert!(plan.to_string().contains("action_compensates"), "{plan}");
}

#[tokio::test(flavor = "multi_thread")]
async fn r21_the_contracts_hint_says_where_to_look_without_a_credential() {
    let mut world = World::new().await;
    world.destination = "auth = { bearer = { env = \"E2E_UNSET_HINT\" } }".into();
    let contract = "\n[contract.\"test\".hint]\nrequest = { method = \"GET\", path = \"/notes\", query = { note = \"{note}\" } }\n";
    world.contract = format!("{NOTHING_PROMISED}{contract}");
    world.operation = "effect = \"unreconcilable\"".into();
    let sql = "select action_id from outbox.enqueue('note.publish', '{}', 'k', params => '{\"note\":\"n 1\"}')";
    let action: uuid::Uuid = world.db.one(sql, &[]).await;
    world
        .db
        .run(
            "update outbox.delivery set state = 'outcome_unknown', step = 'review', due_at = null, doubt_since = now(),
               first_sent_at = now(), last_sent_at = now()",
        )
        .await;
    let page = world.says(&["show", &action.to_string()]).await.done();
    let line = format!("  Look at: GET {}/notes?note=n%201\n", world.fake.base_url());
    assert!(page.contains(&line), "{line} is not in:\n{page}");
    let value = world.says(&["show", &action.to_string(), "--json"]).await.json();
    assert!(value["hint"].as_str().is_some_and(|hint| line.contains(hint)), "{value}");
}
