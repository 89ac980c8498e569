//! Sessions: how they are opened and what is set in each.

use std::pin::{Pin, pin};
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use deadpool_postgres::{
    ClientWrapper, Connect, Hook, HookError, Manager, ManagerConfig, Pool, RecyclingMethod, Runtime,
};
use tokio::task::JoinHandle;
use tokio_postgres::config::{Host, SslMode};
use tokio_postgres::tls::MakeTlsConnect;
use tokio_postgres::{Client, Config, Error, SimpleQueryMessage, Socket};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::cluster::Whereabouts;
use super::crowd::Crowd;
use super::error::READ_ONLY;
use super::trust::Trust;
use super::{Ledger, LedgerError, tls};
use crate::core::dsn;
use crate::core::target::Secret;

/// What holds in every session that works on the ledger, or in every transaction, where sessions are not ours.
///
/// - durable before sent: a claim's COMMIT is on disk before its request leaves
/// - plans: the statements are made for index probes; the planner's estimates of a queue's statistics are not
/// - limits: no statement of ours waits or runs long in good health
const SETTINGS: [(&str, &str); 11] = [
    ("synchronous_commit", "on"),
    ("default_transaction_isolation", "'read committed'"),
    ("search_path", "pg_catalog, pg_temp"),
    ("plan_cache_mode", "force_generic_plan"),
    ("enable_seqscan", "off"),
    ("enable_hashjoin", "off"),
    ("enable_mergejoin", "off"),
    ("jit", "off"),
    ("lock_timeout", "'250ms'"),
    ("statement_timeout", "'30s'"),
    ("idle_in_transaction_session_timeout", "'10s'"),
];

/// A session of ours may idle; on servers that don't know such a limit there is none.
pub(super) const NO_IDLE_LIMIT: &str =
    "select pg_catalog.set_config(name, '0', false) from pg_catalog.pg_settings where name = 'idle_session_timeout'";

/// Asked of the server when a session begins. A pooler passes no such thing on: PgBouncer refuses it, or drops it where
/// it was told to. So whoever finds it set has a session with the server itself.
const SIGN: &str = "-c outboxd.session=direct";
const LOOK_FOR_SIGN: &str = "select pg_catalog.current_setting('outboxd.session', true)";

/// How long a server that has been reached may take until its session is open. One that never says a word holds a claim up
/// for no longer; the next session may be with another.
const OPENED_WITHIN: Duration = Duration::from_secs(5);

const IS_READ_ONLY: &str = "select pg_catalog.current_setting('transaction_read_only')";

/// The settings as statements, for a session (`set`) or the transaction that it is in (`set local`).
fn settings(set: &str) -> String {
    SETTINGS.iter().map(|(name, value)| format!("{set} {name} = {value};")).collect()
}

/// The settings for the transaction that a session is in.
pub(super) fn local_settings() -> &'static str {
    static LOCAL: LazyLock<String> = LazyLock::new(|| settings("set local"));
    &LOCAL
}

/// A pool of sessions. Opens none yet.
pub fn connect(url: &Secret, pool_size: u32, worker: impl Into<String>) -> Result<Ledger, LedgerError> {
    connect_with(url, pool_size, worker.into(), Trust::usual())
}

/// The same, and a statement may go without an answer for no longer than this: twice as long after each that did.
pub fn connect_impatient(
    url: &Secret,
    pool_size: u32,
    worker: impl Into<String>,
    patience: Duration,
) -> Result<Ledger, LedgerError> {
    connect_with(url, pool_size, worker.into(), Trust::new(patience))
}

fn connect_with(url: &Secret, pool_size: u32, worker: String, trust: Trust) -> Result<Ledger, LedgerError> {
    let (config, tls) = session_config(url)?;
    let pooled = Arc::new(AtomicBool::new(false));
    let opened_within = reached_within(&config).saturating_add(OPENED_WITHIN);
    let opener = Opener { tls, pooled: Arc::clone(&pooled) };
    let manager = Manager::from_connect(config, opener, ManagerConfig { recycling_method: RecyclingMethod::Fast });
    let found = Arc::clone(&pooled);
    let trusted = trust.clone();
    let whereabouts = Whereabouts::default();
    let expected = whereabouts.clone();
    let pool = Pool::builder(manager)
        .max_size(usize::try_from(pool_size).unwrap_or(usize::MAX))
        .runtime(Runtime::Tokio1)
        .create_timeout(Some(opened_within))
        .post_create(Hook::async_fn(move |client, _| {
            let (pooled, expected) = (found.load(Ordering::Acquire), expected.clone());
            Box::pin(async move {
                let begun = tokio::time::timeout(OPENED_WITHIN, begin(client, pooled, &expected)).await;
                begun.unwrap_or(Err(HookError::message(MUTE)))
            })
        }))
        .pre_recycle(Hook::sync_fn(move |_, metrics| match trusted.trusts(metrics.created) {
            true => Ok(()),
            false => Err(HookError::message("not trusted any more")),
        }))
        .build()
        .map_err(|e| LedgerError::Unreachable(e.to_string()))?;
    let crowd = Crowd::new(pool_size);
    Ok(Ledger { pool, crowd, pooled, trust, whereabouts, worker })
}

