//! What a daemon bears: endless answers, a clock that runs ahead, a call that takes long.

use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use outboxd::clock::{stopwatch, wall};
use outboxd::proving::daemon::Daemon;
use outboxd::proving::fake::{Behaviour, Gate};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use crate::support::World;
use crate::support::world::{SOON, keyed, lines};

/// A destination that answers 201 and then never stops.
async fn endless() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let addr = listener.local_addr().expect("an address");
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let _ = stream.read(&mut [0; 4096]).await;
                let _ = stream.write_all(b"HTTP/1.1 201 Created\r\ntransfer-encoding: chunked\r\n\r\n").await;
                let chunk = format!("10000\r\n{}\r\n", "{".repeat(0x10000));
                while stream.write_all(chunk.as_bytes()).await.is_ok() {}
            });
        }
    });
    addr
}

#[tokio::test(flavor = "multi_thread")]
async fn b08_endless_answers_cost_neither_memory_nor_the_delivery() {
    let world = World::new().await;
    let addr = endless().await;
    let daemon = world.start_with(&world.config().replace(&world.fake.base_url(), &format!("http://{addr}")));
    daemon.logged("outboxd started", SOON).await.expect("started");
    let before = daemon.usage().expect("Linux").peak_rss;
    world.enqueue_many("n", 8).await;
    world.until_count("select count(*) from outbox.status where state = 'succeeded'", 8).await;
    let grown = daemon.usage().expect("Linux").peak_rss - before;
    assert!(grown < 50 << 20, "it grew by {grown} bytes");
    // The receipt could not be read; the history says so in a few words.
    world
        .until_count("select count(*) from outbox.attempt where octet_length(detail) < 200 and receipt is null", 8)
        .await;
}

/// Runs before a program's own clock: the wall clock is ten minutes ahead, and nothing else is.
const AHEAD: &str = r#"
#define _GNU_SOURCE
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
int clock_gettime(clockid_t clock, struct timespec *now) {
    int done = syscall(SYS_clock_gettime, clock, now);
    if (done == 0 && clock == CLOCK_REALTIME) now->tv_sec += 600;
    return done;
}
"#;

