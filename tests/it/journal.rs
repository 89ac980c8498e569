//! The journal: neither a long outage nor a restart in one loses what was learnt (R11).

use std::path::PathBuf;
use std::time::Duration;

use outboxd::proving::daemon::Daemon;
use outboxd::proving::fake::{Behaviour, Gate};
use outboxd::proving::session;
use rustix::process::Signal;
use serde_json::Value;
use uuid::Uuid;

use crate::support::world::{NOTHING_PROMISED, SOON, keyed, lines_of, open, shut};
use crate::support::{Proxy, World};

/// A world with a journal, whose answers wait for the gate.
async fn journaled(timeout: &str) -> (World, Gate) {
    let mut world = World::new().await;
    world.operation = keyed(timeout, "");
    world.dispatcher.push_str("\njournal = \"daemon.journal\"");
    let gate = Gate::new();
    let held = gate.clone();
    world.fake.behave(move |_, _| Behaviour::accept().held_by(&held));
    (world, gate)
}

pub fn file(world: &World) -> PathBuf {
    world.dir.path().join("daemon.journal")
}

/// One action is sent, the database goes away, the answer comes, and the daemon is killed.
async fn answered_and_killed(world: &World, gate: &Gate) -> Uuid {
    let mut daemon = world.daemon().await;
    let action = world.enqueue("n-1").await;
    world.fake.wait_seen(1).await.expect("under way");
    shut(world).await;
    gate.open();
    daemon.logged("journal in use", SOON).await.expect("it is in the journal");
    daemon.signal(Signal::KILL).expect("a signal");
    daemon.ended(SOON).await.expect("it is dead");
    action
}

