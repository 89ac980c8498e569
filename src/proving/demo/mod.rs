//! The demo: a Release Desk, a destination that misbehaves, and the real dispatcher between them, on a PostgreSQL of
//! their own. At the end both sides' records are compared action by action.
//!
//! | file | what |
//! |---|---|
//! | `plan` | what the application will do, drawn from a seed |
//! | `desk` | the application doing it |
//! | `fate` | what the destination does with each request |
//! | `settings` | the daemon's configuration |
//! | `watch` | progress |
//! | `book` | what the ledger has written |
//! | `doubt` | each unknown outcome, its cause and its end |
//! | `check` | what must hold |
//! | `report`, `show` | the figures, and how people read them |

mod book;
mod check;
mod desk;
mod doubt;
mod fate;
mod plan;
mod report;
mod settings;
mod show;
#[cfg(test)]
mod testing;
mod watch;

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Serialize;
use tempfile::TempDir;
use tokio::task::JoinSet;
use tokio_postgres::Client;
use uuid::Uuid;

use super::cluster::{Cluster, ClusterError, ClusterOptions};
use super::daemon::Daemon;
use super::fake::Fake;
use super::session;
use crate::clock::Uptime;
use crate::core::target::Secret;
use crate::ledger::{self, LedgerError};
use check::Violation;
use desk::{Answer, Answers};
use fate::Fates;
use plan::Plan;
use report::Facts;
use watch::{Show, Standing};

pub use report::Report;
pub use show::{kept as show_kept, report as show_report, violations as show_violations};

/// How long nothing may change before whatever is still open is reported as it is.
const PATIENCE: Duration = Duration::from_secs(20);
/// How often the database is asked how things stand.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// How long the daemon may take to drain.
const DRAIN: Duration = Duration::from_secs(15);

/// What kind of demo.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// The plan and the destination's moods are drawn from it.
    pub seed: u64,
    /// Notes whose transaction is committed; at least 1.
    pub notes: u32,
    /// Leave the database up.
    pub keep: bool,
}

/// A demo that came to its end.
#[derive(Debug, Serialize)]
pub struct Ended {
    /// The figures, and what is not as promised.
    #[serde(flatten)]
    pub report: Report,
    /// What was left to look at.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kept: Option<Kept>,
}

/// What outlives the demo.
#[derive(Debug, Serialize)]
pub struct Kept {
    /// The database.
    pub url: String,
    /// This program.
    pub program: PathBuf,
    /// Its configuration.
    pub config: PathBuf,
    /// What the daemon said.
    pub log: PathBuf,
    /// An action whose outcome was unknown for a while.
    pub in_doubt: Option<Uuid>,
    /// What to type to remove it all.
    pub remove: String,
}

