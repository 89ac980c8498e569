//! Which ledger this is, and whether it is still on the cluster and the timeline that it was used on last: after a failover
//! to an asynchronous replica or from a backup, what was recorded and sent may have been lost.

use tokio_postgres::Client;
use tokio_postgres::types::FromSqlOwned;
use uuid::Uuid;

use super::session::session_config;
use super::{Ledger, LedgerError};
use crate::core::target::Secret;

const RECOGNISE: &str = include_str!("../../sql/recognise.sql");
const TIMELINE: &str = include_str!("../../sql/timeline.sql");
const SYSTEM: &str = "select system_identifier from pg_control_system()";

/// The cluster, as far as it can be read.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Cluster {
    system_identifier: Option<i64>,
    timeline: Option<i32>,
}

/// A ledger that is where it was.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Recognised {
    /// Its own name, made with its schema.
    pub ledger: Uuid,
    /// Whether the cluster could be read. Where it could not, nothing was compared.
    pub readable: bool,
}

impl Ledger {
    /// Says which ledger this is, and remembers the cluster where none was.
    ///
    /// # Errors
    /// Where it is not the cluster or the timeline that is remembered.
    pub async fn recognise(&self) -> Result<Recognised, LedgerError> {
        let session = self.session().await?;
        let now = read(session.plain()).await?;
        let row = session.query_one(RECOGNISE, &[&now.system_identifier, &now.timeline]).await?;
        let known: Cluster =
            Cluster { system_identifier: row.try_get("system_identifier")?, timeline: row.try_get("timeline")? };
        let differs = |known: Option<i64>, now: Option<i64>| known.zip(now).is_some_and(|(known, now)| known != now);
        if differs(known.system_identifier, now.system_identifier)
            || differs(known.timeline.map(i64::from), now.timeline.map(i64::from))
        {
            return Err(LedgerError::OtherCluster { was: known.to_string(), is: now.to_string() });
        }
        let readable = now.system_identifier.is_some() && now.timeline.is_some();
        Ok(Recognised { ledger: row.try_get("ledger_id")?, readable })
    }
}

/// Remembers the cluster as it is now, whatever was remembered. For its owner. Returns what it is.
pub async fn accept_cluster(url: &Secret) -> Result<String, LedgerError> {
    let (config, tls) = session_config(url)?;
    let (client, connection) = config.connect(tls).await?;
    // Ends when the client is dropped.
    tokio::spawn(connection);
    let now = read(&client).await?;
    client.execute("select outbox.accept_cluster($1, $2)", &[&now.system_identifier, &now.timeline]).await?;
    Ok(now.to_string())
}

async fn read(client: &Client) -> Result<Cluster, LedgerError> {
    Ok(Cluster { system_identifier: value(client, SYSTEM).await?, timeline: value(client, TIMELINE).await? })
}

/// The one value of a question, unnamed, so that a pooler lets it pass.
async fn value<T: FromSqlOwned>(client: &Client, question: &str) -> Result<Option<T>, LedgerError> {
    match client.query_typed(question, &[]).await.map_err(LedgerError::from) {
        Ok(rows) => Ok(rows.first().map(|row| row.try_get(0)).transpose()?),
        Err(error) => unreadable(error),
    }
}

/// What this server doesn't have or doesn't let us see is not compared.
fn unreadable<T>(error: LedgerError) -> Result<Option<T>, LedgerError> {
    if error.is_session() { Err(error) } else { Ok(None) }
}

impl std::fmt::Display for Cluster {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // As PostgreSQL's tools print it.
        match self.system_identifier {
            Some(identifier) => write!(f, "system identifier {}", identifier.cast_unsigned())?,
            None => f.write_str("a system identifier that cannot be read")?,
        }
        match self.timeline {
            Some(timeline) => write!(f, ", timeline {timeline}"),
            None => f.write_str(", a timeline that cannot be read"),
        }
    }
}
