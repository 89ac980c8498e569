//! From a name to addresses, and which of them may be reached.

use std::error::Error;
use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::task::{Context, Poll};

use hyper::Uri;
use hyper_util::client::legacy::connect::dns::{GaiResolver, Name};
use tower_service::Service;

use super::address::{NotPublic, public};

type BoxError = Box<dyn Error + Send + Sync>;

/// The resolver's error, so that it can be told from one of the socket by its type.
#[derive(Debug, thiserror::Error)]
#[error("name not resolved")]
pub(super) struct NameNotResolved(#[source] io::Error);

/// Who knows the addresses of names.
#[derive(Clone)]
pub(super) enum Names {
    /// The operating system.
    System(GaiResolver),
    /// The test: these are the addresses of every name.
    #[cfg(test)]
    Told(std::sync::Arc<std::sync::Mutex<Vec<IpAddr>>>),
}

/// Resolves names. Addresses are judged here, after resolution and as the last thing before the connection is made to
/// those that are left: a name that changes its mind in between has nothing from it.
#[derive(Clone)]
pub(super) struct Resolver {
    names: Names,
    /// Addresses that are not public are left out.
    public_only: bool,
}

impl Resolver {
    pub(super) fn new(names: Names, public_only: bool) -> Self {
        Self { names, public_only }
    }

    /// Refuses a host that is itself an address and not public. It would never be resolved.
    pub(super) fn admits(&self, uri: &Uri) -> Result<(), NotPublic> {
        let host = uri.host().unwrap_or_default();
        let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
        match host.parse::<IpAddr>() {
            Ok(address) if self.public_only => public(address),
            Ok(_) | Err(_) => Ok(()),
        }
    }
}

impl Names {
    async fn of(self, name: Name) -> Result<Vec<SocketAddr>, NameNotResolved> {
        match self {
            Self::System(mut system) => match system.call(name).await {
                Ok(addresses) => Ok(addresses.collect()),
                Err(error) => Err(NameNotResolved(error)),
            },
            #[cfg(test)]
            Self::Told(addresses) => {
                let addresses = addresses.lock().expect("addresses").clone();
                Ok(addresses.into_iter().map(|address| SocketAddr::new(address, 0)).collect())
            }
        }
    }
}

impl Service<Name> for Resolver {
    type Response = std::vec::IntoIter<SocketAddr>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, BoxError>> + Send>>;

    /// The system's resolver is always ready: it has threads of its own.
    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, name: Name) -> Self::Future {
        let (names, public_only) = (self.names.clone(), self.public_only);
        Box::pin(async move {
            let mut addresses = names.of(name).await?;
            let refused = addresses.iter().find_map(|address| public(address.ip()).err());
            if public_only && let Some(refused) = refused {
                addresses.retain(|address| public(address.ip()).is_ok());
                if addresses.is_empty() {
                    return Err(refused.into());
                }
            }
            Ok(addresses.into_iter())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Arc, Mutex};

    #[tokio::test]
    async fn of_a_name_with_both_only_the_public_addresses_are_left() {
        let told = ["10.0.0.1", "8.8.8.8", "::1", "2606:4700:4700::1111"].map(|text| text.parse().expect("an address"));
        let names = Names::Told(Arc::new(Mutex::new(told.to_vec())));
        let of = async |public_only| {
            let name = "name.example".parse().expect("a name");
            let addresses = Resolver::new(names.clone(), public_only).call(name).await.expect("some");
            addresses.map(|address| address.ip()).collect::<Vec<_>>()
        };
        assert_eq!(of(true).await, [told[1], told[3]]);
        assert_eq!(of(false).await, told);
    }
}
