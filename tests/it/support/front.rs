//! TLS in front of a destination that speaks plain HTTP.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

/// Shakes hands and passes on what it hears.
pub struct Front {
    addr: SocketAddr,
    config: Arc<Mutex<Arc<ServerConfig>>>,
}

impl Front {
    /// Before `destination`, with this certificate and key, PEM.
    pub async fn start(destination: SocketAddr, certificate: &str, key: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let front = Self {
            addr: listener.local_addr().expect("an address"),
            config: Arc::new(Mutex::new(server(certificate, key))),
        };
        let config = Arc::clone(&front.config);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let acceptor = TlsAcceptor::from(Arc::clone(&*config.lock().expect("a configuration")));
                tokio::spawn(async move {
                    if let Ok(mut ours) = acceptor.accept(stream).await {
                        let mut theirs = TcpStream::connect(destination).await?;
                        tokio::io::copy_bidirectional(&mut ours, &mut theirs).await?;
                    }
                    std::io::Result::Ok(())
                });
            }
        });
        front
    }

    /// From now on it shows another certificate.
    pub fn show(&self, certificate: &str, key: &str) {
        *self.config.lock().expect("a configuration") = server(certificate, key);
    }

    /// `https://127.0.0.1:PORT`
    pub fn base_url(&self) -> String {
        format!("https://{}", self.addr)
    }
}

fn server(certificate: &str, key: &str) -> Arc<ServerConfig> {
    let chain = vec![CertificateDer::from_pem_slice(certificate.as_bytes()).expect("a certificate")];
    let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).expect("a key");
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("known versions")
        .with_no_client_auth()
        .with_single_cert(chain, key);
    Arc::new(config.expect("a server"))
}
