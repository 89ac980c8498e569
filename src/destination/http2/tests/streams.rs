//! Whole exchanges.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use h2::server;
use hyper::{Response, StatusCode};
use tokio::task::JoinHandle;

use super::peer::{
    DATA, END_HEADERS, GOAWAY, HEADERS, NO_CONTENT, OK, RST_STREAM, Raw, TOO_LARGE, destination, speaking,
};
use crate::clock::Uptime;
use crate::core::contract::Source;
use crate::core::evidence::{Evidence, Finding};
use crate::core::reason::Reason;
use crate::core::target::Http;
use crate::destination::testing::secure::{Authority, Flaw, SecurePeer};
use crate::destination::testing::{CLAIM, Peer, answering, intent, operation, send, within};
use crate::destination::{Destination, Limits};

const LONG: Duration = Duration::from_secs(10);
const SHORT: Duration = Duration::from_millis(300);
const LOST: (Evidence, Option<Reason>) = (Evidence::NoAnswer, Some(Reason::ConnectionLost));
const UNREACHED: (Evidence, Option<Reason>) = (Evidence::NotSent, Some(Reason::NotReached));

fn of(finding: &Finding) -> (Evidence, Option<Reason>) {
    (finding.evidence, finding.reason)
}

/// A send that goes on by itself; with a body of that many bytes.
fn sending(destination: &Arc<Destination>, body: usize, time: Duration) -> JoinHandle<Finding> {
    let destination = Arc::clone(destination);
    tokio::spawn(async move { destination.send(&operation(), &intent(&vec![b'x'; body]), &CLAIM, within(time)).await })
}

async fn all(sends: Vec<JoinHandle<Finding>>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for send in sends {
        findings.push(send.await.expect("no panic"));
    }
    findings
}

