//! What an answer means: the contract's rules, then the defaults of HTTP.

use std::borrow::Cow;
use std::time::SystemTime;

use hyper::StatusCode;
use hyper::header::HeaderMap;
use serde_json::Value;

use super::answer::{Answer, End};
use super::clean::one_line;
use super::retry_after::retry_after;
use crate::core::contract::{Class, Contract, Rule, Source};
use crate::core::evidence::{Evidence, Finding};
use crate::core::reason::Reason;

/// How long a stored receipt may be, in bytes.
const RECEIPT_MAX_BYTES: usize = 500;

/// How much of an answer's body is needed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Reads {
    /// All of it: a rule, the receipt or the request id is in it.
    Whole,
    /// As much as explains the answer.
    Excerpt,
    /// None of it.
    Nothing,
}

/// How much of the body of an answer with that head is needed.
pub(super) fn reads(contract: &Contract, status: StatusCode, headers: &HeaderMap) -> Reads {
    let class = match first_by_head(contract, status, headers).next() {
        Some(rule) if rule.when.reads_body() => return Reads::Whole,
        Some(rule) => class_of(rule.class, status).0,
        None => default_of(status).0,
    };
    let (sources, otherwise) = if class == Evidence::Accepted {
        (contract.receipt.id.as_slice(), Reads::Nothing)
    } else {
        (contract.receipt.request_id.as_slice(), Reads::Excerpt)
    };
    if sources.iter().any(|source| matches!(source, Source::Json(_))) { Reads::Whole } else { otherwise }
}

/// What the answer means. `wall` is now, for an answer without a date.
pub(super) fn judge(contract: &Contract, answer: &Answer, wall: SystemTime) -> Finding {
    let mut decided = None;
    for rule in first_by_head(contract, answer.status, &answer.headers) {
        if rule.when.reads_body() && answer.body.end != End::Complete {
            // It might be this rule or one below it; nobody can tell any more.
            return with_head(Finding::because(Evidence::UnknownAnswer, Reason::UnknownAnswer), answer, wall);
        }
        if rule.when.body_matches(answer.body.json.as_ref()) {
            decided = Some(rule);
            break;
        }
    }
    let (evidence, reason) =
        decided.map_or_else(|| default_of(answer.status), |rule| class_of(rule.class, answer.status));
    let mut finding = with_head(Finding::new(evidence, reason), answer, wall);
    if let Some(rule) = decided {
        finding.then.clone_from(&rule.then);
        finding.wait = rule.wait;
    }
    if evidence == Evidence::Accepted {
        add_receipt(&mut finding, contract, answer);
    }
    finding
}

/// The rules that status and headers allow, in order. None for an answer that is no final one.
fn first_by_head<'a>(
    contract: &'a Contract,
    status: StatusCode,
    headers: &'a HeaderMap,
) -> impl Iterator<Item = &'a Rule> {
    let header = |name: &str| -> Vec<&'a str> {
        headers.get_all(name).iter().filter_map(|value| std::str::from_utf8(value.as_bytes()).ok()).collect()
    };
    contract
        .rules
        .iter()
        .filter(move |rule| !status.is_informational() && rule.when.head_matches(status.as_u16(), header))
}

fn with_head(mut finding: Finding, answer: &Answer, wall: SystemTime) -> Finding {
    finding.status = Some(answer.status.as_u16());
    if !answer.status.is_success() {
        finding.retry_after = retry_after(&answer.headers, wall);
    }
    finding
}

fn class_of(class: Class, status: StatusCode) -> (Evidence, Option<Reason>) {
    match class {
        Class::Applied | Class::Duplicate => (Evidence::Accepted, None),
        Class::NotApplied if status == StatusCode::TOO_MANY_REQUESTS => (Evidence::Deferred, Some(Reason::Throttled)),
        Class::NotApplied => (Evidence::Deferred, Some(Reason::Deferred)),
        Class::Rejected => (Evidence::Rejected { replayed: false }, Some(Reason::Rejected)),
        Class::Blocked => (Evidence::Blocked, Some(Reason::CredentialsRefused)),
        Class::InFlight => (Evidence::InFlight, Some(Reason::InFlight)),
        Class::KeyConflict => (Evidence::KeyConflict, Some(Reason::KeyConflict)),
        Class::Unknown if status.is_server_error() => (Evidence::UnknownAnswer, Some(Reason::ServerError)),
        Class::Unknown => (Evidence::UnknownAnswer, Some(Reason::UnknownAnswer)),
    }
}

/// What an answer means that the contract is silent about.
fn default_of(status: StatusCode) -> (Evidence, Option<Reason>) {
    let class = match status.as_u16() {
        200..=299 => Class::Applied,
        // Never followed: the effect was asked of this place.
        301 | 302 | 307 | 308 => Class::Rejected,
        401 | 407 => Class::Blocked,
        // 408: the request may have been read. 409: of what, only the contract knows.
        408 | 409 => Class::Unknown,
        421 | 425 | 429 => Class::NotApplied,
        400..=499 => Class::Rejected,
        _ => Class::Unknown,
    };
    class_of(class, status)
}

