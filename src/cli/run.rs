//! `outboxd run`

use std::path::Path;

use tokio::signal::unix::{SignalKind, signal};

use super::{Exit, reload, set_up};
use crate::config::Secrets;
use crate::dispatcher::{Dispatcher, Left, Stop};

/// Logs, configuration refused before any connection, run, drain, say how it went. SIGHUP reads the configuration again.
pub async fn run(path: &Path) -> Exit {
    let config = match set_up::load(path, Secrets::Resolve) {
        Ok(config) => config,
        Err(exit) => return exit,
    };
    set_up::start_log(&config);
    let stop = Stop::default();
    let hangup = match stop_on_signals(stop.clone()).and_then(|()| signal(SignalKind::hangup())) {
        Ok(hangup) => hangup,
        Err(error) => {
            eprintln!("failed to listen for signals: {error}");
            return Exit::Failed;
        }
    };
    let ledger = match set_up::ledger(&config) {
        Ok(ledger) => ledger,
        Err(error) => {
            eprintln!("failed to use the database: {error}");
            return Exit::Failed;
        }
    };
    let journal = match set_up::journal(&config, &ledger) {
        Ok(journal) => journal,
        Err(error) => {
            eprintln!("{error}");
            return Exit::Failed;
        }
    };
    let (dispatcher, reloader) = match Dispatcher::new(set_up::settings(&config), ledger, set_up::catalogue(&config)) {
        Ok(made) => made,
        Err(error) => {
            eprintln!("{}: {error}", path.display());
            return Exit::ConfigRefused;
        }
    };
    let reload = tokio::spawn(reload::run(path.to_owned(), config, reloader, hangup));
    let ended = dispatcher.with_journal(journal).run(stop).await;
    reload.abort();
    match ended {
        Ok(left) if left == Left::default() => Exit::Done,
        Ok(_) => Exit::Abandoned,
        Err(error) => set_up::exit_of(&error).unwrap_or(Exit::Failed),
    }
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
