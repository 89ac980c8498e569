//! `outboxd resolve`, `retry` and `cancel`: what becomes of a decision, and how a refusal reads.

use outboxd::core::evidence::Evidence;
use uuid::Uuid;

use crate::support::World;
use crate::support::cli::{Said, holds};
use crate::support::ledger::{NOTE, claim_one, settle, want};

const ROLES: &str = include_str!("../../deploy/roles.sql");

/// An action that is held for a person, and whose request cannot arrive any more.
async fn held(world: &World, key: &str) -> Uuid {
    let action = world.enqueue(key).await;
    let ledger = world.db.ledger("w");
    let claimed = claim_one(&ledger, &want(NOTE)).await;
    assert!(settle(&ledger, &claimed, Evidence::NoAnswer).await);
    world
        .db
        .run(&format!("update outbox.delivery set step = 'review', due_at = null where action_id = '{action}'"))
        .await;
    world.until_true("(select bool_and(last_sent_at < clock_timestamp()) from outbox.delivery)").await;
    action
}

/// Decides as ann, who is sure.
async fn decide(world: &World, verb: &str, action: Uuid, flags: &[&str]) -> Said {
    let id = action.to_string();
    let arguments = [&[verb, &id][..], flags, &["--by", "ann", "--reason", "I am sure"]].concat();
    world.says(&arguments).await
}

