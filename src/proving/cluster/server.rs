//! The server process: started, waited for, stopped by its process id.

use std::fs::{self, File};
use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus, Stdio};
use std::thread::sleep;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use super::account::Account;
use super::binaries::Binaries;
use super::{ClusterError, StopMode};
use crate::clock::stopwatch;

/// Between two looks at a file or a process.
const LOOK_EVERY: Duration = Duration::from_millis(10);
/// How long each kind of stop may take before a harder one follows.
const STOP_WITHIN: Duration = Duration::from_secs(20);
/// A port that was ours a moment ago may take this long to be free again.
const PORT_WITHIN: Duration = Duration::from_secs(5);
const LOG_LINES: usize = 15;

/// One postmaster, running or not.
#[derive(Debug)]
pub(super) struct Server {
    postgres: PathBuf,
    account: Account,
    home: PathBuf,
    data: PathBuf,
    ready_within: Duration,
    port: u16,
    pid: u32,
    process: Option<Child>,
}

impl Server {
    pub(super) fn new(binaries: &Binaries, account: Account, home: &Path, ready_within: Duration) -> Self {
        Self {
            postgres: binaries.path("postgres"),
            account,
            home: home.to_owned(),
            data: home.join("data"),
            ready_within,
            port: 0,
            pid: 0,
            process: None,
        }
    }

    pub(super) fn port(&self) -> u16 {
        self.port
    }

    pub(super) fn pid(&self) -> u32 {
        self.pid
    }

    pub(super) fn data_dir(&self) -> &Path {
        &self.data
    }

    pub(super) fn log_file(&self) -> PathBuf {
        self.home.join("log")
    }

    /// Starts on `port` and waits until connections are accepted. On an error nothing is left running.
    pub(super) fn start(&mut self, port: u16) -> Result<(), ClusterError> {
        let log = File::options().create(true).append(true).open(self.log_file());
        let log = log.map_err(ClusterError::io("open PostgreSQL's log"))?;
        let err = log.try_clone().map_err(ClusterError::io("open PostgreSQL's log"))?;
        wait_for_port(port)?;
        let child = self
            .account
            .command(&self.postgres, &self.home)
            .args(["-h", "127.0.0.1", "-p", &port.to_string(), "-D"])
            .arg(&self.data)
            .stdin(Stdio::null())
            .stdout(log)
            .stderr(err)
            .spawn()
            .map_err(ClusterError::io("start postgres"))?;
        (self.port, self.pid) = (port, child.id());
        self.process = Some(child);
        let outcome = self.wait_until_ready();
        if outcome.is_err() {
            self.stop(StopMode::Immediate)?;
        }
        outcome
    }

    fn wait_until_ready(&mut self) -> Result<(), ClusterError> {
        let started = stopwatch();
        loop {
            if let Some(status) = self.ended()? {
                // Nothing of ours is on the port any more: if it cannot be had, somebody was quicker.
                let taken = TcpListener::bind((Ipv4Addr::LOCALHOST, self.port)).is_err();
                return Err(match taken {
                    true => ClusterError::PortTaken { port: self.port },
                    false => ClusterError::Ended { status, log: self.log_end() },
                });
            }
            if self.is_ready() {
                return Ok(());
            }
            if started.elapsed() > self.ready_within {
                return Err(ClusterError::NotReady { within: self.ready_within, log: self.log_end() });
            }
            sleep(LOOK_EVERY);
        }
    }

    /// The postmaster writes its state into its lock file (line 8, since PostgreSQL 10; `pg_ctl -w` reads it too).
    fn is_ready(&self) -> bool {
        let lock = fs::read_to_string(self.data.join("postmaster.pid")).unwrap_or_default();
        let mut lines = lock.lines();
        lines.next().is_some_and(|pid| pid.trim() == self.pid.to_string())
            && lines.nth(6).is_some_and(|state| state.trim() == "ready")
    }

    /// Ends it; a server that does not end in time is ended harder.
    pub(super) fn stop(&mut self, mode: StopMode) -> Result<(), ClusterError> {
        let signals = match mode {
            StopMode::Fast => &[Signal::INT, Signal::QUIT, Signal::KILL][..],
            StopMode::Immediate => &[Signal::QUIT, Signal::KILL],
        };
        for &signal in signals {
            let Some(child) = &self.process else { return Ok(()) };
            match kill_process(Pid::from_child(child), signal) {
                Ok(()) | Err(rustix::io::Errno::SRCH) => {}
                Err(errno) => return Err(ClusterError::Io { doing: "stop PostgreSQL", source: errno.into() }),
            }
            let asked = stopwatch();
            while asked.elapsed() < STOP_WITHIN {
                if self.ended()?.is_some() {
                    return Ok(());
                }
                sleep(LOOK_EVERY);
            }
        }
        Err(ClusterError::Io { doing: "stop PostgreSQL", source: io::ErrorKind::TimedOut.into() })
    }

    /// Lets it run on; nobody here will stop it.
    pub(super) fn forget(&mut self) {
        self.process = None;
    }

    fn ended(&mut self) -> Result<Option<ExitStatus>, ClusterError> {
        let Some(child) = &mut self.process else { return Ok(None) };
        let status = child.try_wait().map_err(ClusterError::io("wait for PostgreSQL"))?;
        if status.is_some() {
            self.process = None;
        }
        Ok(status)
    }

    fn log_end(&self) -> String {
        let log = fs::read_to_string(self.log_file()).unwrap_or_default();
        let lines: Vec<_> = log.lines().collect();
        lines[lines.len().saturating_sub(LOG_LINES)..].join("\n")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Nobody is left to tell; the leash still holds.
        let _ = self.stop(StopMode::Immediate);
    }
}

/// A short wait if a port of ours is not free again yet.
fn wait_for_port(port: u16) -> Result<(), ClusterError> {
    let started = stopwatch();
    while TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_err() {
        if started.elapsed() > PORT_WITHIN {
            return Err(ClusterError::PortTaken { port });
        }
        sleep(LOOK_EVERY);
    }
    Ok(())
}
