//! Compensations (R7): actions of their own, sent only where what they compensate took effect.

use outboxd::core::action::{Step, Stop};
use outboxd::core::evidence::Evidence;
use outboxd::core::late::Testimony;
use outboxd::ledger::{Claimed, Ledger, next_due_in};
use outboxd::proving::fake::{Behaviour, Gate};
use uuid::Uuid;

use crate::support::ledger::{NOTE, claim, claim_one, lapsing, settle, testify, want};
use crate::support::world::keyed;
use crate::support::{Database, World};

const UNDO: &str = "note.retract";
const COMPENSATE: &str = "select action_id from outbox.enqueue('note.retract', '{}', 'undo', compensates => $1)";
const WAITS: &str = "Committed; waits until what it compensates is known to have happened.";

async fn undo(db: &Database, original: Uuid) -> Uuid {
    db.one(COMPENSATE, &[&original]).await
}

async fn due(db: &Database) {
    db.run("update outbox.delivery set due_at = now() where operation = 'note.retract' and closed_at is null").await;
}

async fn sentence(db: &Database, action: Uuid) -> String {
    db.one("select sentence from outbox.status where action_id = $1", &[&action]).await
}

/// An original that is being sent, and its compensation.
async fn both(db: &Database) -> (Ledger, Claimed, Uuid) {
    let original = db.enqueue(NOTE, "{}", "k").await;
    let compensation = undo(db, original).await;
    let ledger = db.ledger("w");
    let claimed = claim_one(&ledger, &want(NOTE)).await;
    assert_eq!(claimed.intent.id.0, original);
    (ledger, claimed, compensation)
}

#[tokio::test]
async fn r7_a_compensation_names_an_action_of_its_tenant() {
    let db = Database::new().await;
    let original = db.enqueue(NOTE, "{}", "k").await;
    let foreign: Uuid =
        db.one("select action_id from outbox.enqueue('note.publish', '{}', 'k', tenant => 'other')", &[]).await;
    for wrong in [foreign, Uuid::nil()] {
        let (state, message) = db.refused(COMPENSATE, &[&wrong]).await;
        assert_eq!(state, "OB422", "{message}");
        assert!(message.contains("compensates names no action of its tenant"), "{message}");
    }
    assert_eq!(db.count("select count(*) from outbox.action where operation = 'note.retract'").await, 0);
    let compensation = undo(&db, original).await;
    // The same again is the first, also when what it compensates has been forgotten since.
    db.run("delete from outbox.action where operation = 'note.publish'").await;
    let row = db.client.query_one(&COMPENSATE.replace("action_id", "action_id, created"), &[&original]).await.unwrap();
    assert_eq!((row.get::<_, Uuid>(0), row.get::<_, bool>(1)), (compensation, false));
}

