//! What leaves, and what no longer does.

use std::time::Duration;

use bytes::Bytes;
use hyper::Request;

use crate::clock::Uptime;
use crate::core::evidence::Evidence;
use crate::core::reason::Reason;
use crate::destination::build::Built;
use crate::destination::departure::{Sent, Ticket};
use crate::destination::exchange::Heard;
use crate::destination::judge::Reads;
use crate::destination::testing::{CLAIM, Peer, intent, operation, send, within};
use crate::destination::{Destination, Limits};

const LONG: Duration = Duration::from_secs(10);
const SHORT: Duration = Duration::from_millis(300);

/// A peer that tells what it received on each connection until the client closed it.
async fn recording() -> (Peer, tokio::sync::mpsc::Receiver<Vec<u8>>) {
    let (tell, told) = tokio::sync::mpsc::channel(16);
    let peer = Peer::new(move |conversation, _| {
        let tell = tell.clone();
        async move {
            let _ = tell.send(conversation.rest().await).await;
        }
    })
    .await;
    (peer, told)
}

fn get(peer: &Peer) -> Request<()> {
    Request::get(format!("http://{}/x", peer.address)).body(()).expect("a request")
}

#[tokio::test]
async fn b32_a_passed_lease_is_not_sent_and_nobody_is_contacted() {
    let (peer, _) = recording().await;
    let limits = Limits { leave_before: Uptime::now(), ..within(LONG) };
    let finding = peer.destination().send(&operation(), &intent(b"{}"), &CLAIM, limits).await;
    assert_eq!((finding.evidence, finding.reason), (Evidence::NotSent, Some(Reason::LeaseLost)));
    assert_eq!(peer.connections(), 0);
    let finding = send(&peer.destination(), Duration::ZERO).await;
    assert_eq!((finding.evidence, finding.reason), (Evidence::NotSent, Some(Reason::NotReached)));
    assert_eq!(peer.connections(), 0);
}

#[tokio::test]
async fn b32_a_lease_that_ends_while_connecting_lets_no_byte_out() {
    for body in [&b""[..], b"{}"] {
        let (peer, mut told) = recording().await;
        let limits = Limits { leave_before: Uptime::now(), ..within(LONG) };
        let built = Built { request: get(&peer), body: Bytes::copy_from_slice(body) };
        // Past the first look at the clock, as when the lease ends between it and the connection.
        let destination = peer.destination();
        let heard = destination.let_depart(built, &limits, 0, |_, _| Reads::Nothing).await;
        let Heard::Nothing(finding) = heard else { panic!("an answer to nothing") };
        assert_eq!((finding.evidence, finding.reason), (Evidence::NotSent, Some(Reason::LeaseLost)));
        assert_eq!(told.recv().await.expect("a connection"), b"");
    }
}

#[tokio::test]
async fn a_revoked_request_that_a_connection_takes_lets_no_byte_out() {
    for body in [&b""[..], b"{}"] {
        let (peer, mut told) = recording().await;
        let mut request = get(&peer);
        let ticket = Ticket::new(&mut request, Uptime::now().plus(LONG));
        let request = request.map(|()| ticket.body(Bytes::copy_from_slice(body)));
        assert!(ticket.revoke());
        assert!(peer.destination().client.request(request).await.is_err());
        assert_eq!(ticket.end(), Sent::Nothing { missed: false });
        assert_eq!(told.recv().await.expect("a connection"), b"");
    }
}

#[tokio::test]
async fn b32_a_request_whose_time_is_over_when_it_is_written_lets_no_byte_out() {
    for body in [&b""[..], b"{}"] {
        let (peer, mut told) = recording().await;
        let mut request = get(&peer);
        let ticket = Ticket::new(&mut request, Uptime::now());
        let request = request.map(|()| ticket.body(Bytes::copy_from_slice(body)));
        assert!(peer.destination().client.request(request).await.is_err());
        assert_eq!(ticket.end(), Sent::Nothing { missed: true });
        assert_eq!(told.recv().await.expect("a connection"), b"");
    }
}

#[tokio::test]
async fn a_request_without_body_departs_like_any_other() {
    let peer = Peer::new(|mut conversation, _| async move {
        let request = conversation.request().await;
        let empty = request.ends_with(b"\r\n\r\n") && request.starts_with(b"GET /x HTTP/1.1\r\n");
        conversation.say(if empty { "HTTP/1.1 204 No Content\r\n\r\n" } else { "HTTP/1.1 400 Bad\r\n\r\n" }).await;
    })
    .await;
    let mut operation = operation();
    operation.request.method = "GET".into();
    let finding = peer.destination().send(&operation, &intent(b""), &CLAIM, within(LONG)).await;
    assert_eq!((finding.evidence, finding.status), (Evidence::Accepted, Some(204)));
}

