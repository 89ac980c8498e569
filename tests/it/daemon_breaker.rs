//! A destination that cannot be reached or doesn't answer is paused, probed, and taken in again; nothing is lost by it.

use std::time::Duration;

use outboxd::proving::daemon::Daemon;
use outboxd::proving::fake::{Behaviour, Fake};
use rustix::process::Signal;

use crate::support::World;
use crate::support::world::{SOON, keyed, lines, lines_of};

const SUCCEEDED: &str = "select count(*) from outbox.status where state = 'succeeded'";
const UNSENT: &str = "select count(*) from outbox.attempt where evidence = 'not_sent'";

/// Another destination with an operation of its own, under the same contract.
async fn beside(world: &mut World, name: &str, lines: &str) -> Fake {
    let fake = Fake::start().await.expect("a destination");
    world.contract.push_str(&format!(
        "\n[destination.{name}]\nbase_url = {:?}\n[operation.\"note.{name}\"]\ndestination = {name:?}\n\
         request = {{ method = \"POST\", path = \"/\" }}\ncontract = \"test\"\nmeaning = \"x\"\nowner = \"tests\"\n{lines}\n",
        fake.base_url(),
    ));
    fake
}

/// Waits until a log has so many lines of a message.
async fn logged(daemon: &Daemon, message: &str, n: usize) {
    let wait = async {
        while lines_of(&daemon.log(), message).len() < n {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    if tokio::time::timeout(SOON, wait).await.is_err() {
        panic!("fewer than {n} of {message:?} in:\n{}", daemon.log());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn b85_a_destination_that_is_away_costs_no_attempt_and_gets_everything_when_it_is_back() {
    let mut world = World::new().await;
    world.operation = keyed("2s", "attempts_max = 5");
    world.destination = "max_in_flight = 16".into();
    world.fake.stop().await;
    world.enqueue_many("n", 100).await;
    let daemon = world.daemon().await;
    logged(&daemon, "destination unreachable", 1).await;
    world.until_true("(select count(*) from outbox.delivery where state = 'dispatching') = 0").await;
    let before = world.db.count(UNSENT).await;
    assert!(before <= 16 + 5, "{before} connections were tried of 16 at once");
    // Three probes: about seven seconds of an outage.
    world.until_true(&format!("({UNSENT}) >= {}", before + 3)).await;
    assert_eq!(world.db.count(UNSENT).await, before + 3, "probes are single");
    world.fake.resume().await.expect("the port");
    world.until_count(SUCCEEDED, 100).await;
    assert_eq!(world.db.count("select count(*) from outbox.delivery where attempts <> 1 or receipt is null").await, 0);
    assert_eq!((world.fake.effects().len(), world.fake.duplicates()), (100, 0));
    for message in ["destination unreachable", "destination resumed"] {
        assert_eq!(lines_of(&daemon.log(), message).len(), 1, "one line each way");
    }
    let resumed = &lines_of(&daemon.log(), "destination resumed")[0];
    assert_eq!((resumed["why"].as_str(), resumed["destination"].as_str()), (Some("unreachable"), Some("fake")));
}

#[tokio::test(flavor = "multi_thread")]
async fn b85_refused_unresolved_and_untrusted_are_one_kind_of_away() {
    let mut world = World::new().await;
    world.operation = keyed("2s", "attempts_max = 1");
    world.enqueue_many("n", 10).await;
    let good = world.config();
    let elsewhere = |url: &str| good.replace(&world.fake.base_url(), url);
    world.fake.receive(|_| outboxd::proving::fake::Reception::Serve);
    let secure = world.fake.base_url().replace("http:", "https:");
    let daemon = world.start_with(&elsewhere("http://127.0.0.1:9"));
    let file = world.dir.path().join("daemon0.toml");
    for (reason, next) in [
        ("connection_refused", elsewhere("http://nowhere.invalid")),
        ("name_not_resolved", elsewhere(&secure)),
        ("tls_failed", good.clone()),
    ] {
        world.until_true(&format!("exists (select from outbox.delivery where reason = '{reason}')")).await;
        std::fs::write(&file, next).expect("a file");
        daemon.signal(Signal::HUP).expect("a signal");
    }
    world.until_count(SUCCEEDED, 10).await;
    assert_eq!(world.db.count("select count(*) from outbox.delivery where attempts <> 1").await, 0);
    assert_eq!(lines_of(&daemon.log(), "destination unreachable").len(), 1, "one pause, whatever it was");
}

#[tokio::test(flavor = "multi_thread")]
async fn b85_a_row_that_has_been_a_probe_for_long_does_not_wait_long_when_it_is_over() {
    let mut world = World::new().await;
    // Its own waits would be minutes by then.
    world.operation = "effect = \"keyed\"\ntimeout = \"1s\"\nbackoff = { initial = \"400ms\", multiplier = 20 }".into();
    world.fake.stop().await;
    let action = world.enqueue("n-1").await;
    let others = world.enqueue_many("m", 4);
    others.await;
    let daemon = world.daemon().await;
    logged(&daemon, "destination unreachable", 1).await;
    world.until_true("(select max(fence) from outbox.delivery) >= 2").await;
    world.fake.resume().await.expect("the port");
    world.until_count(SUCCEEDED, 5).await;
    assert!(world.standing(action).await.fence <= 4);
}

#[tokio::test(flavor = "multi_thread")]
async fn b60_refused_connections_never_become_a_tight_loop() {
    let mut world = World::new().await;
    world.operation = "effect = \"keyed\"\ntimeout = \"1s\"\nbackoff = { initial = \"1ms\", max = \"2ms\" }".into();
    world.fake.stop().await;
    world.enqueue_many("n", 10).await;
    let daemon = world.daemon().await;
    logged(&daemon, "destination unreachable", 1).await;
    world.until_true("(select count(*) from outbox.delivery where state = 'dispatching') = 0").await;
    let before = world.db.count(UNSENT).await;
    world.until_true(&format!("({UNSENT}) > {before}")).await;
    let stats = || lines_of(&daemon.log(), "stats").len();
    let (then, tried) = (stats(), world.db.count(UNSENT).await);
    let passed = async {
        while stats() < then + 5 {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(SOON, passed).await.expect("five seconds");
    let more = world.db.count(UNSENT).await - tried;
    assert!(more <= 5, "{more} connections in about five seconds, whatever the rows' own backoff is");
}

#[tokio::test(flavor = "multi_thread")]
async fn b41_a_destination_that_hangs_holds_its_own_slots_only_and_few_actions_get_into_doubt() {
    let mut world = World::new().await;
    world.operation = keyed("2s", "");
    world.destination = "max_in_flight = 10".into();
    world.dispatcher = "max_in_flight = 20\nlease_margin = \"500ms\"\npoll_interval = \"200ms\"".into();
    let healthy = beside(&mut world, "healthy", &keyed("2s", "")).await;
    world.fake.behave(|_, _| Behaviour::ignore());
    world.enqueue_many("n", 1000).await;
    let daemon = world.daemon().await;
    world.fake.wait_seen(10).await.expect("they hang");
    world.db.run("select outbox.enqueue('note.healthy', '{}', g::text) from generate_series(1, 50) g").await;
    healthy.wait_effects(50).await.expect("delivered meanwhile");
    logged(&daemon, "destination silent", 1).await;
    world.until_true("(select count(*) from outbox.delivery where state = 'dispatching') = 0").await;
    let doubts = world.db.count("select count(*) from outbox.delivery where doubt_since is not null").await;
    assert!(doubts <= 21, "{doubts} of 1000 are in doubt: nothing more is sent into the silence");
    assert_eq!(world.db.count("select count(*) from outbox.status where label = 'awaiting_review'").await, 0);
    world.fake.behave(|_, _| Behaviour::accept());
    world.until_count(SUCCEEDED, 1050).await;
    assert_eq!((world.fake.effects().len(), world.fake.duplicates()), (1000, 0));
    assert_eq!(lines_of(&daemon.log(), "destination resumed")[0]["why"], "silent");
}

#[tokio::test(flavor = "multi_thread")]
async fn b41_a_gateway_with_nothing_behind_it_is_silence_and_a_server_that_breaks_down_is_not() {
    let mut world = World::new().await;
    world.operation = keyed("2s", "attempts_max = 2");
    world.destination = "max_in_flight = 8".into();
    let broken = beside(&mut world, "broken", &keyed("2s", "attempts_max = 2")).await;
    broken.behave(|_, _| Behaviour::refuse(500));
    world.fake.behave(|_, _| Behaviour::refuse(503));
    world.enqueue_many("n", 200).await;
    let daemon = world.daemon().await;
    logged(&daemon, "destination silent", 1).await;
    world.db.run("select outbox.enqueue('note.broken', '{}', g::text) from generate_series(1, 15) g").await;
    // Every one of them gets its answers, and its two attempts.
    world
        .until_count(
            "select count(*) from outbox.status where operation = 'note.broken' and label = 'awaiting_review'",
            15,
        )
        .await;
    let spent = world
        .db
        .count("select count(*) from outbox.status where operation = 'note.publish' and label = 'awaiting_review'")
        .await;
    assert!(spent <= 20, "{spent} of 200 have used up their attempts on a gateway");
    assert_eq!(lines_of(&daemon.log(), "destination silent").len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn b83_an_outage_of_ten_thousand_actions_is_told_in_few_lines() {
    let world = World::new().await;
    world.fake.stop().await;
    world.enqueue_many("n", 10_000).await;
    let daemon = world.daemon().await;
    logged(&daemon, "destination unreachable", 1).await;
    world.until_true(&format!("({UNSENT}) > 66")).await;
    world.fake.resume().await.expect("the port");
    world.until_true(&format!("({SUCCEEDED}) > 1000")).await;
    logged(&daemon, "destination resumed", 1).await;
    let loud = |line: &serde_json::Value| line["level"] != "DEBUG" && line["message"] != "stats";
    let loud: Vec<_> = lines(&daemon.log()).into_iter().filter(loud).collect();
    let messages: Vec<_> = loud.iter().map(|line| line["message"].as_str().unwrap_or_default()).collect();
    assert_eq!(messages, ["outboxd started", "destination unreachable", "destination resumed"]);
}
