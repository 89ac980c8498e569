//! Trouble with the database: what is known is kept, and nothing is done that could not be written down.

use std::time::Duration;

use outboxd::clock::stopwatch;
use outboxd::core::target::Secret;
use outboxd::ledger;
use outboxd::proving::cluster::{Cluster, ClusterOptions, StopMode};
use outboxd::proving::daemon::Daemon;
use outboxd::proving::fake::{Behaviour, Gate};
use outboxd::proving::session;

use crate::support::world::{SOON, keyed, lines, lines_of, open, shut};
use crate::support::{Database, Proxy, World};

/// A world whose answers wait for the gate.
async fn gated(timeout: &str) -> (World, Gate) {
    let mut world = World::new().await;
    world.operation = keyed(timeout, "");
    let gate = Gate::new();
    let held = gate.clone();
    world.fake.behave(move |_, _| Behaviour::accept().held_by(&held));
    (world, gate)
}

fn count(daemon: &Daemon, message: &str) -> usize {
    lines_of(&daemon.log(), message).len()
}

#[tokio::test(flavor = "multi_thread")]
async fn r11_b52_a_known_result_is_written_when_the_database_is_back() {
    let (world, gate) = gated("10s").await;
    let daemon = world.daemon().await;
    let action = world.enqueue("n-1").await;
    world.fake.wait_seen(1).await.expect("under way");
    shut(&world).await;
    gate.open();
    daemon.logged("ledger lost", SOON).await.expect("lost");
    assert_eq!(world.db.label(action).await, "dispatching");
    // Nothing is dispatched meanwhile: nobody could write it down.
    let next = world.enqueue("n-2").await;
    world.fake.wait_until(Duration::from_millis(700), |tally| tally.requests > 1).await.expect_err("no second");
    open(&world).await;
    world.until(action, "succeeded").await;
    world.until(next, "succeeded").await;
    assert_eq!(world.evidence(action).await, ["accepted"]);
    assert_eq!((world.seen_of(action).len(), world.standing(action).await.attempts), (1, 1));
    daemon.logged("ledger back", SOON).await.expect("back");
    assert_eq!((count(&daemon, "ledger lost"), count(&daemon, "ledger back")), (1, 1), "one line each way");
}

#[tokio::test(flavor = "multi_thread")]
async fn r11_evidence_outlives_an_outage_longer_than_the_lease() {
    // Of several sends at different moments; all of them end in the outage.
    let mut world = World::new().await;
    world.operation = keyed("1s", "");
    world.fake.behave(|seen, _| {
        let n: u64 = seen.text().chars().filter(char::is_ascii_digit).collect::<String>().parse().unwrap_or(0);
        Behaviour::accept().delayed(Duration::from_millis(300 + 12 * n))
    });
    let daemon = world.daemon().await;
    world.enqueue_many("n", 40).await;
    world.fake.wait_seen(40).await.expect("under way");
    shut(&world).await;
    daemon.logged("ledger lost", SOON).await.expect("lost");
    world
        .until_true(
            "not exists (select from outbox.delivery where state = 'dispatching' and due_at > clock_timestamp())",
        )
        .await;
    open(&world).await;
    world.until_count("select count(*) from outbox.status where state = 'succeeded'", 40).await;
    let lapsed = world.db.count("select count(*) from outbox.attempt where evidence = 'lapsed' or kind = 'late'").await;
    assert_eq!(lapsed, 0, "a daemon never claims again what it holds the evidence of");
    assert_eq!(world.fake.tally().requests, 40);
}

