//! A private PostgreSQL that lives as long as a test, a demo or a drill.
//!
//! It listens on 127.0.0.1 alone and trusts whoever connects there: nothing of value may be put into it.

mod account;
mod binaries;
mod error;
mod home;
mod leash;
mod replica;
mod server;

use std::fs;
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::time::Duration;

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use tempfile::TempDir;

use account::Account;
use binaries::Binaries;
use leash::Leash;
use server::Server;

pub use error::ClusterError;

const SUPERUSER: &str = "postgres";

/// Ports tried before giving up. They are outside the range that outgoing connections are given, so few are taken.
const PORT_TRIES: usize = 20;
const PORTS: std::ops::Range<u16> = 17_000..32_000;

/// How a private cluster should be.
#[derive(Clone, Debug)]
pub struct ClusterOptions {
    /// Lines of postgresql.conf as (name, value); they win over what is set here by default. `fsync` stays on unless
    /// it is turned off here.
    pub settings: Vec<(String, String)>,
    /// The directory of `initdb` and `postgres`; `None` looks in `PATH`, then where distributions put them.
    pub binaries: Option<PathBuf>,
    /// How long a start may take until connections are accepted.
    pub ready_within: Duration,
}

impl Default for ClusterOptions {
    fn default() -> Self {
        Self { settings: Vec::new(), binaries: None, ready_within: Duration::from_secs(60) }
    }
}

impl ClusterOptions {
    /// With one more setting.
    #[must_use]
    pub fn set(mut self, name: &str, value: &str) -> Self {
        self.settings.push((name.to_owned(), value.to_owned()));
        self
    }
}

/// How a server is asked to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopMode {
    /// Sessions are ended and everything is written first (SIGINT).
    Fast,
    /// As in a crash: the next start recovers from the write-ahead log (SIGQUIT).
    Immediate,
}

/// A running private PostgreSQL. Dropping it stops it and removes its files, and so does the end of this process, even
/// by SIGKILL.
#[derive(Debug)]
pub struct Cluster {
    account: Account,
    server: Server,
    /// `None` once it is kept.
    leash: Option<Leash>,
    home: TempDir,
}

impl Cluster {
    /// Makes and starts one; blocks for about a second.
    ///
    /// # Errors
    /// Where PostgreSQL is missing or does not start; the message says what to do or ends with the server's log.
    pub fn start(options: ClusterOptions) -> Result<Self, ClusterError> {
        let binaries = options.binaries.as_deref().map_or_else(Binaries::find, Binaries::of)?;
        let account = Account::pick()?;
        let home = home::make(account)?;
        let leash = Leash::tie(account, home.path()).map_err(ClusterError::io("start a shell"))?;
        home::init(&binaries, account, home.path(), &options.settings)?;
        let mut server = Server::new(&binaries, account, home.path(), options.ready_within);
        let mut tries = 0;
        loop {
            match server.start(free_port()?) {
                Err(ClusterError::PortTaken { .. }) if tries < PORT_TRIES => tries += 1,
                Err(error) => return Err(error),
                Ok(()) => return Ok(Self { account, server, leash: Some(leash), home }),
            }
        }
    }

    /// A URL that psql and tokio-postgres both understand. No password is asked for.
    pub fn url(&self, user: &str, database: &str) -> String {
        let encoded = |text| utf8_percent_encode(text, NON_ALPHANUMERIC).to_string().replace("%5F", "_");
        format!("postgres://{}@127.0.0.1:{}/{}", encoded(user), self.port(), encoded(database))
    }

    /// The role that may do everything; a database of that name exists.
    #[allow(clippy::unused_self, reason = "who asks should not know that it is a constant")]
    pub fn superuser(&self) -> &str {
        SUPERUSER
    }

    /// On 127.0.0.1; kept by a restart.
    pub fn port(&self) -> u16 {
        self.server.port()
    }

    /// Where the server keeps its data.
    pub fn data_dir(&self) -> &Path {
        self.server.data_dir()
    }

    /// What the server logged so far.
    pub fn log(&self) -> String {
        fs::read_to_string(self.server.log_file()).unwrap_or_default()
    }

    /// The postmaster's process id, also after it has been stopped.
    pub fn pid(&self) -> u32 {
        self.server.pid()
    }

    /// Ends the server and keeps its data. Does nothing if it is not running.
    ///
    /// # Errors
    /// If it can neither be signalled nor waited for.
    pub fn stop(&mut self, mode: StopMode) -> Result<(), ClusterError> {
        self.server.stop(mode)
    }

    /// Starts it again after [`Self::stop`], on the same port, and waits until it accepts connections.
    ///
    /// # Errors
    /// If it does not, or something else has taken the port.
    pub fn resume(&mut self) -> Result<(), ClusterError> {
        let port = self.port();
        self.server.start(port)
    }

    /// Stops and starts it; same port, same data.
    ///
    /// # Errors
    /// As [`Self::stop`] and [`Self::resume`].
    pub fn restart(&mut self, mode: StopMode) -> Result<(), ClusterError> {
        self.stop(mode)?;
        self.resume()
    }

    /// Leaves it running when this process ends. From then on somebody else has to stop it.
    pub fn keep(mut self) -> KeptCluster {
        if let Some(leash) = self.leash.take() {
            leash.let_go();
        }
        self.server.forget();
        self.home.disable_cleanup(true);
        KeptCluster { dir: self.home.path().to_owned(), pid: self.server.pid(), port: self.server.port() }
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        // Without a leash it is meant to stay.
        let Some(leash) = self.leash.take() else { return };
        // Server first, then its files. Where that failed the leash is dropped as it is, and tries for itself.
        let stopped = self.server.stop(StopMode::Immediate).is_ok();
        if stopped && fs::remove_dir_all(self.home.path()).is_ok() {
            leash.let_go();
        }
    }
}

/// A cluster that outlives this process.
#[derive(Clone, Debug)]
pub struct KeptCluster {
    /// Everything it has on disk.
    pub dir: PathBuf,
    /// Its postmaster.
    pub pid: u32,
    /// On 127.0.0.1.
    pub port: u16,
}

impl KeptCluster {
    /// What to type to end it and remove its files.
    pub fn stop_command(&self) -> String {
        format!("kill -INT {} && sleep 1 && rm -rf {}", self.pid, self.dir.display())
    }
}

/// A port nobody listens on right now. It may be gone by the time it is used.
fn free_port() -> Result<u16, ClusterError> {
    let free = |port: u16| TcpListener::bind((Ipv4Addr::LOCALHOST, port));
    for _ in 0..PORT_TRIES {
        let port = rand::random_range(PORTS);
        if free(port).is_ok() {
            return Ok(port);
        }
    }
    let any = free(0).and_then(|listener| listener.local_addr()).map_err(ClusterError::io("find a free port"))?;
    Ok(any.port())
}

#[cfg(test)]
mod tests;
