//! No room for the journal: nothing more is claimed, what is in memory stays there, and it goes on when there is room.
//!
//! The room is a limit on the size of the daemon's files (RLIMIT_FSIZE) that is moved while it runs; a write past it fails
//! as one on a full disk does, with another code. The log goes through a pipe, which has no such limit.
#![cfg(target_os = "linux")]

use std::time::Duration;

use outboxd::proving::daemon::Daemon;
use outboxd::proving::fake::{Behaviour, Gate};
use rustix::process::{Pid, Resource, Rlimit, Signal, prlimit};
use tokio::process::Command;

use crate::journal::file;
use crate::support::world::{SOON, keyed, lines, lines_of, open, shut};
use crate::support::{Proxy, World};

/// Of the daemon's files, in bytes; far less than what these worlds learn at once.
const ROOM: u64 = 8 << 10;
/// At once, and as many again that wait.
const MANY: usize = 120;
const SUCCEEDED: &str = "select count(*) from outbox.status where state = 'succeeded'";

/// A world with a journal, whose answers wait for the gate.
async fn journaled() -> (World, Gate) {
    let mut world = World::new().await;
    world.operation = keyed("600s", "");
    world.destination = format!("max_in_flight = {MANY}");
    world
        .dispatcher
        .push_str(&format!("\njournal = \"daemon.journal\"\ndrain_timeout = \"1s\"\nmax_in_flight = {MANY}"));
    let gate = Gate::new();
    let held = gate.clone();
    world.fake.behave(move |_, _| Behaviour::accept().held_by(&held));
    world.enqueue_many("n", i32::try_from(2 * MANY).expect("a count")).await;
    (world, gate)
}

/// A daemon that a write past the limit does not kill.
async fn started(world: &World, name: &str) -> Daemon {
    let of = |ends: &str| world.dir.path().join(format!("{name}.{ends}"));
    let config = world.config().replace("level = \"debug\"", "level = \"info\"");
    std::fs::write(of("toml"), config.replace("stats_interval = \"1s\"", "stats_interval = \"30s\"")).expect("a file");
    let mut command = Command::new("sh");
    // It has the shell's process id.
    let script = "trap '' XFSZ; mkfifo \"$2\"; cat \"$2\" & exec \"$0\" run --config \"$1\" 2> \"$2\"";
    command.args(["-c", script]).arg(World::binary()).arg(of("toml")).arg(of("pipe"));
    let daemon = Daemon::start_with(&mut command, &of("log")).expect("a daemon");
    daemon.logged("outboxd started", SOON).await.expect("started");
    daemon
}

fn room(daemon: &Daemon, bytes: Option<u64>) {
    let pid = Pid::from_raw(i32::try_from(daemon.pid()).expect("a pid"));
    prlimit(pid, Resource::Fsize, Rlimit { current: bytes, maximum: None }).expect("a limit");
}

/// All that may be under way is answered while the database is away and the journal has no room for it.
async fn answered_without_room(world: &World, gate: &Gate, daemon: &Daemon) {
    world.fake.wait_seen(MANY).await.expect("under way");
    room(daemon, Some(ROOM));
    shut(world).await;
    gate.open();
    daemon.logged("journal failed", SOON).await.expect("it is said");
}

