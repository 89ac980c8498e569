//! Sessions: how they are opened and what is set in each.

use std::str::FromStr;

use deadpool_postgres::{Hook, HookError, Manager, ManagerConfig, Pool, RecyclingMethod};
use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::error::READ_ONLY;
use super::{Ledger, LedgerError, tls};
use crate::core::dsn;
use crate::core::target::Secret;

/// Set in every session that works on the ledger.
///
/// - durable before sent: a claim's COMMIT is on disk before its request leaves
/// - plans: the statements are made for index probes; the planner's estimates of a queue's statistics are not
/// - limits: no statement of ours waits or runs long in good health
const SETTINGS: &str = "
    set synchronous_commit = on;
    set default_transaction_isolation = 'read committed';
    set search_path = pg_catalog, pg_temp;
    set plan_cache_mode = force_generic_plan;
    set enable_seqscan = off; set enable_hashjoin = off; set enable_mergejoin = off; set jit = off;
    set lock_timeout = '250ms';
    set statement_timeout = '30s';
    set idle_in_transaction_session_timeout = '10s'";

/// A pool of sessions. Opens none yet.
pub fn connect(url: &Secret, pool_size: u32, worker: impl Into<String>) -> Result<Ledger, LedgerError> {
    let (config, tls) = session_config(url)?;
    let manager = Manager::from_config(config, tls, ManagerConfig { recycling_method: RecyclingMethod::Fast });
    let pool = Pool::builder(manager)
        .max_size(usize::try_from(pool_size).unwrap_or(usize::MAX))
        .post_create(Hook::async_fn(|client, _| {
            Box::pin(async move {
                client.batch_execute(SETTINGS).await.map_err(HookError::Backend)?;
                let row = client
                    .query_one("select current_setting('transaction_read_only') = 'on'", &[])
                    .await
                    .map_err(HookError::Backend)?;
                if row.get(0) { Err(HookError::message(READ_ONLY)) } else { Ok(()) }
            })
        }))
        .build()
        .map_err(|e| LedgerError::Unreachable(e.to_string()))?;
    Ok(Ledger { pool, worker: worker.into() })
}

impl Ledger {
    /// Checks that the schema is there and is the one this binary was built for.
    pub async fn check_schema(&self) -> Result<(), LedgerError> {
        let client = self.pool.get().await?;
        super::migrate::check(&client).await
    }

    /// Closes the sessions that nobody uses: one whose statement was given up midway would make the next one wait for
    /// it.
    pub fn close_idle_sessions(&self) {
        self.pool.retain(|_, _| false);
    }
}

/// The URL as a configuration, with our name in `pg_stat_activity` and bounds on dead peers; and what opens its
/// sessions.
pub(super) fn session_config(url: &Secret) -> Result<(Config, MakeRustlsConnect), LedgerError> {
    let unreadable = || LedgerError::Unreachable("the database URL cannot be read".to_owned());
    let dsn = dsn::cut(url.expose()).map_err(|_| unreadable())?;
    let tls = tls::connector(&dsn.tls)?;
    let mut config = Config::from_str(&dsn.rest).map_err(|_| unreadable())?;
    // As in libpq: a socket of this machine is never encrypted.
    if config.get_hosts().iter().all(|host| matches!(host, Host::Unix(_))) && config.get_hostaddrs().is_empty() {
        config.ssl_mode(SslMode::Disable);
    }
    if config.get_application_name().is_none() {
        config.application_name("outboxd");
    }
    if config.get_connect_timeout().is_none() {
        config.connect_timeout(std::time::Duration::from_secs(5));
    }
    config.tcp_user_timeout(std::time::Duration::from_secs(20));
    // What tcp_user_timeout does not see: an answer that never comes. The default of two hours is no bound.
    config.keepalives_idle(std::time::Duration::from_secs(15));
    config.keepalives_interval(std::time::Duration::from_secs(5));
    config.keepalives_retries(3);
    Ok((config, tls))
}
