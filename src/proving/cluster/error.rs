//! Why there is no private cluster, and what to type.

use std::io;
use std::process::ExitStatus;
use std::time::Duration;

/// Why there is no private cluster.
#[derive(Debug, thiserror::Error)]
pub enum ClusterError {
    /// Nothing is installed, or not where anybody would look.
    #[error(
        "PostgreSQL's server binaries (initdb, postgres) were not found in {looked_in}; install them with \
         `apt-get install postgresql` (Debian, Ubuntu), `dnf install postgresql-server` (Fedora) or \
         `brew install postgresql` (macOS)"
    )]
    NoBinaries {
        /// Every place that was tried.
        looked_in: String,
    },
    /// Root may not run PostgreSQL, and there is nobody else.
    #[error(
        "PostgreSQL refuses to run as root, and /etc/passwd has neither `postgres` nor `nobody`; run this as a user"
    )]
    NoAccount,
    /// No directory for temporary files that the server's account could reach.
    #[error("no temporary directory that PostgreSQL's account can enter; set TMPDIR to one")]
    NoDirectory,
    /// A file or a process could not be had.
    #[error("failed to {doing}")]
    Io {
        /// What was being done.
        doing: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// `initdb` said no.
    #[error("initdb failed: {output}")]
    Initdb {
        /// What it printed.
        output: String,
    },
    /// The server ended instead of accepting connections.
    #[error("PostgreSQL ended while starting ({status}); the end of its log:\n{log}")]
    Ended {
        /// How it ended.
        status: ExitStatus,
        /// The last lines of its log.
        log: String,
    },
    /// The server took too long.
    #[error("PostgreSQL did not accept connections within {within:?}; the end of its log:\n{log}")]
    NotReady {
        /// How long it had.
        within: Duration,
        /// The last lines of its log.
        log: String,
    },
    /// Something else has the port.
    #[error("port {port} of 127.0.0.1 is taken")]
    PortTaken {
        /// Which.
        port: u16,
    },
}

impl ClusterError {
    pub(super) fn io(doing: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io { doing, source }
    }
}
