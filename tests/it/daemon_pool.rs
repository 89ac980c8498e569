//! Few sessions: a pool of one or two, a server that gives no more. Nothing waits for itself, and deliveries go on.

use std::time::Duration;

use outboxd::core::target::Secret;
use outboxd::ledger;
use outboxd::proving::cluster::{Cluster, ClusterOptions};
use outboxd::proving::fake::{Behaviour, Gate};
use outboxd::proving::session;

use crate::support::world::{NOTHING_PROMISED, SOON, keyed, lines, lines_of};
use crate::support::{Database, World};

const CLOSED: &str = "select count(*) from outbox.status where closed_at is not null";

/// Everything that asks for a session: claims, settles, marks, serial queues, the janitor, the figures, the presence.
async fn storm(pool_size: u32) {
    let mut world = World::new().await;
    world.database = format!("pool_size = {pool_size}");
    world.operation = keyed("600s", "");
    world.contract.push_str(&NOTHING_PROMISED.replace("test", "nothing"));
    world.also("note.once", "/once", "effect = \"unreconcilable\"\ntimeout = \"600s\"");
    world.contract = world.contract.replace(
        "request = { method = \"POST\", path = \"/once\" }\ncontract = \"test\"",
        "request = { method = \"POST\", path = \"/once\" }\ncontract = \"nothing\"",
    );
    world.fake.behave(|seen, before| match before {
        0 if seen.header("idempotency-key").is_some() => Behaviour::refuse(429),
        _ => Behaviour::accept(),
    });
    for operation in ["note.publish", "note.once"] {
        let sql = "select outbox.enqueue($1, '{}', $1 || i, ordering_key => case when i % 3 = 0 then 'q' || i % 7 end)
             from generate_series(1, 250) i";
        world.db.client.execute(sql, &[&operation]).await.expect("enqueued");
    }
    let mut daemon = world.daemon().await;
    let all = async {
        while world.db.count(CLOSED).await < 500 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(2 * SOON, all).await.unwrap_or_else(|_| panic!("they stopped:\n{}", daemon.log()));
    daemon.logged("\"stats\"", SOON).await.expect("figures");
    let sessions =
        "select count(*) from pg_stat_activity where application_name = 'outboxd' and datname = current_database()";
    // The doorbell has a session of its own.
    assert!(world.db.count(sessions).await <= i64::from(pool_size) + 1);
    assert_eq!(lines_of(&daemon.log(), "ledger lost").len(), 0, "{}", daemon.log());
    assert_eq!(daemon.terminate(SOON).await.expect("it drains").code(), Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn b51_a_pool_of_one_session_is_enough_for_everything() {
    storm(1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn b51_a_pool_of_two_sessions_is_enough_for_everything() {
    storm(2).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn b44_a_server_that_has_no_session_left_is_waited_for() {
    let options = ClusterOptions::default().set("fsync", "off").set("max_connections", "8");
    let cluster = Cluster::start(options.set("superuser_reserved_connections", "1")).expect("a cluster of its own");
    let url = cluster.url("postgres", "postgres");
    ledger::migrate(&Secret::new(&url)).await.expect("a schema");
    let mut world = World::new().await;
    let client = session::connect(&url).await.expect("a session");
    world.db = Database { url: url.clone(), name: "postgres".into(), client };
    world.db.run("create role app login; create role daemon login").await;
    world.db.run(include_str!("../../deploy/roles.sql")).await;
    world.db.run("grant outbox_dispatcher to daemon").await;
    world.url = cluster.url("daemon", "postgres");
    let action = world.enqueue("n-1").await;
    // Others have them all.
    let mut others = Vec::new();
    while let Ok(other) = session::connect(&cluster.url("app", "postgres")).await {
        others.push(other);
        assert!(others.len() < 20);
    }
    let daemon = world.start();
    daemon.logged("ledger lost", SOON).await.expect("it waits");
    world.fake.wait_until(Duration::from_secs(2), |tally| tally.requests > 0).await.expect_err("nothing is sent");
    assert!(lines(&daemon.log()).len() <= 2, "{}", daemon.log());
    // One for the claims, one for the settles; all others stay taken.
    others.truncate(others.len() - 2);
    world.until(action, "succeeded").await;
    for n in 0..100 {
        world.enqueue(&format!("more-{n}")).await;
    }
    world.until_count(CLOSED, 101).await;
    let log = daemon.log();
    let said = lines(&log).into_iter().filter(|line| ["INFO", "WARN", "ERROR"].iter().any(|l| line["level"] == **l));
    let said: Vec<_> = said.filter(|line| line["message"] != "stats").collect();
    assert!(said.len() <= 8, "{said:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn b44_fewer_sessions_than_the_pool_may_have_are_made_do_with() {
    let mut world = World::new().await;
    world.operation = keyed("600s", "");
    world.dispatcher.push_str("\nnotify = false");
    let role = format!("few_{}", world.db.name);
    world.db.run(include_str!("../../deploy/roles.sql")).await;
    // One of eight.
    world.db.run(&format!("create role {role} login connection limit 1; grant outbox_dispatcher to {role}")).await;
    world.url = world.db.url_as(&role);
    let gate = Gate::new();
    let held = gate.clone();
    world.fake.behave(move |seen, _| match seen.text().contains("locked") {
        true => Behaviour::accept().held_by(&held),
        false => Behaviour::accept(),
    });
    let locked = world.enqueue("locked").await;
    let daemon = world.daemon().await;
    world.fake.wait_seen(1).await.expect("under way");
    let mut other = world.db.session().await;
    let locking = other.transaction().await.expect("a transaction");
    locking.execute("select from outbox.delivery where action_id = $1 for update", &[&locked]).await.expect("locked");
    gate.open();
    // Its settle has the session and waits, for one while after the other; claims and settles of others want it too.
    let waits = format!("exists (select from pg_stat_activity where usename = '{role}' and wait_event_type = 'Lock')");
    world.until_true(&waits).await;
    for n in 0..20 {
        let action = world.enqueue(&format!("n-{n}")).await;
        world.until(action, "succeeded").await;
    }
    locking.commit().await.expect("let go");
    world.until(locked, "succeeded").await;
    daemon.logged("sessions short", SOON).await.expect("it is said");
    let short = lines_of(&daemon.log(), "sessions short");
    assert_eq!((short.len(), &short[0]["pool_size"]), (1, &8.into()));
    // At the very beginning, before there was one.
    let (lost, back) = (lines_of(&daemon.log(), "ledger lost").len(), lines_of(&daemon.log(), "ledger back").len());
    assert!(lost <= 1 && back <= 1, "{}", daemon.log());
    assert_eq!((world.fake.tally().requests, world.fake.duplicates()), (21, 0));
}