const MUTE: &str = "the server was reached and did not answer";

/// How long it may take to reach a server: each of its hosts may have more than one address.
fn reached_within(config: &Config) -> Duration {
    let hosts = u32::try_from(config.get_hosts().len().max(config.get_hostaddrs().len())).unwrap_or(u32::MAX);
    let each = config.get_connect_timeout().copied().unwrap_or(OPENED_WITHIN);
    each.saturating_mul(hosts.max(1)).saturating_mul(2)
}

/// What a new session begins with.
async fn begin(client: &ClientWrapper, pooled: bool, expected: &Whereabouts) -> Result<(), HookError> {
    if value(client, IS_READ_ONLY).await.map_err(HookError::Backend)?.as_deref() == Some("on") {
        return Err(HookError::message(READ_ONLY));
    }
    // Through a pooler they would reach sessions that others use, and perhaps none that we do.
    if !pooled {
        let settings = settings("set") + NO_IDLE_LIMIT;
        client.batch_execute(&settings).await.map_err(HookError::Backend)?;
        let client: &Client = client;
        expected.compare(client).await.map_err(HookError::Backend)?;
    }
    Ok(())
}

impl Ledger {
    /// Checks that the schema is there and is the one this binary was built for.
    pub async fn check_schema(&self) -> Result<(), LedgerError> {
        super::migrate::check(self.session().await?.schema_version().await?)
    }

    /// Closes the sessions that nobody uses: one whose statement was given up midway would make the next one wait for
    /// it.
    pub fn close_idle_sessions(&self) {
        self.pool.retain(|_, _| false);
    }
}

type Opening<'a> = Pin<Box<dyn Future<Output = Result<(Client, JoinHandle<()>), Error>> + Send + 'a>>;

/// Opens sessions, and finds out whether they are with the server itself.
struct Opener {
    tls: MakeRustlsConnect,
    /// Once one was not, none is taken to be.
    pooled: Arc<AtomicBool>,
}

impl Connect for Opener {
    fn connect(&self, config: &Config) -> Opening<'_> {
        let config = config.clone();
        Box::pin(async move {
            if self.pooled.load(Ordering::Acquire) {
                let (client, connection) = config.connect(self.tls.clone()).await?;
                return Ok((client, spawn(connection)));
            }
            let (client, mut connection) = open(&config, &self.tls).await?;
            if driven(&mut connection, way(&client)).await? == Way::Pooled {
                self.pooled.store(true, Ordering::Release);
            }
            Ok((client, spawn(connection)))
        })
    }
}

/// Whom a session is with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Way {
    /// The server itself.
    Direct,
    /// A pooler: what is set, prepared, locked or listened for in one transaction may not be there in the next.
    Pooled,
}

pub(super) type Wire = tokio_postgres::Connection<Socket, <MakeRustlsConnect as MakeTlsConnect<Socket>>::Stream>;

/// Opens a session with the sign, or without it where that is refused.
pub(super) async fn open(config: &Config, tls: &MakeRustlsConnect) -> Result<(Client, Wire), Error> {
    let mut signed = config.clone();
    signed.options(match config.get_options() {
        Some(theirs) => format!("{theirs} {SIGN}"),
        None => SIGN.to_owned(),
    });
    match signed.connect(tls.clone()).await {
        // protocol_violation of PgBouncer, feature_not_supported of others
        Err(error) if error.code().is_some_and(|code| ["08P01", "0A000"].contains(&code.code())) => {
            config.connect(tls.clone()).await
        }
        opened => opened,
    }
}

/// Whom a session of [`open`] is with.
pub(super) async fn way(client: &Client) -> Result<Way, Error> {
    match value(client, LOOK_FOR_SIGN).await?.as_deref() {
        Some("direct") => Ok(Way::Direct),
        Some(_) | None => Ok(Way::Pooled),
    }
}

/// The first value of a question without parameters.
async fn value(client: &Client, question: &str) -> Result<Option<String>, Error> {
    let answer = client.simple_query(question).await?;
    let row =
        answer.iter().find_map(|message| if let SimpleQueryMessage::Row(row) = message { Some(row) } else { None });
    Ok(row.and_then(|row| row.get(0)).map(ToOwned::to_owned))
}

/// The answer to a question of a session that is nobody's task yet: given up, both are gone.
async fn driven<T>(connection: &mut Wire, question: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
    let mut question = pin!(question);
    tokio::select! {
        biased;
        answer = &mut question => return answer,
        // Then whoever waits for an answer learns of it.
        _ = connection => {}
    }
    question.await
}

/// Ends with the session: when the client is dropped or the server is gone.
fn spawn(connection: Wire) -> JoinHandle<()> {
    tokio::spawn(async move {
        // Whoever waits for an answer learns of it.
        let _ = connection.await;
    })
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