fn ahead(dir: &Path) -> std::path::PathBuf {
    let (source, library) = (dir.join("ahead.c"), dir.join("ahead.so"));
    std::fs::write(&source, AHEAD).expect("written");
    let built = Command::new("cc").args(["-shared", "-fPIC", "-o"]).arg(&library).arg(&source).status();
    assert!(built.expect("a C compiler").success());
    library
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
async fn b37_a_daemon_whose_clock_runs_ahead_takes_no_living_lease_and_nothing_before_its_time() {
    let mut world = World::new().await;
    world.operation = keyed("30s", "");
    world.dispatcher = "lease_margin = \"5s\"\npoll_interval = \"100ms\"\nmax_in_flight = 1".into();
    let gate = Gate::new();
    let held = gate.clone();
    world.fake.behave(move |_, _| Behaviour::accept().held_by(&held));
    let _owner = world.daemon().await;
    let first = world.enqueue("held").await;
    world.fake.wait_seen(1).await.expect("under way");
    // Due before the other daemon's clock, not before the database's.
    let later: uuid::Uuid = world
        .db
        .client
        .query_one(
            "select action_id from outbox.enqueue('note.publish', '{}', 'later', not_before => now() + interval '5 min')",
            &[],
        )
        .await
        .expect("enqueued")
        .get(0);

    let file = world.dir.path().join("ahead.toml");
    std::fs::write(&file, world.config()).expect("written");
    let mut command = tokio::process::Command::new(World::binary());
    command.env("LD_PRELOAD", ahead(world.dir.path())).args(["run", "--config"]).arg(&file);
    let second = Daemon::start_with(&mut command, &world.dir.path().join("ahead.log")).expect("a daemon");
    second.logged("outboxd started", SOON).await.expect("started");
    let said = lines(&second.log())[0]["timestamp"].as_str().expect("a time").to_owned();
    let now = wall().duration_since(std::time::UNIX_EPOCH).expect("after 1970").as_secs();
    let ahead: i64 = world
        .db
        .client
        .query_one("select extract(epoch from $1::text::timestamptz)::bigint", &[&said])
        .await
        .expect("a time")
        .get(0);
    assert!(ahead > i64::try_from(now).expect("a time") + 500, "its clock runs ahead");

    // What is free it takes: the owner is full. What is leased it leaves alone, for many of its polls.
    let free = world.enqueue("free").await;
    world.fake.wait_seen(2).await.expect("it takes what is free");
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!((world.seen_of(first).len(), world.seen_of(free).len(), world.seen_of(later).len()), (1, 1, 0));
    gate.open();
    for action in [first, free] {
        world.until(action, "succeeded").await;
        assert_eq!(world.standing(action).await.fence, 1);
    }
    assert_eq!((world.fake.tally().requests, world.standing(later).await.fence), (2, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn b41_an_operation_whose_slots_all_hang_does_not_make_the_daemon_deaf_to_the_bell() {
    let mut world = World::new().await;
    world.dispatcher = "lease_margin = \"500ms\"\npoll_interval = \"60s\"".into();
    world.also("note.hang", "/hang", "effect = \"keyed\"\ntimeout = \"60s\"\nmax_in_flight = 2");
    world.fake.behave(|seen, _| match seen.path.as_str() {
        "/hang" => Behaviour::accept().withholding(),
        _ => Behaviour::accept(),
    });
    for n in 0..10 {
        world.db.enqueue("note.hang", "{}", &format!("hang-{n}")).await;
    }
    let _daemon = world.daemon().await;
    world.fake.wait_seen(2).await.expect("both slots are taken");
    for n in 0..3 {
        let quick = world.enqueue(&format!("quick-{n}")).await;
        world.until(quick, "succeeded").await;
    }
    assert_eq!(world.fake.seen().iter().filter(|seen| seen.path == "/hang").count(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn b40_b51_a_call_that_takes_long_holds_no_lock_no_transaction_and_nobody_up() {
    let mut world = World::new().await;
    world.operation = keyed("30s", "");
    let gate = Gate::new();
    let held = gate.clone();
    world.fake.behave(move |seen, _| match seen.body.windows(4).any(|w| w == b"slow") {
        true => Behaviour::accept().held_by(&held),
        false => Behaviour::accept(),
    });
    let _one = world.daemon().await;
    let slow = world.enqueue("slow").await;
    world.fake.wait_seen(1).await.expect("under way");
    let _other = world.daemon().await;
    let started = stopwatch();
    world.enqueue_many("quick", 100).await;
    let watcher = world.db.session().await;
    let sql = "select
        count(*) filter (where wait_event_type = 'Lock'),
        count(*) filter (where state like 'idle in transaction%' and now() - state_change > interval '1 s')
        from pg_stat_activity where datname = current_database() and application_name = 'outboxd'";
    while world.db.count("select count(*) from outbox.status where state = 'succeeded'").await < 100 {
        let row = watcher.query_one(sql, &[]).await.expect("sessions");
        assert_eq!((row.get::<_, i64>(0), row.get::<_, i64>(1)), (0, 0), "waiting, or idle in a transaction");
        assert!(started.elapsed() < SOON, "the others are held up");
    }
    // With everything else done, the one call is all there is: its row is not locked, and no transaction is open.
    let open =
        "select count(*) from pg_stat_activity where datname = current_database() and application_name = 'outboxd'
        and backend_xmin is not null and now() - xact_start > interval '1 s'";
    assert_eq!(world.db.count(open).await, 0);
    assert_eq!(
        world
            .db
            .count(&format!(
                "select count(*) from (select from outbox.delivery where action_id = '{slow}' for update nowait) r"
            ))
            .await,
        1
    );
    gate.open();
    world.until(slow, "succeeded").await;
    assert_eq!(world.seen_of(slow).len(), 1);
}
