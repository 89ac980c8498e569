//! Serial queues (R27), by daemons: in order through lost answers and kills, and nobody sleeps through a turn.

use std::collections::HashMap;
use std::time::Duration;

use outboxd::proving::fake::{Behaviour, Gate, Seen};
use rustix::process::Signal;
use uuid::Uuid;

use crate::support::World;
use crate::support::queue::role;
use crate::support::world::{SOON, keyed, lines_of};

const HALF_A_MINUTE: &str = "lease_margin = \"500ms\"\npoll_interval = \"30s\"";

/// So many notes in each queue, in the order of their keys.
async fn enqueue(world: &World, queues: i32, each: i32) {
    let sql = "select outbox.enqueue('note.publish', json_build_object('q', q, 'n', n), q || '-' || n, ordering_key => q::text)
        from generate_series(1, $2) n, generate_series(1, $1) q";
    world.db.client.execute(sql, &[&queues, &each]).await.expect("enqueued");
}

/// Of each queue the numbers as they arrived, without repeats of the one before.
fn arrived(seen: &[Seen]) -> HashMap<i64, Vec<i64>> {
    let mut all: HashMap<i64, Vec<i64>> = HashMap::new();
    for seen in seen {
        let body: serde_json::Value = serde_json::from_slice(&seen.body).expect("JSON");
        let numbers = all.entry(body["q"].as_i64().expect("a queue")).or_default();
        let n = body["n"].as_i64().expect("a number");
        if numbers.last() != Some(&n) {
            numbers.push(n);
        }
    }
    all
}

fn in_order(world: &World, queues: i64, each: i64) {
    let all = arrived(&world.fake.seen());
    assert_eq!(all.len() as i64, queues);
    for (queue, numbers) in all {
        assert_eq!(numbers, (1..=each).collect::<Vec<_>>(), "queue {queue}");
    }
    assert_eq!(world.fake.duplicates(), 0);
}

const OPEN: &str = "select count(*) from outbox.delivery where closed_at is null";

#[tokio::test(flavor = "multi_thread")]
async fn r27_two_daemons_deliver_each_queue_in_order_through_lost_answers() {
    let world = World::new().await;
    // The connection breaks after the effect, before the answer.
    world.fake.behave(|seen, before| match (seen.number % 4, before) {
        (1, 0) => Behaviour::accept().closing(),
        _ => Behaviour::accept(),
    });
    enqueue(&world, 3, 6).await;
    let _daemons = (world.daemon().await, world.daemon().await);
    enqueue(&world, 3, 6).await; // the same again is the first
    world.until_count(OPEN, 0).await;
    in_order(&world, 3, 6);
    assert!(world.fake.seen().len() > 18, "some were repeated, and nothing went past them");
}

#[tokio::test(flavor = "multi_thread")]
async fn r27_a_kill_in_the_middle_of_a_queue_changes_nothing_in_its_order() {
    let world = World::new().await;
    let gate = Gate::new();
    let held = gate.clone();
    world.fake.behave(move |seen, _| match seen.number {
        3 => Behaviour::accept().held_by(&held),
        _ => Behaviour::accept(),
    });
    enqueue(&world, 1, 6).await;
    let mut first = world.daemon().await;
    world.fake.wait_seen(3).await.expect("three requests");
    first.signal(Signal::KILL).expect("a signal");
    first.ended(SOON).await.expect("it is dead");
    gate.open();
    let _second = world.daemon().await;
    world.until_count(OPEN, 0).await;
    in_order(&world, 1, 6);
}

#[tokio::test(flavor = "multi_thread")]
async fn r27_a_turn_wakes_the_daemon_that_has_the_operation() {
    let mut world = World::new().await;
    world.dispatcher = HALF_A_MINUTE.into();
    let notes = world.config();
    let retractions = notes.replace("note.publish", "note.retract");
    let _daemons = [world.start_with(&notes), world.start_with(&retractions)];
    for daemon in &_daemons {
        daemon.logged("outboxd started", SOON).await.expect("started");
    }
    let sql = "select outbox.enqueue(case when n % 2 = 0 then 'note.publish' else 'note.retract' end,
        json_build_object('q', 1, 'n', n), n::text, ordering_key => 'o') from generate_series(1, 8) n";
    world.db.client.execute(sql, &[]).await.unwrap();
    world.until_count(OPEN, 0).await;
    in_order(&world, 1, 8);
}

#[tokio::test(flavor = "multi_thread")]
async fn r27_without_the_doorbell_a_queue_waits_for_no_poll() {
    let mut world = World::new().await;
    world.dispatcher = "lease_margin = \"500ms\"\npoll_interval = \"4s\"\nnotify = false".into();
    enqueue(&world, 1, 20).await;
    let _daemon = world.daemon().await;
    world.until_count(OPEN, 0).await;
    in_order(&world, 1, 20);
}

#[tokio::test(flavor = "multi_thread")]
async fn r27_hold_on_failure_holds_the_queue_until_the_operator_lets_go() {
    let mut world = World::new().await;
    world.dispatcher = HALF_A_MINUTE.into();
    world.operation = keyed("1s", "hold_on_failure = true");
    world.fake.behave(|seen, _| match seen.text().contains("\"n\" : 1}") {
        true => Behaviour::refuse(422),
        false => Behaviour::accept(),
    });
    enqueue(&world, 1, 3).await;
    let daemon = world.daemon().await;
    daemon.logged("action not delivered", SOON).await.expect("a refusal");
    let head: Uuid = world.db.one("select action_id from outbox.action where retry_key = '1-1'", &[]).await;
    world.until(head, "terminal_failure").await;
    assert_eq!(role(&world.db, head).await, "holds");
    assert_eq!(world.db.count(OPEN).await, 2);
    let id = head.to_string();
    let said = world.says(&["release", &id, "--by", "ann", "--reason", "not needed"]).await.done();
    assert!(
        said.starts_with("Recorded that its queue goes on. Not delivered (rejected); it will not be tried again."),
        "{said}"
    );
    world.until_count(OPEN, 0).await;
    assert_eq!(world.fake.seen().len(), 3);
    assert!(lines_of(&daemon.log(), "serial queues mended").is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn r27_an_idle_daemon_with_a_held_queue_asks_no_more_often_than_one_without() {
    let mut world = World::new().await;
    world.dispatcher = "lease_margin = \"500ms\"\npoll_interval = \"10s\"".into();
    world.operation = keyed("1s", "hold_on_failure = true");
    world.fake.behave(|_, _| Behaviour::refuse(422));
    let _daemon = world.daemon().await;
    // The stats line and the janitor, each second; the test's own look.
    let without = world.transactions_per_second(Duration::from_secs(3)).await;
    enqueue(&world, 1, 100).await;
    world.until_count(OPEN, 99).await;
    let with = world.transactions_per_second(Duration::from_secs(3)).await;
    assert!(with <= without * 1.5 + 1.0, "{with} transactions a second instead of {without}");
}
