//! A lease that lapses: a dead worker's row is a due row whose evidence is "lapsed".

use std::collections::HashSet;

use outboxd::core::action::Step;
use outboxd::core::evidence::Evidence;
use outboxd::ledger::Want;
use serde_json::Value;

use crate::support::ledger::{NOTE, claim, claim_one, lapsing, settle, want};
use crate::support::{Database, GatedClaim};

/// For an operation that can neither resend nor ask.
fn marking() -> Want {
    Want { marks: true, ..want(NOTE) }
}

#[tokio::test]
async fn b34_a_lapsed_send_is_doubt_that_names_its_attempt_and_counts_it() {
    let db = Database::new().await;
    let action = db.enqueue(NOTE, "{}", "k").await;
    let dead = claim_one(&db.ledger("host-1"), &lapsing(want(NOTE))).await;
    let next = claim_one(&db.ledger("host-1"), &want(NOTE)).await;
    assert_eq!((next.row.step, next.fence.0, next.row.attempts), (Step::Conclude, 2, 1));
    let doubt = next.row.doubt.expect("doubt");
    assert_eq!(doubt.attempt, Some(dead.row.attempt));
    assert_eq!(next.row.first_sent_at, Some(dead.row.claimed_at), "it may have left from the claim on");
    let history = db.attempts(action).await;
    assert_eq!(history.len(), 1);
    assert_eq!(history[0]["evidence"], "lapsed");
    assert_eq!(history[0]["attempt_id"], dead.row.attempt.0.to_string());
    assert_eq!((&history[0]["number"], &history[0]["fence"]), (&1.into(), &1.into()));
    assert_eq!(db.delivery(action).await["doubt_attempt"], dead.row.attempt.0.to_string());
}

#[tokio::test]
async fn b34_a_worker_that_dies_while_concluding_loses_nothing() {
    let db = Database::new().await;
    let action = db.enqueue(NOTE, "{}", "k").await;
    let ledger = db.ledger("w");
    let dead = claim_one(&ledger, &lapsing(want(NOTE))).await;
    let also_dead = claim_one(&ledger, &lapsing(want(NOTE))).await;
    let third = claim_one(&ledger, &want(NOTE)).await;
    assert_eq!((third.row.step, third.row.attempts), (Step::Conclude, 1));
    assert_eq!(third.row.doubt, also_dead.row.doubt);
    assert_eq!(third.row.doubt.and_then(|d| d.attempt), Some(dead.row.attempt));
    assert_eq!(db.attempts(action).await.len(), 1, "only a send has left");
}

#[tokio::test]
async fn r14_a_second_doubtful_attempt_makes_the_doubt_that_of_several() {
    let db = Database::new().await;
    let action = db.enqueue(NOTE, "{}", "k").await;
    let ledger = db.ledger("w");
    let first = claim_one(&ledger, &want(NOTE)).await;
    assert!(settle(&ledger, &first, Evidence::NoAnswer).await);
    let since = db.delivery(action).await["doubt_since"].clone();
    db.run("update outbox.delivery set due_at = now()").await;
    claim_one(&ledger, &lapsing(want(NOTE))).await;
    let third = claim_one(&ledger, &want(NOTE)).await;
    assert_eq!(third.row.doubt.map(|d| d.attempt), Some(None));
    let row = db.delivery(action).await;
    assert_eq!((&row["doubt_since"], &row["attempts"]), (&since, &2.into()));
}

#[tokio::test]
async fn r19_a_lapsed_lookup_asks_again_and_is_no_attempt() {
    let db = Database::new().await;
    let action = db.enqueue(NOTE, "{}", "k").await;
    let ledger = db.ledger("w");
    let first = claim_one(&ledger, &want(NOTE)).await;
    assert!(settle(&ledger, &first, Evidence::NoAnswer).await);
    for step in [Step::Lookup, Step::Cancel] {
        db.run(&format!(
            "update outbox.delivery set state = 'outcome_unknown', worker = null, step = '{}', due_at = now()",
            step.as_str()
        ))
        .await;
        claim_one(&ledger, &lapsing(want(NOTE))).await;
        let again = claim_one(&ledger, &want(NOTE)).await;
        assert_eq!((again.row.step, again.row.attempts), (step, 1));
        assert_eq!(again.row.doubt.and_then(|d| d.attempt), Some(first.row.attempt));
    }
    assert_eq!(db.attempts(action).await.len(), 1);
}

