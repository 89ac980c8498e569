//! Whether anything grows: memory, sessions and log of each daemon, looked at every few seconds while it works.

use std::path::PathBuf;
use std::time::Duration;

use serde::Serialize;

use crate::clock::Uptime;
use crate::proving::session;
use crate::proving::usage::Usage;

/// Between two looks.
const LOOK_EVERY: Duration = Duration::from_secs(5);
/// What is read before this says more about starting than about growing.
const WARM: Duration = Duration::from_secs(20);
/// The fewest looks that say anything.
const ENOUGH: usize = 8;
/// Memory may differ by so much between the beginning and the end: allocators keep what they once had.
const SLACK_BYTES: u64 = 6 * 1024 * 1024;
/// Log lines come in bursts.
const LOG_FACTOR: f64 = 2.0;

/// One look.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Look {
    /// Since the beginning, seconds.
    pub seconds: f64,
    /// Resident memory of each daemon, bytes.
    pub memory: Vec<u64>,
    /// Sessions of all daemons at the database; `None` = it was away.
    pub sessions: Option<u64>,
    /// Size of all logs, bytes.
    pub log: u64,
}

/// Everything that was seen, and what of it has grown.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Soak {
    /// In the order of time.
    pub looks: Vec<Look>,
    /// The largest daemon at the beginning (warm) and at the end, MiB: medians of a third of the looks.
    pub memory_mib: [f64; 2],
    /// The fewest and the most sessions.
    pub sessions: [u64; 2],
    /// How many there may be.
    pub sessions_allowed: u64,
    /// Log written in the first and in the last third, KiB a minute.
    pub log_kib_per_minute: [f64; 2],
    /// What has grown, in words.
    pub grown: Vec<String>,
}

/// Looks until it is aborted; what has been seen is sent each time.
pub async fn watch(pids: Vec<u32>, logs: Vec<PathBuf>, url: String, seen: tokio::sync::watch::Sender<Vec<Look>>) {
    let begun = Uptime::now();
    loop {
        tokio::time::sleep(LOOK_EVERY).await;
        let size = |log: &PathBuf| std::fs::metadata(log).map(|file| file.len()).unwrap_or(0);
        let look = Look {
            seconds: Uptime::now().since(begun).as_secs_f64(),
            memory: pids.iter().filter_map(|pid| Some(Usage::of(*pid)?.rss)).collect(),
            sessions: sessions(&url).await,
            log: logs.iter().map(size).sum(),
        };
        seen.send_modify(|looks| looks.push(look));
    }
}

async fn sessions(url: &str) -> Option<u64> {
    let client = session::connect(url).await.ok()?;
    let sql = "select count(*) from pg_stat_activity where application_name = 'outboxd'";
    let count: i64 = client.query_one(sql, &[]).await.ok()?.try_get(0).ok()?;
    u64::try_from(count).ok()
}

impl Soak {
    /// Compares the end with the beginning. `allowed` = sessions of all daemons together.
    pub fn of(looks: Vec<Look>, allowed: u64) -> Self {
        let warm: Vec<&Look> = looks.iter().filter(|look| look.seconds >= WARM.as_secs_f64()).collect();
        let third = (warm.len() / 3).max(1);
        let (first, last) = (&warm[..third.min(warm.len())], &warm[warm.len().saturating_sub(third)..]);
        let memory = [median_memory(first), median_memory(last)];
        let counts: Vec<u64> = warm.iter().filter_map(|look| look.sessions).collect();
        let sessions = [counts.iter().min().copied().unwrap_or(0), counts.iter().max().copied().unwrap_or(0)];
        let log = [log_rate(first), log_rate(last)];
        let mut grown = Vec::new();
        if warm.len() < ENOUGH {
            grown.push(format!("{} looks are too few to say anything; give it more time", warm.len()));
        }
        if memory[1] > memory[0] + memory[0] / 4 + SLACK_BYTES {
            grown.push(format!("memory, from {} to {} MiB", mib(memory[0]), mib(memory[1])));
        }
        if sessions[1] > allowed {
            grown.push(format!("sessions, to {} of {allowed}", sessions[1]));
        }
        if log[1] > log[0] * LOG_FACTOR + 64.0 {
            grown.push(format!("the log, from {} to {} KiB a minute", log[0], log[1]));
        }
        let memory_mib = memory.map(mib);
        Self { looks, memory_mib, sessions, sessions_allowed: allowed, log_kib_per_minute: log, grown }
    }
}

/// Of the largest daemon.
fn median_memory(looks: &[&Look]) -> u64 {
    let mut all: Vec<u64> = looks.iter().filter_map(|look| look.memory.iter().max().copied()).collect();
    all.sort_unstable();
    all.get(all.len() / 2).copied().unwrap_or(0)
}

#[allow(clippy::cast_precision_loss, reason = "figures for people")]
fn log_rate(looks: &[&Look]) -> f64 {
    let (Some(first), Some(last)) = (looks.first(), looks.last()) else { return 0.0 };
    let minutes = (last.seconds - first.seconds) / 60.0;
    let bytes = last.log.saturating_sub(first.log) as f64;
    if minutes > 0.0 { (bytes / 1024.0 / minutes).round() } else { 0.0 }
}

#[allow(clippy::cast_precision_loss, reason = "figures for people")]
fn mib(bytes: u64) -> f64 {
    (bytes as f64 / 1_048_576.0 * 10.0).round() / 10.0
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1024 * 1024;

    fn looks(memory: fn(u64) -> u64, sessions: fn(u64) -> u64, log: fn(u64) -> u64) -> Vec<Look> {
        let look = |n: u64| Look {
            seconds: f64::from(u32::try_from(n * 5).unwrap()),
            memory: vec![1, memory(n)],
            sessions: Some(sessions(n)),
            log: log(n),
        };
        (1..=40).map(look).collect()
    }

    #[test]
    fn r30_what_is_flat_is_called_flat_and_what_grows_is_named() {
        let flat = Soak::of(looks(|n| 20 * MIB + n % 3 * MIB, |n| 10 + n % 4, |n| n * 9000), 18);
        assert_eq!(flat.grown, Vec::<String>::new());
        let grown = |looks| Soak::of(looks, 18).grown.join("\n");
        assert!(grown(looks(|n| (20 + n) * MIB, |_| 10, |n| n * 9000)).contains("memory"));
        assert!(grown(looks(|_| 20 * MIB, |n| n, |n| n * 9000)).contains("sessions"));
        assert!(grown(looks(|_| 20 * MIB, |_| 10, |n| n * n * n * 100)).contains("log"));
        assert!(grown(looks(|_| 20 * MIB, |_| 10, |n| n * 9000)[..6].to_vec()).contains("too few"));
    }
}
