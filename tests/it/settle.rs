//! Settling: a decision is written by whoever holds the row as it was decided upon, once, with its history.

use std::collections::HashSet;
use std::time::Duration;

use outboxd::core::action::{AttemptId, Fence, Step};
use outboxd::core::decide::{Next, untouched};
use outboxd::core::evidence::{Evidence, Finding};
use outboxd::core::reason::Reason;
use outboxd::ledger::{History, LedgerError, Settlement, Standing};
use serde_json::Value;
use uuid::Uuid;

use crate::support::Database;
use crate::support::ledger::{
    NOTE, accepted, claim, claim_one, finding, held, history, lapsing, settle, settlement, standing, want,
};

#[tokio::test]
async fn r9_a_settle_writes_the_row_and_one_line_of_history() {
    let db = Database::new().await;
    let (ledger, claimed) = held(&db).await;
    let finding =
        Finding { status: Some(201), receipt: Some("note-99".into()), ..Finding::new(Evidence::Accepted, None) };
    let mut told = settlement(&claimed, &finding);
    told.history.as_mut().unwrap().detail = Some("created".into());
    assert_eq!(ledger.settle(&[told]).await.unwrap(), HashSet::from([claimed.row.attempt]));
    let row = db.delivery(claimed.intent.id.0).await;
    assert_eq!((&row["state"], &row["receipt"], &row["attempts"]), (&"succeeded".into(), &"note-99".into(), &1.into()));
    for empty in ["worker", "attempt_id", "due_at", "doubt_since", "reason"] {
        assert!(row[empty].is_null(), "{empty}: {row}");
    }
    let lines = db.attempts(claimed.intent.id.0).await;
    assert_eq!(lines.len(), 1);
    for (column, value) in [
        ("attempt_id", Value::from(claimed.row.attempt.0.to_string())),
        ("number", 1.into()),
        ("kind", "send".into()),
        ("fence", 1.into()),
        ("worker", "w".into()),
        ("idempotency_key", "the-key".into()),
        ("evidence", "accepted".into()),
        ("verdict", "succeeded".into()),
        ("http_status", 201.into()),
        ("receipt", "note-99".into()),
        ("detail", "created".into()),
        ("decided_by", Value::Null),
    ] {
        assert_eq!(lines[0][column], value, "{column}");
    }
    let times = "select round(extract(epoch from finished_at - started_at) * 1000) = 20
        and round(extract(epoch from deadline_at - started_at) * 1000) = 10000 from outbox.attempt";
    assert!(db.one::<bool>(times, &[]).await, "{}", lines[0]);
}

#[tokio::test]
async fn r25_another_fence_or_attempt_id_changes_nothing_and_is_missing() {
    let db = Database::new().await;
    let (ledger, claimed) = held(&db).await;
    let before = db.delivery(claimed.intent.id.0).await;
    let mut wrong = [accepted(&claimed), accepted(&claimed), accepted(&claimed)];
    wrong[0].fence = Fence(0);
    wrong[1].fence = Fence(2);
    wrong[2].row.attempt = AttemptId(Uuid::from_u128(7));
    for wrong in wrong {
        assert!(ledger.settle(std::slice::from_ref(&wrong)).await.unwrap().is_empty());
        assert_eq!(standing(&ledger, &wrong).await, Standing::Overtaken);
    }
    assert_eq!(db.delivery(claimed.intent.id.0).await, before);
    assert!(db.attempts(claimed.intent.id.0).await.is_empty());
}

#[tokio::test]
async fn b32_an_overtaken_worker_cannot_settle_its_successors_row() {
    let db = Database::new().await;
    db.enqueue(NOTE, "{}", "k").await;
    let ledger = db.ledger("w");
    let frozen = claim_one(&ledger, &lapsing(want(NOTE))).await;
    let successor = claim_one(&ledger, &want(NOTE)).await;
    assert!(!settle(&ledger, &frozen, Evidence::Rejected { replayed: false }).await);
    assert_eq!(standing(&ledger, &accepted(&frozen)).await, Standing::Overtaken);
    assert!(settle(&ledger, &successor, Evidence::Lapsed).await);
}

