//! `outboxd check`

use std::path::Path;

use super::{Exit, print, set_up};
use crate::config::Secrets;
use crate::dispatcher::{JournalLook, check_destinations, look_at_journal};
use crate::ledger::{Bell, LedgerError};

/// Says what is wrong, connects, prints what would run.
pub async fn run(path: &Path) -> Exit {
    let config = match set_up::load(path, Secrets::Resolve) {
        Ok(config) => config,
        Err(exit) => return exit,
    };
    if let Err(unusable) = check_destinations(set_up::catalogue(&config)) {
        eprintln!("{}: {unusable}", path.display());
        return Exit::ConfigRefused;
    }
    print::line(&config.describe());
    for warning in config.warnings() {
        print::line(&format!("# ⚠ {warning}"));
    }
    let mut sound = true;
    if let Some(path) = &config.dispatcher.journal {
        match look_at_journal(path) {
            Ok(look) => drop(print::line(&format!("# {}", said(look)))),
            Err(error) => {
                eprintln!("{error}");
                sound = false;
            }
        }
    }
    let checked: Result<(), LedgerError> = async {
        let ledger = set_up::ledger(&config)?;
        set_up::patiently(ledger.check_schema()).await?;
        set_up::patiently(ledger.would_recognise()).await?;
        if ledger.is_pooled() {
            print::line("# `database.url` leads through a connection pooler: statements are not prepared");
        }
        if let Some(at) = set_up::bell(&config) {
            set_up::patiently(Bell::open(&at, &ledger)).await?;
        }
        Ok(())
    }
    .await;
    match checked {
        Ok(()) if sound => {
            print::line("configuration and database are in order");
            Exit::Done
        }
        Ok(()) => {
            eprintln!("the configuration and the database are in order, the journal is not");
            Exit::Failed
        }
        Err(error) => {
            let place = config.database.place();
            eprintln!("the configuration is in order, the database {place} (`url` in [database]) is not: {error}");
            set_up::exit_of(&error).unwrap_or(Exit::Failed)
        }
    }
}

/// What was found of the journal.
fn said(look: JournalLook) -> String {
    match look {
        JournalLook::Absent => "the journal is made by the first start".to_owned(),
        JournalLook::InUse => "the journal is in use by a daemon".to_owned(),
        JournalLook::Holds(0) => "the journal is empty".to_owned(),
        JournalLook::Holds(outcomes) => {
            format!("the journal holds {outcomes} outcomes, which the next start writes to the ledger")
        }
    }
}
