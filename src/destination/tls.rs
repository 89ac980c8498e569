//! Whom a destination's connections trust, and how we show who we are.

use std::sync::Arc;

use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore};

use crate::core::target::Tls;

/// The settings of a destination's TLS cannot be used.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum TlsError {
    /// A PEM text that holds no certificate.
    #[error("`{0}` holds no certificate that can be read")]
    NoCertificate(&'static str),
    /// The key's PEM text.
    #[error("`key` holds no private key that can be read")]
    NoKey,
    /// Certificate and key don't belong together, or are of a kind that is not supported.
    #[error("`certificate` and `key` cannot be used together: {0}")]
    Identity(String),
    /// The machine trusts nobody.
    #[error("this machine trusts no certificate authority; name one in `roots`")]
    NoSystemRoots,
}

/// The same handshake with these protocols to choose from (RFC 7301), the first one preferred.
pub(super) fn offering(config: &ClientConfig, protocols: &[&[u8]]) -> ClientConfig {
    let mut config = config.clone();
    config.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
    config
}

/// The client's part of a handshake. It offers no choice of protocols: then HTTP/1.1 is spoken.
pub(super) fn client(tls: &Tls, needed: bool) -> Result<ClientConfig, TlsError> {
    let roots = match &tls.roots {
        Some(pem) => roots_of(pem)?,
        None => system_roots(needed)?,
    };
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| TlsError::Identity(error.to_string()))?
        .with_root_certificates(roots);
    match &tls.identity {
        None => Ok(config.with_no_client_auth()),
        Some(identity) => {
            let chain = certificates("certificate", &identity.certificate)?;
            let key = PrivateKeyDer::from_pem_slice(identity.key.expose().as_bytes()).map_err(|_| TlsError::NoKey)?;
            config.with_client_auth_cert(chain, key).map_err(|error| TlsError::Identity(error.to_string()))
        }
    }
}

fn certificates(key: &'static str, pem: &str) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let read: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem.as_bytes()).collect();
    read.ok().filter(|read| !read.is_empty()).ok_or(TlsError::NoCertificate(key))
}

fn roots_of(pem: &str) -> Result<RootCertStore, TlsError> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates("roots", pem)? {
        roots.add(certificate).map_err(|_| TlsError::NoCertificate("roots"))?;
    }
    Ok(roots)
}

/// One certificate of the system that cannot be read is no reason to trust none of the others.
fn system_roots(needed: bool) -> Result<RootCertStore, TlsError> {
    let mut roots = RootCertStore::empty();
    if needed {
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    }
    if needed && roots.is_empty() { Err(TlsError::NoSystemRoots) } else { Ok(roots) }
}
