//! Connections that are refused, closed or cut.

use std::time::Duration;

use crate::clock::Uptime;
use crate::core::action::AttemptId;
use crate::core::evidence::Evidence;
use crate::core::reason::Reason;
use crate::destination::testing::{CLAIM, Peer, answering, intent, operation, send, target, within};
use crate::destination::{Claim, Destination, Limits};
use tokio::net::{TcpListener, TcpSocket};

const OK: &str = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";
const LONG: Duration = Duration::from_secs(10);

#[tokio::test]
async fn b85_a_refused_connection_is_not_sent() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    drop(listener);
    let finding = send(&Destination::new(target(&format!("http://{address}"))).expect("usable"), LONG).await;
    assert_eq!((finding.evidence, finding.reason), (Evidence::NotSent, Some(Reason::ConnectionRefused)));
}

#[tokio::test]
async fn b85_a_name_that_does_not_resolve_is_not_sent() {
    let finding = send(&Destination::new(target("http://name.invalid")).expect("usable"), LONG).await;
    assert_eq!((finding.evidence, finding.reason), (Evidence::NotSent, Some(Reason::NameNotResolved)));
}

/// A port whose queue of connections is full: the handshake is never finished.
async fn full_port() -> (TcpListener, Vec<tokio::net::TcpStream>) {
    let socket = TcpSocket::new_v4().expect("a socket");
    socket.bind("127.0.0.1:0".parse().expect("an address")).expect("a port");
    let listener = socket.listen(1).expect("a listener");
    let address = listener.local_addr().expect("an address");
    let mut held = Vec::new();
    while let Ok(Ok(stream)) =
        tokio::time::timeout(Duration::from_millis(200), tokio::net::TcpStream::connect(address)).await
    {
        held.push(stream);
    }
    (listener, held)
}

#[tokio::test]
async fn a_connection_that_takes_too_long_is_not_sent() {
    let (listener, _held) = full_port().await;
    let mut target = target(&format!("http://{}", listener.local_addr().expect("an address")));
    target.connect_timeout = Duration::from_millis(100);
    let finding = send(&Destination::new(target.clone()).expect("usable"), LONG).await;
    assert_eq!((finding.evidence, finding.reason), (Evidence::NotSent, Some(Reason::NotReached)));
    assert_eq!(finding.detail.as_deref(), Some("no connection within the connect timeout"));
    target.connect_timeout = LONG;
    let destination = Destination::new(target).expect("usable");
    let finding = send(&destination, Duration::from_millis(100)).await;
    assert_eq!((finding.evidence, finding.reason), (Evidence::NotSent, Some(Reason::NotReached)));
    assert_eq!(finding.detail.as_deref(), Some("no connection before the deadline"));
    let limits = Limits { leave_before: Uptime::now().plus(Duration::from_millis(100)), ..within(LONG) };
    let finding = destination.send(&operation(), &intent(b"{}"), &CLAIM, limits).await;
    assert_eq!((finding.evidence, finding.reason), (Evidence::NotSent, Some(Reason::LeaseLost)));
}

#[tokio::test]
async fn b03_reset_after_half_a_status_line_is_unknown() {
    let peer = Peer::new(|mut conversation, _| async move {
        conversation.request().await;
        conversation.say("HTTP/1.1 20").await;
        tokio::time::sleep(Duration::from_millis(50)).await;
        conversation.reset();
    })
    .await;
    let finding = send(&peer.destination(), LONG).await;
    assert_eq!((finding.evidence, finding.reason), (Evidence::NoAnswer, Some(Reason::ConnectionLost)));
    let detail = finding.detail.expect("what crossed");
    assert!(detail.starts_with("connection reset, after") && detail.ends_with("and 11 of an answer"), "{detail}");
    assert_eq!(peer.connections(), 1);
}

#[tokio::test]
async fn b03_a_close_after_the_request_is_unknown() {
    let peer = Peer::new(|mut conversation, _| async move {
        conversation.request().await;
    })
    .await;
    let finding = send(&peer.destination(), LONG).await;
    assert_eq!((finding.evidence, finding.reason), (Evidence::NoAnswer, Some(Reason::ConnectionLost)));
    assert_eq!(peer.connections(), 1);
}

