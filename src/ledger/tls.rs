//! TLS to PostgreSQL, as libpq means `sslmode`: `require` never falls back to plain text, `verify-ca` trusts an
//! authority, `verify-full` this host as well.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, WebPkiSupportedAlgorithms, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::LedgerError;
use crate::core::dsn::{Roots, Tls, TlsMode};

/// What opens sessions. Reads the files that `tls` names.
pub(super) fn connector(tls: &Tls) -> Result<MakeRustlsConnect, LedgerError> {
    let provider = Arc::new(ring::default_provider());
    let verifier = verifier(tls, &provider)?;
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| unusable(error.to_string()))?
        .dangerous()
        .with_custom_certificate_verifier(verifier);
    let config = match &tls.client {
        None => config.with_no_client_auth(),
        Some((cert, key)) => {
            let chain = certificates("sslcert", cert)?;
            let key = PrivateKeyDer::from_pem_file(key)
                .map_err(|error| unusable(format!("`sslkey` ({}): {error}", key.display())))?;
            config.with_client_auth_cert(chain, key).map_err(|error| unusable(format!("`sslcert`: {error}")))?
        }
    };
    Ok(MakeRustlsConnect::new(config))
}

/// Whom to trust, and whether its certificate must be of this host.
fn verifier(tls: &Tls, provider: &Arc<CryptoProvider>) -> Result<Arc<dyn ServerCertVerifier>, LedgerError> {
    let roots = match (&tls.roots, tls.mode) {
        (_, TlsMode::Disable | TlsMode::Prefer) => None,
        (Some(Roots::System), _) => Some(system_roots()?),
        (Some(Roots::File(path)), _) => Some(roots_of(path)?),
        (None, TlsMode::Require) => {
            default_file().filter(|path| path.exists()).map(|path| roots_of(&path)).transpose()?
        }
        (None, TlsMode::VerifyCa | TlsMode::VerifyFull) => {
            let path = default_file().filter(|path| path.exists());
            let path = path.ok_or_else(|| {
                unusable("`sslmode` asks for a trusted certificate, and nothing says whom to trust; add `sslrootcert`")
            })?;
            Some(roots_of(&path)?)
        }
    };
    let algorithms = provider.signature_verification_algorithms;
    let Some(roots) = roots else { return Ok(Arc::new(AnyHost { authority: None, algorithms })) };
    let full = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(provider))
        .build()
        .map_err(|error| unusable(format!("`sslrootcert`: {error}")))?;
    Ok(match tls.mode {
        TlsMode::VerifyFull => full,
        TlsMode::Disable | TlsMode::Prefer | TlsMode::Require | TlsMode::VerifyCa => {
            Arc::new(AnyHost { authority: Some(full), algorithms })
        }
    })
}

/// libpq's, where nothing else is said.
fn default_file() -> Option<PathBuf> {
    std::env::home_dir().map(|home| home.join(".postgresql/root.crt"))
}

fn certificates(word: &str, path: &Path) -> Result<Vec<CertificateDer<'static>>, LedgerError> {
    let wrong = |error: &dyn std::fmt::Display| unusable(format!("`{word}` ({}): {error}", path.display()));
    let read: Result<Vec<_>, _> = CertificateDer::pem_file_iter(path).map_err(|error| wrong(&error))?.collect();
    match read {
        Ok(certificates) if certificates.is_empty() => Err(wrong(&"there is no certificate in it")),
        Ok(certificates) => Ok(certificates),
        Err(error) => Err(wrong(&error)),
    }
}

fn roots_of(path: &Path) -> Result<RootCertStore, LedgerError> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates("sslrootcert", path)? {
        roots.add(certificate).map_err(|error| unusable(format!("`sslrootcert` ({}): {error}", path.display())))?;
    }
    Ok(roots)
}

fn system_roots() -> Result<RootCertStore, LedgerError> {
    let mut roots = RootCertStore::empty();
    // One certificate of the system that cannot be read is no reason to trust none of the others.
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if roots.is_empty() { Err(unusable("the system trusts no certificate authority")) } else { Ok(roots) }
}

fn unusable(why: impl std::fmt::Display) -> LedgerError {
    LedgerError::Unreachable(format!("the database's TLS settings cannot be used: {why}"))
}

/// A certificate of a trusted authority, of whatever host; without an authority any certificate: the session is
/// unreadable to those who only listen, which is what `prefer` and a bare `require` promise.
#[derive(Debug)]
struct AnyHost {
    authority: Option<Arc<WebPkiServerVerifier>>,
    algorithms: WebPkiSupportedAlgorithms,
}

impl ServerCertVerifier for AnyHost {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let Some(authority) = &self.authority else { return Ok(ServerCertVerified::assertion()) };
        match authority.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now) {
            // The name is checked last: everything else is in order.
            Err(Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) => Ok(ServerCertVerified::assertion()),
            otherwise => otherwise,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, cert, dss, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, cert, dss, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}
