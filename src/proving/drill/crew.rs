//! The workers: real daemons as child processes, each with its own way to the database.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::process::Signal;
use tempfile::TempDir;

use super::WAYS;
use super::kinds::Version;
use super::records::Said;
use super::settings::{self, Pace};
use crate::clock::Uptime;
use crate::proving::daemon::Daemon;
use crate::proving::proxy::Proxy;

/// The longest drain: the daemons' own, and a little for a busy machine.
const DRAINS_WITHIN: Duration = Duration::from_secs(20);
/// So long after its start a daemon listens for signals, also on a busy machine.
const GROWN_UP: Duration = Duration::from_secs(2);

/// All workers. Dropping it kills them.
pub struct Crew {
    binary: PathBuf,
    dir: TempDir,
    ways: [String; WAYS],
    pace: Pace,
    workers: Vec<Worker>,
}

struct Worker {
    daemon: Option<Daemon>,
    database: Proxy,
    version: Version,
    /// It has been told to end.
    told_to_end: bool,
    /// Since when it runs.
    since: Uptime,
}

impl Crew {
    /// Starts so many, all with the first version of the configuration.
    ///
    /// # Errors
    /// If a port, a file or a process cannot be had.
    pub async fn start(
        binary: &Path,
        count: usize,
        database_url: &str,
        ways: [String; WAYS],
        pace: Pace,
    ) -> io::Result<Self> {
        let dir = tempfile::Builder::new().prefix("outboxd-drill-").tempdir()?;
        let mut crew = Self { binary: binary.to_owned(), dir, ways, pace, workers: Vec::new() };
        for number in 0..count {
            let database = Proxy::start(database_url).await?;
            crew.workers.push(Worker {
                daemon: None,
                database,
                version: Version::First,
                told_to_end: false,
                since: Uptime::now(),
            });
            crew.raise(number)?;
        }
        Ok(crew)
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.workers.len()
    }

    /// A worker's way to the database.
    pub fn database(&self, worker: usize) -> &Proxy {
        &self.workers[worker].database
    }

    /// Their process ids, of those that run.
    pub fn pids(&self) -> Vec<u32> {
        self.workers.iter().filter_map(|worker| Some(worker.daemon.as_ref()?.pid())).collect()
    }

    /// Their logs.
    pub fn logs(&self) -> Vec<PathBuf> {
        (0..self.workers.len()).map(|worker| self.log(worker)).collect()
    }

    /// Starts a worker that does not run.
    pub fn raise(&mut self, worker: usize) -> io::Result<()> {
        let name = format!("worker{worker}");
        let config =
            settings::toml(&self.workers[worker].database.url, &self.ways, self.workers[worker].version, self.pace);
        let daemon = Daemon::start(&self.binary, self.dir.path(), &name, &config)?;
        self.workers[worker].daemon = Some(daemon);
        self.workers[worker].told_to_end = false;
        self.workers[worker].since = Uptime::now();
        Ok(())
    }

    /// Sends a signal to a worker that runs.
    pub fn signal(&mut self, worker: usize, signal: Signal) -> io::Result<()> {
        let worker = &mut self.workers[worker];
        worker.told_to_end |= signal == Signal::KILL || signal == Signal::TERM;
        worker.daemon.as_ref().map_or(Ok(()), |daemon| daemon.signal(signal))
    }

    /// Writes another version of the configuration and has it read.
    pub async fn reload(&mut self, worker: usize, version: Version) -> io::Result<()> {
        // A process that has only just been started would die of the signal.
        tokio::time::sleep(self.workers[worker].since.plus(GROWN_UP).left()).await;
        let config = settings::toml(&self.workers[worker].database.url, &self.ways, version, self.pace);
        // Whole or not at all: the daemon may be starting just now.
        let (file, draft) =
            (self.dir.path().join(format!("worker{worker}.toml")), self.dir.path().join(format!("draft{worker}.toml")));
        std::fs::write(&draft, config)?;
        std::fs::rename(draft, file)?;
        self.workers[worker].version = version;
        self.signal(worker, Signal::HUP)
    }

    /// Whether a worker runs; one that has ended is forgotten. An error where it has ended and nobody had told it to.
    ///
    /// # Errors
    /// How it ended, and the end of its log.
    pub async fn is_up(&mut self, worker: usize) -> Result<bool, String> {
        let one = &mut self.workers[worker];
        let Some(daemon) = &mut one.daemon else { return Ok(false) };
        let Ok(status) = daemon.ended(Duration::ZERO).await else { return Ok(true) };
        let log = daemon.log();
        one.daemon = None;
        if std::mem::replace(&mut one.told_to_end, false) {
            return Ok(false);
        }
        let lines: Vec<&str> = log.lines().rev().take(5).collect();
        let end: Vec<&str> = lines.into_iter().rev().collect();
        Err(format!("worker {worker} ended by itself ({status}); the end of its log:\n{}", end.join("\n")))
    }

    /// Whether a worker runs that has not been told to end.
    pub fn goes_on(&self, worker: usize) -> bool {
        self.workers[worker].daemon.is_some() && !self.workers[worker].told_to_end
    }

    /// Waits until workers have ended because the database is not the one that it was. Returns how many have, within the
    /// bound.
    pub async fn refused(&mut self, within: Duration) -> usize {
        let end = Uptime::now().plus(within);
        let mut refused = 0;
        for worker in &mut self.workers {
            let Some(daemon) = &mut worker.daemon else { continue };
            if daemon.ended(end.left()).await.is_ok() && daemon.log().contains("ledger refused") {
                worker.daemon = None;
                refused += 1;
            }
        }
        refused
    }

    /// Asks every worker to drain. What went wrong, if anything.
    pub async fn dismiss(&mut self) -> Vec<String> {
        let mut wrong = Vec::new();
        for (number, worker) in self.workers.iter_mut().enumerate() {
            let Some(mut daemon) = worker.daemon.take() else { continue };
            match daemon.terminate(DRAINS_WITHIN).await {
                Ok(status) if status.success() => {}
                Ok(status) => wrong.push(format!("worker {number} did not drain: {status}")),
                Err(error) => wrong.push(format!("worker {number} did not drain: {error}")),
            }
        }
        wrong
    }

    /// Everything the workers said about actions.
    pub fn said(&self) -> Vec<Said> {
        let mut said = Vec::new();
        for worker in 0..self.workers.len() {
            let log = std::fs::read(self.log(worker)).unwrap_or_default();
            said.extend(String::from_utf8_lossy(&log).lines().filter_map(|line| heard(worker, line)));
        }
        said.sort_by_key(|said| said.at);
        said
    }

    fn log(&self, worker: usize) -> PathBuf {
        self.dir.path().join(format!("worker{worker}.log"))
    }
}

/// A line about an action, in words. A line that was cut off by a kill is none.
fn heard(worker: usize, line: &str) -> Option<Said> {
    let line: serde_json::Value = serde_json::from_str(line).ok()?;
    let at = line.get("timestamp")?.as_str()?;
    let at = humantime::parse_rfc3339(at).ok()?;
    let action = line.get("action")?.as_str()?.parse().ok()?;
    let mut text = line.get("message")?.as_str()?.to_owned();
    for name in ["evidence", "reason", "status", "next", "in_ms", "by", "state", "meaning", "fence"] {
        match line.get(name) {
            Some(serde_json::Value::String(value)) if !value.is_empty() => text += &format!(" {name}={value}"),
            Some(value) if value.is_number() => text += &format!(" {name}={value}"),
            Some(_) | None => {}
        }
    }
    Some(Said { at, worker, action, text })
}
