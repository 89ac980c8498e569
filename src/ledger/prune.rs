//! Forgetting: payloads of closed actions first, their identity long after (R5).

use std::time::Duration;

use super::values::micros;
use super::{Ledger, LedgerError};

const PRUNE: &str = include_str!("../../sql/prune.sql");
const PRUNABLE: &str = include_str!("../../sql/prunable.sql");

/// The most rows counted of each operation, of actions and of tombstones.
const COUNTED_AT_MOST: i64 = 100_000;

/// How long one operation's closed actions are kept. Both times count from when an action was closed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Keep<'a> {
    /// Its name.
    pub operation: &'a str,
    /// Payload and history.
    pub payload: Duration,
    /// Identity and end, at least as long as the payload.
    pub identity: Duration,
}

/// What one batch has done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pruned {
    /// Another session prunes just now.
    Busy,
    /// So much; nothing where both are zero. At most 1,000 each.
    Done {
        /// Closed actions of which only a tombstone is left.
        actions: u64,
        /// Tombstones that were forgotten.
        tombstones: u64,
    },
}

/// What is older than it is kept, up to a bound for each operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Prunable {
    /// Closed actions that a prune would leave a tombstone of.
    pub actions: u64,
    /// Tombstones that it would forget.
    pub tombstones: u64,
    /// What stays all the same: contradicted and not decided upon, or pointed to by an open compensation.
    pub kept: u64,
}

impl Ledger {
    /// Prunes one batch, in a transaction of its own. See `sql/prune.sql`.
    pub async fn prune(&self, keeps: &[Keep<'_>]) -> Result<Pruned, LedgerError> {
        let (operations, payload, identity) = columns(keeps);
        let session = self.session().await?;
        let row = session.query_one(PRUNE, &[&operations, &payload, &identity]).await?;
        if row.try_get("busy")? {
            return Ok(Pruned::Busy);
        }
        let count = |name| -> Result<u64, LedgerError> { Ok(row.try_get::<_, i64>(name)?.unsigned_abs()) };
        Ok(Pruned::Done { actions: count("actions")?, tombstones: count("tombstones")? })
    }

    /// Counts what there is to prune. See `sql/prunable.sql`.
    pub async fn prunable(&self, keeps: &[Keep<'_>]) -> Result<Prunable, LedgerError> {
        let (operations, payload, identity) = columns(keeps);
        let session = self.session().await?;
        let row = session.query_one(PRUNABLE, &[&operations, &payload, &identity, &COUNTED_AT_MOST]).await?;
        let count = |name| -> Result<u64, LedgerError> { Ok(row.try_get::<_, i64>(name)?.unsigned_abs()) };
        Ok(Prunable { actions: count("actions")?, tombstones: count("tombstones")?, kept: count("kept")? })
    }
}

fn columns<'a>(keeps: &[Keep<'a>]) -> (Vec<&'a str>, Vec<i64>, Vec<i64>) {
    let operations = keeps.iter().map(|keep| keep.operation).collect();
    let payload = keeps.iter().map(|keep| micros(keep.payload)).collect();
    (operations, payload, keeps.iter().map(|keep| micros(keep.identity)).collect())
}
