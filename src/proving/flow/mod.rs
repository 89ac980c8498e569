//! One good destination and three bad ones, two daemons between them and a ledger: what the bad ones cost the good one,
//! and themselves.

mod measure;
mod scene;

use std::path::Path;
use std::time::Duration;

use serde::Serialize;

pub use scene::{Kind, Scene};

use crate::clock::Uptime;

type Fault = Box<dyn std::error::Error + Send + Sync>;

/// One action for the good destination every so often.
const EVERY: Duration = Duration::from_millis(20);
/// What waits for each bad destination from the beginning.
const BACKLOG: i64 = 500;
/// How long the last ones may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// What was measured.
#[derive(Serialize, Debug)]
pub struct Flow {
    /// How long actions were enqueued for the good destination, each time.
    pub seconds: f64,
    /// The good destination without neighbours.
    pub alone: Latency,
    /// The good destination beside the bad ones.
    pub beside: Latency,
    /// `beside.p50_ms / alone.p50_ms`
    pub p50_ratio: f64,
    /// `beside.p99_ms / alone.p99_ms`
    pub p99_ratio: f64,
    /// What became of each destination's actions beside one another.
    pub destinations: Vec<Tally>,
    /// Lines at info and above, of both daemons beside the bad destinations, but for the regular ones.
    pub log_lines: usize,
    /// The most memory that one of the daemons has had, MiB.
    pub rss_mb: f64,
}

/// From the commit of an action to the end of the attempt that was confirmed.
#[derive(Serialize, Clone, Copy, Debug)]
pub struct Latency {
    /// How many.
    pub actions: i64,
    /// Half of them were at most so slow, milliseconds.
    pub p50_ms: f64,
    /// All but a hundredth, milliseconds.
    pub p99_ms: f64,
}

/// What became of a destination's actions.
#[derive(Serialize, Clone, Debug)]
pub struct Tally {
    /// How it behaves.
    pub destination: &'static str,
    /// Actions enqueued.
    pub actions: i64,
    /// Attempts that are recorded.
    pub attempts: i64,
    /// Requests that reached it.
    pub requests: usize,
    /// Effects, counted there.
    pub effects: usize,
    /// Effects beyond the first of an action.
    pub duplicates: usize,
    /// Attempts after which the outcome was unknown.
    pub doubts: i64,
    /// Actions held for a person.
    pub reviews: i64,
    /// How a daemon had it at the end.
    pub state: String,
}

/// Measures for twice so long, first without and then beside the bad destinations.
pub async fn flow(binary: &Path, lasting: Duration) -> Result<Flow, Fault> {
    let alone = {
        let scene = Scene::start(binary).await?;
        drive(&scene, lasting).await?;
        measure::latency(&scene).await?
    };
    let scene = Scene::start(binary).await?;
    for kind in Kind::BAD {
        scene.enqueue(kind, BACKLOG).await?;
    }
    drive(&scene, lasting).await?;
    let beside = measure::latency(&scene).await?;
    let mut destinations = Vec::new();
    for kind in Kind::ALL {
        destinations.push(measure::tally(&scene, kind).await?);
    }
    Ok(Flow {
        seconds: lasting.as_secs_f64(),
        alone,
        beside,
        p50_ratio: ratio(beside.p50_ms, alone.p50_ms),
        p99_ratio: ratio(beside.p99_ms, alone.p99_ms),
        destinations,
        log_lines: measure::log_lines(&scene),
        rss_mb: measure::rss_mb(&scene),
    })
}

/// Enqueues for the good destination at a steady pace, and waits until all of it has been delivered.
async fn drive(scene: &Scene, lasting: Duration) -> Result<(), Fault> {
    let end = Uptime::now().plus(lasting);
    let mut next = Uptime::now();
    while !end.is_over() {
        scene.enqueue(Kind::Healthy, 1).await?;
        next = next.plus(EVERY);
        tokio::time::sleep(next.left()).await;
    }
    let end = Uptime::now().plus(PATIENCE);
    while scene.open(Kind::Healthy).await? > 0 {
        if end.is_over() {
            return Err(
                format!("the good destination's actions are not done after {PATIENCE:?}:\n{}", scene.logs()).into()
            );
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    Ok(())
}

fn ratio(beside: f64, alone: f64) -> f64 {
    (beside / alone.max(0.001) * 100.0).round() / 100.0
}
