//! Serial queues (R27): what people decide about them, what is locked, and what breaks.

use std::time::Duration;

use outboxd::core::action::Stop;
use outboxd::core::evidence::Evidence;
use outboxd::core::late::Testimony;
use outboxd::core::queue::{Queue, queue_after};
use outboxd::ledger::{Keep, Ledger, Pruned, Settlement};
use uuid::Uuid;

use crate::support::Database;
use crate::support::ledger::{NOTE, accepted, claim_one, finding, lapsing, settle, settlement, testify, want};
use crate::support::queue::{is_quiet, promote, queued, role, send, take, take_one};

const REJECTED: Evidence = Evidence::Rejected { replayed: false };

/// Two of a queue, the first of which failed although its owner wants failures to be looked at.
async fn holding(db: &Database, ledger: &Ledger) -> [Uuid; 2] {
    let both = [queued(db, "a", "o").await, queued(db, "b", "o").await];
    let claimed = take_one(ledger).await;
    let failed = settlement(&claimed, &finding(REJECTED));
    let failed = Settlement { queue: queue_after(&failed.transition, true), ..failed };
    assert_eq!(failed.queue, Queue::IsHeld);
    assert_eq!(ledger.settle(&[failed]).await.unwrap().len(), 1);
    assert!(is_quiet(ledger).await);
    assert_eq!([role(db, both[0]).await, role(db, both[1]).await], ["holds", "parked"]);
    both
}

async fn decide(db: &Database, verb: &str, action: Uuid) -> String {
    db.one(&format!("select outbox.{verb}($1, 'ann', 'I have looked')"), &[&action]).await
}

async fn sentence(db: &Database, action: Uuid) -> String {
    db.one("select sentence from outbox.status where action_id = $1", &[&action]).await
}

#[tokio::test]
async fn r27_a_failure_holds_its_queue_where_the_owner_wants_it_until_it_is_released() {
    let db = Database::new().await;
    let ledger = db.ledger("w");
    let [a, b] = holding(&db, &ledger).await;
    assert_eq!(
        sentence(&db, a).await,
        "Not delivered (rejected); it holds its queue until a person retries it or lets the next go."
    );
    assert_eq!(sentence(&db, b).await, format!("Committed; waiting for its turn behind {a} (terminal failure)."));
    let before = db.delivery(a).await;
    assert_eq!(decide(&db, "release", a).await, "released");
    let after = db.delivery(a).await;
    for same in ["state", "reason", "receipt", "closed_at", "fence", "attempts"] {
        assert_eq!(before[same], after[same], "{same}");
    }
    let line = db.attempts(a).await.pop().unwrap();
    assert_eq!(
        (&line["kind"], &line["evidence"], &line["decided_by"]),
        (&"decision".into(), &"release".into(), &"ann".into())
    );
    assert_eq!(take_one(&ledger).await.intent.id.0, b);
    assert_eq!(role(&db, a).await, "out");
    let (state, message) = db.refused("select outbox.release($1, 'ann', 'again')", &[&a]).await;
    assert!(state == "OB412" && message.contains("it holds no queue"), "{message}");
}

#[tokio::test]
async fn r27_a_failure_that_holds_its_queue_goes_on_at_its_head_when_it_is_tried_again() {
    let db = Database::new().await;
    let ledger = db.ledger("w");
    let [a, b] = holding(&db, &ledger).await;
    assert_eq!(decide(&db, "retry", a).await, "pending");
    assert_eq!(role(&db, a).await, "turn");
    assert_eq!(send(&ledger, Evidence::Accepted).await, a);
    assert_eq!(take_one(&ledger).await.intent.id.0, b);
}

#[tokio::test]
async fn r27_a_release_is_refused_where_nothing_is_held_by_a_failure() {
    let db = Database::new().await;
    let ledger = db.ledger("w");
    let plain = db.enqueue(NOTE, "{}", "plain").await;
    let [a, b] = [queued(&db, "a", "o").await, queued(&db, "b", "o").await];
    for claimed in take(&ledger).await {
        settle(&ledger, &claimed, Evidence::NoAnswer).await;
    }
    for (action, why) in [(plain, "no serial queue"), (a, "its outcome is unknown"), (b, "waits for its turn itself")] {
        let (state, message) = db.refused("select outbox.release($1, 'ann', 'why')", &[&action]).await;
        assert!(state == "OB412" && message.contains(why), "{message}");
    }
    let (state, _) = db.refused("select outbox.release($1, '', 'why')", &[&a]).await;
    assert_eq!(state, "OB422");
}

