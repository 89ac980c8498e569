//! Name resolution, TCP and TLS.

use std::error::Error;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use hyper::Uri;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder, MaybeHttpsStream};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::dns::{GaiAddrs, GaiFuture, GaiResolver, Name};
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use tokio::net::TcpStream;
use tower_service::Service;

use super::metered::Metered;
use crate::core::reason::Reason;

/// Opens connections.
#[derive(Clone)]
pub(super) struct Connector {
    https: HttpsConnector<HttpConnector<Resolver>>,
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
}

/// The resolver's error, so that it can be told from one of the socket by its type.
#[derive(Debug, thiserror::Error)]
#[error("name not resolved")]
struct NameNotResolved(#[source] io::Error);

impl Connector {
    /// `tls` says whom to trust.
    pub(super) fn new(timeout: Duration, tls: ClientConfig) -> Self {
        let mut tcp = HttpConnector::new_with_resolver(Resolver(GaiResolver::new()));
        // A request goes out in one write; waiting for an ACK to send its tail would only add latency.
        tcp.set_nodelay(true);
        // Divided among the addresses of a name, so that a dead first one leaves time for the others.
        tcp.set_connect_timeout(Some(timeout));
        tcp.enforce_http(false);
        let https =
            HttpsConnectorBuilder::new().with_tls_config(tls).https_or_http().enable_http1().wrap_connector(tcp);
        Self { https, timeout }
    }
}

/// TCP, or TLS over it.
type Stream = TokioIo<MaybeHttpsStream<TokioIo<TcpStream>>>;

impl Service<Uri> for Connector {
    type Response = TokioIo<Metered<Stream>>;
    type Error = ConnectError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, ConnectError>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), ConnectError>> {
        self.https.poll_ready(cx).map_err(ConnectError::Failed)
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let connecting = self.https.call(uri);
        let timeout = self.timeout;
        Box::pin(async move {
            match tokio::time::timeout(timeout, connecting).await {
                Ok(Ok(stream)) => Ok(TokioIo::new(Metered::new(TokioIo::new(stream)))),
                Ok(Err(error)) => Err(ConnectError::Failed(error)),
                Err(_) => Err(ConnectError::TimedOut),
            }
        })
    }
}

#[derive(Clone)]
struct Resolver(GaiResolver);

impl Service<Name> for Resolver {
    type Response = GaiAddrs;
    type Error = NameNotResolved;
    type Future = Resolving;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), NameNotResolved>> {
        self.0.poll_ready(cx).map_err(NameNotResolved)
    }

    fn call(&mut self, name: Name) -> Resolving {
        Resolving(self.0.call(name))
    }
}

struct Resolving(GaiFuture);

impl Future for Resolving {
    type Output = Result<GaiAddrs, NameNotResolved>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.0).poll(cx).map_err(NameNotResolved)
    }
}

/// Why nothing was sent, by the types in the error's chain of causes.
pub(super) fn reason_not_reached(error: &(dyn Error + 'static)) -> Reason {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if error.is::<NameNotResolved>() {
            return Reason::NameNotResolved;
        }
        if let Some(error) = error.downcast_ref::<io::Error>() {
            if error.kind() == io::ErrorKind::ConnectionRefused {
                return Reason::ConnectionRefused;
            }
            if tls_error(error).is_some() {
                return Reason::TlsFailed;
            }
        }
        cause = error.source();
    }
    Reason::NotReached
}

/// What TLS said, where it did: an `io::Error` doesn't have what it wraps among its causes.
pub(super) fn tls_error(error: &io::Error) -> Option<&rustls::Error> {
    let inner = error.get_ref()?;
    match inner.downcast_ref::<io::Error>() {
        Some(nested) => tls_error(nested),
        None => inner.downcast_ref::<rustls::Error>(),
    }
}

/// What the operating system said, where it said something.
pub(super) fn io_kind(error: &(dyn Error + 'static)) -> Option<io::ErrorKind> {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if let Some(error) = error.downcast_ref::<io::Error>() {
            return Some(error.kind());
        }
        cause = error.source();
    }
    None
}
