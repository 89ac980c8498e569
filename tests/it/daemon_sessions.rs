//! Sessions with the database that are limited, cut off, refused, or have become read-only under us.

use std::time::Duration;

use outboxd::core::target::Secret;
use outboxd::ledger;
use outboxd::proving::cluster::{Cluster, ClusterOptions};
use outboxd::proving::daemon::Daemon;
use outboxd::proving::fake::{Behaviour, Gate};
use outboxd::proving::session;
use tokio::net::{TcpListener, TcpStream};
use tokio_postgres::Client;

use crate::support::world::{SOON, keyed, lines_of};
use crate::support::{Proxy, World};

/// A world whose ledger is a server of its own, with a session there that may always write.
async fn own_server() -> (World, Cluster, Client) {
    let options = ClusterOptions::default().set("fsync", "off").set("log_error_verbosity", "verbose");
    let cluster = Cluster::start(options).expect("a private PostgreSQL");
    let url = cluster.url("postgres", "postgres");
    ledger::migrate(&Secret::new(&url)).await.expect("a schema");
    let mut world = World::new().await;
    let admin = session::connect(&url).await.expect("a session");
    admin.batch_execute("set default_transaction_read_only = off").await.expect("set");
    world.url = url;
    (world, cluster, admin)
}

async fn enqueue(admin: &Client, keys: std::ops::Range<i32>) {
    let sql = "select outbox.enqueue('note.publish', '{}', 'n-' || i) from generate_series($1, $2 - 1) i";
    admin.query(sql, &[&keys.start, &keys.end]).await.expect("enqueued");
}

async fn count(admin: &Client, sql: &str) -> i64 {
    admin.query_one(sql, &[]).await.expect("a count").get(0)
}

