//! Doubt that is settled by asking the destination.

use std::time::Duration;

use outboxd::proving::fake::{Behaviour, Reply};
use rustix::process::Signal;
use uuid::Uuid;

use crate::support::world::{SOON, keyed, lines_of};
use crate::support::{Shelf, World};

/// A destination that remembers no key, but can be asked by our reference.
fn can_be_asked(lookup: &str) -> String {
    format!(
        r#"
[contract."test"]
reconcile = ["lookup", "review"]
ref = {{ place = "json:/reference" }}
receipt = {{ id = "json:/id" }}
[contract."test".lookup]
by = "ref"
request = {{ method = "GET", path = "/notes", query = {{ reference = "{{ref}}" }} }}
found = {{ status = "200", json = {{ "/items/0/id" = "*" }} }}
absent = {{ status = "200", json = {{ "/items" = "[]" }} }}
receipt = "json:/items/0/id"
compare = {{ "/items/0/note" = "json:/note" }}
{lookup}
"#
    )
}

/// Fast, and proof after 200 ms.
const QUICK: &str = "first_after = \"50ms\"\nrepeat = [\"100ms\"]\nabsence = \"after:200ms\"";

async fn world(lookup: &str) -> (World, Shelf) {
    let mut world = World::new().await;
    world.contract = can_be_asked(lookup);
    world.operation = keyed("500ms", "");
    (world, Shelf::default())
}

/// Takes effect and hides the answer; then says what it has.
fn hides(world: &World, shelf: &Shelf) {
    let shelf = shelf.clone();
    world.fake.behave(move |seen, _| match seen.method.as_str() {
        "POST" => {
            shelf.put(seen);
            Behaviour::accept().without_dedupe().closing()
        }
        _ => shelf.answer(seen),
    });
}

async fn kinds(world: &World, action: Uuid) -> Vec<(String, String, i32)> {
    let history = world.history(action).await;
    history.into_iter().map(|h| (h.kind, h.evidence, h.number)).collect()
}