/// The one line that says what became of a journal.
async fn replayed(daemon: &Daemon) -> Value {
    daemon.logged("journal replayed", SOON).await.expect("replayed");
    let lines = lines_of(&daemon.log(), "journal replayed");
    assert_eq!(lines.len(), 1);
    lines[0].clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn r11_b52_a_kill_in_an_outage_loses_nothing_that_was_learnt() {
    let (world, gate) = journaled("600s").await;
    let action = answered_and_killed(&world, &gate).await;
    open(&world).await;
    assert_eq!(world.db.label(action).await, "dispatching");
    let daemon = world.daemon().await;
    world.until(action, "succeeded").await;
    let told = replayed(&daemon).await;
    assert_eq!((&told["outcomes"], &told["written"]), (&Value::from(1), &Value::from(1)));
    assert_eq!(world.evidence(action).await, ["accepted"]);
    assert_eq!((world.fake.tally().requests, world.standing(action).await.fence), (1, 1), "nothing is sent again");
    let receipt = world.standing(action).await.receipt;
    assert_eq!(receipt.as_deref(), Some(world.fake.effects()[0].receipt.as_str()));
    let workers: Vec<_> = world.history(action).await.into_iter().filter_map(|attempt| attempt.worker).collect();
    let started = &lines_of(&daemon.log(), "outboxd started")[0];
    assert_ne!(Some(workers[0].as_str()), started["worker"].as_str(), "the history names who sent it");
    assert_eq!(std::fs::metadata(file(&world)).expect("a file").len(), 0, "the ledger has it");
    // It goes on.
    let next = world.enqueue("n-2").await;
    world.until(next, "succeeded").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn r11_b69_what_a_drain_could_not_write_down_is_in_the_journal() {
    let (mut world, gate) = journaled("600s").await;
    world.dispatcher.push_str("\ndrain_timeout = \"500ms\"");
    let mut daemon = world.daemon().await;
    let action = world.enqueue("n-1").await;
    world.fake.wait_seen(1).await.expect("under way");
    shut(&world).await;
    gate.open();
    daemon.logged("ledger lost", SOON).await.expect("lost");
    assert_eq!(daemon.terminate(SOON).await.expect("it ends").code(), Some(75), "the ledger does not have it yet");
    assert_eq!(lines_of(&daemon.log(), "outcome journaled")[0]["action"], action.to_string());
    let stopped = &lines_of(&daemon.log(), "outboxd stopped")[0];
    assert_eq!((&stopped["abandoned"], &stopped["journaled"]), (&Value::from(0), &Value::from(1)));
    open(&world).await;
    let _daemon = world.daemon().await;
    world.until(action, "succeeded").await;
    assert_eq!((world.evidence(action).await, world.fake.tally().requests), (vec!["accepted".to_owned()], 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn r11_r25_what_was_overtaken_while_it_lay_in_a_journal_is_late_testimony() {
    let (mut world, gate) = journaled("1s").await;
    world.contract = NOTHING_PROMISED.into();
    world.operation = "effect = \"unreconcilable\"\ntimeout = \"1s\"".into();
    let action = answered_and_killed(&world, &gate).await;
    open(&world).await;
    // Another daemon without that journal finds the lapse, and holds what nothing is known of.
    let mut other = world.start_with(&world.config().replace("daemon.journal", "other.journal"));
    world.until(action, "awaiting_review").await;
    assert_eq!(other.terminate(SOON).await.expect("it ends").code(), Some(0));
    let daemon = world.daemon().await;
    world.until(action, "succeeded").await;
    assert_eq!(replayed(&daemon).await["late"], 1);
    let kinds: Vec<_> = world.history(action).await.into_iter().map(|a| (a.kind, a.evidence)).collect();
    assert!(kinds.contains(&("late".to_owned(), "accepted".to_owned())), "{kinds:?}");
    assert_eq!(world.fake.tally().requests, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn r11_a_journal_that_is_replayed_twice_changes_nothing_the_second_time() {
    let (world, gate) = journaled("600s").await;
    let action = answered_and_killed(&world, &gate).await;
    let content = std::fs::read(file(&world)).expect("a journal");
    assert!(!content.is_empty());
    open(&world).await;
    let mut daemon = world.daemon().await;
    world.until(action, "succeeded").await;
    assert_eq!(daemon.terminate(SOON).await.expect("it ends").code(), Some(0));
    let (row, history) = (world.db.delivery(action).await, world.db.attempts(action).await);
    // As if it had been killed between the ledger's word and the emptying.
    std::fs::write(file(&world), content).expect("the same journal");
    let daemon = world.daemon().await;
    let told = replayed(&daemon).await;
    assert_eq!((&told["written"], &told["known"]), (&Value::from(0), &Value::from(1)));
    assert_eq!((world.db.delivery(action).await, world.db.attempts(action).await), (row, history));
}

#[tokio::test(flavor = "multi_thread")]
async fn r11_a_settle_that_hangs_is_journaled_too_and_written_once() {
    let (mut world, gate) = journaled("600s").await;
    let proxy = Proxy::start(&world.db.url).await.expect("a proxy");
    world.url = proxy.url.clone();
    let mut daemon = world.daemon().await;
    let action = world.enqueue("n-1").await;
    world.fake.wait_seen(1).await.expect("under way");
    proxy.freeze();
    gate.open();
    daemon.logged("journal in use", SOON).await.expect("it is in the journal");
    daemon.logged("ledger lost", SOON).await.expect("a settle without an answer is no settle");
    daemon.signal(Signal::KILL).expect("a signal");
    daemon.ended(SOON).await.expect("it is dead");
    proxy.let_go();
    let daemon = world.daemon().await;
    world.until(action, "succeeded").await;
    let told = replayed(&daemon).await;
    let of = |what: &str| told[what].as_u64().unwrap_or_default();
    assert_eq!(of("written") + of("known"), 1, "the settle may have arrived: {told}");
    assert_eq!((world.evidence(action).await, world.fake.tally().requests), (vec!["accepted".to_owned()], 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn r11_a_slow_settle_stops_the_claims_and_then_they_go_on() {
    let (mut world, gate) = journaled("600s").await;
    let proxy = Proxy::start(&world.db.url).await.expect("a proxy");
    world.url = proxy.url.clone();
    let daemon = world.daemon().await;
    let action = world.enqueue("n-1").await;
    world.fake.wait_seen(1).await.expect("under way");
    proxy.freeze();
    gate.open();
    daemon.logged("ledger lost", SOON).await.expect("lost");
    proxy.let_go();
    world.until(action, "succeeded").await;
    daemon.logged("ledger back", SOON).await.expect("back");
    daemon.logged("journal emptied", SOON).await.expect("emptied");
    let next = world.enqueue("n-2").await;
    world.until(next, "succeeded").await;
    assert_eq!(world.fake.tally().requests, 2);
    assert_eq!(std::fs::metadata(file(&world)).expect("a file").len(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn r11_a_claim_without_an_answer_is_given_back_after_a_kill_too() {
    let (mut world, gate) = journaled("600s").await;
    gate.open();
    let proxy = Proxy::start(&world.db.url).await.expect("a proxy");
    world.url = proxy.url.clone();
    let mut daemon = world.daemon().await;
    proxy.hold_answers_with("lose me");
    let action = world.enqueue("lose me").await;
    world.until_true("exists (select from outbox.delivery where state = 'dispatching')").await;
    shut(&world).await;
    proxy.cut();
    proxy.let_go();
    daemon.logged("journal in use", SOON).await.expect("it is in the journal");
    daemon.signal(Signal::KILL).expect("a signal");
    daemon.ended(SOON).await.expect("it is dead");
    open(&world).await;
    let daemon = world.daemon().await;
    world.until(action, "succeeded").await;
    assert_eq!(replayed(&daemon).await["given_back"], 1);
    assert_eq!((world.evidence(action).await, world.fake.tally().requests), (vec!["accepted".to_owned()], 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn two_daemons_with_one_journal_are_refused() {
    let (world, _gate) = journaled("1s").await;
    let _first = world.daemon().await;
    let mut second = world.start();
    assert_eq!(second.ended(SOON).await.expect("it ends").code(), Some(1));
    assert!(second.log().contains("daemon.journal is in use by another process"), "{}", second.log());
    let checked = world.command("check", &world.config()).await;
    assert_eq!(checked.status.code(), Some(0));
    let said = String::from_utf8_lossy(&checked.stdout).into_owned();
    assert!(said.contains("the journal is in use by a daemon"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn r11_a_journal_of_another_ledger_is_refused_and_left_alone() {
    let (world, gate) = journaled("600s").await;
    let action = answered_and_killed(&world, &gate).await;
    let content = std::fs::read(file(&world)).expect("a journal");
    open(&world).await;
    let checked = world.command("check", &world.config()).await;
    let said = String::from_utf8_lossy(&checked.stdout).into_owned();
    assert!(said.contains("the journal holds 1 outcomes"), "{said}");
    world.db.run("update outbox.ledger set ledger_id = gen_random_uuid()").await;
    let mut daemon = world.start();
    assert_eq!(daemon.ended(SOON).await.expect("it ends").code(), Some(76));
    let refused = &lines_of(&daemon.log(), "ledger refused")[0];
    assert!(refused["error"].as_str().is_some_and(|error| error.contains("another ledger")), "{refused}");
    assert_eq!(std::fs::read(file(&world)).expect("a journal"), content);
    assert_eq!(world.db.label(action).await, "dispatching");
}

#[tokio::test(flavor = "multi_thread")]
async fn r11_a_journal_that_cannot_be_used_stops_the_start_and_says_why() {
    let (mut world, _gate) = journaled("1s").await;
    std::fs::write(file(&world), "0123456789abcdef {}\n0123456789abcdef {}\n").expect("a file");
    let mut daemon = world.start();
    assert_eq!(daemon.ended(SOON).await.expect("it ends").code(), Some(1));
    assert!(daemon.log().contains("frame 1 of the journal"), "{}", daemon.log());
    let checked = world.command("check", &world.config()).await;
    assert_eq!(checked.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&checked.stderr).contains("frame 1 of the journal"));
    world.dispatcher = "journal = \"nowhere/daemon.journal\"".into();
    let mut daemon = world.start();
    assert_eq!(daemon.ended(SOON).await.expect("it ends").code(), Some(1));
    assert!(daemon.log().contains("cannot be used"), "{}", daemon.log());
    assert_eq!(world.command("check", &world.config()).await.status.code(), Some(1));
}

#[tokio::test(flavor = "multi_thread")]
async fn r11_a_row_that_somebody_keeps_locked_holds_up_a_replay_and_that_is_told() {
    let (world, gate) = journaled("600s").await;
    let action = answered_and_killed(&world, &gate).await;
    open(&world).await;
    let admin = session::connect(&world.db.url).await.expect("a session");
    admin.batch_execute("begin; select from outbox.delivery for update").await.expect("locked");
    let daemon = world.start();
    daemon.logged("ledger lost", SOON).await.expect("told");
    let lost = lines_of(&daemon.log(), "ledger lost");
    assert!(lost.len() == 1 && lost[0].to_string().contains("lock timeout"), "{lost:?}");
    admin.batch_execute("rollback").await.expect("let go");
    world.until(action, "succeeded").await;
    let told = replayed(&daemon).await;
    assert_eq!((&told["outcomes"], &told["written"]), (&Value::from(1), &Value::from(1)));
    daemon.logged("ledger back", SOON).await.expect("told");
}

#[tokio::test(flavor = "multi_thread")]
async fn r11_many_outcomes_outlive_two_outages_and_two_kills() {
    let (world, gate) = journaled("600s").await;
    world.enqueue_many("n", 60).await;
    let mut daemon = world.daemon().await;
    world.fake.wait_seen(60).await.expect("under way");
    shut(&world).await;
    gate.open();
    daemon.logged("journal in use", SOON).await.expect("in use");
    // Time for all of them: each is appended within a moment.
    tokio::time::sleep(Duration::from_secs(2)).await;
    daemon.signal(Signal::KILL).expect("a signal");
    daemon.ended(SOON).await.expect("it is dead");
    // The second one meets the same outage, and is killed in it.
    let mut daemon = world.start();
    daemon.logged("ledger lost", SOON).await.expect("lost");
    daemon.signal(Signal::KILL).expect("a signal");
    daemon.ended(SOON).await.expect("it is dead");
    open(&world).await;
    let daemon = world.daemon().await;
    world.until_count("select count(*) from outbox.status where state = 'succeeded'", 60).await;
    assert_eq!(replayed(&daemon).await["written"], 60);
    assert_eq!((world.fake.tally().requests, world.fake.duplicates()), (60, 0));
}