#[tokio::test]
async fn r7_an_original_of_the_same_transaction_or_with_only_its_tombstone_left_will_do() {
    let db = Database::new().await;
    let sql = "select outbox.enqueue('note.retract', '{}', 'undo', compensates => e.action_id)
        from outbox.enqueue('note.publish', '{}', 'k') e";
    db.run(&format!("begin; {sql}; commit")).await;
    assert_eq!(db.count("select count(*) from outbox.action where compensates is not null").await, 1);
    for (state, step, stop) in
        [("succeeded", Step::Send, None), ("terminal_failure", Step::Conclude, Some(Stop::NothingToCompensate))]
    {
        let db = Database::new().await;
        let pruned: Uuid = db.one(
            "insert into outbox.tombstone (action_id, tenant, principal, operation, retry_key, input_hash, state, created_at, closed_at)
             values (gen_random_uuid(), '', '', 'note.publish', 'k', sha256(''), $1, now(), now()) returning action_id", &[&state]).await;
        undo(&db, pruned).await;
        let row = claim_one(&db.ledger("w"), &want(UNDO)).await.row;
        assert_eq!((row.step, row.stop), (step, stop));
    }
}

#[tokio::test]
async fn r7_it_waits_while_the_original_is_open_or_unknown_and_that_costs_no_attempt_and_no_time() {
    let db = Database::new().await;
    let original = db.enqueue(NOTE, "{}", "k").await;
    let compensation = undo(&db, original).await;
    let ledger = db.ledger("w");
    let waits = async || {
        due(&db).await;
        assert!(claim(&ledger, &want(UNDO)).await.is_empty());
        let row = db.delivery(compensation).await;
        assert_eq!((&row["state"], &row["step"]), (&"pending".into(), &"send".into()));
        assert_eq!((&row["fence"], &row["attempts"]), (&0.into(), &0.into()));
        assert!(row["attempt_id"].is_null() && row["first_sent_at"].is_null(), "{row}");
        assert_eq!(row["budget_from"], row["due_at"], "its time has not begun");
        assert_eq!(sentence(&db, compensation).await, WAITS);
        let next = next_due_in(&ledger, &[(UNDO, false, None)]).await.unwrap().expect("looked at again").as_millis();
        assert!((4000..=5000).contains(&next), "in {next} ms");
    };
    waits().await;
    let claimed = claim_one(&ledger, &want(NOTE)).await;
    waits().await;
    assert!(settle(&ledger, &claimed, Evidence::NoAnswer).await);
    waits().await;
    db.run("update outbox.delivery set step = 'review', due_at = null where operation = 'note.publish'").await;
    waits().await;

    db.one::<String>("select outbox.resolve($1, 'happened', 'ann', 'saw it')", &[&original]).await;
    due(&db).await;
    let row = claim_one(&ledger, &want(UNDO)).await.row;
    assert_eq!((row.step, row.stop, row.attempts), (Step::Send, None, 0));
    assert!(sentence(&db, compensation).await.starts_with("Sent "));
}

#[tokio::test]
async fn r7_it_is_sent_once_the_original_has_succeeded() {
    let db = Database::new().await;
    let (ledger, original, compensation) = both(&db).await;
    assert!(settle(&ledger, &original, Evidence::Accepted).await);
    let claimed = claim_one(&ledger, &want(UNDO)).await;
    assert_eq!((claimed.intent.id.0, claimed.row.step), (compensation, Step::Send));
    assert!(settle(&ledger, &claimed, Evidence::Accepted).await);
    assert_eq!(db.label(compensation).await, "succeeded");
}

#[tokio::test]
async fn r7_it_is_closed_unsent_when_the_original_did_not_happen() {
    let db = Database::new().await;
    let (ledger, original, compensation) = both(&db).await;
    assert!(settle(&ledger, &original, Evidence::Rejected { replayed: false }).await);
    let lost = claim_one(&ledger, &lapsing(want(UNDO))).await;
    assert_eq!((lost.row.step, lost.row.stop), (Step::Conclude, Some(Stop::NothingToCompensate)));
    // A worker that is lost over it changes nothing.
    let claimed = claim_one(&ledger, &want(UNDO)).await;
    assert_eq!((claimed.row.step, claimed.row.stop), (Step::Conclude, Some(Stop::NothingToCompensate)));
    assert!(settle(&ledger, &claimed, Evidence::Stopped(Stop::NothingToCompensate)).await);
    let row = db.delivery(compensation).await;
    assert_eq!((&row["state"], &row["reason"]), (&"terminal_failure".into(), &"nothing_to_compensate".into()));
    let (state, message) = db.refused("select outbox.retry($1, 'ann', 'why')", &[&compensation]).await;
    assert!(state == "OB412" && message.contains("what it compensates did not happen"), "{message}");
}

/// Closed as not delivered, and then confirmed: whether there is something to compensate, a person decides.
#[tokio::test]
async fn r7_a_contradicted_original_is_waited_for_until_somebody_has_decided() {
    for (decision, step, stop) in
        [("happened", Step::Send, None), ("did_not_happen", Step::Conclude, Some(Stop::NothingToCompensate))]
    {
        let db = Database::new().await;
        let original = db.enqueue(NOTE, "{}", "k").await;
        let ledger = db.ledger("w");
        let slow = claim_one(&ledger, &lapsing(want(NOTE))).await;
        let next = claim_one(&ledger, &want(NOTE)).await;
        assert!(settle(&ledger, &next, Evidence::Lapsed).await);
        db.run("update outbox.delivery set last_sent_at = first_sent_at, step = 'review', due_at = null").await;
        db.one::<String>("select outbox.resolve($1, 'did_not_happen', 'ann', 'why')", &[&original]).await;
        assert_eq!(testify(&ledger, &slow, Evidence::Accepted).await, Testimony::Contradicts);
        undo(&db, original).await;
        assert!(claim(&ledger, &want(UNDO)).await.is_empty());
        db.one::<String>("select outbox.resolve($1, $2, 'ann', 'looked')", &[&original, &decision]).await;
        due(&db).await;
        let row = claim_one(&ledger, &want(UNDO)).await.row;
        assert_eq!((row.step, row.stop), (step, stop), "{decision}");
    }
}

#[tokio::test]
async fn r22_a_compensation_that_waits_can_be_cancelled() {
    let db = Database::new().await;
    let original = db.enqueue(NOTE, "{}", "k").await;
    let compensation = undo(&db, original).await;
    let ledger = db.ledger("w");
    assert!(claim(&ledger, &want(UNDO)).await.is_empty());
    assert_eq!(db.one::<String>("select outbox.cancel($1, 'ann', 'why')", &[&compensation]).await, "cancelled");
    let row = claim_one(&ledger, &want(UNDO)).await.row;
    assert_eq!((row.step, row.stop), (Step::Conclude, Some(Stop::Cancelled)));
}

/// What has left is reconciled, whatever becomes of the original.
#[tokio::test]
async fn r7_a_compensation_in_doubt_is_not_put_off() {
    let db = Database::new().await;
    let (ledger, original, compensation) = both(&db).await;
    assert!(settle(&ledger, &original, Evidence::Accepted).await);
    let claimed = claim_one(&ledger, &want(UNDO)).await;
    assert!(settle(&ledger, &claimed, Evidence::NoAnswer).await);
    db.run("delete from outbox.action where operation = 'note.publish'; delete from outbox.delivery where operation = 'note.publish'").await;
    due(&db).await;
    let again = claim_one(&ledger, &want(UNDO)).await;
    assert_eq!((again.intent.id.0, again.row.step, again.row.stop), (compensation, Step::Send, None));
}

#[tokio::test]
async fn r7_compensations_that_wait_do_not_hold_up_what_does_not() {
    let db = Database::new().await;
    let original = db.enqueue(NOTE, "{}", "k").await;
    db.client
        .query(
            "select outbox.enqueue('note.retract', '{}', n::text, compensates => case when n <= 25 then $1::uuid end)
             from generate_series(1, 30) n",
            &[&original],
        )
        .await
        .unwrap();
    let ledger = db.ledger("w");
    let mut seen = Vec::new();
    for _ in 0..3 {
        let claims = ledger.claim(&[want(UNDO)]).await.unwrap();
        seen.push((claims.claimed.len(), claims.next_after[0].put_off));
    }
    assert_eq!(seen, [(0, 10), (0, 10), (5, 5)], "ten at a time are put off, and then are out of the way");
    // The longer one waits, the more seldom it is looked at; at most a minute apart.
    for (age, least, most) in [("8 min", 58_000, 60_000), ("9 days", 59_000, 60_000), ("4 min", 29_000, 30_100)] {
        db.run(&format!(
            "set session_replication_role = replica; update outbox.action set created_at = now() - interval '{age}'"
        ))
        .await;
        due(&db).await;
        while ledger.claim(&[want(UNDO)]).await.unwrap().next_after[0].put_off > 0 {}
        let next = next_due_in(&ledger, &[(UNDO, false, None)]).await.unwrap().expect("a next look").as_millis();
        assert!((least..=most).contains(&next), "{age}: {next} ms");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn r7_an_original_and_its_compensation_arrive_in_that_order() {
    let mut world = World::new().await;
    world.operation = keyed("10s", "");
    world.also(UNDO, "/retractions", &keyed("1s", ""));
    let gate = Gate::new();
    let held = gate.clone();
    world.fake.behave(move |seen, _| match seen.path.as_str() {
        "/notes" => Behaviour::accept().held_by(&held),
        _ => Behaviour::accept(),
    });
    let original = world.enqueue("n-1").await;
    let refused = world.enqueue("n-2").await;
    world.db.one::<String>("select outbox.cancel($1, 'ann', 'a typo')", &[&refused]).await;
    let compensation = undo(&world.db, original).await;
    let needless: Uuid = world
        .db
        .one("select action_id from outbox.enqueue('note.retract', '{}', 'undo-2', compensates => $1)", &[&refused])
        .await;
    let _daemon = world.daemon().await;
    world.fake.wait_seen(1).await.expect("the original is under way");
    world
        .until_true(
            "(select budget_from > created_at from outbox.delivery join outbox.action using (action_id)
        where retry_key = 'undo')",
        )
        .await;
    gate.open();
    world.until(original, "succeeded").await;
    due(&world.db).await;
    world.until(compensation, "succeeded").await;
    due(&world.db).await;
    world.until(needless, "terminal_failure").await;
    assert_eq!(world.standing(needless).await.reason.as_deref(), Some("nothing_to_compensate"));
    assert_eq!((world.fake.tally().requests, world.seen_of(needless).len()), (2, 0));
}

#[tokio::test]
async fn r7_an_original_that_is_tried_again_brings_its_compensation_back() {
    let db = Database::new().await;
    let (ledger, original, compensation) = both(&db).await;
    assert!(settle(&ledger, &original, Evidence::Rejected { replayed: false }).await);
    let needless = claim_one(&ledger, &want(UNDO)).await;
    assert!(settle(&ledger, &needless, Evidence::Stopped(Stop::NothingToCompensate)).await);
    assert_eq!(db.label(compensation).await, "terminal_failure");

    db.one::<String>("select outbox.retry($1, 'ann', 'fixed')", &[&original.intent.id.0]).await;
    assert_eq!(db.label(compensation).await, "pending");
    assert!(claim(&ledger, &want(UNDO)).await.is_empty(), "it waits again");
    let again = claim_one(&ledger, &want(NOTE)).await;
    assert!(settle(&ledger, &again, Evidence::Accepted).await);
    due(&db).await;
    let row = claim_one(&ledger, &want(UNDO)).await.row;
    assert_eq!((row.step, row.stop), (Step::Send, None));
    let decision = db.attempts(compensation).await.into_iter().find(|h| h["kind"] == "decision").expect("on record");
    assert_eq!((&decision["evidence"], &decision["decided_by"]), (&"retry".into(), &"ann".into()));
}

#[tokio::test(flavor = "multi_thread")]
async fn r7_many_that_wait_keep_none_waiting_that_need_not() {
    let mut world = World::new().await;
    world.also("note.retract", "/retractions", &keyed("1s", ""));
    world.dispatcher = "lease_margin = \"500ms\"\npoll_interval = \"20s\"\nmax_in_flight = 8".into();
    let far = "select outbox.enqueue('note.publish', '{}', 'far', not_before => now() + interval '1 day')";
    world.db.run(far).await;
    let original: Uuid = world.db.one("select action_id from outbox.action where retry_key = 'far'", &[]).await;
    let waiting = "select count(e.action_id) from generate_series(1, 300) i,
        outbox.enqueue('note.retract', '{}', 'w' || i, compensates => $1) e";
    world.db.one::<i64>(waiting, &[&original]).await;
    let ready =
        "select count(e.action_id) from generate_series(1, 20) i, outbox.enqueue('note.retract', '{}', 'r' || i) e";
    world.db.one::<i64>(ready, &[]).await;
    let _daemon = world.daemon().await;
    world.until_count("select count(*) from outbox.delivery where state = 'succeeded'", 20).await;
    assert_eq!(world.fake.tally().requests, 20);
}
