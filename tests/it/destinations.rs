//! `outboxd status` and `outboxd destinations`: how the destinations stand with the daemons that are there, and asking
//! them to look again.

use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration;

use outboxd::proving::daemon::Daemon;
use outboxd::proving::fake::Behaviour;
use serde_json::Value;

use crate::support::World;
use crate::support::cli::holds;
use crate::support::world::{SOON, lines_of};

/// Waits until `destinations --json` says what is wanted of `fake`.
async fn until(world: &World, wanted: impl Fn(&Value) -> bool) -> Value {
    let mut seen = Value::Null;
    let wait = async {
        loop {
            seen = world.says(&["destinations", "--json"]).await.json()["destinations"][0].take();
            if wanted(&seen) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    let in_time = tokio::time::timeout(SOON, wait).await.is_ok();
    let log = |n| std::fs::read_to_string(world.dir.path().join(format!("daemon{n}.log"))).unwrap_or_default();
    assert!(in_time, "{seen}\n{}\n{}", log(0), log(1));
    seen
}

/// A world whose destination answers with this status, 0 = as a good one.
async fn answering(status: u16) -> (World, Arc<AtomicU16>) {
    let world = World::new().await;
    let answer = Arc::new(AtomicU16::new(status));
    let now = Arc::clone(&answer);
    world.fake.behave(move |_, _| match now.load(Ordering::Relaxed) {
        0 => Behaviour::accept(),
        status => Behaviour::refuse(status),
    });
    (world, answer)
}

/// Waits until the pause has been probed so often that the next probe is at least four seconds away.
async fn until_probes_are_rare(world: &World) {
    until(world, |seen| seen["probes"].as_i64().is_some_and(|probes| probes >= 3)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_paused_destination_is_shown_with_what_to_type_and_is_probed_when_that_is_typed() {
    let (world, answer) = answering(401).await;
    world.enqueue_many("n", 3).await;
    holds(&world.says(&["destinations"]).await.done(), &["fake no daemon has it 0/64"]);
    let daemons = [world.daemon().await, world.daemon().await];
    let seen = until(&world, |seen| seen["paused_with_daemons"].as_i64().is_some_and(|n| n >= 1)).await;
    assert_eq!((&seen["state"], &seen["status"]), (&Value::from("credentials"), &Value::from(401)));
    assert!(seen["since"].is_string());
    until_probes_are_rare(&world).await;
    let hint = "→ check credentials, then: outboxd destinations resume fake --config";
    for command in ["status", "destinations"] {
        holds(&world.says(&[command]).await.done(), &["fake paused: 401 since", "probes)", hint]);
    }
    let due = "select action_id::text from outbox.delivery order by due_at limit 1";
    let overdue = async {
        loop {
            let action: String = world.db.one(due, &[]).await;
            let page = world.says(&["show", &action]).await.done();
            if page.contains("Destination fake is paused: 401 since") {
                return;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(SOON, overdue).await.expect("show says why nobody takes it");
    let status = world.says(&["status", "--json"]).await.json();
    assert_eq!(status["daemons"].as_array().map(Vec::len), Some(2));
    holds(&world.says(&["status"]).await.done(), &["· 2 daemons ·"]);

    answer.store(0, Ordering::Relaxed);
    holds(
        &world.says(&["destinations", "resume", "fake", "--by", "ann", "--reason", "rotated"]).await.done(),
        &["Asked the"],
    );
    let heard = async {
        while !daemons.iter().any(|daemon| daemon.log().contains("probe requested")) {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(SOON, heard).await.expect("a daemon hears it");
    world.until_count("select count(*) from outbox.status where state = 'succeeded'", 3).await;
    let kept: String = world.db.one("select requested_by || ' ' || reason from outbox.resume_request", &[]).await;
    assert_eq!(kept, "ann rotated");
    // The other daemon may have nothing left to probe with.
    let seen = until(&world, |seen| seen["paused_with_daemons"].as_i64().is_some_and(|n| n < 2)).await;
    assert_eq!((&seen["daemons"], &seen["max_in_flight"]), (&Value::from(2), &Value::from(128)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_is_heard_without_a_doorbell_and_without_a_statement_in_quiet_times() {
    let (mut world, answer) = answering(0).await;
    world.dispatcher = "lease_margin = \"500ms\"\npoll_interval = \"60s\"\nnotify = false".into();
    let config = world.config().replace("stats_interval = \"1s\"", "stats_interval = \"60s\"");
    let daemon = world.start_with(&config);
    daemon.logged("outboxd started", SOON).await.expect("started");
    let quiet = world.transactions_per_second(Duration::from_secs(4)).await;
    assert!(quiet < 2.0, "{quiet} transactions a second in which nothing happens, the test's own included");
    drop(daemon);

    answer.store(401, Ordering::Relaxed);
    world.enqueue_many("n", 2).await;
    let daemon = world.start_with(&config);
    daemon.logged("destination paused", SOON).await.expect("paused");
    until_probes_are_rare(&world).await;
    answer.store(0, Ordering::Relaxed);
    let requests = world.fake.tally().requests;
    world.says(&["destinations", "resume", "fake"]).await.done();
    daemon.logged("probe requested", SOON).await.expect("heard");
    world.fake.wait_seen(requests + 1).await.expect("a probe");
    daemon.logged("destination resumed", SOON).await.expect("it goes on");
    assert_eq!(lines_of(&daemon.log(), "probe requested").len(), 1, "one request, one probe");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_destination_that_is_away_says_so_and_that_it_is_probed_by_itself() {
    let world = World::new().await;
    world.fake.stop().await;
    world.enqueue_many("n", 6).await;
    let _daemon = world.daemon().await;
    let seen = until(&world, |seen| seen["state"] == "unreachable").await;
    assert_eq!(seen["reason"], "connection_refused");
    let page = world.says(&["status"]).await.done();
    holds(
        &page,
        &["fake unreachable since", "(connection_refused,", "→ probed by itself; at once with: outboxd destinations"],
    );
    world.fake.resume().await.expect("the port");
    until(&world, |seen| seen["state"] == "open").await;
    holds(&world.says(&["destinations"]).await.done(), &["fake open 0/64"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_daemon_that_is_gone_is_not_counted() {
    let world = World::new().await;
    let daemons = async || world.says(&["status", "--json"]).await.json()["daemons"].as_array().map(Vec::len);
    let mut drained: Daemon = world.daemon().await;
    world.until_true("exists (select from outbox.daemon)").await;
    assert_eq!(daemons().await, Some(1));
    drained.terminate(SOON).await.expect("it drains");
    assert_eq!(daemons().await, Some(0), "it has said so");

    let mut killed = world.daemon().await;
    world.until_true("exists (select from outbox.daemon)").await;
    killed.signal(rustix::process::Signal::KILL).expect("a signal");
    killed.ended(SOON).await.expect("it is dead");
    assert_eq!(daemons().await, Some(1), "nobody knows yet");
    world.db.run("update outbox.daemon set believed_until = clock_timestamp()").await;
    assert_eq!(daemons().await, Some(0));
    world.db.run("update outbox.daemon set believed_until = clock_timestamp() - interval '2 h'").await;
    let _next = world.daemon().await;
    world.until_true("(select min(believed_until) from outbox.daemon) > clock_timestamp()").await;
    assert_eq!(world.db.count("select count(*) from outbox.daemon").await, 1, "and the old row is gone");
}

#[tokio::test(flavor = "multi_thread")]
async fn resume_knows_the_names_of_the_configuration() {
    let world = World::new().await;
    let said = world.says(&["destinations", "resume", "fak"]).await;
    holds(&said.refused(), &["the configuration has no destination fak; did you mean fake?"]);
    holds(&world.says(&["destinations", "resume", "fake"]).await.done(), &["no daemon has said that fake is paused"]);
    let said = world.says(&["destinations", "resume", "fake", "--json"]).await.json();
    assert_eq!((said["asked"].as_bool(), said["paused_with_daemons"].as_i64()), (Some(true), Some(0)));
}
