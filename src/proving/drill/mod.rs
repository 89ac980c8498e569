//! The drill: real daemons, a private PostgreSQL and destinations of every kind of contract, while daemons are killed
//! and paused, connections are cut and nothing passes, sessions are terminated and the database crashes. Then the sides
//! are compared, action by action.
//!
//! | file | what |
//! |---|---|
//! | `kinds`, `contract`, `settings` | the contracts, what may be expected of each, and the daemons' configuration |
//! | `plan`, `moves` | what the application will do and what its requests meet, drawn from a seed |
//! | `faults` | what goes wrong, drawn from the same seed |
//! | `desk`, `outside`, `answers`, `crew` | the application, the destinations and the daemons, doing it |
//! | `conductor` | the one who carries the faults out |
//! | `operator` | the one who decides what is held for a person |
//! | `records`, `ledger` | what each side has written down |
//! | `referee`, `decisions`, `queues`, `paces`, `promise`, `figures`, `story` | what is not as promised, the figures, and what happened to one action |
//! | `soak`, `failover` | whether anything grows; what a failover costs |
//! | `report`, `show`, `html` | both together, and how people read them |

mod answers;
mod conductor;
mod contract;
mod crew;
mod decisions;
mod desk;
mod failover;
mod faults;
mod figures;
mod html;
mod kinds;
mod ledger;
mod moves;
mod operator;
mod outside;
#[cfg(test)]
mod pace_tests;
mod paces;
mod plan;
mod promise;
#[cfg(test)]
mod queue_tests;
mod queues;
mod records;
mod referee;
#[cfg(test)]
mod referee_tests;
mod report;
mod settings;
mod show;
mod soak;
mod story;
#[cfg(test)]
mod testing;
mod watch;

use std::io;
use std::path::Path;
use std::time::Duration;

use tokio_postgres::Client;

use super::cluster::{Cluster, ClusterError, ClusterOptions};
use super::proxy::Proxy;
use super::session;
use crate::clock::{Uptime, wall};
use crate::core::target::Secret;
use crate::ledger::{self as outbox, LedgerError};
use conductor::{Diary, FaultError, Stage};
use crew::Crew;
use faults::Weather;
use kinds::{NETWORK_KEEPS, TIMEOUT};
use ledger::Standing;
use operator::Operator;
use outside::Outside;
use plan::Plan;
use records::World;
use settings::Pace;
use soak::Soak;
use watch::Show;

pub use failover::{Failover, run as fail_over};
pub use html::{failover as html_failover, page as html_page};
pub use outside::Plant;
pub use report::Report;
pub use show::{failover as show_failover, report as show_report, violations as show_violations};

/// How many ways lead to the destinations; each kind of contract is reached on one.
pub const WAYS: usize = 3;
/// One order after another so far apart, on average …
const PACE: Duration = Duration::from_millis(200);
/// … but the drill is never shorter than this …
const SHORTEST: Duration = Duration::from_secs(12);
/// … nor longer, unless it was asked for.
const LONGEST: Duration = Duration::from_secs(60);
/// How many actions, unless it was said.
const ACTIONS: u32 = 300;
/// How long a soak lasts, unless it was said.
const SOAK: Duration = Duration::from_secs(180);
/// How long it may take until everything has come to rest once nothing goes wrong any more.
const REST: Duration = Duration::from_secs(120);
/// How often the database is asked how things stand.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// What is done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Scenario {
    /// Everything goes wrong, and the sides are compared.
    Storm,
    /// Less goes wrong, for longer, and whatever could grow is looked at, too.
    Soak,
}

/// What kind of drill.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// What is done.
    pub scenario: Scenario,
    /// Everything is drawn from it.
    pub seed: u64,
    /// Orders whose transaction is committed, at least 1; `None` = 300, of a soak 300 a minute.
    pub actions: Option<u32>,
    /// Daemons; at least 1.
    pub workers: usize,
    /// How long orders are placed and things go wrong; `None` = by the number of actions.
    pub minutes: Option<f64>,
    /// A mistake put in on purpose.
    pub plant: Option<Plant>,
}

