//! Serial queues (R27): whose turn it is, step by step.

use outboxd::core::evidence::Evidence;
use outboxd::core::late::Testimony;
use outboxd::ledger::next_due_in;
use uuid::Uuid;

use crate::support::Database;
use crate::support::ledger::{NOTE, claim_one, lapsing, settle, testify, want};
use crate::support::queue::{is_quiet, promote, queued, role, send, take, take_one};

const REJECTED: Evidence = Evidence::Rejected { replayed: false };

async fn three(db: &Database) -> [Uuid; 3] {
    [queued(db, "a", "o").await, queued(db, "b", "o").await, queued(db, "c", "o").await]
}

#[tokio::test]
async fn r27_actions_of_one_ordering_key_go_one_after_another_and_others_are_not_held_up() {
    let db = Database::new().await;
    let ledger = db.ledger("w");
    let [a, b, c] = three(&db).await;
    let free = db.enqueue(NOTE, "{}", "free").await;
    let other = queued(&db, "other", "o2").await;
    let mut taken: Vec<Uuid> = take(&ledger).await.iter().map(|claimed| claimed.intent.id.0).collect();
    taken.sort();
    assert_eq!(taken, [a, free, other]);
    assert_eq!([role(&db, b).await, role(&db, c).await], ["parked", "parked"]);
    let db = Database::new().await;
    let ledger = db.ledger("w");
    let [a, b, c] = three(&db).await;
    for next in [a, b, c] {
        assert_eq!(send(&ledger, Evidence::Accepted).await, next);
    }
    assert!(is_quiet(&ledger).await);
    assert_eq!([role(&db, a).await, role(&db, b).await, role(&db, c).await], ["out"; 3]);
}

#[tokio::test]
async fn r27_a_claim_says_that_turns_are_to_be_given_and_a_sleeper_does_not_miss_it() {
    let db = Database::new().await;
    let ledger = db.ledger("w");
    let unplaced = async || ledger.claim(&[want(NOTE)]).await.unwrap().unplaced;
    let next_due = async || next_due_in(&ledger, &[(NOTE, false, None)]).await.unwrap();
    assert!(!unplaced().await && next_due().await.is_none());
    let [a, ..] = three(&db).await;
    assert!(unplaced().await && next_due().await.is_some_and(|due| due.is_zero()));
    assert_eq!(ledger.promote().await.map(|p| (p.moved, p.turns)).unwrap(), (3, 1));
    let claims = ledger.claim(&[want(NOTE)]).await.unwrap();
    assert!(!claims.unplaced && claims.claimed.len() == 1);
    assert!(claims.claimed[0].lane.is_some());
    // What is parked is nothing to wake up for.
    db.run(&format!("update outbox.delivery set due_at = now() + interval '1 h' where action_id = '{a}'")).await;
    assert!(next_due().await.is_some_and(|due| due.as_secs() > 3000));
    assert_eq!(ledger.promote().await.map(|p| p.moved).unwrap(), 0);
}

#[tokio::test]
async fn r27_an_end_gives_the_next_its_turn_in_the_same_transaction() {
    let db = Database::new().await;
    let ledger = db.ledger("w");
    let [a, b, _] = three(&db).await;
    let claimed = take_one(&ledger).await;
    assert!(settle(&ledger, &claimed, Evidence::Accepted).await);
    assert_eq!([role(&db, a).await, role(&db, b).await], ["out", "turn"]);
    let same = "select count(distinct xmin::text) from outbox.delivery where turn or closed_at is not null";
    assert_eq!(db.count(same).await, 1, "a crash finds both or none");
}

#[tokio::test]
async fn r27_an_unknown_or_retrying_head_holds_its_queue_and_no_other() {
    for evidence in [Evidence::NoAnswer, Evidence::Deferred, Evidence::NotSent, Evidence::Mismatch] {
        let db = Database::new().await;
        let ledger = db.ledger("w");
        let [a, b, _] = three(&db).await;
        assert_eq!(send(&ledger, evidence).await, a);
        db.run("update outbox.delivery set due_at = due_at + interval '1 h' where turn").await;
        assert!(is_quiet(&ledger).await, "{evidence:?}");
        assert_eq!([role(&db, a).await, role(&db, b).await], ["turn", "parked"], "{evidence:?}");
        let other = queued(&db, "other", "o2").await;
        assert_eq!(take_one(&ledger).await.intent.id.0, other);
    }
}

#[tokio::test]
async fn r27_a_failure_lets_the_next_one_go() {
    let db = Database::new().await;
    let ledger = db.ledger("w");
    let [a, b, _] = three(&db).await;
    assert_eq!(send(&ledger, REJECTED).await, a);
    assert_eq!(take_one(&ledger).await.intent.id.0, b);
}