#[tokio::test]
async fn b04_accept_and_close_costs_at_most_two_connections() {
    for reset in [false, true] {
        let peer = Peer::new(move |conversation, _| async move {
            if reset {
                conversation.reset();
            }
        })
        .await;
        for attempt in 1..=10 {
            let finding = send(&peer.destination(), LONG).await;
            let evidence = finding.evidence;
            assert!(matches!(evidence, Evidence::NotSent | Evidence::NoAnswer), "{evidence:?}");
            assert!(peer.connections() <= 2 * attempt);
        }
    }
}

#[tokio::test]
async fn an_answer_that_is_not_http_is_unknown() {
    let peer = answering("SSH-2.0-OpenSSH_9.6\r\n\r\n").await;
    let finding = send(&peer.destination(), LONG).await;
    assert_eq!((finding.evidence, finding.reason), (Evidence::UnknownAnswer, Some(Reason::UnknownAnswer)));
}

#[tokio::test]
async fn a_kept_connection_serves_the_next_request() {
    let peer = answering(OK).await;
    let destination = peer.destination();
    for _ in 0..5 {
        assert_eq!(send(&destination, LONG).await.evidence, Evidence::Accepted);
    }
    assert_eq!(peer.connections(), 1);
}

#[tokio::test]
async fn b01_a_close_seen_before_a_byte_was_written_takes_a_fresh_connection() {
    let peer = Peer::new(|mut conversation, number| async move {
        conversation.request().await;
        conversation.say(OK).await;
        if number > 0 {
            conversation.rest().await;
        }
    })
    .await;
    let destination = peer.destination();
    assert_eq!(send(&destination, LONG).await.evidence, Evidence::Accepted);
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!(send(&destination, LONG).await.evidence, Evidence::Accepted);
    assert_eq!(peer.connections(), 2);
}

/// The sweep over the moment at which the server closes: each request reaches the server at most once, and one that is
/// said not to have been sent never does.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b01_a_written_request_is_never_sent_again() {
    let (tell, mut told) = tokio::sync::mpsc::channel(10_000);
    let peer = Peer::new(move |mut conversation, _| {
        let tell = tell.clone();
        async move {
            let request = conversation.request().await;
            conversation.say(OK).await;
            let _ = tell.send(request).await;
            tokio::time::sleep(Duration::from_millis(4)).await;
            conversation.reset();
        }
    })
    .await;
    let destination = peer.destination();
    let mut unsent = Vec::new();
    let mut confirmed = 0;
    for number in 0..200_u32 {
        let claim = Claim { attempt: AttemptId(uuid::Uuid::from_u128(number.into())), ..CLAIM };
        let started = Uptime::now();
        let finding = destination.send(&operation(), &intent(b"{}"), &claim, within(LONG)).await;
        if finding.evidence == Evidence::Accepted {
            confirmed += 1;
        } else if finding.evidence == Evidence::NotSent {
            unsent.push(claim.attempt.to_string());
        } else {
            assert_eq!(finding.evidence, Evidence::NoAnswer);
        }
        // Not even the one that hyper loses waits for the deadline.
        assert!(Uptime::now().since(started) < LONG / 2, "{finding:?}");
        tokio::time::sleep(Duration::from_micros(3_000 + u64::from(number) * 10)).await;
    }
    let mut received = Vec::new();
    while let Ok(request) = told.try_recv() {
        let text = String::from_utf8_lossy(&request).into_owned();
        let attempt = text.lines().find_map(|line| line.strip_prefix("outbox-attempt: ").map(ToOwned::to_owned));
        received.push(attempt.expect("an attempt"));
    }
    let all = received.len();
    assert!(all >= confirmed && confirmed > 0);
    assert!(received.iter().all(|attempt| !unsent.contains(attempt)));
    received.sort();
    received.dedup();
    assert_eq!(received.len(), all, "a request came twice");
}
