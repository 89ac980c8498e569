//! Name resolution, TCP and TLS.

use std::error::Error;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use hyper::Uri;
use hyper_rustls::{HttpsConnector, MaybeHttpsStream};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use tokio::net::TcpStream;
use tower_service::Service;

use super::address::NotPublic;
use super::clean::one_line;
use super::metered::Metered;
use super::resolve::{NameNotResolved, Resolver};
use super::socket::{Socket, Tap};
use crate::core::reason::Reason;

/// Their names in the handshake of TLS.
pub(super) const HTTP2: &[u8] = b"h2";
pub(super) const HTTP1: &[u8] = b"http/1.1";

/// How long the word of TLS may be, in bytes: it can quote the peer's certificate.
const TLS_MAX_BYTES: usize = 300;

/// Opens connections.
#[derive(Clone)]
pub(super) struct Connector {
    https: HttpsConnector<Tcp>,
    /// Name resolution, TCP and TLS together.
    timeout: Duration,
}

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub(super) enum ConnectError {
    #[error("no connection within the connect timeout")]
    TimedOut,
    #[error("no connection")]
    Failed(#[source] Box<dyn Error + Send + Sync>),
    #[error("the destination does not speak HTTP/2")]
    NotHttp2,
}

impl Connector {
    /// `tls` says whom to trust.
    pub(super) fn new(timeout: Duration, tls: ClientConfig, resolver: Resolver) -> Self {
        let mut tcp = HttpConnector::new_with_resolver(resolver.clone());
        // A request goes out in one write; waiting for an ACK to send its tail would only add latency.
        tcp.set_nodelay(true);
        // Divided among the addresses of a name, so that a dead first one leaves time for the others.
        tcp.set_connect_timeout(Some(timeout));
        tcp.enforce_http(false);
        // What `tls` offers stays: a builder would choose the protocols itself.
        let https = HttpsConnector::from((Tcp { http: tcp, resolver }, tls));
        Self { https, timeout }
    }
}

/// TCP, or TLS over it.
pub(super) type Stream = TokioIo<MaybeHttpsStream<TokioIo<Socket<TcpStream>>>>;

fn tap(stream: &Stream) -> Arc<Tap> {
    match stream.inner() {
        MaybeHttpsStream::Http(socket) => socket.inner().tap(),
        MaybeHttpsStream::Https(tls) => tls.inner().get_ref().0.inner().inner().tap(),
    }
}

impl Service<Uri> for Connector {
    type Response = TokioIo<Metered<Stream>>;
    type Error = ConnectError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, ConnectError>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), ConnectError>> {
        self.https.poll_ready(cx).map_err(ConnectError::Failed)
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let opening = self.clone().open(uri);
        Box::pin(async move {
            let (stream, tap) = opening.await?;
            Ok(TokioIo::new(Metered::new(stream, tap)))
        })
    }
}

impl Connector {
    /// A connection, and the tap of the socket at its bottom.
    pub(super) async fn open(mut self, uri: Uri) -> Result<(Stream, Arc<Tap>), ConnectError> {
        match tokio::time::timeout(self.timeout, self.https.call(uri)).await {
            Ok(Ok(stream)) => {
                let stream = TokioIo::new(stream);
                let tap = tap(&stream);
                Ok((stream, tap))
            }
            Ok(Err(error)) => Err(ConnectError::Failed(error)),
            Err(_) => Err(ConnectError::TimedOut),
        }
    }

    /// One that speaks HTTP/2: by agreement over TLS (RFC 7301), unasked without.
    pub(super) async fn open_http2(self, uri: Uri) -> Result<(Stream, Arc<Tap>), ConnectError> {
        let (stream, tap) = self.open(uri).await?;
        match stream.inner() {
            MaybeHttpsStream::Https(tls) if tls.inner().get_ref().1.alpn_protocol() != Some(HTTP2) => {
                Err(ConnectError::NotHttp2)
            }
            MaybeHttpsStream::Https(_) | MaybeHttpsStream::Http(_) => Ok((stream, tap)),
        }
    }
}

/// TCP alone.
#[derive(Clone)]
struct Tcp {
    http: HttpConnector<Resolver>,
    resolver: Resolver,
}

impl Service<Uri> for Tcp {
    type Response = TokioIo<Socket<TcpStream>>;
    type Error = Box<dyn Error + Send + Sync>;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Self::Error>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.http.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        if let Err(refused) = self.resolver.admits(&uri) {
            return Box::pin(async move { Err(refused.into()) });
        }
        let connecting = self.http.call(uri);
        Box::pin(async move { Ok(TokioIo::new(Socket::new(connecting.await?.into_inner()))) })
    }
}

/// Why nothing was sent, by the types in the error's chain of causes.
pub(super) fn reason_not_reached(error: &(dyn Error + 'static)) -> Reason {
    for cause in causes(error) {
        if cause.is::<NameNotResolved>() {
            return Reason::NameNotResolved;
        }
        if cause.is::<NotPublic>() {
            return Reason::AddressNotPublic;
        }
        if let Some(error) = cause.downcast_ref::<io::Error>() {
            // An error that wraps another one comes from the handshake: of TLS itself, or of the socket during it.
            return match (error.kind(), wrapped(error)) {
                (_, Some(_)) => Reason::TlsFailed,
                (io::ErrorKind::ConnectionRefused, None) => Reason::ConnectionRefused,
                (_, None) => Reason::NotReached,
            };
        }
    }
    Reason::NotReached
}

/// What TLS, the operating system or we ourselves said, where somebody said something: one short line.
pub(super) fn said(error: &(dyn Error + 'static)) -> Option<String> {
    for cause in causes(error) {
        if cause.is::<NotPublic>() || matches!(cause.downcast_ref(), Some(ConnectError::NotHttp2)) {
            return Some(cause.to_string());
        }
    }
    let error = causes(error).find_map(|cause| cause.downcast_ref::<io::Error>())?;
    Some(match wrapped(error) {
        None => error.kind().to_string(),
        Some(Wrapped::Tls(error)) => one_line(format!("TLS: {error}").as_bytes(), TLS_MAX_BYTES),
        Some(Wrapped::Socket(kind)) => format!("TLS handshake: {kind}"),
    })
}

/// Whether no connection came to be in time.
pub(super) fn took_too_long(error: &(dyn Error + 'static)) -> bool {
    causes(error).any(|cause| {
        matches!(cause.downcast_ref(), Some(ConnectError::TimedOut))
            || cause.downcast_ref().is_some_and(|error: &io::Error| error.kind() == io::ErrorKind::TimedOut)
    })
}

fn causes<'e>(error: &'e (dyn Error + 'static)) -> impl Iterator<Item = &'e (dyn Error + 'static)> {
    std::iter::successors(Some(error), |&error| error.source())
}

/// What stands in an `io::Error`, which it doesn't have among its causes.
enum Wrapped<'e> {
    Tls(&'e rustls::Error),
    Socket(io::ErrorKind),
}

fn wrapped(error: &io::Error) -> Option<Wrapped<'_>> {
    let inner = error.get_ref()?;
    match inner.downcast_ref::<io::Error>() {
        Some(nested) => wrapped(nested).or(Some(Wrapped::Socket(nested.kind()))),
        None => inner.downcast_ref::<rustls::Error>().map(Wrapped::Tls),
    }
}