#[tokio::test]
async fn r27_a_lapsed_head_is_taken_over_and_its_queue_waits() {
    let db = Database::new().await;
    let ledger = db.ledger("w");
    let [a, b, _] = three(&db).await;
    promote(&ledger).await;
    let slow = claim_one(&ledger, &lapsing(want(NOTE))).await;
    let next = claim_one(&ledger, &want(NOTE)).await;
    assert_eq!((next.intent.id.0, next.lane), (a, slow.lane));
    assert!(is_quiet(&ledger).await);
    assert!(settle(&ledger, &next, Evidence::Lapsed).await);
    // Late proof closes it, and whoever comes next sees to the queue.
    assert_eq!(testify(&ledger, &slow, Evidence::Accepted).await, Testimony::Close);
    assert_eq!(role(&db, a).await, "left");
    assert!(ledger.claim(&[want(NOTE)]).await.unwrap().unplaced);
    assert_eq!(take_one(&ledger).await.intent.id.0, b);
}

#[tokio::test]
async fn r27_a_queue_spans_operations_and_tenants_with_equal_keys_have_different_ones() {
    let db = Database::new().await;
    let ledger = db.ledger("w");
    let enqueue = "select action_id from outbox.enqueue($1, '{}', $2, tenant => $3, ordering_key => 'o')";
    let first: Uuid = db.one(enqueue, &[&"note.retract", &"1", &""]).await;
    let second: Uuid = db.one(enqueue, &[&NOTE, &"2", &""]).await;
    let foreign: Uuid = db.one(enqueue, &[&NOTE, &"3", &"other"]).await;
    // Length-prefixed: no shift between tenant and key makes two queues one.
    let lanes = "select count(distinct outbox.lane(t, k)) from (values ('a', 'bc'), ('ab', 'c'), ('', 'abc'), ('abc', '')) v(t, k)";
    assert_eq!(db.count(lanes).await, 4);
    assert_eq!(take_one(&ledger).await.intent.id.0, foreign);
    let claimed = claim_one(&ledger, &want("note.retract")).await;
    assert_eq!(claimed.intent.id.0, first);
    assert!(settle(&ledger, &claimed, Evidence::Accepted).await);
    assert_eq!(take_one(&ledger).await.intent.id.0, second);
}

#[tokio::test]
async fn r27_two_keys_that_meet_in_one_queue_only_wait_for_each_other() {
    let db = Database::new().await;
    let ledger = db.ledger("w");
    let mut all = Vec::new();
    for n in 0..6 {
        all.push(queued(&db, &n.to_string(), &format!("o{}", n % 2)).await);
    }
    db.run("update outbox.delivery set lane = 7").await;
    for next in all {
        assert_eq!(send(&ledger, Evidence::Accepted).await, next);
    }
}

#[tokio::test]
async fn r27_a_head_that_is_to_wait_holds_its_queue_until_then() {
    let db = Database::new().await;
    let ledger = db.ledger("w");
    let later = "select action_id from outbox.enqueue($1, '{}', 'later', ordering_key => 'o', not_before => now() + interval '1 h')";
    let head: Uuid = db.one(later, &[&NOTE]).await;
    let [a, ..] = three(&db).await;
    assert!(is_quiet(&ledger).await);
    assert_eq!([role(&db, head).await, role(&db, a).await], ["turn", "parked"]);
    let kept = "select d.due_at = a.not_before and d.budget_from = a.not_before from outbox.delivery d join outbox.action a using (action_id) where d.turn";
    assert!(db.one::<bool>(kept, &[]).await);
}

#[tokio::test]
async fn r23_the_time_of_an_action_begins_with_its_turn() {
    let db = Database::new().await;
    let ledger = db.ledger("w");
    let [_, b, _] = three(&db).await;
    send(&ledger, Evidence::NoAnswer).await;
    db.run("update outbox.delivery set budget_from = now() - interval '9 days' where not turn").await;
    db.run(
        "update outbox.delivery set state = 'succeeded', step = 'conclude', due_at = null, doubt_since = null,
        doubt_attempt = null, closed_at = now() where turn",
    )
    .await;
    let claimed = take_one(&ledger).await;
    assert_eq!(claimed.intent.id.0, b);
    assert!(claimed.row.claimed_at.since(claimed.row.budget_from).as_secs() < 3600);
}