fn told(lines: &[(&str, &str, i32)]) -> Vec<(String, String, i32)> {
    lines.iter().map(|(kind, evidence, number)| ((*kind).to_owned(), (*evidence).to_owned(), *number)).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn r18_r19_what_was_sent_and_not_answered_is_found_and_never_sent_again() {
    let (world, shelf) = world(QUICK).await;
    hides(&world, &shelf);
    let action = world.enqueue("n-1").await;
    let daemon = world.daemon().await;
    world.until(action, "succeeded").await;
    assert_eq!(kinds(&world, action).await, told(&[("send", "no_answer", 1), ("lookup", "found", 1)]));
    let standing = world.standing(action).await;
    assert_eq!((standing.receipt.as_deref(), standing.attempts), (Some("shelf-0"), 1), "a lookup is no attempt");
    assert_eq!((shelf.len(), world.fake.effects().len()), (1, 1));
    daemon.logged("outcome resolved", SOON).await.expect("resolved");
    let line = &lines_of(&daemon.log(), "outcome resolved")[0];
    assert_eq!((line["by"].as_str(), line["state"].as_str()), (Some("lookup"), Some("succeeded")));
    let asked = world.seen_of(action).into_iter().find(|seen| seen.method == "GET").expect("a lookup");
    assert_eq!(asked.query, Some(format!("reference={action}")));
    assert!(asked.body.is_empty() && asked.header("outbox-attempt").is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn r19_what_is_absent_after_the_settle_time_is_sent_again() {
    let (world, shelf) = world(QUICK).await;
    let on_shelf = shelf.clone();
    world.fake.behave(move |seen, _| match (seen.method.as_str(), seen.number) {
        ("POST", 1) => Behaviour::reply(Reply::new(500)).closing(),
        ("POST", _) => {
            on_shelf.put(seen);
            Behaviour::accept().without_dedupe()
        }
        _ => on_shelf.answer(seen),
    });
    let action = world.enqueue("n-1").await;
    let _daemon = world.daemon().await;
    world.until(action, "succeeded").await;
    let history = kinds(&world, action).await;
    assert_eq!(history.first(), told(&[("send", "no_answer", 1)]).first());
    assert_eq!(history.last(), told(&[("send", "accepted", 2)]).first());
    assert!(history[1..history.len() - 1].iter().all(|(kind, evidence, _)| kind == "lookup" && evidence == "absent"));
    assert!(history.len() > 2, "asked before it was sent again");
    assert_eq!((shelf.len(), world.fake.effects().len()), (1, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn r19_an_absence_before_the_settle_time_proves_nothing() {
    let (world, shelf) = world("first_after = \"10ms\"\nrepeat = [\"50ms\"]\nabsence = \"after:1s\"").await;
    let on_shelf = shelf.clone();
    // The index lags: what took effect at once is listed half a second later.
    let listed = std::sync::Arc::new(std::sync::Mutex::new(None::<std::time::SystemTime>));
    world.fake.behave(move |seen, _| match seen.method.as_str() {
        "POST" => {
            on_shelf.put(seen);
            *listed.lock().unwrap() = Some(seen.at + Duration::from_millis(500));
            Behaviour::accept().without_dedupe().closing()
        }
        _ if listed.lock().unwrap().is_some_and(|from| seen.at < from) => {
            Behaviour::reply(Reply::json(200, r#"{"items":[]}"#))
        }
        _ => on_shelf.answer(seen),
    });
    let action = world.enqueue("n-1").await;
    let _daemon = world.daemon().await;
    world.until(action, "succeeded").await;
    let evidence = world.evidence(action).await;
    assert_eq!((evidence[1].as_str(), evidence.last().map(String::as_str)), ("absent", Some("found")), "{evidence:?}");
    assert_eq!((shelf.len(), world.fake.effects().len()), (1, 1), "never twice");
}

#[tokio::test(flavor = "multi_thread")]
async fn r19_r23_an_absence_that_is_never_proof_ends_with_a_person() {
    let (mut world, shelf) = world("first_after = \"10ms\"\nrepeat = [\"50ms\"]\nabsence = \"never\"").await;
    world.operation = keyed("500ms", "review_after = \"1s\"");
    let on_shelf = shelf.clone();
    world.fake.behave(move |seen, _| match seen.method.as_str() {
        "POST" => Behaviour::reply(Reply::new(500)).closing(),
        _ => on_shelf.answer(seen),
    });
    let action = world.enqueue("n-1").await;
    let daemon = world.daemon().await;
    daemon.logged("outcome unknown", SOON).await.expect("unknown");
    world.until(action, "awaiting_review").await;
    let standing = world.standing(action).await;
    assert_eq!((standing.reason.as_deref(), standing.attempts), (Some("review_after"), 1));
    assert_eq!(world.fake.seen().iter().filter(|seen| seen.method == "POST").count(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn r16_what_is_found_but_not_what_was_sent_is_for_a_person() {
    let (world, shelf) = world(QUICK).await;
    let on_shelf = shelf.clone();
    world.fake.behave(move |seen, _| match seen.method.as_str() {
        "POST" => {
            on_shelf.put(seen);
            Behaviour::accept().without_dedupe().closing()
        }
        _ => Behaviour::reply(Reply::json(200, r#"{"items":[{"id":"shelf-9","note":"another"}]}"#)),
    });
    let action = world.enqueue("n-1").await;
    let daemon = world.daemon().await;
    world.until(action, "awaiting_review").await;
    assert_eq!(world.standing(action).await.reason.as_deref(), Some("mismatch"));
    daemon.logged("action held for review", SOON).await.expect("logged");
}

#[tokio::test(flavor = "multi_thread")]
async fn r19_a_lookup_that_cannot_be_read_settles_nothing() {
    let (world, shelf) = world(QUICK).await;
    let on_shelf = shelf.clone();
    world.fake.behave(move |seen, _| match (seen.method.as_str(), seen.number) {
        ("POST", _) => {
            on_shelf.put(seen);
            Behaviour::accept().without_dedupe().closing()
        }
        (_, 2) => Behaviour::reply(Reply::new(503).header("retry-after", "1")),
        (_, 3) => Behaviour::reply(Reply::json(200, "[")),
        (_, 4) => Behaviour::ignore(),
        _ => on_shelf.answer(seen),
    });
    let action = world.enqueue("n-1").await;
    let _daemon = world.daemon().await;
    world.until(action, "succeeded").await;
    let evidence = world.evidence(action).await;
    assert_eq!(evidence, ["no_answer", "inconclusive", "inconclusive", "inconclusive", "found"]);
    let seen = world.seen_of(action);
    let waited = seen[2].at.duration_since(seen[1].at).expect("in order");
    assert!(waited >= Duration::from_millis(950), "its Retry-After holds: {waited:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn b71_r18_once_the_key_is_forgotten_the_destination_is_asked_instead() {
    let (mut world, shelf) = world(QUICK).await;
    world.contract = world.contract.replace(
        "reconcile = [\"lookup\", \"review\"]",
        "reconcile = [\"resend\", \"lookup\", \"review\"]\n\
         key = { mode = \"dedupe\", place = \"header:Idempotency-Key\", window = \"2s\", margin = \"500ms\" }",
    );
    world.operation = "effect = \"keyed\"\ntimeout = \"500ms\"\nbackoff = { initial = \"3s\", max = \"3s\" }".into();
    hides(&world, &shelf);
    let action = world.enqueue("n-1").await;
    let _daemon = world.daemon().await;
    world.until(action, "succeeded").await;
    let evidence = world.evidence(action).await;
    assert_eq!(evidence, ["no_answer", "found"]);
    assert_eq!((world.fake.tally().duplicates, shelf.len()), (0, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn r19_a_crash_in_a_lookup_is_not_mistaken_for_a_send() {
    let (world, shelf) = world(QUICK).await;
    let on_shelf = shelf.clone();
    world.fake.behave(move |seen, _| match (seen.method.as_str(), seen.number) {
        ("POST", _) => {
            on_shelf.put(seen);
            Behaviour::accept().without_dedupe().closing()
        }
        (_, 2) => Behaviour::ignore(),
        _ => on_shelf.answer(seen),
    });
    let action = world.enqueue("n-1").await;
    let daemon = world.daemon().await;
    world.fake.wait_seen(2).await.expect("a lookup");
    daemon.signal(Signal::KILL).expect("killed");
    let _second = world.daemon().await;
    world.until(action, "succeeded").await;
    assert_eq!(kinds(&world, action).await, told(&[("send", "no_answer", 1), ("lookup", "found", 1)]));
    assert_eq!(shelf.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn r15_a_lookup_that_is_refused_for_our_credentials_pauses_the_destination() {
    let (world, shelf) = world(QUICK).await;
    let on_shelf = shelf.clone();
    world.fake.behave(move |seen, _| match (seen.method.as_str(), seen.number) {
        ("POST", _) => {
            on_shelf.put(seen);
            Behaviour::accept().without_dedupe().closing()
        }
        (_, 2) => Behaviour::refuse(401),
        _ => on_shelf.answer(seen),
    });
    let action = world.enqueue("n-1").await;
    let daemon = world.daemon().await;
    daemon.logged("destination paused", SOON).await.expect("paused");
    daemon.logged("destination resumed", SOON).await.expect("resumed by a lookup");
    world.until(action, "succeeded").await;
    assert_eq!(world.evidence(action).await, ["no_answer", "inconclusive", "found"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn r19_lookups_that_hang_do_not_hold_up_sends_nor_sends_that_hang_lookups() {
    let (mut world, shelf) = world(QUICK).await;
    world.operation = keyed("5s", "max_in_flight = 8");
    let on_shelf = shelf.clone();
    world.fake.behave(move |seen, _| match seen.method.as_str() {
        "POST" if seen.text().contains("doubtful") => {
            on_shelf.put(seen);
            Behaviour::accept().without_dedupe().closing()
        }
        "POST" if seen.text().contains("slow") => Behaviour::ignore(),
        "POST" => Behaviour::accept().without_dedupe(),
        _ => Behaviour::ignore(),
    });
    world.enqueue_many("doubtful-", 12).await;
    let daemon = world.daemon().await;
    world.until_count("select count(*) from outbox.delivery where step = 'lookup'", 12).await;
    world.until_true("exists (select from outbox.delivery where state = 'dispatching' and step = 'lookup')").await;
    let action = world.enqueue("n-1").await;
    world.until(action, "succeeded").await;
    drop(daemon);

    // The other way round: sends that hang take all of theirs, and a lookup still has its turn.
    let on_shelf = shelf.clone();
    world.fake.behave(move |seen, _| match seen.method.as_str() {
        "POST" => Behaviour::ignore(),
        _ => on_shelf.answer(seen),
    });
    world.enqueue_many("slow-", 20).await;
    let _daemon = world.daemon().await;
    world.until_count("select count(*) from outbox.delivery where state = 'succeeded'", 13).await;
    let hanging = "exists (select from outbox.delivery where state = 'dispatching' and step = 'send')";
    world.until_true(hanging).await;
}
