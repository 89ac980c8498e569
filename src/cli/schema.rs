//! `outboxd schema`

use super::Exit;
use crate::ledger;

/// Prints the SQL.
pub fn run() -> Exit {
    print!("{}", ledger::schema_sql());
    Exit::Done
}
