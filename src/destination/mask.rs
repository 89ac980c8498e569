//! What must not be repeated: our credentials, and the body that was sent.

use std::collections::HashSet;

use super::build::basic;
use crate::core::target::{Auth, Target};

const MASKED: &[u8] = b"[masked]";

/// How many bytes in a row make an echo.
const ECHO_BYTES: usize = 16;

/// Shorter bodies say nothing that their echo would give away.
const ECHO_MIN_BYTES: usize = 4;

/// How much of a sent body is compared; nothing is shown of what was answered to a longer one.
const SENT_MAX_BYTES: usize = 256 * 1024;

/// Knows the credentials of a destination in the forms in which they are sent.
#[derive(Clone)]
pub(super) struct Mask {
    secrets: Vec<Vec<u8>>,
}

impl Mask {
    /// Of a destination.
    pub(super) fn of(target: &Target) -> Self {
        let mut mask = Self::new(&target.auth);
        for key in target.signing.iter().flat_map(|signing| &signing.keys) {
            let written = key.written().expose();
            // People show it with its prefix and without.
            mask.add(written.split_once('_').map_or(written, |(_, key)| key));
        }
        mask
    }

    pub(super) fn new(auth: &Auth) -> Self {
        let secrets = match auth {
            Auth::None => vec![],
            Auth::Bearer(token) => vec![token.expose().to_owned()],
            Auth::Basic { user, password } => {
                vec![basic(user, password.expose()), password.expose().to_owned()]
            }
            Auth::Header { value, .. } => vec![value.expose().to_owned()],
            Auth::OAuth2(client) => vec![client.client_secret.expose().to_owned()],
        };
        let mut mask = Self { secrets: vec![] };
        secrets.iter().for_each(|secret| mask.add(secret));
        mask
    }

    fn add(&mut self, secret: &str) {
        let secret = plain(secret.as_bytes()).0;
        if !secret.is_empty() {
            self.secrets.push(secret);
        }
    }

    /// The same, with one secret more.
    pub(super) fn and(&self, secret: &str) -> Self {
        let mut mask = self.clone();
        mask.add(secret);
        mask
    }

    /// The first `window` bytes of `text` with credentials and echoes of `sent` masked.
    pub(super) fn apply(&self, text: &[u8], window: usize, sent: &[u8]) -> Vec<u8> {
        if sent.len() > SENT_MAX_BYTES {
            return Vec::new();
        }
        let seen = &text[..text.len().min(window)];
        let (plain_text, places) = plain(seen);
        let mut hidden = vec![false; seen.len()];
        let mut hide = |from: usize, length: usize| {
            if let (Some(&first), Some(&last)) = (places.get(from), places.get(from + length - 1)) {
                hidden[first..=last].fill(true);
            }
        };
        for secret in &self.secrets {
            for at in positions(&plain_text, |part| part == secret.as_slice(), secret.len()) {
                hide(at, secret.len());
            }
        }
        let (sent, _) = plain(sent);
        let length = sent.len().min(ECHO_BYTES);
        if length >= ECHO_MIN_BYTES && plain_text.len() >= length {
            let parts: HashSet<&[u8]> = plain_text.windows(length).collect();
            let echoed: HashSet<&[u8]> = sent.windows(length).filter(|part| parts.contains(part)).collect();
            for at in positions(&plain_text, |part| echoed.contains(part), length) {
                hide(at, length);
            }
        }
        // The window may end within a secret, which then cannot be recognised.
        let cut = if text.len() > seen.len() { self.secrets.iter().map(Vec::len).max().unwrap_or(0) } else { 0 };
        show(&seen[..seen.len().saturating_sub(cut)], &hidden)
    }
}

/// `text` without whitespace and backslashes, so that neither escaping nor layout disguises an echo, and where each
/// byte stood.
fn plain(text: &[u8]) -> (Vec<u8>, Vec<usize>) {
    let kept = text.iter().enumerate().filter(|(_, b)| !b.is_ascii_whitespace() && **b != b'\\');
    kept.map(|(at, b)| (*b, at)).unzip()
}

fn positions(text: &[u8], is: impl Fn(&[u8]) -> bool, length: usize) -> Vec<usize> {
    text.windows(length).enumerate().filter(|(_, part)| is(part)).map(|(at, _)| at).collect()
}

fn show(text: &[u8], hidden: &[bool]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut before = false;
    for (byte, &hide) in text.iter().zip(hidden) {
        if !hide {
            out.push(*byte);
        } else if !before {
            out.extend_from_slice(MASKED);
        }
        before = hide;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::credentials::{Scheme, Signing, SigningKey};
    use crate::core::target::Secret;

    fn masked(auth: &Auth, text: &str, sent: &str) -> String {
        String::from_utf8(Mask::new(auth).apply(text.as_bytes(), 4096, sent.as_bytes())).expect("text")
    }

    #[test]
    fn credentials_are_masked_in_every_form_they_are_sent_in() {
        let bearer = Auth::Bearer(Secret::new("tok/en"));
        assert_eq!(masked(&bearer, "bad token tok/en, \"tok\\/en\"", ""), "bad token [masked], \"[masked]\"");
        let basic = Auth::Basic { user: "Aladdin".into(), password: Secret::new("open sesame") };
        assert_eq!(masked(&basic, "QWxhZGRpbjpvcGVuIHNlc2FtZQ== is open sesame", ""), "[masked] is [masked]");
        let header = Auth::Header { name: "x-key".into(), value: Secret::new("k1") };
        assert_eq!(masked(&header, "k1k1", ""), "[masked]");
    }

    #[test]
    fn keys_that_sign_are_masked_with_their_prefix_and_without() {
        let mut target = crate::destination::testing::target("http://h.example");
        let key = SigningKey::parse(&Secret::new("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")).expect("a key");
        target.signing = Some(Signing { scheme: Scheme::StandardWebhooks, keys: vec![key] });
        let said = b"MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw is whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
        assert_eq!(Mask::of(&target).apply(said, 4096, b""), b"[masked] is whsec_[masked]");
    }

    #[test]
    fn the_sent_body_is_not_echoed_whatever_its_layout() {
        let sent = r#"{"card":"4111111111111111","name":"Ann"}"#;
        for echo in [
            sent.to_owned(),
            r#"{"card": "4111111111111111", "name": "Ann"}"#.to_owned(),
            serde_json::to_string(sent).expect("text"),
            sent[..30].to_owned(),
        ] {
            let shown = masked(&Auth::None, &format!("invalid: {echo}!"), sent);
            assert!(shown.starts_with("invalid:") && shown.contains("[masked]") && !shown.contains("4111"), "{shown}");
        }
        assert_eq!(masked(&Auth::None, "pin 1234 is wrong", "1234"), "pin [masked] is wrong");
        assert_eq!(masked(&Auth::None, "channel is missing", sent), "channel is missing");
    }

    #[test]
    fn a_secret_at_the_edge_of_the_window_is_cut_off() {
        let mask = Mask::new(&Auth::Bearer(Secret::new("secret-token")));
        let shown = mask.apply(b"0123456789secret-token and more", 18, b"");
        assert_eq!(shown, b"012345");
    }

    #[test]
    fn nothing_is_shown_beside_a_body_too_long_to_compare() {
        let sent = vec![b'x'; SENT_MAX_BYTES + 1];
        assert!(Mask::new(&Auth::None).apply(b"too large", 4096, &sent).is_empty());
    }
}
