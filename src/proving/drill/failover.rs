//! The failover: two daemons, a database that is stopped for a while, and then a copy of it promoted that lacks what was
//! committed last, as where a replica takes over that is not synchronous. What README.md says about it is looked at.

use std::collections::HashSet;
use std::path::Path;
use std::time::{Duration, SystemTime};

use rustix::process::Signal;
use serde::Serialize;

use super::conductor::{Diary, Stage};
use super::kinds::Kind;
use super::moves::Move;
use super::plan::{Order, Plan};
use super::promise::{Promise, Violation};
use super::records::{Desk, What, World};
use super::{DrillError, Until, desk, ledger, referee, rest, set};
use crate::clock::{Uptime, wall};
use crate::core::target::Secret;
use crate::ledger::accept_cluster;
use crate::proving::session;

/// Daemons.
const WORKERS: usize = 2;
/// How long the database is stopped.
const STOPPED: Duration = Duration::from_secs(6);
/// After the stop, what had been claimed before may still leave: as long as a lease.
const CLAIMED_BEFORE: Duration = Duration::from_secs(2);
/// How long is waited for what must happen.
const SOON: Duration = Duration::from_secs(20);
/// Orders of each of the three parts.
const EACH: u32 = 36;

/// When an order was placed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Part {
    /// Before everything.
    Before,
    /// In the copy, and sent by the old database's word: the new one does not know that.
    Forgotten,
    /// Only in the old database.
    Lost,
}

/// Something that is said about it, and whether it held.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Claim {
    /// What is said.
    pub claim: &'static str,
    /// Whether it held.
    pub held: bool,
    /// In figures.
    pub seen: String,
}

/// What came of it.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Failover {
    /// What everything was drawn from.
    pub seed: u64,
    /// How long it took, seconds.
    pub seconds: f64,
    /// What is said, and whether it held.
    pub claims: Vec<Claim>,
    /// What it cost, which no program on this side can prevent.
    pub costs: Vec<String>,
    /// What is not as promised besides.
    pub violations: Vec<Violation>,
}

impl Failover {
    /// Whether everything that is said held.
    pub fn is_well(&self) -> bool {
        self.violations.is_empty() && self.claims.iter().all(|claim| claim.held)
    }
}

fn part_of(order: u32) -> Part {
    match (order.saturating_sub(1)) / EACH {
        0 => Part::Before,
        1 => Part::Forgotten,
        _ => Part::Lost,
    }
}

/// Orders of all kinds, without stops and without originals. Of those that are forgotten every fourth answer is withheld.
fn plan(seed: u64) -> Plan {
    let kinds: Vec<Kind> = Kind::ALL.into_iter().filter(|kind| !matches!(kind, Kind::Refund | Kind::Moving)).collect();
    let order = |number: u32| Order {
        number,
        kind: kinds[(number as usize + usize::try_from(seed % 97).unwrap_or(0)) % kinds.len()],
        at: Duration::ZERO,
        committed: true,
        again: None,
        cancelled: None,
        expires: None,
        grant: None,
        undoes: None,
        queue: None,
        moves: match part_of(number) {
            Part::Forgotten if number.is_multiple_of(4) => vec![Move::Withhold, Move::Answer],
            Part::Before | Part::Forgotten | Part::Lost => vec![Move::Answer],
        },
    };
    Plan { orders: (1..=EACH * 3).map(order).collect(), revocations: Vec::new(), spread: Duration::ZERO }
}

impl Plan {
    fn part(&self, part: Part) -> Self {
        let orders = self.orders.iter().filter(|order| part_of(order.number) == part).cloned().collect();
        Self { orders, ..self.clone() }
    }
}

