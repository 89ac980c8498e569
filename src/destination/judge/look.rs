//! What an answer to a question means. It is never mistaken for an answer to a send: whatever it does not settle is
//! inconclusive.

use std::time::SystemTime;

use hyper::StatusCode;
use hyper::header::HeaderMap;

use super::super::answer::{Answer, End};
use super::compare::{Compared, any_is_ours, compare};
use super::places::{
    any_in_body, head_matches, is_one_of_several, matches, picks_first, pointer_of, receipt, receipt_cut_off,
};
use super::retry_after::retry_after;
use super::{Expected, Reads, differs, is_several, mismatch, nothing_to_compare};
use crate::core::contract::{Cancel, Contract, Lookup, When};
use crate::core::evidence::{Evidence, Finding};
use crate::core::reason::Reason;

/// What was asked.
#[derive(Clone, Copy)]
pub(in crate::destination) enum Asked<'c> {
    /// Whether it took effect.
    Lookup(&'c Lookup),
    /// That it must not.
    Cancel(&'c Cancel),
}

/// What an answer to a question is held against.
pub(in crate::destination) struct Mark<'c> {
    pub(in crate::destination) asked: Asked<'c>,
    pub(in crate::destination) contract: &'c Contract,
    /// The question names the action by its key or reference.
    pub(in crate::destination) carries: bool,
    /// What the lookup compares.
    pub(in crate::destination) expected: Vec<Expected<'c>>,
}

impl Mark<'_> {
    /// How much of the body of an answer with that head is needed.
    pub(in crate::destination) fn reads(&self, status: StatusCode, headers: &HeaderMap) -> Reads {
        let reads_it = |when: &When| head_matches(when, status, headers) && when.reads_body();
        let decides = match self.asked {
            Asked::Cancel(cancel) => reads_it(&cancel.done),
            Asked::Lookup(lookup) => {
                lookup.absent.as_ref().is_some_and(reads_it)
                    || reads_it(&lookup.found)
                    || (head_matches(&lookup.found, status, headers)
                        && (any_in_body(&lookup.receipt) || !self.expected.is_empty()))
            }
        };
        let waits = !status.is_success()
            && any_in_body(self.contract.retry_after.iter().map(|wait| &wait.at).chain(super::scope_at(self.contract)));
        if decides || waits { Reads::Whole } else { Reads::Excerpt }
    }

    /// What the answer means. `wall` is now, for an answer without a date.
    pub(in crate::destination) fn judge(&self, answer: &Answer, wall: SystemTime) -> Finding {
        let mut finding = match answer.status.as_u16() {
            401 | 407 => Finding::because(Evidence::Inconclusive, Reason::CredentialsRefused),
            // Said by whoever stands in front, and about no action.
            429 | 503 => unsettled("it was too busy to say"),
            100..=199 => unsettled("it is no final answer"),
            _ => match self.asked {
                Asked::Lookup(lookup) => self.looked(lookup, answer),
                Asked::Cancel(cancel) => self.cancelled(cancel, answer),
            },
        };
        finding.status = Some(answer.status.as_u16());
        if !answer.status.is_success() {
            finding.retry_after = retry_after(&self.contract.retry_after, answer, wall);
            finding.pause = super::pause_scope(self.contract, answer);
        }
        finding
    }

    fn looked(&self, lookup: &Lookup, answer: &Answer) -> Finding {
        let readers = std::iter::once(&lookup.found).chain(&lookup.absent);
        if let Some(why) = unreadable(readers, answer) {
            return unsettled(why);
        }
        let absent = lookup.absent.as_ref().is_some_and(|absent| matches(absent, answer));
        match (matches(&lookup.found, answer), absent) {
            (true, false) => self.found(lookup, answer),
            (false, true) if self.carries => Finding::because(Evidence::Absent, Reason::Absent),
            (false, true) => unsettled("neither key nor reference says that what is not there is ours"),
            (true, true) => unsettled("it says both: there and not there"),
            (false, false) => unsettled("it says neither: there nor not there"),
        }
    }

    /// What was found, if it is what was sent.
    fn found(&self, lookup: &Lookup, answer: &Answer) -> Finding {
        if !self.carries && !any_is_ours(&self.expected) {
            return mismatch("neither key nor reference says that what was found is ours");
        }
        let json = answer.body.json.as_ref();
        let pointers = lookup.found.json.iter().map(|(pointer, _)| pointer.as_str());
        for pointer in pointers.chain(lookup.receipt.as_ref().and_then(pointer_of)).filter(|at| picks_first(at)) {
            match json {
                None => return unsettled("its body, which may name several, cannot be read"),
                Some(json) if is_one_of_several(json, pointer) => return is_several(pointer),
                Some(_) => {}
            }
        }
        let receipt = receipt(&lookup.receipt, answer);
        match compare(&self.expected, json) {
            Compared::Same => Finding {
                receipt,
                detail: receipt_cut_off(&lookup.receipt, answer),
                ..Finding::new(Evidence::Found, None)
            },
            Compared::Differs(at) => Finding { receipt, ..differs(at) },
            Compared::Missing(at) => {
                Finding::because(Evidence::Inconclusive, Reason::UnmatchedAnswer).with_detail(nothing_to_compare(at))
            }
        }
    }

    fn cancelled(&self, cancel: &Cancel, answer: &Answer) -> Finding {
        if let Some(why) = unreadable([&cancel.done], answer) {
            return unsettled(why);
        }
        if !matches(&cancel.done, answer) {
            return unsettled("it does not say that it is cancelled");
        }
        if !self.carries {
            return unsettled("neither key nor reference says that what was cancelled is ours");
        }
        Finding::because(Evidence::Neutralised, Reason::Neutralised)
    }
}

/// Why the body cannot be held against a matcher that reads it.
fn unreadable<'a>(readers: impl IntoIterator<Item = &'a When>, answer: &Answer) -> Option<String> {
    let is_read = |when: &When| when.reads_body() && head_matches(when, answer.status, &answer.headers);
    match (answer.body.end, &answer.body.json) {
        (End::Complete, Some(_)) => None,
        (End::Complete, None) => readers.into_iter().any(is_read).then(|| "its body is not JSON".to_owned()),
        (end @ (End::TooLong | End::TimedOut | End::Broken), _) => {
            readers.into_iter().any(is_read).then(|| format!("its body {}", end.sentence()))
        }
    }
}

/// Nothing is settled by this answer.
pub(in crate::destination) fn unsettled(why: impl Into<String>) -> Finding {
    Finding::because(Evidence::Inconclusive, Reason::Inconclusive).with_detail(why)
}

#[cfg(test)]
#[path = "look_tests.rs"]
mod tests;