#[tokio::test]
async fn r21_a_marking_operation_that_lapsed_before_its_mark_sends_for_the_first_time() {
    let db = Database::new().await;
    let action = db.enqueue(NOTE, "{}", "k").await;
    let ledger = db.ledger("w");
    claim_one(&ledger, &lapsing(marking())).await;
    let second = claim_one(&ledger, &marking()).await;
    assert_eq!((second.row.step, second.row.doubt, second.row.attempts), (Step::Send, None, 0));
    assert!(db.attempts(action).await.is_empty());
    assert_eq!(db.delivery(action).await["first_sent_at"], Value::Null, "only the mark dates a send");
}

#[tokio::test]
async fn r21_a_marking_operation_that_lapsed_after_its_mark_is_in_doubt() {
    let db = Database::new().await;
    let action = db.enqueue(NOTE, "{}", "k").await;
    let ledger = db.ledger("w");
    let dead = claim_one(&ledger, &marking()).await;
    let marked = ledger.mark(std::slice::from_ref(&dead)).await.unwrap();
    assert_eq!(marked, HashSet::from([dead.intent.id]));
    let row = db.delivery(action).await;
    assert!(row["marked_at"].is_string() && row["last_sent_at"] == row["due_at"], "{row}");
    db.run("update outbox.delivery set due_at = now()").await;
    let next = claim_one(&ledger, &marking()).await;
    assert_eq!((next.row.step, next.row.attempts), (Step::Conclude, 1));
    assert_eq!(next.row.doubt.and_then(|d| d.attempt), Some(dead.row.attempt));
}

#[tokio::test]
async fn r25_an_overtaken_or_lapsed_claim_is_not_marked() {
    let db = Database::new().await;
    db.enqueue(NOTE, "{}", "k").await;
    let ledger = db.ledger("w");
    let lapsed = claim_one(&ledger, &lapsing(marking())).await;
    assert!(ledger.mark(std::slice::from_ref(&lapsed)).await.unwrap().is_empty(), "its lease is over");
    let successor = claim_one(&ledger, &marking()).await;
    assert!(ledger.mark(std::slice::from_ref(&lapsed)).await.unwrap().is_empty(), "it has been overtaken");
    assert_eq!(ledger.mark(std::slice::from_ref(&successor)).await.unwrap().len(), 1);
}

#[tokio::test]
async fn r13_a_send_that_needed_no_mark_is_in_doubt_though_the_operation_marks_by_now() {
    let db = Database::new().await;
    db.enqueue(NOTE, "{}", "k").await;
    let dead = claim_one(&db.ledger("old-configuration"), &lapsing(want(NOTE))).await;
    let next = claim_one(&db.ledger("new-configuration"), &marking()).await;
    assert_eq!(next.row.step, Step::Conclude);
    assert_eq!(next.row.doubt.and_then(|d| d.attempt), Some(dead.row.attempt));
}

#[tokio::test]
async fn b31_a_completion_wins_against_a_recovery_with_an_older_snapshot() {
    let db = Database::new().await;
    let action = db.enqueue(NOTE, "{}", "k").await;
    let ledger = db.ledger("w");
    let slow = claim_one(&ledger, &lapsing(want(NOTE))).await;
    let recovery = GatedClaim::start(&db).await;
    assert!(settle(&ledger, &slow, Evidence::Accepted).await);
    assert!(recovery.open().await.is_empty());
    let row = db.delivery(action).await;
    assert_eq!((&row["state"], &row["fence"]), (&"succeeded".into(), &1.into()));
}

#[tokio::test]
async fn b31_of_two_recoveries_with_the_same_snapshot_one_takes_the_row() {
    let db = Database::new().await;
    let action = db.enqueue(NOTE, "{}", "k").await;
    let ledger = db.ledger("w");
    claim_one(&ledger, &lapsing(want(NOTE))).await;
    let recovery = GatedClaim::start(&db).await;
    assert_eq!(claim(&ledger, &want(NOTE)).await.len(), 1);
    assert!(recovery.open().await.is_empty());
    assert_eq!(db.attempts(action).await.len(), 1);
    assert_eq!(db.delivery(action).await["fence"], 2);
}
