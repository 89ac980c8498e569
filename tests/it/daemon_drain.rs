//! How a daemon stops.

use std::time::Duration;

use outboxd::clock::stopwatch;
use outboxd::proving::fake::{Behaviour, Gate};
use rustix::process::Signal;

use crate::support::World;
use crate::support::world::{NOTHING_PROMISED, SOON, keyed, lines_of};

/// A world whose answers wait for the gate, with these lines for the dispatcher.
async fn gated(timeout: &str, dispatcher: &str) -> (World, Gate) {
    let mut world = World::new().await;
    world.operation = keyed(timeout, "");
    world.dispatcher = format!("lease_margin = \"500ms\"\npoll_interval = \"200ms\"\n{dispatcher}");
    let gate = Gate::new();
    let held = gate.clone();
    world.fake.behave(move |_, _| Behaviour::accept().held_by(&held));
    (world, gate)
}

const DISPATCHING: &str = "select count(*) from outbox.delivery where state = 'dispatching'";
const UNTOUCHED: &str = "select count(*) from outbox.delivery where state = 'pending' and attempts = 0 and fence = 0";

#[tokio::test(flavor = "multi_thread")]
async fn b36_a_drain_waits_for_what_is_under_way_and_leaves_the_rest_untouched() {
    let (world, gate) = gated("10s", "max_in_flight = 5").await;
    let mut daemon = world.daemon().await;
    world.enqueue_many("n", 25).await;
    world.fake.wait_seen(5).await.expect("five under way");
    daemon.signal(Signal::TERM).expect("a signal");
    daemon.logged("drain started", SOON).await.expect("draining");
    gate.open();
    assert_eq!(daemon.ended(SOON).await.expect("it ends").code(), Some(0));
    assert_eq!(world.db.count("select count(*) from outbox.status where state = 'succeeded'").await, 5);
    assert_eq!((world.db.count(DISPATCHING).await, world.db.count(UNTOUCHED).await), (0, 20));
    assert_eq!(world.fake.tally().requests, 5);
    let stopped = &lines_of(&daemon.log(), "outboxd stopped")[0];
    assert_eq!(stopped["abandoned"], 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_claimed_after_a_sigterm() {
    let (world, gate) = gated("10s", "").await;
    let mut daemon = world.daemon().await;
    let first = world.enqueue("first").await;
    world.fake.wait_seen(1).await.expect("under way");
    daemon.signal(Signal::TERM).expect("a signal");
    daemon.logged("drain started", SOON).await.expect("draining");
    let late = world.enqueue("late").await;
    // Long enough for several polls.
    world.fake.wait_until(Duration::from_millis(700), |tally| tally.requests > 1).await.expect_err("no second");
    gate.open();
    assert_eq!(daemon.ended(SOON).await.expect("it ends").code(), Some(0));
    assert_eq!(world.db.label(first).await, "succeeded");
    let standing = world.standing(late).await;
    assert_eq!((standing.state.as_str(), standing.fence), ("pending", 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_idle_daemon_stops_at_once_on_both_signals() {
    let world = World::new().await;
    for signal in [Signal::TERM, Signal::INT] {
        let mut daemon = world.daemon().await;
        let asked = stopwatch();
        daemon.signal(signal).expect("a signal");
        assert_eq!(daemon.ended(SOON).await.expect("it ends").code(), Some(0));
        assert!(asked.elapsed() < Duration::from_secs(3), "{:?}", asked.elapsed());
    }
    // Its sessions are gone, and the door with them.
    world
        .until_count(
            "select count(*) from pg_stat_activity where application_name = 'outboxd' and datname = current_database()",
            0,
        )
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn b69_when_the_drain_runs_out_the_rest_is_recorded_as_unknown_and_named() {
    let (world, _gate) = gated("600s", "drain_timeout = \"1s\"").await;
    let mut daemon = world.daemon().await;
    let (a, b) = (world.enqueue("a").await, world.enqueue("b").await);
    world.fake.wait_seen(2).await.expect("under way");
    let asked = stopwatch();
    daemon.signal(Signal::TERM).expect("a signal");
    assert_eq!(daemon.ended(SOON).await.expect("it ends").code(), Some(75));
    let took = asked.elapsed();
    assert!(took >= Duration::from_secs(1) && took < Duration::from_secs(4), "{took:?}");
    let abandoned = lines_of(&daemon.log(), "action abandoned");
    for action in [a, b] {
        let standing = world.standing(action).await;
        assert_eq!((standing.label.as_str(), standing.in_doubt), ("awaiting_resend", true));
        assert!(abandoned.iter().any(|line| line["action"] == action.to_string()), "{action} is named");
    }
    assert_eq!((abandoned.len(), world.db.count(DISPATCHING).await), (2, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn b69_a_second_sigterm_ends_it_sooner() {
    let (world, _gate) = gated("600s", "drain_timeout = \"10m\"").await;
    let mut daemon = world.daemon().await;
    let action = world.enqueue("a").await;
    world.fake.wait_seen(1).await.expect("under way");
    daemon.signal(Signal::TERM).expect("a signal");
    daemon.logged("drain started", SOON).await.expect("draining");
    let asked = stopwatch();
    daemon.signal(Signal::TERM).expect("a second signal");
    assert_eq!(daemon.ended(SOON).await.expect("it ends").code(), Some(75));
    assert!(asked.elapsed() < Duration::from_secs(3), "{:?}", asked.elapsed());
    assert_eq!(world.db.label(action).await, "awaiting_resend");
}

#[tokio::test(flavor = "multi_thread")]
async fn r21_what_promises_nothing_is_held_when_a_drain_runs_out() {
    let (mut world, _gate) = gated("600s", "drain_timeout = \"500ms\"").await;
    world.contract = NOTHING_PROMISED.into();
    world.operation = "effect = \"unreconcilable\"\ntimeout = \"600s\"".into();
    let mut daemon = world.daemon().await;
    let action = world.enqueue("a").await;
    world.fake.wait_seen(1).await.expect("under way");
    daemon.signal(Signal::TERM).expect("a signal");
    assert_eq!(daemon.ended(SOON).await.expect("it ends").code(), Some(75));
    assert_eq!(world.db.label(action).await, "awaiting_review");
}

#[tokio::test(flavor = "multi_thread")]
async fn b36_drains_at_any_moment_leave_nothing_claimed_and_send_nothing_twice() {
    let mut world = World::new().await;
    world.operation = keyed("10s", "");
    world.dispatcher = "max_in_flight = 8\npoll_interval = \"200ms\"".into();
    world.fake.behave(|_, _| Behaviour::accept().delayed(Duration::from_millis(3)));
    world.enqueue_many("n", 600).await;
    let mut sent = 0;
    for _ in 0..6 {
        let mut daemon = world.daemon().await;
        sent += 25;
        world.fake.wait_seen(sent).await.expect("some more");
        assert_eq!(daemon.terminate(SOON).await.expect("it ends").code(), Some(0));
        sent = world.fake.tally().requests;
        assert_eq!(world.db.count(DISPATCHING).await, 0);
        let done = world.db.count("select count(*) from outbox.status where state = 'succeeded'").await;
        assert_eq!(done, i64::try_from(sent).expect("a count"), "each request has its outcome");
    }
    let _daemon = world.daemon().await;
    world.until_count("select count(*) from outbox.status where state = 'succeeded'", 600).await;
    assert_eq!((world.fake.tally().requests, world.fake.duplicates()), (600, 0));
    assert_eq!(world.db.count("select count(*) from outbox.delivery where attempts <> 1").await, 0);
}
