//! Every event that outboxd logs, and no other: the table in README.md has the same lines, held by a test.
//!
//! The message is a constant, noun first; data is in fields, units in their names. Written after the ledger agreed.
//! Never a body, a header, a query or a credential; text from outside has been escaped and capped before it gets here.
//! info = life, warn = a person may care, error = a person must.

mod actions;

use std::fmt::Display;
use std::time::Duration;

use tracing::{error, info, warn};

use crate::core::action::ActionId;

pub use actions::*;

fn ms(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// The daemon claims from now on.
pub fn started(version: &str, worker: &str, operations: usize, destinations: usize) {
    info!(version, worker, operations, destinations, "outboxd started");
}

/// What is dispatched has been exchanged: so many destinations are not as they were.
pub fn reloaded(operations: usize, destinations: usize, changed: usize) {
    info!(operations, destinations, changed, "configuration reloaded");
}

/// The file as it is now cannot be used; what was in force stays.
pub fn reload_refused(problems: usize, error: &str) {
    error!(problems, error, "configuration refused");
}

/// What has changed in the file and is not read again while the daemon runs.
pub fn restart_needed(settings: &str) {
    warn!(settings, "restart needed");
}

/// The schema doesn't fit this binary; the daemon ends.
pub fn schema_refused(error: &dyn Display) {
    error!(error = %error, "schema refused");
}

/// The configuration asks for what the database, as it is reached, cannot give; the daemon ends.
pub fn sessions_refused(error: &dyn Display) {
    error!(error = %error, "sessions refused");
}

/// A stop was asked for: nothing is claimed any more.
pub fn draining(in_flight: u32, drain_timeout: Duration) {
    info!(in_flight, drain_timeout_ms = ms(drain_timeout), "drain started");
}

/// The end of the daemon's life.
pub fn stopped(abandoned: usize, journaled: usize) {
    info!(abandoned, journaled, "outboxd stopped");
}

/// Counts of the last interval and of open rows now.
pub struct Stats {
    /// Succeeded in the interval.
    pub delivered: u64,
    /// Succeeded a second, over the interval.
    pub per_s: f64,
    /// Open rows.
    pub open: crate::ledger::OpenRows,
}

/// The regular line.
pub fn stats(stats: &Stats) {
    let open = &stats.open;
    info!(
        delivered = stats.delivered,
        per_s = stats.per_s,
        due = open.due,
        scheduled = open.scheduled,
        retrying = open.retrying,
        in_flight = open.in_flight,
        unknown = open.unknown,
        review = open.review,
        oldest_due_ms = open.oldest_due_ms,
        oldest_unknown_ms = open.oldest_unknown_ms,
        "stats"
    );
}

/// A delivery panicked; its outcome is unknown, the others go on.
pub fn panicked(action: ActionId, operation: &str) {
    error!(%action, operation, "delivery panicked");
}

/// The drain's time ran out before this action's outcome could be written down.
pub fn abandoned(action: ActionId) {
    error!(%action, "action abandoned");
}

/// The destination refused our credentials, or there are none to be had: nothing but a probe is sent to it.
pub fn destination_paused(destination: &str, reason: &str, status: Option<u16>) {
    error!(destination, reason, status, fix = "auth of this destination", "destination paused");
}

/// Nothing has reached the destination, several times in a row: nothing but a probe is sent to it.
pub fn destination_unreachable(destination: &str, reason: &str, detail: &str) {
    warn!(destination, reason, detail, "destination unreachable");
}

/// No answer has come from the destination, many times in a row: nothing but a probe is sent to it.
pub fn destination_silent(destination: &str, reason: &str, status: Option<u16>, detail: &str) {
    warn!(destination, reason, status, detail, "destination silent");
}

/// It said when to come back: nothing of that scope (`operation` or `destination`) leaves before.
pub fn destination_throttled(destination: &str, operation: &str, scope: &str, wait: Duration) {
    info!(destination, operation, scope, for_ms = ms(wait), "destination throttled");
}

/// A person has asked that a paused destination be probed at once.
pub fn probe_requested(destination: &str) {
    info!(destination, "probe requested");
}

/// It answers, or takes our credentials, again. `why` it was paused: `credentials`, `unreachable` or `silent`.
pub fn destination_resumed(destination: &str, why: &str, paused: Duration, probes: u32) {
    info!(destination, why, paused_ms = ms(paused), probes, "destination resumed");
}

/// Nothing is claimed or sent until the ledger is back.
pub fn ledger_lost(error: &dyn Display) {
    warn!(error = %error, "ledger lost");
}

/// It has not come back: nothing has been claimed or sent all the time.
pub fn ledger_still_lost(lost: Duration, error: &str) {
    error!(lost_ms = ms(lost), error, "ledger still lost");
}

/// The ledger is back.
pub fn ledger_back(lost: Duration, tries: u32) {
    info!(lost_ms = ms(lost), tries, "ledger back");
}

/// The ledger is not the one that it was, or not where it was; the daemon ends.
pub fn ledger_refused(error: &dyn Display) {
    error!(error = %error, "ledger refused");
}

/// The server gives fewer sessions than the pool may have; those that are there have to do.
pub fn sessions_short(has: u32, pool_size: u32) {
    warn!(has, pool_size, "sessions short");
}

/// Which cluster this is cannot be read, so a failover will not be noticed.
pub fn cluster_unreadable() {
    warn!("cluster unreadable");
}

/// The ledger did not take these outcomes within a moment: they are in the journal.
pub fn journal_used(outcomes: usize) {
    warn!(outcomes, "journal in use");
}

/// The ledger has all that was in the journal.
pub fn journal_emptied() {
    info!("journal emptied");
}

/// The journal cannot be written: nothing is claimed while it would be needed.
pub fn journal_failed(error: &dyn Display) {
    error!(error = %error, "journal failed");
}

/// A crash has torn the last frame of the journal; it was never relied upon.
pub fn journal_torn(bytes: u64) {
    warn!(bytes, "journal torn");
}

/// What became of the outcomes that the journal held at the start.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[allow(missing_docs, reason = "the fields of the line")]
pub struct Replayed {
    pub outcomes: usize,
    pub written: usize,
    pub late: usize,
    pub known: usize,
    pub refused: usize,
    pub given_back: usize,
}

/// What was in the journal at the start is in the ledger.
pub fn journal_replayed(replayed: &Replayed) {
    let Replayed { outcomes, written, late, known, refused, given_back } = *replayed;
    info!(outcomes, written, late, known, refused, given_back, "journal replayed");
}

/// The drain's time ran out before this action's outcome was in the ledger; it is in the journal.
pub fn outcome_journaled(action: ActionId) {
    warn!(%action, "outcome journaled");
}

/// A claim whose answer was lost had taken rows; nothing of them was sent, and they are due again.
pub fn claims_given_back(actions: usize) {
    info!(actions, "claims given back");
}

/// The listening session is gone; polling covers the gap.
pub fn doorbell_lost(error: &dyn Display) {
    warn!(error = %error, "doorbell lost");
}

/// The listening session is back.
pub fn doorbell_back() {
    info!("doorbell back");
}

/// Closed actions were pruned, and tombstones forgotten.
pub fn pruned(actions: u64, tombstones: u64) {
    info!(actions, tombstones, "closed actions pruned");
}

/// A claim has taken actions of an operation that this daemon does not have. They are left to lapse.
pub fn claim_not_ours(operation: &str) {
    error!(operation, "claim of an unknown operation");
}

/// The database refused to prune.
pub fn prune_refused(error: &dyn Display) {
    warn!(error = %error, "prune refused");
}

/// Actions of an operation have been due for long, and this daemon doesn't have it.
pub fn nobody_takes(operation: &str) {
    warn!(operation, "operation not configured");
}

/// The database refused to move serial queues on.
pub fn queues_refused(error: &dyn Display) {
    error!(error = %error, "serial queues stuck");
}

/// Serial queues in which somebody waited and nobody had the turn were set going again.
pub fn queues_mended(queues: i64) {
    warn!(queues, "serial queues mended");
}
