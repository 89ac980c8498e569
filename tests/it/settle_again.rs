//! What a settle keeps or gives back, and what it must be decided again for: doubt, proof and sent times.

use outboxd::core::decide::{SentTimes, untouched};
use outboxd::core::evidence::Evidence;
use outboxd::core::late::Testimony;
use outboxd::core::row::{Doubt, Row};
use outboxd::core::time::Timestamp;
use outboxd::ledger::{Settlement, Standing, Want};

use crate::support::Database;
use crate::support::ledger::{
    NOTE, accepted, claim_one, finding, held, lapsing, settle, settlement, standing, testify, want,
};

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
