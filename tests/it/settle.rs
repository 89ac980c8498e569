//! Settling: a decision is written by whoever holds the row as it was decided upon, once, with its history.

use std::collections::HashSet;
use std::time::Duration;

use outboxd::core::action::{AttemptId, Fence, Step};
use outboxd::core::decide::{Next, SentTimes, untouched};
use outboxd::core::evidence::{Evidence, Finding};
use outboxd::core::late::Testimony;
use outboxd::core::reason::Reason;
use outboxd::core::row::{Doubt, Row};
use outboxd::core::time::Timestamp;
use outboxd::ledger::{Claimed, History, Ledger, LedgerError, Settlement, Standing, Want};
use serde_json::Value;
use uuid::Uuid;

use crate::support::Database;
use crate::support::ledger::{NOTE, claim, claim_one, finding, history, lapsing, settle, settlement, testify, want};

/// One action, claimed.
async fn held(db: &Database) -> (Ledger, Claimed) {
    db.enqueue(NOTE, "{}", "k").await;
    let ledger = db.ledger("w");
    let claimed = claim_one(&ledger, &want(NOTE)).await;
    (ledger, claimed)
}

fn accepted(claimed: &Claimed) -> Settlement {
    settlement(claimed, &finding(Evidence::Accepted))
}

async fn standing(ledger: &Ledger, settlement: &Settlement) -> Standing {
    ledger.standing(&[settlement]).await.unwrap().remove(&settlement.action).expect("a row")
}

