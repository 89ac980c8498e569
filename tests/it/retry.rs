//! `outbox.retry` (R21): trying again what was closed as not delivered.

use outboxd::core::action::{Step, Stop};
use outboxd::core::evidence::Evidence;
use outboxd::core::row::SentUnder;
use outboxd::core::target::Secret;
use outboxd::ledger::{Bell, Ledger};
use uuid::Uuid;

use crate::support::Database;
use crate::support::ledger::{NOTE, PINS, claim_one, lapsing, settle, testify, want};
use crate::support::world::SOON;

const RETRY: &str = "select outbox.retry($1, 'ann', 'the account was full')";

async fn refused(db: &Database, action: Uuid) -> String {
    let (state, message) = db.refused(RETRY, &[&action]).await;
    assert_eq!(state, "OB412", "{message}");
    message
}

/// An action that its destination has refused for good.
async fn rejected(db: &Database) -> (Ledger, Uuid) {
    let action = db.enqueue(NOTE, "{}", "k").await;
    (reject(db).await, action)
}

async fn reject(db: &Database) -> Ledger {
    let ledger = db.ledger("w");
    let claimed = claim_one(&ledger, &want(NOTE)).await;
    assert!(settle(&ledger, &claimed, Evidence::Rejected { replayed: false }).await);
    ledger
}

#[tokio::test]
async fn r21_retry_starts_over_with_its_attempts_and_its_time() {
    let db = Database::new().await;
    let (ledger, action) = rejected(&db).await;
    let before = db.delivery(action).await;
    assert_eq!((&before["attempts"], &before["reason"]), (&1.into(), &"rejected".into()));
    let bell = Bell::connect(&Secret::new(db.url.clone())).await.unwrap();
    assert_eq!(db.one::<String>(RETRY, &[&action]).await, "pending");
    tokio::time::timeout(SOON, bell.rung()).await.expect("a ring");

    let row = db.delivery(action).await;
    assert_eq!((&row["state"], &row["step"], &row["attempts"]), (&"pending".into(), &"send".into(), &0.into()));
    for column in
        ["first_sent_at", "last_sent_at", "sent_digest", "marked_at", "reason", "receipt", "closed_at", "doubt_since"]
    {
        assert!(row[column].is_null(), "{column}: {row}");
    }
    assert_eq!(row["fence"], before["fence"]);
    assert!(row["budget_from"].as_str() > before["closed_at"].as_str(), "{row}");
    let decision = db.attempts(action).await.pop().unwrap();
    assert_eq!(
        (&decision["kind"], &decision["evidence"], &decision["verdict"], &decision["decided_by"], &decision["detail"]),
        (&"decision".into(), &"retry".into(), &"pending".into(), &"ann".into(), &"the account was full".into())
    );

    let again = claim_one(&ledger, &want(NOTE)).await;
    assert_eq!((again.row.step, again.row.sent_under), (Step::Send, SentUnder::These(PINS)));
    assert!(settle(&ledger, &again, Evidence::Accepted).await);
    assert!(refused(&db, action).await.contains("it is succeeded"));
}

#[tokio::test]
async fn r21_did_not_happen_and_retry_are_two_decisions_in_one_transaction() {
    let db = Database::new().await;
    let action = db.enqueue(NOTE, "{}", "k").await;
    let ledger = db.ledger("w");
    let claimed = claim_one(&ledger, &want(NOTE)).await;
    assert!(settle(&ledger, &claimed, Evidence::NoAnswer).await);
    assert!(refused(&db, action).await.contains("its outcome is unknown; resolve that first"));
    let both = "select outbox.resolve($1, 'did_not_happen', 'ann', 'asked') || ' ' || outbox.retry($1, 'ann', 'asked')";
    assert_eq!(db.one::<String>(both, &[&action]).await, "terminal_failure pending");
    let kinds: Vec<_> = db.attempts(action).await.iter().map(|h| h["evidence"].clone()).collect();
    assert_eq!(kinds, ["no_answer", "did_not_happen", "retry"]);
    assert_eq!(claim_one(&ledger, &want(NOTE)).await.row.doubt, None);
}

#[tokio::test]
async fn r18_nothing_is_tried_again_once_a_cancel_by_key_has_been_sent() {
    let db = Database::new().await;
    let action = db.enqueue(NOTE, "{}", "k").await;
    db.run("update outbox.delivery set cancel_sent_at = now()").await;
    reject(&db).await;
    assert!(refused(&db, action).await.contains("a cancel by its key has been sent"));
}