#[tokio::test(flavor = "multi_thread")]
async fn r11_a_journal_without_room_is_said_once_and_loses_nothing_that_memory_has() {
    let (world, gate) = journaled().await;
    let daemon = started(&world, "daemon").await;
    answered_without_room(&world, &gate, &daemon).await;
    // Many tries later it is as it was.
    let before = lines(&daemon.log()).len();
    world.fake.wait_until(Duration::from_secs(3), |tally| tally.requests > MANY).await.expect_err("nothing is sent");
    assert_eq!(lines_of(&daemon.log(), "journal failed").len(), 1, "{}", daemon.log());
    assert!(lines(&daemon.log()).len() - before <= 2, "{}", daemon.log());
    // The database is back before there is room: what memory has goes there, and so does the rest.
    open(&world).await;
    world.until_count(SUCCEEDED, i64::try_from(2 * MANY).expect("a count")).await;
    assert_eq!(world.db.count("select count(*) from outbox.attempt where evidence <> 'accepted'").await, 0);
    assert_eq!((world.fake.tally().requests, world.fake.duplicates()), (2 * MANY, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn r11_a_journal_that_has_room_again_keeps_all_that_was_learnt_meanwhile() {
    let (world, gate) = journaled().await;
    let mut daemon = started(&world, "daemon").await;
    answered_without_room(&world, &gate, &daemon).await;
    room(&daemon, None);
    let kept = async {
        while std::fs::read_to_string(file(&world)).expect("a journal").matches("\"action\":").count() < MANY {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(SOON, kept).await.expect("it goes on");
    daemon.signal(Signal::KILL).expect("a signal");
    daemon.ended(SOON).await.expect("it is dead");
    open(&world).await;
    let daemon = started(&world, "next").await;
    world.until_count(SUCCEEDED, i64::try_from(2 * MANY).expect("a count")).await;
    assert_eq!(lines_of(&daemon.log(), "journal replayed")[0]["written"], MANY);
    assert_eq!((world.fake.tally().requests, world.fake.duplicates()), (2 * MANY, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn b69_a_stop_without_database_and_without_room_names_every_action_that_is_written_down_nowhere() {
    let (world, gate) = journaled().await;
    let mut daemon = started(&world, "daemon").await;
    answered_without_room(&world, &gate, &daemon).await;
    let status = daemon.terminate(SOON).await.expect("it ends");
    assert_eq!(status.code(), Some(75), "{}", daemon.log());
    let (named, journaled) =
        (lines_of(&daemon.log(), "action abandoned"), lines_of(&daemon.log(), "outcome journaled"));
    assert_eq!(named.len() + journaled.len(), MANY, "{}", daemon.log());
}

#[tokio::test(flavor = "multi_thread")]
async fn b83_a_slow_database_beside_a_journal_without_room_is_no_line_per_settle() {
    let mut world = World::new().await;
    world.operation = keyed("600s", "");
    world.dispatcher.push_str("\njournal = \"daemon.journal\"");
    world.fake.behave(|_, _| Behaviour::accept().delayed(Duration::from_millis(100)));
    let proxy = Proxy::start(&world.db.url).await.expect("a way");
    world.url = proxy.url.clone();
    let daemon = started(&world, "daemon").await;
    let said = |message: &str| lines_of(&daemon.log(), message).len();
    // Longer than the journal waits, and not as long as what is taken for a lost database.
    let settles_slowly = async |key: &str| {
        let before = world.fake.tally().requests;
        let action = world.enqueue(key).await;
        world.fake.wait_seen(before + 1).await.expect("under way");
        proxy.freeze();
        tokio::time::sleep(Duration::from_millis(1300)).await;
        proxy.let_go();
        world.until(action, "succeeded").await;
    };
    room(&daemon, Some(0));
    for key in ["a", "b", "c"] {
        settles_slowly(key).await;
    }
    assert_eq!((said("journal failed"), said("journal in use")), (1, 0), "{}", daemon.log());
    room(&daemon, None);
    settles_slowly("d").await;
    daemon.logged("journal emptied", SOON).await.expect("it works again");
    room(&daemon, Some(0));
    settles_slowly("e").await;
    assert_eq!((said("journal failed"), said("journal in use")), (2, 1), "once each way: {}", daemon.log());
}

/// Where logs go to a file, it is often on the same disk.
#[tokio::test(flavor = "multi_thread")]
async fn a_log_that_cannot_be_written_stops_nothing() {
    let mut world = World::new().await;
    world.operation = keyed("600s", "");
    let file = world.dir.path().join("daemon.toml");
    std::fs::write(&file, world.config()).expect("a file");
    let full = std::fs::File::options().write(true).open("/dev/full").expect("a device that is always full");
    let mut daemon = Command::new(World::binary())
        .args(["run", "--config"])
        .arg(&file)
        .stderr(full)
        .kill_on_drop(true)
        .spawn()
        .expect("a daemon");
    world.enqueue_many("n", 50).await;
    world.until_count(SUCCEEDED, 50).await;
    assert!(daemon.try_wait().expect("a status").is_none(), "it is alive");
    assert_eq!((world.fake.tally().requests, world.fake.duplicates()), (50, 0));
}