#[tokio::test(flavor = "multi_thread")]
async fn r21_what_happened_is_closed_with_its_receipt_and_with_who_said_so() {
    let world = World::new().await;
    let action = held(&world, "n-1").await;
    let said = decide(&world, "resolve", action, &["--happened", "--receipt", "a-77"]).await.done();
    assert!(said.starts_with("Recorded that it happened. Delivered, as an operator decided at "), "{said}");
    assert_eq!(world.standing(action).await.receipt.as_deref(), Some("a-77"));
    let page = world.says(&["show", &action.to_string()]).await.done();
    let parts = [
        "ann has recorded at",
        "that it happened, receipt a-77.",
        "decided: happened by ann: I am sure (receipt a-77)",
    ];
    holds(&page, &parts);
    let twice = decide(&world, "resolve", action, &["--happened"]).await.refused();
    assert!(
        twice.starts_with(&format!("refused: action {action}: it is succeeded")) && twice.ends_with("(OB412)\n"),
        "{twice}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn r21_what_did_not_happen_is_closed_and_can_be_tried_again() {
    let world = World::new().await;
    let (action, other) = (held(&world, "n-1").await, held(&world, "n-2").await);
    let said = decide(&world, "resolve", action, &["--did-not-happen"]).await.done();
    assert!(said.starts_with("Recorded that it did not happen. Not delivered, as an operator decided at "), "{said}");
    holds(
        &world.says(&["show", &action.to_string()]).await.done(),
        &[
            "ann has recorded that it did not happen; it will not be tried again.",
            &format!("outboxd retry {action} --by YOU"),
        ],
    );
    let said = decide(&world, "retry", action, &[]).await.done();
    assert_eq!(said, "Recorded that it is tried again. Committed; delivery pending.\n");
    assert_eq!(world.standing(action).await.state, "pending");
    let said = decide(&world, "resolve", other, &["--did-not-happen", "--retry"]).await.done();
    assert_eq!(said, "Recorded that it did not happen, and it is sent anew. Committed; delivery pending.\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn r21_one_decision_about_several_is_recorded_of_each_and_what_is_refused_of_one_stops_no_other() {
    let world = World::new().await;
    let (first, last) = (held(&world, "n-1").await, held(&world, "n-3").await);
    let free = world.enqueue("n-2").await;
    let [a, b, c] = [first, free, last].map(|action| action.to_string());
    let by = ["--by", "ann", "--reason", "their outage is over"];
    let said = world.says(&[&["resolve", &a, &b, &c, "--send-again"][..], &by].concat()).await;
    assert_eq!(said.code, 1, "{said:?}");
    assert!(said.err.starts_with(&format!("{b}: refused: action {b}: it is pending")), "{said:?}");
    for action in [&a, &c] {
        assert!(said.out.contains(&format!("{action}: Recorded that it is to be sent again. ")), "{said:?}");
    }
    for (action, label) in [(first, "awaiting_resend"), (free, "pending"), (last, "awaiting_resend")] {
        assert_eq!(world.standing(action).await.label, label);
    }
    let said = world.says(&[&["resolve", &a, &c, "--happened", "--receipt", "r"][..], &by].concat()).await;
    let refused = said.refused();
    assert!(refused.contains("one action at a time"), "one effect has one receipt: {refused}");
}

#[tokio::test(flavor = "multi_thread")]
async fn r21_what_is_to_be_sent_again_stays_in_doubt_and_is_sent() {
    let world = World::new().await;
    let action = held(&world, "n-1").await;
    let value = world
        .says(&["resolve", &action.to_string(), "--send-again", "--by", "ann", "--reason", "why", "--json"])
        .await
        .json();
    assert_eq!((value["recorded"].as_bool(), value["label"].as_str()), (Some(true), Some("awaiting_resend")));
    holds(&world.says(&["show", &action.to_string()]).await.done(), &["a person has decided that it is sent again"]);
    let _daemon = world.daemon().await;
    world.until(action, "succeeded").await;
    let page = world.says(&["show", &action.to_string()]).await.done();
    holds(&page, &["decided: send again by ann: why", "It took effect: that was settled at"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn r21_what_may_still_arrive_is_refused_and_the_page_said_so() {
    let world = World::new().await;
    let action = held(&world, "n-1").await;
    world.db.run("insert into outbox.operation (operation, absence) values ('note.publish', interval '1 hour')").await;
    let page = world.says(&["show", &action.to_string()]).await.done();
    holds(&page, &["It did not happen: you made sure that it is not there. Not possible: not before"]);
    let said = decide(&world, "resolve", action, &["--did-not-happen"]).await.refused();
    assert!(said.contains("a request may still arrive, or not be seen yet, until "), "{said}");
    assert_eq!(world.standing(action).await.label, "awaiting_review", "nothing was changed");
}

#[tokio::test(flavor = "multi_thread")]
async fn r21_what_is_refused_half_way_changes_nothing() {
    let world = World::new().await;
    let action = held(&world, "n-1").await;
    decide(&world, "cancel", action, &[]).await.done();
    let said = decide(&world, "resolve", action, &["--did-not-happen", "--retry"]).await.refused();
    assert!(said.contains("it was cancelled, and that is not taken back"), "{said}");
    assert_eq!(world.standing(action).await.label, "awaiting_review");
    assert_eq!(world.db.count("select count(*) from outbox.attempt where kind = 'decision'").await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn r21_the_operators_role_can_look_and_decide_but_not_read_what_is_in_it() {
    let mut world = World::new().await;
    let action = held(&world, "n-1").await;
    world.db.run(ROLES).await;
    let login = format!("cli_operator_{}", world.db.name);
    world.db.run(&format!("create role {login} login; grant outbox_operator to {login}")).await;
    world.url = world.db.url_as(&login);
    let id = action.to_string();
    for arguments in [&["status"][..], &["list"], &["review"], &["list", "--state", "pending"]] {
        world.says(arguments).await.done();
    }
    holds(&world.says(&["show", &id]).await.done(), &["needs review", "This role may not read what is in it"]);
    assert!(world.says(&["show", &id, "--body"]).await.refused().contains("permission denied for table action"));
    decide(&world, "resolve", action, &["--did-not-happen", "--retry"]).await.done();
    decide(&world, "cancel", action, &[]).await.done();
}

#[tokio::test(flavor = "multi_thread")]
async fn r22_a_cancelled_action_is_said_to_be_cancelled_and_by_whom() {
    let world = World::new().await;
    let id = world.enqueue("n-1").await.to_string();
    let said = world.says(&["cancel", &id, "--by", "ann", "--reason", "wrong channel"]).await.done();
    assert_eq!(said, "Recorded that it is to be cancelled. Cancelled; nothing will be sent.\n");
    holds(&world.says(&["show", &id]).await.done(), &["cancel requested by ann: wrong channel"]);
    let again = world.says(&["cancel", &id, "--by", "ann", "--reason", "twice is once", "--json"]).await.json();
    assert_eq!((again["recorded"].as_bool(), again["answer"].as_str()), (Some(true), Some("cancelled")));
}

#[tokio::test(flavor = "multi_thread")]
async fn r22_a_request_about_what_a_worker_holds_promises_nothing() {
    let world = World::new().await;
    let action = world.enqueue("n-1").await;
    claim_one(&world.db.ledger("w"), &want(NOTE)).await;
    let said = world.says(&["cancel", &action.to_string(), "--by", "ann", "--reason", "why"]).await.done();
    assert!(
        said.starts_with("Recorded that it is to be cancelled. Sent ") && said.ends_with("; no answer yet.\n"),
        "{said}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn r21_a_refusal_is_the_ledgers_own_sentence_with_its_code() {
    let world = World::new().await;
    let id = "0197c0de-6a1e-7c3b-9f0e-2d5d1c1f7a55";
    let said = world.says(&["cancel", id, "--by", "ann", "--reason", "why"]).await.refused();
    assert_eq!(said, format!("refused: there is no action {id} (OB412)\n"));
    let said = world.says(&["cancel", id, "--by", "ann", "--reason", "why", "--json"]).await;
    assert_eq!(said.code, 1, "{said:?}");
    let value: serde_json::Value = serde_json::from_str(&said.out).expect("JSON");
    assert_eq!((value["recorded"].as_bool(), value["sqlstate"].as_str()), (Some(false), Some("OB412")));
}

#[tokio::test(flavor = "multi_thread")]
async fn r21_who_and_why_are_required_before_anything_is_asked() {
    let mut world = World::new().await;
    let id = world.enqueue("n-1").await.to_string();
    world.url = "postgres://nobody@127.0.0.1:1/nowhere".into();
    for (arguments, missing) in [
        (&["cancel", &id, "--reason", "why"][..], "--by"),
        (&["cancel", &id, "--by", "ann"], "--reason"),
        (&["cancel", &id, "--by", "", "--reason", "why"], "--by"),
        (&["resolve", &id, "--by", "ann", "--reason", "why"], "--happened"),
        (&["resolve", &id, "--happened", "--send-again", "--by", "ann", "--reason", "why"], "--send-again"),
        (&["resolve", &id, "--send-again", "--retry", "--by", "ann", "--reason", "why"], "--retry"),
        (&["resolve", &id, "--send-again", "--receipt", "r", "--by", "ann", "--reason", "why"], "--receipt"),
        (&["resolve", &id, "--retry", "--by", "ann", "--reason", "why"], "--did-not-happen"),
        (&["retry", &id], "--by"),
    ] {
        let said = world.says(arguments).await;
        assert_eq!(said.code, 2, "{said:?}");
        assert!(said.err.contains(missing), "{missing} in {}", said.err);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn b79_no_command_prints_a_password_or_needs_a_destinations_secret() {
    let mut world = World::new().await;
    world.destination = "auth = { bearer = { env = \"E2E_UNSET_ONE\" } }".into();
    let id = world.enqueue("n-1").await.to_string();
    let commands: [&[&str]; 5] =
        [&["status"], &["list"], &["review"], &["show", &id], &["cancel", &id, "--by", "ann", "--reason", "why"]];
    for arguments in commands {
        world.says(arguments).await.done();
    }
    world.url = "postgres://postgres:s3cret-pass@127.0.0.1:1/nowhere".into();
    for arguments in commands {
        let said = world.says(arguments).await.refused();
        assert!(said.contains("no session with the database") && !said.contains("s3cret-pass"), "{said}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_command_has_the_exit_codes_of_the_others() {
    let world = World::new().await;
    let refused = world.config().replace("[dispatcher]", "[dispatcher]\nnonsense = 1");
    let id = "0197c0de-6a1e-7c3b-9f0e-2d5d1c1f7a55";
    let commands: [&[&str]; 5] =
        [&["status"], &["list"], &["review"], &["show", id], &["retry", id, "--by", "ann", "--reason", "why"]];
    for arguments in commands {
        assert_eq!(world.says_with(&refused, arguments).await.code, 78, "{arguments:?}");
    }
    let newer = "create or replace function outbox.schema_version() returns int language sql immutable as 'select 900'";
    world.db.run(newer).await;
    for arguments in commands {
        let said = world.says(arguments).await;
        assert_eq!(said.code, 69, "{said:?}");
        assert!(said.err.contains("900"), "{said:?}");
    }
}
