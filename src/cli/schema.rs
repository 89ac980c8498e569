//! `outboxd schema`

use super::{Exit, print};
use crate::ledger;

/// Prints the SQL.
pub fn run() -> Exit {
    print::out(&ledger::schema_sql())
}
