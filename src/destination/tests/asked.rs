//! Lookups and cancels, over a connection.

use std::time::Duration;

use serde_json::json;

use crate::clock::Uptime;
use crate::core::contract::{By, Cancel, Compare, Contract, Lookup, Place, Question, Source};
use crate::core::evidence::{Evidence, Finding};
use crate::core::reason::Reason;
use crate::core::target::{Auth, Operation, Secret};
use crate::destination::testing::{CLAIM, Peer, answering, asking, intent, operation, question, target, when, within};
use crate::destination::{Destination, Limits};

const LONG: Duration = Duration::from_secs(10);
const SHORT: Duration = Duration::from_millis(400);
const ID: &str = "00000000-0000-0000-0000-000000000001";

/// Looks up by key and compares the amount; cancels by key.
fn asks() -> Operation {
    let mut operation = operation();
    let mut lookup = Lookup::new(
        By::Key,
        question("GET", "/payments", &[("key", "{key}")]),
        when(200, Some(("/data/0/id", "*"))),
        asking(),
    );
    lookup.absent = Some(when(404, None));
    lookup.receipt = Some(Source::Json("/data/0/id".into()));
    lookup.compare = vec![Compare { answer: "/data/0/amount".into(), sent: Place::Json("/amount".into()) }];
    let question = Question { body: Some(json!({ "idempotency_key": "{key}" })), ..question("POST", "/cancel", &[]) };
    let cancel = Cancel { question, done: when(200, None), asking: asking() };
    operation.terms.contract = Contract { lookup: Some(lookup), cancel: Some(cancel), ..operation.terms.contract };
    operation
}

async fn look(destination: &Destination, limits: Limits) -> Finding {
    destination.look_up(&asks(), &intent(br#"{"amount":100,"card":"4111111111111111"}"#), &CLAIM, limits).await
}

async fn found_in(answer: &'static str) -> Finding {
    look(&answering(answer).await.destination(), within(LONG)).await
}

/// A peer that tells what it was asked, and answers every request the same way.
async fn telling(answer: &'static str) -> (Peer, tokio::sync::mpsc::Receiver<String>) {
    let (tell, told) = tokio::sync::mpsc::channel(4);
    let peer = Peer::new(move |mut conversation, _| {
        let tell = tell.clone();
        async move {
            let request = conversation.request().await;
            let _ = tell.send(String::from_utf8_lossy(&request).into_owned()).await;
            conversation.say(answer).await;
            conversation.rest().await;
        }
    })
    .await;
    (peer, told)
}

const FOUND: &str = "HTTP/1.1 200 OK\r\ncontent-length: 38\r\n\r\n{\"data\":[{\"id\":\"p1\",\"amount\":\"100.0\"}]}";

#[tokio::test]
async fn r19_a_lookup_asks_by_the_key_and_compares_with_what_was_sent() {
    let answer: &'static str = Box::leak(FOUND.replace("\"100.0\"", "100.00").into_boxed_str());
    let (peer, mut told) = telling(answer).await;
    let finding = look(&peer.destination(), within(LONG)).await;
    assert_eq!((finding.evidence, finding.receipt.as_deref()), (Evidence::Found, Some("p1")), "{finding:?}");
    let asked = told.recv().await.expect("a request");
    assert!(asked.starts_with(&format!("GET /payments?key={ID} HTTP/1.1\r\n")), "{asked}");
    assert!(!asked.contains("idempotency-key") && asked.ends_with("\r\n\r\n"), "{asked}");
    assert!(asked.contains("outbox-fence: 1\r\n"), "{asked}");
}

#[tokio::test]
async fn r16_what_was_found_but_is_other_than_sent_is_a_mismatch_told_without_echo() {
    let body = r#"{"data":[{"id":"p1","amount":99}],"echo":{"amount":100,"card":"4111111111111111"}}"#;
    let answer = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len());
    let finding = found_in(Box::leak(answer.into_boxed_str())).await;
    assert_eq!((finding.evidence, finding.reason), (Evidence::Mismatch, Some(Reason::Mismatch)));
    let detail = finding.detail.expect("an explanation");
    assert!(detail.starts_with("`/data/0/amount` is not what was sent: 200 OK: {\"data\""), "{detail}");
    assert!(!detail.contains("4111"), "{detail}");
}

#[tokio::test]
async fn r19_absence_is_told_with_the_answer() {
    let finding = found_in("HTTP/1.1 404 Not Found\r\ncontent-length: 7\r\n\r\nno such").await;
    assert_eq!((finding.evidence, finding.status), (Evidence::Absent, Some(404)));
    assert_eq!(finding.detail.as_deref(), Some("404 Not Found: no such"));
}

#[tokio::test]
async fn b10_a_lookup_follows_no_redirect() {
    let peer = answering("HTTP/1.1 302 Found\r\nlocation: /login?t=1\r\ncontent-length: 0\r\n\r\n").await;
    let finding = look(&peer.destination(), within(LONG)).await;
    assert_eq!(finding.evidence, Evidence::Inconclusive);
    assert_eq!(peer.connections(), 1);
    let detail = finding.detail.expect("an explanation");
    assert_eq!(detail, "it says neither: there nor not there: 302 Found, not followed to the same host");
}

#[tokio::test]
async fn a_lookup_that_gets_no_answer_is_never_mistaken_for_a_send() {
    let silent = Peer::new(|mut conversation, _| async move {
        conversation.request().await;
        conversation.rest().await;
    })
    .await;
    let hangs_up = Peer::new(|mut conversation, _| async move {
        conversation.request().await;
    })
    .await;
    let refused = target("http://127.0.0.1:1");
    let too_late = Limits { leave_before: Uptime::now(), ..within(LONG) };
    for (destination, limits, told) in [
        (silent.destination(), within(SHORT), "no answer came in time"),
        (hangs_up.destination(), within(LONG), "the connection was lost"),
        (Destination::new(refused).expect("usable"), within(LONG), "the destination refused the connection"),
        (silent.destination(), too_late, "the lease no longer covered"),
        (
            Destination::new(target("http://u:p@h")).expect("usable"),
            within(LONG),
            "no valid question can be built: the base URL",
        ),
    ] {
        let finding = look(&destination, limits).await;
        assert_eq!((finding.evidence, finding.reason), (Evidence::Inconclusive, Some(Reason::Inconclusive)));
        assert!(finding.detail.as_deref().is_some_and(|detail| detail.starts_with(told)), "{finding:?}");
    }
}

#[tokio::test]
async fn b32_no_byte_of_a_question_leaves_after_the_lease() {
    let (peer, mut told) = telling(FOUND).await;
    let too_late = Limits { leave_before: Uptime::now(), ..within(LONG) };
    look(&peer.destination(), too_late).await;
    peer.destination().cancel(&asks(), &intent(b"{}"), &CLAIM, too_late).await;
    assert_eq!(peer.connections(), 0);
    assert!(told.try_recv().is_err());
}

#[tokio::test]
async fn a_lookup_reads_no_more_than_it_may() {
    let body = format!("{{\"data\":[{{\"id\":\"p1\",\"amount\":100}}],\"x\":\"{}\"}}", "x".repeat(1 << 20));
    let answer = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len());
    let finding = found_in(Box::leak(answer.into_boxed_str())).await;
    assert_eq!(finding.evidence, Evidence::Inconclusive);
    assert!(finding.detail.is_some_and(|detail| detail.starts_with("its body is longer than is read: 200 OK")));
}

