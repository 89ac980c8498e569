//! Answers to a lookup or a cancel, judged.

use std::time::{Duration, SystemTime};

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::core::contract::{By, JsonIs, Question, Source};
use crate::destination::build::carries;
use crate::destination::testing::{answer, asking, operation, question, when};

fn list(query: &str) -> Lookup {
    let question = question("GET", "/v1/payments", &[("reference", query)]);
    let found = when(200, Some(("/data/0/id", "*")));
    let mut lookup = Lookup::new(By::Key, question, found, asking());
    let mut absent = when(200, None);
    absent.json = vec![("/data".into(), JsonIs::Exactly(json!([])))];
    lookup.absent = Some(absent);
    lookup.receipt = Some(Source::Json("/data/0/id".into()));
    lookup
}

fn judged(lookup: &Lookup, expected: Vec<Expected<'_>>, answer: &Answer) -> Finding {
    let operation = operation();
    let carries = carries(&lookup.question, &operation);
    let contract = operation.terms.contract;
    Mark { asked: Asked::Lookup(lookup), contract: &contract, carries, expected }.judge(answer, SystemTime::UNIX_EPOCH)
}

fn looked(status: u16, body: &str) -> Finding {
    judged(&list("{key}"), vec![], &answer(status, &[("retry-after", "9")], body, End::Complete))
}