/// Answers every request on a connection with its own body, as a real server does.
async fn echo<S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin>(stream: S) {
    let Ok(mut connection) = server::handshake(stream).await else { return };
    while let Some(Ok((request, mut respond))) = connection.accept().await {
        tokio::spawn(async move {
            let (head, mut incoming) = request.into_parts();
            let mut body = Vec::new();
            while let Some(Ok(data)) = incoming.data().await {
                let _ = incoming.flow_control().release_capacity(data.len());
                body.extend_from_slice(&data);
            }
            let named = head.uri.authority().is_some() && !head.headers.contains_key("host");
            let length = head.headers.get("content-length").and_then(|value| value.to_str().ok()?.parse().ok());
            let whole = named && length == Some(body.len()) && head.headers.contains_key("outbox-attempt");
            let status = if whole { StatusCode::CREATED } else { StatusCode::BAD_REQUEST };
            let response = Response::builder().status(status).body(()).expect("a response");
            let Ok(mut send) = respond.send_response(response, false) else { return };
            let _ = send.send_data(Bytes::from(format!("{{\"id\":\"{}\"}}", body.len())), true);
        });
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_requests_share_a_connection_and_each_gets_its_own_answer() {
    let peer = Peer::new(|conversation, _| echo(conversation.stream)).await;
    let destination = destination(&peer);
    let mut operation = operation();
    operation.terms.contract.receipt.id = vec![Source::Json("/id".into())];
    let sends = (0..50_usize).map(|number| {
        let (destination, operation) = (Arc::clone(&destination), operation.clone());
        // Longer than the window that a connection begins with.
        let body = vec![b'y'; number * 7_000 + 1];
        tokio::spawn(async move {
            let finding = destination.send(&operation, &intent(&body), &CLAIM, within(LONG)).await;
            assert_eq!(finding.evidence, Evidence::Accepted, "{finding:?}");
            assert_eq!(finding.receipt, Some(body.len().to_string()));
        })
    });
    for send in sends.collect::<Vec<_>>() {
        send.await.expect("no panic");
    }
    assert_eq!(peer.connections(), 1);
}

#[tokio::test]
async fn over_tls_it_is_agreed_upon_or_nothing_is_sent() {
    let authority = Authority::new();
    for agrees in [true, false] {
        let mut config = authority.server(Flaw::None, false, rustls::ALL_VERSIONS);
        if agrees {
            config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        }
        let (tell, mut told) = tokio::sync::mpsc::channel(4);
        let peer = SecurePeer::new(config, move |conversation, _| {
            let tell = tell.clone();
            async move {
                if agrees {
                    echo(conversation.stream).await;
                } else {
                    let _ = tell.send(conversation.rest().await.len()).await;
                }
            }
        })
        .await;
        let mut target = peer.target(&authority);
        target.http = Http::Two;
        let finding = send(&Destination::new(target).expect("usable"), LONG).await;
        if agrees {
            assert_eq!((finding.evidence, finding.status), (Evidence::Accepted, Some(201)));
        } else {
            assert_eq!(of(&finding), UNREACHED);
            assert_eq!(finding.detail.as_deref(), Some("the destination does not speak HTTP/2"));
            assert_eq!(told.recv().await, Some(0), "not a byte of a request");
        }
    }
}

/// A peer that treats the first request as the test says, and answers all that follow.
async fn treating(kind: u8, payload: &'static [u8]) -> Peer {
    speaking(&[], move |mut raw, _| async move {
        let mut first = true;
        while let Some(stream) = raw.request().await {
            if std::mem::take(&mut first) {
                raw.put(kind, 0, stream, payload).await;
            } else {
                raw.answer(stream, NO_CONTENT).await;
            }
        }
    })
    .await
}

#[tokio::test]
async fn a_refused_stream_is_not_sent_and_costs_the_others_nothing() {
    let peer = treating(RST_STREAM, &[0, 0, 0, 7]).await;
    let destination = destination(&peer);
    let finding = send(&destination, LONG).await;
    assert_eq!(of(&finding), (Evidence::NotSent, Some(Reason::StreamRefused)), "{finding:?}");
    assert!(finding.detail.is_some_and(|detail| detail.contains("refused")));
    assert_eq!(send(&destination, LONG).await.status, Some(204));
    assert_eq!(peer.connections(), 1);
}

#[tokio::test]
async fn a_stream_that_is_reset_for_any_other_reason_is_unknown() {
    for payload in [&[0, 0, 0, 8], &[0, 0, 0, 2], &[0, 0, 0, 0], &[0, 0, 0, 11]] {
        let peer = treating(RST_STREAM, payload).await;
        let destination = destination(&peer);
        let finding = send(&destination, LONG).await;
        assert_eq!(of(&finding), LOST, "{payload:?}: {finding:?}");
        assert_eq!(send(&destination, LONG).await.status, Some(204));
        assert_eq!(peer.connections(), 1);
    }
}

#[tokio::test]
async fn a_refusal_after_an_answer_has_begun_proves_nothing() {
    let peer = speaking(&[], |mut raw, _| async move {
        while let Some(stream) = raw.request().await {
            raw.put(HEADERS, END_HEADERS, stream, OK).await;
            raw.put(RST_STREAM, 0, stream, &[0, 0, 0, 7]).await;
        }
    })
    .await;
    let finding = send(&destination(&peer), LONG).await;
    assert_ne!(finding.evidence, Evidence::NotSent, "{finding:?}");
}

#[tokio::test]
async fn of_a_connection_that_goes_away_only_the_streams_above_are_not_sent() {
    let peer = speaking(&[], |mut raw, number| async move {
        if number > 0 {
            while let Some(stream) = raw.request().await {
                raw.answer(stream, NO_CONTENT).await;
            }
            return;
        }
        let mut streams = Vec::new();
        for _ in 0..4 {
            streams.extend(raw.request().await);
        }
        assert_eq!(streams, [1, 3, 5, 7]);
        raw.put(GOAWAY, 0, 0, &[0, 0, 0, 3, 0, 0, 0, 0]).await;
        raw.answer(1, OK).await;
        tokio::time::sleep(Duration::from_millis(50)).await;
        // Stream 3 may have been worked on; nobody says so any more.
    })
    .await;
    let destination = destination(&peer);
    let findings = all((0..4).map(|_| sending(&destination, 2, LONG)).collect()).await;
    let mut got: Vec<_> = findings.iter().map(|finding| finding.evidence.as_str()).collect();
    got.sort_unstable();
    assert_eq!(got, ["accepted", "no_answer", "not_sent", "not_sent"], "{findings:?}");
    assert_eq!(send(&destination, LONG).await.status, Some(204), "another connection takes what comes next");
    assert_eq!(peer.connections(), 2);
}

#[tokio::test]
async fn a_connection_that_breaks_leaves_all_its_streams_unknown() {
    for reset in [false, true] {
        let peer = speaking(&[], move |mut raw, _| async move {
            for _ in 0..3 {
                raw.request().await;
            }
            if reset {
                raw.reset();
            }
        })
        .await;
        let destination = destination(&peer);
        for finding in all((0..3).map(|_| sending(&destination, 2, LONG)).collect()).await {
            assert_eq!(of(&finding), LOST, "{finding:?}");
        }
        assert_eq!(peer.connections(), 1);
    }
}

#[tokio::test]
async fn a_passed_lease_is_not_sent_and_nobody_is_contacted() {
    let peer = treating(RST_STREAM, &[0, 0, 0, 7]).await;
    let limits = Limits { leave_before: Uptime::now(), ..within(LONG) };
    let finding = destination(&peer).send(&operation(), &intent(b"{}"), &CLAIM, limits).await;
    assert_eq!(of(&finding), (Evidence::NotSent, Some(Reason::LeaseLost)));
    assert_eq!(peer.connections(), 0);
}

#[tokio::test]
async fn a_request_that_waits_for_its_turn_past_its_time_is_not_sent() {
    // One stream at a time; the first one is held until the test says so.
    let (free, held) = tokio::sync::watch::channel(false);
    let peer = speaking(&[(3, 1)], move |mut raw, _| {
        let mut held = held.clone();
        async move {
            let first = raw.request().await.expect("a request");
            let _ = held.wait_for(|free| *free).await;
            raw.answer(first, NO_CONTENT).await;
            // The one that gave up never came.
            while let Some(stream) = raw.request().await {
                raw.answer(stream, NO_CONTENT).await;
            }
        }
    })
    .await;
    let destination = destination(&peer);
    let first = sending(&destination, 2, LONG);
    tokio::time::sleep(Duration::from_millis(50)).await;
    let finding = send(&destination, SHORT).await;
    assert_eq!(of(&finding), UNREACHED, "{finding:?}");
    free.send_replace(true);
    assert_eq!(first.await.expect("no panic").status, Some(204));
    assert_eq!(peer.connections(), 1);
}

#[tokio::test]
async fn a_body_that_its_window_holds_back_is_stopped_at_its_time_and_costs_the_others_nothing() {
    // A window of 1000 bytes for each stream, which is never opened.
    let (tell, mut told) = tokio::sync::mpsc::channel(16);
    let peer = speaking(&[(4, 1000)], move |mut raw, number| {
        let tell = tell.clone();
        async move {
            // The window that all share is wide.
            raw.put(8, 0, 0, &0x00ff_ffff_u32.to_be_bytes()).await;
            let mut came = 0;
            while let Some(frame) = raw.next().await {
                match (frame.kind, frame.stream) {
                    (DATA, 1) if number == 0 => came += frame.payload.len(),
                    (RST_STREAM, 1) if number == 0 => {
                        let _ = tell.send(came).await;
                    }
                    (DATA, other) if frame.flags & 1 != 0 => raw.answer(other, NO_CONTENT).await,
                    _ => {}
                }
            }
        }
    })
    .await;
    let destination = destination(&peer);
    // The peer's settings have to be known first.
    let stuck = sending(&destination, 100_000, SHORT * 2);
    tokio::time::sleep(SHORT).await;
    let quick = sending(&destination, 2, LONG);
    assert_eq!(quick.await.expect("no panic").status, Some(204));
    let finding = stuck.await.expect("no panic");
    assert_eq!(of(&finding), (Evidence::NoAnswer, Some(Reason::Timeout)), "{finding:?}");
    let came = told.recv().await.expect("it is reset");
    assert!(came < 100_000, "{came}");
    assert_eq!(peer.connections(), 1);
    // A peer that left one unanswered gets no new ones on that connection.
    assert_eq!(sending(&destination, 2, LONG).await.expect("no panic").status, Some(204));
    assert_eq!(peer.connections(), 2);
}

#[tokio::test]
async fn a_request_that_is_given_up_while_the_peer_takes_nothing_stops_where_it_is() {
    let (tell, mut told) = tokio::sync::mpsc::channel(1);
    let peer = Peer::new(move |mut conversation, _| {
        let tell = tell.clone();
        async move {
            let stream = &mut conversation.stream;
            // Windows as wide as they go, then not a byte is read for a while.
            let wide =
                |stream: u32| [&[0, 0, 4, 8, 0][..], &stream.to_be_bytes(), &0x7fff_0000_u32.to_be_bytes()].concat();
            let settings = [&[0, 0, 6, 4, 0, 0, 0, 0, 0, 0, 4][..], &0x7fff_ffff_u32.to_be_bytes()].concat();
            let hello = [settings, wide(0)].concat();
            let _ = tokio::io::AsyncWriteExt::write_all(stream, &hello).await;
            tokio::time::sleep(SHORT * 4).await;
            let _ = tell.send(conversation.rest().await.len()).await;
        }
    })
    .await;
    let destination = destination(&peer);
    let finding = sending(&destination, 32 << 20, SHORT).await.expect("no panic");
    assert_eq!(of(&finding), (Evidence::NoAnswer, Some(Reason::Timeout)), "{finding:?}");
    let came = told.recv().await.expect("the connection ended");
    assert!(came < 32 << 20, "{came}");
}

#[tokio::test]
async fn b18_an_early_refusal_of_a_large_body_is_heard() {
    let peer = speaking(&[], |mut raw, _| async move {
        while let Some(frame) = raw.next().await {
            if frame.kind == HEADERS {
                raw.answer(frame.stream, TOO_LARGE).await;
                raw.put(RST_STREAM, 0, frame.stream, &[0, 0, 0, 0]).await;
            }
        }
    })
    .await;
    let finding = sending(&destination(&peer), 8 << 20, LONG).await.expect("no panic");
    assert_eq!((finding.evidence, finding.status), (Evidence::Rejected { replayed: false }, Some(413)), "{finding:?}");
}

#[tokio::test]
async fn b20_an_old_connection_takes_no_new_request() {
    let peer = Peer::new(|conversation, _| echo(conversation.stream)).await;
    let mut destination = Arc::into_inner(destination(&peer)).expect("ours alone");
    destination.oldest = Duration::ZERO;
    for number in 1..=3 {
        assert_eq!(send(&destination, LONG).await.evidence, Evidence::Accepted);
        assert_eq!(peer.connections(), number);
    }
}

#[tokio::test]
async fn b04_a_peer_that_closes_at_once_or_speaks_something_else_costs_at_most_two_connections() {
    let peer = Peer::new(|_, _| async {}).await;
    let destination = destination(&peer);
    for attempt in 1..=5 {
        let finding = send(&destination, LONG).await;
        assert!(matches!(finding.evidence, Evidence::NotSent | Evidence::NoAnswer), "{finding:?}");
        assert!(peer.connections() <= 2 * attempt);
    }
    let peer = answering("HTTP/1.1 400 Bad Request\r\nconnection: close\r\n\r\n").await;
    let finding = send(&super::peer::destination(&peer), SHORT).await;
    assert!(
        matches!(finding.evidence, Evidence::NotSent | Evidence::NoAnswer | Evidence::UnknownAnswer),
        "{finding:?}"
    );
}

#[tokio::test]
async fn an_answer_that_arrives_as_the_deadline_passes_is_read() {
    let peer = speaking(&[], |mut raw: Raw, _| async move {
        let stream = raw.request().await.expect("a request");
        tokio::time::sleep(SHORT + Duration::from_millis(10)).await;
        raw.answer(stream, NO_CONTENT).await;
        raw.request().await;
    })
    .await;
    let finding = send(&destination(&peer), SHORT).await;
    assert_eq!(finding.status, Some(204), "{finding:?}");
}
