//! Benchmarks: programs to run, with real parts. They measure and never judge.

use std::path::Path;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;

use super::cluster::{Cluster, ClusterOptions};
use super::daemon::Daemon;
use super::fake::Fake;
use super::session;
use super::usage::Usage;
use crate::clock::Uptime;
use crate::core::target::Secret;
use crate::ledger;

type Fault = Box<dyn std::error::Error + Send + Sync>;

/// How long nothing may happen before the benchmark gives up.
const PATIENCE: Duration = Duration::from_secs(120);

/// What a drain has cost.
#[derive(Serialize, Debug)]
pub struct Drain {
    /// Actions delivered; every outcome and every attempt recorded.
    pub actions: u64,
    /// Sends at once.
    pub in_flight: u32,
    /// From the daemon's start to the last recorded outcome.
    pub seconds: f64,
    /// Actions by seconds.
    pub actions_per_second: f64,
    /// The daemon's peak resident memory, MiB.
    pub rss_mb: f64,
    /// The daemon's user and system time for 10,000 actions.
    pub daemon_cpu_s_per_10k: f64,
    /// User and system time of the daemon's database sessions, for 10,000 actions.
    pub database_cpu_s_per_10k: f64,
    /// Write-ahead log of claims and settles, for one action.
    pub wal_bytes_per_action: f64,
    /// Transactions of claims, settles and looks, for one action.
    pub transactions_per_action: f64,
    /// Effects beyond one an action, counted at the destination.
    pub duplicates: u64,
}

/// Enqueues first, then starts one daemon and waits until every outcome is recorded.
pub async fn drain(binary: &Path, actions: u64, in_flight: u32, quiet: bool) -> Result<Drain, Fault> {
    let bar = if quiet { ProgressBar::hidden() } else { ProgressBar::new(actions) };
    bar.set_style(ProgressStyle::with_template("{msg:24} {wide_bar} {pos}/{len} {elapsed}")?);
    bar.set_message("starting PostgreSQL");
    let cluster = Cluster::start(ClusterOptions::default())?;
    let fake = Fake::start().await?;
    fake.record_requests(false);
    let url = cluster.url(cluster.superuser(), "postgres");
    ledger::migrate(&Secret::new(url.clone())).await?;
    let client = session::connect(&url).await?;

    bar.set_message("enqueueing");
    let rows = i64::try_from(actions)?;
    client
        .execute(
            "select outbox.enqueue('bench.drain', json_build_object('n', g), g::text) from generate_series(1, $1::bigint) g",
            &[&rows],
        )
        .await?;
    client.batch_execute("vacuum analyze").await?;
    client.batch_execute("checkpoint").await?;
    let wal = |at: String| format!("select pg_wal_lsn_diff(pg_current_wal_lsn(), '{at}')::float8");
    let transactions = "select xact_commit::float8 from pg_stat_database where datname = current_database()";
    let committed_before: f64 = client.query_one(transactions, &[]).await?.get(0);
    let start_of_wal: String = client.query_one("select pg_current_wal_lsn()::text", &[]).await?.get(0);

    bar.set_message("draining");
    let dir = tempfile::tempdir()?;
    let begun = Uptime::now();
    let daemon = Daemon::start(binary, dir.path(), "bench", &config(&url, &fake.base_url(), in_flight))?;
    let mut moved = Uptime::now();
    let mut closed = 0;
    while closed < rows {
        // Counting rows takes from what is measured: only when the destination has seen them all.
        let sent = u64::try_from(fake.tally().requests)?;
        if sent < actions && Uptime::now().since(begun) < PATIENCE {
            bar.set_position(sent);
            tokio::time::sleep(Duration::from_millis(10)).await;
            continue;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
        let now: i64 =
            client.query_one("select count(*) from outbox.delivery where closed_at is not null", &[]).await?.get(0);
        if now > closed {
            moved = Uptime::now();
        } else if Uptime::now().since(moved) > PATIENCE {
            return Err(format!("nothing was delivered for {PATIENCE:?}; the daemon says:\n{}", daemon.log()).into());
        }
        closed = now;
        bar.set_position(u64::try_from(closed)?);
    }
    let seconds = Uptime::now().since(begun).as_secs_f64();
    bar.finish_and_clear();

    let sessions = client
        .query(
            "select pid from pg_stat_activity where datname = current_database() and application_name = 'outboxd'",
            &[],
        )
        .await?;
    let database_cpu: f64 = (sessions.iter())
        .filter_map(|row| Usage::of(u32::try_from(row.get::<_, i32>(0)).ok()?))
        .map(|usage| usage.cpu.as_secs_f64())
        .sum();
    let usage = daemon.usage().ok_or("this system does not say what a process has used")?;
    let wal_bytes: f64 = client.query_one(&wal(start_of_wal), &[]).await?.get(0);
    let committed: f64 = client.query_one(transactions, &[]).await?.get(0);
    let recorded: i64 = client
        .query_one("select count(*) from outbox.delivery d join outbox.attempt a using (action_id) where d.state = 'succeeded' and a.evidence = 'accepted'", &[])
        .await?
        .get(0);
    if recorded != rows {
        return Err(format!("{recorded} of {rows} outcomes are recorded as succeeded with their attempt").into());
    }
    #[allow(clippy::cast_precision_loss, reason = "figures for people")]
    let per_action = |total: f64| total / actions as f64;
    Ok(Drain {
        actions,
        in_flight,
        seconds: round(seconds),
        actions_per_second: round(1.0 / per_action(seconds)),
        rss_mb: round(bytes_to_mib(usage.peak_rss)),
        daemon_cpu_s_per_10k: round(per_action(usage.cpu.as_secs_f64()) * 10_000.0),
        database_cpu_s_per_10k: round(per_action(database_cpu) * 10_000.0),
        wal_bytes_per_action: round(per_action(wal_bytes)),
        transactions_per_action: round(per_action(committed - committed_before)),
        duplicates: u64::try_from(fake.duplicates())?,
    })
}

fn config(url: &str, base_url: &str, in_flight: u32) -> String {
    format!(
        r#"
[database]
url = "{url}"
[dispatcher]
max_in_flight = {in_flight}
[log]
format = "text"
stats_interval = "1s"
[destination.fake]
base_url = "{base_url}"
max_in_flight = {in_flight}
[operation."bench.drain"]
destination = "fake"
request = {{ method = "POST", path = "/effects" }}
contract = "bench.keyed"
effect = "keyed"
meaning = "Measure a drain"
owner = "bench"
[contract."bench.keyed"]
reconcile = ["resend", "review"]
key = {{ mode = "dedupe", place = "header:Idempotency-Key", window = "24h", margin = "1h" }}
receipt = {{ id = "json:/id" }}
"#
    )
}

#[allow(clippy::cast_precision_loss, reason = "figures for people")]
fn bytes_to_mib(bytes: u64) -> f64 {
    bytes as f64 / 1_048_576.0
}

fn round(figure: f64) -> f64 {
    (figure * 100.0).round() / 100.0
}
