//! `http = "auto"`: the destination chooses.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use h2::server;
use hyper::{Response, StatusCode, Version};

use crate::core::evidence::Evidence;
use crate::core::reason::Reason;
use crate::core::target::Http;
use crate::destination::Destination;
use crate::destination::testing::secure::{Authority, Flaw, SecurePeer};
use crate::destination::testing::{answering, send, target};

const LONG: Duration = Duration::from_secs(10);
const CREATED: &str = "HTTP/1.1 201 Created\r\ncontent-length: 0\r\n\r\n";

/// Sends twice to a server over TLS with these protocols; returns the connections that it took, and how many requests came
/// by HTTP/2.
async fn two_sends(protocols: &[&[u8]]) -> (usize, usize) {
    let authority = Authority::new();
    let mut config = authority.server(Flaw::None, false, rustls::ALL_VERSIONS);
    config.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
    let (connections, by_http2) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (opened, streams) = (Arc::clone(&connections), Arc::clone(&by_http2));
    let peer = SecurePeer::new(config, move |mut conversation, _| {
        opened.fetch_add(1, Ordering::SeqCst);
        let streams = Arc::clone(&streams);
        async move {
            if conversation.stream.get_ref().1.alpn_protocol() != Some(b"h2") {
                while !conversation.request().await.is_empty() {
                    conversation.say(CREATED).await;
                }
                return;
            }
            let mut connection = server::handshake(conversation.stream).await.expect("a hello");
            while let Some(Ok((request, mut respond))) = connection.accept().await {
                assert_eq!(request.version(), Version::HTTP_2);
                streams.fetch_add(1, Ordering::SeqCst);
                let answer = Response::builder().status(StatusCode::CREATED).body(()).expect("an answer");
                let _ = respond.send_response(answer, true);
            }
        }
    })
    .await;
    let mut target = peer.target(&authority);
    target.http = Http::Auto;
    let destination = Destination::new(target).expect("usable");
    for _ in 0..2 {
        let finding = send(&destination, LONG).await;
        assert_eq!((finding.evidence, finding.status), (Evidence::Accepted, Some(201)), "{finding:?}");
    }
    (connections.load(Ordering::SeqCst), by_http2.load(Ordering::SeqCst))
}

#[tokio::test]
async fn http2_is_spoken_where_the_destination_offers_it() {
    assert_eq!(two_sends(&[b"h2", b"http/1.1"]).await, (1, 2), "on the connection that it was asked on");
}

#[tokio::test]
async fn http1_is_spoken_where_the_destination_chooses_it_or_says_nothing() {
    for protocols in [&[&b"http/1.1"[..], b"h2"][..], &[b"http/1.1"], &[]] {
        assert_eq!(two_sends(protocols).await, (2, 0), "one to ask on, and one that is kept");
    }
}

#[tokio::test]
async fn over_plain_tcp_it_is_http1_without_asking() {
    let peer = answering(CREATED).await;
    let mut target = target(&format!("http://{}", peer.address));
    target.http = Http::Auto;
    let destination = Destination::new(target).expect("usable");
    for _ in 0..2 {
        assert_eq!(send(&destination, LONG).await.evidence, Evidence::Accepted);
    }
    assert_eq!(peer.connections(), 1);
}

#[tokio::test]
async fn a_handshake_that_fails_is_no_choice() {
    let authority = Authority::new();
    let config = authority.server(Flaw::Expired, false, rustls::ALL_VERSIONS);
    let peer = SecurePeer::new(config, |conversation, _| async move { drop(conversation) }).await;
    let mut target = peer.target(&authority);
    target.http = Http::Auto;
    let finding = send(&Destination::new(target).expect("usable"), LONG).await;
    assert_eq!((finding.evidence, finding.reason), (Evidence::NotSent, Some(Reason::TlsFailed)), "{finding:?}");
}
