//! A real daemon as a child process, with its configuration and its log in files.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};
use tokio::process::{Child, Command};

use super::usage::Usage;
use crate::clock::Uptime;

/// A running `outboxd run`. Dropping it kills it.
pub struct Daemon {
    child: Child,
    pid: u32,
    log: PathBuf,
}

impl Daemon {
    /// Starts `binary run` with this configuration; its files are `name.toml` and `name.log` in `dir`.
    pub fn start(binary: &Path, dir: &Path, name: &str, config: &str) -> io::Result<Self> {
        let file = dir.join(format!("{name}.toml"));
        std::fs::write(&file, config)?;
        Self::start_with(Command::new(binary).args(["run", "--config"]).arg(&file), &dir.join(format!("{name}.log")))
    }

    /// Starts a prepared command with its output in `log`, appended.
    pub fn start_with(command: &mut Command, log: &Path) -> io::Result<Self> {
        let output = File::options().create(true).append(true).open(log)?;
        let child = command
            .stdin(Stdio::null())
            .stdout(Stdio::from(output.try_clone()?))
            .stderr(Stdio::from(output))
            .kill_on_drop(true)
            .spawn()?;
        let pid = child.id().ok_or_else(|| io::Error::other("the daemon has ended at once"))?;
        Ok(Self { child, pid, log: log.to_owned() })
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Sends a signal.
    pub fn signal(&self, signal: Signal) -> io::Result<()> {
        Ok(kill_process(self.process()?, signal)?)
    }

    /// Whether a signal has stopped it.
    pub fn is_stopped(&self) -> io::Result<bool> {
        let looked = WaitIdOptions::STOPPED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
        Ok(waitid(WaitId::Pid(self.process()?), looked)?.is_some_and(|status| status.stopped()))
    }

    fn process(&self) -> io::Result<Pid> {
        Ok(i32::try_from(self.pid).ok().and_then(Pid::from_raw).ok_or(io::ErrorKind::InvalidInput)?)
    }

    /// Waits for its end; an error where it doesn't end within the bound.
    pub async fn ended(&mut self, within: Duration) -> io::Result<ExitStatus> {
        tokio::time::timeout(within, self.child.wait()).await.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))?
    }

    /// Asks it to drain, and waits for its end.
    pub async fn terminate(&mut self, within: Duration) -> io::Result<ExitStatus> {
        self.signal(Signal::TERM)?;
        self.ended(within).await
    }

    /// What it has written so far, logs and refusals.
    pub fn log(&self) -> String {
        std::fs::read(&self.log).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default()
    }

    /// Waits until its log holds a text; an error, with the log, where that doesn't happen within the bound.
    pub async fn logged(&self, text: &str, within: Duration) -> io::Result<()> {
        let end = Uptime::now().plus(within);
        while !self.log().contains(text) {
            if end.is_over() {
                return Err(io::Error::other(format!("{text:?} was not logged within {within:?}:\n{}", self.log())));
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        Ok(())
    }

    /// What it has used so far, where the system says so.
    pub fn usage(&self) -> Option<Usage> {
        Usage::of(self.pid)
    }
}
