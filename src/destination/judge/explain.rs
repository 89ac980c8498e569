//! An answer that is no success, in one bounded line for a person.

use hyper::Uri;
use hyper::header::LOCATION;

use super::super::answer::{Answer, End};
use super::super::clean::one_line;
use super::super::mask::Mask;
use super::places::value_at;
use crate::core::contract::Contract;

const ID_MAX_BYTES: usize = 200;
const HOST_MAX_BYTES: usize = 255;
const EXCERPT_MAX_BYTES: usize = 512;

/// How much of a body is looked at for the excerpt, before masking and escaping, in bytes.
const WINDOW_BYTES: usize = 4096;

/// Status, where a redirect points, the destination's id of the request and the beginning of the body.
pub(in crate::destination) fn explain(contract: &Contract, answer: &Answer, mask: &Mask, sent: &[u8]) -> String {
    let mut text = match answer.status.canonical_reason() {
        Some(reason) => format!("{} {reason}", answer.status.as_u16()),
        None => answer.status.as_u16().to_string(),
    };
    if let Some(location) = answer.headers.get(LOCATION).filter(|_| answer.status.is_redirection()) {
        text.push_str(", not followed to ");
        // The host only: path and query of a redirect may hold what was sent, or a token.
        match Uri::try_from(location.as_bytes()) {
            Ok(uri) => match uri.host() {
                Some(host) => text.push_str(&one_line(host.as_bytes(), HOST_MAX_BYTES)),
                None => text.push_str("the same host"),
            },
            Err(_) => text.push_str("an unreadable location"),
        }
    }
    if let Some(id) = contract.receipt.request_id.as_ref().and_then(|source| value_at(answer, source)) {
        text.push_str(", request ");
        text.push_str(&one_line(&mask.apply(id.as_bytes(), WINDOW_BYTES, b""), ID_MAX_BYTES));
    }
    match answer.body.end {
        End::Complete => {}
        end @ (End::TooLong | End::TimedOut | End::Broken) => {
            text.push_str(", its body ");
            text.push_str(end.sentence());
        }
    }
    let excerpt = mask.apply(answer.body.bytes.trim_ascii(), WINDOW_BYTES, sent);
    if !excerpt.is_empty() {
        text.push_str(": ");
        text.push_str(&one_line(&excerpt, EXCERPT_MAX_BYTES));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::super::super::answer::Body;
    use super::*;
    use crate::core::contract::Source;
    use crate::core::target::{Auth, Secret};
    use crate::destination::testing::operation;
    use hyper::StatusCode;
    use hyper::header::{HeaderMap, HeaderValue};

    fn explained(status: u16, location: Option<&str>, body: &[u8], sent: &[u8]) -> String {
        let mut headers = HeaderMap::new();
        headers.insert("x-request-id", HeaderValue::from_static("req-1"));
        if let Some(location) = location {
            headers.insert(LOCATION, HeaderValue::from_str(location).expect("a value"));
        }
        let body = Body { bytes: body.to_vec().into(), end: End::Complete, json: None };
        let answer = Answer { status: StatusCode::from_u16(status).expect("a status"), headers, body };
        let mut contract = operation().terms.contract;
        contract.receipt.request_id = Some(Source::Header("x-request-id".into()));
        explain(&contract, &answer, &Mask::new(&Auth::Bearer(Secret::new("hunter2"))), sent)
    }

    #[test]
    fn b10_a_redirect_names_status_and_host_only() {
        assert_eq!(
            explained(302, Some("https://other.example/final?token=1"), b"", b""),
            "302 Found, not followed to other.example, request req-1"
        );
        assert!(explained(301, Some("/final"), b"", b"").contains("not followed to the same host"));
        assert!(explained(301, Some("http://a b/"), b"", b"").contains("an unreadable location"));
    }

    #[test]
    fn b81_a_body_is_one_short_line_without_secrets() {
        let body = b" \n{\"error\":\"bad\x1b[2J token hunter2\",\n\"you_sent\":{\"a\":\"0123456789abcdef\"}}\xff";
        let text = explained(500, None, body, b"{\"a\":\"0123456789abcdef\"}");
        assert!(
            text.starts_with("500 Internal Server Error, request req-1: {\"error\":\"bad\\u{1b}[2J token [masked]")
        );
        assert!(!text.contains("0123456789abcdef") && text.ends_with("\\xff"), "{text}");
        assert!(explained(500, None, &[b'x'; 100_000], b"").len() < 600);
    }
}
