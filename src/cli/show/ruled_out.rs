//! Whether what was answered rules out that the same request is sent again, although the contract's memory of the key
//! would still allow it: a rule whose ladder has no `resend`, a key conflict, a refusal, a missing proof that the key
//! was taken. The ledger keeps the evidence and not the rule, so the rule is found again where it can be.

use serde_json::Value;

use super::View;
use super::facts;
use crate::core::action::{State, Step};
use crate::core::contract::{Class, Rule, Rung};
use crate::core::ladder;
use crate::core::reason::Reason;
use crate::core::target::Operation;
use crate::ledger::{Entry, EntryKind};

/// An answer after which nobody promises that a repeat is recognised.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RuledOut<'a> {
    /// What the contract notes at its rule for such an answer; `None` where it notes nothing or the rule is not known.
    pub note: Option<&'a str>,
}

/// Whether a repeat is ruled out, and by what; `None` too where the operation is not configured, a repeat is harmless by
/// its owner's word, or nothing is unknown.
pub fn ruled_out<'a>(view: &View<'a>) -> Option<RuledOut<'a>> {
    let (standing, operation) = (&view.story.standing, view.operation?);
    let rung = match standing.step {
        Step::Review => Rung::Review,
        Step::Lookup => Rung::Lookup,
        Step::Cancel => Rung::Cancel,
        // It is sent again or not yet decided: nothing was ruled out.
        Step::Send | Step::Conclude => return None,
    };
    if standing.state != State::OutcomeUnknown || operation.terms.policy.effect.repeats_freely() {
        return None;
    }
    let why = standing.reason.as_deref().and_then(Reason::parse).map_or(Why::Learnt, why);
    let by_answer = || facts::answered_in_doubt(view.story).find_map(|entry| by_answer(view, operation, entry));
    match why {
        Why::Bounds => None,
        Why::Covered => by_answer(),
        Why::Learnt => by_answer().or_else(|| skipped(view, operation, rung).then_some(RuledOut { note: None })),
    }
}

/// What the reason of a row says of its last answer.
enum Why {
    /// The ladder came to a resend, and something else stood against it: the answer had left it open.
    Bounds,
    /// Nothing: it says why nothing is tried any more.
    Covered,
    /// It is what was learnt.
    Learnt,
}

fn why(reason: Reason) -> Why {
    match reason {
        Reason::AttemptsExhausted | Reason::ElapsedExhausted | Reason::SpendExhausted => Why::Bounds,
        Reason::KeyWindowClosed | Reason::PinsChanged => Why::Bounds,
        Reason::ReviewAfter | Reason::Cancelled | Reason::Deadline | Reason::AuthorityRevoked => Why::Covered,
        Reason::NothingToCompensate => Why::Covered,
        Reason::Rejected | Reason::Deferred | Reason::Throttled | Reason::CredentialsRefused => Why::Learnt,
        Reason::Timeout | Reason::ConnectionLost | Reason::UnknownAnswer | Reason::UnmatchedAnswer => Why::Learnt,
        Reason::ServerError | Reason::WorkerLost | Reason::KeyConflict | Reason::InFlight => Why::Learnt,
        Reason::Mismatch | Reason::NotReached | Reason::ConnectionRefused | Reason::NameNotResolved => Why::Learnt,
        Reason::TlsFailed | Reason::LeaseLost | Reason::Unsendable | Reason::NothingPromised => Why::Learnt,
        Reason::CredentialsUnavailable | Reason::AddressNotPublic | Reason::StreamRefused => Why::Learnt,
        Reason::Absent | Reason::Inconclusive | Reason::Neutralised | Reason::Contradicted => Why::Learnt,
        Reason::Operator => Why::Learnt,
    }
}

/// A resend stands above the rung it has come to and would be possible: an answer has skipped it.
fn skipped(view: &View<'_>, operation: &Operation, rung: Rung) -> bool {
    let above = operation.terms.contract.reconcile.iter().take_while(|above| **above != rung);
    above.copied().any(|above| above == Rung::Resend)
        && ladder::may_resend(&view.story.as_row(), &operation.terms, view.story.now).is_ok()
}

fn by_answer<'a>(view: &View<'a>, operation: &'a Operation, entry: &Entry) -> Option<RuledOut<'a>> {
    let rules = &operation.terms.contract.rules;
    let rule = rule_of(rules, entry);
    let by_rule = || {
        let then = rule.and_then(|at| rules.get(at)).and_then(|rule| rule.then.as_ref());
        then.is_some_and(|then| !then.contains(&Rung::Resend))
    };
    let ruled_out = match entry.evidence.as_str() {
        "key_conflict" | "mismatch" => true,
        "rejected" => entry.kind == EntryKind::Send,
        // Whether the answer had the proof that the key was taken is not in the history: one without it rules it out.
        "unknown_answer" | "in_flight" => {
            by_rule() || operation.terms.contract.key.as_ref().is_some_and(|key| key.honoured.is_some())
        }
        _ => by_rule(),
    };
    let note = rule.and_then(|at| view.notes.get(at)).and_then(Option::as_deref);
    ruled_out.then_some(RuledOut { note })
}

/// The rule that decided about an answer: the first that surely speaks of it, else the first that may. What is kept of
/// an answer is its status, what it was taken for and, mostly, the beginning of its body.
fn rule_of(rules: &[Rule], entry: &Entry) -> Option<usize> {
    let status = entry.status?;
    let body = entry.detail.as_deref().and_then(body_of);
    let fits = |rule: &Rule| {
        let speaks = rule.when.status.as_ref().is_none_or(|sets| sets.iter().any(|set| set.contains(status)));
        let body_fits = body.is_none() || rule.when.body_matches(body.as_ref());
        speaks && body_fits && is_taken_for(rule, &entry.evidence)
    };
    let is_sure = |rule: &Rule| rule.when.headers.is_empty() && (body.is_some() || !rule.when.reads_body());
    let first = |sure: bool| rules.iter().position(|rule| fits(rule) && (is_sure(rule) || !sure));
    first(true).or_else(|| first(false))
}

/// Whether an answer that a rule speaks of becomes this evidence.
fn is_taken_for(rule: &Rule, evidence: &str) -> bool {
    match rule.class {
        Class::Applied => matches!(evidence, "accepted" | "mismatch" | "unknown_answer"),
        Class::Duplicate if rule.then.is_some() => evidence == "unknown_answer",
        Class::Duplicate => matches!(evidence, "accepted" | "mismatch" | "unknown_answer"),
        Class::NotApplied => evidence == "deferred",
        Class::Rejected => matches!(evidence, "rejected" | "rejected_replay"),
        Class::Blocked => evidence == "blocked",
        Class::InFlight => evidence == "in_flight",
        Class::KeyConflict => evidence == "key_conflict",
        Class::Unknown => evidence == "unknown_answer",
    }
}

/// The JSON in an attempt's detail, if all of it is there.
fn body_of(detail: &str) -> Option<Value> {
    let begin = detail.find(['{', '['])?;
    // The detail is one line: between members a line break stands as its escape.
    let text = ["\\n", "\\r", "\\t"].iter().fold(detail[begin..].to_owned(), |text, escape| text.replace(escape, " "));
    serde_json::from_str(&text).ok()
}