/// Runs it. Progress goes to standard error.
///
/// # Errors
/// Where a part could not be started or ended early.
pub async fn run(binary: &Path, seed: u64) -> Result<Failover, DrillError> {
    let begun = Uptime::now();
    let plan = plan(seed);
    let mut diary = Diary::default();
    eprintln!("Starting a PostgreSQL of its own, destinations on loopback and two daemons …");
    let mut stage = set(binary, &plan, WORKERS, None).await?;
    let client = session::connect(&stage.url).await?;
    desk::open(&client).await?;
    drop(client);

    eprintln!("The database is stopped for {} s while daemons work …", STOPPED.as_secs());
    (0..super::WAYS).for_each(|way| stage.outside.feel(way, |mood| mood.slow = true));
    place(&stage, &plan, Part::Before).await?;
    arrived(&stage, 4).await;
    tokio::task::block_in_place(|| stage.cluster.stop(crate::proving::cluster::StopMode::Fast))?;
    let stopped = wall();
    tokio::time::sleep(STOPPED).await;
    let resumed = wall();
    tokio::task::block_in_place(|| stage.cluster.resume())?;
    (0..super::WAYS).for_each(|way| stage.outside.feel(way, |mood| mood.slow = false));
    rest(&mut stage, &mut diary, Until::Held).await?;

    eprintln!("A copy is made, and orders are delivered that the copy knows nothing about …");
    signal(&mut stage, Signal::STOP)?;
    place(&stage, &plan, Part::Forgotten).await?;
    tokio::task::block_in_place(|| stage.cluster.stop_and_copy())?;
    tokio::task::block_in_place(|| stage.cluster.resume())?;
    signal(&mut stage, Signal::CONT)?;
    place(&stage, &plan, Part::Lost).await?;
    arrived(&stage, EACH as usize * 3).await;

    eprintln!("The database crashes, and the copy takes over …");
    let failed_over = wall();
    tokio::task::block_in_place(|| stage.cluster.fail_over())?;
    session::connect(&stage.url).await?.execute("select pg_promote()", &[]).await?;
    let refused = stage.crew.refused(SOON).await;
    let unasked =
        { stage.outside.records().0.iter().filter(|request| request.at > failed_over + CLAIMED_BEFORE).count() };
    // A person has looked at what may be lost.
    accept_cluster(&Secret::new(stage.url.clone())).await?;
    for worker in 0..WORKERS {
        if !stage.crew.goes_on(worker) {
            stage.crew.raise(worker)?;
        }
    }
    let rested = rest(&mut stage, &mut diary, Until::Held).await?;
    diary.deserters.extend(stage.crew.dismiss().await);

    let client = session::connect(&stage.url).await?;
    let (requests, effects) = stage.outside.records();
    let world = World {
        plan,
        desk: desk::read(&client, &desk::nothing_told()).await?,
        entries: ledger::read(&client).await?,
        requests,
        effects,
        office: None,
        faults: Vec::new(),
        said: stage.crew.said(),
        rested: rested.then(wall),
        deserters: diary.deserters,
    };
    let moments = Moments { stopped, resumed, failed_over, refused, unasked };
    Ok(judged(&world, seed, moments, Uptime::now().since(begun)))
}

fn signal(stage: &mut Stage, signal: Signal) -> Result<(), DrillError> {
    (0..WORKERS).try_for_each(|worker| stage.crew.signal(worker, signal))?;
    Ok(())
}

async fn place(stage: &Stage, plan: &Plan, part: Part) -> Result<(), DrillError> {
    let (mut sessions, _) = desk::work(&plan.part(part), &stage.url, Uptime::now());
    while let Some(session) = sessions.join_next().await {
        session??;
    }
    Ok(())
}

