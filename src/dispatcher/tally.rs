//! What this daemon has done, counted for the stats line.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counters since the start.
#[derive(Debug, Default)]
pub struct Tally {
    delivered: AtomicU64,
}

impl Tally {
    /// One more action succeeded, and the ledger has it.
    pub fn delivered(&self) {
        self.delivered.fetch_add(1, Ordering::Relaxed);
    }

    /// How many succeeded since the start.
    pub fn deliveries(&self) -> u64 {
        self.delivered.load(Ordering::Relaxed)
    }
}
