//! `outbox.cancel`, `revoke` and `restore` (R22): what they answer, and that the answer is true.

use outboxd::core::action::{Step, Stop};
use outboxd::core::evidence::Evidence;
use tokio_postgres::Client;
use uuid::Uuid;

use crate::support::ledger::{NOTE, claim, claim_one, settle, want};
use crate::support::{Database, GatedClaim};

async fn cancel(session: &Client, action: Uuid) -> String {
    session.query_one("select outbox.cancel($1, 'ann', 'why')", &[&action]).await.expect("an answer").get(0)
}

#[tokio::test]
async fn r22_cancel_is_certain_where_nobody_holds_it_and_nothing_is_in_doubt() {
    let db = Database::new().await;
    let action = db.enqueue(NOTE, "{}", "k").await;
    assert_eq!(cancel(&db.client, action).await, "cancelled");
    assert_eq!(cancel(&db.client, action).await, "cancelled", "twice is once");
    let row = db.client.query_one("select requested_by, reason from outbox.cancellation", &[]).await.unwrap();
    assert_eq!((row.get::<_, &str>(0), row.get::<_, &str>(1)), ("ann", "why"));
}

#[tokio::test]
async fn r22_a_cancelled_action_of_next_year_is_concluded_today() {
    let db = Database::new().await;
    let sql =
        "select action_id from outbox.enqueue('note.publish', '{}', 'k', not_before => now() + interval '1 year')";
    let action = db.one(sql, &[]).await;
    assert_eq!(cancel(&db.client, action).await, "cancelled");
    assert_eq!(claim_one(&db.ledger("w"), &want(NOTE)).await.row.stop, Some(Stop::Cancelled));
}

#[tokio::test]
async fn r22_cancel_is_a_request_where_a_worker_holds_it_or_it_is_in_doubt() {
    let db = Database::new().await;
    let action = db.enqueue(NOTE, "{}", "k").await;
    let ledger = db.ledger("w");
    let claimed = claim_one(&ledger, &want(NOTE)).await;
    assert_eq!(cancel(&db.client, action).await, "requested");
    assert!(settle(&ledger, &claimed, Evidence::NoAnswer).await, "the request has not touched the row");
    assert_eq!(cancel(&db.client, action).await, "requested");
}

#[tokio::test]
async fn r22_cancel_of_what_is_closed_or_unknown_to_us_is_ob412() {
    let db = Database::new().await;
    let action = db.enqueue(NOTE, "{}", "k").await;
    let ledger = db.ledger("w");
    let claimed = claim_one(&ledger, &want(NOTE)).await;
    assert!(settle(&ledger, &claimed, Evidence::Accepted).await);
    for id in [action, Uuid::nil()] {
        let (state, _) = db.refused("select outbox.cancel($1, 'ann', 'why')", &[&id]).await;
        assert_eq!(state, "OB412");
    }
    assert_eq!(db.refused("select outbox.cancel(null, 'ann', 'why')", &[]).await.0, "OB412");
    assert_eq!(db.count("select count(*) from outbox.cancellation").await, 0);
}

#[tokio::test]
async fn r21_who_and_why_are_required() {
    let db = Database::new().await;
    let action = db.enqueue(NOTE, "{}", "k").await;
    for (by, why) in [(None, Some("why")), (Some("ann"), None), (Some(""), Some("why")), (Some("ann"), Some(""))] {
        let refused = db.refused("select outbox.cancel($1, $2, $3)", &[&action, &by, &why]).await;
        assert_eq!(refused.0, "OB422");
        assert_eq!(db.refused("select outbox.revoke($1, $2, tenant => 't')", &[&by, &why]).await.0, "OB422");
        assert_eq!(db.refused("select outbox.restore(1, $1, $2)", &[&by, &why]).await.0, "OB422");
    }
}

