//! Destinations that want a token, and a server that gives them.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use outboxd::clock::Uptime;
use outboxd::proving::fake::{Behaviour, Fake, Reply};

use crate::support::World;
use crate::support::world::{SOON, keyed, lines_of};

const CLIENT_SECRET: &str = "c0nfidential:cl+ient&secret";

/// A world whose destination wants a token of this server's; `more` goes into `oauth2`.
async fn world(server: &Fake, more: &str) -> World {
    let mut world = World::new().await;
    let file = world.dir.path().join("secret");
    std::fs::write(&file, format!("{CLIENT_SECRET}\n")).expect("a file");
    world.destination = format!(
        "auth = {{ oauth2 = {{ token_url = \"{}/oauth/token?tenant=1\", client_id = \"desk\", client_secret = {{ file = \
         {file:?} }}{more} }} }}",
        server.base_url()
    );
    world
}

/// A token that says how often one was given before.
fn token(number: usize, expires_in: u64) -> Behaviour {
    let body = format!(
        "{{\"access_token\":\"c0nfidential-token-{number}\",\"token_type\":\"Bearer\",\"expires_in\":{expires_in}}}"
    );
    Behaviour::reply(Reply::json(200, body))
}

/// From now on the server gives tokens, numbered from 0.
fn gives_tokens(server: &Fake, expires_in: u64) {
    let given = AtomicUsize::new(0);
    server.behave(move |_, _| token(given.fetch_add(1, Ordering::Relaxed), expires_in));
}

#[tokio::test(flavor = "multi_thread")]
async fn one_token_is_fetched_for_all_deliveries_and_shown_nowhere() {
    let server = Fake::start().await.expect("a server");
    let given = AtomicUsize::new(0);
    // Long enough for every delivery to want it.
    server.behave(move |_, _| token(given.fetch_add(1, Ordering::Relaxed), 3600).delayed(Duration::from_millis(300)));
    let world = world(&server, ", scope = \"notes:write notes:read\", audience = \"notes\"").await;
    world.fake.behave(|seen, _| match seen.text() {
        text if text.contains("n7") => {
            let echo = format!("{:?} wrong: {CLIENT_SECRET}", seen.header("authorization"));
            Behaviour::reply(Reply::new(422).body(echo))
        }
        _ => Behaviour::accept(),
    });
    world.enqueue_many("n", 30).await;
    let daemon = world.daemon().await;
    world.until_count("select count(*) from outbox.status where closed_at is not null", 30).await;

    let asked = server.seen();
    assert_eq!(asked.len(), 1, "one asks for all");
    assert_eq!((asked[0].method.as_str(), asked[0].path.as_str()), ("POST", "/oauth/token"));
    assert_eq!(asked[0].query.as_deref(), Some("tenant=1"));
    // desk:c0nfidential%3Acl%2Bient%26secret
    let basic = "Basic ZGVzazpjMG5maWRlbnRpYWwlM0FjbCUyQmllbnQlMjZzZWNyZXQ=";
    assert_eq!(asked[0].header("authorization"), Some(basic));
    assert_eq!(asked[0].header("content-type"), Some("application/x-www-form-urlencoded"));
    assert_eq!(asked[0].text(), "grant_type=client_credentials&scope=notes%3Awrite%20notes%3Aread&audience=notes");
    for seen in world.fake.seen() {
        assert_eq!(seen.header("authorization"), Some("Bearer c0nfidential-token-0"));
    }
    let detail: String = world.db.one("select string_agg(detail, '') from outbox.attempt", &[]).await;
    assert!(detail.contains("wrong: [masked]") && !detail.contains("c0nfidential"), "{detail}");
    assert!(!daemon.log().contains("c0nfidential"), "{}", daemon.log());
}

