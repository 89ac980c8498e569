//! `outbox.status` (R10): what a reader may say is true, in every state.

use outboxd::core::action::{Step, Stop};
use outboxd::core::evidence::Evidence;
use outboxd::core::reason::Reason;
use outboxd::ledger::Want;
use uuid::Uuid;

use crate::support::Database;
use crate::support::ledger::{NOTE, claim_one, settle, want};

async fn says(db: &Database, action: Uuid) -> (String, String) {
    let sql = "select label, sentence from outbox.status where action_id = $1";
    let row = db.client.query_one(sql, &[&action]).await.unwrap();
    (row.get(0), row.get(1))
}

#[tokio::test]
async fn r10_an_action_is_pending_then_sent_then_delivered() {
    let db = Database::new().await;
    let action = db.enqueue(NOTE, "{}", "k").await;
    assert_eq!(says(&db, action).await, ("pending".into(), "Committed; delivery pending.".into()));
    let ledger = db.ledger("w");
    let claimed = claim_one(&ledger, &want(NOTE)).await;
    let (label, sentence) = says(&db, action).await;
    assert_eq!(label, "dispatching");
    assert!(sentence.starts_with("Sent ") && sentence.ends_with(" s ago; no answer yet."), "{sentence}");
    assert!(settle(&ledger, &claimed, Evidence::Accepted).await);
    let (label, sentence) = says(&db, action).await;
    assert_eq!(label, "succeeded");
    assert!(sentence.starts_with("Delivered; the destination confirmed it at "), "{sentence}");
    assert!(sentence.ends_with(" UTC."), "{sentence}");
}

#[tokio::test]
async fn r10_every_kind_of_unknown_has_its_label_and_says_unknown() {
    let db = Database::new().await;
    let action = db.enqueue(NOTE, "{}", "k").await;
    let ledger = db.ledger("w");
    let claimed = claim_one(&ledger, &want(NOTE)).await;
    assert!(settle(&ledger, &claimed, Evidence::NoAnswer).await);
    for (step, due, label, ends) in [
        ("send", "now()", "awaiting_resend", "; to be sent again under the same key."),
        ("lookup", "now()", "awaiting_reconciliation", "; asking the destination."),
        ("cancel", "now()", "awaiting_reconciliation", "; being cancelled at the destination."),
        ("conclude", "now()", "awaiting_reconciliation", "; being worked out."),
        ("review", "null", "awaiting_review", "; a person must decide."),
    ] {
        db.run(&format!("update outbox.delivery set step = '{step}', due_at = {due}")).await;
        let (found, sentence) = says(&db, action).await;
        assert_eq!(found, label);
        assert!(sentence.starts_with("Outcome unknown since ") && sentence.ends_with(ends), "{sentence}");
    }
}

#[tokio::test]
async fn r10_an_action_in_doubt_that_is_being_sent_again_is_still_unknown() {
    let db = Database::new().await;
    let action = db.enqueue(NOTE, "{}", "k").await;
    let ledger = db.ledger("w");
    let first = claim_one(&ledger, &want(NOTE)).await;
    assert!(settle(&ledger, &first, Evidence::NoAnswer).await);
    db.run("update outbox.delivery set due_at = now()").await;
    assert_eq!(claim_one(&ledger, &want(NOTE)).await.row.step, Step::Send);
    let (label, sentence) = says(&db, action).await;
    assert_eq!(label, "dispatching");
    assert!(sentence.starts_with("Outcome unknown since "), "{sentence}");
    assert!(sentence.ends_with("; being sent again under the same key."), "{sentence}");
}

#[tokio::test]
async fn r10_what_waits_says_why_and_until_when() {
    let db = Database::new().await;
    let later =
        "select action_id from outbox.enqueue('note.publish', '{}', 'later', not_before => '2999-01-02 03:04 UTC')";
    let later: Uuid = db.one(later, &[]).await;
    assert_eq!(says(&db, later).await.1, "Committed; to be sent at 2999-01-02 03:04 UTC.");
    let action = db.enqueue(NOTE, "{}", "k").await;
    let due = "due_at = '2999-01-02 03:04 UTC'";
    let over = "due_at = null, closed_at = now()";
    for (state, reason, when, sentence) in [
        ("retryable_failure", "throttled", due, "Not done yet (throttled); next attempt at 2999-01-02 03:04 UTC."),
        ("pending", "tls_failed", due, "Committed; not sent yet (tls failed); next attempt at 2999-01-02 03:04 UTC."),
        ("terminal_failure", "deadline", over, "Not delivered (deadline); it will not be tried again."),
    ] {
        db.run(&format!(
            "set session_replication_role = replica;
             update outbox.delivery set state = '{state}', reason = '{reason}', {when} where action_id = '{action}';
             reset session_replication_role"
        ))
        .await;
        assert_eq!(says(&db, action).await.1, sentence);
    }
}