#[tokio::test]
async fn r27_a_rolled_back_enqueue_leaves_no_hole_and_a_late_commit_goes_before_what_has_not_begun() {
    let db = Database::new().await;
    let (ledger, early, gone) = (db.ledger("w"), db.session().await, db.session().await);
    let sql = "begin; select outbox.enqueue('note.publish', '{}', 'KEY', ordering_key => 'o')";
    early.batch_execute(&sql.replace("KEY", "early")).await.unwrap();
    gone.batch_execute(&sql.replace("KEY", "gone")).await.unwrap();
    let [a, b, c] = three(&db).await;
    promote(&ledger).await;
    assert_eq!(role(&db, a).await, "turn", "nobody waits for what is not committed");
    gone.batch_execute("rollback").await.unwrap();
    early.batch_execute("commit").await.unwrap();
    let early: Uuid = db.one("select action_id from outbox.action where retry_key = 'early'", &[]).await;
    for next in [early, a, b, c] {
        assert_eq!(send(&ledger, Evidence::Accepted).await, next);
    }
}

#[tokio::test]
async fn r27_a_turn_that_has_begun_is_not_taken_back() {
    let db = Database::new().await;
    let (ledger, early) = (db.ledger("w"), db.session().await);
    let sql = "begin; select outbox.enqueue('note.publish', '{}', 'early', ordering_key => 'o')";
    early.batch_execute(sql).await.unwrap();
    let a = queued(&db, "a", "o").await;
    let claimed = take_one(&ledger).await;
    early.batch_execute("commit").await.unwrap();
    assert!(is_quiet(&ledger).await);
    assert!(settle(&ledger, &claimed, Evidence::NoAnswer).await);
    promote(&ledger).await;
    assert_eq!(role(&db, a).await, "turn");
}

#[tokio::test]
async fn r27_a_tenant_that_enqueues_thousands_at_once_keeps_nobody_else_from_its_turn() {
    let db = Database::new().await;
    let ledger = db.ledger("w");
    db.run("select outbox.enqueue('note.publish', '{}', n::text, tenant => 'many', ordering_key => (n % 900)::text) from generate_series(1, 4000) n").await;
    let one = queued(&db, "one", "o").await;
    let promoted = ledger.promote().await.unwrap();
    assert!(promoted.moved <= 2000, "{promoted:?}");
    assert_eq!(role(&db, one).await, "turn");
    promote(&ledger).await;
    assert_eq!(db.count("select count(*) from outbox.delivery where turn").await, 901);
    // Each of them is the first of its queue.
    let first = "select count(*) from outbox.delivery d where turn and not exists (select from outbox.delivery e where e.lane = d.lane and e.place < d.place)";
    assert_eq!(db.count(first).await, 901);
}

#[tokio::test]
async fn r27_enqueueing_waits_for_no_dispatcher() {
    let db = Database::new().await;
    three(&db).await;
    let dispatcher = db.session().await;
    dispatcher.batch_execute("begin; select * from outbox.promote()").await.unwrap();
    db.run("set lock_timeout = '1ms'").await;
    queued(&db, "d", "o").await;
    db.run("reset lock_timeout").await;
    dispatcher.batch_execute("commit").await.unwrap();
    assert_eq!(
        role(&db, db.one("select action_id from outbox.action where retry_key = 'd'", &[]).await).await,
        "arrived"
    );
}

#[tokio::test]
async fn r27_an_ordering_key_that_could_never_be_kept_is_refused() {
    let db = Database::new().await;
    for (key, what) in [("''", "empty"), ("repeat('o', 501)", "longer than 500 bytes")] {
        let sql = format!("select outbox.enqueue('op', '{{}}', 'k', ordering_key => {key})");
        let (state, message) = db.refused(&sql, &[]).await;
        assert_eq!(state, "OB422");
        assert!(message.contains(what), "{message}");
    }
    let plain = db.enqueue(NOTE, "{}", "plain").await;
    assert_eq!(role(&db, plain).await, "none");
    assert!(db.delivery(plain).await["place"].is_null());
    // Another ordering key is another input.
    queued(&db, "k", "o").await;
    let (state, _) = db.refused("select outbox.enqueue('note.publish', '{}', 'k', ordering_key => 'o2')", &[]).await;
    assert_eq!(state, "OB409");
}

#[tokio::test]
async fn r27_turns_are_given_under_read_committed_only() {
    let db = Database::new().await;
    three(&db).await;
    let session = db.session().await;
    session.batch_execute("begin isolation level repeatable read").await.unwrap();
    let error = session.query("select outbox.promote()", &[]).await.unwrap_err();
    assert!(error.as_db_error().unwrap().message().contains("READ COMMITTED"), "{error:?}");
}
