//! `outbox.status` (R10): what a reader may say is true, in every state.

use outboxd::core::action::{State, Step, Stop};
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
          unnest(array[true, false]) cancelled, unnest(array[true, false]) sent, unnest(array['x (pending)', null]) behind,
          outbox.sentence(state, step, now(), case when sent then now() end, now(), reason, null::timestamptz, cancelled, null, true, false, behind) as s(sentence)";
    let rows = db.client.query(sql, &[&steps, &reasons]).await.unwrap();
    assert_eq!(rows.len(), 2 * steps.len() * reasons.len() * 8);
    for row in rows {
        let sentence: &str = row.get(0);
        assert!(sentence.starts_with("Outcome unknown since "), "{sentence}");
        for never in ["fail", "eliver", "ancelled;", "not sent", "Not "] {
            assert!(!sentence.contains(never), "{sentence}");
        }
    }
}

/// One line: state, step, then what else matters, and the label and the sentence of it. `at` is 04:05 that day.
const SENTENCES: &[(&str, &str, &[&str], &str, &str)] = &[
    ("pending", "send", &[], "pending", "Committed; delivery pending."),
    ("pending", "send", &["later"], "pending", "Committed; to be sent at 2999-01-02 03:04 UTC."),
    (
        "pending",
        "send",
        &["reason not_reached", "later"],
        "pending",
        "Committed; not sent yet (not reached); next attempt at 2999-01-02 03:04 UTC.",
    ),
    (
        "pending",
        "send",
        &["awaits"],
        "pending",
        "Committed; waits until what it compensates is known to have happened.",
    ),
    (
        "pending",
        "send",
        &["awaits", "reason not_reached", "later"],
        "pending",
        "Committed; waits until what it compensates is known to have happened.",
    ),
    (
        "pending",
        "send",
        &["behind", "awaits"],
        "pending",
        "Committed; waiting for its turn behind 0192 (awaiting review).",
    ),
    ("pending", "conclude", &["cancelled"], "pending", "Cancelled; nothing will be sent."),
    ("pending", "conclude", &["cancelled", "awaits"], "pending", "Cancelled; nothing will be sent."),
    ("dispatching", "send", &[], "dispatching", "Committed; a worker has it, nothing has been sent yet."),
    ("dispatching", "send", &["cancelled"], "dispatching", "Committed; a worker has it, nothing has been sent yet."),
    ("dispatching", "conclude", &["cancelled"], "dispatching", "Cancelled; nothing will be sent."),
    ("dispatching", "send", &["sent"], "dispatching", "Sent 0 s ago; no answer yet."),
    (
        "dispatching",
        "send",
        &["doubt", "sent"],
        "dispatching",
        "Outcome unknown since 2001-02-03 04:05 UTC; being sent again under the same key.",
    ),
    (
        "dispatching",
        "lookup",
        &["doubt", "sent"],
        "dispatching",
        "Outcome unknown since 2001-02-03 04:05 UTC; asking the destination.",
    ),
    (
        "dispatching",
        "cancel",
        &["doubt", "sent"],
        "dispatching",
        "Outcome unknown since 2001-02-03 04:05 UTC; being cancelled at the destination.",
    ),
    (
        "dispatching",
        "conclude",
        &["doubt", "sent", "cancelled"],
        "dispatching",
        "Outcome unknown since 2001-02-03 04:05 UTC; being worked out.",
    ),
    (
        "retryable_failure",
        "send",
        &["reason throttled", "later"],
        "retryable_failure",
        "Not done yet (throttled); next attempt at 2999-01-02 03:04 UTC.",
    ),
    (
        "retryable_failure",
        "conclude",
        &["reason throttled", "cancelled"],
        "retryable_failure",
        "Cancelled; nothing will be sent.",
    ),
    (
        "outcome_unknown",
        "send",
        &["doubt"],
        "awaiting_resend",
        "Outcome unknown since 2001-02-03 04:05 UTC; to be sent again under the same key.",
    ),
    (
        "outcome_unknown",
        "send",
        &["doubt", "reason operator"],
        "awaiting_resend",
        "Outcome unknown since 2001-02-03 04:05 UTC; to be sent again under the same key, as an operator decided.",
    ),
    (
        "outcome_unknown",
        "lookup",
        &["doubt"],
        "awaiting_reconciliation",
        "Outcome unknown since 2001-02-03 04:05 UTC; asking the destination.",
    ),
    (
        "outcome_unknown",
        "cancel",
        &["doubt"],
        "awaiting_reconciliation",
        "Outcome unknown since 2001-02-03 04:05 UTC; being cancelled at the destination.",
    ),
    (
        "outcome_unknown",
        "conclude",
        &["doubt"],
        "awaiting_reconciliation",
        "Outcome unknown since 2001-02-03 04:05 UTC; being worked out.",
    ),
    (
        "outcome_unknown",
        "review",
        &["doubt", "reason key_window_closed"],
        "awaiting_review",
        "Outcome unknown since 2001-02-03 04:05 UTC; a person must decide.",
    ),
    ("succeeded", "conclude", &[], "succeeded", "Delivered; the destination confirmed it at 2001-02-03 04:05 UTC."),
    (
        "succeeded",
        "conclude",
        &["reason operator"],
        "succeeded",
        "Delivered, as an operator decided at 2001-02-03 04:05 UTC.",
    ),
    (
        "terminal_failure",
        "conclude",
        &["reason rejected", "did not"],
        "terminal_failure",
        "Not delivered (rejected); it will not be tried again.",
    ),
    (
        "terminal_failure",
        "conclude",
        &["reason nothing_to_compensate", "did not", "cancelled"],
        "terminal_failure",
        "Not delivered (nothing to compensate); it will not be tried again.",
    ),
    (
        "terminal_failure",
        "conclude",
        &["reason operator", "did not"],
        "terminal_failure",
        "Not delivered, as an operator decided at 2001-02-03 04:05 UTC; it will not be tried again.",
    ),
    (
        "terminal_failure",
        "conclude",
        &["reason attempts_exhausted", "did not", "holds"],
        "terminal_failure",
        "Not delivered (attempts exhausted); it holds its queue until a person retries it or lets the next go.",
    ),
    (
        "terminal_failure",
        "conclude",
        &["reason rejected"],
        "terminal_failure",
        "Closed as not delivered (rejected), but contradicted: the destination confirmed it later; a person must look.",
    ),
    (
        "terminal_failure",
        "conclude",
        &["reason rejected", "did"],
        "terminal_failure",
        "Closed as not delivered (rejected), but it took effect, as an operator decided later.",
    ),
];

