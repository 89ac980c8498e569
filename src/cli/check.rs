//! `outboxd check`

use std::path::Path;

use super::{Exit, set_up};
use crate::config::Secrets;
use crate::ledger::LedgerError;

/// Says what is wrong, connects, prints what would run.
pub async fn run(path: &Path) -> Exit {
    let config = match set_up::load(path, Secrets::Resolve) {
        Ok(config) => config,
        Err(exit) => return exit,
    };
    println!("{}", config.describe());
    for warning in config.warnings() {
        println!("# ⚠ {warning}");
    }
    let checked = async {
        let ledger = set_up::ledger(&config)?;
        tokio::time::timeout(set_up::PATIENCE, ledger.check_schema())
            .await
            .unwrap_or_else(|_| Err(LedgerError::Unreachable("it did not answer in time".to_owned())))
    }
    .await;
    match checked {
        Ok(()) => {
            println!("configuration and database are in order");
            Exit::Done
        }
        Err(error) => {
            eprintln!("the configuration is in order, the database is not: {error}");
            set_up::exit_of(&error).unwrap_or(Exit::Failed)
        }
    }
}
