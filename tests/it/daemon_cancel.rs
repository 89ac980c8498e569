//! Doubt that is ended by cancelling at the destination, by the key.

use outboxd::proving::fake::{Behaviour, Reply};
use rustix::process::Signal;
use serde_json::Value;

use crate::support::world::{SOON, keyed, lines_of};
use crate::support::{Shelf, World};

/// A destination whose key memory is not published, but which undoes by key.
const CANCELS: &str = r#"
[contract."test"]
reconcile = ["cancel", "review"]
key = { mode = "dedupe", place = "json:/reference" }
receipt = { id = "json:/id" }
[contract."test".cancel]
request = { method = "POST", path = "/notes/cancel", body = { reference = "{key}" } }
done = { status = "200" }
first_after = "50ms"
repeat = ["100ms"]
absence = "after:100ms"
"#;

async fn world() -> (World, Shelf) {
    let mut world = World::new().await;
    world.contract = CANCELS.into();
    world.operation = keyed("500ms", "");
    (world, Shelf::default())
}

/// Takes effect and hides the answer; takes back what it is told to, and always says that it is gone.
fn hides_and_takes_back(world: &World, shelf: &Shelf) {
    let shelf = shelf.clone();
    world.fake.behave(move |seen, _| match seen.path.as_str() {
        "/notes" => {
            shelf.put(seen);
            Behaviour::accept().without_dedupe().closing()
        }
        _ => {
            let asked: Value = serde_json::from_slice(&seen.body).expect("JSON");
            shelf.take_back(asked["reference"].as_str().expect("a key"));
            Behaviour::reply(Reply::json(200, "{}"))
        }
    });
}

#[tokio::test(flavor = "multi_thread")]
async fn r18_a_cancel_by_key_ends_the_doubt_with_no_effect_left() {
    let (world, shelf) = world().await;
    hides_and_takes_back(&world, &shelf);
    let action = world.enqueue("n-1").await;
    let daemon = world.daemon().await;
    world.until(action, "terminal_failure").await;
    let standing = world.standing(action).await;
    assert_eq!((standing.reason.as_deref(), standing.attempts), (Some("neutralised"), 1));
    assert_eq!(shelf.len(), 0);
    let evidence = world.evidence(action).await;
    assert_eq!((evidence[0].as_str(), evidence.last().map(String::as_str)), ("no_answer", Some("neutralised")));
    let kinds: Vec<String> = world.history(action).await.into_iter().map(|h| h.kind).collect();
    assert!(kinds[1..].iter().all(|kind| kind == "cancel"), "{kinds:?}");
    let sent = "select (cancel_sent_at is not null)::int::bigint from outbox.delivery";
    assert_eq!(world.db.count(sent).await, 1, "the key is spent for good");
    daemon.logged("outcome resolved", SOON).await.expect("resolved");
    assert_eq!(lines_of(&daemon.log(), "outcome resolved")[0]["by"], "cancel");
}

#[tokio::test(flavor = "multi_thread")]
async fn r18_a_cancel_is_on_record_before_it_leaves_and_a_crash_repeats_only_it() {
    let (world, shelf) = world().await;
    let on_shelf = shelf.clone();
    world.fake.behave(move |seen, _| match (seen.path.as_str(), seen.number) {
        ("/notes", _) => {
            on_shelf.put(seen);
            Behaviour::accept().without_dedupe().closing()
        }
        (_, 2) => Behaviour::ignore(),
        _ => {
            let asked: Value = serde_json::from_slice(&seen.body).expect("JSON");
            on_shelf.take_back(asked["reference"].as_str().expect("a key"));
            Behaviour::reply(Reply::json(200, "{}"))
        }
    });
    let action = world.enqueue("n-1").await;
    let daemon = world.daemon().await;
    world.fake.wait_seen(2).await.expect("a cancel");
    assert_eq!(world.db.count("select count(*) from outbox.delivery where cancel_sent_at is not null").await, 1);
    daemon.signal(Signal::KILL).expect("killed");
    let _second = world.daemon().await;
    world.until(action, "terminal_failure").await;
    assert_eq!(world.fake.seen().iter().filter(|seen| seen.path == "/notes").count(), 1, "never sent again");
    assert_eq!(shelf.len(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn r18_a_cancel_that_is_refused_ends_with_a_person() {
    let (mut world, shelf) = world().await;
    world.operation = keyed("500ms", "review_after = \"1s\"");
    let on_shelf = shelf.clone();
    world.fake.behave(move |seen, _| match seen.path.as_str() {
        "/notes" => {
            on_shelf.put(seen);
            Behaviour::accept().without_dedupe().closing()
        }
        _ => Behaviour::refuse(409),
    });
    let action = world.enqueue("n-1").await;
    let _daemon = world.daemon().await;
    world.until(action, "awaiting_review").await;
    assert_eq!(world.standing(action).await.reason.as_deref(), Some("review_after"));
    assert_eq!(shelf.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn r18_a_cancel_that_cannot_be_built_spends_no_key() {
    let (mut world, shelf) = world().await;
    world.contract = CANCELS.replace("/notes/cancel", "/notes/{shop}/cancel");
    world.operation = keyed("500ms", "review_after = \"1s\"");
    hides_and_takes_back(&world, &shelf);
    let action = world.enqueue("n-1").await;
    let _daemon = world.daemon().await;
    world.until(action, "awaiting_review").await;
    assert_eq!(world.db.count("select count(*) from outbox.delivery where cancel_sent_at is not null").await, 0);
    assert_eq!(world.fake.tally().requests, 1, "nothing but the send");
}
