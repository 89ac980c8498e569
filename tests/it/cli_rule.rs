//! `outboxd resolve`, `retry` and `cancel`: what becomes of a decision, and how a refusal reads.

use crate::support::World;
use crate::support::cli::holds;
use crate::support::ledger::{NOTE, claim_one, want};

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
