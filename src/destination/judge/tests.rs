//! Answers to a send, judged.

use super::places::RECEIPT_MAX_BYTES;
use super::*;
use crate::core::contract::{Receipt, Source, TextIs, When};
use crate::destination::testing::{answer, operation, when};
use proptest::prelude::*;
use serde_json::json;
use std::time::Duration;

fn contract(rules: Vec<Rule>) -> Contract {
    Contract { rules, ..operation().terms.contract }
}

fn rule(status: u16, json: Option<(&str, &str)>, class: Class) -> Rule {
    Rule { when: when(status, json), class, then: None, wait: None }
}

fn held(contract: &Contract, expected: Vec<Expected<'_>>, answer: &Answer) -> Finding {
    let against = Against { contract, keyed: contract.key.is_some(), expected };
    judge(&against, answer, SystemTime::UNIX_EPOCH)
}

fn judged(contract: &Contract, answer: &Answer) -> Finding {
    held(contract, vec![], answer)
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
        assert_eq!((second.evidence, second.then), (Evidence::UnknownAnswer, Some(vec![Rung::Lookup])), "{body}");
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
        let above = contract(vec![rule(200, None, Class::Applied), rule(200, Some(("/ok", "false")), Class::Rejected)]);
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

fn expecting(sent: &[(&'static str, Option<serde_json::Value>, bool)]) -> Vec<Expected<'static>> {
    sent.iter().map(|(answer, sent, ours)| Expected::test(answer, sent.clone(), *ours)).collect()
}

#[test]
fn r16_a_confirmation_must_be_of_what_was_sent() {
    let mut contract = contract(vec![]);
    contract.receipt.id = vec![Source::Json("/id".into())];
    let expected = || expecting(&[("/amount", Some(json!("100")), false)]);
    let judged = |status, body: &str, end| held(&contract, expected(), &answer(status, &[], body, end));
    let same = judged(200, r#"{"id":"p1","amount":1e2}"#, End::Complete);
    assert_eq!((same.evidence, same.receipt.as_deref()), (Evidence::Accepted, Some("p1")));
    let other = judged(200, r#"{"id":"p1","amount":99}"#, End::Complete);
    assert_eq!((other.evidence, other.reason), (Evidence::Mismatch, Some(Reason::Mismatch)));
    assert_eq!(
        (other.receipt.as_deref(), other.detail.as_deref()),
        (Some("p1"), Some("`/amount` is not what was sent"))
    );
    for (body, end) in [("{\"id\":\"p1\"}", End::Complete), ("ok", End::Complete), ("{\"amount\":100", End::TimedOut)] {
        let missing = judged(200, body, end);
        assert_eq!(
            (missing.evidence, missing.reason),
            (Evidence::UnknownAnswer, Some(Reason::UnmatchedAnswer)),
            "{body}"
        );
    }
    assert_eq!(judged(400, "{}", End::Complete).evidence, Evidence::Rejected { replayed: false });
}

#[test]
fn a_refusal_is_a_replay_only_with_its_mark() {
    let mut contract = contract(vec![]);
    let judged = |contract: &Contract, headers: &[(&str, &str)], body: &str, end| {
        judged(contract, &answer(402, headers, body, end)).evidence
    };
    let mark = [("idempotent-replayed", "true")];
    assert_eq!(judged(&contract, &mark, "", End::Complete), Evidence::Rejected { replayed: false });
    let by_header = When { headers: vec![("idempotent-replayed".into(), TextIs::new("true"))], ..When::default() };
    contract.key.as_mut().expect("a key").replayed = Some(by_header);
    assert_eq!(judged(&contract, &mark, "", End::Broken), Evidence::Rejected { replayed: true });
    assert_eq!(judged(&contract, &[], "", End::Complete), Evidence::Rejected { replayed: false });
    contract.key.as_mut().expect("a key").replayed = Some(when(402, Some(("/duplicate", "true"))));
    for (body, end, replayed) in [
        ("{\"duplicate\":true}", End::Complete, true),
        ("{\"duplicate\":false}", End::Complete, false),
        ("{\"duplicate\":true}", End::Broken, false),
    ] {
        assert_eq!(judged(&contract, &mark, body, end), Evidence::Rejected { replayed }, "{body}");
    }
}

#[test]
fn without_the_proof_that_the_key_was_taken_nothing_is_resent() {
    let mut slow = rule(409, None, Class::InFlight);
    slow.then = Some(vec![Rung::Resend, Rung::Cancel, Rung::Review]);
    let mut contract = contract(vec![slow, rule(500, Some(("/a", "b")), Class::Rejected)]);
    contract.reconcile = vec![Rung::Resend, Rung::Lookup, Rung::Review];
    let honoured = When { headers: vec![("idempotency-key".into(), TextIs::new("*"))], ..When::default() };
    contract.key.as_mut().expect("a key").honoured = Some(honoured);
    let then = |status, echoed: bool| {
        let headers = if echoed { vec![("idempotency-key", "k")] } else { vec![] };
        judged(&contract, &answer(status, &headers, "", End::Broken)).then
    };
    assert_eq!((then(502, true), then(502, false)), (None, Some(vec![Rung::Lookup, Rung::Review])));
    assert_eq!(then(500, false), Some(vec![Rung::Lookup, Rung::Review]), "unreadable");
    let with_resend = Some(vec![Rung::Resend, Rung::Cancel, Rung::Review]);
    assert_eq!((then(409, true), then(409, false)), (with_resend, Some(vec![Rung::Cancel, Rung::Review])));
    // Not done, so it does not matter whose key it was.
    for status in [429, 401, 400, 200] {
        assert_eq!(then(status, false), None, "{status}");
    }
}

#[test]
fn a_recognised_repeat_proves_success_only_where_it_is_ours() {
    let of = |contract: &Contract, expected: Vec<Expected<'_>>, body: &str| {
        held(contract, expected, &answer(409, &[], body, End::Complete)).evidence
    };
    let mut contract = contract(vec![rule(409, None, Class::Duplicate)]);
    assert_eq!(of(&contract, vec![], "{}"), Evidence::Accepted);
    contract.key = None;
    assert_eq!(of(&contract, vec![], "{}"), Evidence::Mismatch);
    let ours = || expecting(&[("/ref", Some(json!("r1")), true)]);
    assert_eq!(of(&contract, ours(), "{\"ref\":\"r1\"}"), Evidence::Accepted);
    assert_eq!(of(&contract, ours(), "{\"ref\":\"r2\"}"), Evidence::Mismatch);
    assert_eq!(of(&contract, ours(), "{}"), Evidence::UnknownAnswer);
}

#[test]
fn a_recognised_repeat_of_several_is_not_provably_ours() {
    let mut contract = contract(vec![rule(409, Some(("/errors/0/reason", "exists")), Class::Duplicate)]);
    contract.receipt.id = vec![Source::Json("/id".into()), Source::Json("/errors/0/links/0".into())];
    let of = |body: &str| judged(&contract, &answer(409, &[], body, End::Complete));
    let one = of(r#"{"errors":[{"reason":"exists","links":["p1"]}]}"#);
    assert_eq!((one.evidence, one.receipt.as_deref()), (Evidence::Accepted, Some("p1")));
    for two in [r#"{"errors":[{"reason":"exists"},{}]}"#, r#"{"errors":[{"reason":"exists","links":["p1","p2"]}]}"#] {
        assert_eq!(of(two).evidence, Evidence::Mismatch, "{two}");
    }
}

#[test]
fn b12_a_wait_counts_on_whatever_is_no_success_by_contract() {
    let contract = contract(vec![rule(200, Some(("/ok", "false")), Class::NotApplied)]);
    let wait = |body: &str| judged(&contract, &answer(200, &[("retry-after", "6")], body, End::Complete)).retry_after;
    assert_eq!((wait("{\"ok\":false}"), wait("{\"ok\":true}")), (Some(Duration::from_secs(6)), None));
}

fn any_end() -> impl Strategy<Value = End> {
    prop::sample::select(vec![End::Complete, End::TooLong, End::TimedOut, End::Broken])
}

proptest! {
    #[test]
    fn no_answer_makes_it_panic_or_accepts_what_is_not_ours(
        status in 100_u16..1000, body in prop::collection::vec(any::<u8>(), 0..60), json in "[\\[\\]{}:,\"a0-9]{0,30}",
        as_json in any::<bool>(), end in any_end(), wait in "[ -~]{0,12}",
    ) {
        let mut contract = contract(vec![rule(4, Some(("/a/0", "*")), Class::Duplicate)]);
        contract.key = None;
        contract.receipt.id = vec![Source::Json("/a/0".into())];
        let body = if as_json { json } else { String::from_utf8_lossy(&body).into_owned() };
        let finding = judged(&contract, &answer(status, &[("retry-after", &wait)], &body, end));
        prop_assert_eq!(finding.status, Some(status));
        prop_assert_eq!(finding.evidence == Evidence::Accepted, (200..300).contains(&status));
    }
}
