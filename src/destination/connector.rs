//! Name resolution and TCP. The small piece that TLS will be put into.

use std::error::Error;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use hyper::Uri;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::dns::{GaiAddrs, GaiFuture, GaiResolver, Name};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tower_service::Service;

use super::metered::Metered;
use crate::core::reason::Reason;

/// Opens connections.
#[derive(Clone)]
pub(super) struct Connector {
    tcp: HttpConnector<Resolver>,
    /// Name resolution and TCP together.
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
    pub(super) fn new(timeout: Duration) -> Self {
        let mut tcp = HttpConnector::new_with_resolver(Resolver(GaiResolver::new()));
        // A request goes out in one write; waiting for an ACK to send its tail would only add latency.
        tcp.set_nodelay(true);
        // Divided among the addresses of a name, so that a dead first one leaves time for the others.
        tcp.set_connect_timeout(Some(timeout));
        Self { tcp, timeout }
    }
}

impl Service<Uri> for Connector {
    type Response = TokioIo<Metered<TcpStream>>;
    type Error = ConnectError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, ConnectError>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), ConnectError>> {
        self.tcp.poll_ready(cx).map_err(|error| ConnectError::Failed(error.into()))
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let connecting = self.tcp.call(uri);
        let timeout = self.timeout;
        Box::pin(async move {
            match tokio::time::timeout(timeout, connecting).await {
                Ok(Ok(stream)) => Ok(TokioIo::new(Metered::new(stream.into_inner()))),
                Ok(Err(error)) => Err(ConnectError::Failed(error.into())),
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
        if error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::ConnectionRefused) {
            return Reason::ConnectionRefused;
        }
        cause = error.source();
    }
    Reason::NotReached
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