#[tokio::test(flavor = "multi_thread")]
async fn b52_a_kill_on_top_of_it_is_doubt_and_one_effect() {
    let (world, gate) = gated("1s").await;
    let mut daemon = world.daemon().await;
    let action = world.enqueue("n-1").await;
    world.fake.wait_seen(1).await.expect("under way");
    shut(&world).await;
    gate.open();
    daemon.logged("ledger lost", SOON).await.expect("lost");
    daemon.signal(rustix::process::Signal::KILL).expect("a signal");
    daemon.ended(SOON).await.expect("it is dead");
    open(&world).await;
    let _successor = world.daemon().await;
    world.until(action, "succeeded").await;
    assert_eq!(world.evidence(action).await, ["lapsed", "accepted"]);
    assert_eq!((world.fake.effects().len(), world.fake.duplicates()), (1, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_settle_whose_commit_was_not_answered_is_not_applied_twice() {
    let (mut world, gate) = gated("10s").await;
    let proxy = Proxy::start(&world.db.url).await.expect("a way");
    world.url = proxy.url.clone();
    let daemon = world.daemon().await;
    let action = world.enqueue("n-1").await;
    world.fake.wait_seen(1).await.expect("under way");
    proxy.lose_the_answer_to("accepted");
    gate.open();
    world.until(action, "succeeded").await;
    daemon.logged("action delivered", SOON).await.expect("it finds out");
    assert_eq!(proxy.lost(), 1);
    assert_eq!((world.evidence(action).await, count(&daemon, "late testimony")), (vec!["accepted".to_owned()], 0));
    let next = world.enqueue("n-2").await;
    world.until(next, "succeeded").await;
    assert_eq!(world.fake.tally().requests, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn b69_a_database_that_hangs_does_not_hold_up_the_stop() {
    let (mut world, gate) = gated("30s").await;
    world.dispatcher.push_str("\ndrain_timeout = \"1s\"");
    let proxy = Proxy::start(&world.db.url).await.expect("a way");
    world.url = proxy.url.clone();
    let mut daemon = world.daemon().await;
    let action = world.enqueue("n-1").await;
    world.fake.wait_seen(1).await.expect("under way");
    proxy.freeze();
    gate.open();
    let asked = stopwatch();
    let status = daemon.terminate(Duration::from_secs(15)).await.expect("it ends");
    assert!(asked.elapsed() < Duration::from_secs(5), "{:?} with a drain timeout of 1 s", asked.elapsed());
    assert_eq!(status.code(), Some(75));
    assert_eq!(lines_of(&daemon.log(), "action abandoned")[0]["action"], action.to_string());
    proxy.let_go();
}

#[tokio::test(flavor = "multi_thread")]
async fn b69_a_database_that_hangs_at_the_start_does_not_hold_up_the_stop() {
    let mut world = World::new().await;
    let proxy = Proxy::start(&world.db.url).await.expect("a way");
    // Its first words are then those that name it; the answer to a question about TLS would never come.
    world.url = format!("{}?sslmode=disable", proxy.url);
    world.dispatcher.push_str("\ndrain_timeout = \"1s\"");
    proxy.freeze();
    let mut daemon = world.start();
    // It listens for signals before it asks the database anything; the connection says that it has got there.
    world
        .until_true(
            "exists (select from pg_stat_activity where application_name = 'outboxd' and datname = current_database())",
        )
        .await;
    let status = daemon.terminate(Duration::from_secs(8)).await.expect("it ends");
    assert_eq!(status.code(), Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn b43_a_lost_listener_comes_back() {
    let mut world = World::new().await;
    world.dispatcher = "poll_interval = \"30s\"".into();
    let daemon = world.daemon().await;
    let keeper = "select pid from pg_stat_activity where datname = current_database() and application_name = 'outboxd'
        and (query ilike '%advisory%' or query ilike 'listen%')";
    world.until_true(&format!("exists ({keeper})")).await;
    world.db.run(&format!("select pg_terminate_backend(pid) from ({keeper}) k")).await;
    daemon.logged("doorbell back", Duration::from_secs(10)).await.expect("it listens again");
    world.until_true(&format!("exists ({keeper})")).await;
    for n in 0..3 {
        let asked = stopwatch();
        let action = world.enqueue(&format!("n-{n}")).await;
        world.until(action, "succeeded").await;
        assert!(asked.elapsed() < Duration::from_secs(5), "{:?} with a poll interval of 30 s", asked.elapsed());
    }
    assert_eq!((count(&daemon, "doorbell lost"), count(&daemon, "doorbell back")), (1, 1), "one line each way");
    assert_eq!(count(&daemon, "ledger lost"), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_row_that_somebody_locks_for_long_holds_up_nobody_and_its_result_is_kept() {
    let mut world = World::new().await;
    world.operation = keyed("1s", "");
    let gate = Gate::new();
    let held = gate.clone();
    world.fake.behave(move |seen, _| match seen.text().contains("locked") {
        true => Behaviour::accept().held_by(&held),
        false => Behaviour::accept(),
    });
    let action = world.enqueue("locked").await;
    let _daemon = world.daemon().await;
    world.fake.wait_seen(1).await.expect("under way");
    let mut other = world.db.session().await;
    let locking = other.transaction().await.expect("a transaction");
    locking.execute("select from outbox.delivery where action_id = $1 for update", &[&action]).await.expect("locked");
    gate.open();
    // Ten seconds: the lease is long over, and many tries.
    let asked = stopwatch();
    for n in 0.. {
        let next = world.enqueue(&format!("n-{n}")).await;
        world.until(next, "succeeded").await;
        if asked.elapsed() > Duration::from_secs(10) {
            break;
        }
    }
    locking.commit().await.expect("let go");
    world.until(action, "succeeded").await;
    // Where a claim came in between, as late testimony.
    let history = world.history(action).await;
    let written = history.iter().any(|attempt| (attempt.fence, attempt.evidence.as_str()) == (1, "accepted"));
    assert!(written, "what was known has been written: {history:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_row_that_somebody_locks_for_ever_does_not_hold_up_one_that_was_locked_for_a_moment() {
    let mut world = World::new().await;
    world.operation = keyed("600s", "");
    let gates = [Gate::new(), Gate::new()];
    let held = gates.clone();
    world.fake.behave(move |seen, _| match seen.text() {
        text if text.contains("for-ever") => Behaviour::accept().held_by(&held[0]),
        text if text.contains("a-moment") => Behaviour::accept().held_by(&held[1]),
        _ => Behaviour::accept(),
    });
    let actions = [world.enqueue("for-ever").await, world.enqueue("a-moment").await];
    let _daemon = world.daemon().await;
    world.fake.wait_seen(2).await.expect("under way");
    let mut sessions = [world.db.session().await, world.db.session().await];
    let mut locks = Vec::new();
    for (session, action) in sessions.iter_mut().zip(&actions) {
        let locking = session.transaction().await.expect("a transaction");
        locking
            .execute("select from outbox.delivery where action_id = $1 for update", &[action])
            .await
            .expect("locked");
        locks.push(locking);
    }
    for gate in &gates {
        gate.open();
        // It is written after what has been tried and put aside.
        let next = world.enqueue(&format!("next-{}", world.fake.tally().requests)).await;
        world.until(next, "succeeded").await;
    }
    locks.pop().expect("the second").commit().await.expect("let go");
    world.until(actions[1], "succeeded").await;
    assert_eq!(world.db.label(actions[0]).await, "dispatching");
    locks.pop().expect("the first").commit().await.expect("let go");
    world.until(actions[0], "succeeded").await;
    assert_eq!(world.fake.tally().requests, 4, "nothing is sent again");
}

#[tokio::test(flavor = "multi_thread")]
async fn r25_what_an_overtaken_claim_learnt_is_kept_where_its_successor_settles_with_it() {
    let mut world = World::new().await;
    world.operation = "effect = \"keyed\"\ntimeout = \"600ms\"\nbackoff = { initial = \"60s\", max = \"60s\" }".into();
    world.dispatcher = "lease_margin = \"100ms\"\npoll_interval = \"200ms\"".into();
    world.fake.behave(|seen, _| match seen.text().contains("slow") {
        true => Behaviour::accept(),
        false => Behaviour::accept().delayed(Duration::from_millis(50)),
    });
    // The settle of one action takes so long that another is answered, lapses and is claimed again by the same daemon:
    // what both of its claims have to say is waiting when that settle is over.
    let slow = world.enqueue("slow").await;
    let action = world.enqueue("n-1").await;
    world
        .db
        .run(&format!(
            "create function public.slowly() returns trigger language plpgsql as
               $$ begin perform pg_catalog.pg_sleep(1.7); return new; end $$;
             create trigger slowly before insert on outbox.attempt for each row
               when (new.action_id = '{slow}') execute function public.slowly()"
        ))
        .await;
    let daemon = world.daemon().await;
    world.until(slow, "succeeded").await;
    world.until(action, "succeeded").await;
    let told: Vec<_> = world.history(action).await.into_iter().map(|a| (a.kind, a.evidence, a.fence)).collect();
    let late = ("late".to_owned(), "accepted".to_owned(), 1);
    assert!(told.contains(&late), "{told:?}:\n{}", daemon.log());
    assert_eq!(world.seen_of(action).len(), 1, "it was known to have happened");
}

#[tokio::test(flavor = "multi_thread")]
async fn b44_b83_a_database_that_is_down_costs_little_and_deliveries_resume() {
    let mut cluster = Cluster::start(ClusterOptions::default().set("fsync", "off")).expect("a cluster of its own");
    let url = cluster.url("postgres", "postgres");
    ledger::migrate(&Secret::new(&url)).await.expect("a schema");
    let mut world = World::new().await;
    let client = session::connect(&url).await.expect("a session");
    world.db = Database { url: url.clone(), name: "postgres".into(), client };
    world.url = url.clone();
    let daemon = world.daemon().await;
    let before = world.enqueue("before").await;
    world.until(before, "succeeded").await;

    cluster.stop(StopMode::Immediate).expect("it stops");
    daemon.logged("ledger lost", SOON).await.expect("lost");
    let (lines_before, usage) = (lines(&daemon.log()).len(), daemon.usage());
    // Another one starts meanwhile, and waits.
    let newcomer = world.start();
    newcomer.logged("ledger lost", SOON).await.expect("it waits");
    tokio::time::sleep(Duration::from_secs(5)).await;
    let (more, still) = (lines(&daemon.log()).len() - lines_before, count(&daemon, "ledger still lost"));
    assert!((3..=6).contains(&still), "{still} reminders in five seconds, one every `stats_interval`");
    assert!(more - still <= 5, "{more} lines in five seconds:\n{}", daemon.log());
    newcomer.logged("ledger still lost", SOON).await.expect("a daemon that has never had it says so too");
    if let (Some(usage), Some(now)) = (usage, daemon.usage()) {
        assert!(now.cpu - usage.cpu < Duration::from_millis(700), "{:?}", now.cpu - usage.cpu);
    }

    cluster.resume().expect("it starts");
    world.db.client = session::connect(&url).await.expect("a session");
    let asked = stopwatch();
    let after = world.enqueue("after").await;
    world.until(after, "succeeded").await;
    assert!(asked.elapsed() < Duration::from_secs(10), "{:?}", asked.elapsed());
    for daemon in [&daemon, &newcomer] {
        daemon.logged("ledger back", SOON).await.expect("back");
        assert_eq!((count(daemon, "ledger lost"), count(daemon, "ledger back")), (1, 1), "one line each way");
    }
    world.until_count("select count(*) from pg_stat_activity where query ilike 'listen%' or query ilike '%advisory%' and pid <> pg_backend_pid()", 2).await;
}