/// The claim looks for cancellations as its snapshot has them, and this one is younger. It leaves the row alone, and the
/// next claim sees why.
#[tokio::test]
async fn r22_a_claim_with_an_older_snapshot_does_not_send_what_was_cancelled_meanwhile() {
    let db = Database::new().await;
    let action = db.enqueue(NOTE, "{}", "k").await;
    let older = GatedClaim::start(&db).await;
    assert_eq!(cancel(&db.client, action).await, "cancelled");
    assert!(older.open().await.is_empty());
    let claimed = claim_one(&db.ledger("w"), &want(NOTE)).await;
    assert_eq!((claimed.row.step, claimed.row.stop), (Step::Conclude, Some(Stop::Cancelled)));
    assert!(db.delivery(action).await["first_sent_at"].is_null());
}

/// And where that claim has concluded nothing, the next one knows why.
#[tokio::test]
async fn r22_what_was_cancelled_under_an_older_snapshot_ends_as_cancelled() {
    let db = Database::new().await;
    let action = db.enqueue(NOTE, "{}", "k").await;
    let session = db.session().await;
    cancel(&session, action).await;
    session.batch_execute("delete from outbox.cancellation").await.unwrap();
    let ledger = db.ledger("w");
    let claimed = claim_one(&ledger, &want(NOTE)).await;
    assert_eq!((claimed.row.step, claimed.row.stop), (Step::Conclude, None), "as the older snapshot has it");
    assert!(settle(&ledger, &claimed, Evidence::Lapsed).await);
    db.run("insert into outbox.cancellation (action_id, requested_by, reason) select action_id, 'ann', 'why' from outbox.action;
        update outbox.delivery set due_at = now()").await;
    assert_eq!(claim_one(&ledger, &want(NOTE)).await.row.stop, Some(Stop::Cancelled));
}

#[tokio::test]
async fn r22_a_cancel_never_waits_for_a_claim_in_flight() {
    let db = Database::new().await;
    let action = db.enqueue(NOTE, "{}", "k").await;
    let claiming = db.session().await;
    claiming.batch_execute("begin; select from outbox.delivery for update").await.unwrap();
    db.run("set lock_timeout = '1 ms'").await;
    assert_eq!(cancel(&db.client, action).await, "requested");
}

#[tokio::test]
async fn r22_a_claim_skips_what_is_being_cancelled_and_takes_it_if_that_rolls_back() {
    let db = Database::new().await;
    let action = db.enqueue(NOTE, "{}", "k").await;
    let session = db.session().await;
    session.batch_execute("begin").await.unwrap();
    assert_eq!(cancel(&session, action).await, "cancelled");
    let ledger = db.ledger("w");
    assert!(claim(&ledger, &want(NOTE)).await.is_empty());
    session.batch_execute("rollback").await.unwrap();
    let claimed = claim_one(&ledger, &want(NOTE)).await;
    assert_eq!((claimed.row.step, claimed.row.stop), (Step::Send, None));
}

#[tokio::test]
async fn r22_revoke_names_something_and_restore_lifts_it_once() {
    let db = Database::new().await;
    assert_eq!(db.refused("select outbox.revoke('ann', 'why')", &[]).await.0, "OB422");
    let number: i64 = db.one("select outbox.revoke('ann', 'left the company', principal => 'bob')", &[]).await;
    let restore = "select outbox.restore($1, 'eve', 'came back')";
    assert!(db.one::<bool>(restore, &[&number]).await);
    let lifted = "select revoked_by || ' ' || lifted_by || ' ' || lifted_reason from outbox.revocation
        where lifted_at >= revoked_at";
    let first: String = db.one(lifted, &[]).await;
    assert_eq!(first, "ann eve came back");
    assert!(!db.one::<bool>("select outbox.restore($1, 'zoe', 'again')", &[&number]).await);
    assert_eq!(db.one::<String>(lifted, &[]).await, first, "who lifted it first stays");
    assert_eq!(db.refused(restore, &[&(number + 1)]).await.0, "OB412");
}
