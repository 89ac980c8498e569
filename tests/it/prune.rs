//! Pruning (R5): what is closed and old leaves its identity and its end, and much later nothing.

use std::time::Duration;

use outboxd::core::evidence::Evidence;
use outboxd::ledger::{Keep, Prunable, Pruned};
use uuid::Uuid;

use crate::support::Database;
use crate::support::database::{pid, sqlstate};
use crate::support::ledger::{NOTE, claim, settle, want};

const DAY: Duration = Duration::from_secs(86_400);
const ENQUEUE: &str = "select action_id, created, state from outbox.enqueue('note.publish', '{}', $1)";

/// A month of payload, a year of identity.
const KEEP: Keep<'_> = Keep { operation: NOTE, payload: DAY.saturating_mul(30), identity: DAY.saturating_mul(365) };

fn done(actions: u64, tombstones: u64) -> Pruned {
    Pruned::Done { actions, tombstones }
}

async fn prune(db: &Database) -> Pruned {
    db.ledger("janitor").prune(&[KEEP]).await.expect("a batch")
}

/// Closes every open action, as it would have been so long ago.
async fn close(db: &Database, state: &str, ago: &str) {
    db.run(&format!(
        "update outbox.delivery set state = 'outcome_unknown', doubt_since = now() where closed_at is null;
         update outbox.delivery set state = '{state}', step = 'conclude', due_at = null, doubt_since = null,
           doubt_attempt = null, receipt = 'r-1',
           closed_at = now() - interval '{ago}' where closed_at is null"
    ))
    .await;
}

/// An action that was closed so long ago.
async fn closed(db: &Database, key: &str, state: &str, ago: &str) -> Uuid {
    let action = db.enqueue(NOTE, "{}", key).await;
    close(db, state, ago).await;
    action
}

async fn count(db: &Database, table: &str) -> i64 {
    db.count(&format!("select count(*) from outbox.{table}")).await
}

#[tokio::test]
async fn r5_a_pruned_action_leaves_its_identity_and_its_end_and_a_replay_gets_them() {
    for state in ["succeeded", "terminal_failure"] {
        let db = Database::new().await;
        let action = db.enqueue(NOTE, "{}", "k").await;
        let ledger = db.ledger("w");
        let claimed = claim(&ledger, &want(NOTE)).await;
        assert!(settle(&ledger, &claimed[0], Evidence::NoAnswer).await);
        db.run("select outbox.cancel(action_id, 'ann', 'why') from outbox.action").await;
        close(&db, state, "31 days").await;
        assert_eq!(prune(&db).await, done(1, 0));
        for table in ["action", "delivery", "attempt", "cancellation", "status"] {
            assert_eq!(count(&db, table).await, 0, "{table}");
        }
        let left: String = db
            .one("select concat_ws(' ', action_id, operation, retry_key, state, receipt) from outbox.tombstone", &[])
            .await;
        assert_eq!(left, format!("{action} note.publish k {state} r-1"));

        let again = db.client.query_one(ENQUEUE, &[&"k"]).await.unwrap();
        assert_eq!((again.get::<_, Uuid>(0), again.get::<_, bool>(1), again.get::<_, &str>(2)), (action, false, state));
        assert_eq!(count(&db, "action").await, 0);
        assert_eq!(db.refused("select outbox.enqueue('note.publish', '{\"other\":1}', 'k')", &[]).await.0, "OB409");
        assert_eq!(prune(&db).await, done(0, 0));
    }
}

