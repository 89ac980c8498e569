//! Rates, waits that an answer asks for, and what one tenant may have at once.

use std::time::{Duration, SystemTime};

use outboxd::proving::fake::{Behaviour, Fake, Gate, RetryAfter};

use crate::support::World;
use crate::support::world::{SOON, keyed};
use outboxd::proving::session;

const SUCCEEDED: &str = "select count(*) from outbox.status where state = 'succeeded'";

/// From the first request to the last one.
fn spread(world: &World) -> Duration {
    let at: Vec<SystemTime> = world.fake.seen().iter().map(|seen| seen.at).collect();
    let (first, last) = (at.iter().min().expect("some"), at.iter().max().expect("some"));
    last.duration_since(*first).expect("later")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rate_is_never_exceeded_and_everything_goes_out_under_it() {
    let mut world = World::new().await;
    world.destination = "rate = \"20/s burst 2\"".into();
    world.enqueue_many("n", 40).await;
    let daemon = world.daemon().await;
    world.until_count(SUCCEEDED, 40).await;
    // Two at once, and a twentieth of a second for each of the others.
    assert!(spread(&world) >= Duration::from_millis(38 * 50 - 100), "{:?} for 40 at 20/s", spread(&world));
    drop(daemon);
    let deliveries = world.db.count("select count(*) from outbox.delivery where fence = 1 and attempts = 1").await;
    assert_eq!(deliveries, 40, "nothing was claimed that had to wait for its turn");
}

#[tokio::test(flavor = "multi_thread")]
async fn lookups_count_under_a_rate_and_a_slow_one_does_not_hold_up_another_destination() {
    let mut world = World::new().await;
    world.destination = "rate = \"1/h burst 3\"".into();
    let other = Fake::start().await.expect("another destination");
    world.elsewhere(&other);
    world.enqueue_many("n", 30).await;
    let _daemon = world.daemon().await;
    world.fake.wait_seen(3).await.expect("a burst");
    world.db.run("select outbox.enqueue('note.other', '{}', g::text) from generate_series(1, 30) g").await;
    other.wait_effects(30).await.expect("they are not held up");
    assert_eq!(world.fake.tally().requests, 3, "an hour for the next");
    let asked = world.transactions_per_second(Duration::from_secs(2)).await;
    assert!(asked < 60.0, "{asked} transactions a second while tokens are waited for");
}

#[tokio::test(flavor = "multi_thread")]
async fn b41_while_tokens_are_waited_for_the_bell_is_heard_for_others() {
    let mut world = World::new().await;
    // Nothing but the bell, or the next token in nearly 60 ms, wakes it.
    world.dispatcher = "poll_interval = \"10s\"".into();
    world.destination = "rate = \"17/s burst 1\"".into();
    let other = Fake::start().await.expect("another destination");
    world.elsewhere(&other);
    world.enqueue_many("n", 200).await;
    let _daemon = world.daemon().await;
    for n in 1..=24 {
        world.fake.wait_seen(world.fake.tally().requests + 1).await.expect("a token");
        // The claims have seen to what came of it.
        tokio::time::sleep(Duration::from_millis(25)).await;
        world.db.enqueue("note.other", "{}", &n.to_string()).await;
        other.wait_effects(n).await.expect("sent");
    }
    let tokens: Vec<SystemTime> = world.fake.seen().iter().map(|seen| seen.at).collect();
    let apart = |a: SystemTime, b: SystemTime| a.duration_since(b).unwrap_or_else(|before| before.duration());
    let alone = |at: SystemTime| tokens.iter().all(|token| apart(*token, at) >= Duration::from_millis(15));
    let alone = other.seen().iter().filter(|seen| alone(seen.at)).count();
    assert!(alone >= 6, "all but {alone} of 24 left together with a token that is not theirs");
}

#[tokio::test(flavor = "multi_thread")]
async fn b76_a_gap_that_the_contract_wants_is_kept_between_requests() {
    let mut world = World::new().await;
    world.contract.push_str("\n[contract.test.pace]\nmin_gap = \"150ms\"\n");
    world.enqueue_many("n", 6).await;
    let _daemon = world.daemon().await;
    world.until_count(SUCCEEDED, 6).await;
    assert!(spread(&world) >= Duration::from_millis(5 * 150 - 100), "{:?} for six", spread(&world));
}

/// The first request of the action `first` is told to come back in five seconds, everything else is accepted.
fn one_is_throttled(world: &World) {
    world.fake.behave(|seen, before| match seen.text().contains("first") && before == 0 {
        true => Behaviour::throttle(&RetryAfter::Seconds(5)),
        false => Behaviour::accept(),
    });
}

#[tokio::test(flavor = "multi_thread")]
async fn r15_a_retry_after_holds_back_the_operation_unless_the_contract_says_whom() {
    let mut world = World::new().await;
    world.also("note.other", "/other", &keyed("1s", ""));
    one_is_throttled(&world);
    let daemon = world.daemon().await;
    let first = world.enqueue("first").await;
    world.until(first, "retryable_failure").await;
    let held = world.enqueue("second").await;
    let free = world.db.enqueue("note.other", "{}", "other").await;
    world.until(free, "succeeded").await;
    assert_eq!(world.seen_of(held).len(), 0, "it waits with the other one of its operation");
    for action in [first, held] {
        world.until(action, "succeeded").await;
    }
    let (told, sent) = (world.seen_of(first)[0].at, world.seen_of(held)[0].at);
    let waited = sent.duration_since(told).expect("later");
    assert!(waited >= Duration::from_millis(4900), "{waited:?}");
    drop(daemon);
}

#[tokio::test(flavor = "multi_thread")]
async fn r15_a_retry_after_speaks_of_whom_the_contract_says() {
    for (scope, others_wait) in [("\"action\"", false), ("\"destination\"", true)] {
        let mut world = World::new().await;
        world.also("note.other", "/other", &keyed("1s", ""));
        world.contract.push_str(&format!("\n[contract.test.pace]\npause_scope = {scope}\n"));
        one_is_throttled(&world);
        let _daemon = world.daemon().await;
        let first = world.enqueue("first").await;
        world.until(first, "retryable_failure").await;
        let told = world.seen_of(first)[0].at;
        let second = world.enqueue("second").await;
        let other = world.db.enqueue("note.other", "{}", "other").await;
        for action in [second, other, first] {
            world.until(action, "succeeded").await;
        }
        for action in [second, other] {
            let waited = world.seen_of(action)[0].at.duration_since(told).expect("later");
            let first_again = world.seen_of(first)[1].at;
            match others_wait {
                true => assert!(waited >= Duration::from_millis(4900), "{scope}: {waited:?}"),
                false => assert!(world.seen_of(action)[0].at < first_again, "{scope}: it need not have waited"),
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn r15_what_a_claim_brings_that_was_under_way_when_patience_was_asked_for_is_not_sent() {
    let world = World::new().await;
    let gate = Gate::new();
    let held = gate.clone();
    world.fake.behave(move |seen, before| match seen.text().contains("first") && before == 0 {
        true => Behaviour::throttle(&RetryAfter::Seconds(5)).held_by(&held),
        false => Behaviour::accept(),
    });
    let daemon = world.daemon().await;
    let first = world.enqueue("first").await;
    world.fake.wait_seen(1).await.expect("under way");
    // Every claim reads this, and no enqueue does.
    let admin = session::connect(&world.db.url).await.expect("a session");
    admin.batch_execute("begin; lock table outbox.revocation in access exclusive mode").await.expect("held");
    let second = world.enqueue("second").await;
    world
        .until_true("exists (select from pg_locks where relation = 'outbox.revocation'::regclass and not granted)")
        .await;
    let told = outboxd::clock::wall();
    gate.open();
    daemon.logged("destination throttled", SOON).await.expect("told to be patient");
    admin.batch_execute("commit").await.expect("let go");
    for action in [first, second] {
        world.until(action, "succeeded").await;
    }
    let waited = world.seen_of(second)[0].at.duration_since(told).expect("later");
    assert!(waited >= Duration::from_millis(4900), "{waited:?}");
    let standing = world.standing(second).await;
    assert_eq!((standing.attempts, world.seen_of(second).len()), (1, 1), "being handed back costs no attempt");
}

#[tokio::test(flavor = "multi_thread")]
async fn b41_one_tenant_has_no_more_at_once_than_it_may_and_others_are_not_held_up() {
    let mut world = World::new().await;
    world.operation = keyed("10s", "tenant_max_in_flight = 2");
    let gate = Gate::new();
    let held = gate.clone();
    world.fake.behave(move |_, _| Behaviour::accept().held_by(&held));
    world
        .db
        .run("select outbox.enqueue('note.publish', '{}', g::text, tenant => 'big') from generate_series(1, 50) g")
        .await;
    let daemon = world.daemon().await;
    world.fake.wait_seen(2).await.expect("as many as it may");
    world.db.run("select outbox.enqueue('note.publish', '{}', 'k', tenant => 'small')").await;
    world.fake.wait_seen(3).await.expect("another one's is not held up");
    let in_flight = "select count(*) from outbox.delivery where state = 'dispatching' and tenant = 'big'";
    assert_eq!(world.db.count(in_flight).await, 2);
    world.fake.wait_until(Duration::from_millis(500), |tally| tally.requests > 3).await.expect_err("no third one");
    gate.open();
    tokio::time::timeout(SOON, world.until_count(SUCCEEDED, 51)).await.expect("all in the end");
    drop(daemon);
}