#[tokio::test]
async fn r10_every_state_and_label_has_its_sentence() {
    let db = Database::new().await;
    for (state, step, also, label, sentence) in SENTENCES {
        let has = |what: &str| also.contains(&what);
        let reason = also.iter().find_map(|what| what.strip_prefix("reason "));
        let took_effect = if has("did") { Some(true) } else { has("did not").then_some(false) };
        let sql = "select outbox.label($1, $2), outbox.sentence($1, $2,
            case when $3 then '2001-02-03 04:05:06+00'::timestamptz end, case when $4 then clock_timestamp() end,
            case when $5 then '2999-01-02 03:04+00'::timestamptz else now() end, $6,
            case when $1 in ('succeeded', 'terminal_failure') then '2001-02-03 04:05:06+00'::timestamptz end, $7, $8, $9, $10, case when $11 then '0192 (awaiting review)' end)";
        let row = (db.client)
            .query_one(
                sql,
                &[
                    state,
                    step,
                    &has("doubt"),
                    &has("sent"),
                    &has("later"),
                    &reason,
                    &has("cancelled"),
                    &took_effect,
                    &has("awaits"),
                    &has("holds"),
                    &has("behind"),
                ],
            )
            .await
            .unwrap();
        assert_eq!((row.get::<_, &str>(0), row.get::<_, &str>(1)), (*label, *sentence), "{state} {step} {also:?}");
    }
    for state in State::ALL {
        assert!(SENTENCES.iter().any(|line| line.0 == state.as_str()), "{} has no line", state.as_str());
    }
    let labels = ["awaiting_resend", "awaiting_reconciliation", "awaiting_review"];
    assert!(labels.iter().all(|label| SENTENCES.iter().any(|line| line.3 == *label)));
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
