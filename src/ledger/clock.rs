//! The database's clock, paired with this machine's uptime.

use std::time::Duration;

use super::{Ledger, LedgerError};
use crate::clock::Uptime;
use crate::core::time::Timestamp;

/// What the pairing may be off by, and what a statement takes to get there.
const SLACK: Duration = Duration::from_secs(1);

/// What the database's clock showed between two moments of this machine.
#[derive(Clone, Copy, Debug)]
pub struct DatabaseClock {
    showed: Timestamp,
    asked: Uptime,
    answered: Uptime,
}

impl DatabaseClock {
    /// A moment of database time was at most so long ago.
    pub fn at_most_since(&self, moment: Timestamp) -> Duration {
        self.showed.since(moment).saturating_add(Uptime::now().since(self.asked)).saturating_add(SLACK)
    }

    /// A moment of database time was at least so long ago.
    pub fn at_least_since(&self, moment: Timestamp) -> Duration {
        self.showed.since(moment).saturating_add(Uptime::now().since(self.answered)).saturating_sub(SLACK)
    }
}

impl Ledger {
    /// Looks at the database's clock.
    pub async fn clock(&self) -> Result<DatabaseClock, LedgerError> {
        let session = self.session().await?;
        let statement = session.prepare("select clock_timestamp()").await?;
        let asked = Uptime::now();
        let rows = statement.query(&[]).await?;
        let row = rows.first().ok_or(LedgerError::Unreadable { what: "the clock" })?;
        Ok(DatabaseClock { showed: row.try_get(0)?, asked, answered: Uptime::now() })
    }
}
