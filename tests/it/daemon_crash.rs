//! Daemons that die, and daemons that wake up too late.

use outboxd::proving::fake::{Behaviour, Gate};
use rustix::process::Signal;

use crate::support::world::{NOTHING_PROMISED, SOON, keyed, lines_of};
use crate::support::{Proxy, World};

#[tokio::test(flavor = "multi_thread")]
async fn r24_r26_r29_b34_a_kill_in_mid_send_lapses_into_doubt_and_one_effect() {
    let world = World::new().await;
    world.fake.behave(|_, before| match before {
        0 => Behaviour::accept().withholding(),
        _ => Behaviour::accept(),
    });
    let action = world.enqueue("n-1").await;
    let mut daemon = world.daemon().await;
    world.fake.wait_seen(1).await.expect("under way");
    daemon.signal(Signal::KILL).expect("a signal");
    daemon.ended(SOON).await.expect("it is dead");
    let standing = world.standing(action).await;
    assert_eq!(standing.state, "dispatching", "nobody knows yet");

    let successor = world.daemon().await;
    world.until(action, "succeeded").await;
    let history = world.history(action).await;
    let told: Vec<_> = history.iter().map(|h| (h.kind.as_str(), h.evidence.as_str(), h.number)).collect();
    assert_eq!(told, [("send", "lapsed", 1), ("send", "accepted", 2)], "the lost attempt counts");
    assert_ne!(history[0].worker, history[1].worker, "B34: the same host and directory, another worker");
    let seen = world.seen_of(action);
    assert_eq!((seen.len(), world.fake.effects().len(), world.fake.duplicates()), (2, 1, 0));
    assert_eq!((&seen[0].key, &seen[0].body), (&seen[1].key, &seen[1].body));
    let fences: Vec<i64> = seen.iter().filter_map(|s| s.header("outbox-fence")?.parse().ok()).collect();
    assert!(fences[0] < fences[1], "R26: {fences:?}");
    successor.logged("outcome resolved", SOON).await.expect("logged");
}

