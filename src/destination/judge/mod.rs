//! What an answer to a send means: the contract's rules, then the defaults of HTTP; a confirmation must be about what
//! was sent.

mod compare;
mod decimal;
mod explain;
mod look;
mod places;
mod retry_after;

use std::time::SystemTime;

use hyper::StatusCode;
use hyper::header::HeaderMap;

pub(super) use compare::Expected;
use compare::{Compared, any_is_ours, compare};
pub(super) use explain::explain;
pub(super) use look::{Asked, Mark, unsettled};
use places::{any_in_body, head_matches, is_one_of_several, matches, pointer_of, receipt, receipt_cut_off, value_at};
use retry_after::retry_after;

use super::answer::{Answer, End};
use crate::core::contract::{Class, Contract, PauseScope, Rule, Rung, Scope, Source};
use crate::core::evidence::{Evidence, Finding};
use crate::core::reason::Reason;

/// How much of an answer's body is needed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Reads {
    /// All of it: something that decides is in it, the receipt or the request id.
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
        Some(rule) => rule.class,
        None => default_of(status),
    };
    let key = contract.key.as_ref();
    let (in_body, otherwise) = match class {
        Class::Applied | Class::Duplicate => {
            (any_in_body(&contract.receipt.id) || !contract.compare.is_empty(), Reads::Nothing)
        }
        Class::Rejected => (key.and_then(|key| key.replayed.as_ref()).is_some_and(|w| w.reads_body()), Reads::Excerpt),
        Class::InFlight | Class::Unknown => {
            (key.and_then(|key| key.honoured.as_ref()).is_some_and(|when| when.reads_body()), Reads::Excerpt)
        }
        Class::NotApplied | Class::Blocked | Class::KeyConflict => (false, Reads::Excerpt),
    };
    let asides = contract
        .receipt
        .request_id
        .iter()
        .chain(contract.retry_after.iter().map(|wait| &wait.at))
        .chain(scope_at(contract));
    if in_body || (otherwise == Reads::Excerpt && any_in_body(asides)) { Reads::Whole } else { otherwise }
}

/// What an answer to a send is held against.
pub(super) struct Against<'c> {
    pub(super) contract: &'c Contract,
    /// The request carried the key.
    pub(super) keyed: bool,
    /// What the contract compares.
    pub(super) expected: Vec<Expected<'c>>,
}

/// What the answer means. `wall` is now, for an answer without a date.
pub(super) fn judge(against: &Against<'_>, answer: &Answer, wall: SystemTime) -> Finding {
    let Against { contract, expected, .. } = against;
    let rule = match rule_for(contract, answer) {
        Ruled::By(rule) => Some(rule),
        Ruled::ByNone => None,
        Ruled::Unreadable => {
            let unknown = Finding::because(Evidence::UnknownAnswer, Reason::UnknownAnswer);
            return aside(unless_honoured(unknown, contract, answer), contract, answer, wall);
        }
    };
    let class = rule.map_or_else(|| default_of(answer.status), |rule| rule.class);
    let mut finding = match class {
        Class::Applied => confirmed(contract, expected, answer),
        Class::Duplicate => duplicate(against, rule, answer),
        Class::Rejected => {
            Finding::because(Evidence::Rejected { replayed: is_replayed(contract, answer) }, Reason::Rejected)
        }
        Class::NotApplied if answer.status == StatusCode::TOO_MANY_REQUESTS => {
            Finding::because(Evidence::Deferred, Reason::Throttled)
        }
        Class::NotApplied => Finding::because(Evidence::Deferred, Reason::Deferred),
        Class::Blocked => Finding::because(Evidence::Blocked, Reason::CredentialsRefused),
        Class::InFlight => Finding::because(Evidence::InFlight, Reason::InFlight),
        Class::KeyConflict => Finding::because(Evidence::KeyConflict, Reason::KeyConflict),
        Class::Unknown if answer.status.is_server_error() => {
            Finding::because(Evidence::UnknownAnswer, Reason::ServerError)
        }
        Class::Unknown => Finding::because(Evidence::UnknownAnswer, Reason::UnknownAnswer),
    };
    if let Some(rule) = rule {
        finding.then.clone_from(&rule.then);
        finding.wait = rule.wait;
    }
    aside(unless_honoured(finding, contract, answer), contract, answer, wall)
}

/// Which rule speaks of an answer.
enum Ruled<'a> {
    By(&'a Rule),
    ByNone,
    /// It might be one that reads the body, or one below it; nobody can tell any more.
    Unreadable,
}

fn rule_for<'a>(contract: &'a Contract, answer: &'a Answer) -> Ruled<'a> {
    for rule in first_by_head(contract, answer.status, &answer.headers) {
        if rule.when.reads_body() && answer.body.end != End::Complete {
            return Ruled::Unreadable;
        }
        if rule.when.body_matches(answer.body.json.as_ref()) {
            return Ruled::By(rule);
        }
    }
    Ruled::ByNone
}

/// The rules that status and headers allow, in order. None for an answer that is no final one.
fn first_by_head<'a>(
    contract: &'a Contract,
    status: StatusCode,
    headers: &'a HeaderMap,
) -> impl Iterator<Item = &'a Rule> {
    let rules = contract.rules.iter();
    rules.filter(move |rule| !status.is_informational() && head_matches(&rule.when, status, headers))
}