#[tokio::test]
async fn b52_a_settle_whose_answer_was_lost_is_known_to_have_been_written() {
    let db = Database::new().await;
    let (ledger, claimed) = held(&db).await;
    let told = accepted(&claimed);
    assert_eq!(ledger.settle(std::slice::from_ref(&told)).await.unwrap().len(), 1);
    assert!(ledger.settle(std::slice::from_ref(&told)).await.unwrap().is_empty());
    assert_eq!(standing(&ledger, &told).await, Standing::SettledBefore);
    assert_eq!(db.attempts(claimed.intent.id.0).await.len(), 1);
}

#[tokio::test]
async fn b52_a_lapse_in_the_history_is_not_a_settle_that_was_written_before() {
    let db = Database::new().await;
    db.enqueue(NOTE, "{}", "k").await;
    let ledger = db.ledger("w");
    let slow = claim_one(&ledger, &lapsing(want(NOTE))).await;
    claim_one(&ledger, &want(NOTE)).await;
    assert_eq!(db.attempts(slow.intent.id.0).await.len(), 1);
    assert_eq!(standing(&ledger, &accepted(&slow)).await, Standing::Overtaken);
}

#[tokio::test]
async fn r25_two_claims_of_one_action_are_told_apart_in_one_batch() {
    let db = Database::new().await;
    db.enqueue(NOTE, "{}", "k").await;
    let ledger = db.ledger("w");
    let first = claim_one(&ledger, &lapsing(want(NOTE))).await;
    let second = claim_one(&ledger, &want(NOTE)).await;
    let batch = [accepted(&first), settlement(&second, &finding(Evidence::Lapsed))];
    assert_eq!(ledger.settle(&batch).await.unwrap(), HashSet::from([second.row.attempt]));
    let third = claim_one(&ledger, &lapsing(want(NOTE))).await;
    let held = accepted(&third);
    let standing = ledger.standing(&[&batch[0], &held]).await.unwrap();
    assert_eq!(standing[&first.row.attempt], Standing::Overtaken);
    assert!(matches!(standing[&third.row.attempt], Standing::Changed(_)), "{standing:?}");
}

#[tokio::test]
async fn r24_a_pruned_row_has_no_standing() {
    let db = Database::new().await;
    let (ledger, claimed) = held(&db).await;
    db.run("delete from outbox.delivery").await;
    let told = accepted(&claimed);
    assert!(ledger.settle(std::slice::from_ref(&told)).await.unwrap().is_empty());
    assert!(ledger.standing(&[&told]).await.unwrap().is_empty());
}

#[tokio::test]
async fn b36_a_claim_that_is_handed_back_leaves_no_trace_but_its_fence() {
    let db = Database::new().await;
    let action = db.enqueue(NOTE, "{}", "k").await;
    let before = db.delivery(action).await;
    let ledger = db.ledger("w");
    let claimed = claim_one(&ledger, &want(NOTE)).await;
    let back = Settlement { transition: untouched(&claimed.row), history: None, ..accepted(&claimed) };
    assert_eq!(ledger.settle(&[back]).await.unwrap().len(), 1);
    let after = db.delivery(action).await;
    for (column, value) in after.as_object().unwrap() {
        if !["fence", "due_at", "updated_at"].contains(&column.as_str()) {
            assert_eq!(before[column], *value, "{column}");
        }
    }
    assert!(db.attempts(action).await.is_empty());
    assert_eq!(claim_one(&ledger, &want(NOTE)).await.intent.id.0, action, "due at once");
}

