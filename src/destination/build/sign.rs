//! Signatures of requests: Standard Webhooks 1.0. Time and signature are of one attempt, and are made over the bytes
//! that are handed to the connection.

use std::time::{SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use bytes::Bytes;
use hyper::header::{HeaderMap, HeaderName, HeaderValue};
use ring::hmac;
use ring::signature::Ed25519KeyPair;
use uuid::Uuid;

use super::unbuildable::Unbuildable;
use crate::core::credentials::{KeyBytes, Scheme, Signing, SigningKey};

const WEBHOOK_ID: HeaderName = HeaderName::from_static("webhook-id");
const WEBHOOK_TIMESTAMP: HeaderName = HeaderName::from_static("webhook-timestamp");
const WEBHOOK_SIGNATURE: HeaderName = HeaderName::from_static("webhook-signature");

/// Signs requests.
pub(super) struct Signer {
    scheme: Scheme,
    keys: Vec<Key>,
}

enum Key {
    Hmac(hmac::Key),
    Ed25519(Ed25519KeyPair),
}

impl Key {
    fn new(key: &SigningKey) -> Result<Self, Unbuildable> {
        Ok(match key.expose() {
            KeyBytes::Shared(secret) => Self::Hmac(hmac::Key::new(hmac::HMAC_SHA256, secret)),
            KeyBytes::Seed(seed) => {
                Self::Ed25519(Ed25519KeyPair::from_seed_unchecked(seed).map_err(|_| Unbuildable::Credentials)?)
            }
        })
    }

    /// With the name of its kind before it.
    fn sign(&self, head: &str, body: &Bytes) -> String {
        match self {
            Self::Hmac(key) => {
                let mut context = hmac::Context::with_key(key);
                context.update(head.as_bytes());
                context.update(body);
                format!("v1,{}", BASE64.encode(context.sign()))
            }
            Self::Ed25519(pair) => {
                let content = [head.as_bytes(), body].concat();
                format!("v1a,{}", BASE64.encode(pair.sign(&content)))
            }
        }
    }
}

impl Signer {
    pub(super) fn new(signing: &Signing) -> Result<Self, Unbuildable> {
        let keys: Result<Vec<_>, _> = signing.keys.iter().map(Key::new).collect();
        // A request without a signature would pass for one that was not asked for.
        let keys = keys.ok().filter(|keys| !keys.is_empty()).ok_or(Unbuildable::Credentials)?;
        Ok(Self { scheme: signing.scheme, keys })
    }

    /// Whether nothing else may set that header.
    pub(super) fn writes(&self, name: &HeaderName) -> bool {
        self.scheme.headers().contains(&name.as_str())
    }

    /// Gives the message its id, where the contract has not planted its key there.
    pub(super) fn name(headers: &mut HeaderMap, id: Uuid) -> Result<(), Unbuildable> {
        if !headers.contains_key(WEBHOOK_ID) {
            let id = HeaderValue::try_from(id.hyphenated().to_string()).map_err(|_| Unbuildable::Credentials)?;
            headers.insert(WEBHOOK_ID, id);
        }
        Ok(())
    }

    /// Signs a request that has its id, as of `at`. Signed before, it is signed anew.
    pub(super) fn sign(&self, headers: &mut HeaderMap, body: &Bytes, at: SystemTime) -> Result<(), Unbuildable> {
        let id = headers.get(WEBHOOK_ID).and_then(|id| id.to_str().ok()).ok_or(Unbuildable::Credentials)?;
        // A clock before 1970 is wrong in any case; the receiver will say so.
        let seconds = at.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        let head = format!("{id}.{seconds}.");
        let signatures: Vec<_> = self.keys.iter().map(|key| key.sign(&head, body)).collect();
        let signatures = HeaderValue::try_from(signatures.join(" ")).map_err(|_| Unbuildable::Credentials)?;
        headers.insert(WEBHOOK_TIMESTAMP, HeaderValue::from(seconds));
        headers.insert(WEBHOOK_SIGNATURE, signatures);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use ring::signature::{ED25519, KeyPair as _, UnparsedPublicKey};

    use super::*;
    use crate::core::target::Secret;

    fn signer(secrets: &[&str]) -> Signer {
        let keys = secrets.iter().map(|text| SigningKey::parse(&Secret::new(*text)).expect("a key")).collect();
        Signer::new(&Signing { scheme: Scheme::StandardWebhooks, keys }).expect("usable")
    }

    fn signed(signer: &Signer, id: &'static str, seconds: u64, body: &'static str) -> HeaderMap {
        let mut headers = HeaderMap::from_iter([(WEBHOOK_ID, HeaderValue::from_static(id))]);
        let at = UNIX_EPOCH + Duration::from_millis(seconds * 1000 + 999);
        signer.sign(&mut headers, &Bytes::from_static(body.as_bytes()), at).expect("signed");
        headers
    }

    #[test]
    fn b23_the_signature_is_that_of_the_specifications_own_libraries() {
        let signer = signer(&["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"]);
        let headers = signed(&signer, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, "{\"test\": 2432232314}");
        assert_eq!(headers["webhook-signature"], "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
        assert_eq!(headers["webhook-timestamp"], "1614265330");
    }

    #[test]
    fn while_a_receiver_changes_keys_a_request_is_signed_with_each() {
        let (old, new) =
            ("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "whsk_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=");
        let headers = signed(&signer(&[old, new]), "a", 7, "{}");
        let text = headers["webhook-signature"].to_str().expect("text");
        let (first, second) = text.split_once(' ').expect("two");
        assert_eq!(first, signed(&signer(&[old]), "a", 7, "{}")["webhook-signature"]);
        let seed: Vec<u8> = (0..32).collect();
        let public = Ed25519KeyPair::from_seed_unchecked(&seed).expect("a pair");
        let signature = BASE64.decode(second.strip_prefix("v1a,").expect("its kind")).expect("base64");
        let public = UnparsedPublicKey::new(&ED25519, public.public_key().as_ref().to_vec());
        public.verify(b"a.7.{}", &signature).expect("it verifies");
        assert!(public.verify(b"a.8.{}", &signature).is_err());
    }

    #[test]
    fn nothing_leaves_unsigned_where_there_is_no_key() {
        assert!(Signer::new(&Signing { scheme: Scheme::StandardWebhooks, keys: vec![] }).is_err());
    }
}
