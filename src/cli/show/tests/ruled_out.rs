//! Answers after which the contract says: not again. The page must not say that a repeat is safe, whatever the time for
//! which a key is remembered.

use super::fixture::*;
use crate::core::action::{State, Step};
use crate::core::contract::{Class, Rule, Rung, StatusSet, TextIs, When};
use crate::core::target::Operation;
use crate::ledger::{Entry, EntryKind, Story};

const RULED_OUT: &str = "After what was answered, nothing promises that a repeat is recognised.";
const TWICE: &str = "After what was answered, nothing promises that it is recognised: it may happen twice.";
const SAFE: [&str; 2] = ["A repeat is recognised", "promises to recognise until"];

/// A rule about a class of status whose ladder is this.
fn rule(class: u8, then: Option<Vec<Rung>>) -> Rule {
    let when = When { status: Some(vec![StatusSet::Class(class)]), ..When::default() };
    Rule { when, class: Class::Unknown, then, wait: None }
}

/// A key of a day, and rules.
fn ruled(rules: Vec<Rule>) -> Operation {
    let mut operation = keyed(86_400);
    operation.terms.contract.rules = rules;
    operation
}

/// Held after this answer.
fn answered(evidence: &str, status: u16, detail: &str, reason: &str) -> Story {
    let mut story = in_doubt(Step::Review, "awaiting_review", reason, None);
    story.history =
        vec![Entry { status: Some(status), detail: Some(detail.into()), ..send(1, 785, evidence, "outcome_unknown") }];
    story
}

#[test]
fn r18_a_repeat_that_a_rule_rules_out_is_called_a_risk_with_the_rules_note() {
    let operation = ruled(vec![rule(4, None), rule(5, Some(vec![Rung::Review]))]);
    let story = answered("unknown_answer", 500, "500 Internal Server Error", "server_error");
    let note = Some("a repeat would be another payment.".to_owned());
    let page = noted(&story, Some(&operation), &[Some("not this".into()), note]);
    let parts = [
        "sending it again could make it happen twice.",
        &format!("{RULED_OUT} The contract notes: a repeat would be another payment."),
        "With --retry it is sent anew and, if that is wrong, happens twice.",
        TWICE,
    ];
    says(&page, &parts, &[&SAFE[..], &["not this"]].concat());
}

#[test]
fn r18_the_rule_of_an_answer_is_found_by_what_is_kept_of_its_body() {
    let body = When {
        json: vec![("/code".into(), crate::core::contract::JsonIs::Text(TextIs::new("704")))],
        ..When::default()
    };
    let by_body = Rule { when: body, ..rule(5, Some(vec![Rung::Review])) };
    let operation = ruled(vec![by_body, rule(5, Some(vec![Rung::Review]))]);
    let notes = ["of 704", "of any"].map(|note| Some(note.to_owned()));
    let page = |detail: &str| noted(&answered("unknown_answer", 502, detail, "server_error"), Some(&operation), &notes);
    says(&page("502 Bad Gateway, request r-1: {\\n \"code\": \"704\"}"), &["The contract notes: of 704"], &SAFE);
    says(&page("502 Bad Gateway: {\"code\":\"905\"}"), &["The contract notes: of any"], &SAFE);
    says(&page("502 Bad Gateway: <html>"), &["The contract notes: of any"], &SAFE);
}

#[test]
fn r18_a_key_conflict_a_refusal_and_a_missing_proof_of_the_key_rule_a_repeat_out() {
    let operation = ruled(vec![]);
    for (evidence, status, reason) in
        [("key_conflict", 409, "key_conflict"), ("rejected", 422, "rejected"), ("mismatch", 200, "mismatch")]
    {
        says(&text(&answered(evidence, status, "", reason), Some(&operation)), &[RULED_OUT, TWICE], &SAFE);
    }
    // Held although a resend stands above and nothing is against it: the proof that the key was taken was missing.
    let mut proving = ruled(vec![]);
    let key = proving.terms.contract.key.as_mut().expect("a key");
    key.honoured = Some(When { headers: vec![("x-key".into(), TextIs::new("*"))], ..When::default() });
    says(&text(&answered("unknown_answer", 502, "", "server_error"), Some(&proving)), &[RULED_OUT, TWICE], &SAFE);
}

#[test]
fn r18_what_was_ruled_out_stays_so_when_it_is_stopped_or_grows_old() {
    let operation = ruled(vec![rule(5, Some(vec![Rung::Lookup]))]);
    for reason in ["cancelled", "review_after"] {
        let mut story = answered("unknown_answer", 500, "500 Internal Server Error", reason);
        story.history.push(other(EntryKind::Lookup, 100, "inconclusive", "outcome_unknown"));
        says(&text(&story, Some(&operation)), &[RULED_OUT, TWICE], &SAFE);
    }
    let due = Some(NOW);
    let mut asked = answered("unknown_answer", 500, "500 Internal Server Error", "server_error");
    asked.standing.step = Step::Lookup;
    asked.standing.label = "awaiting_reconciliation".into();
    asked.standing.due_at = due;
    says(&text(&asked, Some(&operation)), &[RULED_OUT, "The destination is asked"], &SAFE);
}

#[test]
fn r18_what_was_not_ruled_out_is_still_said_to_be_recognised() {
    let operation = ruled(vec![rule(5, Some(vec![Rung::Resend])), rule(4, Some(vec![Rung::Review]))]);
    // Its attempts are used up, which says nothing against a repeat.
    let spent = answered("unknown_answer", 500, "500 Internal Server Error", "attempts_exhausted");
    says(&text(&spent, Some(&operation)), &SAFE, &[RULED_OUT, "twice."]);
    let lost = in_doubt(Step::Review, "awaiting_review", "review_after", None);
    says(&text(&lost, Some(&operation)), &SAFE, &[RULED_OUT, "twice."]);
    // An answer before the doubt that is meant.
    let mut cleared = in_doubt(Step::Review, "awaiting_review", "review_after", None);
    let before = Entry { status: Some(409), ..send(5, 800, "unknown_answer", "outcome_unknown") };
    cleared.history.splice(0..0, [before, other(EntryKind::Lookup, 790, "absent", "pending")]);
    says(&text(&cleared, Some(&operation)), &SAFE, &[RULED_OUT, "twice."]);
    let mut closed = answered("unknown_answer", 409, "", "rejected");
    closed = super::fixture::closed(closed, State::TerminalFailure, Some("rejected"), 5);
    says(&text(&closed, Some(&operation)), &[], &[RULED_OUT]);
}
