//! Exchanges over TLS, with certificates good and bad.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, DuplexStream, ReadBuf};
use tokio_rustls::client::TlsStream;
use tokio_rustls::{TlsAcceptor, TlsConnector};

use crate::clock::Uptime;
use crate::core::evidence::Evidence;
use crate::core::reason::Reason;
use crate::core::target::Tls;
use crate::destination::metered::Metered;
use crate::destination::socket::{Socket, Tap};
use crate::destination::testing::secure::{Authority, Flaw, SecurePeer};
use crate::destination::testing::{CLAIM, Peer, intent, operation, send, target, within};
use crate::destination::{Destination, tls};

const OK: &str = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";
const LONG: Duration = Duration::from_secs(10);
const SHORT: Duration = Duration::from_millis(300);
const NOT_SENT: (Evidence, Option<Reason>) = (Evidence::NotSent, Some(Reason::TlsFailed));

/// A peer that answers everything with 200, and how many requests it got.
async fn answering(config: rustls::ServerConfig) -> (SecurePeer, Arc<AtomicUsize>) {
    let requests = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&requests);
    let peer = SecurePeer::new(config, move |mut conversation, _| {
        let count = Arc::clone(&count);
        async move {
            while !conversation.request().await.is_empty() {
                count.fetch_add(1, Ordering::SeqCst);
                conversation.say(OK).await;
            }
        }
    })
    .await;
    (peer, requests)
}

#[tokio::test]
async fn a_destination_behind_a_private_authority_is_reached_by_tls() {
    let authority = Authority::new();
    for versions in [&[&rustls::version::TLS12][..], &[&rustls::version::TLS13]] {
        let (mut peer, requests) = answering(authority.server(Flaw::None, false, versions)).await;
        let destination = peer.destination(&authority);
        for _ in 0..3 {
            assert_eq!(send(&destination, LONG).await.evidence, Evidence::Accepted);
        }
        assert_eq!(
            (peer.handshakes.recv().await, peer.handshakes.try_recv().ok()),
            (Some(true), None),
            "one connection"
        );
        assert_eq!(requests.load(Ordering::SeqCst), 3);
    }
}

#[tokio::test]
async fn a_certificate_that_is_not_good_is_not_sent_to() {
    let authority = Authority::new();
    for (flaw, word) in
        [(Flaw::Expired, "expired"), (Flaw::WrongName, "not valid for"), (Flaw::SelfSigned, "UnknownIssuer")]
    {
        let (mut peer, requests) = answering(authority.server(flaw, false, rustls::ALL_VERSIONS)).await;
        let finding = send(&peer.destination(&authority), LONG).await;
        assert_eq!((finding.evidence, finding.reason), NOT_SENT, "{flaw:?}");
        let detail = finding.detail.expect("what TLS said");
        assert!(detail.starts_with("TLS: ") && detail.contains(word) && detail.len() <= 300, "{detail}");
        assert_eq!(peer.handshakes.recv().await, Some(false));
        assert_eq!(requests.load(Ordering::SeqCst), 0);
    }
    let (mut peer, requests) = answering(authority.server(Flaw::None, false, rustls::ALL_VERSIONS)).await;
    let finding = send(&peer.destination(&Authority::new()), LONG).await;
    assert_eq!((finding.evidence, finding.reason), NOT_SENT, "of an authority that we don't trust");
    assert_eq!((peer.handshakes.recv().await, requests.load(Ordering::SeqCst)), (Some(false), 0));
}

