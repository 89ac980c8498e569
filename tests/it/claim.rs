//! Claiming: what is due, once, under a fence, with its stops and pins.

use std::collections::HashSet;
use std::time::Duration;

use outboxd::core::action::{ActionId, Step};
use outboxd::core::row::SentUnder;
use outboxd::ledger::Want;
use serde_json::Value;

use crate::support::Database;
use crate::support::ledger::{NOTE, OTHER_PINS, PINS, claim, claim_one, settle, want};
use outboxd::core::evidence::Evidence;

#[tokio::test]
async fn r22_due_rows_are_claimed_oldest_first_and_later_ones_not_at_all() {
    let db = Database::new().await;
    for (key, due) in
        [("c", "now() - interval '1 s'"), ("a", "now() - interval '3 s'"), ("b", "now() - interval '2 s'")]
    {
        let action = db.enqueue(NOTE, "{}", key).await;
        db.run(&format!("update outbox.delivery set due_at = {due} where action_id = '{action}'")).await;
    }
    db.run("select outbox.enqueue('note.publish', '{}', 'later', not_before => now() + interval '1 h')").await;
    let ledger = db.ledger("w");
    let mut order = Vec::new();
    while let Some(claimed) = claim(&ledger, &Want { free: 1, ..want(NOTE) }).await.pop() {
        let sql = "select retry_key from outbox.action where action_id = $1";
        order.push(db.one::<String>(sql, &[&claimed.intent.id.0]).await);
    }
    assert_eq!(order, ["a", "b", "c"]);
}

