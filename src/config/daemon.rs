//! `[dispatcher]` and `[log]`.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::problem::Reported;
use super::table::Table;

/// The loop that delivers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Dispatcher {
    /// Requests at once over all operations, 1 to 10,000.
    pub max_in_flight: u32,
    /// A lease is the operation's timeout and this; longer than zero.
    pub lease_margin: Duration,
    /// The longest it sleeps when nothing wakes it.
    pub poll_interval: Duration,
    /// Whether it listens.
    pub notify: bool,
    /// How long a stopping daemon waits for what is in flight.
    pub drain_timeout: Duration,
    /// Bytes of bodies in memory at once, and one body more.
    pub bytes_in_flight_max: u32,
    /// The most bytes that a body may have.
    pub body_max_bytes: u32,
    /// Where outcomes are kept that the database did not take.
    pub journal: Option<PathBuf>,
}

/// What the daemon says.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Log {
    /// How a line looks.
    pub format: LogFormat,
    /// The least grave that is written.
    pub level: LogLevel,
    /// Between two lines of figures.
    pub stats_interval: Duration,
}

/// How a line of the log looks.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum LogFormat {
    /// One JSON object a line.
    Json,
    /// For people.
    Text,
}

/// How grave a line of the log is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[allow(missing_docs, reason = "the usual five")]
pub enum LogLevel {
    Error,
    Warn,
    Info,
    Debug,
    Trace,
}

impl LogFormat {
    /// Every format, with its name.
    pub const ALL: [(Self, &'static str); 2] = [(Self::Json, "json"), (Self::Text, "text")];
}

impl LogLevel {
    /// Every level, with its name.
    pub const ALL: [(Self, &'static str); 5] = [
        (Self::Error, "error"),
        (Self::Warn, "warn"),
        (Self::Info, "info"),
        (Self::Debug, "debug"),
        (Self::Trace, "trace"),
    ];
}

impl Dispatcher {
    pub(super) fn parse(table: &Table<'_>, base: &Path) -> Result<Self, Reported> {
        let max_in_flight = table.integer("max_in_flight");
        let (lease_margin, poll_interval) = (table.duration("lease_margin"), table.duration("poll_interval"));
        let (notify, drain_timeout) = (table.boolean("notify"), table.duration("drain_timeout"));
        let journal = table.text_if("journal");
        let (bytes_in_flight_max, body_max_bytes) =
            (table.integer("bytes_in_flight_max"), table.integer("body_max_bytes"));
        Ok(Self {
            max_in_flight: max_in_flight?,
            lease_margin: lease_margin?,
            poll_interval: poll_interval?,
            notify: notify?,
            drain_timeout: drain_timeout?,
            bytes_in_flight_max: bytes_in_flight_max?,
            body_max_bytes: body_max_bytes?,
            journal: journal?.map(|path| base.join(path)),
        })
    }
}

impl Log {
    pub(super) fn parse(table: &Table<'_>) -> Result<Self, Reported> {
        let (format, level) = (table.choice("format", &LogFormat::ALL), table.choice("level", &LogLevel::ALL));
        let stats_interval = table.duration("stats_interval");
        Ok(Self { format: format?, level: level?, stats_interval: stats_interval? })
    }
}
