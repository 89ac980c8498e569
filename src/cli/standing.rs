//! How the destinations stand, over all daemons that are there: what `status` and `destinations` show.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::print::screen::Screen;
use super::print::table::{Side, Table};
use super::print::text::{name, shell};
use super::print::words::{clock, rfc3339};
use crate::config::Config;
use crate::core::time::Timestamp;
use crate::ledger::{Counts, DaemonSeen, DestinationSeen, OPEN};

/// One destination.
pub struct Standing<'a> {
    destination: &'a str,
    configured: bool,
    /// With each daemon that has it.
    seen: Vec<&'a DestinationSeen>,
    in_flight: i64,
    /// The most at once, over all daemons that have it; of one daemon where none has.
    max_in_flight: Option<u64>,
}

/// The destinations of the configuration, and those that only daemons know.
pub fn standings<'a>(config: &'a Config, daemons: &'a [DaemonSeen], operations: &[Counts]) -> Vec<Standing<'a>> {
    let mut in_flight: BTreeMap<&str, i64> = BTreeMap::new();
    for counts in operations {
        if let Some(operation) = config.operations.get(&counts.operation) {
            *in_flight.entry(operation.target.as_str()).or_default() += counts.in_flight;
        }
    }
    let told = daemons.iter().flat_map(|daemon| &daemon.destinations);
    let names: BTreeSet<&str> =
        config.targets.keys().map(String::as_str).chain(told.clone().map(|seen| seen.destination.as_str())).collect();
    let standing = |destination: &'a str| {
        let seen: Vec<&DestinationSeen> = told.clone().filter(|seen| seen.destination == destination).collect();
        let target = config.targets.get(destination);
        let max_in_flight = match seen.len() {
            0 => target.map(|target| u64::from(target.max_in_flight)),
            _ => Some(seen.iter().map(|seen| u64::from(seen.max_in_flight)).sum()),
        };
        let in_flight = match target {
            Some(_) => in_flight.get(destination).copied().unwrap_or(0),
            // Which operations lead there is not known here.
            None => seen.iter().map(|seen| i64::from(seen.in_flight)).sum(),
        };
        Standing { destination, configured: target.is_some(), seen, in_flight, max_in_flight }
    };
    names.into_iter().map(standing).collect()
}

impl Standing<'_> {
    /// With the daemons that have it paused for the reason which matters most.
    fn paused(&self) -> Vec<&DestinationSeen> {
        let of = |state: &str| self.seen.iter().copied().filter(|seen| seen.state == state).collect::<Vec<_>>();
        let first = ["credentials", "unreachable", "silent"].into_iter().map(of).find(|seen| !seen.is_empty());
        // A younger daemon may have reasons that this binary doesn't know.
        first.unwrap_or_else(|| self.seen.iter().copied().filter(|seen| seen.state != OPEN).collect())
    }

    /// As in `paused: 401 since 10:40 (3 probes)`.
    fn state(&self, now: Timestamp) -> String {
        let paused = self.paused();
        let Some(first) = paused.first() else {
            return if self.seen.is_empty() { "no daemon has it".to_owned() } else { OPEN.to_owned() };
        };
        let since = paused.iter().filter_map(|seen| seen.since).min();
        let since = since.map_or(String::new(), |since| format!(" since {}", clock(since, now)));
        let probes: u32 = paused.iter().map(|seen| seen.probes).sum();
        let probes = if probes == 1 { "1 probe".to_owned() } else { format!("{probes} probes") };
        let why = match (first.status, &first.reason) {
            (Some(status), _) => status.to_string(),
            (None, Some(reason)) => name(reason),
            (None, None) => "credentials".to_owned(),
        };
        let how_many = match (paused.len(), self.seen.len()) {
            (some, all) if some < all => format!(", with {some} of {all} daemons"),
            _ => String::new(),
        };
        match first.state.as_str() {
            "credentials" => format!("paused: {why}{since} ({probes}){how_many}"),
            state => format!("{}{since} ({why}, {probes}){how_many}", name(state)),
        }
    }

    /// Why nothing is sent there now, as a sentence; `None` where it is open.
    fn obstacle(&self, now: Timestamp) -> Option<String> {
        let destination = name(self.destination);
        match (self.seen.is_empty(), self.paused().is_empty()) {
            (true, _) => Some(format!("No daemon that is there has destination {destination}.")),
            (false, true) => None,
            (false, false) => Some(format!("Destination {destination} is {}.", self.state(now))),
        }
    }

    /// What to type.
    fn hint(&self, given: &str) -> String {
        let paused = self.paused();
        let Some(first) = paused.first() else { return String::new() };
        let command = format!("outboxd destinations resume {} {given}", shell(self.destination));
        match first.state.as_str() {
            "credentials" => format!("→ check credentials, then: {}", command.trim_end()),
            _ => format!("→ probed by itself; at once with: {}", command.trim_end()),
        }
    }

    fn json(&self) -> Value {
        let paused = self.paused();
        json!({
            "destination": self.destination,
            "configured": self.configured,
            "state": paused.first().map_or(if self.seen.is_empty() { "unknown" } else { OPEN }, |seen| &seen.state),
            "since": paused.iter().filter_map(|seen| seen.since).min().map(rfc3339),
            "reason": paused.first().and_then(|seen| seen.reason.clone()),
            "status": paused.first().and_then(|seen| seen.status),
            "probes": paused.iter().map(|seen| seen.probes).sum::<u32>(),
            "paused_with_daemons": self.seen.iter().filter(|seen| seen.state != OPEN).count(),
            "daemons": self.seen.len(),
            "in_flight": self.in_flight,
            "max_in_flight": self.max_in_flight,
        })
    }
}

/// Why nothing is sent to this destination now.
pub fn obstacle(config: &Config, daemons: &[DaemonSeen], destination: &str, now: Timestamp) -> Option<String> {
    let all = standings(config, daemons, &[]);
    all.iter().find(|standing| standing.destination == destination)?.obstacle(now)
}

/// A line for each, and what to type where it is paused.
pub fn table(standings: &[Standing<'_>], now: Timestamp, given: &str, screen: Screen) -> String {
    let mut table =
        Table::new(&[("destination", Side::Left), ("state", Side::Left), ("in flight", Side::Right), ("", Side::Left)]);
    for standing in standings {
        let here = if standing.configured { "" } else { " (not configured)" };
        let most = standing.max_in_flight.map_or("–".to_owned(), |most| most.to_string());
        table.row([
            format!("{}{here}", name(standing.destination)),
            standing.state(now),
            format!("{}/{most}", standing.in_flight),
            standing.hint(given),
        ]);
    }
    let mut out = String::new();
    for (block, standing) in
        table.blocks(screen).into_iter().zip(std::iter::once(None).chain(standings.iter().map(Some)))
    {
        let paused = standing.is_some_and(|standing| !standing.paused().is_empty());
        for line in block.lines() {
            out.push_str(&if paused { screen.warn(line) } else { line.to_owned() });
            out.push('\n');
        }
    }
    out
}

/// The same for programs.
pub fn json_of(standings: &[Standing<'_>]) -> Value {
    standings.iter().map(Standing::json).collect()
}

/// The daemons that are there, for programs.
pub fn json_of_daemons(daemons: &[DaemonSeen]) -> Value {
    let daemon = |daemon: &DaemonSeen| {
        json!({
            "worker": daemon.worker, "version": daemon.version, "started_at": rfc3339(daemon.started_at),
            "seen_at": rfc3339(daemon.seen_at),
        })
    };
    daemons.iter().map(daemon).collect()
}
