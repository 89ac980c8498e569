//! Late testimony (R25): what an overtaken claim learnt, against real rows.

use outboxd::core::action::Step;
use outboxd::core::evidence::Evidence;
use outboxd::core::late::Testimony;
use outboxd::core::row::SentUnder;
use outboxd::ledger::{Claimed, LateTestimony, Ledger, Standing};
use serde_json::Value;
use uuid::Uuid;

use crate::support::Database;
use crate::support::ledger::{
    NOTE, OTHER_PINS, PINS, claim, claim_one, finding, history, lapsing, settle, settlement, testify, want,
};

/// A claim that was overtaken: its lapse is recorded, and the row has come to rest in doubt.
async fn overtaken(db: &Database) -> (Ledger, Claimed) {
    let (ledger, slow, successor) = held_by_a_successor(db).await;
    assert!(settle(&ledger, &successor, Evidence::Lapsed).await);
    assert_eq!(db.label(slow.intent.id.0).await, "awaiting_resend");
    (ledger, slow)
}

/// A claim that was overtaken, and the claim that holds the row.
async fn held_by_a_successor(db: &Database) -> (Ledger, Claimed, Claimed) {
    db.enqueue(NOTE, "{}", "k").await;
    let ledger = db.ledger("w");
    let slow = claim_one(&ledger, &lapsing(want(NOTE))).await;
    let successor = claim_one(&ledger, &want(NOTE)).await;
    (ledger, slow, successor)
}

/// As after a failover to a replica that never got the claim: nothing in the ledger knows of it.
async fn forget_the_claim(db: &Database) {
    db.run(
        "delete from outbox.attempt; set session_replication_role = replica;
         update outbox.delivery set state = 'pending', step = 'send', fence = 0, due_at = now(), worker = null,
           attempt_id = null, attempts = 0, first_sent_at = null, last_sent_at = null, sent_digest = null,
           doubt_since = null, doubt_attempt = null;
         reset session_replication_role",
    )
    .await;
}

async fn late_line(db: &Database, action: Uuid) -> Value {
    db.attempts(action).await.into_iter().find(|line| line["kind"] == "late").expect("late testimony in the history")
}

#[tokio::test]
async fn r25_late_success_closes_a_row_that_nobody_holds() {
    let db = Database::new().await;
    let (ledger, slow) = overtaken(&db).await;
    let action = slow.intent.id.0;
    assert_eq!(testify(&ledger, &slow, Evidence::Accepted).await, Testimony::Close);
    let row = db.delivery(action).await;
    assert_eq!((&row["state"], &row["receipt"]), (&"succeeded".into(), &"late-receipt".into()));
    for empty in ["due_at", "doubt_since", "doubt_attempt", "proof", "reason"] {
        assert!(row[empty].is_null(), "{empty}");
    }
    let line = late_line(&db, action).await;
    assert_eq!(line["attempt_id"], slow.row.attempt.0.to_string());
    assert_eq!((&line["evidence"], &line["verdict"]), (&"accepted".into(), &"succeeded".into()));
    assert_eq!((&line["receipt"], &line["fence"]), (&"late-receipt".into(), &1.into()));
}

#[tokio::test]
async fn r9_r25_a_send_that_lapsed_is_recorded_though_a_proof_of_an_earlier_one_waits() {
    let db = Database::new().await;
    let (ledger, slow) = overtaken(&db).await;
    let action = slow.intent.id.0;
    db.run("update outbox.delivery set due_at = now()").await;
    let resend = claim_one(&ledger, &lapsing(want(NOTE))).await;
    assert_eq!(resend.row.step, Step::Send);
    assert_eq!(testify(&ledger, &slow, Evidence::Accepted).await, Testimony::Wait);
    let next = claim_one(&ledger, &want(NOTE)).await;
    assert_eq!((next.row.step, next.row.proof.as_deref()), (Step::Conclude, Some("late-receipt")));
    let lapsed = |line: &Value| line["attempt_id"] == resend.row.attempt.0.to_string() && line["evidence"] == "lapsed";
    assert!(db.attempts(action).await.iter().any(lapsed), "it was sent, and nobody has written that down");
}