#[tokio::test]
async fn r9_a_settle_writes_the_row_and_one_line_of_history() {
    let db = Database::new().await;
    let (ledger, claimed) = held(&db).await;
    let finding =
        Finding { status: Some(201), receipt: Some("note-99".into()), ..Finding::new(Evidence::Accepted, None) };
    let mut told = settlement(&claimed, &finding);
    told.history.as_mut().unwrap().detail = Some("created".into());
    assert_eq!(ledger.settle(&[told]).await.unwrap(), HashSet::from([claimed.intent.id]));
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
async fn r14_a_row_whose_doubt_or_proof_changed_meanwhile_is_decided_again() {
    let elsewhere = Some(Doubt { since: Timestamp::from_micros(1_700_000_000_000_000), attempt: None });
    for (change, doubt, proof) in
        [("doubt_since = to_timestamp(1700000000)", elsewhere, None), ("proof = 'r'", None, Some("r".to_owned()))]
    {
        let db = Database::new().await;
        let (ledger, claimed) = held(&db).await;
        db.run(&format!("update outbox.delivery set {change}")).await;
        let told = settlement(&claimed, &finding(Evidence::NoAnswer));
        assert!(ledger.settle(std::slice::from_ref(&told)).await.unwrap().is_empty(), "{change}");
        let now = Row { doubt, proof, ..claimed.row.clone() };
        assert_eq!(standing(&ledger, &told).await, Standing::Changed(Box::new(now)), "{change}");
        assert_eq!(db.delivery(claimed.intent.id.0).await["state"], "dispatching");
    }
}

#[tokio::test]
async fn r14_a_doubt_that_is_another_attempts_by_now_is_decided_again() {
    let db = Database::new().await;
    let (ledger, first) = held(&db).await;
    assert!(settle(&ledger, &first, Evidence::NoAnswer).await);
    db.run("update outbox.delivery set due_at = now()").await;
    let second = claim_one(&ledger, &want(NOTE)).await;
    db.run("update outbox.delivery set doubt_attempt = null").await;
    let told = settlement(&second, &finding(Evidence::NotSent));
    assert!(ledger.settle(std::slice::from_ref(&told)).await.unwrap().is_empty());
    let doubt = second.row.doubt.map(|doubt| Doubt { attempt: None, ..doubt });
    assert_eq!(standing(&ledger, &told).await, Standing::Changed(Box::new(Row { doubt, ..second.row })));
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
async fn r24_a_pruned_row_has_no_standing() {
    let db = Database::new().await;
    let (ledger, claimed) = held(&db).await;
    db.run("delete from outbox.delivery").await;
    let told = accepted(&claimed);
    assert!(ledger.settle(std::slice::from_ref(&told)).await.unwrap().is_empty());
    assert!(ledger.standing(&[&told]).await.unwrap().is_empty());
}

#[tokio::test]
async fn r13_sent_times_say_when_something_may_have_left() {
    for (evidence, first, last) in [
        // Its own answer ended it: earlier than the lease would.
        (Evidence::NoAnswer, "first_sent_at = claimed", "last_sent_at < lease"),
        (Evidence::Accepted, "first_sent_at = claimed", "last_sent_at < lease"),
        (Evidence::NotSent, "first_sent_at is null", "last_sent_at is null"),
        (Evidence::Deferred, "first_sent_at is null", "last_sent_at is null"),
    ] {
        let db = Database::new().await;
        let (ledger, claimed) = held(&db).await;
        db.run("create table was as select first_sent_at as claimed, due_at as lease from outbox.delivery").await;
        assert!(settle(&ledger, &claimed, evidence).await);
        let sql = format!(
            "select {first} and {last} and coalesce(first_sent_at <= last_sent_at, true)
            from outbox.delivery, was"
        );
        assert!(db.one::<bool>(&sql, &[]).await, "{evidence:?}: {}", db.delivery(claimed.intent.id.0).await);
    }
}

#[tokio::test]
async fn r14_an_unsent_resend_gives_back_the_sent_times_of_the_doubt() {
    let db = Database::new().await;
    let (ledger, first) = held(&db).await;
    assert!(settle(&ledger, &first, Evidence::NoAnswer).await);
    let before = db.delivery(first.intent.id.0).await;
    db.run("update outbox.delivery set due_at = now()").await;
    let second = claim_one(&ledger, &want(NOTE)).await;
    assert!(settle(&ledger, &second, Evidence::NotSent).await);
    let after = db.delivery(first.intent.id.0).await;
    for column in ["state", "first_sent_at", "last_sent_at", "doubt_since", "doubt_attempt", "sent_digest", "attempts"]
    {
        assert_eq!(before[column], after[column], "{column}");
    }
}

#[tokio::test]
async fn r25_a_late_widening_outlives_the_holders_own_sent_times() {
    for evidence in [Evidence::NotSent, Evidence::NoAnswer] {
        let db = Database::new().await;
        let action = db.enqueue(NOTE, "{}", "k").await;
        let ledger = db.ledger("w");
        // A send that a failover has made the ledger forget.
        let lost = claim_one(&ledger, &lapsing(want(NOTE))).await;
        db.run("set session_replication_role = replica; update outbox.delivery set state = 'pending', fence = 0, worker = null,
            attempt_id = null, first_sent_at = null, last_sent_at = null, sent_digest = null; reset session_replication_role")
            .await;
        let mut holder = claim_one(&ledger, &want(NOTE)).await;
        assert_eq!(testify(&ledger, &lost, Evidence::NoAnswer).await, Testimony::Doubt);
        let widened = db.delivery(action).await;
        let Standing::Changed(row) = standing(&ledger, &accepted(&holder)).await else { panic!("not ours") };
        holder.row = *row;
        assert!(settle(&ledger, &holder, evidence).await);
        let after = db.delivery(action).await;
        assert_eq!(after["state"], "outcome_unknown");
        assert_eq!(after["first_sent_at"], widened["first_sent_at"], "{evidence:?}");
        assert_eq!(after["last_sent_at"], widened["last_sent_at"], "{evidence:?}");
    }
}

#[tokio::test]
async fn r25_a_late_widening_outlives_a_holder_that_marks() {
    let db = Database::new().await;
    let action = db.enqueue(NOTE, "{}", "k").await;
    let ledger = db.ledger("w");
    let lost = claim_one(&ledger, &lapsing(want(NOTE))).await;
    claim_one(&ledger, &lapsing(want(NOTE))).await;
    db.run(
        "update outbox.delivery set state = 'outcome_unknown', worker = null, step = 'send', override = true,
        doubt_attempt = null; delete from outbox.attempt",
    )
    .await;
    let holder = claim_one(&ledger, &Want { marks: true, ..want(NOTE) }).await;
    assert_eq!(testify(&ledger, &lost, Evidence::NoAnswer).await, Testimony::Doubt);
    let widened = db.delivery(action).await;
    ledger.mark(std::slice::from_ref(&holder)).await.unwrap();
    // One of several as before: the doubt itself looks unchanged to the holder.
    assert!(settle(&ledger, &holder, Evidence::NotSent).await);
    let after = db.delivery(action).await;
    assert_eq!(after["first_sent_at"], widened["first_sent_at"]);
    assert!(after["last_sent_at"].as_str() >= widened["last_sent_at"].as_str());
}

#[tokio::test]
async fn r19_an_absence_does_not_clear_what_late_testimony_has_widened_meanwhile() {
    let db = Database::new().await;
    let action = db.enqueue(NOTE, "{}", "k").await;
    let ledger = db.ledger("w");
    let lost = claim_one(&ledger, &lapsing(want(NOTE))).await;
    claim_one(&ledger, &lapsing(want(NOTE))).await;
    db.run(
        "delete from outbox.attempt;
        update outbox.delivery set state = 'outcome_unknown', worker = null, step = 'lookup', doubt_attempt = null,
          first_sent_at = now() - interval '2 h', last_sent_at = now() - interval '1 h'",
    )
    .await;
    let mut holder = claim_one(&ledger, &want(NOTE)).await;
    assert_eq!(testify(&ledger, &lost, Evidence::NoAnswer).await, Testimony::Doubt);
    let absent = settlement(&holder, &finding(Evidence::Absent));
    assert_eq!(absent.transition.sent, SentTimes::Cleared, "settled, as the holder knows the row");
    assert!(ledger.settle(std::slice::from_ref(&absent)).await.unwrap().is_empty());
    let Standing::Changed(row) = standing(&ledger, &absent).await else { panic!("not ours") };
    holder.row = *row;
    assert!(settle(&ledger, &holder, Evidence::Absent).await);
    assert_eq!(db.delivery(action).await["state"], "outcome_unknown", "asked too early to prove anything");
}

#[tokio::test]
async fn r25_a_claim_that_is_handed_back_keeps_the_proof_that_waits() {
    let db = Database::new().await;
    let action = db.enqueue(NOTE, "{}", "k").await;
    let ledger = db.ledger("w");
    let slow = claim_one(&ledger, &lapsing(want(NOTE))).await;
    let next = claim_one(&ledger, &lapsing(want(NOTE))).await;
    assert_eq!(testify(&ledger, &slow, Evidence::Accepted).await, Testimony::Wait);
    let draining = claim_one(&ledger, &want(NOTE)).await;
    assert_eq!(draining.row.proof.as_deref(), Some("late-receipt"));
    assert!(draining.row.attempt != next.row.attempt);
    let back = Settlement { transition: untouched(&draining.row), history: None, ..accepted(&draining) };
    assert_eq!(ledger.settle(&[back]).await.unwrap().len(), 1);
    assert_eq!(db.delivery(action).await["proof"], "late-receipt");
    let last = claim_one(&ledger, &want(NOTE)).await;
    assert_eq!(last.row.proof.as_deref(), Some("late-receipt"));
    assert!(settle(&ledger, &last, Evidence::Proof).await);
    assert!(db.delivery(action).await["proof"].is_null());
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