#[tokio::test]
async fn r27_what_a_person_finds_out_moves_the_queue_on() {
    for (decision, holds, then) in
        [("happened", true, "left"), ("did_not_happen", false, "left"), ("did_not_happen", true, "holds")]
    {
        let db = Database::new().await;
        let ledger = db.ledger("w");
        let sql = "insert into outbox.operation (operation, hold_on_failure) values ($1, $2)";
        db.client.execute(sql, &[&NOTE, &holds]).await.unwrap();
        let [a, b] = [queued(&db, "a", "o").await, queued(&db, "b", "o").await];
        send(&ledger, Evidence::NoAnswer).await;
        let listener = db.session().await;
        listener.batch_execute("listen outbox").await.unwrap();
        db.run("update outbox.delivery set step = 'review', due_at = null, first_sent_at = now() - interval '1 h', last_sent_at = now() - interval '1 h' where turn").await;
        db.run(&format!("select outbox.resolve('{a}', '{decision}', 'ann', 'I looked')")).await;
        assert_eq!(role(&db, a).await, then, "{decision}");
        if then == "left" {
            assert_eq!(take_one(&ledger).await.intent.id.0, b);
        } else {
            assert!(is_quiet(&ledger).await);
        }
    }
}

#[tokio::test]
async fn r27_a_failure_that_turns_out_to_have_happened_lets_its_queue_go() {
    let db = Database::new().await;
    let ledger = db.ledger("w");
    let [a, b] = [queued(&db, "a", "o").await, queued(&db, "b", "o").await];
    promote(&ledger).await;
    let slow = claim_one(&ledger, &lapsing(want(NOTE))).await;
    let next = claim_one(&ledger, &want(NOTE)).await;
    db.run(
        "update outbox.delivery set state = 'terminal_failure', step = 'conclude', due_at = null, worker = null,
        attempt_id = null, doubt_since = null, doubt_attempt = null, closed_at = now(), holds = true where turn",
    )
    .await;
    assert!(!settle(&ledger, &next, Evidence::Accepted).await);
    assert_eq!(testify(&ledger, &slow, Evidence::Accepted).await, Testimony::Contradicts);
    assert!(is_quiet(&ledger).await);
    db.run(&format!("select outbox.resolve('{a}', 'happened', 'ann', 'it is there')")).await;
    assert_eq!(role(&db, a).await, "left");
    assert_eq!(take_one(&ledger).await.intent.id.0, b);
}

#[tokio::test]
async fn r27_what_is_tried_again_later_keeps_its_place() {
    let db = Database::new().await;
    let ledger = db.ledger("w");
    let mut all = Vec::new();
    for key in ["a", "b", "c", "d"] {
        all.push(queued(&db, key, "o").await);
    }
    assert_eq!(send(&ledger, REJECTED).await, all[0]);
    let begun = take_one(&ledger).await;
    assert_eq!(decide(&db, "retry", all[0]).await, "pending");
    assert!(is_quiet(&ledger).await, "the second has begun");
    assert!(settle(&ledger, &begun, Evidence::Accepted).await);
    for next in [all[0], all[2], all[3]] {
        assert_eq!(send(&ledger, Evidence::Accepted).await, next);
    }
}

#[tokio::test]
async fn r27_a_compensation_and_what_it_compensates_never_wait_for_each_other() {
    let db = Database::new().await;
    let ledger = db.ledger("w");
    let original = queued(&db, "a", "o").await;
    let sql = "select action_id from outbox.enqueue($1, '{}', 'undo', ordering_key => 'o', compensates => $2)";
    let undo: Uuid = db.one(sql, &[&NOTE, &original]).await;
    assert_eq!(send(&ledger, REJECTED).await, original);
    assert_eq!(role(&db, undo).await, "turn");
    assert_eq!(decide(&db, "retry", original).await, "pending");
    // It is put off, since what it compensates is open again; that one goes before it.
    assert_eq!(ledger.claim(&[want(NOTE)]).await.unwrap().claimed.len(), 0);
    assert_eq!(send(&ledger, Evidence::Accepted).await, original);
    assert_eq!(send(&ledger, Evidence::Accepted).await, undo);
}

#[tokio::test]
async fn r27_what_is_cancelled_while_it_waits_leaves_the_queue() {
    let db = Database::new().await;
    let ledger = db.ledger("w");
    let mut all = Vec::new();
    for key in ["a", "b", "c"] {
        all.push(queued(&db, key, "o").await);
    }
    let head = take_one(&ledger).await;
    assert_eq!(decide(&db, "cancel", all[1]).await, "cancelled");
    assert_eq!(role(&db, all[1]).await, "none");
    assert_eq!(sentence(&db, all[1]).await, "Cancelled; nothing will be sent.");
    let cancelled = take_one(&ledger).await;
    assert_eq!((cancelled.intent.id.0, cancelled.row.stop), (all[1], Some(Stop::Cancelled)));
    assert!(settle(&ledger, &cancelled, Evidence::Stopped(Stop::Cancelled)).await);
    assert!(settle(&ledger, &head, Evidence::Accepted).await);
    // One that has its turn is closed in it.
    assert_eq!(decide(&db, "cancel", all[2]).await, "cancelled");
    assert_eq!(take_one(&ledger).await.row.stop, Some(Stop::Cancelled));
}