#[tokio::test]
async fn r25_late_success_closes_a_held_row_too() {
    let db = Database::new().await;
    let (ledger, slow) = overtaken(&db).await;
    db.run("update outbox.delivery set step = 'review', due_at = null, override = true").await;
    assert_eq!(testify(&ledger, &slow, Evidence::Accepted).await, Testimony::Close);
    assert_eq!(db.label(slow.intent.id.0).await, "succeeded");
}

#[tokio::test]
async fn r25_late_success_waits_for_the_successor_who_then_concludes_it() {
    let db = Database::new().await;
    let (ledger, slow, mut successor) = held_by_a_successor(&db).await;
    assert_eq!(testify(&ledger, &slow, Evidence::Accepted).await, Testimony::Wait);
    let row = db.delivery(slow.intent.id.0).await;
    assert_eq!((&row["state"], &row["proof"]), (&"dispatching".into(), &"late-receipt".into()));
    assert!(!settle(&ledger, &successor, Evidence::Lapsed).await, "it has not seen the proof");
    successor.row.proof = Some("late-receipt".into());
    assert!(settle(&ledger, &successor, Evidence::Proof).await);
    assert_eq!(db.label(slow.intent.id.0).await, "succeeded");
}

#[tokio::test]
async fn r25_proof_outlives_the_successor_that_it_waited_for() {
    let db = Database::new().await;
    db.enqueue(NOTE, "{}", "k").await;
    let ledger = db.ledger("w");
    let slow = claim_one(&ledger, &lapsing(want(NOTE))).await;
    claim_one(&ledger, &lapsing(want(NOTE))).await;
    assert_eq!(testify(&ledger, &slow, Evidence::Accepted).await, Testimony::Wait);
    let third = claim_one(&ledger, &want(NOTE)).await;
    assert_eq!((third.row.step, third.row.proof.as_deref()), (Step::Conclude, Some("late-receipt")));
}

#[tokio::test]
async fn r25_late_success_of_what_was_closed_as_not_done_is_shown_as_contradicted() {
    let db = Database::new().await;
    let (ledger, slow) = overtaken(&db).await;
    let action = slow.intent.id.0;
    db.run("update outbox.delivery set due_at = now()").await;
    let next = claim_one(&ledger, &want(NOTE)).await;
    db.run("update outbox.delivery set doubt_since = null, doubt_attempt = null").await;
    let next = Claimed { row: outboxd::core::row::Row { doubt: None, ..next.row.clone() }, ..next };
    assert!(settle(&ledger, &next, Evidence::Rejected { replayed: false }).await);
    let before = db.delivery(action).await;
    assert_eq!(before["state"], "terminal_failure");
    assert_eq!(testify(&ledger, &slow, Evidence::Accepted).await, Testimony::Contradicts);
    assert_eq!(db.delivery(action).await, before, "a closed row never changes");
    assert_eq!(late_line(&db, action).await["verdict"], "contradicts");
    let sentence: String = db.one("select sentence from outbox.status", &[]).await;
    assert!(sentence.contains("contradicted") && !sentence.contains("Not delivered"), "{sentence}");
}

#[tokio::test]
async fn r25_anything_late_about_a_succeeded_row_is_recorded_only() {
    for evidence in [Evidence::Accepted, Evidence::Rejected { replayed: false }, Evidence::NoAnswer] {
        let db = Database::new().await;
        let (ledger, slow) = overtaken(&db).await;
        db.run(
            "update outbox.delivery set state = 'succeeded', due_at = null, doubt_since = null, doubt_attempt = null,
            closed_at = now()",
        )
        .await;
        let before = db.delivery(slow.intent.id.0).await;
        assert_eq!(testify(&ledger, &slow, evidence).await, Testimony::Record);
        assert_eq!(db.delivery(slow.intent.id.0).await, before);
        assert_eq!(late_line(&db, slow.intent.id.0).await["evidence"], evidence.as_str());
    }
}

