//! `outboxd run`

use std::path::Path;

use tokio::signal::unix::{SignalKind, signal};

use super::{Exit, set_up};
use crate::config::Secrets;
use crate::dispatcher::{Dispatcher, Stop};
use crate::log::events;

/// Logs, configuration refused before any connection, run, drain, say how it went.
pub async fn run(path: &Path) -> Exit {
    let config = match set_up::load(path, Secrets::Resolve) {
        Ok(config) => config,
        Err(exit) => return exit,
    };
    set_up::start_log(&config);
    let stop = Stop::default();
    if let Err(error) = stop_on_signals(stop.clone()) {
        eprintln!("failed to listen for signals: {error}");
        return Exit::Failed;
    }
    let ledger = match set_up::ledger(&config) {
        Ok(ledger) => ledger,
        Err(error) => {
            eprintln!("failed to use the database: {error}");
            return Exit::Failed;
        }
    };
    // A schema that doesn't fit is refused at once; a database that doesn't answer may come back.
    let checked = tokio::select! {
        checked = ledger.check_schema() => checked,
        () = stop.drain.cancelled() => return Exit::Done,
    };
    if let Err(error) = checked
        && let Some(exit) = set_up::exit_of(&error)
    {
        events::start_refused(&error);
        return exit;
    }
    let dispatcher = Dispatcher::new(set_up::settings(&config), ledger, set_up::catalogue(&config));
    let abandoned = dispatcher.run(stop).await;
    if abandoned.is_empty() { Exit::Done } else { Exit::Abandoned }
}

/// The first SIGTERM or SIGINT drains, the second doesn't wait.
fn stop_on_signals(stop: Stop) -> std::io::Result<()> {
    let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    tokio::spawn(async move {
        for token in [stop.drain, stop.abandon] {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
            token.cancel();
        }
    });
    Ok(())
}