#[tokio::test]
async fn no_answer_by_the_deadline_is_unknown() {
    let (peer, _told) = recording().await;
    let finding = send(&peer.destination(), SHORT).await;
    assert_eq!((finding.evidence, finding.reason), (Evidence::NoAnswer, Some(Reason::Timeout)));
}

/// A peer that takes a little and stops reading, so that most of a large request still waits to be written; it tells how
/// much came in all.
async fn stalling() -> (Peer, tokio::sync::mpsc::Receiver<usize>) {
    let (tell, told) = tokio::sync::mpsc::channel(1);
    let peer = Peer::new(move |conversation, _| {
        let tell = tell.clone();
        async move {
            tokio::time::sleep(SHORT * 4).await;
            let _ = tell.send(conversation.rest().await.len()).await;
        }
    })
    .await;
    (peer, told)
}

#[tokio::test]
async fn a_request_that_is_given_up_stops_where_it_is() {
    let (peer, mut told) = stalling().await;
    let whole = vec![b'x'; 32 << 20];
    let finding = peer.destination().send(&operation(), &intent(&whole), &CLAIM, within(SHORT)).await;
    assert_eq!((finding.evidence, finding.reason), (Evidence::NoAnswer, Some(Reason::Timeout)));
    // Nothing of what was held back follows once the peer reads again; the connection is closed.
    assert!(told.recv().await.expect("what came") < whole.len());
}

#[tokio::test]
async fn dropping_the_send_stops_the_request() {
    let (peer, mut told) = stalling().await;
    let destination = peer.destination();
    let (operation, intent) = (operation(), intent(&vec![b'x'; 32 << 20]));
    let sending = destination.send(&operation, &intent, &CLAIM, within(LONG));
    // Polled until it is under way, then dropped.
    assert!(tokio::time::timeout(SHORT, sending).await.is_err());
    assert!(told.recv().await.expect("what came") < 32 << 20);
}

#[tokio::test]
async fn an_answer_that_arrives_as_the_deadline_passes_is_read() {
    let peer = Peer::new(|mut conversation, _| async move {
        conversation.request().await;
        tokio::time::sleep(SHORT + Duration::from_millis(10)).await;
        conversation.say("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await;
        conversation.rest().await;
    })
    .await;
    let limits = within(SHORT);
    let finding = peer.destination().send(&operation(), &intent(b"{}"), &CLAIM, limits).await;
    assert_eq!(finding.evidence, Evidence::Accepted);
    assert!(Uptime::now().since(limits.deadline) < Duration::from_millis(200));
}

#[tokio::test]
async fn an_answer_that_waits_in_the_socket_is_read_after_a_pause() {
    let peer = Peer::new(|mut conversation, _| async move {
        conversation.request().await;
        conversation.say("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await;
        // Holds up the only thread, as a suspended process would be: the deadline passes with the answer unread.
        std::thread::sleep(SHORT * 2);
        conversation.rest().await;
    })
    .await;
    let finding = send(&peer.destination(), SHORT).await;
    assert_eq!(finding.evidence, Evidence::Accepted);
}

#[tokio::test]
async fn b19_what_cannot_be_built_contacts_nobody() {
    let (peer, _) = recording().await;
    let mut evil = intent(b"{}");
    evil.headers = Some("{\"X-Note\":\"a\\r\\nX-Evil: 1\"}".into());
    let finding = peer.destination().send(&operation(), &evil, &CLAIM, within(LONG)).await;
    assert_eq!((finding.evidence, finding.reason), (Evidence::Unsendable, Some(Reason::Unsendable)));
    let detail = finding.detail.expect("which rule");
    assert!(detail.contains("x-note") && !detail.contains("Evil"), "{detail}");
    assert_eq!(peer.connections(), 0);
}

#[tokio::test]
async fn b24_b26_the_body_goes_out_byte_for_byte() {
    let (tell, mut told) = tokio::sync::mpsc::channel(4);
    let peer = Peer::new(move |mut conversation, _| {
        let tell = tell.clone();
        async move {
            let request = conversation.request().await;
            let _ = tell.send(request).await;
            conversation.say("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await;
        }
    })
    .await;
    for body in [
        &b"{\"id\":9223372036854775807,\"x\":1.10,\"y\":1e400,\"b\":1,\"a\":2,\"s\":\"\\u00e9\"}"[..],
        b"{\"nul\":\"\\u0000\"}",
        b"\0raw\0\xff",
    ] {
        let finding = peer.destination().send(&operation(), &intent(body), &CLAIM, within(LONG)).await;
        assert_eq!(finding.evidence, Evidence::Accepted);
        assert!(told.recv().await.expect("a request").ends_with(&[b"\r\n\r\n", body].concat()));
    }
}

#[tokio::test]
async fn debug_shows_neither_secret_nor_body() {
    let mut target = crate::destination::testing::target("http://h");
    target.auth = crate::core::target::Auth::Bearer(crate::core::target::Secret::new("hunter2"));
    assert!(!format!("{:?}", Destination::new(target).expect("usable")).contains("hunter2"));
}