/// What an answer means that the contract is silent about.
fn default_of(status: StatusCode) -> Class {
    match status.as_u16() {
        200..=299 => Class::Applied,
        // Never followed: the effect was asked of this place.
        301 | 302 | 307 | 308 => Class::Rejected,
        401 | 407 => Class::Blocked,
        // 408: the request may have been read. 409: of what, only the contract knows.
        408 | 409 => Class::Unknown,
        421 | 425 | 429 => Class::NotApplied,
        400..=499 => Class::Rejected,
        _ => Class::Unknown,
    }
}

/// A confirmation, if it is one of what was sent.
fn confirmed(contract: &Contract, expected: &[Expected<'_>], answer: &Answer) -> Finding {
    let receipt = receipt(&contract.receipt.id, answer);
    match compare(expected, answer.body.json.as_ref()) {
        Compared::Same => Finding {
            receipt,
            detail: receipt_cut_off(&contract.receipt.id, answer),
            ..Finding::new(Evidence::Accepted, None)
        },
        Compared::Differs(at) => Finding { receipt, ..differs(at) },
        Compared::Missing(at) => {
            Finding::because(Evidence::UnknownAnswer, Reason::UnmatchedAnswer).with_detail(nothing_to_compare(at))
        }
    }
}

/// A repeat that the destination recognised: a confirmation, if it is our key that it recognised.
fn duplicate(against: &Against<'_>, rule: Option<&Rule>, answer: &Answer) -> Finding {
    let Against { contract, keyed, expected } = against;
    if rule.is_some_and(|rule| rule.then.is_some()) {
        return Finding::because(Evidence::UnknownAnswer, Reason::UnknownAnswer)
            .with_detail("it exists already; to be compared with what was sent");
    }
    if !keyed && !any_is_ours(expected) {
        return mismatch("neither key nor reference says that it is ours");
    }
    let pointers = rule.iter().flat_map(|rule| rule.when.json.iter().map(|(pointer, _)| pointer.as_str()));
    let receipt = contract.receipt.id.iter().find(|source| value_at(answer, source).is_some());
    let mut pointers = pointers.chain(receipt.and_then(pointer_of));
    let json = answer.body.json.as_ref();
    match json.and_then(|json| pointers.find(|pointer| is_one_of_several(json, pointer))) {
        Some(pointer) => is_several(pointer),
        None => confirmed(contract, expected, answer),
    }
}

fn mismatch(note: impl Into<String>) -> Finding {
    Finding::because(Evidence::Mismatch, Reason::Mismatch).with_detail(note)
}

/// Something else; its receipt is for the person who must decide.
fn differs(at: &str) -> Finding {
    mismatch(format!("`{at}` is not what was sent"))
}

/// Perhaps somebody else's.
fn is_several(pointer: &str) -> Finding {
    mismatch(format!("`{pointer}` is one of several"))
}

fn nothing_to_compare(at: &str) -> String {
    format!("nothing to compare at `{at}`")
}

/// Whether the refusal is the replay of the first answer.
fn is_replayed(contract: &Contract, answer: &Answer) -> bool {
    let replayed = contract.key.as_ref().and_then(|key| key.replayed.as_ref());
    replayed.is_some_and(|when| matches(when, answer))
}

/// The same finding, its ladder without `resend` where a resend could follow and the destination's proof that it took
/// the key is missing. An answer that says "not done" needs none: often it comes from in front of what takes keys.
fn unless_honoured(mut finding: Finding, contract: &Contract, answer: &Answer) -> Finding {
    let matters = match finding.evidence {
        Evidence::UnknownAnswer | Evidence::InFlight => true,
        Evidence::Accepted | Evidence::Mismatch | Evidence::Deferred | Evidence::Blocked => false,
        Evidence::Rejected { .. } | Evidence::KeyConflict => false,
        Evidence::Found | Evidence::NotSent | Evidence::NoAnswer | Evidence::Lapsed | Evidence::Absent => false,
        Evidence::Neutralised | Evidence::Inconclusive | Evidence::Stopped(_) | Evidence::Spent => false,
        Evidence::RungGone | Evidence::Unsendable | Evidence::Proof => false,
    };
    let proof = contract.key.as_ref().and_then(|key| key.honoured.as_ref());
    if matters && proof.is_some_and(|when| !matches(when, answer)) {
        let ladder = finding.then.as_ref().unwrap_or(&contract.reconcile);
        finding.then = Some(ladder.iter().copied().filter(|rung| *rung != Rung::Resend).collect());
    }
    finding
}

/// Adds what every answer brings along.
fn aside(mut finding: Finding, contract: &Contract, answer: &Answer, wall: SystemTime) -> Finding {
    finding.status = Some(answer.status.as_u16());
    if finding.evidence != Evidence::Accepted {
        finding.retry_after = retry_after(&contract.retry_after, answer, wall);
        finding.pause = pause_scope(contract, answer);
    }
    finding
}

/// Of whom an answer that asks for patience speaks; `None` where the contract doesn't say.
fn pause_scope(contract: &Contract, answer: &Answer) -> Option<Scope> {
    match contract.pace.scope.as_ref()? {
        PauseScope::Always(scope) => Some(*scope),
        PauseScope::Said { at, words } => {
            let said = value_at(answer, at);
            let word = words.iter().find(|(word, _)| said.as_ref().is_some_and(|said| said.trim() == word));
            Some(word.map_or(Scope::Action, |(_, scope)| *scope))
        }
    }
}

/// The place in an answer that says of whom it speaks.
fn scope_at(contract: &Contract) -> Option<&Source> {
    match &contract.pace.scope {
        Some(PauseScope::Said { at, .. }) => Some(at),
        Some(PauseScope::Always(_)) | None => None,
    }
}

#[cfg(test)]
mod tests;
