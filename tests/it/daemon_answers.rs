//! What the destination's answers mean.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use outboxd::proving::fake::{Behaviour, Fake, RetryAfter, Seen};

use crate::support::World;
use crate::support::world::{SOON, keyed, lines_of};

/// Between the first request and the second.
fn gap(seen: &[Seen]) -> Duration {
    seen[1].at.duration_since(seen[0].at).expect("in order")
}

#[tokio::test(flavor = "multi_thread")]
async fn r15_b12_every_form_of_retry_after_is_honoured() {
    let mut world = World::new().await;
    // Each for itself, so that no answer delays what the next one says.
    world.contract.push_str("pace = { pause_scope = \"action\" }\n");
    let wait = Duration::from_secs(3);
    world.fake.behave(move |seen, before| match before {
        0 => Behaviour::throttle(&match seen.text() {
            text if text.contains("imf") => RetryAfter::ImfFixdate(wait),
            text if text.contains("rfc850") => RetryAfter::Rfc850(wait),
            text if text.contains("asctime") => RetryAfter::Asctime(wait),
            _ => RetryAfter::Seconds(3),
        }),
        _ => Behaviour::accept(),
    });
    let mut actions = Vec::new();
    for form in ["seconds", "imf", "rfc850", "asctime"] {
        actions.push((form, world.enqueue(form).await));
    }
    let _daemon = world.daemon().await;
    for (_, action) in &actions {
        world.until(*action, "retryable_failure").await;
    }
    let due = "select extract(epoch from due_at - clock_timestamp())::float8 from outbox.delivery where action_id = $1";
    for (form, action) in &actions {
        let due_in: f64 = world.db.one(due, &[action]).await;
        // HTTP dates have whole seconds; a tenth more is jitter.
        assert!((0.5..=3.4).contains(&due_in), "{form}: due in {due_in} s");
    }
    for (form, action) in &actions {
        world.until(*action, "succeeded").await;
        let gap = gap(&world.seen_of(*action));
        assert!(gap >= wait - Duration::from_secs(1), "{form}: sent again after {gap:?}");
        let standing = world.standing(*action).await;
        assert_eq!(standing.attempts, 1, "{form}: a 429 that says when counts as no attempt");
        assert_eq!(world.evidence(*action).await, ["deferred", "accepted"]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn b12_a_503_sets_the_delay_of_the_resend() {
    let world = World::new().await;
    world.fake.behave(|_, before| match before {
        0 => Behaviour::reply(outboxd::proving::fake::Reply::new(503).header("retry-after", "2")),
        _ => Behaviour::accept(),
    });
    let action = world.enqueue("n-1").await;
    let _daemon = world.daemon().await;
    world.until(action, "awaiting_resend").await;
    world.until(action, "succeeded").await;
    assert!(gap(&world.seen_of(action)) >= Duration::from_secs(2));
}

#[tokio::test(flavor = "multi_thread")]
async fn b14_a_429_is_tried_again_under_the_same_key() {
    let world = World::new().await;
    world.fake.behave(|_, before| if before < 2 { Behaviour::refuse(429) } else { Behaviour::accept() });
    let action = world.enqueue("n-1").await;
    let _daemon = world.daemon().await;
    world.until(action, "succeeded").await;
    let seen = world.fake.seen();
    let keys: HashSet<_> = seen.iter().map(|request| request.key.clone()).collect();
    assert_eq!((seen.len(), keys.len()), (3, 1));
    let verdicts: Vec<String> = world.history(action).await.into_iter().map(|attempt| attempt.verdict).collect();
    assert_eq!(verdicts, ["retryable_failure", "retryable_failure", "succeeded"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn r15_b21_what_is_refused_for_good_ends_at_once() {
    let world = World::new().await;
    world.fake.behave(|seen, _| {
        let status = seen.text().chars().filter(char::is_ascii_digit).collect::<String>();
        status.parse().map_or_else(|_| Behaviour::accept(), Behaviour::refuse)
    });
    let mut actions = Vec::new();
    for status in [400, 403, 404, 410, 422] {
        actions.push((status, world.enqueue(&status.to_string()).await));
    }
    let daemon = world.daemon().await;
    for (status, action) in actions {
        world.until(action, "terminal_failure").await;
        let standing = world.standing(action).await;
        assert_eq!((standing.attempts, standing.reason.as_deref()), (1, Some("rejected")), "{status}");
        assert_eq!(world.history(action).await[0].status, Some(status));
    }
    // Nothing is left that could be sent: a later one comes and goes alone.
    let good = world.enqueue("good").await;
    world.until(good, "succeeded").await;
    assert_eq!(world.fake.tally().requests, 6);
    assert_eq!(lines_of(&daemon.log(), "action not delivered").len(), 5);
}

#[tokio::test(flavor = "multi_thread")]
async fn b21_b22_r23_endless_500s_stop_at_the_limit_in_review() {
    let mut world = World::new().await;
    world.operation = keyed("1s", "attempts_max = 3");
    world.fake.behave(|_, _| Behaviour::refuse(500));
    let action = world.enqueue("n-1").await;
    let daemon = world.daemon().await;
    world.until(action, "awaiting_review").await;
    let standing = world.standing(action).await;
    assert_eq!((standing.attempts, standing.state.as_str(), standing.in_doubt), (3, "outcome_unknown", true));
    assert_eq!(world.fake.tally().requests, 3);
    assert!(standing.sentence.starts_with("Outcome unknown since"), "R10: {}", standing.sentence);
    assert_eq!(world.evidence(action).await, ["unknown_answer"; 3]);
    daemon.logged("action held for review", SOON).await.expect("logged");
}

#[tokio::test(flavor = "multi_thread")]
async fn b10_a_redirect_is_not_followed() {
    let world = World::new().await;
    let elsewhere = format!("{}/final?token=s3cret", world.fake.base_url());
    world.fake.behave(move |seen, _| match seen.path.as_str() {
        "/notes" => Behaviour::redirect(if seen.text().contains("see") { 303 } else { 302 }, &elsewhere),
        _ => Behaviour::accept(),
    });
    let (found, see) = (world.enqueue("found").await, world.enqueue("see").await);
    let daemon = world.daemon().await;
    world.until(found, "terminal_failure").await;
    world.until(see, "awaiting_resend").await;
    assert!(world.fake.seen().iter().all(|seen| seen.path == "/notes" && seen.method == "POST"));
    assert_eq!(world.seen_of(found).len(), 1);
    daemon.logged("action not delivered", SOON).await.expect("logged");
    let line = &lines_of(&daemon.log(), "action not delivered")[0];
    let detail = line["detail"].as_str().expect("a detail");
    assert!(detail.contains("302") && detail.contains("127.0.0.1") && !detail.contains("s3cret"), "{detail}");
}

#[tokio::test(flavor = "multi_thread")]
async fn r15_refused_credentials_pause_the_destination_and_lose_no_action() {
    let world = World::new().await;
    let fixed = Arc::new(AtomicBool::new(false));
    let works = Arc::clone(&fixed);
    world.fake.behave(move |_, _| match works.load(Ordering::Relaxed) {
        true => Behaviour::accept(),
        false => Behaviour::refuse(401),
    });
    world.enqueue_many("n", 30).await;
    let daemon = world.daemon().await;
    daemon.logged("destination paused", SOON).await.expect("paused");
    world.until_count("select count(*) from outbox.delivery where state = 'dispatching'", 0).await;
    let first = world.fake.tally().requests;
    // The next is a probe, alone.
    world.fake.wait_seen(first + 1).await.expect("a probe");
    world.until_count("select count(*) from outbox.delivery where state = 'dispatching'", 0).await;
    assert_eq!(world.fake.tally().requests, first + 1);
    assert_eq!(world.db.count("select count(*) from outbox.delivery where attempts > 0").await, 0);
    assert_eq!(
        world.db.count("select count(*) from outbox.status where state in ('pending', 'retryable_failure')").await,
        30
    );

    fixed.store(true, Ordering::Relaxed);
    world.until_count("select count(*) from outbox.status where state = 'succeeded'", 30).await;
    assert_eq!(world.db.count("select count(*) from outbox.delivery where attempts <> 1").await, 0);
    assert_eq!(world.fake.effects().len(), 30);
    assert_eq!(lines_of(&daemon.log(), "destination paused").len(), 1);
    assert_eq!(lines_of(&daemon.log(), "destination resumed").len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn r15_a_probe_that_sends_nothing_does_not_pause_the_destination_for_ever() {
    let world = World::new().await;
    let fixed = Arc::new(AtomicBool::new(false));
    let works = Arc::clone(&fixed);
    world.fake.behave(move |_, _| match works.load(Ordering::Relaxed) {
        true => Behaviour::accept(),
        false => Behaviour::refuse(401),
    });
    let refused = world.enqueue("refused").await;
    let daemon = world.daemon().await;
    daemon.logged("destination paused", SOON).await.expect("paused");
    world.until(refused, "retryable_failure").await;
    fixed.store(true, Ordering::Relaxed);
    // The only thing to probe with is something that must not be sent.
    world.db.one::<String>("select outbox.cancel($1, 'me', 'no longer wanted')", &[&refused]).await;
    world.until(refused, "terminal_failure").await;
    let next = world.enqueue("next").await;
    world.until(next, "succeeded").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_paused_destination_does_not_hold_up_another_one() {
    let mut world = World::new().await;
    world.dispatcher = "poll_interval = \"1s\"".into();
    let other = Fake::start().await.expect("another destination");
    world.elsewhere(&other);
    world.fake.behave(|_, _| Behaviour::refuse(401));
    world.enqueue_many("n", 20).await;
    let daemon = world.daemon().await;
    daemon.logged("destination paused", SOON).await.expect("paused");
    let mut actions = Vec::new();
    for n in 0..5 {
        actions.push(world.db.enqueue("note.other", "{}", &format!("n-{n}")).await);
    }
    for action in actions {
        world.until(action, "succeeded").await;
    }
    let asked = world.transactions_per_second(Duration::from_secs(2)).await;
    assert!(asked < 100.0, "{asked} transactions a second while a destination is paused");
}