#[tokio::test]
async fn r24_a_claim_takes_a_lease_a_fence_and_an_attempt_id_in_database_time() {
    let db = Database::new().await;
    let action = db.enqueue(NOTE, r#"{"a":1}"#, "k").await;
    let claimed = claim_one(&db.ledger("worker-7"), &want(NOTE)).await;
    assert_eq!((claimed.intent.id, claimed.fence.0, claimed.row.step), (ActionId(action), 1, Step::Send));
    assert_eq!(claimed.intent.body.as_ref(), br#"{"a":1}"#);
    assert_eq!(claimed.row.sent_under, SentUnder::These(PINS));
    let row = db.delivery(action).await;
    assert_eq!((&row["state"], &row["worker"]), (&"dispatching".into(), &"worker-7".into()));
    assert_eq!(row["attempt_id"], claimed.row.attempt.0.to_string());
    let lease = "select due_at - updated_at = interval '120 s' and last_sent_at = due_at and first_sent_at = updated_at
        and updated_at between now() - interval '10 s' and now() from outbox.delivery";
    assert!(db.one::<bool>(lease, &[]).await, "{row}");
}

#[tokio::test]
async fn r24_every_claim_adds_one_to_the_fence_and_mints_an_attempt_id() {
    let db = Database::new().await;
    db.enqueue(NOTE, "{}", "k").await;
    let ledger = db.ledger("w");
    let mut attempts = HashSet::new();
    for fence in 1..=4 {
        let claimed = claim_one(&ledger, &want(NOTE)).await;
        assert_eq!(claimed.fence.0, fence);
        assert_eq!(claimed.row.claims, u32::try_from(fence).unwrap());
        assert!(attempts.insert(claimed.row.attempt));
        assert!(settle(&ledger, &claimed, Evidence::NotSent).await);
        db.run("update outbox.delivery set due_at = now()").await;
    }
}

#[tokio::test]
async fn r24_a_locked_row_is_skipped_and_a_claim_never_waits() {
    let db = Database::new().await;
    let locked = db.enqueue(NOTE, "{}", "locked").await;
    let free = db.enqueue(NOTE, "{}", "free").await;
    let holder = db.session().await;
    holder.batch_execute("begin").await.unwrap();
    holder.query("select from outbox.delivery where action_id = $1 for update", &[&locked]).await.unwrap();
    // Waiting would end in lock_timeout, which is an error.
    let claimed = claim(&db.ledger("w"), &want(NOTE)).await;
    assert_eq!(claimed.iter().map(|c| c.intent.id.0).collect::<Vec<_>>(), [free]);
}

#[tokio::test]
async fn r24_eight_claimers_at_once_take_no_row_twice_and_leave_none() {
    let db = Database::new().await;
    db.run(
        "select outbox.enqueue('note.publish', '{}', n::text, tenant => (n % 7)::text) from generate_series(1, 800) n",
    )
    .await;
    let claimers: Vec<_> = (0..8)
        .map(|n| {
            let ledger = db.ledger(&format!("w{n}"));
            tokio::spawn(async move {
                let (mut mine, mut want) = (Vec::new(), want(NOTE));
                // Empty from the first tenant on: nothing is left that nobody holds.
                loop {
                    let claims = ledger.claim(std::slice::from_ref(&want)).await.expect("a claim");
                    if claims.claimed.is_empty() && want.after.is_empty() {
                        return mine;
                    }
                    want.after.clone_from(&claims.next_after[0].after);
                    mine.extend(claims.claimed.iter().map(|c| c.intent.id));
                }
            })
        })
        .collect();
    let mut all = Vec::new();
    for claimer in claimers {
        all.extend(claimer.await.unwrap());
    }
    assert_eq!(all.iter().collect::<HashSet<_>>().len(), all.len(), "a row was claimed twice");
    let left = db.count("select count(*) from outbox.delivery where state = 'pending'").await;
    assert_eq!((all.len(), left), (800, 0));
    assert_eq!(db.count("select count(*) from outbox.delivery where fence <> 1").await, 0);
}

#[tokio::test]
async fn b39_an_older_transaction_that_commits_later_is_claimed_after_its_commit() {
    let db = Database::new().await;
    let older = db.session().await;
    let sql = "begin; select outbox.enqueue('note.publish', '{}', 'older')";
    older.batch_execute(sql).await.unwrap();
    let younger = db.enqueue(NOTE, "{}", "younger").await;
    let ledger = db.ledger("w");
    assert_eq!(claim_one(&ledger, &want(NOTE)).await.intent.id.0, younger);
    assert!(claim(&ledger, &want(NOTE)).await.is_empty());
    older.batch_execute("commit").await.unwrap();
    assert_ne!(claim_one(&ledger, &want(NOTE)).await.intent.id.0, younger);
    let gap = "begin; select outbox.enqueue('note.publish', '{}', 'gap'); rollback";
    older.batch_execute(gap).await.unwrap();
    assert!(claim(&ledger, &want(NOTE)).await.is_empty());
}

#[tokio::test]
async fn r17_the_pins_of_the_first_send_are_kept_while_in_doubt() {
    let db = Database::new().await;
    let action = db.enqueue(NOTE, "{}", "k").await;
    let ledger = db.ledger("w");
    let first = claim_one(&ledger, &want(NOTE)).await;
    assert!(settle(&ledger, &first, Evidence::NoAnswer).await);
    db.run("update outbox.delivery set due_at = now()").await;
    let other = Want { pins: OTHER_PINS, ..want(NOTE) };
    let second = claim_one(&ledger, &other).await;
    assert_eq!((second.row.step, second.row.sent_under), (Step::Send, SentUnder::These(PINS)));
    assert!(second.row.doubt.is_some());
    // Once the doubt is cleared the next send has pins of its own.
    assert!(settle(&ledger, &second, Evidence::NotSent).await);
    db.run(
        "update outbox.delivery set state = 'pending', step = 'send', due_at = now(), doubt_since = null,
        doubt_attempt = null, first_sent_at = null, last_sent_at = null, sent_digest = null",
    )
    .await;
    let third = claim_one(&ledger, &other).await;
    assert_eq!(third.row.sent_under, SentUnder::These(OTHER_PINS));
    assert_eq!(db.delivery(action).await["sent_digest"], format!("\\x{}", "02".repeat(16)));
}

#[tokio::test]
async fn r17_an_operators_send_again_under_other_pins_matches_none() {
    let db = Database::new().await;
    let action = db.enqueue(NOTE, "{}", "k").await;
    let ledger = db.ledger("w");
    let first = claim_one(&ledger, &want(NOTE)).await;
    assert!(settle(&ledger, &first, Evidence::NoAnswer).await);
    db.run("update outbox.delivery set override = true, due_at = now()").await;
    let second = claim_one(&ledger, &Want { pins: OTHER_PINS, ..want(NOTE) }).await;
    assert!(second.row.overridden);
    assert_eq!(second.row.sent_under, SentUnder::Mixed);
    assert_eq!(db.delivery(action).await["override"], Value::Bool(false), "it is used up by the claim");
    // Under the same pins it stays what it was.
    assert!(settle(&ledger, &second, Evidence::NotSent).await);
    assert_eq!(db.delivery(action).await["override"], Value::Bool(true), "nothing left: it is given back");
}

#[tokio::test]
async fn r17_a_doubts_sent_times_only_widen() {
    let db = Database::new().await;
    let action = db.enqueue(NOTE, "{}", "k").await;
    let ledger = db.ledger("w");
    let first = claim_one(&ledger, &want(NOTE)).await;
    assert!(settle(&ledger, &first, Evidence::NoAnswer).await);
    let before = db.delivery(action).await;
    db.run("update outbox.delivery set due_at = now()").await;
    let second = claim_one(&ledger, &want(NOTE)).await;
    let after = db.delivery(action).await;
    assert_eq!(before["first_sent_at"], after["first_sent_at"]);
    assert_eq!(after["last_sent_at"], after["due_at"], "until the lease ends it may leave");
    // The row is handed over as it was before this claim.
    assert!(second.row.first_sent_at < Some(second.row.claimed_at));
    assert!(second.row.last_sent_at < Some(second.row.claimed_at));
}

#[tokio::test]
async fn r18_a_lookup_claim_writes_no_sent_times() {
    let db = Database::new().await;
    let action = db.enqueue(NOTE, "{}", "k").await;
    let ledger = db.ledger("w");
    let first = claim_one(&ledger, &want(NOTE)).await;
    assert!(settle(&ledger, &first, Evidence::NoAnswer).await);
    db.run("update outbox.delivery set step = 'lookup', due_at = now()").await;
    let before = db.delivery(action).await;
    let second = claim_one(&ledger, &Want { pins: OTHER_PINS, ..want(NOTE) }).await;
    let after = db.delivery(action).await;
    assert_eq!(second.row.step, Step::Lookup);
    for column in ["first_sent_at", "last_sent_at", "sent_digest", "marked_at"] {
        assert_eq!(before[column], after[column], "{column}");
    }
}

#[tokio::test]
async fn r25_proof_that_waits_is_concluded_by_the_next_claim() {
    let db = Database::new().await;
    let action = db.enqueue(NOTE, "{}", "k").await;
    db.run("update outbox.delivery set proof = 'receipt-1'").await;
    let claimed = claim_one(&db.ledger("w"), &want(NOTE)).await;
    assert_eq!((claimed.row.step, claimed.row.proof.as_deref()), (Step::Conclude, Some("receipt-1")));
    assert_eq!(db.delivery(action).await["first_sent_at"], Value::Null, "nothing is sent");
}

#[tokio::test]
async fn r24_the_next_due_moment_is_known_without_claiming() {
    let db = Database::new().await;
    let ledger = db.ledger("w");
    let due = async |operation: &str| outboxd::ledger::next_due_in(&ledger, &[(operation, false, None)]).await.unwrap();
    assert_eq!(due(NOTE).await, None);
    db.run(
        "select outbox.enqueue('note.publish', '{}', 'b', tenant => 'b', not_before => now() + interval '1 h');
        select outbox.enqueue('note.publish', '{}', 'c', tenant => 'c', not_before => now() + interval '2 h')",
    )
    .await;
    let hour = Duration::from_secs(3600);
    assert!(due(NOTE).await.is_some_and(|d| d <= hour && d > hour - Duration::from_secs(60)));
    db.enqueue(NOTE, "{}", "now").await;
    assert_eq!(due(NOTE).await, Some(Duration::ZERO));
    assert_eq!(due("other").await, None);
}