async fn until_count(admin: &Client, sql: &str, n: i64) {
    let wait = async {
        while count(admin, sql).await != n {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    if tokio::time::timeout(SOON, wait).await.is_err() {
        panic!("{sql} gives {}, not {n}", count(admin, sql).await);
    }
}

const DONE: &str = "select count(*) from outbox.status where state = 'succeeded'";

/// Sessions of daemons that have been in a transaction, idle, for longer than a second.
const IDLE_IN_TRANSACTION: &str = "select count(*) from pg_stat_activity where application_name = 'outboxd'
    and datname = current_database() and state like 'idle in transaction%' and now() - state_change > interval '1 s'";

#[tokio::test(flavor = "multi_thread")]
async fn b48_a_server_that_becomes_read_only_stops_all_sending_and_it_goes_on_alone() {
    let (world, _cluster, admin) = own_server().await;
    let daemon = world.daemon().await;
    enqueue(&admin, 0..1).await;
    until_count(&admin, DONE, 1).await;
    // As after a failover whose old sessions live on: they reach a server that takes no writes any more.
    admin.batch_execute("alter system set default_transaction_read_only = on").await.expect("set");
    admin.batch_execute("select pg_reload_conf()").await.expect("reloaded");
    let before = "select count(*) from pg_stat_activity where application_name = 'outboxd' and state = 'idle'
        and query not ilike '%advisory%' and query not ilike 'listen%'";
    daemon.logged("ledger lost", SOON).await.expect("noticed");
    enqueue(&admin, 1..6).await;
    // What was open has been thrown away, and nothing that could not write either is kept.
    until_count(&admin, before, 0).await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(
        (world.fake.seen().len(), count(&admin, DONE).await),
        (1, 1),
        "sent, although no claim could be written"
    );
    let lost = lines_of(&daemon.log(), "ledger lost");
    assert_eq!(lost.len(), 1, "{lost:?}");

    admin.batch_execute("alter system reset default_transaction_read_only").await.expect("reset");
    admin.batch_execute("select pg_reload_conf()").await.expect("reloaded");
    until_count(&admin, DONE, 6).await;
    assert_eq!(world.fake.effects().len(), 6);
    daemon.logged("ledger back", SOON).await.expect("back");
}

#[tokio::test(flavor = "multi_thread")]
async fn b49_statements_that_are_cancelled_leave_no_session_in_a_failed_transaction() {
    let (mut world, cluster, admin) = own_server().await;
    admin.batch_execute("alter role postgres set statement_timeout = '200ms'").await.expect("set");
    world.operation = keyed("20s", "");
    let gate = Gate::new();
    let held = gate.clone();
    world.fake.behave(move |_, _| Behaviour::accept().held_by(&held));
    let daemon = world.daemon().await;
    enqueue(&admin, 0..10).await;
    world.fake.wait_seen(10).await.expect("under way");
    // Now nothing can be claimed, nothing settled, and the answers come.
    admin
        .batch_execute("begin; lock table outbox.delivery, outbox.attempt in access exclusive mode")
        .await
        .expect("held");
    gate.open();
    daemon.logged("ledger lost", SOON).await.expect("noticed");
    let watcher = session::connect(&world.url).await.expect("a session");
    watcher.batch_execute("set statement_timeout = 0").await.expect("set");
    for _ in 0..20 {
        let cancel = "select count(pg_cancel_backend(pid)) from pg_stat_activity
            where application_name = 'outboxd' and state = 'active'";
        count(&watcher, cancel).await;
        assert_eq!(count(&watcher, IDLE_IN_TRANSACTION).await, 0, "idle in a transaction");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    admin.batch_execute("commit").await.expect("released");
    enqueue(&admin, 10..20).await;
    until_count(&admin, DONE, 20).await;
    assert_eq!((world.fake.effects().len(), world.fake.duplicates()), (20, 0));
    let log = cluster.log();
    let cancelled = ["55P03", "57014"].iter().any(|state| log.contains(state));
    assert!(cancelled && !log.contains("25P02"), "{log}");
}

/// Every session of this world's database gets this, unless it says otherwise.
async fn limited(world: &World, setting: &str, value: &str) -> bool {
    let known = world.db.one::<bool>("select exists (select from pg_settings where name = $1)", &[&setting]).await;
    if known {
        let name = &world.db.name;
        world.db.run(&format!("alter database {name} set {setting} = '{value}'")).await;
    }
    known
}

#[tokio::test(flavor = "multi_thread")]
async fn b51_fifty_slow_calls_over_two_sessions_hold_no_transaction() {
    let mut world = World::new().await;
    limited(&world, "idle_in_transaction_session_timeout", "1s").await;
    world.database = "pool_size = 2".into();
    world.operation = keyed("30s", "");
    let gate = Gate::new();
    let held = gate.clone();
    world.fake.behave(move |_, _| Behaviour::accept().held_by(&held));
    let daemon = world.daemon().await;
    world.enqueue_many("n", 50).await;
    // All at once, although there are two sessions.
    world.fake.wait_seen(50).await.expect("fifty at once");
    for _ in 0..15 {
        assert_eq!(world.db.count(IDLE_IN_TRANSACTION).await, 0, "idle in a transaction");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    gate.open();
    world.until_count(DONE, 50).await;
    assert_eq!((world.fake.seen().len(), world.fake.effects().len()), (50, 50), "one round");
    assert!(lines_of(&daemon.log(), "ledger lost").is_empty(), "{}", daemon.log());
}

#[tokio::test(flavor = "multi_thread")]
async fn sessions_that_idle_are_not_cut_off_by_a_limit_on_idling() {
    let mut world = World::new().await;
    if !limited(&world, "idle_session_timeout", "500ms").await {
        return;
    }
    world.dispatcher = "poll_interval = \"30s\"".into();
    let daemon = world.daemon().await;
    let first = world.enqueue("n-1").await;
    world.until(first, "succeeded").await;
    tokio::time::sleep(Duration::from_secs(3)).await;
    let second = world.enqueue("n-2").await;
    world.until(second, "succeeded").await;
    let log = daemon.log();
    assert!(lines_of(&log, "doorbell lost").is_empty() && lines_of(&log, "ledger lost").is_empty(), "{log}");
}

#[tokio::test(flavor = "multi_thread")]
async fn limits_of_the_role_on_locks_statements_and_transactions_are_not_ours() {
    let world = World::new().await;
    for (setting, value) in [("lock_timeout", "1ms"), ("statement_timeout", "100ms"), ("transaction_timeout", "5s")] {
        // transaction_timeout is younger than some servers that we run on.
        limited(&world, setting, value).await;
    }
    let _daemon = world.daemon().await;
    world.enqueue_many("n", 300).await;
    world.until_count(DONE, 300).await;
    assert_eq!((world.fake.effects().len(), world.fake.duplicates()), (300, 0));
}

/// The database's URL, by way of a front whose server never says a word to the first so many connections.
async fn mute_at_first(url: &str, mute: usize) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let from = url.find("127.0.0.1:").expect("a TCP address");
    let to = url[from..].find('/').map_or(url.len(), |end| from + end);
    let (server, ours) = (url[from..to].to_owned(), listener.local_addr().expect("an address").to_string());
    tokio::spawn(async move {
        let mut unheard = Vec::new();
        while let Ok((mut client, _)) = listener.accept().await {
            if unheard.len() < mute {
                unheard.push(client);
                continue;
            }
            let server = server.clone();
            tokio::spawn(async move {
                let mut server = TcpStream::connect(server).await?;
                tokio::io::copy_bidirectional(&mut client, &mut server).await
            });
        }
    });
    url.replace(&url[from..to], &ours)
}

#[tokio::test(flavor = "multi_thread")]
async fn b44_a_session_that_is_never_opened_is_given_up() {
    let mut world = World::new().await;
    // As many as are asked for at a start, at least.
    let url = mute_at_first(&world.db.url, 5).await;
    world.url = format!("{url}?sslmode=disable&connect_timeout=1");
    world.dispatcher.push_str("\nnotify = false");
    let _daemon = world.daemon().await;
    let action = world.enqueue("n-1").await;
    world.until(action, "succeeded").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn b43_a_listening_session_that_says_nothing_any_more_holds_up_no_claim() {
    let mut world = World::new().await;
    let proxy = Proxy::start(&world.db.url).await.expect("a way");
    world.database = format!("direct_url = \"{}\"", proxy.url);
    let daemon = world.daemon().await;
    world.until_true("exists (select from pg_locks where locktype = 'advisory' and mode = 'ExclusiveLock')").await;
    proxy.freeze();
    for n in 0..3 {
        let action = world.enqueue(&format!("n-{n}")).await;
        world.until(action, "succeeded").await;
    }
    daemon.logged("doorbell lost", SOON).await.expect("lost");
    proxy.let_go();
    daemon.logged("doorbell back", 2 * SOON).await.expect("back");
    assert_eq!(lines_of(&daemon.log(), "ledger lost").len(), 0, "{}", daemon.log());
}

#[tokio::test(flavor = "multi_thread")]
async fn b44_a_session_that_says_nothing_any_more_is_given_up_and_another_one_asked() {
    let (world, _cluster, admin) = own_server().await;
    let proxy = Proxy::start(&world.url).await.expect("a way");
    let patience = Duration::from_millis(500);
    let ledger = ledger::connect_impatient(&Secret::new(&proxy.url), 2, "tests", patience).expect("a pool");
    ledger.check_schema().await.expect("an answer");
    let pids = "select coalesce(sum(pid), 0) from pg_stat_activity where application_name = 'outboxd'";
    let first = count(&admin, pids).await;
    // Bytes are taken as ever, so neither TCP nor the server finds anything wrong.
    proxy.freeze();
    let silence = ledger.check_schema().await.expect_err("no answer");
    assert!(silence.is_session() && !silence.says_undone(), "nobody knows what came of it: {silence}");
    proxy.let_go();
    ledger.check_schema().await.expect("an answer");
    let wait = async {
        while [0, first].contains(&count(&admin, pids).await) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(SOON, wait).await.expect("another session");
    let sessions = "select count(*) from pg_stat_activity where application_name = 'outboxd'";
    until_count(&admin, sessions, 1).await;
}

/// A daemon whose claims are not answered, and which has said so.
async fn unanswered() -> (World, Cluster, Client, Proxy, Daemon) {
    let (mut world, cluster, admin) = own_server().await;
    let proxy = Proxy::start(&world.url).await.expect("a way");
    world.url = proxy.url.clone();
    let daemon = world.daemon().await;
    // Only claims say that.
    proxy.hold_answers_with("note.publish");
    enqueue(&admin, 0..3).await;
    daemon.logged("ledger lost", SOON).await.expect("told");
    assert_eq!(world.fake.seen().len(), 0);
    (world, cluster, admin, proxy, daemon)
}

/// It goes on, and the whole was one outage.
async fn goes_on(world: &World, admin: &Client, daemon: &Daemon) {
    daemon.logged("ledger back", SOON).await.expect("told");
    until_count(admin, DONE, 3).await;
    assert_eq!((world.fake.effects().len(), world.fake.duplicates()), (3, 0));
    let (lost, back) = (lines_of(&daemon.log(), "ledger lost"), lines_of(&daemon.log(), "ledger back"));
    assert_eq!((lost.len(), back.len()), (1, 1), "{lost:?} {back:?}");
    assert!(lost[0].to_string().contains("no answer to a claim"), "{lost:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn b83_a_claim_that_is_not_answered_is_told_once_and_so_is_its_answer() {
    let (world, _cluster, admin, proxy, daemon) = unanswered().await;
    proxy.let_go();
    goes_on(&world, &admin, &daemon).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn b83_a_slow_claim_whose_session_breaks_is_one_outage() {
    let (world, _cluster, admin, proxy, daemon) = unanswered().await;
    // What waits is lost.
    proxy.cut();
    proxy.let_go();
    goes_on(&world, &admin, &daemon).await;
    let unknown = "select count(*) from outbox.attempt where verdict = 'outcome_unknown'";
    assert_eq!(count(&admin, unknown).await, 0, "nothing of the lost claim was sent");
}
