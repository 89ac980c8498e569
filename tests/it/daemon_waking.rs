//! Woken in time, and asleep otherwise.

use std::time::Duration;

use outboxd::clock::stopwatch;
use outboxd::proving::fake::{Behaviour, Gate};
use uuid::Uuid;

use crate::support::world::{SOON, keyed};
use crate::support::{Ears, World};

const HALF_A_MINUTE: &str = "lease_margin = \"500ms\"\npoll_interval = \"30s\"";

/// Waits until the daemon sleeps and listens: from then on an enqueue rings.
async fn asleep(world: &World) {
    world
        .until_true(&format!(
            "exists (select from pg_locks l join pg_database d on d.oid = l.database
           where d.datname = '{}' and l.locktype = 'advisory' and l.granted)",
            world.db.name
        ))
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_enqueue_wakes_a_sleeping_daemon() {
    let mut world = World::new().await;
    world.dispatcher = HALF_A_MINUTE.into();
    let _daemon = world.daemon().await;
    for n in 0..5 {
        asleep(&world).await;
        let asked = stopwatch();
        let action = world.enqueue(&format!("n-{n}")).await;
        world.until(action, "succeeded").await;
        assert!(asked.elapsed() < Duration::from_secs(5), "{:?} with a poll interval of 30 s", asked.elapsed());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_enqueue_wakes_one_of_several_sleeping_daemons() {
    let mut world = World::new().await;
    world.dispatcher = HALF_A_MINUTE.into();
    let mut daemons = vec![world.daemon().await, world.daemon().await];
    for n in 0..4 {
        asleep(&world).await;
        let asked = stopwatch();
        let action = world.enqueue(&format!("n-{n}")).await;
        world.until(action, "succeeded").await;
        assert!(asked.elapsed() < Duration::from_secs(5), "{:?}", asked.elapsed());
        if n == 1 {
            // Whoever kept the door, the other one keeps it now.
            let gone = daemons.remove(0).terminate(Duration::from_secs(5)).await.expect("it drains");
            assert_eq!(gone.code(), Some(0));
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn without_notify_polling_finds_it() {
    let mut world = World::new().await;
    world.dispatcher.push_str("\nnotify = false");
    let _daemon = world.daemon().await;
    let action = world.enqueue("n-1").await;
    world.until(action, "succeeded").await;
    let listening =
        "select count(*) from pg_stat_activity where datname = current_database() and query ilike 'listen%'";
    assert_eq!(world.db.count(listening).await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_due_later_is_sent_then_and_not_a_poll_later() {
    let mut world = World::new().await;
    world.dispatcher = HALF_A_MINUTE.into();
    let _daemon = world.daemon().await;
    asleep(&world).await;
    let sql = "select action_id from outbox.enqueue('note.publish', '{}', 'later', not_before => clock_timestamp() + interval '1500 ms')";
    let action: Uuid = world.db.one(sql, &[]).await;
    world.until(action, "succeeded").await;
    let sql = "select extract(epoch from h.started_at - a.not_before)::float8
        from outbox.action a join outbox.attempt h using (action_id) where action_id = $1";
    let late: f64 = world.db.one(sql, &[&action]).await;
    assert!((-0.005..3.0).contains(&late), "{late} s after its time");
}

#[tokio::test(flavor = "multi_thread")]
async fn idle_daemons_ask_the_database_little() {
    let mut world = World::new().await;
    world.dispatcher = "poll_interval = \"1s\"".into();
    let _daemons = [world.daemon().await, world.daemon().await];
    let done = world.enqueue("n-1").await;
    world.until(done, "succeeded").await;
    let asked = world.transactions_per_second(Duration::from_secs(4)).await;
    // Both together: three looks, what is due next twice, the door, and six for stats and pruning. Spinning is thousands.
    assert!(asked < 60.0, "{asked} transactions a second of two idle daemons");
}

#[tokio::test(flavor = "multi_thread")]
async fn idle_daemons_do_not_wake_each_other() {
    let mut world = World::new().await;
    world.dispatcher = "poll_interval = \"20ms\"".into();
    let _daemons = [world.daemon().await, world.daemon().await];
    let done = world.enqueue("n-1").await;
    world.until(done, "succeeded").await;
    asleep(&world).await;
    let mut ears = Ears::at(&world.db).await;
    let last_words = async { while ears.hear_within(Duration::from_secs(1)).await {} };
    tokio::time::timeout(SOON, last_words).await.expect("quiet, when that note is done");
    assert!(!ears.hear_within(Duration::from_secs(2)).await, "a daemon rang, and nothing had been enqueued");
    world.enqueue("n-2").await;
    assert!(ears.hear_within(SOON).await, "an enqueue rings");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_daemon_with_every_slot_taken_does_not_spin() {
    let mut world = World::new().await;
    world.dispatcher = "poll_interval = \"1s\"\nmax_in_flight = 2".into();
    world.operation = keyed("30s", "");
    let gate = Gate::new();
    let held = gate.clone();
    world.fake.behave(move |_, _| Behaviour::accept().held_by(&held));
    let daemon = world.daemon().await;
    world.enqueue_many("n", 20).await;
    world.fake.wait_seen(2).await.expect("two");
    let before = daemon.usage();
    let asked = world.transactions_per_second(Duration::from_secs(2)).await;
    assert!(asked < 40.0, "{asked} transactions a second while nothing could be claimed");
    if let (Some(before), Some(after)) = (before, daemon.usage()) {
        assert!(after.cpu - before.cpu < Duration::from_millis(800), "{:?}", after.cpu - before.cpu);
    }
    gate.open();
    world.until_count("select count(*) from outbox.status where state = 'succeeded'", 20).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn many_tenants_that_wait_are_no_reason_to_spin() {
    let mut world = World::new().await;
    world.dispatcher = "poll_interval = \"1s\"".into();
    world
        .db
        .run(
            "select outbox.enqueue('note.publish', '{}', 'n', tenant => 't' || i, not_before => now() + interval '1 day')
             from generate_series(1, 600) i",
        )
        .await;
    let _daemon = world.daemon().await;
    let asked = world.transactions_per_second(Duration::from_secs(2)).await;
    assert!(asked < 40.0, "{asked} transactions a second while nothing was due");
    // And the last of them is not starved by the first.
    let sql = "select action_id from outbox.enqueue('note.publish', '{}', 'due', tenant => 'zzz')";
    let due: Uuid = world.db.one(sql, &[]).await;
    world.until(due, "succeeded").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_due_row_that_somebody_else_locks_is_no_reason_to_spin() {
    let mut world = World::new().await;
    world.dispatcher = "poll_interval = \"1s\"".into();
    let sql = "select action_id from outbox.enqueue('note.publish', '{}', 'n', not_before => now() + interval '1 day')";
    let action: Uuid = world.db.one(sql, &[]).await;
    let mut other = world.db.session().await;
    let locking = other.transaction().await.expect("a transaction");
    // As an application does that cancels in a long transaction.
    locking.execute("select outbox.cancel($1, 'me', 'why')", &[&action]).await.expect("cancelled");
    let sql = "select action_id from outbox.enqueue('note.publish', '{}', 'm', not_before => clock_timestamp() + interval '300 ms')";
    let second: Uuid = world.db.one(sql, &[]).await;
    locking.execute("select from outbox.delivery where action_id = $1 for update", &[&second]).await.expect("locked");
    let _daemon = world.daemon().await;
    let asked = world.transactions_per_second(Duration::from_secs(2)).await;
    assert!(asked < 100.0, "{asked} transactions a second while the only due row was locked; spinning is thousands");
    locking.commit().await.expect("committed");
    world.until(second, "succeeded").await;
    world.until(action, "terminal_failure").await;
    assert_eq!(world.standing(action).await.reason.as_deref(), Some("cancelled"));
}