#[tokio::test]
async fn r22_what_would_be_stopped_again_is_refused_with_the_reason() {
    let db = Database::new().await;
    let (ledger, action) = rejected(&db).await;
    let number: i64 = db.one("select outbox.revoke('eve', 'left', operation => 'note.publish')", &[]).await;
    assert!(refused(&db, action).await.contains(&format!("revocation {number}")));
    db.run("select outbox.revoke('eve', 'left', tenant => 'another'); select outbox.restore(1, 'eve', 'back')").await;
    assert_eq!(db.one::<String>(RETRY, &[&action]).await, "pending");
    // A revocation between the retry and the claim stops it all the same.
    db.run("select outbox.revoke('eve', 'left again', operation => 'note.publish')").await;
    assert_eq!(claim_one(&ledger, &want(NOTE)).await.row.stop, Some(Stop::AuthorityRevoked));

    let db = Database::new().await;
    let action = db.enqueue(NOTE, "{}", "k").await;
    db.run("select outbox.cancel(action_id, 'bob', 'why') from outbox.action").await;
    let ledger = db.ledger("w");
    let claimed = claim_one(&ledger, &want(NOTE)).await;
    assert!(settle(&ledger, &claimed, Evidence::Stopped(Stop::Cancelled)).await);
    assert!(refused(&db, action).await.contains("it was cancelled"));

    let db = Database::new().await;
    let sql =
        "select action_id from outbox.enqueue('note.publish', '{}', 'k', expires_at => now() + interval '100 ms')";
    let action: Uuid = db.one(sql, &[]).await;
    reject(&db).await;
    db.run("select pg_sleep(0.11)").await;
    assert!(refused(&db, action).await.contains("its deadline passed at"));
}

/// The reason of a row is also the memory of a stop.
#[tokio::test]
async fn r22_a_stop_that_has_been_lifted_is_forgotten() {
    let db = Database::new().await;
    let action = db.enqueue(NOTE, "{}", "k").await;
    let number: i64 = db.one("select outbox.revoke('eve', 'left', operation => 'note.publish')", &[]).await;
    let ledger = db.ledger("w");
    let claimed = claim_one(&ledger, &want(NOTE)).await;
    assert!(settle(&ledger, &claimed, Evidence::Stopped(Stop::AuthorityRevoked)).await);
    assert!(db.one::<bool>("select outbox.restore($1, 'eve', 'back')", &[&number]).await);
    assert_eq!(db.one::<String>(RETRY, &[&action]).await, "pending");
    assert_eq!(claim_one(&ledger, &want(NOTE)).await.row.stop, None);
}

#[tokio::test]
async fn r25_what_was_confirmed_after_it_was_closed_is_not_sent_again() {
    let db = Database::new().await;
    let action = db.enqueue(NOTE, "{}", "k").await;
    let ledger = db.ledger("w");
    let slow = claim_one(&ledger, &lapsing(want(NOTE))).await;
    let next = claim_one(&ledger, &want(NOTE)).await;
    assert!(settle(&ledger, &next, Evidence::Lapsed).await);
    db.run("update outbox.delivery set last_sent_at = first_sent_at, step = 'review', due_at = null").await;
    db.run("select outbox.resolve(action_id, 'did_not_happen', 'ann', 'why') from outbox.action").await;
    testify(&ledger, &slow, Evidence::Accepted).await;
    assert!(refused(&db, action).await.contains("its destination confirmed it after it was closed"));
    db.run("select outbox.resolve(action_id, 'happened', 'ann', 'why') from outbox.action").await;
    assert!(refused(&db, action).await.contains("it took effect, as an operator decided"));
}

#[tokio::test]
async fn r25_a_confirmation_that_a_person_calls_mistaken_does_not_stand_in_the_way() {
    let db = Database::new().await;
    let (_, action) = rejected(&db).await;
    db.run(
        "insert into outbox.attempt (attempt_id, action_id, number, kind, fence, finished_at, evidence, verdict)
        select gen_random_uuid(), action_id, 1, 'late', 1, now(), 'accepted', 'contradicts' from outbox.action",
    )
    .await;
    assert!(refused(&db, action).await.contains("resolve that first"));
    db.run("select outbox.resolve(action_id, 'did_not_happen', 'ann', 'a test account') from outbox.action").await;
    assert_eq!(db.one::<String>(RETRY, &[&action]).await, "pending");
    reject(&db).await;
    assert_eq!(db.one::<Option<bool>>("select outbox.took_effect($1)", &[&action]).await, Some(false));
}

#[tokio::test]
async fn r21_only_what_is_closed_as_not_delivered_is_tried_again() {
    let db = Database::new().await;
    let action = db.enqueue(NOTE, "{}", "k").await;
    assert!(refused(&db, action).await.contains("it is pending"));
    claim_one(&db.ledger("w"), &want(NOTE)).await;
    assert!(refused(&db, action).await.contains("it is dispatching"));
    assert!(refused(&db, Uuid::nil()).await.contains("there is no action"));
    assert_eq!(db.refused("select outbox.retry($1, 'ann', null)", &[&action]).await.0, "OB422");
}