#[tokio::test]
async fn r10_cancelled_is_said_only_where_nothing_can_be_sent() {
    let db = Database::new().await;
    let action = db.enqueue(NOTE, "{}", "k").await;
    let ledger = db.ledger("w");
    // A worker of a marking operation holds it: it may be about to send, or have sent a moment ago.
    let claimed = claim_one(&ledger, &Want { marks: true, ..want(NOTE) }).await;
    db.run("select outbox.cancel(action_id, 'ann', 'why') from outbox.action").await;
    assert_eq!(says(&db, action).await.1, "Committed; a worker has it, nothing has been sent yet.");
    assert!(settle(&ledger, &claimed, Evidence::NotSent).await);
    assert_eq!(says(&db, action).await.1, "Cancelled; nothing will be sent.");
    db.run("update outbox.delivery set due_at = now()").await;
    let concluding = claim_one(&ledger, &want(NOTE)).await;
    assert_eq!(says(&db, action).await.1, "Cancelled; nothing will be sent.");
    assert!(settle(&ledger, &concluding, Evidence::Stopped(Stop::Cancelled)).await);
    assert_eq!(says(&db, action).await.1, "Not delivered (cancelled); it will not be tried again.");
}

#[tokio::test]
async fn r10_a_request_to_cancel_what_is_in_doubt_promises_nothing() {
    let db = Database::new().await;
    let action = db.enqueue(NOTE, "{}", "k").await;
    let ledger = db.ledger("w");
    let claimed = claim_one(&ledger, &want(NOTE)).await;
    db.run("select outbox.cancel(action_id, 'ann', 'why') from outbox.action").await;
    assert!(says(&db, action).await.1.starts_with("Sent "));
    assert!(settle(&ledger, &claimed, Evidence::NoAnswer).await);
    assert!(says(&db, action).await.1.starts_with("Outcome unknown since "));
}

#[tokio::test]
async fn r10_no_sentence_about_a_doubt_says_more_than_that_it_is_unknown() {
    let db = Database::new().await;
    let reasons: Vec<&str> = Reason::ALL.iter().map(|reason| reason.code()).collect();
    let steps: Vec<&str> = Step::ALL.iter().map(|step| step.as_str()).collect();
    let sql = "select s.sentence
        from unnest(array['outcome_unknown', 'dispatching']) state, unnest($1::text[]) step, unnest($2::text[]) reason,
          unnest(array[true, false]) cancelled, unnest(array[true, false]) sent,
          outbox.sentence(state, step, now(), case when sent then now() end, now(), reason, null::timestamptz, cancelled, false) as s(sentence)";
    let rows = db.client.query(sql, &[&steps, &reasons]).await.unwrap();
    assert_eq!(rows.len(), 2 * steps.len() * reasons.len() * 4);
    for row in rows {
        let sentence: &str = row.get(0);
        assert!(sentence.starts_with("Outcome unknown since "), "{sentence}");
        for never in ["fail", "eliver", "ancelled;", "not sent", "Not "] {
            assert!(!sentence.contains(never), "{sentence}");
        }
    }
}

#[tokio::test]
async fn r10_ages_and_times_read_as_a_person_says_them() {
    let db = Database::new().await;
    for (age, text) in [("-5 s", "0 s"), ("59 s", "59 s"), ("61 s", "1 min"), ("3601 s", "1 h"), ("50 h", "2 days")] {
        let sql = format!("select outbox.ago(clock_timestamp() - interval '{age}')");
        assert_eq!(db.one::<String>(&sql, &[]).await, text);
    }
    db.run("set timezone = 'Pacific/Auckland'; set lc_time = 'C'").await;
    let utc = "select outbox.utc('2001-02-03 04:05:06+00')";
    assert_eq!(db.one::<String>(utc, &[]).await, "2001-02-03 04:05 UTC");
    assert_eq!(db.one::<String>("select outbox.utc(clock_timestamp())", &[]).await.len(), "10:31 UTC".len());
}
