//! SIGHUP: the configuration is read again, secrets included, and what can be exchanged is exchanged.

use std::path::PathBuf;

use tokio::signal::unix::Signal;

use super::set_up;
use crate::config::{Config, Secrets};
use crate::destination::one_line;
use crate::dispatcher::Reloader;
use crate::log::events;

/// How much is said of what is wrong, in bytes.
const SAID_MAX_BYTES: usize = 8000;

/// Reads the configuration again at every signal. `started` is the one the daemon was started with.
pub async fn run(path: PathBuf, started: Config, mut reloader: Reloader, mut hangup: Signal) {
    while hangup.recv().await.is_some() {
        let config = match Config::load(&path, Secrets::Resolve) {
            Ok(config) => config,
            Err(refusal) => {
                let said: Vec<String> = refusal.problems.iter().map(ToString::to_string).collect();
                refused(&said);
                continue;
            }
        };
        if let Err(unusable) = reloader.exchange(set_up::catalogue(&config)) {
            refused(&[format!("{}: {unusable}", path.display())]);
            continue;
        }
        let fixed = changed(&started, &config);
        if !fixed.is_empty() {
            events::restart_needed(&fixed.join(", "));
        }
    }
}

fn refused(said: &[String]) {
    events::reload_refused(said.len(), &one_line(said.join("; ").as_bytes(), SAID_MAX_BYTES));
}

/// What differs of that which is read only at the start.
fn changed(started: &Config, config: &Config) -> Vec<&'static str> {
    let (was, is) = (&started.dispatcher, &config.dispatcher);
    [
        ("database", started.database == config.database),
        ("dispatcher.max_in_flight", was.max_in_flight == is.max_in_flight),
        ("dispatcher.lease_margin", was.lease_margin == is.lease_margin),
        ("dispatcher.poll_interval", was.poll_interval == is.poll_interval),
        ("dispatcher.notify", was.notify == is.notify),
        ("dispatcher.drain_timeout", was.drain_timeout == is.drain_timeout),
        ("dispatcher.bytes_in_flight_max", was.bytes_in_flight_max == is.bytes_in_flight_max),
        ("dispatcher.body_max_bytes", was.body_max_bytes == is.body_max_bytes),
        ("dispatcher.journal", was.journal == is.journal),
        ("log", started.log == config.log),
    ]
    .into_iter()
    .filter_map(|(name, same)| (!same).then_some(name))
    .collect()
}
