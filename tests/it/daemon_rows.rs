//! Rows of the table above `decide` that no other file meets end to end: what an answer means while an earlier one is
//! missing.

use outboxd::proving::fake::{Behaviour, Reply};

use crate::support::world::{ASKED, SOON, keyed};
use crate::support::{Shelf, World};

const REPLAYS: &str = r#"
[contract."test"]
reconcile = ["resend", "review"]
key = { mode = "dedupe", place = "header:Idempotency-Key", window = "24h", margin = "1h", replayed = { header = { Idempotent-Replayed = "true" } } }
[[contract."test".rule]]
when = { status = "409", json = { "/error" = "other content" } }
class = "key_conflict"
"#;

async fn replaying() -> World {
    let mut world = World::new().await;
    world.contract = REPLAYS.into();
    world
}

#[tokio::test(flavor = "multi_thread")]
async fn r14_a_replayed_refusal_is_the_answer_that_was_missed() {
    let world = replaying().await;
    world.fake.behave(|_, before| match before {
        0 => Behaviour::refuse(422).closing(),
        _ => Behaviour::reply(Reply::json(422, "{}").header("Idempotent-Replayed", "true")),
    });
    let action = world.enqueue("n-1").await;
    let _daemon = world.daemon().await;
    world.until(action, "terminal_failure").await;
    assert_eq!(world.evidence(action).await, ["no_answer", "rejected_replay"]);
    assert_eq!(world.standing(action).await.reason.as_deref(), Some("rejected"));
}

#[tokio::test(flavor = "multi_thread")]
async fn r14_a_refusal_without_the_mark_of_a_replay_says_nothing_about_the_first() {
    let world = replaying().await;
    world.fake.behave(|_, before| match before {
        0 => Behaviour::accept().closing(),
        _ => Behaviour::refuse(422),
    });
    let action = world.enqueue("n-1").await;
    let _daemon = world.daemon().await;
    world.until(action, "awaiting_review").await;
    assert_eq!(world.evidence(action).await, ["no_answer", "rejected"]);
    assert_eq!(world.fake.effects().len(), 1, "and it had taken effect indeed");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_is_known_with_other_content_is_for_a_person_in_doubt_or_not() {
    for first in [0, 1] {
        let world = replaying().await;
        world.fake.behave(move |_, before| match before < first {
            true => Behaviour::accept().closing(),
            false => Behaviour::reply(Reply::json(409, r#"{"error":"other content"}"#)),
        });
        let action = world.enqueue("n-1").await;
        let _daemon = world.daemon().await;
        world.until(action, "awaiting_review").await;
        assert_eq!(world.standing(action).await.reason.as_deref(), Some("key_conflict"));
        assert_eq!(world.seen_of(action).len(), first + 1, "never sent again");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn r16_a_confirmation_that_echoes_something_else_is_for_a_person() {
    for (echo, reason) in [(r#"{"note":"another"}"#, "mismatch"), (r#"{"id":"x"}"#, "unmatched_answer")] {
        let mut world = replaying().await;
        world.contract = world.contract.replace("reconcile", "compare = { \"/note\" = \"json:/note\" }\nreconcile");
        world.operation = keyed("1s", "attempts_max = 2");
        world.fake.behave(move |_, _| Behaviour::accept().answering(Reply::json(201, echo)));
        let action = world.enqueue("n-1").await;
        let daemon = world.daemon().await;
        world.until(action, "awaiting_review").await;
        let standing = world.standing(action).await;
        assert!(standing.in_doubt, "{standing:?}");
        let history = world.history(action).await;
        let expected = if reason == "mismatch" { "mismatch" } else { "unknown_answer" };
        assert_eq!(history[0].evidence, expected);
        daemon.logged("action held for review", SOON).await.expect("logged");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn r22_a_cancelled_action_in_doubt_is_asked_about_and_ends_as_what_is_true() {
    for (took_effect, state) in [(true, "succeeded"), (false, "terminal_failure")] {
        let mut world = World::new().await;
        world.contract = ASKED.into();
        world.operation = keyed("1s", "");
        let shelf = Shelf::default();
        let on_shelf = shelf.clone();
        world.fake.behave(move |seen, _| match seen.method.as_str() {
            "POST" if took_effect => {
                on_shelf.put(seen);
                Behaviour::accept().without_dedupe().closing()
            }
            "POST" => Behaviour::refuse(500).closing(),
            _ => on_shelf.answer(seen),
        });
        let action = world.enqueue("n-1").await;
        let daemon = world.daemon().await;
        daemon.logged("outcome unknown", SOON).await.expect("unknown");
        let said: String = world.db.one("select outbox.cancel($1, 'ann', 'a typo')", &[&action]).await;
        assert_eq!(said, "requested", "it may have left");
        world.until(action, state).await;
        let reason = world.standing(action).await.reason;
        assert_eq!(reason.as_deref(), (!took_effect).then_some("cancelled"));
        assert_eq!(
            (world.fake.seen().iter().filter(|seen| seen.method == "POST").count(), shelf.len()),
            (1, usize::from(took_effect))
        );
    }
}
