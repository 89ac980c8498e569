//! `cancel_sent_at`: recorded before a cancel by key leaves, by whoever holds the row for that.

use outboxd::core::action::{Fence, Step};
use outboxd::core::evidence::Evidence;
use outboxd::ledger::{Claimed, Ledger, Want};

use crate::support::Database;
use crate::support::ledger::{NOTE, asking, claim_one, lapsing, settle, want};

/// A row in doubt whose next step is a cancel, claimed.
async fn cancelling(db: &Database, ledger: &Ledger, want: &Want) -> Claimed {
    let action = db.enqueue(NOTE, "{}", "k").await;
    let sent = claim_one(ledger, &crate::support::ledger::want(NOTE)).await;
    assert!(settle(ledger, &sent, Evidence::NoAnswer).await);
    db.run("update outbox.delivery set step = 'cancel', due_at = now()").await;
    let claimed = claim_one(ledger, want).await;
    assert_eq!((claimed.intent.id.0, claimed.row.step, claimed.row.cancel_sent), (action, Step::Cancel, false));
    claimed
}

#[tokio::test]
async fn r18_a_cancel_is_recorded_once_and_for_good_before_it_leaves() {
    let db = Database::new().await;
    let ledger = db.ledger("w");
    let claimed = cancelling(&db, &ledger, &asking(want(NOTE))).await;
    let marked = ledger.mark_cancels(std::slice::from_ref(&claimed)).await.unwrap();
    assert!(marked.contains(&claimed.intent.id));
    // Another session sees it: it is committed by the time it is answered.
    let seen = db.delivery(claimed.intent.id.0).await;
    assert!(seen["cancel_sent_at"].is_string(), "{seen}");
    assert_eq!(ledger.mark_cancels(std::slice::from_ref(&claimed)).await.unwrap().len(), 1, "again is no harm");
    assert!(settle(&ledger, &claimed, Evidence::Inconclusive).await);
    db.run("update outbox.delivery set due_at = now()").await;
    let next = claim_one(&ledger, &want(NOTE)).await;
    assert!(next.row.cancel_sent);
    assert_eq!(db.delivery(claimed.intent.id.0).await["cancel_sent_at"], seen["cancel_sent_at"], "the first stays");
}

#[tokio::test]
async fn r25_a_cancel_that_is_no_longer_held_is_not_recorded_and_must_not_leave() {
    let db = Database::new().await;
    let ledger = db.ledger("w");
    let slow = cancelling(&db, &ledger, &lapsing(want(NOTE))).await;
    assert!(ledger.mark_cancels(std::slice::from_ref(&slow)).await.unwrap().is_empty(), "its lease is over");
    let next = claim_one(&ledger, &want(NOTE)).await;
    assert_eq!(next.row.step, Step::Cancel);
    for stale in [
        slow.clone(),
        Claimed { fence: slow.fence, ..next.clone() },
        Claimed { fence: Fence(next.fence.0 + 1), ..next.clone() },
        Claimed { row: slow.row.clone(), ..next.clone() },
    ] {
        assert!(ledger.mark_cancels(&[stale]).await.unwrap().is_empty());
    }
    assert!(db.delivery(next.intent.id.0).await["cancel_sent_at"].is_null());
    assert_eq!(ledger.mark_cancels(&[next]).await.unwrap().len(), 1);
}

#[tokio::test]
async fn r18_only_a_claim_that_is_to_cancel_records_one() {
    let db = Database::new().await;
    db.enqueue(NOTE, "{}", "k").await;
    let ledger = db.ledger("w");
    let sending = claim_one(&ledger, &want(NOTE)).await;
    assert!(ledger.mark_cancels(std::slice::from_ref(&sending)).await.unwrap().is_empty());
    assert!(ledger.mark_cancels(&[]).await.unwrap().is_empty());
}
