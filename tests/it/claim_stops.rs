//! What a claim stops: cancelled, expired, revoked (R22). Looked at in the claiming transaction.

use outboxd::core::action::{Step, Stop};
use outboxd::core::evidence::Evidence;
use outboxd::core::late::Testimony;
use outboxd::core::row::Row;
use uuid::Uuid;

use crate::support::Database;
use crate::support::ledger::{NOTE, claim_one, finding, lapsing, settle, settlement, testify, want};

async fn due(db: &Database) {
    db.run("update outbox.delivery set due_at = now()").await;
}

/// Claims the one row, as a short look at what it is told.
async fn told(db: &Database) -> Row {
    claim_one(&db.ledger("w"), &want(NOTE)).await.row
}

async fn cancel(db: &Database, action: Uuid) -> String {
    db.one("select outbox.cancel($1, 'ann', 'changed my mind')", &[&action]).await
}

#[tokio::test]
async fn r22_a_cancelled_action_is_concluded_and_not_sent() {
    let db = Database::new().await;
    let action = db.enqueue(NOTE, "{}", "k").await;
    cancel(&db, action).await;
    let ledger = db.ledger("w");
    let claimed = claim_one(&ledger, &want(NOTE)).await;
    assert_eq!((claimed.row.step, claimed.row.stop), (Step::Conclude, Some(Stop::Cancelled)));
    assert!(settle(&ledger, &claimed, Evidence::Stopped(Stop::Cancelled)).await);
    let row = db.delivery(action).await;
    assert_eq!((&row["state"], &row["reason"]), (&"terminal_failure".into(), &"cancelled".into()));
    assert!(row["first_sent_at"].is_null());
}

#[tokio::test]
async fn r22_an_expired_action_is_concluded_and_not_sent() {
    let db = Database::new().await;
    db.run("select outbox.enqueue('note.publish', '{}', 'k', expires_at => now() - interval '1 ms')").await;
    let row = told(&db).await;
    assert_eq!((row.step, row.stop), (Step::Conclude, Some(Stop::Deadline)));
}

#[tokio::test]
async fn r22_an_action_that_expires_later_is_sent() {
    let db = Database::new().await;
    db.run("select outbox.enqueue('note.publish', '{}', 'k', expires_at => now() + interval '1 h')").await;
    let row = told(&db).await;
    assert_eq!((row.step, row.stop), (Step::Send, None));
}

#[tokio::test]
async fn r22_a_revocation_stops_what_it_names_and_nothing_else() {
    let mine = "tenant => 'acme', principal => 'bot', operation => 'note.publish', authority => 'release'";
    for (revoked, stops) in [
        ("tenant => 'acme'", true),
        ("principal => 'bot'", true),
        ("operation => 'note.publish'", true),
        ("authority => 'release'", true),
        (mine, true),
        ("tenant => 'bolt'", false),
        ("tenant => ''", false),
        ("principal => 'human'", false),
        ("operation => 'mail.send'", false),
        ("authority => 'other'", false),
        ("tenant => 'acme', authority => 'other'", false),
    ] {
        let db = Database::new().await;
        db.run(&format!(
            "select outbox.enqueue(payload => '{{}}', retry_key => 'k', {mine});
             select outbox.revoke('ann', 'why', {revoked})"
        ))
        .await;
        let row = told(&db).await;
        let expected = if stops { (Step::Conclude, Some(Stop::AuthorityRevoked)) } else { (Step::Send, None) };
        assert_eq!((row.step, row.stop), expected, "{revoked}");
    }
}

#[tokio::test]
async fn r22_an_action_without_authority_is_not_stopped_by_the_revocation_of_one() {
    let db = Database::new().await;
    db.run(
        "select outbox.enqueue('note.publish', '{}', 'k'); select outbox.revoke('ann', 'why', authority => 'release')",
    )
    .await;
    assert_eq!(told(&db).await.stop, None);
}

#[tokio::test]
async fn r22_a_lifted_revocation_stops_nothing_that_it_had_not_stopped() {
    let db = Database::new().await;
    db.enqueue(NOTE, "{}", "k").await;
    db.run("select outbox.restore(outbox.revoke('ann', 'why', operation => 'note.publish'), 'ann', 'a mistake')").await;
    assert_eq!(told(&db).await.stop, None);
}

