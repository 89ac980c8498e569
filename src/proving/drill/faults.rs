//! What goes wrong on the way, drawn from a seed: a plan that can be printed, carried out by one conductor.

use std::fmt;
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::WAYS;
use super::kinds::{NETWORK_KEEPS, TIMEOUT, Version};
use crate::proving::cluster::StopMode;

/// What is done. Workers and ways are numbered from 0.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fault {
    /// SIGKILL; started again afterwards.
    Kill(usize),
    /// SIGTERM; started again afterwards.
    Drain(usize),
    /// SIGSTOP, SIGCONT afterwards: longer than a lease.
    Pause(usize),
    /// SIGHUP with this version of the configuration.
    Reload(usize, Version),
    /// Every connection between a worker and the database is reset.
    CutDatabase(usize),
    /// Nothing passes between a worker and the database; afterwards everything does, or all connections are reset.
    DarkDatabase(usize, Light),
    /// Every connection to the destinations of a way is reset.
    CutWay(usize),
    /// Nothing passes between the workers and the destinations of a way.
    DarkWay(usize, Light),
    /// New connections of a way are reset.
    RefuseWay(usize),
    /// The destinations of a way take their time.
    SlowWay(usize),
    /// The destinations of a way refuse our credentials.
    BlockWay(usize),
    /// One of the workers' sessions is terminated by the server.
    TerminateOne,
    /// All of them are.
    TerminateAll,
    /// The database is restarted.
    Restart(StopMode),
}

/// How the dark ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Light {
    /// What has waited arrives late.
    Flows,
    /// What has waited is lost.
    Cut,
}

/// A fault, when it begins and for how long it lasts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Planned {
    /// From the beginning.
    pub at: Duration,
    /// Zero where it has no duration.
    pub lasts: Duration,
    /// What.
    pub fault: Fault,
}

/// Everything that goes wrong, in the order of its time.
pub type Faults = Vec<Planned>;

/// What two faults cannot happen to at the same time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Victim {
    Worker(usize),
    Way(usize),
    Database,
}

impl Fault {
    /// The names of all kinds of fault.
    pub const NAMES: [&'static str; 14] = [
        "kill",
        "drain",
        "pause",
        "reload",
        "cut_database",
        "dark_database",
        "cut_way",
        "dark_way",
        "refuse_way",
        "slow_way",
        "block_way",
        "terminate_one",
        "terminate_all",
        "restart",
    ];

    /// Its kind, for reports.
    pub const fn name(self) -> &'static str {
        Self::NAMES[match self {
            Self::Kill(_) => 0,
            Self::Drain(_) => 1,
            Self::Pause(_) => 2,
            Self::Reload(..) => 3,
            Self::CutDatabase(_) => 4,
            Self::DarkDatabase(..) => 5,
            Self::CutWay(_) => 6,
            Self::DarkWay(..) => 7,
            Self::RefuseWay(_) => 8,
            Self::SlowWay(_) => 9,
            Self::BlockWay(_) => 10,
            Self::TerminateOne => 11,
            Self::TerminateAll => 12,
            Self::Restart(_) => 13,
        }]
    }

    const fn victim(self) -> Victim {
        match self {
            Self::Kill(n) | Self::Drain(n) | Self::Pause(n) | Self::Reload(n, _) => Victim::Worker(n),
            Self::CutDatabase(n) | Self::DarkDatabase(n, _) => Victim::Worker(n),
            Self::CutWay(n) | Self::DarkWay(n, _) | Self::RefuseWay(n) | Self::SlowWay(n) | Self::BlockWay(n) => {
                Victim::Way(n)
            }
            Self::TerminateOne | Self::TerminateAll | Self::Restart(_) => Victim::Database,
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Kill(n) => write!(f, "worker {n} is killed (SIGKILL)"),
            Self::Drain(n) => write!(f, "worker {n} is drained (SIGTERM)"),
            Self::Pause(n) => write!(f, "worker {n} is paused (SIGSTOP)"),
            Self::Reload(n, version) => write!(f, "worker {n} reloads the {} configuration", version.name()),
            Self::CutDatabase(n) => write!(f, "worker {n} loses its connections to the database"),
            Self::DarkDatabase(n, light) => write!(f, "nothing passes between worker {n} and the database; {light}"),
            Self::CutWay(n) => write!(f, "every connection of way {n} is reset"),
            Self::DarkWay(n, light) => write!(f, "nothing passes on way {n}; {light}"),
            Self::RefuseWay(n) => write!(f, "way {n} takes no connections"),
            Self::SlowWay(n) => write!(f, "the destinations of way {n} are slow"),
            Self::BlockWay(n) => write!(f, "the destinations of way {n} refuse our credentials"),
            Self::TerminateOne => write!(f, "one session of the workers is terminated"),
            Self::TerminateAll => write!(f, "every session of the workers is terminated"),
            Self::Restart(StopMode::Fast) => write!(f, "the database is restarted"),
            Self::Restart(StopMode::Immediate) => write!(f, "the database crashes and is started again"),
        }
    }
}

