//! What happens when nobody knows what happened.

use std::collections::HashSet;
use std::time::Duration;

use outboxd::proving::fake::{Behaviour, Reply};
use uuid::Uuid;

use crate::support::World;
use crate::support::world::{NOTHING_PROMISED, SOON, keyed, lines_of};

/// One key, one body, over all requests of an action.
fn assert_identical(world: &World, action: Uuid, times: usize) {
    let seen = world.seen_of(action);
    assert_eq!(seen.len(), times);
    let asked: HashSet<_> = seen.iter().map(|s| (s.key.clone(), s.body.clone(), s.path.clone())).collect();
    assert_eq!(asked.len(), 1, "R17: the same key and the same bytes each time");
    assert!(!seen[0].body.is_empty() && seen[0].key.is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn r13_r17_a_withheld_answer_is_unknown_and_resent_under_the_same_key() {
    let world = World::new().await;
    world.fake.behave(|_, before| match before {
        0 => Behaviour::accept().withholding(),
        _ => Behaviour::accept(),
    });
    let action = world.enqueue("n-1").await;
    let daemon = world.daemon().await;
    daemon.logged("outcome unknown", SOON).await.expect("unknown");
    world.until(action, "succeeded").await;
    assert_identical(&world, action, 2);
    assert_eq!((world.fake.effects().len(), world.fake.duplicates()), (1, 0));
    let history = world.history(action).await;
    let told: Vec<_> = history.iter().map(|h| (h.evidence.as_str(), h.verdict.as_str(), h.number)).collect();
    assert_eq!(told, [("no_answer", "outcome_unknown", 1), ("accepted", "succeeded", 2)]);
    let key = &world.seen_of(action)[0].key;
    assert!(history.iter().all(|attempt| &attempt.key == key), "R9: the key as it was sent");
    let standing = world.standing(action).await;
    assert_eq!(standing.receipt.as_deref(), Some(world.fake.effects()[0].receipt.as_str()));
    assert!(!standing.in_doubt);
    daemon.logged("outcome resolved", SOON).await.expect("resolved");
    let line = &lines_of(&daemon.log(), "outcome resolved")[0];
    assert_eq!((line["by"].as_str(), line["state"].as_str()), (Some("resend"), Some("succeeded")));
}

#[tokio::test(flavor = "multi_thread")]
async fn r10_a_reader_is_told_the_truth_while_nobody_knows() {
    let mut world = World::new().await;
    world.operation = "effect = \"keyed\"\ntimeout = \"1s\"\nbackoff = { initial = \"1h\", max = \"1h\" }".into();
    world.fake.behave(|_, _| Behaviour::accept().withholding());
    let action = world.enqueue("n-1").await;
    assert_eq!(world.standing(action).await.sentence, "Committed; delivery pending.");
    let _daemon = world.daemon().await;
    world.fake.wait_seen(1).await.expect("a request");
    let sentence = world.standing(action).await.sentence;
    assert!(sentence.starts_with("Sent ") && sentence.ends_with("; no answer yet."), "{sentence}");
    world.until(action, "awaiting_resend").await;
    let sentence = world.standing(action).await.sentence;
    assert!(sentence.starts_with("Outcome unknown since ") && sentence.contains("sent again"), "{sentence}");
}

#[tokio::test(flavor = "multi_thread")]
async fn b03_a_reset_after_half_a_status_line_is_unknown() {
    let world = World::new().await;
    world.fake.behave(|_, before| if before == 0 { Behaviour::accept().stuttering() } else { Behaviour::accept() });
    let action = world.enqueue("n-1").await;
    let daemon = world.daemon().await;
    daemon.logged("outcome unknown", SOON).await.expect("unknown");
    world.until(action, "succeeded").await;
    let first = &world.history(action).await[0];
    assert_eq!((first.evidence.as_str(), first.verdict.as_str()), ("no_answer", "outcome_unknown"));
    assert!(first.detail.as_deref().is_some_and(|detail| detail.contains("bytes of the request")), "{first:?}");
    assert_eq!(lines_of(&daemon.log(), "outcome unknown")[0]["reason"], "connection_lost");
    assert_identical(&world, action, 2);
    assert_eq!(world.fake.duplicates(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn r21_without_a_promise_it_is_held_for_review_and_never_resent() {
    let mut world = World::new().await;
    world.contract = NOTHING_PROMISED.into();
    world.operation = "effect = \"unreconcilable\"\ntimeout = \"500ms\"".into();
    world.fake.behave(|_, _| Behaviour::accept().without_dedupe().closing());
    let action = world.enqueue("n-1").await;
    let daemon = world.daemon().await;
    world.until(action, "awaiting_review").await;
    let standing = world.standing(action).await;
    assert_eq!((standing.reason.as_deref(), standing.attempts), (Some("connection_lost"), 1));
    daemon.logged("action held for review", SOON).await.expect("logged");
    // A daemon that starts afresh leaves it alone as well.
    drop(daemon);
    let _daemon = world.daemon().await;
    let next = world.enqueue("n-2").await;
    world.until(next, "awaiting_review").await;
    assert_eq!((world.seen_of(action).len(), world.fake.tally().requests), (1, 2));
}

#[tokio::test(flavor = "multi_thread")]
async fn b22_a_504_after_the_effect_is_no_failure_and_neither_is_the_409_that_follows() {
    let mut world = World::new().await;
    world.contract.push_str("[[contract.\"test\".rule]]\nwhen = { status = \"409\", json = { \"/error\" = \"exists\" } }\nclass = \"duplicate\"\n");
    world.fake.behave(|_, before| match before {
        0 => Behaviour::accept().answering(Reply::new(504)),
        _ => Behaviour::reply(Reply::json(409, r#"{"error":"exists","id":"r-1"}"#)),
    });
    let action = world.enqueue("n-1").await;
    let daemon = world.daemon().await;
    daemon.logged("outcome unknown", SOON).await.expect("unknown");
    world.until(action, "succeeded").await;
    assert_eq!(world.evidence(action).await, ["unknown_answer", "accepted"]);
    assert_eq!(world.fake.effects().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn b22_a_409_that_no_rule_explains_stays_unknown() {
    let mut world = World::new().await;
    world.operation = keyed("1s", "attempts_max = 3");
    world.fake.behave(|_, before| match before {
        0 => Behaviour::accept().answering(Reply::new(502)),
        _ => Behaviour::refuse(409),
    });
    let action = world.enqueue("n-1").await;
    let _daemon = world.daemon().await;
    world.until(action, "awaiting_review").await;
    assert!(world.standing(action).await.in_doubt);
    assert!(world.history(action).await.iter().all(|attempt| attempt.verdict == "outcome_unknown"));
}

#[tokio::test(flavor = "multi_thread")]
async fn b70_a_key_in_use_waits_for_the_first_request_to_end() {
    let mut world = World::new().await;
    world.operation = keyed("500ms", "");
    world.contract.push_str("[[contract.\"test\".rule]]\nwhen = { status = \"409\", json = { \"/error\" = \"in_progress\" } }\nclass = \"in_flight\"\nwait = \"400ms\"\n");
    let first = std::sync::OnceLock::new();
    world.fake.behave(move |seen, before| {
        let since = seen.at.duration_since(*first.get_or_init(|| seen.at)).unwrap_or_default();
        match before {
            0 => Behaviour::accept().withholding(),
            _ if since < Duration::from_millis(2500) => {
                Behaviour::reply(Reply::json(409, r#"{"error":"in_progress"}"#))
            }
            _ => Behaviour::accept(),
        }
    });
    let action = world.enqueue("n-1").await;
    let _daemon = world.daemon().await;
    world.until(action, "succeeded").await;
    let evidence = world.evidence(action).await;
    let waited = evidence.iter().filter(|evidence| *evidence == "in_flight").count();
    assert!((2..=6).contains(&waited), "{evidence:?}");
    assert_identical(&world, action, waited + 2);
    assert_eq!((world.fake.effects().len(), world.fake.duplicates()), (1, 0));
    assert_eq!(world.standing(action).await.attempts, 2, "waiting for the first request counts as no attempt");
}

#[tokio::test(flavor = "multi_thread")]
async fn b71_r18_nothing_is_resent_once_the_key_is_forgotten() {
    let mut world = World::new().await;
    world.operation = keyed("500ms", "");
    world.contract = world.contract.replace("window = \"24h\", margin = \"1h\"", "window = \"3s\", margin = \"500ms\"");
    world.fake.behave(|_, _| Behaviour::accept().withholding());
    let action = world.enqueue("n-1").await;
    let mut daemon = world.daemon().await;
    daemon.logged("outcome unknown", SOON).await.expect("unknown");
    assert_eq!(daemon.terminate(SOON).await.expect("it ends").code(), Some(0));
    let sent = world.fake.tally().requests;
    world
        .until_true("not exists (select from outbox.delivery where first_sent_at > clock_timestamp() - interval '3 s')")
        .await;

    let daemon = world.daemon().await;
    world.until(action, "awaiting_review").await;
    assert_eq!(world.standing(action).await.reason.as_deref(), Some("key_window_closed"));
    assert_eq!(world.fake.tally().requests, sent, "nothing after the window");
    daemon.logged("key_window_closed", SOON).await.expect("the log says why");
}

/// In doubt from the first request on; the second gets this.
async fn after_doubt(second: fn() -> Behaviour) -> (World, Uuid, outboxd::proving::daemon::Daemon) {
    let mut world = World::new().await;
    world.operation = keyed("500ms", "");
    world.fake.behave(move |_, before| match before {
        0 => Behaviour::accept().withholding(),
        1 => second(),
        _ => Behaviour::accept(),
    });
    let action = world.enqueue("n-1").await;
    let daemon = world.daemon().await;
    world.fake.wait_seen(2).await.expect("two requests");
    (world, action, daemon)
}

#[tokio::test(flavor = "multi_thread")]
async fn r14_doubt_survives_a_429() {
    let (world, action, _daemon) = after_doubt(|| Behaviour::refuse(429)).await;
    world.until(action, "succeeded").await;
    let history = world.history(action).await;
    let told: Vec<_> = history.iter().map(|h| (h.evidence.as_str(), h.verdict.as_str())).collect();
    assert_eq!(told, [("no_answer", "outcome_unknown"), ("deferred", "outcome_unknown"), ("accepted", "succeeded")]);
    assert_eq!(world.fake.duplicates(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn r14_doubt_survives_a_403_and_is_then_for_a_person() {
    let (world, action, _daemon) = after_doubt(|| Behaviour::refuse(403)).await;
    world.until(action, "awaiting_review").await;
    let standing = world.standing(action).await;
    assert_eq!((standing.state.as_str(), standing.in_doubt), ("outcome_unknown", true));
    assert_eq!(world.evidence(action).await, ["no_answer", "rejected"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn r14_doubt_survives_refused_credentials() {
    let (world, action, daemon) = after_doubt(|| Behaviour::refuse(401)).await;
    daemon.logged("destination paused", SOON).await.expect("paused");
    world.until_count("select count(*) from outbox.attempt where evidence = 'blocked'", 1).await;
    let standing = world.standing(action).await;
    assert_eq!((standing.state.as_str(), standing.in_doubt, standing.attempts), ("outcome_unknown", true, 1));
    world.until(action, "succeeded").await;
    assert_eq!(world.fake.duplicates(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn r14_doubt_survives_a_refused_connection() {
    let mut world = World::new().await;
    world.operation = keyed("500ms", "");
    world.fake.behave(|_, before| if before == 0 { Behaviour::accept().withholding() } else { Behaviour::accept() });
    let action = world.enqueue("n-1").await;
    let _daemon = world.daemon().await;
    world.fake.wait_seen(1).await.expect("a request");
    world.fake.stop().await;
    world.until_true("(select count(*) from outbox.attempt where evidence = 'not_sent') >= 2").await;
    let standing = world.standing(action).await;
    assert!(standing.in_doubt && standing.sentence.starts_with("Outcome unknown"), "{standing:?}");
    assert_eq!(standing.attempts, 1, "what was proved unsent counts as no attempt");
    world.fake.resume().await.expect("the same port");
    world.until(action, "succeeded").await;
    assert_identical(&world, action, 2);
    assert_eq!((world.fake.effects().len(), world.fake.duplicates()), (1, 0));
}