#[tokio::test]
async fn r5_what_is_forgotten_is_remembered_to_be_forgotten() {
    let db = Database::new().await;
    closed(&db, "old", "succeeded", "366 days").await;
    let created: std::time::SystemTime = db.one("select created_at from outbox.action", &[]).await;
    assert_eq!(prune(&db).await, done(1, 1), "both in one batch");
    assert_eq!(count(&db, "tombstone").await, 0);
    let forgets = "select forgets_before from outbox.operation where operation = 'note.publish'";
    assert_eq!(db.one::<std::time::SystemTime>(forgets, &[]).await, created);
    // A day for the clock of whoever says when it was requested.
    let requested =
        |when: &str| format!("select outbox.enqueue('note.publish', '{{}}', 'old', requested_at => {when})");
    let (state, _) = db.refused(&requested("now() - interval '1 h'"), &[]).await;
    assert_eq!(state, "OB410");
    db.run(&requested("now() + interval '2 days'")).await;

    // What was forgotten once is not known again, whatever is forgotten next.
    db.run("update outbox.operation set forgets_before = now() + interval '1 h'").await;
    let before: std::time::SystemTime = db.one(forgets, &[]).await;
    close(&db, "succeeded", "366 days").await;
    assert_eq!(prune(&db).await, done(1, 1));
    assert_eq!(db.one::<std::time::SystemTime>(forgets, &[]).await, before);
}

#[tokio::test]
async fn r5_each_operation_is_kept_as_long_as_it_says_and_one_that_says_nothing_for_ever() {
    let db = Database::new().await;
    for operation in ["short", "long", "unnamed"] {
        db.enqueue(operation, "{}", "k").await;
    }
    close(&db, "succeeded", "10 days").await;
    let keep = |operation, payload| Keep { operation, payload: DAY * payload, identity: DAY * 365 };
    let keeps = [keep("short", 9), keep("long", 11), keep("never enqueued", 0)];
    let ledger = db.ledger("janitor");
    let prunable = ledger.prunable(&keeps).await.unwrap();
    assert_eq!(prunable, Prunable { actions: 1, tombstones: 0, kept: 0 });
    assert_eq!(ledger.prune(&keeps).await.unwrap(), done(1, 0));
    assert_eq!(db.one::<String>("select operation from outbox.tombstone", &[]).await, "short");
    assert_eq!(ledger.prune(&[]).await.unwrap(), done(0, 0));
    assert_eq!(count(&db, "action").await, 2);
}

#[tokio::test]
async fn r5_an_unresolved_action_is_never_pruned_however_old() {
    let db = Database::new().await;
    let mut stood = Vec::new();
    for (state, step, due, doubt) in [
        ("pending", "send", "now()", "null"),
        ("retryable_failure", "send", "now()", "null"),
        ("dispatching", "send", "now()", "null"),
        ("outcome_unknown", "lookup", "now()", "now()"),
        ("outcome_unknown", "review", "null", "now()"),
    ] {
        let action = db.enqueue(NOTE, "{}", &format!("{state} {step}")).await;
        let held = if state == "dispatching" { "'w'" } else { "null" };
        db.run(&format!(
            "set session_replication_role = replica;
             update outbox.delivery set state = '{state}', step = '{step}', due_at = {due}, doubt_since = {doubt},
               worker = {held}, attempt_id = gen_random_uuid(), updated_at = now() - interval '9 years'
               where action_id = '{action}';
             reset session_replication_role"
        ))
        .await;
        stood.push(db.delivery(action).await);
    }
    let keep = [Keep { operation: NOTE, payload: Duration::ZERO, identity: Duration::ZERO }];
    assert_eq!(db.ledger("janitor").prune(&keep).await.unwrap(), done(0, 0));
    for row in stood {
        let action = Uuid::parse_str(row["action_id"].as_str().unwrap()).unwrap();
        assert_eq!(db.delivery(action).await, row);
    }
}