/// Why a drill did not come to its end.
#[derive(Debug, thiserror::Error)]
pub enum DrillError {
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
    /// A fault could not be carried out.
    #[error("a fault could not be carried out")]
    Fault(#[from] FaultError),
    /// A part panicked.
    #[error("a part of it ended unexpectedly")]
    Part(#[from] tokio::task::JoinError),
}

/// Runs the whole of it. Progress goes to standard error.
///
/// # Errors
/// Where a part could not be started or ended early. What the drill finds is in the report, whatever it is.
pub async fn run(binary: &Path, options: Options) -> Result<Report, DrillError> {
    let begun = Uptime::now();
    let (actions, spread) = options.extent();
    let plan = Plan::draw(options.seed, actions, spread);
    let weather = match options.scenario {
        Scenario::Storm => Weather::Storm,
        Scenario::Soak => Weather::Gusts,
    };
    let faults = faults::draw(options.seed, options.workers, spread, weather);
    let show = Show::new(actions.into());
    show.say("Starting a PostgreSQL of its own, destinations on loopback and the daemons …");
    let mut stage = set(binary, &plan, options.workers, options.plant).await?;
    let client = session::connect(&stage.url).await?;
    desk::open(&client).await?;
    drop(client);

    let start = Uptime::now();
    let (mut sessions, told) = match options.plant {
        Some(Plant::Jumble) => desk::work(&plan.jumbled(), &stage.url, start),
        Some(Plant::Liar | Plant::Forgetful | Plant::Sneak | Plant::Contrary | Plant::Haste) | None => {
            desk::work(&plan, &stage.url, start)
        }
    };
    let (watching, url) = (show.watch(), stage.url.clone());
    let watched = tokio::spawn(async move { watching.keep(&url).await });
    let (looked, looks) = tokio::sync::watch::channel(Vec::new());
    let looking = (options.scenario == Scenario::Soak)
        .then(|| tokio::spawn(soak::watch(stage.crew.pids(), stage.crew.logs(), stage.url.clone(), looked)));
    let operator = Operator::begin(&stage.url, stage.outside.record(), &plan, options.plant);
    let mut diary = stage.conduct(&faults, start).await?;
    while let Some(session) = sessions.join_next().await {
        session??;
    }
    let soak = looking.map(|looking| {
        looking.abort();
        // Two more than the pool: the doorbell, and the one that keeps it.
        Soak::of(looks.borrow().clone(), options.workers as u64 * (settings::POOL + 2))
    });
    stage.agree().await?;
    let rested = rest(&mut stage, &mut diary, Until::Closed).await?;
    let office = operator.end();
    watched.abort();
    show.say("Everything has come to rest; comparing …");
    let left = stage.crew.dismiss().await;
    diary.deserters.extend(left);
    show.finish();

    let client = session::connect(&stage.url).await?;
    let (requests, effects) = stage.outside.records();
    let world = World {
        plan,
        desk: desk::read(&client, &told).await?,
        entries: ledger::read(&client).await?,
        requests,
        effects,
        office: Some(office),
        faults: diary.happened,
        said: stage.crew.said(),
        rested: rested.then(wall),
        deserters: diary.deserters,
    };
    Ok(Report::of(&world, &faults, soak, options, Uptime::now().since(begun)))
}

impl Options {
    /// How many actions, within which time.
    fn extent(&self) -> (u32, Duration) {
        let spread = self.minutes.map(|minutes| Duration::from_secs_f64(minutes * 60.0));
        match self.scenario {
            Scenario::Storm => {
                let actions = self.actions.unwrap_or(ACTIONS);
                (actions, spread.unwrap_or((PACE * actions).clamp(SHORTEST, LONGEST)))
            }
            Scenario::Soak => {
                let spread = spread.unwrap_or(SOAK);
                let a_minute = spread.as_secs().saturating_mul(ACTIONS.into()) / 60;
                (self.actions.unwrap_or(u32::try_from(a_minute).unwrap_or(u32::MAX)), spread)
            }
        }
    }
}

/// Starts everything.
async fn set(binary: &Path, plan: &Plan, workers: usize, plant: Option<Plant>) -> Result<Stage, DrillError> {
    // A server that stops waits for everybody who has connected and has not said who they are yet.
    let settings = ClusterOptions::default().set("authentication_timeout", "3s");
    let cluster = tokio::task::spawn_blocking(|| Cluster::start(settings)).await??;
    let url = cluster.url(cluster.superuser(), "postgres");
    outbox::migrate(&Secret::new(url.clone())).await?;
    let outside = Outside::start(plan, plant).await?;
    let base = outside.base_url();
    let ways = [Proxy::start(&base).await?, Proxy::start(&base).await?, Proxy::start(&base).await?];
    let urls = [&ways[0], &ways[1], &ways[2]].map(|way| way.url.clone());
    let pace = if plant == Some(Plant::Haste) { Pace::Unknown } else { Pace::Kept };
    let crew = Crew::start(binary, workers, &url, urls, pace).await?;
    Ok(Stage { cluster, url, crew, outside, ways })
}

/// What is waited for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Until {
    /// Everything is closed: somebody decides what is held.
    Closed,
    /// Everything is closed, or held for a person.
    Held,
}

/// Waits until everything is at rest, and whatever was on its way has arrived. False where that takes too long.
async fn rest(stage: &mut Stage, diary: &mut Diary, until: Until) -> Result<bool, DrillError> {
    let begun = Uptime::now();
    let client: Client = session::connect(&stage.url).await?;
    loop {
        stage.look_after(diary).await?;
        let arrived = Uptime::now().since(begun) > NETWORK_KEEPS + TIMEOUT * 2;
        let standing = Standing::read(&client).await?;
        let rests = match until {
            Until::Closed => standing.closed == standing.all,
            Until::Held => standing.rests(),
        };
        if rests && arrived {
            return Ok(true);
        }
        if Uptime::now().since(begun) > REST {
            return Ok(false);
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}