#[tokio::test]
async fn r15_refused_credentials_of_a_lookup_are_named_and_masked() {
    let mut known = target("http://h");
    let peer = answering("HTTP/1.1 401 Unauthorized\r\ncontent-length: 13\r\n\r\nbad hunter2 .").await;
    known.base_url = target(&format!("http://{}", peer.address)).base_url;
    known.auth = Auth::Bearer(Secret::new("hunter2"));
    let finding = look(&Destination::new(known).expect("usable"), within(LONG)).await;
    assert_eq!(
        (finding.evidence, finding.reason, finding.status),
        (Evidence::Inconclusive, Some(Reason::CredentialsRefused), Some(401))
    );
    assert_eq!(finding.detail.as_deref(), Some("401 Unauthorized: bad [masked] ."));
}

#[tokio::test]
async fn a_cancel_carries_the_key_in_its_body() {
    let (peer, mut told) = telling("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}").await;
    let finding = peer.destination().cancel(&asks(), &intent(b"{}"), &CLAIM, within(LONG)).await;
    assert_eq!((finding.evidence, finding.reason), (Evidence::Neutralised, Some(Reason::Neutralised)));
    let asked = told.recv().await.expect("a request");
    assert!(asked.starts_with("POST /cancel HTTP/1.1\r\n"), "{asked}");
    assert!(asked.contains("content-type: application/json\r\n"), "{asked}");
    assert!(asked.ends_with(&format!("\r\n\r\n{{\"idempotency_key\":\"{ID}\"}}")), "{asked}");
    let refusing = answering("HTTP/1.1 409 Conflict\r\ncontent-length: 0\r\n\r\n").await;
    let finding = refusing.destination().cancel(&asks(), &intent(b"{}"), &CLAIM, within(LONG)).await;
    assert_eq!((finding.evidence, finding.status), (Evidence::Inconclusive, Some(409)));
}

#[tokio::test]
async fn what_the_contract_does_not_offer_contacts_nobody() {
    let peer = answering(FOUND).await;
    let destination = peer.destination();
    for finding in [
        destination.look_up(&operation(), &intent(b""), &CLAIM, within(LONG)).await,
        destination.cancel(&operation(), &intent(b""), &CLAIM, within(LONG)).await,
    ] {
        assert_eq!(finding.evidence, Evidence::Inconclusive);
    }
    assert_eq!(peer.connections(), 0);
    assert_eq!(destination.hint(&operation(), &intent(b""), None), None);
}

#[test]
fn a_hint_needs_no_runtime_and_shows_no_secret() {
    let mut known = target("http://h");
    known.auth = Auth::Bearer(Secret::new("hunter2"));
    let mut operation = operation();
    operation.terms.contract.hint = Some(question("GET", "/find", &[("a", "{a}"), ("key", "{key}")]));
    let mut intent = intent(b"");
    intent.params = Some(r#"{"a":"hunter2"}"#.into());
    let line = Destination::new(known).expect("usable").hint(&operation, &intent, None);
    assert_eq!(line, Some(Ok(format!("GET http://h/find?a=[masked]&key={ID}"))));
    intent.params = None;
    let line = Destination::new(target("http://h")).expect("usable").hint(&operation, &intent, None);
    assert_eq!(line, Some(Err("param `a` is missing".into())));
}
