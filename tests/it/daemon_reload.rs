//! SIGHUP: what is read again, and what stays where it cannot be.

use std::path::Path;
use std::time::Duration;

use outboxd::proving::daemon::Daemon;
use outboxd::proving::fake::{Behaviour, Fake, Gate};
use rustix::process::Signal;

use crate::support::World;
use crate::support::world::{SOON, keyed, lines_of};

/// A secret as it is found in files of other programs.
const ODD: &str = "a\\c\"$G}'#${HOME} \\n";

fn bearer(file: &Path) -> String {
    format!("auth = {{ bearer = {{ file = {file:?} }} }}")
}

/// Changes the file of the first daemon and lets it read it again.
async fn reload(world: &World, daemon: &Daemon, config: &str, event: &str) {
    let before = lines_of(&daemon.log(), event).len();
    std::fs::write(world.dir.path().join("daemon0.toml"), config).expect("a file");
    daemon.signal(Signal::HUP).expect("a signal");
    let wait = async {
        while lines_of(&daemon.log(), event).len() == before {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(SOON, wait).await.unwrap_or_else(|_| panic!("no {event:?} in {}", daemon.log()));
}

#[tokio::test(flavor = "multi_thread")]
async fn b77_r15_a_rotated_secret_is_read_again_as_it_is_and_ends_the_pause() {
    let mut world = World::new().await;
    let token = world.dir.path().join("token");
    std::fs::write(&token, "old").expect("a file");
    world.destination = bearer(&token);
    world.fake.behave(|seen, _| match seen.header("authorization") {
        Some(value) if value == format!("Bearer {ODD}") => Behaviour::accept(),
        _ => Behaviour::refuse(401),
    });
    let action = world.enqueue("n-1").await;
    let daemon = world.daemon().await;
    daemon.logged("destination paused", SOON).await.expect("the old one is refused");
    std::fs::write(&token, format!("{ODD}\n")).expect("a file");
    reload(&world, &daemon, &world.config(), "configuration reloaded").await;
    world.until(action, "succeeded").await;
    daemon.logged("destination resumed", SOON).await.expect("it takes sends again");
    let line = lines_of(&daemon.log(), "configuration reloaded").remove(0);
    assert_eq!((&line["operations"], &line["destinations"], &line["changed"]), (&1.into(), &1.into(), &1.into()));
    assert!(!daemon.log().contains("$G}"), "{}", daemon.log());
    assert_eq!(lines_of(&daemon.log(), "restart needed"), [] as [serde_json::Value; 0]);
    // Nothing has changed since: the connections stay.
    let connections = world.fake.connections();
    reload(&world, &daemon, &world.config(), "configuration reloaded").await;
    assert_eq!(lines_of(&daemon.log(), "configuration reloaded").remove(1)["changed"], 0);
    world.until(world.enqueue("n-2").await, "succeeded").await;
    assert!(world.fake.connections() <= connections + 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn new_operations_and_destinations_are_taken_up_and_old_ones_let_go() {
    let world = World::new().await;
    let daemon = world.daemon().await;
    let elsewhere = Fake::start().await.expect("another destination");
    let waiting = world.db.enqueue("note.later", "{}", "k-1").await;
    let moved = world.config().replace(&world.fake.base_url(), &elsewhere.base_url());
    let both = format!(
        "{}\n[destination.second]\nbase_url = \"{}\"\n[operation.\"note.later\"]\ndestination = \"second\"\nrequest = {{ method = \
         \"POST\", path = \"/later\" }}\ncontract = \"test\"\nmeaning = \"Another\"\nowner = \"tests\"\n{}\n",
        moved,
        world.fake.base_url(),
        keyed("1s", "")
    );
    reload(&world, &daemon, &both, "configuration reloaded").await;
    world.until(waiting, "succeeded").await;
    assert_eq!(world.fake.seen()[0].path, "/later");
    world.until(world.enqueue("n-1").await, "succeeded").await;
    assert_eq!(elsewhere.seen()[0].path, "/notes", "the destination has moved");
    let inventory = "select count(*) from outbox.operation where operation = 'note.later' and destination = 'second'";
    assert_eq!(world.db.count(inventory).await, 1);
    reload(&world, &daemon, &world.config(), "configuration reloaded").await;
    world.until(world.enqueue("n-2").await, "succeeded").await;
    let left = world.db.enqueue("note.later", "{}", "k-2").await;
    world.until(world.enqueue("n-3").await, "succeeded").await;
    assert_eq!(world.db.label(left).await, "pending", "nobody takes it any more");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_delivery_under_way_ends_as_it_began() {
    let mut world = World::new().await;
    world.operation = keyed("10s", "");
    let gate = Gate::new();
    let held = gate.clone();
    world.fake.behave(move |_, _| Behaviour::accept().held_by(&held));
    let elsewhere = Fake::start().await.expect("another destination");
    let first = world.enqueue("n-1").await;
    let daemon = world.daemon().await;
    world.fake.wait_seen(1).await.expect("it is under way");
    let moved = world.config().replace(&world.fake.base_url(), &elsewhere.base_url());
    reload(&world, &daemon, &moved, "configuration reloaded").await;
    world.until(world.enqueue("n-2").await, "succeeded").await;
    assert_eq!((world.fake.seen().len(), elsewhere.seen().len()), (1, 1));
    gate.open();
    world.until(first, "succeeded").await;
    assert_eq!(world.evidence(first).await, ["accepted"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_cannot_be_used_is_refused_whole_and_the_old_one_stays() {
    let mut world = World::new().await;
    let token = world.dir.path().join("token");
    std::fs::write(&token, "t0ken").expect("a file");
    world.destination = bearer(&token);
    world.fake.behave(|seen, _| match seen.header("authorization") {
        Some("Bearer t0ken") => Behaviour::accept(),
        _ => Behaviour::refuse(401),
    });
    let daemon = world.daemon().await;
    std::fs::write(&token, "\n").expect("a file");
    let broken = world.config().replace("timeout = \"1s\"", "timeout = \"1\"").replace("owner =", "ovner =");
    reload(&world, &daemon, &broken, "configuration refused").await;
    let line = lines_of(&daemon.log(), "configuration refused").remove(0);
    let error = line["error"].as_str().expect("text");
    assert_eq!((&line["level"], &line["problems"]), (&"ERROR".into(), &4.into()), "{error}");
    for part in ["is empty", "`timeout`", "`ovner`", "`owner` is missing", "daemon0.toml:"] {
        assert!(error.contains(part), "{part} in {error}");
    }
    world.until(world.enqueue("n-1").await, "succeeded").await;

    // Right by the file, and not usable: no certificate is in it.
    std::fs::write(&token, "t0ken").expect("a file");
    let pem = world.dir.path().join("ca.pem");
    std::fs::write(&pem, "-----BEGIN CERTIFICATE-----\nAA==\n-----END CERTIFICATE-----\n").expect("a file");
    let unusable = format!("{}\ntls = {{ roots = {{ file = {pem:?} }} }}", world.destination);
    let unusable = world.config().replace(&world.destination, &unusable);
    reload(&world, &daemon, &unusable, "configuration refused").await;
    assert!(lines_of(&daemon.log(), "configuration refused")[1]["error"].as_str().is_some_and(|e| e.contains("`tls`")));
    world.until(world.enqueue("n-2").await, "succeeded").await;
    assert_eq!(lines_of(&daemon.log(), "configuration reloaded").len(), 0);

    reload(&world, &daemon, &world.config(), "configuration reloaded").await;
    world.until(world.enqueue("n-3").await, "succeeded").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_needs_a_restart_is_named_and_the_rest_is_in_force() {
    let world = World::new().await;
    let daemon = world.daemon().await;
    let config = world
        .config()
        .replace("poll_interval = \"200ms\"", "poll_interval = \"300ms\"\nmax_in_flight = 7")
        .replace("[database]", "[database]\npool_size = 3")
        .replace("\"/notes\"", "\"/moved\"");
    reload(&world, &daemon, &config, "restart needed").await;
    let line = lines_of(&daemon.log(), "restart needed").remove(0);
    assert_eq!(line["settings"], "database, dispatcher.max_in_flight, dispatcher.poll_interval");
    assert_eq!(line["level"], "WARN");
    daemon.logged("configuration reloaded", SOON).await.expect("the rest is in force");
    world.until(world.enqueue("n-1").await, "succeeded").await;
    assert_eq!(world.fake.seen()[0].path, "/moved");
}
