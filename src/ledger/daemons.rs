//! Which daemons there are and how their destinations stand, as each says itself, and what a person asks of them.

use std::time::Duration;

use tokio_postgres::Row as SqlRow;

use super::values::micros;
use super::{Ledger, LedgerError};
use crate::core::time::Timestamp;

const REPORT: &str = include_str!("../../sql/daemon_report.sql");
const LEAVE: &str = include_str!("../../sql/daemon_leave.sql");
const DAEMONS: &str = include_str!("../../sql/daemons.sql");
const REQUESTS: &str = include_str!("../../sql/resume_requests.sql");
const RESUME: &str = include_str!("../../sql/resume.sql");

/// The state of a destination that is not paused. Otherwise it is why it is.
pub const OPEN: &str = "open";

/// How one destination stands with a daemon.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DestinationReport {
    /// Its name.
    pub destination: String,
    /// [`OPEN`], or why it is paused.
    pub state: &'static str,
    /// For how long it has been so; `None` = it is open.
    pub since: Option<Duration>,
    /// What was learnt last; `None` = nothing that matters.
    pub reason: Option<&'static str>,
    /// HTTP status, where there was one.
    pub status: Option<u16>,
    /// Probes that did not end it.
    pub probes: u32,
    /// Requests that are under way.
    pub in_flight: u32,
    /// The most at once.
    pub max_in_flight: u32,
}

/// The same as others read it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DestinationSeen {
    /// Its name.
    pub destination: String,
    /// [`OPEN`], or why it is paused.
    pub state: String,
    /// From when on; `None` = it is open.
    pub since: Option<Timestamp>,
    /// What was learnt last.
    pub reason: Option<String>,
    /// HTTP status, where there was one.
    pub status: Option<i32>,
    /// Probes that did not end it.
    pub probes: u32,
    /// Requests that were under way when it was written.
    pub in_flight: u32,
    /// The most at once.
    pub max_in_flight: u32,
}

/// A daemon that is there.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DaemonSeen {
    /// Its name, as in `worker` of what it holds.
    pub worker: String,
    /// Its version.
    pub version: String,
    /// Since when.
    pub started_at: Timestamp,
    /// When it last said so.
    pub seen_at: Timestamp,
    /// Its destinations, by name.
    pub destinations: Vec<DestinationSeen>,
}

/// Somebody asks that a destination be probed at once.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ResumeRequest {
    /// Which one.
    pub destination: String,
    /// When.
    pub requested_at: Timestamp,
    /// How long ago.
    pub age: Duration,
}

impl Ledger {
    /// Says that this worker is there, since `running`, and is to be believed for `believed_for`. Returns the
    /// database's time.
    pub async fn report(
        &self,
        version: &str,
        running: Duration,
        believed_for: Duration,
        destinations: &[DestinationReport],
    ) -> Result<Timestamp, LedgerError> {
        fn column<'r, T>(rows: &'r [DestinationReport], of: impl Fn(&'r DestinationReport) -> T) -> Vec<T> {
            rows.iter().map(of).collect()
        }
        let count = |n: u32| i32::try_from(n).unwrap_or(i32::MAX);
        let session = self.session().await?;
        let row = session
            .query_one(
                REPORT,
                &[
                    &self.worker,
                    &version,
                    &micros(running),
                    &micros(believed_for),
                    &column(destinations, |d| d.destination.as_str()),
                    &column(destinations, |d| d.state),
                    &column(destinations, |d| d.since.map(micros)),
                    &column(destinations, |d| d.reason),
                    &column(destinations, |d| d.status.map(i32::from)),
                    &column(destinations, |d| count(d.probes)),
                    &column(destinations, |d| count(d.in_flight)),
                    &column(destinations, |d| count(d.max_in_flight)),
                ],
            )
            .await?;
        Ok(row.try_get(0)?)
    }

    /// This worker is not there any more.
    pub async fn leave(&self) -> Result<(), LedgerError> {
        self.session().await?.query(LEAVE, &[&self.worker]).await?;
        Ok(())
    }

    /// Requests that are younger than that.
    pub async fn resume_requests(&self, than: Timestamp) -> Result<Vec<ResumeRequest>, LedgerError> {
        let rows = self.session().await?.query(REQUESTS, &[&than]).await?;
        let request = |row: &SqlRow| {
            let age: i64 = row.try_get("age")?;
            Ok(ResumeRequest {
                destination: row.try_get("destination")?,
                requested_at: row.try_get("requested_at")?,
                age: Duration::from_micros(u64::try_from(age).unwrap_or(0)),
            })
        };
        rows.iter().map(request).collect()
    }

    /// Asks the daemons to probe a destination at once. Returns how many have said that they have it paused.
    pub async fn resume(&self, destination: &str, by: &str, reason: &str) -> Result<u64, LedgerError> {
        let session = self.session().await?;
        let paused: i64 = session.query_one(RESUME, &[&destination, &by, &reason]).await?.try_get(0)?;
        Ok(u64::try_from(paused).unwrap_or(0))
    }

    /// The daemons that are there, the oldest first.
    pub async fn daemons(&self) -> Result<Vec<DaemonSeen>, LedgerError> {
        let session = self.session().await?;
        let mut daemons: Vec<DaemonSeen> = Vec::new();
        for row in &session.query(DAEMONS, &[]).await? {
            let worker: String = row.try_get("worker")?;
            if daemons.last().is_none_or(|last| last.worker != worker) {
                daemons.push(DaemonSeen {
                    worker,
                    version: row.try_get("version")?,
                    started_at: row.try_get("started_at")?,
                    seen_at: row.try_get("seen_at")?,
                    destinations: vec![],
                });
            }
            if let (Some(daemon), Some(destination)) = (daemons.last_mut(), seen(row)?) {
                daemon.destinations.push(destination);
            }
        }
        Ok(daemons)
    }
}

fn seen(row: &SqlRow) -> Result<Option<DestinationSeen>, LedgerError> {
    let Some(destination) = row.try_get("destination")? else { return Ok(None) };
    let count = |name| -> Result<u32, LedgerError> {
        let count: Option<i32> = row.try_get(name)?;
        Ok(count.and_then(|n| u32::try_from(n).ok()).unwrap_or(0))
    };
    Ok(Some(DestinationSeen {
        destination,
        state: row.try_get("state")?,
        since: row.try_get("since")?,
        reason: row.try_get("reason")?,
        status: row.try_get("status")?,
        probes: count("probes")?,
        in_flight: count("in_flight")?,
        max_in_flight: count("max_in_flight")?,
    }))
}
