//! The schema: bringing it up to date, and checking that it is.

use std::time::Duration;

use refinery::{Migration, Runner, Target};
use tokio_postgres::{Client, Error};

use super::LedgerError;
use super::session::{Way, open, session_config, way};
use crate::core::target::Secret;

/// The version that this binary was built for.
pub const SCHEMA_VERSION: i32 = 10;

/// Only one migration runs at a time; the others wait and find the work done. refinery takes no lock of its own.
const MIGRATION_LOCK: i64 = 7_813_402_954_201_167_430;

/// Where refinery keeps what it has applied.
const HISTORY: &str = "outbox.schema_history";

const THROUGH_A_POOLER: &str = "it needs a session with the server itself, and this one leads through a connection pooler; \
    give `direct_url` of [database] the server's own address, or apply what `outboxd schema` prints";

/// In order. Numbered and immutable from 1.0 on.
const MIGRATIONS: [(&str, &str); 10] = [
    ("V1__tables", include_str!("../../sql/migrations/V1__tables.sql")),
    ("V2__guards", include_str!("../../sql/migrations/V2__guards.sql")),
    ("V3__enqueue", include_str!("../../sql/migrations/V3__enqueue.sql")),
    ("V4__control", include_str!("../../sql/migrations/V4__control.sql")),
    ("V5__decisions", include_str!("../../sql/migrations/V5__decisions.sql")),
    ("V6__memory", include_str!("../../sql/migrations/V6__memory.sql")),
    ("V7__status", include_str!("../../sql/migrations/V7__status.sql")),
    ("V8__lanes", include_str!("../../sql/migrations/V8__lanes.sql")),
    ("V9__daemons", include_str!("../../sql/migrations/V9__daemons.sql")),
    ("V10__ledger", include_str!("../../sql/migrations/V10__ledger.sql")),
];

/// What `migrate` did.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Migrated {
    /// The schema's version before; 0 = there was none.
    pub from: i32,
    /// Its version now.
    pub to: i32,
}

/// The whole schema as SQL, for teams with a migration tool of their own.
pub fn schema_sql() -> String {
    let mut sql = String::new();
    for (name, text) in MIGRATIONS {
        sql.push_str(&format!("-- {name}\n\n{text}\n"));
    }
    sql
}

/// Brings the schema up to date. Safe to run many times and many at once; needs a session with the server itself.
pub async fn migrate(url: &Secret) -> Result<Migrated, LedgerError> {
    let (config, tls) = session_config(url)?;
    let (mut client, connection) = open(&config, &tls).await?;
    // Ends when the client is dropped.
    let session = tokio::spawn(connection);
    match way(&client).await? {
        Way::Direct => {}
        Way::Pooled => return Err(LedgerError::NoDirectSession(THROUGH_A_POOLER)),
    }
    client.query("select pg_advisory_lock($1)", &[&MIGRATION_LOCK]).await?;
    let done = migrate_alone(&mut client).await;
    drop(client);
    let _ = tokio::time::timeout(Duration::from_secs(5), session).await;
    done
}

async fn migrate_alone(client: &mut Client) -> Result<Migrated, LedgerError> {
    let from = version(client).await?.unwrap_or(0);
    if from > SCHEMA_VERSION {
        return Err(LedgerError::Newer { has: from, knows: SCHEMA_VERSION });
    }
    if from == 0 {
        client.batch_execute("create schema if not exists outbox").await?;
    }
    let migrations = MIGRATIONS
        .iter()
        .map(|(name, sql)| Migration::unapplied(name, sql))
        .collect::<Result<Vec<_>, _>>()
        .map_err(|e| LedgerError::Migration(e.to_string()))?;
    let mut runner = Runner::new(&migrations);
    runner.set_migration_table_name(HISTORY);
    // A schema that was installed by another tool has no history of ours: take it as it says it is.
    let has_history = client.query_one("select to_regclass('outbox.schema_history') is not null", &[]).await?;
    if from > 0 && !has_history.get::<_, bool>(0) {
        let mut installed = Runner::new(&migrations).set_target(Target::FakeVersion(from));
        installed.set_migration_table_name(HISTORY);
        installed.run_async(client).await.map_err(|e| LedgerError::Migration(explain(&e)))?;
    }
    runner.run_async(client).await.map_err(|e| LedgerError::Migration(explain(&e)))?;
    Ok(Migrated { from, to: version(client).await?.unwrap_or(0) })
}

/// The schema's version; `None` where there is no schema.
pub(super) async fn version(client: &Client) -> Result<Option<i32>, Error> {
    // Unnamed: it may be a pooler's session.
    let there = client.query_typed_one("select to_regprocedure('outbox.schema_version()') is not null", &[]).await?;
    if !there.get::<_, bool>(0) {
        return Ok(None);
    }
    client.query_typed_one("select outbox.schema_version()", &[]).await?.try_get(0).map(Some)
}

/// Whether a schema of this version is the one this binary was built for.
pub(super) fn check(version: Option<i32>) -> Result<(), LedgerError> {
    match version {
        None => Err(LedgerError::NoSchema),
        Some(has) if has < SCHEMA_VERSION => Err(LedgerError::Older { has, needs: SCHEMA_VERSION }),
        Some(has) if has > SCHEMA_VERSION => Err(LedgerError::Newer { has, knows: SCHEMA_VERSION }),
        Some(_) => Ok(()),
    }
}

fn explain(error: &refinery::Error) -> String {
    use std::error::Error as _;
    match error.source() {
        Some(cause) => format!("{error}: {}", cause.source().map_or_else(|| cause.to_string(), ToString::to_string)),
        None => error.to_string(),
    }
}
