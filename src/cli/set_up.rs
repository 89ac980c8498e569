//! From a configuration to running parts; shared by the commands that need them.

use std::path::Path;
use std::time::Duration;

use tracing_subscriber::filter::LevelFilter;

use super::Exit;
use crate::config::{Config, Database, Limits, LogFormat, LogLevel, Secrets};
use crate::dispatcher::{AtOnce, Catalogue, Journal, JournalError, Memory, Settings};
use crate::ledger::{self, BellAt, Ledger, LedgerError};
use crate::log;

/// Reads the configuration, or says what is wrong with it.
pub fn load(path: &Path, secrets: Secrets) -> Result<Config, Exit> {
    Config::load(path, secrets).map_err(|refusal| {
        eprintln!("{refusal}");
        Exit::ConfigRefused
    })
}

/// Starts logging as configured.
pub fn start_log(config: &Config) {
    let format = match config.log.format {
        LogFormat::Json => log::Format::Json,
        LogFormat::Text => log::Format::Text,
    };
    let level = match config.log.level {
        LogLevel::Error => LevelFilter::ERROR,
        LogLevel::Warn => LevelFilter::WARN,
        LogLevel::Info => LevelFilter::INFO,
        LogLevel::Debug => LevelFilter::DEBUG,
        LogLevel::Trace => LevelFilter::TRACE,
    };
    log::start(format, level);
}

/// A pool, under a worker name that no other start of any process has: the host, the process and a random part.
pub fn ledger(config: &Config) -> Result<Ledger, LedgerError> {
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let worker = format!("{host}#{}-{:08x}", std::process::id(), rand::random::<u32>());
    ledger::connect(&config.database.url, config.database.pool_size, worker)
}

/// The journal, opened and locked, where one is configured.
pub fn journal(config: &Config, ledger: &Ledger) -> Result<Journal, JournalError> {
    config
        .dispatcher
        .journal
        .as_deref()
        .map_or_else(|| Ok(Journal::default()), |path| Journal::open(path, ledger.worker()))
}

/// The dispatcher's settings.
pub fn settings(config: &Config) -> Settings {
    Settings {
        max_in_flight: config.dispatcher.max_in_flight,
        lease_margin: config.dispatcher.lease_margin,
        poll_interval: config.dispatcher.poll_interval,
        drain_timeout: config.dispatcher.drain_timeout,
        bytes_in_flight_max: u64::from(config.dispatcher.bytes_in_flight_max),
        body_max_bytes: u64::from(config.dispatcher.body_max_bytes),
        stats_interval: config.log.stats_interval,
        bell: bell(config),
    }
}

/// Where the doorbell is heard; `None` where nobody listens.
pub fn bell(config: &Config) -> Option<BellAt> {
    let Database { url, direct_url, .. } = &config.database;
    let at = direct_url.as_ref().map_or_else(|| BellAt::Url(url.clone()), |url| BellAt::DirectUrl(url.clone()));
    config.dispatcher.notify.then_some(at)
}

/// What is dispatched.
pub fn catalogue(config: &Config) -> Catalogue {
    Catalogue {
        targets: config.targets.clone(),
        operations: (config.operations.values().cloned())
            .map(|operation| {
                let limits = config.limits.get(&operation.name);
                let at_once = AtOnce {
                    requests: limits.map_or(u32::MAX, |limits| limits.max_in_flight),
                    of_one_tenant: limits.and_then(|limits| limits.tenant_max_in_flight),
                };
                (operation, at_once)
            })
            .collect(),
        memory: (config.limits.iter())
            .map(|(operation, Limits { keep, .. })| Memory {
                operation: operation.clone(),
                payload: keep.payload,
                identity: keep.identity,
            })
            .collect(),
    }
}

/// What a refusal of the schema means for the exit code; `None` where the database may come back by itself.
pub fn exit_of(error: &LedgerError) -> Option<Exit> {
    match error {
        LedgerError::Newer { .. } => Some(Exit::SchemaNewer),
        LedgerError::NoDirectSession(_) => Some(Exit::ConfigRefused),
        LedgerError::NoSchema | LedgerError::Older { .. } => Some(Exit::Failed),
        LedgerError::Unreachable(_) | LedgerError::TurnedAway { .. } | LedgerError::ReadOnly => None,
        LedgerError::Refused { .. } if error.is_session() => None,
        LedgerError::Refused { .. } | LedgerError::Unreadable { .. } | LedgerError::Migration(_) => Some(Exit::Failed),
        LedgerError::OtherCluster(_) | LedgerError::OtherLedger { .. } => Some(Exit::LedgerRefused),
    }
}

/// How long a question to the database may take where a person waits for the answer.
pub const PATIENCE: Duration = Duration::from_secs(10);

/// A configuration and its ledger, for commands that ask or decide: without destinations' secrets, on two sessions, and
/// only where the schema is the one this binary was built for.
pub async fn open(path: &Path) -> Result<(Config, Ledger), Exit> {
    let config = load(path, Secrets::Skip)?;
    let opened = patiently(async {
        let ledger = ledger::connect(&config.database.url, 2, "outboxd")?;
        ledger.check_schema().await?;
        Ok(ledger)
    });
    match opened.await {
        Ok(ledger) => Ok((config, ledger)),
        Err(error) => {
            Err(failed(&format!("use the database {} (`url` in [database])", config.database.place()), &error))
        }
    }
}

/// A question to the database that a person waits for.
pub async fn patiently<T>(question: impl Future<Output = Result<T, LedgerError>>) -> Result<T, LedgerError> {
    let late = |_| Err(LedgerError::Unreachable("it did not answer in time".to_owned()));
    tokio::time::timeout(PATIENCE, question).await.unwrap_or_else(late)
}

/// Says what could not be done and why.
pub fn failed(what: &str, error: &LedgerError) -> Exit {
    eprintln!("failed to {what}: {error}");
    exit_of(error).unwrap_or(Exit::Failed)
}
