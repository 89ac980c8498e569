//! Carries the plan of faults out, one step after the other, and writes down what happened when.

use std::io;
use std::time::{Duration, SystemTime};

use rustix::process::Signal;
use tokio_postgres::Client;

use super::WAYS;
use super::crew::Crew;
use super::faults::{Fault, Faults, Light, Planned};
use super::kinds::{NETWORK_KEEPS, Version};
use super::outside::Outside;
use super::records::Happened;
use crate::clock::{Uptime, wall};
use crate::proving::cluster::{Cluster, ClusterError};
use crate::proving::proxy::Proxy;
use crate::proving::session;

/// Between two looks whether a worker has ended.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// Everything that a fault can happen to.
pub struct Stage {
    /// The database.
    pub cluster: Cluster,
    /// How the conductor reaches it.
    pub url: String,
    /// The workers.
    pub crew: Crew,
    /// The destinations.
    pub outside: Outside,
    /// The ways to them.
    pub ways: [Proxy; WAYS],
}

/// What happened so far.
#[derive(Debug, Default)]
pub struct Diary {
    /// Each fault, from its begin to its end.
    pub happened: Vec<Happened>,
    /// Workers that ended by themselves, and how.
    pub deserters: Vec<String>,
}

/// Why a fault could not be carried out.
#[derive(Debug, thiserror::Error)]
pub enum FaultError {
    /// A signal, a file or a process.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The database did not come back.
    #[error("the database did not come back")]
    Cluster(#[from] ClusterError),
}

/// A step: the begin of a fault, or its end.
#[derive(Clone, Copy, Debug)]
struct Step {
    at: Duration,
    planned: Planned,
    /// Since when, at its end.
    begun: Option<SystemTime>,
}

impl Stage {
    /// Carries out everything, at its time after `begun`.
    ///
    /// # Errors
    /// Where a part of the stage is gone for good.
    pub async fn conduct(&mut self, faults: &Faults, begun: Uptime) -> Result<Diary, FaultError> {
        let mut diary = Diary::default();
        let mut steps: Vec<Step> =
            faults.iter().rev().map(|planned| Step { at: planned.at, planned: *planned, begun: None }).collect();
        while let Some(step) = steps.pop() {
            tokio::time::sleep(begun.plus(step.at).left()).await;
            self.look_after(&mut diary).await?;
            let now = wall();
            match step.begun {
                None => {
                    self.begin(step.planned.fault).await?;
                    insert(&mut steps, Step { at: step.at + step.planned.lasts, begun: Some(now), ..step });
                }
                Some(_) if !self.end(step.planned.fault, &mut diary).await? => {
                    insert(&mut steps, Step { at: Uptime::now().since(begun) + LOOK_EVERY, ..step });
                }
                Some(from) => diary.happened.push(Happened { fault: step.planned.fault, from, to: wall() }),
            }
        }
        Ok(diary)
    }

    /// Starts workers that have ended by themselves; that they did is a finding.
    ///
    /// # Errors
    /// Where one cannot be started.
    pub async fn look_after(&mut self, diary: &mut Diary) -> Result<(), FaultError> {
        for worker in 0..self.crew.count() {
            if let Err(how) = self.crew.is_up(worker).await {
                diary.deserters.push(how);
                self.crew.raise(worker)?;
            }
        }
        Ok(())
    }

    async fn begin(&mut self, fault: Fault) -> Result<(), FaultError> {
        match fault {
            Fault::Kill(worker) => self.crew.signal(worker, Signal::KILL)?,
            Fault::Drain(worker) => self.crew.signal(worker, Signal::TERM)?,
            Fault::Pause(worker) => self.crew.signal(worker, Signal::STOP)?,
            Fault::Reload(worker, version) => self.crew.reload(worker, version).await?,
            Fault::CutDatabase(worker) => self.crew.database(worker).cut(),
            Fault::DarkDatabase(worker, _) => self.crew.database(worker).darken(NETWORK_KEEPS),
            Fault::CutWay(way) => self.ways[way].cut(),
            Fault::DarkWay(way, _) => self.ways[way].darken(NETWORK_KEEPS),
            Fault::RefuseWay(way) => self.ways[way].refuse(true),
            Fault::SlowWay(way) => self.outside.feel(way, |mood| mood.slow = true),
            Fault::BlockWay(way) => self.outside.feel(way, |mood| mood.blocked = true),
            Fault::TerminateOne => self.terminate("limit 1").await,
            Fault::TerminateAll => self.terminate("").await,
            Fault::Restart(mode) => tokio::task::block_in_place(|| self.cluster.restart(mode))?,
        }
        Ok(())
    }

    /// False where it has to be waited for.
    async fn end(&mut self, fault: Fault, diary: &mut Diary) -> Result<bool, FaultError> {
        let lighten = |proxy: &Proxy, light| {
            if light == Light::Cut {
                proxy.cut();
            }
            proxy.let_go();
        };
        match fault {
            // Where the plan has slipped, two ends may have come upon one worker.
            Fault::Kill(worker) | Fault::Drain(worker) if self.crew.goes_on(worker) => {}
            Fault::Kill(worker) | Fault::Drain(worker) => match self.crew.is_up(worker).await {
                Ok(true) => return Ok(false),
                Ok(false) => self.crew.raise(worker)?,
                Err(how) => {
                    diary.deserters.push(how);
                    self.crew.raise(worker)?;
                }
            },
            Fault::Pause(worker) => self.crew.signal(worker, Signal::CONT)?,
            Fault::DarkDatabase(worker, light) => lighten(self.crew.database(worker), light),
            Fault::DarkWay(way, light) => lighten(&self.ways[way], light),
            Fault::RefuseWay(way) => self.ways[way].refuse(false),
            Fault::SlowWay(way) => self.outside.feel(way, |mood| mood.slow = false),
            Fault::BlockWay(way) => self.outside.feel(way, |mood| mood.blocked = false),
            Fault::Reload(..) | Fault::CutDatabase(_) | Fault::CutWay(_) => {}
            Fault::TerminateOne | Fault::TerminateAll | Fault::Restart(_) => {}
        }
        Ok(true)
    }

    /// Ends sessions of the workers. Where nobody can be asked to, there are none.
    async fn terminate(&self, limit: &str) {
        let sql = format!(
            "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'outboxd' order by random() {limit}"
        );
        let connected: Result<Client, _> = session::connect(&self.url).await;
        if let Ok(client) = connected {
            let _ = client.execute(&sql, &[]).await;
        }
    }

    /// All workers go over to the first configuration, so that whoever is left is judged under one.
    ///
    /// # Errors
    /// Where one cannot be told.
    pub async fn agree(&mut self) -> io::Result<()> {
        for worker in 0..self.crew.count() {
            self.crew.reload(worker, Version::First).await?;
        }
        Ok(())
    }
}

/// Puts a step in its place; the first is at the end.
fn insert(steps: &mut Vec<Step>, step: Step) {
    let place = steps.partition_point(|other| other.at > step.at);
    steps.insert(place, step);
}
