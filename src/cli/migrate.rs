//! `outboxd migrate`

use std::path::Path;

use super::{Exit, set_up};
use crate::config::Secrets;
use crate::ledger;

/// Brings the schema up to date. Destinations' secrets are not needed for it.
pub async fn run(path: &Path) -> Exit {
    let config = match set_up::load(path, Secrets::Skip) {
        Ok(config) => config,
        Err(exit) => return exit,
    };
    let database = &config.database;
    match ledger::migrate(database.direct_url.as_ref().unwrap_or(&database.url)).await {
        Ok(done) if done.from == done.to => {
            println!("the outbox schema is at version {}; nothing to do", done.to);
            Exit::Done
        }
        Ok(done) => {
            println!("the outbox schema is at version {} now (it was at {})", done.to, done.from);
            Exit::Done
        }
        Err(error) => {
            eprintln!("failed to bring the schema up to date: {error}");
            set_up::exit_of(&error).unwrap_or(Exit::Failed)
        }
    }
}