/// Why a demo did not come to its end.
#[derive(Debug, thiserror::Error)]
pub enum DemoError {
    /// No PostgreSQL.
    #[error("no database of its own")]
    Cluster(#[from] ClusterError),
    /// No schema.
    #[error("the outbox schema could not be made")]
    Ledger(#[from] LedgerError),
    /// A statement was refused, or the database is gone.
    #[error("the database refused")]
    Database(#[from] tokio_postgres::Error),
    /// A file, a socket or a process.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// A part panicked.
    #[error("a part of it ended unexpectedly")]
    Part(#[from] tokio::task::JoinError),
    /// The daemon is gone.
    #[error("the daemon ended early ({status}); it said:\n{log}")]
    DaemonEnded {
        /// How.
        status: std::process::ExitStatus,
        /// Everything.
        log: String,
    },
}

/// Runs the whole of it. Progress goes to standard error.
///
/// # Errors
/// Where a part could not be started or ended early. What the demo finds is in the report, whatever it is.
pub async fn run(binary: &Path, options: Options) -> Result<Ended, DemoError> {
    let begun = Uptime::now();
    let plan = Plan::draw(options.seed, options.notes);
    let fates = Fates::deal(options.seed, plan.committed.iter().copied());
    let mut show = Show::new(options.notes.into());

    show.say("Starting a PostgreSQL of its own, a destination on loopback and outboxd …");
    let cluster = tokio::task::spawn_blocking(|| Cluster::start(ClusterOptions::default())).await??;
    let url = cluster.url(cluster.superuser(), "postgres");
    ledger::migrate(&Secret::new(url.clone())).await?;
    let client = session::connect(&url).await?;
    desk::open(&client).await?;
    let fake = Fake::start().await?;
    let moods = fates.clone();
    fake.behave(move |seen, before| moods.behave(seen, before));
    let dir = tempfile::Builder::new().prefix("outboxd-demo-").tempdir()?;
    let mut daemon = Daemon::start(binary, dir.path(), "outboxd", &settings::toml(&url, &fake.base_url()))?;

    show.say("Release Desk publishes; the destination answers, or does not …");
    let sessions = desk::work(&plan, &url, Uptime::now());
    let answers = watch(&client, &mut daemon, &mut show, sessions).await?;
    let stopped = daemon.terminate(DRAIN).await;
    show.finish();

    let entries = book::read(&client).await?;
    let received = fates.recall(&fake.seen());
    let effects = fake.effects();
    let facts = Facts {
        plan: &plan,
        answers: &answers,
        entries: &entries,
        received: &received,
        effects: &effects,
        duplicates: fake.duplicates(),
    };
    let mut report = Report::of(&facts, options.seed, Uptime::now().since(begun).as_secs_f64());
    report.violations.extend(unclean(stopped, &daemon));
    let in_doubt = entries.iter().max_by_key(|e| e.attempts.iter().filter(|a| a.leaves_doubt()).count());
    let kept = options.keep.then(|| keep(binary, cluster, dir, url, in_doubt.map(|entry| entry.action)));
    Ok(Ended { report, kept })
}

/// Shows how things stand until the application has done its work and every action is closed, or nothing has changed
/// for too long.
async fn watch(
    client: &Client,
    daemon: &mut Daemon,
    show: &mut Show,
    mut sessions: JoinSet<Result<Vec<(u32, Answer)>, tokio_postgres::Error>>,
) -> Result<Answers, DemoError> {
    let mut answers = Answers::new();
    let mut last = (Standing::default(), Uptime::now());
    loop {
        while let Some(session) = sessions.try_join_next() {
            for (note, answer) in session?? {
                answers.entry(note).or_default().push(answer);
            }
        }
        // A wait that ends in no time: whether it is still there.
        if let Ok(status) = daemon.ended(Duration::ZERO).await {
            return Err(DemoError::DaemonEnded { status, log: daemon.log() });
        }
        let standing = Standing::read(client).await?;
        show.stand(&standing);
        if sessions.is_empty() && standing.open == 0 {
            return Ok(answers);
        }
        if standing != last.0 {
            last = (standing, Uptime::now());
        } else if sessions.is_empty() && Uptime::now().since(last.1) > PATIENCE {
            return Ok(answers);
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

/// A daemon that is told to stop and has nothing left to do ends with 0.
fn unclean(stopped: io::Result<std::process::ExitStatus>, daemon: &Daemon) -> Option<Violation> {
    let how = match stopped {
        Ok(status) if status.success() => return None,
        Ok(status) => status.to_string(),
        Err(error) => error.to_string(),
    };
    Some(Violation::without_action(format!("the daemon did not stop cleanly ({how}); it said:\n{}", daemon.log())))
}

fn keep(program: &Path, cluster: Cluster, dir: TempDir, url: String, in_doubt: Option<Uuid>) -> Kept {
    let dir = dir.keep();
    let cluster = cluster.keep();
    let remove = format!("{} {}", cluster.stop_command(), dir.display());
    let (config, log) = (dir.join("outboxd.toml"), dir.join("outboxd.log"));
    Kept { url, program: program.to_owned(), config, log, in_doubt, remove }
}
