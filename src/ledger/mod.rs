//! The ledger: the `outbox` schema in the application's PostgreSQL, the only authority. One module per verb, one
//! statement per file of `sql/`. Knows no HTTP.

mod bell;
mod claim;
mod clock;
mod cluster;
mod crowd;
mod daemons;
mod error;
mod give_back;
mod inventory;
mod late;
mod mark;
mod migrate;
mod overview;
mod param;
mod prune;
mod queue;
mod rule;
mod session;
mod settle;
mod statement;
mod stats;
mod story;
mod tls;
mod trust;
mod values;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use deadpool_postgres::Pool;

pub use bell::{Bell, BellAt, Door};
pub use claim::{Claimed, Claims, Lease, NextAfter, Room, Want};
pub use clock::DatabaseClock;
pub use cluster::{Recognised, accept_cluster};
pub use daemons::{DaemonSeen, DestinationReport, DestinationSeen, OPEN, ResumeRequest};
pub use error::LedgerError;
pub use give_back::ClaimMark;
pub use inventory::InventoryRow;
pub use late::LateTestimony;
pub use mark::Marked;
pub use migrate::{Migrated, SCHEMA_VERSION, migrate, schema_sql};
pub use overview::{Counts, Filter, Listed, Overview, Page};
pub use prune::{Keep, Prunable, Pruned};
pub use queue::{HeldQueue, Mended, Promoted, WAITING_MAX};
pub use rule::{Decided, Decision, Refusal, Ruling};
pub use session::{connect, connect_impatient};
pub use settle::{History, Settlement, Standing};
pub use stats::{OpenRows, next_due_in, overdue_elsewhere};
pub use story::{
    Committed, Content, Entry, EntryKind, HISTORY_MAX, Head, InQueue, Inventory, Linked, Note, Position, Revocation,
    Story, Told, Tombstone, Weight,
};

/// A pool of sessions with the ledger, on behalf of one worker.
#[derive(Clone)]
pub struct Ledger {
    pool: Pool,
    /// How many of them are used at once.
    crowd: crowd::Crowd,
    /// Whether one of its sessions turned out to lead through a pooler.
    pooled: Arc<AtomicBool>,
    trust: trust::Trust,
    whereabouts: cluster::Whereabouts,
    worker: String,
}

impl Ledger {
    /// Who claims: unique to this start of this process (a restarted worker is another one).
    pub fn worker(&self) -> &str {
        &self.worker
    }

    /// How many sessions fewer than it may have are used now, since the server gives no more; and how many it may have.
    pub fn sessions_missing(&self) -> (u32, u32) {
        (self.crowd.missing(), u32::try_from(self.pool.status().max_size).unwrap_or(u32::MAX))
    }

    /// The same on behalf of a worker that is gone.
    pub fn on_behalf_of(&self, worker: &str) -> Self {
        Self { worker: worker.to_owned(), ..self.clone() }
    }
}