#[tokio::test]
async fn r14_not_sent_of_the_only_doubtful_attempt_clears_the_doubt() {
    for (evidence, testimony, state) in [
        (Evidence::NotSent, Testimony::ClearToPending, "pending"),
        (Evidence::Deferred, Testimony::ClearToRetryable, "retryable_failure"),
    ] {
        let db = Database::new().await;
        let (ledger, slow) = overtaken(&db).await;
        assert_eq!(testify(&ledger, &slow, evidence).await, testimony);
        let row = db.delivery(slow.intent.id.0).await;
        assert_eq!((&row["state"], &row["step"]), (&state.into(), &"send".into()));
        for empty in ["doubt_since", "doubt_attempt", "first_sent_at", "last_sent_at", "sent_digest", "marked_at"] {
            assert!(row[empty].is_null(), "{empty}");
        }
        assert_eq!(row["attempts"], 1, "attempts are kept");
        assert_eq!(claim(&ledger, &want(NOTE)).await.len(), 1, "due at once");
    }
}

#[tokio::test]
async fn r14_a_doubt_that_is_cleared_while_held_leaves_the_row_to_its_holder() {
    let db = Database::new().await;
    let (ledger, slow, mut successor) = held_by_a_successor(&db).await;
    assert_eq!(testify(&ledger, &slow, Evidence::NotSent).await, Testimony::ClearToPending);
    let row = db.delivery(slow.intent.id.0).await;
    assert_eq!((&row["state"], &row["doubt_since"]), (&"dispatching".into(), &Value::Null));
    assert!(!settle(&ledger, &successor, Evidence::Lapsed).await, "decided upon a doubt that is gone");
    successor.row.doubt = None;
    assert!(settle(&ledger, &successor, Evidence::Lapsed).await);
    assert_eq!(db.label(slow.intent.id.0).await, "pending");
}

#[tokio::test]
async fn r14_not_sent_of_one_of_several_doubtful_attempts_clears_nothing() {
    let db = Database::new().await;
    let (ledger, slow) = overtaken(&db).await;
    db.run("update outbox.delivery set doubt_attempt = null").await;
    let before = db.delivery(slow.intent.id.0).await;
    assert_eq!(testify(&ledger, &slow, Evidence::NotSent).await, Testimony::Record);
    assert_eq!(db.delivery(slow.intent.id.0).await, before);
}

#[tokio::test]
async fn r25_after_a_cancel_by_key_late_success_is_held_for_a_person() {
    let db = Database::new().await;
    let (ledger, slow) = overtaken(&db).await;
    db.run("update outbox.delivery set cancel_sent_at = now()").await;
    assert_eq!(testify(&ledger, &slow, Evidence::NotSent).await, Testimony::Record);
    db.run("delete from outbox.attempt where kind = 'late'").await;
    assert_eq!(testify(&ledger, &slow, Evidence::Accepted).await, Testimony::Hold);
    let row = db.delivery(slow.intent.id.0).await;
    assert_eq!((&row["step"], &row["reason"]), (&"review".into(), &"contradicted".into()));
    assert_eq!((&row["receipt"], &row["due_at"]), (&"late-receipt".into(), &Value::Null));
}

#[tokio::test]
async fn r25_a_send_that_a_failover_lost_sets_doubt_and_its_sent_times() {
    let db = Database::new().await;
    db.enqueue(NOTE, "{}", "k").await;
    let ledger = db.ledger("w");
    let lost = claim_one(&ledger, &lapsing(want(NOTE))).await;
    forget_the_claim(&db).await;
    assert_eq!(testify(&ledger, &lost, Evidence::NoAnswer).await, Testimony::Doubt);
    let row = db.delivery(lost.intent.id.0).await;
    assert_eq!((&row["state"], &row["step"]), (&"outcome_unknown".into(), &"conclude".into()));
    assert_eq!(row["doubt_attempt"], lost.row.attempt.0.to_string());
    assert_eq!(row["sent_digest"], format!("\\x{}", "01".repeat(16)));
    // Its send began no earlier than its claim was asked for.
    let claimed = lost.row.claimed_at.micros();
    let sql = "select abs(extract(epoch from first_sent_at) * 1000000 - $1::text::bigint) < 1000000
        and last_sent_at >= first_sent_at from outbox.delivery";
    assert!(db.one::<bool>(sql, &[&claimed.to_string()]).await, "{row}");
    let next = claim_one(&ledger, &want(NOTE)).await;
    assert_eq!((next.row.step, next.row.sent_under), (Step::Conclude, SentUnder::These(PINS)));
}