#[tokio::test]
async fn r25_what_was_contradicted_stays_until_a_person_has_decided() {
    for (decision, end) in [("happened", "succeeded"), ("did_not_happen", "terminal_failure")] {
        let db = Database::new().await;
        let action = closed(&db, "k", "terminal_failure", "400 days").await;
        db.run(
            "insert into outbox.attempt (attempt_id, action_id, number, kind, fence, finished_at, evidence, verdict)
            select gen_random_uuid(), action_id, 1, 'late', 1, now(), 'accepted', 'contradicts' from outbox.action",
        )
        .await;
        assert_eq!(prune(&db).await, done(0, 0));
        let prunable = db.ledger("janitor").prunable(&[KEEP]).await.unwrap();
        assert_eq!(prunable, Prunable { actions: 0, tombstones: 0, kept: 1 });
        db.one::<String>("select outbox.resolve($1, $2, 'ann', 'looked')", &[&action, &decision]).await;
        let keep = [Keep { identity: DAY * 500, ..KEEP }];
        assert_eq!(db.ledger("janitor").prune(&keep).await.unwrap(), done(1, 0));
        assert_eq!(db.one::<String>("select state from outbox.tombstone", &[]).await, end);
        assert_eq!(db.one::<bool>("select outbox.took_effect($1)", &[&action]).await, decision == "happened");
    }
}

#[tokio::test]
async fn r7_what_an_open_compensation_points_to_stays() {
    let db = Database::new().await;
    let original = closed(&db, "k", "succeeded", "400 days").await;
    let undo = "select outbox.enqueue('note.retract', '{}', $2, compensates => $1)";
    db.client.query(undo, &[&original, &"undo"]).await.unwrap();
    assert_eq!(prune(&db).await, done(0, 0));
    assert_eq!(db.ledger("janitor").prunable(&[KEEP]).await.unwrap().kept, 1);
    close(&db, "succeeded", "1 h").await;
    let ledger = db.ledger("janitor");
    assert_eq!(ledger.prune(&[Keep { identity: DAY * 500, ..KEEP }]).await.unwrap(), done(1, 0));
    // Nor is the end of one that is compensated only now forgotten.
    db.client.query(undo, &[&original, &"undo again"]).await.unwrap();
    assert_eq!(prune(&db).await, done(0, 0));
    assert_eq!(ledger.prunable(&[KEEP]).await.unwrap(), Prunable { actions: 0, tombstones: 0, kept: 1 });
    close(&db, "succeeded", "1 h").await;
    assert_eq!(prune(&db).await, done(0, 1));
}

/// Not committed yet, so that no statement can see it; its lock is seen.
#[tokio::test]
async fn r7_what_is_being_compensated_just_now_stays_too() {
    for pruned_before in [false, true] {
        let db = Database::new().await;
        let original = closed(&db, "k", "succeeded", "400 days").await;
        let ledger = db.ledger("janitor");
        if pruned_before {
            assert_eq!(ledger.prune(&[Keep { identity: DAY * 500, ..KEEP }]).await.unwrap(), done(1, 0));
        }
        let application = db.session().await;
        application.batch_execute("begin").await.unwrap();
        let undo = "select outbox.enqueue('note.retract', '{}', 'undo', compensates => $1)";
        application.query(undo, &[&original]).await.unwrap();
        assert_eq!(prune(&db).await, done(0, 0));
        application.batch_execute("rollback").await.unwrap();
        assert_eq!(prune(&db).await, done(u64::from(!pruned_before), 1));
    }
}

#[tokio::test]
async fn r5_b57_a_batch_is_a_thousand_and_reads_only_what_is_old_until_nothing_is_left() {
    let db = Database::new().await;
    db.run("select outbox.enqueue('note.publish', '{}', n::text) from generate_series(1, 2300) n").await;
    close(&db, "terminal_failure", "31 days").await;
    db.run("select outbox.enqueue('note.publish', '{}', 'recent' || n) from generate_series(1, 5000) n").await;
    close(&db, "succeeded", "29 days").await;
    for table in ["delivery", "action", "attempt"] {
        db.run(&format!("vacuum analyze outbox.{table}")).await;
    }
    let ledger = db.ledger("janitor");
    assert_eq!(ledger.prunable(&[KEEP]).await.unwrap().actions, 2300);
    for left in [1000, 1000, 300, 0] {
        let session = db.session().await;
        session.batch_execute("begin").await.unwrap();
        let sql = "select actions from outbox.prune(array['note.publish'], array[interval '30 days'], array[interval '365 days'])";
        let actions: i64 = session.query_one(sql, &[]).await.unwrap().get(0);
        assert_eq!(actions, left);
        let read = "select coalesce(sum(seq_scan), 0)::bigint, coalesce(sum(idx_tup_fetch), 0)::bigint
            from pg_stat_xact_user_tables where schemaname = 'outbox'";
        let row = session.query_one(read, &[]).await.unwrap();
        let (scans, fetched): (i64, i64) = (row.get(0), row.get(1));
        assert_eq!(scans, 0, "a whole table was read");
        assert!(fetched <= 12 * (left + 10), "{fetched} rows were read for {left}");
        session.batch_execute("commit").await.unwrap();
    }
    assert_eq!((count(&db, "delivery").await, count(&db, "tombstone").await), (5000, 2300));
}