/// Waits until so many orders have reached their destination, or for long enough.
async fn arrived(stage: &Stage, orders: usize) {
    let end = Uptime::now().plus(SOON);
    while !end.is_over() {
        let (requests, _) = stage.outside.records();
        if requests.iter().filter_map(|request| request.order).collect::<HashSet<_>>().len() >= orders {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// When what happened, and what came of it at once.
struct Moments {
    stopped: SystemTime,
    resumed: SystemTime,
    failed_over: SystemTime,
    /// Daemons that ended since the database was another one.
    refused: usize,
    /// Requests after the failover, before a person had accepted it.
    unasked: usize,
}

fn judged(
    world: &World,
    seed: u64,
    Moments { stopped, resumed, failed_over, refused, unasked }: Moments,
    took: Duration,
) -> Failover {
    let parted = |order: Option<u32>, part| order.is_some_and(|order| part_of(order) == part);
    let sends = || world.requests.iter().filter(|request| request.what == What::Send);
    let meanwhile = sends().filter(|request| request.at > stopped + CLAIMED_BEFORE && request.at < resumed).count();
    let kept = orders(&world.desk);
    let known: HashSet<u32> = world.entries.iter().map(|entry| entry.order).collect();
    let lost = kept.iter().filter(|order| part_of(**order) == Part::Lost).count();

    let forgotten: Vec<_> = world.entries.iter().filter(|entry| part_of(entry.order) == Part::Forgotten).collect();
    let of = |action| sends().filter(move |request| request.action == Some(action)).collect::<Vec<_>>();
    let again: Vec<_> = forgotten.iter().filter(|entry| of(entry.action).len() > 1).collect();
    let changed = again.iter().filter(|entry| !referee::same(&of(entry.action), entry.kind)).count();
    let effects = |action| world.effects.iter().filter(move |effect| effect.action == Some(action)).count();
    let (remembering, others): (Vec<_>, Vec<_>) = forgotten.iter().partition(|entry| remembers(entry.kind));
    let twice = |entries: &[&&super::records::Entry]| entries.iter().filter(|e| effects(e.action) > 1).count();
    let late = world.entries.iter().flat_map(|entry| &entry.attempts).filter(|a| a.kind == "late").count();

    // What the old database had written down is gone: of that no record can be asked for, and no second effect is a
    // fault where the destination remembers nothing.
    let (costly, violations): (Vec<Violation>, Vec<Violation>) = referee::judge(world).into_iter().partition(|v| {
        let entry = v.action.and_then(|action| world.entries.iter().find(|entry| entry.action == action));
        let is_forgotten = entry.is_some_and(|entry| part_of(entry.order) == Part::Forgotten);
        let remembers = entry.is_some_and(|entry| remembers(entry.kind));
        match v.promise {
            Promise::Unrecorded => is_forgotten || v.action.is_none(),
            Promise::NotCommitted => v.action.is_none(),
            Promise::Duplicate => is_forgotten && !remembers,
            Promise::FalseState | Promise::Lost | Promise::KeyChanged | Promise::SentTwice | Promise::SentAfterStop => {
                false
            }
            Promise::Identity
            | Promise::Compensation
            | Promise::QueueOrder
            | Promise::Pace
            | Promise::Decision
            | Promise::Worker => false,
        }
    });
    let claim = |claim, held, seen| Claim { claim, held, seen };
    let claims = vec![
        claim(
            "while the database is stopped nothing is claimed or sent",
            meanwhile == 0,
            format!("{meanwhile} requests later than {} s after the stop", CLAIMED_BEFORE.as_secs()),
        ),
        claim(
            "daemons notice that another database has taken over, and end until a person has accepted it",
            refused == WORKERS && unasked == 0,
            format!("{refused} of {WORKERS} ended; {unasked} requests before it was accepted"),
        ),
        claim(
            "an action is lost with the state change it belongs to, or not at all",
            kept == known && lost == 0,
            format!(
                "{} orders and {} actions are left, {lost} of {EACH} that were committed last",
                kept.len(),
                known.len()
            ),
        ),
        claim(
            "what was sent and forgotten is sent again with the same key and content",
            changed == 0 && !again.is_empty(),
            format!("{} actions were sent again, {changed} of them otherwise", again.len()),
        ),
        claim(
            "a destination that remembers the key does nothing twice",
            twice(&remembering) == 0,
            format!("{} second effects among {}", twice(&remembering), remembering.len()),
        ),
        claim("everything that is left comes to rest", world.rested.is_some(), format!("{} actions", known.len())),
    ];
    let after = sends().filter(|request| request.at > failed_over && parted(request.order, Part::Forgotten)).count();
    let sent = |order: u32| sends().any(|request| request.order == Some(order));
    let gone = world.plan.orders.iter().filter(|o| part_of(o.number) == Part::Lost && sent(o.number)).count();
    let unrecorded = costly.iter().filter(|violation| violation.promise != Promise::Duplicate).count();
    let costs = vec![
        format!("{EACH} orders that were committed last are gone with their actions, {gone} of them delivered"),
        format!("{after} requests repeated what the new database did not know to be sent"),
        format!(
            "{} of {} actions took effect twice whose destination remembers nothing, or not for long",
            twice(&others),
            others.len()
        ),
        format!("{late} answers to claims of the old database were kept as late testimony"),
        format!("{unrecorded} actions have attempts of which no record is left"),
    ];
    let seconds = (took.as_secs_f64() * 10.0).round() / 10.0;
    Failover { seed, seconds, claims, costs, violations }
}

/// Whether its destination recognises a repeat for as long as this takes.
fn remembers(kind: Kind) -> bool {
    kind.memory() == Some(Duration::MAX)
}

fn orders(desk: &Desk) -> HashSet<u32> {
    desk.written.iter().map(|written| written.order).collect()
}
