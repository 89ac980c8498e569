//! Headers that come from data, and what they may not say.

use std::fmt;

use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};

use super::members::members;
use super::planting::{Planting, What};
use super::sign::Signer;
use super::unbuildable::Unbuildable;

/// How much header text an action may bring, in bytes. Servers commonly refuse heads of more than 8 to 64 KiB.
const HEADERS_MAX_BYTES: usize = 64 * 1024;

/// Why a header cannot come from data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::destination) enum Rule {
    /// It says where the message ends or what becomes of the connection.
    Framing,
    /// It holds our credentials.
    Credentials,
    /// It holds what the contract plants there.
    Planted(What),
    /// It belongs to the signature.
    Signature,
    /// `Outbox-…` is ours.
    Ours,
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Framing => f.write_str("it belongs to the connection, not to the request"),
            Self::Credentials => f.write_str("it holds the destination's credentials"),
            Self::Planted(what) => write!(f, "it holds {what}"),
            Self::Signature => f.write_str("it belongs to the request's signature"),
            Self::Ours => f.write_str("names that begin with `outbox-` are reserved"),
        }
    }
}

/// What the names of headers are held against.
pub(super) struct Reserved<'a> {
    /// The header that the credentials go into, besides `Authorization`; in lower case.
    pub(super) auth: Option<&'a str>,
    /// What signs the request.
    pub(super) signer: Option<&'a Signer>,
    /// What the contract plants in the request.
    pub(super) plantings: &'a [Planting<'a>],
}

impl Reserved<'_> {
    fn rule(&self, name: &HeaderName) -> Option<Rule> {
        if is_framing(name) {
            Some(Rule::Framing)
        } else if *name == header::AUTHORIZATION || self.auth == Some(name.as_str()) {
            Some(Rule::Credentials)
        } else if let Some(planting) = self.plantings.iter().find(|planting| planting.header() == Some(name.as_str())) {
            Some(Rule::Planted(planting.what))
        } else if self.signer.is_some_and(|signer| signer.writes(name)) {
            Some(Rule::Signature)
        } else if name.as_str().starts_with("outbox-") {
            Some(Rule::Ours)
        } else {
            None
        }
    }
}

/// Whether the header says where the message ends or what becomes of the connection.
pub(super) fn is_framing(name: &HeaderName) -> bool {
    const OURS: [HeaderName; 8] = [
        header::HOST,
        header::CONTENT_LENGTH,
        header::TRANSFER_ENCODING,
        header::CONNECTION,
        header::UPGRADE,
        header::EXPECT,
        header::TE,
        header::TRAILER,
    ];
    OURS.contains(name) || matches!(name.as_str(), "keep-alive" | "proxy-connection")
}

/// Adds the headers of a JSON object of strings.
pub(super) fn add_from_data(out: &mut HeaderMap, text: &str, reserved: &Reserved<'_>) -> Result<(), Unbuildable> {
    if text.len() > HEADERS_MAX_BYTES {
        return Err(Unbuildable::HeadersTooLong);
    }
    let given = members(text).ok_or(Unbuildable::HeadersNotObject)?;
    let mut seen: Vec<HeaderName> = Vec::with_capacity(given.len());
    for (index, (name, value)) in given.iter().enumerate() {
        let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| Unbuildable::HeaderName(index + 1))?;
        if let Some(rule) = reserved.rule(&name) {
            return Err(Unbuildable::HeaderReserved { name: name.as_str().to_owned(), rule });
        }
        if seen.contains(&name) {
            return Err(Unbuildable::HeaderTwice(name.as_str().to_owned()));
        }
        let value: String =
            serde_json::from_str(value.get()).map_err(|_| Unbuildable::HeaderValue(name.as_str().to_owned()))?;
        set(out, name.clone(), &value)?;
        seen.push(name);
    }
    Ok(())
}

/// Sets one header.
pub(super) fn set(out: &mut HeaderMap, name: HeaderName, value: &str) -> Result<(), Unbuildable> {
    let value = visible(value).ok_or_else(|| Unbuildable::HeaderValue(name.as_str().to_owned()))?;
    out.try_insert(name, value).map_err(|_| Unbuildable::HeadersTooLong)?;
    Ok(())
}

/// A header value of visible ASCII, space and tab. What else RFC 9110 section 5.5 tolerates, servers read differently.
pub(super) fn visible(text: &str) -> Option<HeaderValue> {
    let only = text.bytes().all(|b| matches!(b, b' '..=b'~' | b'\t'));
    HeaderValue::from_str(text).ok().filter(|_| only)
}