#[tokio::test]
async fn r5_one_janitor_prunes_at_a_time() {
    let db = Database::new().await;
    closed(&db, "k", "succeeded", "31 days").await;
    let other = db.session().await;
    other.batch_execute("begin; select outbox.prune('{}', '{}', '{}')").await.unwrap();
    assert_eq!(prune(&db).await, Pruned::Busy);
    other.batch_execute("commit").await.unwrap();
    assert_eq!(prune(&db).await, done(1, 0));
}

#[tokio::test]
async fn r25_a_row_that_late_testimony_has_locked_is_left_for_the_next_batch() {
    let db = Database::new().await;
    closed(&db, "k", "succeeded", "31 days").await;
    let testifying = db.session().await;
    testifying.batch_execute("begin; select from outbox.delivery for update").await.unwrap();
    assert_eq!(prune(&db).await, done(0, 0));
    testifying.batch_execute("commit").await.unwrap();
    assert_eq!(prune(&db).await, done(1, 0));
}

/// The insert waits for the prune; then it is the tombstone's, or the action's again where the prune has rolled back.
#[tokio::test]
async fn r5_an_enqueue_beside_a_prune_of_its_key_never_creates_a_second() {
    for (end, isolation, answer) in [
        ("commit", "read committed", Ok("succeeded")),
        ("rollback", "read committed", Ok("succeeded")),
        ("commit", "repeatable read", Ok("succeeded")),
    ] {
        let db = Database::new().await;
        let action = closed(&db, "k", "succeeded", "31 days").await;
        let janitor = db.session().await;
        janitor
            .batch_execute("begin; select outbox.prune(array['note.publish'], array[interval '30 days'], array[interval '365 days'])")
            .await
            .unwrap();
        let application = db.session().await;
        application.batch_execute(&format!("begin isolation level {isolation}")).await.unwrap();
        let enqueue = application.query_one(ENQUEUE, &[&"k"]);
        let ended = async { janitor.batch_execute(end).await.unwrap() };
        let (row, ()) = tokio::join!(enqueue, ended);
        let row = row.map(|row| (row.get::<_, Uuid>(0), row.get::<_, bool>(1), row.get::<_, String>(2)));
        let row = row.map_err(|error| sqlstate(&error));
        assert_eq!(row, answer.map(|state: &str| (action, false, state.to_owned())), "{end} under {isolation}");
        application.batch_execute("commit").await.unwrap();
    }
}

/// A snapshot that is older than the prune cannot see the tombstone, and the insert meets no action any more.
#[tokio::test]
async fn r5_an_enqueue_whose_snapshot_knows_neither_is_told_to_try_again() {
    let db = Database::new().await;
    let application = db.session().await;
    application.batch_execute("begin isolation level repeatable read; select").await.unwrap();
    application.query("select 1 from outbox.action", &[]).await.unwrap();
    let action = closed(&db, "k", "succeeded", "31 days").await;
    assert_eq!(prune(&db).await, done(1, 0));
    let answer = application.query_one(ENQUEUE, &[&"k"]).await;
    let created = answer.map(|row| row.get::<_, bool>(1)).map_err(|error| sqlstate(&error));
    let committed = application.batch_execute("commit").await;
    assert!(
        created == Err("40001".into()) || committed.is_err(),
        "created {created:?} beside the tombstone of {action}"
    );
}