#[tokio::test]
async fn our_own_certificate_is_shown_where_it_is_asked_for() {
    let authority = Authority::new();
    for (versions, without) in [
        (&[&rustls::version::TLS12][..], Evidence::NotSent),
        // With TLS 1.3 the request may follow at once; the server refuses us while it is on its way (RFC 8446 section
        // 4.4.2.4). Nobody else says what it did with it.
        (&[&rustls::version::TLS13], Evidence::NoAnswer),
    ] {
        let (mut peer, requests) = answering(authority.server(Flaw::None, true, versions)).await;
        let mut target = peer.target(&authority);
        target.tls.identity = Some(authority.identity());
        let destination = Destination::new(target).expect("usable");
        assert_eq!(send(&destination, LONG).await.evidence, Evidence::Accepted);
        assert_eq!(peer.handshakes.recv().await, Some(true));
        assert_eq!(requests.load(Ordering::SeqCst), 1);

        let finding = send(&peer.destination(&authority), LONG).await;
        assert_eq!(finding.evidence, without, "{finding:?}");
        assert_eq!(peer.handshakes.recv().await, Some(false));
        assert_eq!(requests.load(Ordering::SeqCst), 1);
    }
}

#[tokio::test]
async fn a_handshake_that_breaks_off_is_not_sent() {
    let authority = Authority::new();
    for (ending, word) in [
        ("close", "TLS handshake: unexpected end of file"),
        ("reset", "TLS handshake: connection reset"),
        ("HTTP/1.1 400 Bad Request\r\n\r\n", "TLS: received corrupt message"),
    ] {
        let peer = Peer::new(move |mut conversation, _| async move {
            // The greeting, as far as it comes at once.
            let _ = conversation.stream.read(&mut [0; 4096]).await;
            match ending {
                "close" => {}
                "reset" => conversation.reset(),
                bytes => {
                    conversation.say(bytes).await;
                    conversation.rest().await;
                }
            }
        })
        .await;
        let mut target = target(&format!("https://{}", peer.address));
        target.tls.roots = Some(authority.pem());
        let finding = send(&Destination::new(target).expect("usable"), LONG).await;
        assert_eq!((finding.evidence, finding.reason), NOT_SENT, "{ending}");
        let detail = finding.detail.expect("what TLS said");
        assert!(detail.starts_with(word), "{detail}");
        assert_eq!(peer.connections(), 1);
    }
}

#[tokio::test]
async fn a_handshake_that_takes_too_long_is_not_sent() {
    let peer = Peer::new(|conversation, _| async move {
        conversation.rest().await;
    })
    .await;
    let mut target = target(&format!("https://{}", peer.address));
    target.tls.roots = Some(Authority::new().pem());
    target.connect_timeout = SHORT;
    let finding = send(&Destination::new(target).expect("usable"), LONG).await;
    assert_eq!((finding.evidence, finding.reason), (Evidence::NotSent, Some(Reason::NotReached)));
    assert_eq!(finding.detail.as_deref(), Some("no connection within the connect timeout"));
}

#[tokio::test]
async fn b32_a_request_that_is_given_up_stops_inside_tls_too() {
    let authority = Authority::new();
    let (tell, mut told) = tokio::sync::mpsc::channel(1);
    let config = authority.server(Flaw::None, false, rustls::ALL_VERSIONS);
    let peer = SecurePeer::new(config, move |conversation, _| {
        let tell = tell.clone();
        async move {
            tokio::time::sleep(SHORT * 4).await;
            let _ = tell.send(conversation.rest().await.len()).await;
        }
    })
    .await;
    let whole = vec![b'x'; 32 << 20];
    let destination = peer.destination(&authority);
    let finding = destination.send(&operation(), &intent(&whole), &CLAIM, within(SHORT)).await;
    assert_eq!((finding.evidence, finding.reason), (Evidence::NoAnswer, Some(Reason::Timeout)));
    assert!(told.recv().await.expect("what came") < whole.len());
}

type Stream = TlsStream<Socket<DuplexStream>>;