#[tokio::test(flavor = "multi_thread")]
async fn r15_a_token_that_is_refused_is_dropped_and_the_probe_carries_a_new_one() {
    let server = Fake::start().await.expect("a server");
    gives_tokens(&server, 3600);
    let world = world(&server, "").await;
    world.fake.behave(|seen, _| match seen.header("authorization") {
        Some("Bearer c0nfidential-token-1") => Behaviour::accept(),
        _ => Behaviour::refuse(401),
    });
    world.enqueue_many("n", 5).await;
    let daemon = world.daemon().await;
    world.until_count("select count(*) from outbox.status where state = 'succeeded'", 5).await;
    assert_eq!(server.seen().len(), 2);
    daemon.logged("destination resumed", SOON).await.expect("it goes on");
    let counted = world.db.count("select coalesce(sum(attempts), 0) from outbox.delivery").await;
    assert_eq!(counted, 5, "a refused credential counts as no attempt");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_is_fetched_anew_before_it_ends() {
    let server = Fake::start().await.expect("a server");
    gives_tokens(&server, 2);
    let world = world(&server, "").await;
    let _daemon = world.daemon().await;
    world.until(world.enqueue("n-1").await, "succeeded").await;
    // It has 1.8 s of its 2 s.
    let ended = Uptime::now().plus(Duration::from_millis(1900));
    let mut at = 2;
    while !ended.is_over() {
        world.until(world.enqueue(&format!("n-{at}")).await, "succeeded").await;
        at += 1;
    }
    world.until(world.enqueue("n-last").await, "succeeded").await;
    assert!(server.seen().len() >= 2, "{}", server.seen().len());
    let last = world.fake.seen().pop().expect("a request");
    assert_ne!(last.header("authorization"), Some("Bearer c0nfidential-token-0"));
}

#[tokio::test(flavor = "multi_thread")]
async fn r13_without_a_token_nothing_leaves_and_no_attempt_counts() {
    let server = Fake::start().await.expect("a server");
    let well = Arc::new(AtomicUsize::new(0));
    let cured = Arc::clone(&well);
    server.behave(move |_, _| match cured.load(Ordering::Relaxed) {
        0 => Behaviour::reply(Reply::json(
            400,
            format!("{{\"error\":\"invalid_client\",\"error_description\":\"not {CLIENT_SECRET}\"}}"),
        )),
        // Not followed: the secret would go along.
        1 => Behaviour::redirect(307, "http://127.0.0.1:1/elsewhere"),
        _ => token(0, 3600),
    });
    let world = world(&server, ", client_auth = \"post\"").await;
    world.enqueue_many("n", 20).await;
    let daemon = world.daemon().await;
    daemon.logged("destination paused", SOON).await.expect("it is paused");
    let told = "(select count(*) from outbox.attempt where detail like '%";
    world.until_true(&format!("{told}400: invalid_client%') > 0")).await;
    well.store(1, Ordering::Relaxed);
    world.until_true(&format!("{told}answered 307%') > 0")).await;
    assert_eq!(world.fake.connections(), 0, "nothing leaves without a token");
    let unsent = "select count(*) from outbox.status where state in ('pending', 'dispatching') and attempts = 0";
    assert_eq!(world.db.count(unsent).await, 20);
    let reasons = "select count(*) from outbox.status where reason = 'credentials_unavailable'";
    assert!(world.db.count(reasons).await > 0);
    let sentence: String =
        world.db.one("select sentence from outbox.status where reason = 'credentials_unavailable' limit 1", &[]).await;
    assert!(sentence.starts_with("Committed; not sent yet (credentials unavailable)"), "{sentence}");
    // Twenty wait, and one of them asks at a time.
    assert!(server.seen().len() <= 10, "{} requests for a token", server.seen().len());
    assert!(server.seen()[0].text().contains("client_secret=c0nfidential%3Acl%2Bient%26secret"));
    assert_eq!(server.seen()[0].header("authorization"), None);
    well.store(2, Ordering::Relaxed);
    world.until_count("select count(*) from outbox.status where state = 'succeeded'", 20).await;
    let detail: String = world.db.one("select string_agg(detail, '') from outbox.attempt", &[]).await;
    assert!(!detail.contains("c0nfidential") && !daemon.log().contains("c0nfidential"), "{detail}");
    assert_eq!(lines_of(&daemon.log(), "destination paused").len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_wait_for_a_token_counts_against_the_attempt_and_asking_goes_on_behind_it() {
    let server = Fake::start().await.expect("a server");
    // Longer than an attempt may take.
    server.behave(|_, _| token(0, 3600).delayed(Duration::from_secs(2)));
    let mut world = world(&server, "").await;
    world.operation = keyed("500ms", "");
    let action = world.enqueue("n-1").await;
    let _daemon = world.daemon().await;
    world.until(action, "succeeded").await;
    let history = world.history(action).await;
    assert_eq!(history[0].evidence, "not_sent");
    assert_eq!(history[0].detail.as_deref(), Some("the token server gave no token before the deadline"));
    assert_eq!(server.seen().len(), 1, "the answer that came too late for one is there for the next");
    assert_eq!(world.seen_of(action).len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn b08_an_endless_answer_of_a_token_server_is_not_read_to_its_end() {
    let server = Fake::start().await.expect("a server");
    server.behave(|_, _| Behaviour::reply(Reply::json(200, vec![b' '; 8 << 20])));
    let world = world(&server, "").await;
    let action = world.enqueue("n-1").await;
    let _daemon = world.daemon().await;
    world.until_true("(select count(*) from outbox.attempt where evidence = 'not_sent') > 0").await;
    let detail = world.history(action).await.remove(0).detail;
    assert_eq!(detail.as_deref(), Some("the token server answered 200 without a token"));
}
