//! What is said of single actions, and what is said instead where there are too many of them.

use std::fmt::Display;
use std::time::Duration;

use tracing::{debug, error, info, warn};

use super::ms;
use crate::core::action::{ActionId, Fence, Step};

/// Which action, under which claim.
#[derive(Clone, Copy)]
pub struct About<'a> {
    /// The action.
    pub action: ActionId,
    /// Its operation.
    pub operation: &'a str,
    /// Its destination.
    pub destination: &'a str,
    /// Sends that counted, this one included.
    pub attempt: u32,
    /// The claim's fence.
    pub fence: Fence,
}

/// What was learnt.
#[derive(Clone, Copy)]
pub struct Learnt<'a> {
    /// The evidence's name.
    pub evidence: &'a str,
    /// The reason's code.
    pub reason: &'static str,
    /// HTTP status.
    pub status: Option<u16>,
    /// Diagnostic text, clean and capped.
    pub detail: &'a str,
}

/// One action succeeded.
pub fn delivered(about: About<'_>, receipt: &str) {
    debug!(
        action = %about.action, operation = about.operation, destination = about.destination,
        attempt = about.attempt, fence = %about.fence, receipt, "action delivered"
    );
}

/// Not done, to be tried again; nothing is in doubt.
pub fn postponed(about: About<'_>, learnt: Learnt<'_>, delay: Duration) {
    debug!(
        action = %about.action, operation = about.operation, destination = about.destination,
        attempt = about.attempt, fence = %about.fence, evidence = learnt.evidence, reason = learnt.reason,
        status = learnt.status, detail = learnt.detail, in_ms = ms(delay), "action postponed"
    );
}

/// An attempt may have taken effect.
pub fn outcome_unknown(about: About<'_>, learnt: Learnt<'_>, next: Step, delay: Duration) {
    let next = match next {
        Step::Send => "resend",
        Step::Lookup => "lookup",
        Step::Cancel => "cancel",
        Step::Conclude => "conclude",
        Step::Review => "review",
    };
    warn!(
        action = %about.action, operation = about.operation, destination = about.destination,
        attempt = about.attempt, fence = %about.fence, evidence = learnt.evidence, reason = learnt.reason,
        status = learnt.status, detail = learnt.detail, next, in_ms = ms(delay), "outcome unknown"
    );
}

/// What was in doubt is settled.
pub fn outcome_resolved(about: About<'_>, by: &str, state: &str, unknown: Duration, receipt: &str) {
    info!(
        action = %about.action, operation = about.operation, destination = about.destination,
        by, state, unknown_ms = ms(unknown), receipt, "outcome resolved"
    );
}

/// It did not take effect and will not be tried again.
pub fn not_delivered(about: About<'_>, learnt: Learnt<'_>) {
    warn!(
        action = %about.action, operation = about.operation, destination = about.destination,
        attempt = about.attempt, fence = %about.fence, evidence = learnt.evidence, reason = learnt.reason,
        status = learnt.status, detail = learnt.detail, "action not delivered"
    );
}

/// Its outcome is unknown and only a person can decide.
pub fn held(about: About<'_>, learnt: Learnt<'_>) {
    error!(
        action = %about.action, operation = about.operation, destination = about.destination,
        attempt = about.attempt, fence = %about.fence, evidence = learnt.evidence, reason = learnt.reason,
        status = learnt.status, detail = learnt.detail, "action held for review"
    );
}

/// A claim was overtaken; what it learnt is recorded, and this is what became of it.
pub fn late_testimony(about: About<'_>, evidence: &str, meaning: &str) {
    warn!(
        action = %about.action, operation = about.operation, destination = about.destination,
        fence = %about.fence, evidence, meaning, "late testimony"
    );
}

/// The row was closed as not done, and a late answer says it was done.
pub fn contradicted(about: About<'_>, receipt: &str) {
    error!(
        action = %about.action, operation = about.operation, destination = about.destination,
        fence = %about.fence, receipt, "action contradicted"
    );
}

/// It succeeded, but the answer's receipt could not be read.
pub fn receipt_unread(about: About<'_>, detail: &str) {
    warn!(
        action = %about.action, operation = about.operation, destination = about.destination, detail, "receipt unread"
    );
}

/// The ledger refused a decision; the row is left to lapse.
pub fn settle_refused(about: About<'_>, error: &dyn Display) {
    error!(
        action = %about.action, operation = about.operation, destination = about.destination, error = %error,
        "settle refused"
    );
}

/// It stands only as a count in the next `outcomes counted` or `more held for review`: `line` is what it would have been.
pub fn counted(line: &str, about: About<'_>, learnt: Learnt<'_>) {
    debug!(
        line, action = %about.action, operation = about.operation, destination = about.destination,
        attempt = about.attempt, fence = %about.fence, evidence = learnt.evidence, reason = learnt.reason,
        status = learnt.status, detail = learnt.detail, "action counted"
    );
}

/// How many had no line of their own since the last such line, by the line that they would have had.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[allow(missing_docs, reason = "the fields of the line")]
pub struct Counted {
    pub unknown: u64,
    pub resolved: u64,
    pub not_delivered: u64,
    pub late: u64,
    pub unread: u64,
    pub refused: u64,
}

/// So many had no line of their own, and this was learnt by the last of them.
pub fn outcomes_counted(destination: &str, counted: &Counted, last: Learnt<'_>) {
    let Counted { unknown, resolved, not_delivered, late, unread, refused } = *counted;
    warn!(
        destination,
        unknown,
        resolved,
        not_delivered,
        late,
        unread,
        refused,
        reason = last.reason,
        status = last.status,
        detail = last.detail,
        "outcomes counted"
    );
}

/// So many more wait for a person than have had a line of their own.
pub fn more_held(destination: &str, actions: u64) {
    error!(destination, actions, list = "outboxd review", "more held for review");
}

/// Its answers settle nothing, or none come: so many of so many attempts within that time.
pub fn destination_troubled(destination: &str, troubled: u32, attempts: u32, within: Duration, last: Learnt<'_>) {
    warn!(
        destination,
        troubled,
        attempts,
        within_ms = ms(within),
        reason = last.reason,
        status = last.status,
        detail = last.detail,
        "destination troubled"
    );
}

/// It answers as it should again; so many attempts got nothing out of it meanwhile.
pub fn destination_well(destination: &str, lasted: Duration, troubled: u64) {
    info!(destination, troubled_ms = ms(lasted), troubled, "destination well");
}
