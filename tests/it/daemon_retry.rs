//! When it is tried again (R28).

use std::time::Duration;

use outboxd::proving::fake::Behaviour;

use crate::support::World;
use crate::support::world::{SOON, lines};

/// Delays of this length, doubling up to that.
fn backoff(initial: &str, max: &str, more: &str) -> String {
    format!(
        "effect = \"keyed\"\ntimeout = \"1s\"\nbackoff = {{ initial = {initial:?}, multiplier = 2.0, max = {max:?} }}\n{more}"
    )
}

const WAITS: &str = "select extract(epoch from d.due_at - h.finished_at)::float8
    from outbox.delivery d join outbox.attempt h using (action_id) where d.state = 'retryable_failure'";

#[tokio::test(flavor = "multi_thread")]
async fn r28_b67_delays_are_spread_between_half_and_whole() {
    let mut world = World::new().await;
    world.operation = backoff("1000s", "2000s", "");
    world.fake.behave(|_, _| Behaviour::refuse(429));
    world.enqueue_many("n", 200).await;
    let _daemon = world.daemon().await;
    world.until_count("select count(*) from outbox.status where state = 'retryable_failure'", 200).await;
    let waits: Vec<f64> = world.db.client.query(WAITS, &[]).await.expect("rows").iter().map(|row| row.get(0)).collect();
    assert!(waits.iter().all(|wait| (499.0..=1001.0).contains(wait)), "{waits:?}");
    let mean = waits.iter().sum::<f64>() / 200.0;
    let deviation = (waits.iter().map(|wait| (wait - mean).powi(2)).sum::<f64>() / 200.0).sqrt();
    assert!(deviation >= mean / 10.0, "they would all come back at once: {deviation} around {mean}");
}

#[tokio::test(flavor = "multi_thread")]
async fn b66_no_number_of_attempts_makes_the_delay_overflow() {
    let mut world = World::new().await;
    world.operation = backoff("500ms", "5000s", "attempts_max = 10000");
    world.fake.behave(|_, _| Behaviour::refuse(429));
    world.enqueue_many("n", 6).await;
    for (n, attempts) in [31, 32, 63, 64, 1000, 9998].into_iter().enumerate() {
        let sql = "update outbox.delivery d set attempts = $1 from outbox.action a
            where d.action_id = a.action_id and retry_key = $2";
        world.db.client.execute(sql, &[&attempts, &format!("n{}", n + 1)]).await.expect("set");
    }
    let daemon = world.daemon().await;
    world.until_count("select count(*) from outbox.status where state = 'retryable_failure'", 6).await;
    for row in world.db.client.query(WAITS, &[]).await.expect("rows") {
        let wait: f64 = row.get(0);
        assert!((2499.0..=5001.0).contains(&wait), "{wait}");
    }
    assert!(!daemon.log().contains("panick"));
}

#[tokio::test(flavor = "multi_thread")]
async fn b60_b85_refused_connections_back_off_and_cost_no_attempt() {
    let mut world = World::new().await;
    world.operation = backoff("200ms", "800ms", "");
    // The port is closed; what is counted is the history, one line for each attempt.
    world.fake.stop().await;
    world.enqueue_many("n", 10).await;
    let daemon = world.daemon().await;
    tokio::time::sleep(Duration::from_secs(4)).await;
    let tries = world.db.count("select count(*) from outbox.attempt where evidence = 'not_sent'").await;
    // Half the delay each time at the soonest: at once, 0.1, 0.2, then every 0.4 s.
    assert!((10..=10 * 12).contains(&tries), "{tries} tries of ten actions in four seconds");
    assert_eq!(world.db.count("select count(*) from outbox.delivery where attempts > 0").await, 0);
    let sent = "select count(*) from outbox.delivery where first_sent_at is not null and state <> 'dispatching'";
    assert_eq!(world.db.count(sent).await, 0, "B36: what was proved unsent gives its times back");
    let loud =
        lines(&daemon.log()).into_iter().filter(|line| line["level"] != "DEBUG" && line["message"] != "stats").count();
    assert!(loud <= 5, "B83: {loud} lines at info and above");
    world.fake.resume().await.expect("the same port");
    world.until_count("select count(*) from outbox.status where state = 'succeeded'", 10).await;
    assert_eq!((world.fake.tally().requests, world.fake.duplicates()), (10, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn r28_a_restart_keeps_the_time_of_the_next_attempt() {
    let mut world = World::new().await;
    world.operation = backoff("4s", "4s", "");
    world.fake.behave(|_, before| if before == 0 { Behaviour::refuse(429) } else { Behaviour::accept() });
    let action = world.enqueue("n-1").await;
    let mut daemon = world.daemon().await;
    world.until(action, "retryable_failure").await;
    let due = "select extract(epoch from due_at)::float8 from outbox.delivery where action_id = $1";
    let before: f64 = world.db.one(due, &[&action]).await;
    daemon.terminate(SOON).await.expect("it ends");
    let _daemon = world.daemon().await;
    let after: f64 = world.db.one(due, &[&action]).await;
    assert!((before - after).abs() < 0.001);
    world.until(action, "succeeded").await;
    let started: f64 = world
        .db
        .one("select extract(epoch from max(started_at))::float8 from outbox.attempt where action_id = $1", &[&action])
        .await;
    assert!(started >= before - 0.05, "{} s too early", before - started);
}
