//! Durable before sent: a daemon notices that its ledger is on another cluster or timeline, and sends nothing there until
//! somebody has looked.

use outboxd::core::target::Secret;
use outboxd::ledger::{self, LedgerError};
use outboxd::proving::cluster::{Cluster, ClusterOptions, StopMode};
use outboxd::proving::daemon::Daemon;
use outboxd::proving::fake::{Behaviour, Gate};
use outboxd::proving::session;

use crate::support::World;
use crate::support::world::{SOON, keyed, lines_of};

/// From now on what is asked is another cluster.
pub const ELSEWHERE: &str =
    "create or replace function outbox.cluster(out system_identifier bigint, out timeline int) language sql
       as $$ select 7, 1 $$";

async fn accept(world: &World) -> String {
    let file = world.dir.path().join("accept.toml");
    std::fs::write(&file, world.config()).expect("a file");
    let output = tokio::process::Command::new(World::binary())
        .args(["migrate", "--accept-timeline", "--config"])
        .arg(&file)
        .output()
        .await
        .expect("output");
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// The daemon ends, and says why.
async fn refuses(daemon: &mut Daemon) -> String {
    assert_eq!(daemon.ended(SOON).await.expect("it ends").code(), Some(76), "{}", daemon.log());
    let refused = lines_of(&daemon.log(), "ledger refused");
    assert_eq!(refused.len(), 1, "{}", daemon.log());
    refused[0]["error"].as_str().expect("an error").to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn r11_another_timeline_is_refused_until_it_is_accepted() {
    let world = World::new().await;
    let mut daemon = world.daemon().await;
    assert_eq!(daemon.terminate(SOON).await.expect("it ends").code(), Some(0));
    let known = "select count(*) from outbox.ledger where system_identifier is not null and timeline = 1";
    assert_eq!(world.db.count(known).await, 1, "remembered");
    let action = world.enqueue("n-1").await;
    world.db.run("update outbox.ledger set timeline = 7").await;
    let error = refuses(&mut world.start()).await;
    assert!(error.contains("timeline 7; now") && error.contains("timeline 1)"), "{error}");
    assert!(error.contains("outboxd migrate --accept-timeline"), "{error}");
    let check = world.says(&["check"]).await;
    assert!(check.code == 76 && check.err.contains("outboxd migrate --accept-timeline"), "{check:?}");
    // A migration alone accepts nothing.
    assert_eq!(world.command("migrate", &world.config()).await.status.code(), Some(0));
    refuses(&mut world.start()).await;
    assert_eq!((world.fake.tally().requests, world.standing(action).await.fence), (0, 0));
    assert!(accept(&world).await.contains("timeline 1"));
    let _daemon = world.daemon().await;
    world.until(action, "succeeded").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_check_remembers_nothing() {
    let world = World::new().await;
    let check = world.says(&["check"]).await.done();
    assert!(check.ends_with("configuration and database are in order\n"), "{check}");
    assert_eq!(world.db.count("select count(*) from outbox.ledger where remembered_at is null").await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn r11_another_cluster_that_is_met_at_a_reconnect_ends_a_running_daemon() {
    let world = World::new().await;
    let mut daemon = world.daemon().await;
    world.db.run(ELSEWHERE).await;
    let action = world.enqueue("before").await;
    world.until(action, "succeeded").await;
    // Idle sessions that end are replaced without a word, and no statement meets an error.
    world
        .db
        .run(
            "select pg_terminate_backend(pid) from pg_stat_activity
               where application_name = 'outboxd' and datname = current_database()",
        )
        .await;
    let error = refuses(&mut daemon).await;
    assert!(error.contains("another cluster"), "{error}");
    let after = world.enqueue("after").await;
    assert_eq!((world.fake.tally().requests, world.standing(after).await.fence), (1, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn r11_another_cluster_that_a_settle_meets_first_ends_the_daemon_too() {
    let mut world = World::new().await;
    world.operation = keyed("600s", "");
    // It does not claim while the settle meets it.
    world.dispatcher = "poll_interval = \"4s\"\nnotify = false\ndrain_timeout = \"1s\"".into();
    let gate = Gate::new();
    let held = gate.clone();
    world.fake.behave(move |_, _| Behaviour::accept().held_by(&held));
    let action = world.enqueue("n-1").await;
    let mut daemon = world.daemon().await;
    world.fake.wait_seen(1).await.expect("under way");
    world
        .db
        .run(&format!(
            "{ELSEWHERE};
             select pg_terminate_backend(pid) from pg_stat_activity
               where application_name = 'outboxd' and datname = current_database()"
        ))
        .await;
    gate.open();
    let ended = daemon.ended(SOON).await.unwrap_or_else(|_| panic!("it goes on:\n{}", daemon.log()));
    assert_eq!(ended.code(), Some(76));
    assert_eq!(lines_of(&daemon.log(), "ledger refused").len(), 1, "{}", daemon.log());
    assert_eq!(lines_of(&daemon.log(), "action abandoned")[0]["action"], action.to_string());
}

#[tokio::test(flavor = "multi_thread")]
async fn r11_no_new_session_is_used_that_is_with_another_cluster() {
    let world = World::new().await;
    let ledger = ledger::connect(&Secret::new(&world.url), 1, "w").expect("a ledger");
    ledger.recognise().await.expect("remembered");
    world.db.run(ELSEWHERE).await;
    ledger.clock().await.expect("the session that is open is still where it was");
    ledger.close_idle_sessions();
    let refused = ledger.clock().await.expect_err("a new session");
    assert!(matches!(refused, LedgerError::OtherCluster(_)), "{refused}");
    assert!(refused.to_string().contains("; now system identifier 7, timeline 1)"), "{refused}");
}

#[tokio::test(flavor = "multi_thread")]
async fn r11_a_cluster_that_was_recovered_from_its_archive_is_another_timeline() {
    let options = ClusterOptions::default().set("fsync", "off").set("wal_level", "replica");
    let mut cluster = Cluster::start(options.set("restore_command", "false")).expect("a cluster of its own");
    let url = cluster.url("postgres", "postgres");
    ledger::migrate(&Secret::new(&url)).await.expect("a schema");
    let ledger = ledger::connect(&Secret::new(&url), 2, "w").expect("a ledger");
    let first = ledger.recognise().await.expect("remembered");
    assert!(first.readable);
    assert_eq!(ledger.recognise().await.expect("the same"), first);
    cluster.stop(StopMode::Fast).expect("it stops");
    std::fs::write(cluster.data_dir().join("recovery.signal"), "").expect("a file");
    cluster.resume().expect("it recovers, and is promoted");
    let client = session::connect(&url).await.expect("a session");
    let recovered = async {
        while client.query_one("select pg_is_in_recovery()", &[]).await.expect("an answer").get(0) {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(SOON, recovered).await.expect("recovered");
    let ledger = ledger::connect(&Secret::new(&url), 2, "w").expect("a ledger");
    let refused = ledger.recognise().await.expect_err("another timeline");
    assert!(matches!(refused, LedgerError::OtherCluster(_)), "{refused}");
    assert!(refused.to_string().contains("timeline 2)"), "{refused}");
    let accepted = ledger::accept_cluster(&Secret::new(&url)).await.expect("accepted");
    assert!(accepted.ends_with("timeline 2"), "{accepted}");
    assert_eq!(ledger.recognise().await.expect("the same ledger").ledger, first.ledger);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_read_of_the_cluster_is_not_compared() {
    let mut world = World::new().await;
    world
        .db
        .run(&format!(
            "create role narrow_{0} login superuser; alter role narrow_{0} nosuperuser;
             grant usage on schema outbox to narrow_{0}; grant all on all tables in schema outbox to narrow_{0};
             grant execute on all functions in schema outbox to narrow_{0};
             alter function outbox.recognise() owner to narrow_{0};
             revoke execute on function pg_control_system() from public;
             revoke execute on function pg_walfile_name(pg_lsn) from public",
            world.db.name
        ))
        .await;
    world.url = world.db.url_as(&format!("narrow_{}", world.db.name));
    let daemon = world.daemon().await;
    daemon.logged("cluster unreadable", SOON).await.expect("said");
    let action = world.enqueue("n-1").await;
    world.until(action, "succeeded").await;
    assert_eq!(world.db.count("select count(*) from outbox.ledger where system_identifier is null").await, 1);
    drop(daemon);
}
