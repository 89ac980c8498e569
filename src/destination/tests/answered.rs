//! Answers of every kind, whole and broken.

use std::time::Duration;

use crate::clock::Uptime;
use crate::core::contract::{Class, JsonIs, Rule, Source, TextIs, When};
use crate::core::evidence::{Evidence, Finding};
use crate::core::reason::Reason;
use crate::core::target::Operation;
use crate::destination::testing::{CLAIM, Peer, answering, intent, operation, send, within};

const LONG: Duration = Duration::from_secs(10);
const SHORT: Duration = Duration::from_millis(400);

fn with_receipt() -> Operation {
    let mut operation = operation();
    operation.terms.contract.receipt.id = vec![Source::Json("/id".into())];
    operation
}

/// A rule that has to read every body.
fn with_body_rule() -> Operation {
    let mut operation = operation();
    let when = When { json: vec![("/ok".into(), JsonIs::Text(TextIs::new("false")))], ..When::default() };
    operation.terms.contract.rules = vec![Rule { when, class: Class::Rejected, then: None, wait: None }];
    operation
}

async fn exchange(peer: &Peer, operation: &Operation, time: Duration) -> Finding {
    peer.destination().send(operation, &intent(b"{}"), &CLAIM, within(time)).await
}

/// 200 at once, then a byte of body every 20 ms for as long as the client stays.
async fn dripping() -> Peer {
    Peer::new(|mut conversation, _| async move {
        conversation.request().await;
        conversation.say("HTTP/1.1 200 OK\r\ncontent-length: 1000000\r\n\r\n").await;
        for _ in 0..1000 {
            conversation.say("{").await;
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await
}

#[tokio::test]
async fn b06_a_dripping_body_holds_nothing_up_that_does_not_need_it() {
    let started = Uptime::now();
    let finding = exchange(&dripping().await, &operation(), LONG).await;
    assert_eq!((finding.evidence, finding.detail), (Evidence::Accepted, None));
    assert!(Uptime::now().since(started) < Duration::from_secs(2));
}

#[tokio::test]
async fn b06_a_dripping_body_ends_with_the_deadline() {
    let peer = dripping().await;
    let started = Uptime::now();
    let finding = exchange(&peer, &with_receipt(), SHORT).await;
    assert_eq!((finding.evidence, finding.receipt), (Evidence::Accepted, None));
    assert_eq!(finding.detail.as_deref(), Some("no receipt: the answer's body did not end in time"));
    let finding = exchange(&peer, &with_body_rule(), SHORT).await;
    assert_eq!((finding.evidence, finding.status), (Evidence::UnknownAnswer, Some(200)));
    assert!(Uptime::now().since(started) < SHORT * 2 + Duration::from_secs(1));
}

#[tokio::test]
async fn b08_an_endless_body_is_cut_off_and_its_connection_dropped() {
    let (tell, mut told) = tokio::sync::mpsc::channel(4);
    let peer = Peer::new(move |mut conversation, _| {
        let tell = tell.clone();
        async move {
            conversation.request().await;
            conversation.say("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n").await;
            let chunk = format!("4000\r\n{}\r\n", "x".repeat(0x4000));
            let mut sent = 0_u64;
            while tokio::io::AsyncWriteExt::write_all(&mut conversation.stream, chunk.as_bytes()).await.is_ok() {
                sent += 0x4000;
            }
            let _ = tell.send(sent).await;
        }
    })
    .await;
    for operation in [operation(), with_receipt()] {
        let finding = exchange(&peer, &operation, LONG).await;
        assert_eq!((finding.evidence, finding.receipt), (Evidence::Accepted, None));
        // Socket buffers hold some megabytes beyond what we read.
        assert!(told.recv().await.expect("the connection ended") < 64 << 20);
    }
    assert_eq!(peer.connections(), 2);
}

#[tokio::test]
async fn a_truncated_body_costs_the_receipt_or_the_knowledge() {
    let peer = Peer::new(|mut conversation, _| async move {
        conversation.request().await;
        conversation.say("HTTP/1.1 201 Created\r\ncontent-length: 100\r\n\r\n{\"id\":").await;
    })
    .await;
    let finding = exchange(&peer, &with_receipt(), LONG).await;
    assert_eq!((finding.evidence, finding.receipt), (Evidence::Accepted, None));
    let finding = exchange(&peer, &with_body_rule(), LONG).await;
    assert_eq!((finding.evidence, finding.reason), (Evidence::UnknownAnswer, Some(Reason::UnknownAnswer)));
    assert!(finding.detail.is_some_and(|detail| detail.contains("its body broke off")));
}

#[tokio::test]
async fn a_receipt_is_read_from_a_chunked_body() {
    let peer = Peer::new(|mut conversation, _| async move {
        conversation.request().await;
        conversation.say("HTTP/1.1 201 Created\r\ntransfer-encoding: chunked\r\n\r\n6\r\n{\"id\":\r\n").await;
        tokio::time::sleep(Duration::from_millis(30)).await;
        conversation.say("5\r\n\"m1\"}\r\n0\r\n\r\n").await;
        conversation.rest().await;
    })
    .await;
    let finding = exchange(&peer, &with_receipt(), LONG).await;
    assert_eq!((finding.evidence, finding.receipt.as_deref()), (Evidence::Accepted, Some("m1")));
}

#[tokio::test]
async fn b10_a_redirect_is_not_followed() {
    let peer =
        answering("HTTP/1.1 302 Found\r\nlocation: http://elsewhere.example/final\r\ncontent-length: 0\r\n\r\n").await;
    let finding = send(&peer.destination(), LONG).await;
    assert_eq!(finding.evidence, Evidence::Rejected { replayed: false });
    assert_eq!(finding.detail.as_deref(), Some("302 Found, not followed to elsewhere.example"));
    assert_eq!(peer.connections(), 1);
}

#[tokio::test]
async fn b12_b14_throttling_is_deferred_until_the_date_given() {
    let peer = answering(
        "HTTP/1.1 429 Too Many Requests\r\ndate: Sun, 06 Nov 1994 08:49:31 GMT\r\n\
         retry-after: Sunday, 06-Nov-94 08:49:37 GMT\r\ncontent-length: 0\r\n\r\n",
    )
    .await;
    let finding = send(&peer.destination(), LONG).await;
    assert_eq!((finding.evidence, finding.reason), (Evidence::Deferred, Some(Reason::Throttled)));
    assert_eq!(finding.retry_after, Some(Duration::from_secs(6)));
}

#[tokio::test]
async fn b22_a_gateway_timeout_is_unknown() {
    let peer = answering("HTTP/1.1 504 Gateway Timeout\r\nretry-after: 7\r\ncontent-length: 4\r\n\r\nlate").await;
    let finding = send(&peer.destination(), LONG).await;
    assert_eq!((finding.evidence, finding.reason), (Evidence::UnknownAnswer, Some(Reason::ServerError)));
    assert_eq!(finding.retry_after, Some(Duration::from_secs(7)));
    assert_eq!(finding.detail.as_deref(), Some("504 Gateway Timeout: late"));
}

#[tokio::test]
async fn interim_answers_are_no_answers_and_an_unrequested_101_is_unknown() {
    let peer = answering(
        "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: <a>\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n",
    )
    .await;
    assert_eq!(send(&peer.destination(), LONG).await.status, Some(204));
    let peer = answering("HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n").await;
    let mut operation = operation();
    operation.terms.contract.rules =
        vec![Rule { when: When::default(), class: Class::Applied, then: None, wait: None }];
    let finding = exchange(&peer, &operation, LONG).await;
    assert_eq!((finding.evidence, finding.status), (Evidence::UnknownAnswer, Some(101)));
    let peer = answering("HTTP/1.1 102 Processing\r\n\r\n").await;
    let finding = send(&peer.destination(), SHORT).await;
    assert_eq!((finding.evidence, finding.reason), (Evidence::NoAnswer, Some(Reason::Timeout)));
}

#[tokio::test]
async fn leftovers_on_a_connection_never_answer_another_request() {
    let peer = Peer::new(|mut conversation, number| async move {
        conversation.request().await;
        if number == 0 {
            let twice =
                "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\nHTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n";
            conversation.say(twice).await;
        } else {
            conversation.say("HTTP/1.1 204 No Content\r\n\r\n").await;
        }
        conversation.rest().await;
    })
    .await;
    let destination = peer.destination();
    assert_eq!(send(&destination, LONG).await.status, Some(200));
    assert_eq!(send(&destination, LONG).await.status, Some(204));
    assert_eq!(peer.connections(), 2);
}

#[tokio::test]
async fn b18_an_early_refusal_of_a_large_body_is_heard() {
    for linger in [Duration::ZERO, Duration::from_millis(20), Duration::from_millis(200)] {
        let peer = Peer::new(move |mut conversation, _| async move {
            let mut head = [0; 1024];
            let _ = tokio::io::AsyncReadExt::read(&mut conversation.stream, &mut head).await;
            conversation.say("HTTP/1.1 413 Content Too Large\r\nconnection: close\r\ncontent-length: 0\r\n\r\n").await;
            tokio::time::sleep(linger).await;
        })
        .await;
        let body = vec![b'x'; 50 << 20];
        let finding = peer.destination().send(&operation(), &intent(&body), &CLAIM, within(LONG)).await;
        assert_eq!(
            (finding.evidence, finding.status),
            (Evidence::Rejected { replayed: false }, Some(413)),
            "{finding:?}"
        );
        assert_eq!(peer.connections(), 1);
    }
}

#[tokio::test]
async fn b18_a_peer_that_refuses_and_never_reads_on_is_let_go() {
    let (tell, mut told) = tokio::sync::mpsc::channel(1);
    let peer = Peer::new(move |mut conversation, _| {
        let tell = tell.clone();
        async move {
            let mut head = [0; 1024];
            let _ = tokio::io::AsyncReadExt::read(&mut conversation.stream, &mut head).await;
            conversation.say("HTTP/1.1 413 Content Too Large\r\ncontent-length: 0\r\n\r\n").await;
            tokio::time::sleep(SHORT).await;
            let _ = tell.send(conversation.rest().await.len()).await;
        }
    })
    .await;
    let body = vec![b'x'; 50 << 20];
    let finding = peer.destination().send(&operation(), &intent(&body), &CLAIM, within(LONG)).await;
    assert_eq!(finding.status, Some(413));
    assert!(told.recv().await.expect("the connection ended") < body.len());
}

#[tokio::test]
async fn a_confirmation_before_all_was_read_lets_the_rest_go_out() {
    let (tell, mut told) = tokio::sync::mpsc::channel(1);
    let peer = Peer::new(move |mut conversation, _| {
        let tell = tell.clone();
        async move {
            let mut head = [0; 1024];
            let _ = tokio::io::AsyncReadExt::read(&mut conversation.stream, &mut head).await;
            conversation.say("HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n").await;
            tokio::time::sleep(Duration::from_millis(50)).await;
            let _ = tell.send(conversation.rest().await.len()).await;
        }
    })
    .await;
    let body = vec![b'x'; 16 << 20];
    let destination = peer.destination();
    let finding = destination.send(&operation(), &intent(&body), &CLAIM, within(LONG)).await;
    drop(destination);
    assert_eq!(finding.status, Some(202));
    assert!(told.recv().await.expect("the connection ended") > body.len() - 1024);
}

#[tokio::test]
async fn b81_a_forged_answer_becomes_one_bounded_line() {
    let body = format!("\n2026-01-01 ERROR forged\r\u{1b}[31m\u{85}\u{2028}{}", "x".repeat(100_000));
    let answer = format!("HTTP/1.1 500 Ouch\r\ncontent-length: {}\r\n\r\n{body}", body.len());
    let peer = answering(Box::leak(answer.into_boxed_str())).await;
    let detail = send(&peer.destination(), LONG).await.detail.expect("an excerpt");
    assert!(detail.len() < 700 && detail.contains("ERROR forged\\r\\u{1b}[31m\\u{85}\\u{2028}x"), "{detail}");
}
