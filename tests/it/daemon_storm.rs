//! B83: in a storm the log says what changes, shows a few of each kind, and counts the rest. Nothing is left out of the
//! sum.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use outboxd::proving::daemon::Daemon;
use outboxd::proving::fake::Behaviour;
use serde_json::Value;

use crate::support::World;
use crate::support::world::{NOTHING_PROMISED, SOON, keyed, lines, lines_of};

/// As an operator has it: nothing below info, figures every half minute.
fn at_info(world: &World) -> String {
    let config = world.config().replace("level = \"debug\"", "level = \"info\"");
    config.replace("stats_interval = \"1s\"", "stats_interval = \"30s\"")
}

async fn started(world: &World, config: &str) -> Daemon {
    let daemon = world.start_with(config);
    daemon.logged("outboxd started", SOON).await.expect("started");
    daemon
}

/// Lines of their own, and those that were only counted.
fn told(log: &str, message: &str, counted: &str, field: &str) -> u64 {
    let alone = u64::try_from(lines_of(log, message).len()).expect("a count");
    alone + lines_of(log, counted).iter().filter_map(|line| line[field].as_u64()).sum::<u64>()
}

async fn attempts(world: &World, condition: &str) -> u64 {
    let sql = format!("select count(*) from outbox.attempt where {condition}");
    u64::try_from(world.db.count(&sql).await).expect("a count")
}

const SUCCEEDED: &str = "select count(*) from outbox.status where state = 'succeeded'";

#[tokio::test(flavor = "multi_thread")]
async fn b83_a_thousand_actions_against_a_destination_that_answers_500_are_a_few_lines_and_the_right_counts() {
    let mut world = World::new().await;
    world.operation = keyed("5s", "attempts_max = 100");
    let well = Arc::new(AtomicBool::new(false));
    let heals = Arc::clone(&well);
    world.fake.behave(move |_, _| match heals.load(Ordering::Relaxed) {
        true => Behaviour::accept(),
        false => Behaviour::refuse(500),
    });
    world.enqueue_many("n", 1000).await;
    let mut daemon = started(&world, &at_info(&world)).await;
    world.until_count("select count(*) from outbox.status where attempts = 0", 0).await;
    well.store(true, Ordering::Relaxed);
    world.until_count(SUCCEEDED, 1000).await;
    assert_eq!(daemon.terminate(SOON).await.expect("it ends").code(), Some(0));
    let log = daemon.log();
    assert!(lines(&log).len() <= 40, "{} lines:\n{log}", lines(&log).len());
    let unknown = attempts(&world, "verdict = 'outcome_unknown'").await;
    assert!(unknown >= 1000);
    assert_eq!(told(&log, "outcome unknown", "outcomes counted", "unknown"), unknown, "{log}");
    assert_eq!(told(&log, "outcome resolved", "outcomes counted", "resolved"), 1000, "{log}");
    let troubled = lines_of(&log, "destination troubled");
    assert_eq!(troubled.len(), 1, "{log}");
    assert_eq!((&troubled[0]["destination"], &troubled[0]["status"]), (&Value::from("fake"), &Value::from(500)));
}

#[tokio::test(flavor = "multi_thread")]
async fn b83_what_is_held_for_a_person_in_a_storm_is_counted_with_the_command_that_lists_it() {
    let mut world = World::new().await;
    world.contract = NOTHING_PROMISED.into();
    world.operation = "effect = \"unreconcilable\"\ntimeout = \"5s\"".into();
    world.fake.behave(|_, _| Behaviour::refuse(500));
    world.enqueue_many("n", 300).await;
    let mut daemon = started(&world, &at_info(&world)).await;
    world.until_count("select count(*) from outbox.status where label = 'awaiting_review'", 300).await;
    assert_eq!(daemon.terminate(SOON).await.expect("it ends").code(), Some(0));
    let log = daemon.log();
    assert!(lines(&log).len() <= 40, "{} lines:\n{log}", lines(&log).len());
    assert_eq!(told(&log, "action held for review", "more held for review", "actions"), 300, "{log}");
    let more = &lines_of(&log, "more held for review")[0];
    assert_eq!((&more["level"], &more["list"]), (&Value::from("ERROR"), &Value::from("outboxd review")));
}