/// Whether a text is a W3C `traceparent` (Trace Context level 1, section 3.2.2) that may be passed on.
pub(super) fn is_traceparent(text: &str) -> bool {
    let hex = |part: &str, length| {
        part.len() == length && part.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
    };
    let not_zero = |part: &str| part.bytes().any(|b| b != b'0');
    let mut parts = text.splitn(5, '-');
    let (Some(version), Some(trace), Some(parent), Some(flags)) =
        (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return false;
    };
    hex(version, 2)
        && version != "ff"
        && hex(trace, 32)
        && not_zero(trace)
        && hex(parent, 16)
        && not_zero(parent)
        && hex(flags, 2)
        && (parts.next().is_none() || version != "00")
}

#[cfg(test)]
mod tests {
    use super::super::planting::plantings;
    use super::*;
    use crate::core::action::ActionId;
    use crate::core::credentials::{Scheme, Signing, SigningKey};
    use crate::core::target::Secret;
    use crate::destination::testing::operation;
    use uuid::Uuid;

    fn add(text: &str) -> Result<HeaderMap, Unbuildable> {
        let mut out = HeaderMap::new();
        let operation = operation();
        let plantings = plantings(&operation, ActionId(Uuid::nil()));
        let key = SigningKey::parse(&Secret::new("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")).expect("a key");
        let signer = Signer::new(&Signing { scheme: Scheme::StandardWebhooks, keys: vec![key] }).expect("usable");
        let reserved = Reserved { auth: Some("x-api-key"), signer: Some(&signer), plantings: &plantings };
        add_from_data(&mut out, text, &reserved).map(|()| out)
    }

    #[test]
    fn b19_what_could_inject_is_refused_and_never_echoed() {
        for value in ["a\\r\\nX-Evil: 1", "a\\u0000b", "caf\\u00e9", "a\\nb", "\\u007f"] {
            let error = add(&format!("{{\"X-Note\":\"{value}\"}}")).expect_err(value);
            assert_eq!(error, Unbuildable::HeaderValue("x-note".into()));
            assert!(!error.to_string().contains("Evil"));
        }
        for name in ["", "a b", "a:b", "a\\r\\nX-Evil", "caf\\u00e9"] {
            let error = add(&format!("{{\"A\":\"1\",\"{name}\":\"v\"}}")).expect_err(name);
            assert_eq!(error, Unbuildable::HeaderName(2));
            assert!(!error.to_string().contains("Evil"));
        }
        assert_eq!(add("{\"A\":1}"), Err(Unbuildable::HeaderValue("a".into())));
        assert_eq!(add("[]"), Err(Unbuildable::HeadersNotObject));
        assert_eq!(add("{\"A\":\"1\",\"a\":\"2\"}"), Err(Unbuildable::HeaderTwice("a".into())));
    }

    #[test]
    fn b19_reserved_names_cannot_come_from_data() {
        for (name, rule) in [
            ("Host", Rule::Framing),
            ("content-length", Rule::Framing),
            ("Transfer-Encoding", Rule::Framing),
            ("Connection", Rule::Framing),
            ("Upgrade", Rule::Framing),
            ("Expect", Rule::Framing),
            ("TE", Rule::Framing),
            ("Trailer", Rule::Framing),
            ("Authorization", Rule::Credentials),
            ("X-Api-Key", Rule::Credentials),
            ("Idempotency-Key", Rule::Planted(What::Key)),
            ("Webhook-Timestamp", Rule::Signature),
            ("Outbox-Anything", Rule::Ours),
        ] {
            let error = add(&format!("{{\"{name}\":\"v\"}}")).expect_err(name);
            assert_eq!(error, Unbuildable::HeaderReserved { name: name.to_ascii_lowercase(), rule });
        }
    }

    #[test]
    fn ordinary_headers_pass() {
        let headers = add("{\"X-Note\":\"a \\t~\",\"Content-Type\":\"application/cloudevents+json\"}").expect("valid");
        assert_eq!(headers["x-note"], "a \t~");
        assert_eq!(headers.len(), 2);
    }

    #[test]
    fn only_a_valid_traceparent_is_passed_on() {
        let valid = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        assert!(is_traceparent(valid));
        assert!(is_traceparent(&format!("01{}-later", &valid[2..])));
        for bad in [
            "",
            "00",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-x",
        ] {
            assert!(!is_traceparent(bad), "{bad}");
        }
    }
}
