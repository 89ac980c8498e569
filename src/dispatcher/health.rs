//! Whether the ledger answers, as claims and settles find it. Said once each way, whoever finds out first.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;

use super::reconnect::Outage;
use crate::ledger::LedgerError;
use crate::log::events;

/// Who asks the ledger.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Who {
    /// The claims.
    Claims,
    /// The settles.
    Settles,
}

#[derive(Default)]
struct Found {
    claims: Option<Outage>,
    settles: Option<Outage>,
}

/// The ledger's health. Shared.
#[derive(Clone)]
pub struct Health {
    found: Arc<Mutex<Found>>,
    /// Whether all evidence so far could be written. While it could not, nothing is claimed.
    settles: watch::Sender<bool>,
}

impl Health {
    /// Good.
    pub fn new() -> Self {
        Self { found: Arc::default(), settles: watch::Sender::new(true) }
    }

    /// The ledger did not answer `who`. Returns how long to wait before the next try.
    pub fn lost(&self, who: Who, error: &LedgerError) -> Duration {
        let mut found = self.lock();
        if found.claims.is_none() && found.settles.is_none() {
            events::ledger_lost(error);
        }
        let outage = match who {
            Who::Claims => &mut found.claims,
            Who::Settles => &mut found.settles,
        };
        let wait = outage.get_or_insert_with(Outage::begin).wait();
        drop(found);
        if who == Who::Settles {
            self.settles.send_replace(false);
        }
        wait
    }

    /// The ledger answered `who`, and nothing that `who` has to write waits any more.
    pub fn well(&self, who: Who) {
        let mut found = self.lock();
        let (over, other) = match who {
            Who::Claims => (found.claims.take(), &found.settles),
            Who::Settles => (found.settles.take(), &found.claims),
        };
        if let (Some(over), None) = (&over, other) {
            events::ledger_back(over.lasted(), over.tries());
        }
        drop(found);
        if over.is_some() && who == Who::Settles {
            self.settles.send_replace(true);
        }
    }

    /// Waits until no evidence waits to be written.
    pub async fn settled(&self) {
        // The sender is ours, so it cannot have gone.
        let _ = self.settles.subscribe().wait_for(|well| *well).await;
    }

    fn lock(&self) -> MutexGuard<'_, Found> {
        self.found.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