#[tokio::test(flavor = "multi_thread")]
async fn b83_a_thousand_actions_against_a_destination_that_withholds_are_a_few_lines_and_the_right_counts() {
    let mut world = World::new().await;
    world.operation = keyed("2s", "attempts_max = 100");
    let well = Arc::new(AtomicBool::new(false));
    let heals = Arc::clone(&well);
    world.fake.behave(move |_, _| match heals.load(Ordering::Relaxed) {
        true => Behaviour::accept(),
        false => Behaviour::accept().withholding(),
    });
    world.enqueue_many("n", 1000).await;
    let mut daemon = started(&world, &at_info(&world)).await;
    // Where the machine is busy, some don't even reach it in time.
    let paused = |log: &str| lines_of(log, "destination silent").len() + lines_of(log, "destination unreachable").len();
    let noticed = async {
        while paused(&daemon.log()) == 0 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(SOON, noticed).await.expect("it is noticed");
    // All that were under way then, and a probe.
    world.until_true("(select count(*) from outbox.attempt) > 64").await;
    well.store(true, Ordering::Relaxed);
    world.until_count(SUCCEEDED, 1000).await;
    assert_eq!(daemon.terminate(SOON).await.expect("it ends").code(), Some(0));
    let log = daemon.log();
    assert!(lines(&log).len() <= 40, "{} lines:\n{log}", lines(&log).len());
    let unknown = attempts(&world, "verdict = 'outcome_unknown'").await;
    assert_eq!(told(&log, "outcome unknown", "outcomes counted", "unknown"), unknown, "{log}");
    assert_eq!(paused(&log), 1, "{log}");
    assert_eq!(lines_of(&log, "destination resumed").len(), 1, "{log}");
}

#[tokio::test(flavor = "multi_thread")]
async fn b83_trouble_below_the_bound_of_a_pause_is_said_once_and_so_is_its_end() {
    let mut world = World::new().await;
    world.operation = keyed("5s", "attempts_max = 1000");
    let (well, n) = (Arc::new(AtomicBool::new(false)), AtomicUsize::new(0));
    let heals = Arc::clone(&well);
    world.fake.behave(move |_, _| match (heals.load(Ordering::Relaxed), n.fetch_add(1, Ordering::Relaxed) % 6) {
        (true, _) | (false, 0 | 2 | 4) => Behaviour::accept(),
        (false, 1) => Behaviour::refuse(503),
        (false, 3) => Behaviour::refuse(429),
        (false, _) => Behaviour::accept().closing(),
    });
    world.enqueue_many("n", 1000).await;
    let mut daemon = world.daemon().await;
    daemon.logged("destination troubled", SOON).await.expect("said");
    world.until_count(SUCCEEDED, 1000).await;
    well.store(true, Ordering::Relaxed);
    let after = async {
        for n in 0.. {
            let action = world.enqueue(&format!("after-{n}")).await;
            world.until(action, "succeeded").await;
            if daemon.log().contains("destination well") {
                break;
            }
        }
    };
    tokio::time::timeout(SOON, after).await.expect("its end is said");
    assert_eq!(daemon.terminate(SOON).await.expect("it ends").code(), Some(0));
    let log = daemon.log();
    assert_eq!((lines_of(&log, "destination troubled").len(), lines_of(&log, "destination well").len()), (1, 1));
    let paused = ["destination silent", "destination unreachable"].map(|message| lines_of(&log, message).len());
    assert_eq!(paused, [0, 0], "{log}");
    // At debug each of them has a line, with its action.
    let counted = lines_of(&log, "action counted");
    let sum = |field: &str| -> u64 {
        lines_of(&log, "outcomes counted").iter().filter_map(|line| line[field].as_u64()).sum()
    };
    let of = |line: &str| u64::try_from(counted.iter().filter(|one| one["line"] == line).count()).expect("a count");
    assert!(of("outcome unknown") > 0 && counted.iter().all(|line| line["action"].is_string()));
    assert_eq!((of("outcome unknown"), of("outcome resolved")), (sum("unknown"), sum("resolved")));
}