fn add_receipt(finding: &mut Finding, contract: &Contract, answer: &Answer) {
    let sources = &contract.receipt.id;
    let text = sources.iter().find_map(|source| value_at(answer, source));
    finding.receipt = text.map(|text| one_line(text.as_bytes(), RECEIPT_MAX_BYTES));
    let in_body = sources.iter().any(|source| matches!(source, Source::Json(_)));
    if finding.receipt.is_none() && in_body && answer.body.end != End::Complete {
        finding.detail = Some(format!("no receipt: the answer's body {}", answer.body.end.sentence()));
    }
}

/// The text at a place in an answer; numbers as JSON writes them.
pub(super) fn value_at<'a>(answer: &'a Answer, source: &Source) -> Option<Cow<'a, str>> {
    match source {
        Source::Header(name) => answer.headers.get(name).map(|value| String::from_utf8_lossy(value.as_bytes())),
        Source::Json(pointer) => match answer.body.json.as_ref()?.pointer(pointer)? {
            Value::String(text) => Some(Cow::Borrowed(text)),
            Value::Number(number) => Some(Cow::Owned(number.to_string())),
            Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::super::answer::Body;
    use super::*;
    use crate::core::contract::{JsonIs, Receipt, Rung, StatusSet, TextIs, When};
    use crate::destination::testing::operation;
    use hyper::header::{HeaderName, HeaderValue};
    use std::time::Duration;

    fn answer(status: u16, headers: &[(&str, &str)], body: &str, end: End) -> Answer {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            let name = HeaderName::from_bytes(name.as_bytes()).expect("a name");
            map.append(name, HeaderValue::from_str(value).expect("a value"));
        }
        let json = (end == End::Complete).then(|| serde_json::from_str(body).ok()).flatten();
        let body = Body { bytes: body.to_owned().into(), end, json };
        Answer { status: StatusCode::from_u16(status).expect("a status"), headers: map, body }
    }

    fn contract(rules: Vec<Rule>) -> Contract {
        Contract { rules, ..operation().terms.contract }
    }

    fn rule(status: u16, json: Option<(&str, &str)>, class: Class) -> Rule {
        let json = json.map(|(at, is)| (at.to_owned(), JsonIs::Text(TextIs::new(is)))).into_iter().collect();
        let when = When { status: Some(vec![StatusSet::Exact(status)]), headers: vec![], json };
        Rule { when, class, then: None, wait: None }
    }

    fn judged(contract: &Contract, answer: &Answer) -> Finding {
        judge(contract, answer, SystemTime::UNIX_EPOCH)
    }

    #[test]
    fn without_a_rule_the_status_decides() {
        let contract = contract(vec![]);
        let rejected = Evidence::Rejected { replayed: false };
        for (statuses, evidence, reason) in [
            (&[200, 201, 202, 204, 299][..], Evidence::Accepted, None),
            (
                &[301, 302, 307, 308, 400, 403, 404, 405, 410, 413, 422, 428, 431, 451, 499],
                rejected,
                Some(Reason::Rejected),
            ),
            (&[101, 300, 303, 304, 305, 408, 409, 600, 999], Evidence::UnknownAnswer, Some(Reason::UnknownAnswer)),
            (&[401, 407], Evidence::Blocked, Some(Reason::CredentialsRefused)),
            (&[421, 425], Evidence::Deferred, Some(Reason::Deferred)),
            (&[429], Evidence::Deferred, Some(Reason::Throttled)),
            (&[500, 502, 503, 504, 599], Evidence::UnknownAnswer, Some(Reason::ServerError)),
        ] {
            for &status in statuses {
                let finding = judged(&contract, &answer(status, &[], "", End::Complete));
                assert_eq!((finding.evidence, finding.reason), (evidence, reason), "{status}");
                assert_eq!(finding.status, Some(status));
            }
        }
    }

    #[test]
    fn the_first_matching_rule_decides_before_the_defaults() {
        let mut waits = rule(409, Some(("/error/code", "in_*")), Class::InFlight);
        waits.wait = Some(Duration::from_secs(2));
        let mut known = rule(409, None, Class::Duplicate);
        known.then = Some(vec![Rung::Lookup]);
        let contract = contract(vec![waits, known]);
        let first = judged(&contract, &answer(409, &[], r#"{"error":{"code":"in_progress"}}"#, End::Complete));
        assert_eq!((first.evidence, first.wait), (Evidence::InFlight, Some(Duration::from_secs(2))));
        for body in ["{}", "not JSON", ""] {
            let second = judged(&contract, &answer(409, &[], body, End::Complete));
            assert_eq!((second.evidence, second.then), (Evidence::Accepted, Some(vec![Rung::Lookup])), "{body}");
        }
        let default = judged(&contract, &answer(400, &[], "", End::Complete));
        assert_eq!(default.evidence, Evidence::Rejected { replayed: false });
    }

    #[test]
    fn every_class_has_its_evidence() {
        for (class, _) in Class::ALL {
            let expected = match class {
                Class::Applied | Class::Duplicate => Evidence::Accepted,
                Class::NotApplied => Evidence::Deferred,
                Class::Rejected => Evidence::Rejected { replayed: false },
                Class::Blocked => Evidence::Blocked,
                Class::InFlight => Evidence::InFlight,
                Class::KeyConflict => Evidence::KeyConflict,
                Class::Unknown => Evidence::UnknownAnswer,
            };
            let contract = contract(vec![rule(418, None, class)]);
            assert_eq!(judged(&contract, &answer(418, &[], "", End::Complete)).evidence, expected);
        }
    }

    #[test]
    fn b06_an_unfinished_body_matters_only_where_a_rule_reads_it() {
        for end in [End::TooLong, End::TimedOut, End::Broken] {
            let by_body = contract(vec![rule(200, Some(("/ok", "false")), Class::Rejected)]);
            assert_eq!(judged(&by_body, &answer(200, &[], "{\"ok\":", end)).evidence, Evidence::UnknownAnswer);
            // Another status, so that rule cannot speak of it.
            assert_eq!(judged(&by_body, &answer(201, &[], "{\"ok\":", end)).evidence, Evidence::Accepted);
            // A rule above it has decided by the head already.
            let above =
                contract(vec![rule(200, None, Class::Applied), rule(200, Some(("/ok", "false")), Class::Rejected)]);
            assert_eq!(judged(&above, &answer(200, &[], "{\"ok\":", end)).evidence, Evidence::Accepted);
        }
    }

    #[test]
    fn a_missing_receipt_does_not_undo_the_success() {
        let mut contract = contract(vec![]);
        contract.receipt = Receipt { id: vec![Source::Json("/id".into())], request_id: None };
        let finding = judged(&contract, &answer(201, &[], "{\"id\":", End::Broken));
        assert_eq!((finding.evidence, finding.receipt), (Evidence::Accepted, None));
        assert_eq!(finding.detail.as_deref(), Some("no receipt: the answer's body broke off"));
    }

    #[test]
    fn a_receipt_is_text_or_a_number_as_written_and_bounded() {
        let mut contract = contract(vec![]);
        contract.receipt.id = vec![Source::Json("/a/0/id".into())];
        let receipt = |contract: &Contract, body: &str| {
            judged(contract, &answer(200, &[("x-id", "h-1")], body, End::Complete)).receipt
        };
        assert_eq!(receipt(&contract, r#"{"a":[{"id":"m\n1"}]}"#).as_deref(), Some("m\\n1"));
        assert_eq!(
            receipt(&contract, r#"{"a":[{"id":12345678901234567890123}]}"#).as_deref(),
            Some("12345678901234567890123")
        );
        assert_eq!(receipt(&contract, r#"{"a":[{"id":null}]}"#), None);
        let long = format!(r#"{{"a":[{{"id":"{}"}}]}}"#, "x".repeat(9000));
        assert!(receipt(&contract, &long).is_some_and(|text| text.len() <= RECEIPT_MAX_BYTES));
        contract.receipt.id = vec![Source::Header("x-id".into())];
        assert_eq!(receipt(&contract, "").as_deref(), Some("h-1"));
    }

    #[test]
    fn b12_retry_after_counts_on_every_answer_but_a_success() {
        let contract = contract(vec![]);
        for (status, expected) in [(429, Some(6)), (503, Some(6)), (409, Some(6)), (200, None), (202, None)] {
            let finding = judged(&contract, &answer(status, &[("retry-after", "6")], "", End::Complete));
            assert_eq!(finding.retry_after, expected.map(Duration::from_secs), "{status}");
        }
    }

    #[test]
    fn a_body_is_read_only_where_something_needs_it() {
        let reads = |contract: &Contract, status: u16| {
            super::reads(contract, StatusCode::from_u16(status).expect("a status"), &HeaderMap::new())
        };
        let mut contract = contract(vec![rule(409, Some(("/a", "b")), Class::InFlight)]);
        assert_eq!(reads(&contract, 200), Reads::Nothing);
        assert_eq!(reads(&contract, 400), Reads::Excerpt);
        assert_eq!(reads(&contract, 409), Reads::Whole);
        contract.receipt.id = vec![Source::Json("/id".into())];
        assert_eq!((reads(&contract, 200), reads(&contract, 400)), (Reads::Whole, Reads::Excerpt));
        contract.receipt.request_id = Some(Source::Json("/request".into()));
        assert_eq!(reads(&contract, 400), Reads::Whole);
    }
}