impl fmt::Display for Light {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Flows => "what waits arrives late",
            Self::Cut => "what waits is lost",
        })
    }
}

/// How much goes wrong.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Weather {
    /// Everything, all the time.
    Storm,
    /// Everything that processes survive, now and then.
    Gusts,
}

/// Draws what goes wrong within `spread`. Every kind of fault comes up once there is time for it.
pub fn draw(seed: u64, workers: usize, spread: Duration, weather: Weather) -> Faults {
    // Another stream than that of the application's plan.
    let mut rng = StdRng::seed_from_u64(seed ^ 0x6661_756c_7473);
    let mut faults: Faults = Vec::new();
    let mut deck: Vec<usize> = Vec::new();
    let mut at = Duration::from_millis(500);
    while at < spread {
        if deck.is_empty() {
            match weather {
                // Kills and pauses twice as often as the others.
                Weather::Storm => deck.extend((0..Fault::NAMES.len()).chain([0, 2])),
                // Neither kills nor drains: what is looked at is how daemons get on that live long.
                Weather::Gusts => deck.extend(2..Fault::NAMES.len()),
            }
            rand::seq::SliceRandom::shuffle(deck.as_mut_slice(), &mut rng);
        }
        let planned = deck.pop().map(|kind| one(kind, at, workers, &mut rng));
        faults.extend(planned.filter(|planned| is_free(&faults, planned)));
        let next = Duration::from_millis(rng.random_range(250..1300));
        at += match weather {
            Weather::Storm => next,
            Weather::Gusts => next * 4,
        };
    }
    faults
}

fn one(kind: usize, at: Duration, workers: usize, rng: &mut StdRng) -> Planned {
    let (worker, way) = (rng.random_range(0..workers), rng.random_range(0..WAYS));
    let version = if rng.random_range(0..2) == 0 { Version::First } else { Version::Second };
    let light = if rng.random_range(0..3) == 0 { Light::Cut } else { Light::Flows };
    let mode = if rng.random_range(0..2) == 0 { StopMode::Fast } else { StopMode::Immediate };
    let mut ms = |range: std::ops::Range<u64>| Duration::from_millis(rng.random_range(range));
    let past_a_lease = TIMEOUT + Duration::from_secs(1);
    let (fault, lasts) = match kind {
        0 => (Fault::Kill(worker), ms(100..2500)),
        1 => (Fault::Drain(worker), ms(100..1500)),
        2 => (Fault::Pause(worker), past_a_lease + ms(0..2500)),
        3 => (Fault::Reload(worker, version), Duration::ZERO),
        4 => (Fault::CutDatabase(worker), Duration::ZERO),
        5 => (Fault::DarkDatabase(worker, light), ms(500..4500)),
        6 => (Fault::CutWay(way), Duration::ZERO),
        // Now and then longer than the network keeps anything.
        7 => (Fault::DarkWay(way, light), ms(800..4500).min(NETWORK_KEEPS + Duration::from_millis(500))),
        8 => (Fault::RefuseWay(way), ms(300..2500)),
        9 => (Fault::SlowWay(way), ms(1000..4000)),
        10 => (Fault::BlockWay(way), ms(300..2000)),
        11 => (Fault::TerminateOne, Duration::ZERO),
        12 => (Fault::TerminateAll, Duration::ZERO),
        _ => (Fault::Restart(mode), Duration::ZERO),
    };
    Planned { at, lasts, fault }
}

/// Whether nothing else is happening to its victim: the restart of a database takes a moment, too.
fn is_free(faults: &Faults, planned: &Planned) -> bool {
    let pause = Duration::from_millis(400);
    let same = |other: &&Planned| other.fault.victim() == planned.fault.victim();
    faults.iter().filter(same).all(|other| other.at + other.lasts + pause <= planned.at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_draws_one_plan_and_every_kind_of_fault_comes_up() {
        let draw = |seed| draw(seed, 3, Duration::from_secs(60), Weather::Storm);
        assert_eq!(draw(1), draw(1));
        assert_ne!(draw(1), draw(2));
        for seed in 1..20 {
            let names: Vec<&str> = draw(seed).iter().map(|planned| planned.fault.name()).collect();
            let missing: Vec<_> = Fault::NAMES.iter().filter(|name| !names.contains(name)).collect();
            assert!(missing.len() <= 1, "seed {seed}: {missing:?}");
        }
    }

    #[test]
    fn gusts_leave_every_process_alive() {
        let faults = draw(1, 3, Duration::from_secs(600), Weather::Gusts);
        assert!(faults.len() > 50);
        assert!(!faults.iter().any(|planned| matches!(planned.fault, Fault::Kill(_) | Fault::Drain(_))));
    }

    #[test]
    fn no_victim_has_two_faults_at_once() {
        let faults = draw(5, 2, Duration::from_secs(60), Weather::Storm);
        for (place, fault) in faults.iter().enumerate() {
            assert!(is_free(&faults[..place].to_vec(), fault), "{fault:?}");
        }
    }
}
