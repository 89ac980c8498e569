//! Which ledger this is, and whether it is still on the cluster and the timeline that it was used on last: after a failover
//! to an asynchronous replica or from a backup, what was recorded and sent may have been lost.
//!
//! From then on every new session is asked whether it is where the others were, before anything is done in it: one that ends
//! is replaced without a word, perhaps by one with the server that has taken over.

use std::sync::{Arc, OnceLock};

use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Error, GenericClient};
use uuid::Uuid;

use super::session::session_config;
use super::{Ledger, LedgerError};
use crate::core::target::Secret;

const RECOGNISE: &str = include_str!("../../sql/recognise.sql");
const SAME_CLUSTER: &str = include_str!("../../sql/same_cluster.sql");

/// The cluster, as far as it could be read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Cluster {
    system_identifier: Option<i64>,
    timeline: Option<i32>,
}

/// Where sessions have to be, once that is known.
#[derive(Clone, Debug, Default)]
pub(super) struct Whereabouts(Arc<OnceLock<Cluster>>);

impl Whereabouts {
    /// Refused by the server where this session is not there.
    pub async fn compare(&self, session: &impl GenericClient) -> Result<(), Error> {
        let Some(Cluster { system_identifier, timeline }) = self.0.get() else { return Ok(()) };
        let params: [(&(dyn ToSql + Sync), Type); 2] = [(system_identifier, Type::INT8), (timeline, Type::INT4)];
        session.query_typed(SAME_CLUSTER, &params).await.map(drop)
    }
}

/// A ledger that is where it was.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Recognised {
    /// Its own name, made with its schema.
    pub ledger: Uuid,
    /// Whether the cluster could be read. What could not be is not compared.
    pub readable: bool,
}

impl Ledger {
    /// Says which ledger this is, and remembers the cluster where none was. From then on no session of this ledger's is
    /// used that is with another.
    ///
    /// # Errors
    /// Where it is not the cluster or the timeline that is remembered.
    pub async fn recognise(&self) -> Result<Recognised, LedgerError> {
        let row = self.session().await?.query_one(RECOGNISE, &[]).await?;
        let here = Cluster { system_identifier: row.try_get("system_identifier")?, timeline: row.try_get("timeline")? };
        let readable = here.system_identifier.is_some() && here.timeline.is_some();
        // What it was at the first time, it is each time.
        let _ = self.whereabouts.0.set(here);
        Ok(Recognised { ledger: row.try_get("ledger_id")?, readable })
    }

    /// Whether [`Self::recognise`] would do, as a daemon that starts here would ask. Remembers nothing.
    ///
    /// # Errors
    /// Where it is not the cluster or the timeline that is remembered, and where this login may not run a daemon.
    pub async fn would_recognise(&self) -> Result<(), LedgerError> {
        let mut session = self.session().await?;
        let asked = session.transaction().await?;
        asked.query(RECOGNISE, &[]).await?;
        Ok(asked.rollback().await?)
    }

    /// Whether this is still the ledger that was recognised, with the schema of this binary.
    ///
    /// # Errors
    /// Where it is not, and where that could not be asked.
    pub async fn is_ours(&self) -> Result<(), LedgerError> {
        self.check_schema().await?;
        self.recognise().await.map(drop)
    }
}

/// Remembers the cluster as it is now, whatever was remembered. For its owner. Returns what it is.
pub async fn accept_cluster(url: &Secret) -> Result<String, LedgerError> {
    let (config, tls) = session_config(url)?;
    let (client, connection) = config.connect(tls).await?;
    // Ends when the client is dropped.
    tokio::spawn(connection);
    Ok(client.query_one("select outbox.accept_cluster()", &[]).await?.try_get(0)?)
}