#[test]
fn r19_found_absent_or_neither() {
    let found = looked(200, r#"{"data":[{"id":"p1"}]}"#);
    assert_eq!((found.evidence, found.receipt.as_deref(), found.status), (Evidence::Found, Some("p1"), Some(200)));
    let absent = looked(200, r#"{"data":[]}"#);
    assert_eq!((absent.evidence, absent.reason), (Evidence::Absent, Some(Reason::Absent)));
    for (status, body) in [
        (200, "{}"),
        (200, "<html>"),
        (200, ""),
        (200, r#"{"data":[{"id":null}]}"#),
        (404, r#"{"data":[]}"#),
        (302, r#"{"data":[{"id":"p1"}]}"#),
        (500, ""),
        (101, r#"{"data":[]}"#),
    ] {
        let neither = looked(status, body);
        assert_eq!((neither.evidence, neither.reason), (Evidence::Inconclusive, Some(Reason::Inconclusive)), "{body}");
    }
}

#[test]
fn r15_refused_credentials_and_overload_say_nothing_about_the_action() {
    for status in [401, 407] {
        let refused = looked(status, r#"{"data":[{"id":"p1"}]}"#);
        assert_eq!((refused.evidence, refused.reason), (Evidence::Inconclusive, Some(Reason::CredentialsRefused)));
    }
    let mut lookup = list("{key}");
    lookup.absent = Some(When::default());
    for status in [429, 503] {
        let busy = judged(&lookup, vec![], &answer(status, &[("retry-after", "9")], "", End::Complete));
        assert_eq!((busy.evidence, busy.reason), (Evidence::Inconclusive, Some(Reason::Inconclusive)));
        assert_eq!(busy.retry_after, Some(Duration::from_secs(9)));
    }
}

#[test]
fn an_answer_that_says_both_settles_nothing() {
    let mut lookup = list("{key}");
    lookup.absent = Some(when(200, None));
    let both = judged(&lookup, vec![], &answer(200, &[], r#"{"data":[{"id":"p1"}]}"#, End::Complete));
    assert_eq!(both.evidence, Evidence::Inconclusive);
    // What cannot be read is no absence, although the status alone would say so.
    for (body, end) in [("<html>", End::Complete), ("", End::Complete), ("{\"data\":", End::Broken)] {
        let unread = judged(&lookup, vec![], &answer(200, &[], body, end));
        assert_eq!(unread.evidence, Evidence::Inconclusive, "{body}");
    }
}

#[test]
fn an_unfinished_body_matters_only_to_a_matcher_that_reads_it() {
    let mut lookup = list("{key}");
    lookup.found = when(200, None);
    lookup.absent = Some(when(404, None));
    lookup.receipt = Some(Source::Json("/id".into()));
    for end in [End::TooLong, End::TimedOut, End::Broken] {
        let found = judged(&lookup, vec![], &answer(200, &[], "{\"id\":", end));
        assert_eq!((found.evidence, found.receipt), (Evidence::Found, None));
        assert!(found.detail.is_some_and(|detail| detail.starts_with("no receipt")));
        assert_eq!(judged(&lookup, vec![], &answer(404, &[], "{", end)).evidence, Evidence::Absent);
    }
    lookup.receipt = Some(Source::Json("/data/0/id".into()));
    let many = judged(&lookup, vec![], &answer(200, &[], "{\"data\":[{\"id\":1},", End::Broken));
    assert_eq!(many.evidence, Evidence::Inconclusive, "perhaps one of several");
}

#[test]
fn what_was_found_must_be_ours_alone() {
    let one = r#"{"data":[{"id":"p1","ref":"r1"}]}"#;
    let two = r#"{"data":[{"id":"p1","ref":"r1"},{"id":"p2"}]}"#;
    let ours = || vec![Expected::test("/data/0/ref", Some(json!("r1")), true)];
    let of = |query, expected, body| judged(&list(query), expected, &answer(200, &[], body, End::Complete));
    assert_eq!(of("{key}", vec![], one).evidence, Evidence::Found);
    let several = of("{key}", vec![], two);
    assert_eq!((several.evidence, several.reason), (Evidence::Mismatch, Some(Reason::Mismatch)));
    assert_eq!(several.receipt, None, "it may be another one's");
    assert_eq!(of("{customer}", vec![], one).evidence, Evidence::Mismatch);
    // The contract plants no reference, so the placeholder names nothing that was sent.
    assert_eq!(of("{ref}", vec![], one).evidence, Evidence::Mismatch);
    assert_eq!(of("{customer}", ours(), one).evidence, Evidence::Found);
    assert_eq!(of("{customer}", ours(), two).evidence, Evidence::Mismatch);
}

#[test]
fn what_was_found_must_be_what_was_sent() {
    let of = |sent: Option<Value>, body| {
        let finding = judged(
            &list("{key}"),
            vec![Expected::test("/data/0/amount", sent, false)],
            &answer(200, &[], body, End::Complete),
        );
        (finding.evidence, finding.reason)
    };
    let body = r#"{"data":[{"id":"p1","amount":2000}]}"#;
    assert_eq!(of(Some(json!("2000")), body), (Evidence::Found, None));
    assert_eq!(of(Some(json!("2001")), body), (Evidence::Mismatch, Some(Reason::Mismatch)));
    let unmatched = (Evidence::Inconclusive, Some(Reason::UnmatchedAnswer));
    assert_eq!(of(None, body), unmatched);
    assert_eq!(of(Some(json!(1)), r#"{"data":[{"id":"p1"}]}"#), unmatched);
}

#[test]
fn a_cancel_neutralises_only_where_it_says_so() {
    let contract = operation().terms.contract;
    let cancel = |path| Cancel { question: question("POST", path, &[]), done: when(200, None), asking: asking() };
    let of = |path, status| {
        let cancel = cancel(path);
        let carries = carries(&cancel.question, &operation());
        let mark = Mark { asked: Asked::Cancel(&cancel), contract: &contract, carries, expected: vec![] };
        let finding = mark.judge(&answer(status, &[], "", End::Broken), SystemTime::UNIX_EPOCH);
        (finding.evidence, finding.reason)
    };
    assert_eq!(of("/cancel/{key}", 200), (Evidence::Neutralised, Some(Reason::Neutralised)));
    let open = (Evidence::Inconclusive, Some(Reason::Inconclusive));
    for status in [201, 302, 400, 404, 409, 429, 500, 503] {
        assert_eq!(of("/cancel/{key}", status), open, "{status}");
    }
    assert_eq!(of("/cancel/{key}", 401), (Evidence::Inconclusive, Some(Reason::CredentialsRefused)));
    assert_eq!(of("/cancel/{order}", 200), open, "perhaps another one's");
}

#[test]
fn a_body_is_read_only_where_something_needs_it() {
    let contract = operation().terms.contract;
    let reads = |lookup: &Lookup, status: u16| {
        let mark = Mark { asked: Asked::Lookup(lookup), contract: &contract, carries: true, expected: vec![] };
        mark.reads(StatusCode::from_u16(status).expect("a status"), &HeaderMap::new())
    };
    let mut lookup = list("{key}");
    assert_eq!((reads(&lookup, 200), reads(&lookup, 404)), (Reads::Whole, Reads::Excerpt));
    lookup.found = when(200, None);
    lookup.absent = Some(when(404, None));
    assert_eq!((reads(&lookup, 200), reads(&lookup, 404)), (Reads::Whole, Reads::Excerpt));
    lookup.receipt = None;
    assert_eq!(reads(&lookup, 200), Reads::Excerpt);
}

proptest! {
    #[test]
    fn r19_nothing_is_ever_found_that_neither_key_nor_reference_ties_to_us(
        status in 100_u16..1000, items in 0_usize..4, noise in "[ -~]{0,30}", as_list in any::<bool>(), by_key in any::<bool>(),
        end in prop::sample::select(vec![End::Complete, End::TooLong, End::TimedOut, End::Broken]),
    ) {
        let lookup = list(if by_key { "{key}" } else { "{customer}" });
        let body = if as_list { json!({"data": vec![json!({"id": noise}); items]}).to_string() } else { noise };
        let finding = judged(&lookup, vec![], &answer(status, &[("retry-after", &body[..body.len().min(9)])], &body, end));
        prop_assert!(finding.evidence != Evidence::Found || (by_key && items == 1 && as_list && status == 200));
        prop_assert!(matches!(
            finding.evidence,
            Evidence::Found | Evidence::Absent | Evidence::Inconclusive | Evidence::Mismatch
        ));
    }

    #[test]
    fn any_bytes_are_judged(status in 100_u16..1000, body in prop::collection::vec(any::<u8>(), 0..80)) {
        let question: Question = question("GET", "/{key}", &[]);
        let lookup = Lookup::new(By::Key, question, when(2, Some(("/0", "*"))), asking());
        let text = String::from_utf8_lossy(&body);
        let _ = judged(&lookup, vec![], &answer(status, &[], &text, End::Complete));
    }
}