#[tokio::test]
async fn r25_a_lost_send_under_other_pins_mixes_them() {
    let db = Database::new().await;
    let (ledger, slow) = overtaken(&db).await;
    db.run("delete from outbox.attempt").await;
    let finding = finding(Evidence::UnknownAnswer);
    let history = history(Evidence::UnknownAnswer);
    let told = LateTestimony::of(&slow, &finding, OTHER_PINS, &history);
    assert_eq!(ledger.testify(told).await.unwrap(), Some(Testimony::Doubt));
    let row = db.delivery(slow.intent.id.0).await;
    assert_eq!((&row["sent_digest"], &row["doubt_attempt"]), (&"\\x".into(), &Value::Null));
    assert_eq!(claim_one(&ledger, &want(NOTE)).await.row.sent_under, SentUnder::Mixed);
}

#[tokio::test]
async fn r25_testimony_whose_answer_was_lost_means_nothing_the_second_time() {
    let db = Database::new().await;
    db.enqueue(NOTE, "{}", "k").await;
    let ledger = db.ledger("w");
    let lost = claim_one(&ledger, &lapsing(want(NOTE))).await;
    forget_the_claim(&db).await;
    assert_eq!(testify(&ledger, &lost, Evidence::NoAnswer).await, Testimony::Doubt);
    // Meanwhile the doubt has been cleared.
    db.run(
        "update outbox.delivery set state = 'pending', step = 'send', doubt_since = null, doubt_attempt = null,
        first_sent_at = null, last_sent_at = null, sent_digest = null",
    )
    .await;
    assert_eq!(testify(&ledger, &lost, Evidence::NoAnswer).await, Testimony::Record);
    assert_eq!(db.label(lost.intent.id.0).await, "pending");
    assert_eq!(db.attempts(lost.intent.id.0).await.len(), 1);
}

#[tokio::test]
async fn r25_testimony_about_a_pruned_row_is_nothing() {
    let db = Database::new().await;
    let (ledger, slow) = overtaken(&db).await;
    db.run("delete from outbox.delivery").await;
    let (finding, history) = (finding(Evidence::Accepted), history(Evidence::Accepted));
    let told = LateTestimony::of(&slow, &finding, PINS, &history);
    assert_eq!(ledger.testify(told).await.unwrap(), None);
}

#[tokio::test]
async fn r19_an_absence_says_nothing_of_a_send_under_other_pins_that_is_told_of_meanwhile() {
    let db = Database::new().await;
    let action = db.enqueue(NOTE, "{}", "k").await;
    let ledger = db.ledger("w");
    claim_one(&ledger, &lapsing(want(NOTE))).await;
    db.run(
        "update outbox.delivery set state = 'outcome_unknown', worker = null, step = 'lookup', doubt_attempt = null,
          doubt_since = now(), first_sent_at = now() - interval '2 h', last_sent_at = now() - interval '1 h'",
    )
    .await;
    let mut holder = claim_one(&ledger, &want(NOTE)).await;
    // Testimony of an older send under other pins, where the doubt is several already: only the digest changes.
    db.run("update outbox.delivery set sent_digest = ''").await;
    let absent = settlement(&holder, &finding(Evidence::Absent));
    assert!(ledger.settle(std::slice::from_ref(&absent)).await.unwrap().is_empty());
    let standing = ledger.standing(&[&absent]).await.unwrap().remove(&absent.row.attempt);
    let Some(Standing::Changed(row)) = standing else { panic!("not ours") };
    holder.row = *row;
    assert_eq!(holder.row.sent_under, SentUnder::Mixed);
    assert!(settle(&ledger, &holder, Evidence::Absent).await);
    let row = db.delivery(action).await;
    assert_eq!((&row["state"], &row["step"]), (&"outcome_unknown".into(), &"review".into()));
}