#[tokio::test(flavor = "multi_thread")]
async fn r29_a_kill_before_anything_was_sent_is_one_effect_too() {
    let world = World::new().await;
    // Accepts connections and reads nothing, so that the request has left for all the daemon knows.
    world.fake.receive(|number| match number {
        1 => outboxd::proving::fake::Reception::Refuse(outboxd::proving::fake::Ending::Hold),
        _ => outboxd::proving::fake::Reception::Serve,
    });
    let action = world.enqueue("n-1").await;
    let mut daemon = world.daemon().await;
    world.fake.wait_until(SOON, |tally| tally.connections == 1).await.expect("a connection");
    daemon.signal(Signal::KILL).expect("a signal");
    daemon.ended(SOON).await.expect("it is dead");
    let _successor = world.daemon().await;
    world.until(action, "succeeded").await;
    assert_eq!((world.fake.effects().len(), world.fake.duplicates()), (1, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn r21_a_kill_in_mid_send_of_what_promises_nothing_is_held_and_never_resent() {
    let mut world = World::new().await;
    world.contract = NOTHING_PROMISED.into();
    world.operation = "effect = \"unreconcilable\"\ntimeout = \"1s\"".into();
    world.fake.behave(|_, _| Behaviour::accept().without_dedupe().withholding());
    let action = world.enqueue("n-1").await;
    let mut daemon = world.daemon().await;
    world.fake.wait_seen(1).await.expect("under way");
    daemon.signal(Signal::KILL).expect("a signal");
    daemon.ended(SOON).await.expect("it is dead");
    let _successor = world.daemon().await;
    world.until(action, "awaiting_review").await;
    assert_eq!(world.fake.tally().requests, 1);
    assert_eq!(world.standing(action).await.reason.as_deref(), Some("worker_lost"));
}

#[tokio::test(flavor = "multi_thread")]
async fn r24_many_kills_lose_nothing_and_repeat_no_effect() {
    let mut world = World::new().await;
    world.operation = keyed("1s", "attempts_max = 50");
    world.dispatcher = "max_in_flight = 16\nlease_margin = \"300ms\"\npoll_interval = \"100ms\"".into();
    world.fake.behave(|_, _| Behaviour::accept().delayed(std::time::Duration::from_millis(5)));
    world.enqueue_many("n", 400).await;
    for round in 1..=4 {
        let mut daemon = world.daemon().await;
        world.fake.wait_effects(round * 50).await.expect("some more");
        daemon.signal(Signal::KILL).expect("a signal");
        daemon.ended(SOON).await.expect("it is dead");
    }
    let _last = [world.daemon().await, world.daemon().await];
    world.until_count("select count(*) from outbox.status where state = 'succeeded'", 400).await;
    assert_eq!((world.fake.effects().len(), world.fake.duplicates()), (400, 0));
    assert!(world.fake.effects().iter().all(|effect| effect.other_content == 0));
}

/// A daemon that is stopped in mid-send until another one holds its action, and then wakes. The answer waits for the
/// gate of its request.
async fn paused_past_its_lease(
    second: fn() -> Behaviour,
) -> (World, uuid::Uuid, [outboxd::proving::daemon::Daemon; 2], Gate) {
    let world = World::new().await;
    let (first_gate, second_gate) = (Gate::new(), Gate::new());
    let (first_held, second_held) = (first_gate.clone(), second_gate.clone());
    world.fake.behave(move |_, before| match before {
        0 => Behaviour::accept().held_by(&first_held),
        1 => second().held_by(&second_held),
        _ => Behaviour::accept(),
    });
    let action = world.enqueue("n-1").await;
    let sleeper = world.daemon().await;
    world.fake.wait_seen(1).await.expect("under way");
    sleeper.signal(Signal::STOP).expect("a signal");
    // Its answer arrives while it sleeps.
    first_gate.open();
    let successor = world.daemon().await;
    world.fake.wait_seen(2).await.expect("the successor sends");
    (world, action, [sleeper, successor], second_gate)
}

#[tokio::test(flavor = "multi_thread")]
async fn r25_a_worker_that_wakes_past_its_lease_testifies_and_overwrites_nothing() {
    let (world, action, [sleeper, _successor], second_gate) = paused_past_its_lease(Behaviour::accept).await;
    second_gate.open();
    world.until(action, "succeeded").await;
    let before = world.db.delivery(action).await;
    sleeper.signal(Signal::CONT).expect("a signal");
    world.until_count("select count(*) from outbox.attempt where kind = 'late'", 1).await;
    assert_eq!(world.db.delivery(action).await, before, "the successor's word stands");
    sleeper.logged("late testimony", SOON).await.expect("logged");
    let history = world.history(action).await;
    let told: Vec<_> = history.iter().map(|h| (h.kind.as_str(), h.evidence.as_str(), h.fence)).collect();
    assert!(told.contains(&("late", "accepted", 1)) && told.contains(&("send", "lapsed", 1)), "{told:?}");
    assert_eq!((world.fake.effects().len(), world.fake.duplicates()), (1, 0));
    let fences: Vec<i64> = world.fake.seen().iter().filter_map(|s| s.header("outbox-fence")?.parse().ok()).collect();
    assert!(fences[0] < fences[1], "R26: {fences:?}");
    // It goes on working.
    let next = world.enqueue("n-2").await;
    world.until(next, "succeeded").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn r25_a_late_proof_of_success_resolves_the_doubt_of_its_successor() {
    // The successor gets no answer; what the woken worker learnt is all there is.
    let (world, action, [sleeper, successor], _second_gate) =
        paused_past_its_lease(|| Behaviour::accept().withholding()).await;
    sleeper.signal(Signal::CONT).expect("a signal");
    sleeper.logged("late testimony", SOON).await.expect("logged");
    world.until(action, "succeeded").await;
    let standing = world.standing(action).await;
    assert_eq!(standing.receipt.as_deref(), Some(world.fake.effects()[0].receipt.as_str()));
    assert_eq!(world.fake.tally().requests, 2, "nothing is sent a third time");
    let by = |daemon: &outboxd::proving::daemon::Daemon| lines_of(&daemon.log(), "outcome resolved").len();
    assert!(by(&successor) + by(&sleeper) <= 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn r25_a_claim_that_arrives_after_its_lease_sends_nothing() {
    let mut world = World::new().await;
    let proxy = Proxy::start(&world.db.url).await.expect("a way");
    world.url = proxy.url.clone();
    proxy.hold_answers_with("hold me");
    let daemon = world.daemon().await;
    let action = world.enqueue("hold me").await;
    world
        .until_true("exists (select from outbox.delivery where state = 'dispatching' and due_at < clock_timestamp())")
        .await;
    proxy.let_go();
    // Its own second claim finds the lapse; the first one has not sent a byte.
    world.until(action, "succeeded").await;
    let seen = world.seen_of(action);
    assert_eq!(seen.len(), 1);
    assert_ne!(seen[0].header("outbox-fence"), Some("1"), "nothing left under the first claim");
    assert_eq!(world.fake.duplicates(), 0);
    drop(daemon);
}