/// Many enqueue the same few keys again and again while they are closed and pruned under them.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn r5_no_key_creates_twice_while_everything_is_pruned_beside_enqueues_and_claims() {
    let db = Database::new().await;
    let mut applications = Vec::new();
    for _ in 0..4 {
        let session = db.session().await;
        applications.push(tokio::spawn(async move {
            let mut created = 0;
            for n in 0..400 {
                match session.query_one(ENQUEUE, &[&format!("key {}", n % 100)]).await {
                    Ok(row) => created += i32::from(row.get::<_, bool>(1)),
                    Err(error) => assert_eq!(sqlstate(&error), "40001"),
                }
            }
            created
        }));
    }
    let ledger = db.ledger("w");
    let keep = [Keep { operation: NOTE, payload: Duration::ZERO, identity: DAY }];
    let mut pruned = 0;
    while pruned < 100 {
        for claimed in claim(&ledger, &want(NOTE)).await {
            assert!(settle(&ledger, &claimed, Evidence::Accepted).await);
        }
        if let Pruned::Done { actions, .. } = ledger.prune(&keep).await.unwrap() {
            pruned += actions;
        }
    }
    let mut created = 0;
    for application in applications {
        created += application.await.unwrap();
    }
    assert_eq!((created, pruned, count(&db, "tombstone").await, count(&db, "action").await), (100, 100, 100, 0));
}

/// What a prune has locked, and then what another transaction has committed before it deletes.
#[tokio::test]
async fn r7_a_compensation_that_is_committed_while_a_batch_is_being_locked_is_seen() {
    let db = Database::new().await;
    let original = closed(&db, "k", "succeeded", "400 days").await;
    closed(&db, "last", "succeeded", "399 days").await;
    // The batch waits between its two statements: at a row that it locks after the original's.
    db.run(
        "create function public.gate(text) returns boolean language plpgsql as $$ begin
           if $1 = 'last' then perform pg_advisory_lock_shared(42); perform pg_advisory_unlock_shared(42); end if; return true; end $$",
    )
    .await;
    let body: String = db.one("select pg_get_functiondef('outbox.prune'::regproc)", &[]).await;
    let gated = body.replacen(
        "where d.operation = k.operation and",
        "where public.gate(a.retry_key) and d.operation = k.operation and",
        1,
    );
    assert_ne!(body, gated, "no place for a gate");
    db.run(&gated).await;
    db.run("select pg_advisory_lock(42)").await;
    let janitor = db.session().await;
    let waiting = pid(&janitor).await;
    let batch = tokio::spawn(async move {
        let sql = "select actions from outbox.prune(array['note.publish'], array[interval '30 days'], array[interval '9 years'])";
        janitor.query_one(sql, &[]).await.unwrap().get::<_, i64>(0)
    });
    db.until_blocked(waiting).await;
    // Its snapshot is taken, and the original is locked; the compensation would wait for it, so it is written by hand.
    db.client
        .query(
            "insert into outbox.action (action_id, operation, retry_key, input_hash, compensates, created_at)
             select gen_random_uuid(), 'note.retract', 'undo', input_hash, action_id, now() from outbox.action where action_id = $1",
            &[&original],
        )
        .await
        .unwrap();
    db.run(
        "insert into outbox.delivery (action_id, operation, due_at, budget_from, updated_at)
         select action_id, operation, now(), now(), now() from outbox.action where compensates is not null",
    )
    .await;
    // Not in one go with the insert: it would commit after the gate has opened.
    db.run("select pg_advisory_unlock(42)").await;
    assert_eq!(batch.await.unwrap(), 1, "only the other one");
    assert_eq!(db.one::<String>("select retry_key from outbox.tombstone", &[]).await, "last");
}