#[tokio::test]
async fn r27_an_application_that_cancels_for_long_holds_up_its_queue_alone_and_deadlocks_nobody() {
    let db = Database::new().await;
    let ledger = db.ledger("w");
    let [a, b] = [queued(&db, "a", "o").await, queued(&db, "b", "o").await];
    let c = queued(&db, "c", "o").await;
    let head = take_one(&ledger).await;
    assert_eq!(head.intent.id.0, a);
    // Thousands that wait behind what is locked are no reason to look at nothing else.
    db.run(
        "select outbox.enqueue('note.publish', '{}', 'more' || n, ordering_key => 'o') from generate_series(1, 1200) n",
    )
    .await;
    let application = db.session().await;
    application.batch_execute("begin").await.unwrap();
    application.query("select outbox.cancel($1, 'app', 'why')", &[&b]).await.unwrap();
    assert!(settle(&ledger, &head, Evidence::Accepted).await, "evidence does not wait");
    assert_eq!(role(&db, a).await, "left");
    let other = queued(&db, "other", "o2").await;
    assert_eq!(take_one(&ledger).await.intent.id.0, other);
    assert_eq!(role(&db, a).await, "left", "marked still");
    let arrived = "select count(*) from outbox.delivery where lane is not null and not turn and due_at is not null";
    assert_eq!(db.count(arrived).await, 0);
    // The same where the first one has never had its turn.
    let first = queued(&db, "first", "o3").await;
    application.query("select outbox.cancel($1, 'app', 'why')", &[&first]).await.unwrap();
    let second = queued(&db, "second", "o3").await;
    queued(&db, "third", "o3").await;
    assert!(is_quiet(&ledger).await);
    assert_eq!([role(&db, first).await, role(&db, second).await], ["arrived", "arrived"]);
    assert_eq!(db.count(arrived).await, 2, "one mark is enough");
    // It goes on and touches what dispatchers have; nothing waits.
    application.query("select outbox.cancel($1, 'app', 'why')", &[&other]).await.unwrap();
    application.batch_execute("rollback").await.unwrap();
    let mut taken: Vec<Uuid> = take(&ledger).await.iter().map(|claimed| claimed.intent.id.0).collect();
    taken.sort();
    assert_eq!(taken, [b, first]);
    assert_eq!(role(&db, c).await, "parked");
}

#[tokio::test]
async fn r27_a_settle_does_not_wait_for_whoever_gives_turns_and_nothing_is_lost() {
    let db = Database::new().await;
    let ledger = db.ledger("w");
    let [a, b] = [queued(&db, "a", "o").await, queued(&db, "b", "o").await];
    let claimed = take_one(&ledger).await;
    let slow = db.session().await;
    slow.batch_execute("begin; select outbox.lock_queues()").await.unwrap();
    assert!(settle(&ledger, &claimed, Evidence::Accepted).await);
    assert_eq!([role(&db, a).await, role(&db, b).await], ["left", "parked"]);
    assert_eq!(ledger.promote().await.unwrap().moved, 0);
    assert!(ledger.claim(&[want(NOTE)]).await.unwrap().unplaced, "and whoever claims next is told");
    // As after a crash between the two.
    slow.batch_execute("rollback").await.unwrap();
    assert_eq!(take_one(&ledger).await.intent.id.0, b);
}

#[tokio::test]
async fn r27_turns_that_cannot_be_given_do_not_keep_what_was_learnt_from_being_written() {
    let db = Database::new().await;
    let ledger = db.ledger("w");
    let a = queued(&db, "a", "o").await;
    let claimed = take_one(&ledger).await;
    db.run("alter function outbox.promote rename to demote").await;
    db.run("create function outbox.promote() returns table (moved bigint, turns bigint) language plpgsql as 'begin raise exception $$broken$$; end'").await;
    let settled = ledger.settle(&[accepted(&claimed)]).await.unwrap();
    assert_eq!((settled.len(), role(&db, a).await.as_str()), (1, "left"));
}

