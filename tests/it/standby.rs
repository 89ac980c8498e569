//! A server in recovery as the ledger: a daemon waits until it is promoted, and then looks whether it is still the ledger
//! that it was.

use std::time::Duration;

use outboxd::core::target::Secret;
use outboxd::ledger;
use outboxd::proving::cluster::{Cluster, ClusterOptions};
use outboxd::proving::daemon::Daemon;
use outboxd::proving::fake::{Behaviour, Gate};
use outboxd::proving::session;
use uuid::Uuid;

use crate::support::world::{SOON, keyed, lines, lines_of};
use crate::support::{Database, World};

/// A world on a cluster of its own, with a ledger and one action.
async fn alone() -> (World, Cluster, Uuid) {
    let options = ClusterOptions::default().set("fsync", "off").set("wal_level", "replica").set("hot_standby", "on");
    let cluster = Cluster::start(options).expect("a cluster of its own");
    let url = cluster.url("postgres", "postgres");
    ledger::migrate(&Secret::new(&url)).await.expect("a schema");
    let mut world = World::new().await;
    let client = session::connect(&url).await.expect("a session");
    world.db = Database { url: url.clone(), name: "postgres".into(), client };
    world.url = url;
    let action = world.enqueue("n-1").await;
    (world, cluster, action)
}

/// The same server as a standby: it recovers what it has, and waits for more until it is promoted.
async fn recovers(world: &mut World, cluster: &mut Cluster) {
    cluster.stop_and_copy().expect("a copy");
    cluster.fail_over().expect("a standby");
    world.db.client = session::connect(&world.url).await.expect("a session");
    assert!(world.db.one::<bool>("select pg_is_in_recovery()", &[]).await);
}

/// It has said once that it only may read, and sends nothing.
async fn waits(world: &World, daemon: &Daemon) {
    daemon.logged("ledger lost", SOON).await.expect("it waits");
    // What it says every `stats_interval` aside.
    let said = || lines(&daemon.log()).len() - lines_of(&daemon.log(), "ledger still lost").len();
    let before = said();
    world.fake.wait_until(Duration::from_secs(3), |tally| tally.requests > 0).await.expect_err("nothing is sent");
    assert!(said() - before <= 1, "{}", daemon.log());
    let lost = lines_of(&daemon.log(), "ledger lost");
    assert_eq!(lost.len(), 1, "{}", daemon.log());
}

#[tokio::test(flavor = "multi_thread")]
async fn r11_b48_a_standby_is_waited_for_and_taken_when_it_is_promoted() {
    let (mut world, mut cluster, action) = alone().await;
    recovers(&mut world, &mut cluster).await;
    let daemon = world.start();
    waits(&world, &daemon).await;
    let lost = &lines_of(&daemon.log(), "ledger lost")[0];
    assert!(lost["error"].as_str().is_some_and(|error| error.contains("the database only allows reading")), "{lost}");
    world.db.run("select pg_promote()").await;
    world.until(action, "succeeded").await;
    assert_eq!(lines_of(&daemon.log(), "ledger back").len(), 1, "{}", daemon.log());
    assert_eq!(world.fake.tally().requests, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn r11_b48_a_daemon_whose_server_becomes_a_standby_waits_and_refuses_the_timeline_of_its_promotion() {
    let (mut world, mut cluster, _) = alone().await;
    world.dispatcher.push_str("\ndrain_timeout = \"1s\"");
    world.db.run("select outbox.cancel(action_id, 'test', 'not this one') from outbox.action").await;
    let mut daemon = world.daemon().await;
    recovers(&mut world, &mut cluster).await;
    waits(&world, &daemon).await;
    world.db.run("select pg_promote()").await;
    assert_eq!(daemon.ended(SOON).await.expect("it ends").code(), Some(76), "{}", daemon.log());
    let refused = &lines_of(&daemon.log(), "ledger refused")[0];
    assert!(refused["error"].as_str().is_some_and(|error| error.contains("timeline 2)")), "{refused}");
    assert_eq!(world.fake.tally().requests, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn r11_what_was_under_way_in_a_failover_ends_the_daemon_and_is_written_once_the_timeline_is_accepted() {
    let (mut world, mut cluster, action) = alone().await;
    world.operation = keyed("600s", "");
    world.dispatcher.push_str("\ndrain_timeout = \"1s\"\njournal = \"daemon.journal\"");
    let gate = Gate::new();
    let held = gate.clone();
    world.fake.behave(move |_, _| Behaviour::accept().held_by(&held));
    let mut daemon = world.daemon().await;
    world.fake.wait_seen(1).await.expect("under way");
    recovers(&mut world, &mut cluster).await;
    // Its outcome waits to be written, and no claim is made before.
    gate.open();
    daemon.logged("journal in use", SOON).await.expect("it is kept");
    world.db.run("select pg_promote()").await;
    assert_eq!(daemon.ended(SOON).await.expect("it ends").code(), Some(76), "{}", daemon.log());
    assert_eq!(lines_of(&daemon.log(), "ledger refused").len(), 1, "{}", daemon.log());
    assert_eq!(lines_of(&daemon.log(), "outcome journaled").len(), 1, "{}", daemon.log());
    ledger::accept_cluster(&Secret::new(&world.url)).await.expect("accepted");
    let _daemon = world.daemon().await;
    world.until(action, "succeeded").await;
    assert_eq!((world.evidence(action).await, world.fake.tally().requests), (vec!["accepted".to_owned()], 1));
}
