//! Credentials that are more than a header which stands still: signatures, and tokens that are fetched.

use std::fmt;

use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

use super::request::Template;
use super::target::Secret;

/// How requests are signed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Scheme {
    /// Standard Webhooks 1.0: three headers, signed over id, time and body.
    StandardWebhooks,
}

impl Scheme {
    /// Every scheme, with its name in a destination's `sign`.
    pub const ALL: [(Self, &'static str); 1] = [(Self::StandardWebhooks, "standard-webhooks")];

    /// Every scheme, with its name in a contract's `sign`: a contract fixes the version it was read in.
    pub const PROMISED: [(Self, &'static str); 1] = [(Self::StandardWebhooks, "standard-webhooks-v1")];

    /// The headers it writes, names in lower case. The first of them is the same in every attempt, the others are not.
    pub const fn headers(self) -> [&'static str; 3] {
        match self {
            Self::StandardWebhooks => ["webhook-id", "webhook-timestamp", "webhook-signature"],
        }
    }
}

/// What requests to a destination are signed with.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Signing {
    /// How.
    pub scheme: Scheme,
    /// With each of these; several while a receiver changes from one to another. Empty only where secrets are not read.
    pub keys: Vec<SigningKey>,
}

/// A key that signs.
#[derive(Clone, PartialEq, Eq)]
pub struct SigningKey {
    bytes: KeyBytes,
    written: Secret,
}

/// What a signing key is made of.
#[derive(Clone, PartialEq, Eq)]
pub enum KeyBytes {
    /// Shared with the receiver, for HMAC-SHA256: 24 to 64 bytes.
    Shared(Vec<u8>),
    /// The seed of an Ed25519 key pair; the receiver has the public key.
    Seed([u8; 32]),
}

/// Why a text is no signing key. Never quotes it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum BadKey {
    /// Neither kind.
    #[error("is a secret that begins with neither `whsec_` (shared secret) nor `whsk_` (Ed25519 private key)")]
    Prefix,
    /// Not base64.
    #[error("is a secret that is not base64 behind its `whsec_` or `whsk_`")]
    Base64,
    /// A shared secret of another length.
    #[error("is a secret of {0} bytes; a `whsec_` secret has 24 to 64 bytes, in base64")]
    Length(usize),
    /// An Ed25519 key of another length.
    #[error("is a secret of {0} bytes; a `whsk_` secret is the seed of an Ed25519 key, 32 bytes in base64")]
    SeedLength(usize),
}

/// Padded or not, as tools write it.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

impl SigningKey {
    /// Reads a key as Standard Webhooks writes it.
    ///
    /// # Errors
    /// Where it is none.
    pub fn parse(written: &Secret) -> Result<Self, BadKey> {
        let text = written.expose().trim();
        let decoded = |text: &str| BASE64.decode(text).map_err(|_| BadKey::Base64);
        let bytes = if let Some(shared) = text.strip_prefix("whsec_") {
            let bytes = decoded(shared)?;
            if !(24..=64).contains(&bytes.len()) {
                return Err(BadKey::Length(bytes.len()));
            }
            KeyBytes::Shared(bytes)
        } else if let Some(seed) = text.strip_prefix("whsk_") {
            let bytes = decoded(seed)?;
            KeyBytes::Seed(bytes.try_into().map_err(|bytes: Vec<u8>| BadKey::SeedLength(bytes.len()))?)
        } else {
            return Err(BadKey::Prefix);
        };
        Ok(Self { bytes, written: Secret::new(text) })
    }

    /// The key, for the one place that signs.
    pub fn expose(&self) -> &KeyBytes {
        &self.bytes
    }

    /// As it was written, for the one place that masks it.
    pub fn written(&self) -> &Secret {
        &self.written
    }
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[secret]")
    }
}

/// OAuth 2.0 client credentials (RFC 6749 section 4.4): a token is fetched with them, and requests carry the token.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ClientCredentials {
    /// Where tokens are had: `https://` or `http://`, without placeholders, credentials and fragment.
    pub token_url: Template,
    /// Who we are there.
    pub client_id: String,
    /// How we prove it.
    pub client_secret: Secret,
    /// How the proof is sent.
    pub client_auth: ClientAuth,
    /// What the token is to be good for; `None` = what the server gives.
    pub scope: Option<String>,
    /// Whom the token is for; not part of the RFC, and some servers ask for it.
    pub audience: Option<String>,
}

/// How a client proves itself to a token server (RFC 6749 section 2.3.1).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ClientAuth {
    /// `Authorization: Basic …`, which every server must take.
    Basic,
    /// As fields of the form, for servers that take nothing else.
    Post,
}

impl ClientAuth {
    /// Every way, with its name in `client_auth`.
    pub const ALL: [(Self, &'static str); 2] = [(Self::Basic, "basic"), (Self::Post, "post")];
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(text: &str) -> Result<SigningKey, BadKey> {
        SigningKey::parse(&Secret::new(text))
    }

    #[test]
    fn a_signing_key_is_read_as_it_is_written_or_refused_without_showing_it() {
        let shared = key("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").expect("24 bytes");
        assert!(matches!(shared.expose(), KeyBytes::Shared(bytes) if bytes.len() == 24));
        let seed = key("whsk_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=").expect("32 bytes");
        assert!(matches!(seed.expose(), KeyBytes::Seed(seed) if seed[31] == 31));
        let unpadded = key("whsk_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8").expect("the same");
        assert!(unpadded.expose() == seed.expose());
        for (text, why) in [
            ("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", BadKey::Prefix),
            ("whpk_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=", BadKey::Prefix),
            ("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLa-_", BadKey::Base64),
            ("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaQ", BadKey::Length(23)),
            ("whsec_", BadKey::Length(0)),
            ("whsk_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", BadKey::SeedLength(24)),
        ] {
            assert_eq!(key(text), Err(why), "{text}");
            assert!(!why.to_string().contains("MfKQ"));
        }
        assert_eq!(format!("{shared:?}"), "[secret]");
    }
}