#[tokio::test]
async fn r22_a_stop_seen_while_in_doubt_is_remembered_when_the_revocation_is_lifted() {
    let db = Database::new().await;
    db.enqueue(NOTE, "{}", "k").await;
    let ledger = db.ledger("w");
    let first = claim_one(&ledger, &want(NOTE)).await;
    assert!(settle(&ledger, &first, Evidence::NoAnswer).await);
    due(&db).await;
    let number: i64 = db.one("select outbox.revoke('ann', 'why', operation => 'note.publish')", &[]).await;
    let second = claim_one(&ledger, &want(NOTE)).await;
    assert_eq!((second.row.step, second.row.stop), (Step::Conclude, Some(Stop::AuthorityRevoked)));
    assert!(settle(&ledger, &second, Evidence::Stopped(Stop::AuthorityRevoked)).await);
    db.client.query("select outbox.restore($1, 'ann', 'a mistake')", &[&number]).await.unwrap();
    due(&db).await;
    let third = claim_one(&ledger, &want(NOTE)).await;
    assert_eq!((third.row.step, third.row.stop), (Step::Lookup, Some(Stop::AuthorityRevoked)));
}

#[tokio::test]
async fn r22_a_remembered_stop_still_stops_once_late_evidence_has_cleared_the_doubt() {
    let db = Database::new().await;
    db.enqueue(NOTE, "{}", "k").await;
    let ledger = db.ledger("w");
    let slow = claim_one(&ledger, &lapsing(want(NOTE))).await;
    let number: i64 = db.one("select outbox.revoke('ann', 'why', operation => 'note.publish')", &[]).await;
    let second = claim_one(&ledger, &want(NOTE)).await;
    assert!(settle(&ledger, &second, Evidence::Stopped(Stop::AuthorityRevoked)).await);
    db.client.query("select outbox.restore($1, 'ann', 'a mistake')", &[&number]).await.unwrap();
    assert_eq!(testify(&ledger, &slow, Evidence::NotSent).await, Testimony::ClearToPending);
    let third = claim_one(&ledger, &want(NOTE)).await;
    assert_eq!((third.row.step, third.row.stop), (Step::Conclude, Some(Stop::AuthorityRevoked)));
}

#[tokio::test]
async fn r22_a_lookup_goes_on_though_the_action_is_cancelled() {
    let db = Database::new().await;
    let action = db.enqueue(NOTE, "{}", "k").await;
    let ledger = db.ledger("w");
    let first = claim_one(&ledger, &want(NOTE)).await;
    assert!(settle(&ledger, &first, Evidence::NoAnswer).await);
    db.run("update outbox.delivery set step = 'lookup', due_at = now()").await;
    assert_eq!(cancel(&db, action).await, "requested");
    let row = told(&db).await;
    assert_eq!((row.step, row.stop), (Step::Lookup, Some(Stop::Cancelled)));
}

#[tokio::test]
async fn r22_an_operators_send_again_passes_a_stop_once() {
    let db = Database::new().await;
    let action = db.enqueue(NOTE, "{}", "k").await;
    let ledger = db.ledger("w");
    let first = claim_one(&ledger, &want(NOTE)).await;
    assert!(settle(&ledger, &first, Evidence::NoAnswer).await);
    cancel(&db, action).await;
    db.run("update outbox.delivery set override = true, step = 'send', due_at = now()").await;
    let second = claim_one(&ledger, &want(NOTE)).await;
    assert_eq!((second.row.step, second.row.overridden), (Step::Send, true));
    let told = settlement(&second, &finding(Evidence::NoAnswer));
    assert!(ledger.settle(&[told]).await.unwrap().contains(&second.row.attempt));
    db.run("update outbox.delivery set step = 'send', due_at = now()").await;
    let third = claim_one(&ledger, &want(NOTE)).await;
    assert_eq!((third.row.step, third.row.overridden), (Step::Conclude, false));
}

#[tokio::test]
async fn r22_a_lapsed_send_of_a_cancelled_action_is_still_in_doubt() {
    let db = Database::new().await;
    let action = db.enqueue(NOTE, "{}", "k").await;
    let ledger = db.ledger("w");
    claim_one(&ledger, &lapsing(want(NOTE))).await;
    assert_eq!(cancel(&db, action).await, "requested");
    let next = claim_one(&ledger, &want(NOTE)).await;
    assert_eq!((next.row.step, next.row.stop), (Step::Conclude, Some(Stop::Cancelled)));
    assert!(next.row.doubt.is_some());
}