#[tokio::test]
async fn b62_one_bad_row_is_named_by_its_own_refusal_and_the_others_can_be_written() {
    let db = Database::new().await;
    for key in ["a", "b", "c"] {
        db.enqueue(NOTE, "{}", key).await;
    }
    let ledger = db.ledger("w");
    let claimed = claim(&ledger, &want(NOTE)).await;
    let mut batch: Vec<Settlement> = claimed.iter().map(accepted).collect();
    // Longer than `detail_is_bounded` allows.
    batch[1].history = Some(History { detail: Some("x".repeat(5000)), ..history(Evidence::Accepted) });
    let Err(LedgerError::Refused { sqlstate, message }) = ledger.settle(&batch).await else { panic!("taken") };
    assert!(sqlstate == "23514" && message.contains("detail_is_bounded"), "{message}");
    assert_eq!(db.count("select count(*) from outbox.delivery where state = 'dispatching'").await, 3);
    for (n, one) in batch.iter().enumerate() {
        assert_eq!(ledger.settle(std::slice::from_ref(one)).await.is_ok(), n != 1);
    }
}

#[tokio::test]
async fn b49_a_row_locked_by_somebody_else_is_refused_quickly_and_the_session_stays_good() {
    let db = Database::new().await;
    let (ledger, claimed) = held(&db).await;
    let holder = db.session().await;
    holder.batch_execute("begin; select from outbox.delivery for update").await.unwrap();
    let told = accepted(&claimed);
    let tried = tokio::time::timeout(Duration::from_secs(5), ledger.settle(std::slice::from_ref(&told))).await;
    let Err(LedgerError::Refused { sqlstate, .. }) = tried.expect("an answer") else { panic!("written") };
    assert_eq!(sqlstate, "55P03");
    holder.batch_execute("rollback").await.unwrap();
    assert_eq!(ledger.settle(&[told]).await.unwrap().len(), 1);
}

#[tokio::test]
async fn b66_a_wait_beyond_all_time_is_still_a_moment() {
    let db = Database::new().await;
    let (ledger, claimed) = held(&db).await;
    let mut told = settlement(&claimed, &finding(Evidence::Deferred));
    told.transition.next = Next::RetryableFailure { delay: Duration::MAX };
    assert_eq!(ledger.settle(&[told]).await.unwrap().len(), 1);
    assert!(db.one::<bool>("select due_at > now() + interval '50 years' from outbox.delivery", &[]).await);
}

#[tokio::test]
async fn r14_held_rows_are_never_due() {
    let db = Database::new().await;
    let (ledger, claimed) = held(&db).await;
    let told = settlement(&claimed, &Finding::because(Evidence::KeyConflict, Reason::KeyConflict));
    assert_eq!(told.transition.next, Next::Held);
    assert_eq!(ledger.settle(&[told]).await.unwrap().len(), 1);
    let row = db.delivery(claimed.intent.id.0).await;
    assert_eq!((&row["step"], &row["reason"]), (&Step::Review.as_str().into(), &"key_conflict".into()));
    assert!(row["due_at"].is_null() && claim(&ledger, &want(NOTE)).await.is_empty());
}

#[tokio::test]
async fn r24_an_empty_settle_is_nothing() {
    let db = Database::new().await;
    assert!(db.ledger("w").settle(&[]).await.unwrap().is_empty());
}

#[tokio::test]
async fn r16_what_another_answer_named_is_not_the_receipt_of_a_later_success() {
    let db = Database::new().await;
    let (ledger, claimed) = held(&db).await;
    let mut foreign = finding(Evidence::Mismatch);
    foreign.receipt = Some("foreign".into());
    assert_eq!(ledger.settle(&[settlement(&claimed, &foreign)]).await.unwrap().len(), 1);
    let action = claimed.intent.id.0;
    assert_eq!(db.delivery(action).await["receipt"], "foreign", "what is known of it is shown");
    db.one::<String>("select outbox.resolve($1, 'send_again', 'ann', 'why')", &[&action]).await;
    let again = claim_one(&ledger, &want(NOTE)).await;
    assert!(settle(&ledger, &again, Evidence::Accepted).await);
    let row = db.delivery(action).await;
    assert_eq!((&row["state"], row["receipt"].is_null()), (&"succeeded".into(), true), "{row}");
}