/// A connection of ours over TLS, the tap at its bottom, and the peer's end of it, from which nobody reads. Little fits
/// between the two.
async fn stalled() -> (Metered<Stream>, Arc<Tap>, DuplexStream) {
    let authority = Authority::new();
    let config = authority.server(Flaw::None, false, &[&rustls::version::TLS13]);
    let client = tls::client(&Tls { roots: Some(authority.pem()), identity: None }, true).expect("usable");
    let (ours, theirs) = tokio::io::duplex(4096);
    let socket = Socket::new(ours);
    let tap = socket.tap();
    let name = ServerName::try_from("127.0.0.1").expect("a name");
    let connector = TlsConnector::from(Arc::new(client));
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let (client, server) = tokio::join!(connector.connect(name, socket), acceptor.accept(theirs));
    let (theirs, _) = server.expect("a handshake").into_inner();
    (Metered::new(client.expect("a handshake"), Arc::clone(&tap)), tap, theirs)
}

/// Writes until nothing more is taken; says how much was.
fn fill(stream: &mut Metered<Stream>) -> usize {
    let mut cx = Context::from_waker(Waker::noop());
    let mut taken = 0;
    while let Poll::Ready(Ok(n)) = Pin::new(&mut *stream).poll_write(&mut cx, &[b'x'; 16 << 10]) {
        taken += n;
    }
    taken
}

#[tokio::test]
async fn b32_what_tls_holds_back_does_not_leave_once_the_request_is_given_up() {
    let (mut stream, tap, mut theirs) = stalled().await;
    let exchange = stream.wire().begin(Uptime::now().plus(LONG));
    let taken = fill(&mut stream);
    let left = tap.taken();
    assert!(taken > 16 << 10 && left < 8 << 10, "TLS holds most of {taken} back");
    assert_eq!(exchange.end().map(|traffic| traffic.written), Some(taken as u64));

    // Room again, and every way in which something could go out: a flush, a goodbye, a record that breaks the session.
    let mut came = vec![0; 64 << 10];
    let mut all = theirs.read(&mut came).await.expect("what came");
    theirs.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await.expect("written");
    let mut cx = Context::from_waker(Waker::noop());
    let mut buf = [0; 1024];
    assert!(matches!(Pin::new(&mut stream).poll_read(&mut cx, &mut ReadBuf::new(&mut buf)), Poll::Ready(Err(_))));
    assert!(matches!(Pin::new(&mut stream).poll_flush(&mut cx), Poll::Ready(Err(_))));
    assert!(Pin::new(&mut stream).poll_shutdown(&mut cx).is_ready());
    assert_eq!(tap.taken(), left);
    drop(stream);
    while let Ok(n @ 1..) = theirs.read(&mut came).await {
        all += n;
    }
    assert!(all <= 4096, "{all} bytes came, the duplex held no more");
    assert_eq!(tap.taken(), left);
}

#[tokio::test]
async fn b32_what_tls_holds_back_does_not_leave_after_its_time() {
    let (mut stream, tap, mut theirs) = stalled().await;
    let until = Uptime::now().plus(Duration::from_millis(50));
    let exchange = stream.wire().begin(until);
    let taken = fill(&mut stream);
    let left = tap.taken();
    while !until.is_over() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let _ = theirs.read(&mut vec![0; 64 << 10]).await.expect("room again");
    theirs.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await.expect("written");
    let mut cx = Context::from_waker(Waker::noop());
    let mut buf = [0; 1024];
    assert!(Pin::new(&mut stream).poll_read(&mut cx, &mut ReadBuf::new(&mut buf)).is_ready());
    assert_eq!(tap.taken(), left, "not even while it is only read");
    let late = Pin::new(&mut stream).poll_flush(&mut cx);
    assert!(matches!(late, Poll::Ready(Err(error)) if error.kind() == std::io::ErrorKind::TimedOut));
    assert!(Pin::new(&mut stream).poll_shutdown(&mut cx).is_ready());
    assert_eq!(tap.taken(), left);
    let traffic = exchange.end().expect("its own");
    assert!(traffic.missed && traffic.written == taken as u64);
}
