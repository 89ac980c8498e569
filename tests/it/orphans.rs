//! Claims whose answers were lost: their worker knows that nothing of them was sent, and gives them back.

use std::time::Duration;

use outboxd::core::evidence::Evidence;
use outboxd::ledger::{ClaimMark, Ledger, Room, Want};
use outboxd::proving::fake::{Behaviour, Gate};
use serde_json::Value;
use uuid::Uuid;

use crate::support::ledger::{NOTE, PINS, asking, claim, claim_one, settle, want};
use crate::support::world::{SOON, keyed, lines_of};
use crate::support::{Database, Proxy, World};

const MINUTE: Duration = Duration::from_secs(60);

/// A world whose leases outlive the test by far, with a proxy on the way to the database.
async fn behind_a_proxy() -> (World, Proxy) {
    let mut world = World::new().await;
    world.operation = keyed("600s", "");
    let proxy = Proxy::start(&world.db.url).await.expect("a way");
    world.url = proxy.url.clone();
    (world, proxy)
}

/// Waits until an action is claimed.
async fn until_claimed(world: &World, action: Uuid) {
    world
        .until_true(&format!(
            "exists (select from outbox.delivery where action_id = '{action}' and state = 'dispatching')"
        ))
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn r11_a_claim_whose_answer_was_lost_is_given_back_at_once_and_is_no_doubt() {
    let (world, proxy) = behind_a_proxy().await;
    let daemon = world.daemon().await;
    proxy.hold_answers_with("lose me");
    let action = world.enqueue("lose me").await;
    until_claimed(&world, action).await;
    proxy.cut();
    proxy.let_go();
    world.until(action, "succeeded").await;
    let standing = world.standing(action).await;
    assert_eq!((world.evidence(action).await, standing.attempts), (vec!["accepted".to_owned()], 1));
    let seen = world.seen_of(action);
    assert_eq!((seen.len(), seen[0].header("outbox-fence")), (1, Some("2")), "nothing left under the lost claim");
    let given_back = lines_of(&daemon.log(), "claims given back");
    assert_eq!((given_back.len(), &given_back[0]["actions"]), (1, &Value::from(1)));
}

#[tokio::test(flavor = "multi_thread")]
async fn r11_a_claim_that_the_server_carries_out_after_it_was_looked_for_is_given_back_too() {
    let (world, proxy) = behind_a_proxy().await;
    world
        .db
        .run(
            "create function linger() returns trigger language plpgsql as $$ begin perform pg_sleep(3); return null; end $$;
             create trigger linger after update on outbox.delivery for each row
               when (new.state = 'dispatching' and new.fence = 1) execute function linger()",
        )
        .await;
    let _daemon = world.daemon().await;
    let action = world.enqueue("n-1").await;
    let lingers = "exists (select from pg_stat_activity where wait_event = 'PgSleep' and datname = current_database())";
    world.until_true(lingers).await;
    proxy.cut();
    // The next claims pass the row by, since it is locked.
    let passed_by = world.enqueue("n-2").await;
    world.until(action, "succeeded").await;
    assert_eq!(world.evidence(action).await, ["accepted"]);
    assert_eq!(world.seen_of(action)[0].header("outbox-fence"), Some("2"));
    world.until(passed_by, "succeeded").await;
    assert_eq!(world.fake.duplicates(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn r11_what_is_being_sent_is_never_given_back() {
    let (world, proxy) = behind_a_proxy().await;
    let gate = Gate::new();
    let held = gate.clone();
    world.fake.behave(move |seen, _| match seen.text().contains("slow") {
        true => Behaviour::accept().held_by(&held),
        false => Behaviour::accept(),
    });
    let daemon = world.daemon().await;
    let slow = world.enqueue("slow").await;
    world.fake.wait_seen(1).await.expect("under way");
    proxy.hold_answers_with("lose me");
    let lost = world.enqueue("lose me").await;
    until_claimed(&world, lost).await;
    proxy.cut();
    proxy.let_go();
    daemon.logged("claims given back", SOON).await.expect("given back");
    world.until(lost, "succeeded").await;
    assert_eq!(world.db.label(slow).await, "dispatching");
    gate.open();
    world.until(slow, "succeeded").await;
    assert_eq!((world.standing(slow).await.fence, world.seen_of(slow).len()), (1, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn r11_a_claim_that_hangs_when_the_drain_runs_out_is_given_back() {
    let (mut world, proxy) = behind_a_proxy().await;
    world.dispatcher.push_str("\ndrain_timeout = \"300ms\"");
    let mut daemon = world.daemon().await;
    proxy.hold_answers_with("hold me");
    let action = world.enqueue("hold me").await;
    until_claimed(&world, action).await;
    assert_eq!(daemon.terminate(SOON).await.expect("it ends").code(), Some(0));
    let standing = world.standing(action).await;
    assert_eq!((standing.state.as_str(), standing.fence, standing.attempts), ("pending", 1, 0));
    assert_eq!(world.fake.tally().requests, 0);
}

/// Claims under a mark whose answer is thrown away, and gives it back; how many rows that were.
async fn lose(ledger: &Ledger, wants: &[Want]) -> usize {
    let mark = ClaimMark::new();
    ledger.claim_as(mark, wants, Room::ANY).await.expect("a claim");
    ledger.give_back(ledger.worker(), mark, Duration::ZERO).await.expect("a statement")
}

/// A row without what every claim and settle changes.
async fn lasting(db: &Database, action: Uuid) -> Value {
    let mut row = db.delivery(action).await;
    for changes in ["fence", "due_at", "updated_at"] {
        row[changes].take();
    }
    row
}

#[tokio::test]
async fn r13_a_claim_given_back_leaves_the_row_as_it_was_but_for_its_fence() {
    let db = Database::new().await;
    let action = db.enqueue(NOTE, "{}", "k").await;
    let ledger = db.ledger("w");
    let before = lasting(&db, action).await;
    assert_eq!(lose(&ledger, &[want(NOTE)]).await, 1);
    assert_eq!((lasting(&db, action).await, db.count("select fence from outbox.delivery").await), (before, 1));
    // In doubt and to be sent again: the doubt, its attempt and what it was sent under stay.
    let claimed = claim_one(&ledger, &want(NOTE)).await;
    assert!(settle(&ledger, &claimed, Evidence::NoAnswer).await);
    db.run("update outbox.delivery set due_at = clock_timestamp()").await;
    let before = lasting(&db, action).await;
    assert_eq!(before["step"], "send");
    assert_eq!(lose(&ledger, &[want(NOTE)]).await, 1);
    let mut after = lasting(&db, action).await;
    // When the send before it ended at the latest: a little later than was known, never earlier.
    assert!(after["last_sent_at"].as_str() >= before["last_sent_at"].as_str());
    after["last_sent_at"] = before["last_sent_at"].clone();
    assert_eq!(after, before);
    assert_eq!(db.attempts(action).await.len(), 1);
    // To be asked about.
    db.run("update outbox.delivery set step = 'lookup', due_at = clock_timestamp()").await;
    let before = lasting(&db, action).await;
    assert_eq!(lose(&ledger, &[asking(want(NOTE))]).await, 1);
    assert_eq!(lasting(&db, action).await, before);
}

#[tokio::test]
async fn r21_an_operators_send_again_outlives_a_claim_given_back_but_not_a_send() {
    let db = Database::new().await;
    let action = db.enqueue(NOTE, "{}", "k").await;
    let ledger = db.ledger("w");
    let claimed = claim_one(&ledger, &want(NOTE)).await;
    assert!(settle(&ledger, &claimed, Evidence::NoAnswer).await);
    db.one::<String>("select outbox.resolve($1, 'send_again', 'ada', 'twice does no harm')", &[&action]).await;
    for _ in 0..2 {
        assert_eq!(lose(&ledger, &[want(NOTE)]).await, 1);
        assert_eq!(db.delivery(action).await["override"], true);
    }
    let claimed = claim_one(&ledger, &want(NOTE)).await;
    assert!(claimed.row.overridden);
    assert!(settle(&ledger, &claimed, Evidence::NoAnswer).await);
    db.run("update outbox.delivery set step = 'send', due_at = clock_timestamp()").await;
    assert_eq!(lose(&ledger, &[want(NOTE)]).await, 1);
    assert_eq!(db.delivery(action).await["override"], false, "it has been used up");
}

#[tokio::test]
async fn r24_nothing_is_given_back_of_another_claim_or_another_worker() {
    let db = Database::new().await;
    let (ours, theirs) = (db.ledger("w"), db.ledger("other"));
    for n in 0..3 {
        db.enqueue(NOTE, "{}", &format!("k-{n}")).await;
    }
    let one = Want { free: 1, ..want(NOTE) };
    let kept = claim(&ours, &one).await.pop().expect("a row");
    let mark = ClaimMark::new();
    assert_eq!(theirs.claim_as(mark, std::slice::from_ref(&one), Room::ANY).await.expect("a claim").claimed.len(), 1);
    assert_eq!(ours.give_back("w", mark, MINUTE).await.expect("a statement"), 0);
    assert_eq!(lose(&ours, std::slice::from_ref(&one)).await, 1);
    assert_eq!(db.count("select count(*) from outbox.delivery where state = 'dispatching'").await, 2);
    assert!(settle(&ours, &kept, Evidence::Accepted).await, "its claim stands");
    assert_eq!(theirs.give_back("other", mark, MINUTE).await.expect("a statement"), 1);
    assert_eq!(theirs.give_back("other", mark, MINUTE).await.expect("a statement"), 0);
}

#[tokio::test]
async fn every_attempt_of_a_claim_begins_with_its_mark_and_is_an_id_of_its_own() {
    let db = Database::new().await;
    for n in 0..20 {
        db.enqueue(NOTE, "{}", &format!("k-{n}")).await;
    }
    let mark = ClaimMark::new();
    let want = Want { free: 20, pins: PINS, ..want(NOTE) };
    let claimed = db.ledger("w").claim_as(mark, &[want], Room::ANY).await.expect("a claim").claimed;
    let attempts: std::collections::BTreeSet<Uuid> = claimed.iter().map(|claimed| claimed.row.attempt.0).collect();
    assert_eq!(attempts.len(), 20);
    assert!(attempts.iter().all(|attempt| ClaimMark::of(*attempt) == mark));
}
