//! A peer behind TLS, and the authority that vouches for it or doesn't.

use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair, date_time_ymd};
use rustls::crypto::ring;
use rustls::pki_types::PrivateKeyDer;
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig, SupportedProtocolVersion};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use super::{Conversation, target};
use crate::core::target::{Identity, Secret, Target};
use crate::destination::Destination;

/// A private authority.
pub(in crate::destination) struct Authority(CertifiedIssuer<'static, KeyPair>);

/// What is wrong with a certificate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::destination) enum Flaw {
    None,
    Expired,
    WrongName,
    SelfSigned,
}

/// A peer whose connections begin with a handshake.
pub(in crate::destination) struct SecurePeer {
    pub(in crate::destination) address: SocketAddr,
    /// Of each connection in turn: whether its handshake came to an end at the peer.
    pub(in crate::destination) handshakes: mpsc::Receiver<bool>,
}

impl Authority {
    pub(in crate::destination) fn new() -> Self {
        let mut params = CertificateParams::new(vec![]).expect("parameters");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(rcgen::DnType::CommonName, "tests' authority");
        Self(CertifiedIssuer::self_signed(params, KeyPair::generate().expect("a key")).expect("an authority"))
    }

    pub(in crate::destination) fn pem(&self) -> String {
        self.0.pem()
    }

    fn issue(&self, name: &str, flaw: Flaw) -> (rcgen::Certificate, KeyPair) {
        let mut params = CertificateParams::new(vec![name.to_owned()]).expect("parameters");
        if flaw == Flaw::Expired {
            params.not_before = date_time_ymd(2020, 1, 1);
            params.not_after = date_time_ymd(2021, 1, 1);
        }
        let key = KeyPair::generate().expect("a key");
        let certificate = match flaw {
            Flaw::SelfSigned => params.self_signed(&key),
            Flaw::None | Flaw::Expired | Flaw::WrongName => params.signed_by(&key, &self.0),
        };
        (certificate.expect("a certificate"), key)
    }

    /// A certificate for us.
    pub(in crate::destination) fn identity(&self) -> Identity {
        let (certificate, key) = self.issue("client.example", Flaw::None);
        Identity { certificate: certificate.pem(), key: Secret::new(key.serialize_pem()) }
    }

    /// How a server on 127.0.0.1 shakes hands. `clients`: it asks everybody for a certificate of this authority.
    pub(in crate::destination) fn server(
        &self,
        flaw: Flaw,
        clients: bool,
        versions: &[&'static SupportedProtocolVersion],
    ) -> ServerConfig {
        let name = if flaw == Flaw::WrongName { "elsewhere.example" } else { "127.0.0.1" };
        let (certificate, key) = self.issue(name, flaw);
        let provider = Arc::new(ring::default_provider());
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_protocol_versions(versions)
            .expect("known versions");
        let builder = if clients {
            let mut roots = RootCertStore::empty();
            roots.add(self.0.der().clone()).expect("a root");
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build();
            builder.with_client_cert_verifier(verifier.expect("a verifier"))
        } else {
            builder.with_no_client_auth()
        };
        let key = PrivateKeyDer::try_from(key.serialize_der()).expect("a key");
        builder.with_single_cert(vec![certificate.der().clone()], key).expect("a server")
    }
}

impl SecurePeer {
    /// Each connection whose handshake came to its end is handed, with its number counted from 0, to what the test says.
    pub(in crate::destination) async fn new<F>(
        config: ServerConfig,
        serve: impl Fn(Conversation<TlsStream<TcpStream>>, usize) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let (acceptor, serve) = (TlsAcceptor::from(Arc::new(config)), Arc::new(serve));
        let (tell, handshakes) = mpsc::channel(64);
        tokio::spawn(async move {
            let mut number = 0;
            while let Ok((stream, _)) = listener.accept().await {
                let (acceptor, serve, tell) = (acceptor.clone(), Arc::clone(&serve), tell.clone());
                tokio::spawn(async move {
                    let shaken = acceptor.accept(stream).await;
                    let _ = tell.send(shaken.is_ok()).await;
                    if let Ok(stream) = shaken {
                        serve(Conversation::new(stream), number).await;
                    }
                });
                number += 1;
            }
        });
        Self { address, handshakes }
    }

    /// It, by https, trusting this authority alone.
    pub(in crate::destination) fn target(&self, authority: &Authority) -> Target {
        let mut target = target(&format!("https://{}", self.address));
        target.tls.roots = Some(authority.pem());
        target
    }

    pub(in crate::destination) fn destination(&self, authority: &Authority) -> Destination {
        Destination::new(self.target(authority)).expect("usable")
    }
}