#[tokio::test]
async fn r27_a_queue_that_nobody_would_move_on_is_mended() {
    let db = Database::new().await;
    let ledger = db.ledger("w");
    let mut all = Vec::new();
    for n in 0..8 {
        all.push(queued(&db, &n.to_string(), &format!("o{}", n % 4)).await);
    }
    promote(&ledger).await;
    assert_eq!(ledger.mend_queues(None).await.unwrap().queues, 0, "nothing is broken");
    // In two of four queues the turn is lost, whatever may have done that.
    db.run("update outbox.delivery set turn = false, due_at = null where turn and place <= 2").await;
    assert_eq!(promote(&ledger).await.moved, 0);
    let mended = ledger.mend_queues(None).await.unwrap();
    assert_eq!((mended.queues, mended.after), (2, None));
    assert_eq!(promote(&ledger).await.turns, 2);
    assert_eq!(take(&ledger).await.len(), 4);
    let part: i64 = db.one("select next_after from outbox.mend_queues(null, 3)", &[]).await;
    assert_eq!(ledger.mend_queues(Some(part)).await.unwrap().after, None);
}

#[tokio::test]
async fn r27_late_evidence_about_one_that_waits_gives_it_no_turn() {
    let db = Database::new().await;
    let ledger = db.ledger("w");
    let [a, b] = [queued(&db, "a", "o").await, queued(&db, "b", "o").await];
    promote(&ledger).await;
    let slow = claim_one(&ledger, &want(NOTE)).await;
    // As after a failover that lost the claim and the turn; another has the turn since.
    db.run("set session_replication_role = replica; update outbox.delivery set state = 'pending', fence = 0, worker = null,
        attempt_id = null, first_sent_at = null, last_sent_at = null, sent_digest = null, turn = false, due_at = null where turn;
        reset session_replication_role; update outbox.delivery set turn = true, due_at = now() where action_id = (select max(action_id::text)::uuid from outbox.delivery)").await;
    let begun = claim_one(&ledger, &want(NOTE)).await;
    assert_eq!(begun.intent.id.0, b);
    assert_eq!(testify(&ledger, &slow, Evidence::NoAnswer).await, Testimony::Doubt);
    assert!(is_quiet(&ledger).await);
    assert_eq!([role(&db, a).await, role(&db, b).await], ["parked", "turn"]);
    assert!(sentence(&db, a).await.starts_with("Outcome unknown since"));
    // Held while it waits, it holds the queue when its turn comes.
    db.run(&format!("update outbox.delivery set step = 'review' where action_id = '{a}'")).await;
    let c = queued(&db, "c", "o").await;
    assert!(settle(&ledger, &begun, Evidence::Accepted).await);
    assert!(is_quiet(&ledger).await);
    assert_eq!([role(&db, a).await, role(&db, c).await], ["turn", "parked"]);
}

#[tokio::test]
async fn r5_what_holds_a_queue_is_not_pruned() {
    let db = Database::new().await;
    let ledger = db.ledger("w");
    let [a, _] = holding(&db, &ledger).await;
    let keep = Keep { operation: NOTE, payload: Duration::ZERO, identity: Duration::from_secs(3600) };
    assert_eq!(ledger.prunable(&[keep]).await.unwrap().kept, 1);
    assert_eq!(ledger.prune(&[keep]).await.unwrap(), Pruned::Done { actions: 0, tombstones: 0 });
    decide(&db, "release", a).await;
    promote(&ledger).await;
    assert_eq!(ledger.prune(&[keep]).await.unwrap(), Pruned::Done { actions: 1, tombstones: 0 });
}

#[tokio::test]
async fn r12_only_the_turn_of_a_closed_row_may_change() {
    let db = Database::new().await;
    let ledger = db.ledger("w");
    let [a, _] = holding(&db, &ledger).await;
    for wrong in [
        "turn = false, holds = false, reason = 'other'",
        "holds = false, receipt = 'r'",
        "reason = 'other'",
        "holds = false, lane = 5",
        "holds = false, closed_at = now()",
    ] {
        let (state, message) =
            db.refused(&format!("update outbox.delivery set {wrong} where action_id = '{a}'"), &[]).await;
        assert!(state == "OB412" && message.contains("a closed row never changes"), "{wrong}: {message}");
    }
    decide(&db, "release", a).await;
    let (state, _) = db.refused(&format!("update outbox.delivery set holds = true where action_id = '{a}'"), &[]).await;
    assert_eq!(state, "OB412");
    let double = "update outbox.delivery set turn = true, due_at = now() where not turn and closed_at is null";
    let error = db.client.execute(double, &[]).await.unwrap_err();
    assert_eq!(error.as_db_error().unwrap().constraint(), Some("one_turn_per_lane"));
}
