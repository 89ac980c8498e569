//! The explorer's mirror of the statements, held against the statements: random worlds that the model reaches are
//! written into a real ledger, the same statement is run on both, and the rows must be alike.

mod rows;
mod trials;

use std::time::Duration;

use super::cluster::{Cluster, ClusterOptions};
use super::session;
use crate::core::action::State;
use crate::core::model::contracts::{Kind, Promise};
use crate::core::model::destination::Oddities;
use crate::core::model::mistakes::Mistake;
use crate::core::model::steps::{Setting, Steps};
use crate::core::model::world::{Allowance, Phase, World};
use crate::core::target::Secret;
use crate::ledger;
use trials::Bench;

/// Walks of each kind of contract.
const WALKS: usize = 30;
/// The longest walk.
const STEPS: usize = 60;

/// Numbers that only look random (xorshift64).
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % n as u64).expect("below n")
    }
}

/// As much trouble as a walk may meet.
const EVERYTHING: Allowance = Allowance { faults: 9, failovers: 2, pin_changes: 3, decisions: 3, stops: 2 };

#[tokio::test(flavor = "multi_thread")]
async fn r12_the_explorers_mirror_says_what_the_statements_do() {
    let cluster = Cluster::start(ClusterOptions::default().set("fsync", "off")).expect("a private PostgreSQL");
    let url = cluster.url("postgres", "postgres");
    ledger::migrate(&Secret::new(&url)).await.expect("a schema");
    let client = session::connect(&url).await.expect("a session");
    let ledger = ledger::connect(&Secret::new(&url), 2, "w").expect("a ledger");
    let mut bench = Bench { client, ledger, number: 0, tried: Default::default() };
    for kind in KINDS {
        let setting = Setting {
            promise: Promise::new(kind),
            mistake: Mistake::None,
            oddities: Oddities { odd: true, replays: true, blocks: true },
            hand_backs: true,
        };
        let mut dice = Dice(0x9e37_79b9_7f4a_7c15 ^ (kind as u64 + 1));
        for _ in 0..WALKS {
            let path = walk(&setting, &mut dice);
            // What a worker is about to write, and what others do meanwhile, at one moment of the walk each.
            let mut on = |wanted: fn(&World) -> bool| {
                let found: Vec<&World> = path.iter().filter(|world| wanted(world)).collect();
                (!found.is_empty()).then(|| *found[dice.below(found.len())])
            };
            let worlds = [on(is_due), on(has_learnt), on(is_overtaken), on(is_held), on(is_decidable), on(is_open)];
            bench.attempt(&setting.promise, worlds, &format!("{kind:?}")).await;
        }
    }
    println!("{:?}", bench.tried);
    for (what, least) in
        [("claim", 100), ("settle", 100), ("testify", 40), ("decide", 100), ("cancel", 50), ("mark", 10)]
    {
        assert!(bench.tried.get(what).is_some_and(|n| *n >= least), "too few of {what}: {:?}", bench.tried);
    }
}

const KINDS: [Kind; 12] = [
    Kind::NothingPromised,
    Kind::Unreconcilable,
    Kind::KeyLong,
    Kind::KeyShort,
    Kind::LookupSettled,
    Kind::LookupNever,
    Kind::KeyAndLookup,
    Kind::LookupThenResend,
    Kind::KeyAndCancel,
    Kind::CancelFirst,
    Kind::LookupAndCancel,
    Kind::Natural,
];

/// The worlds on a way that can be gone.
fn walk(setting: &Setting, dice: &mut Dice) -> Vec<World> {
    let mut path = vec![World::new(EVERYTHING)];
    let mut steps = Steps { setting, found: vec![], broken: None };
    while path.len() < STEPS {
        let world = path[path.len() - 1];
        steps.out_of(&world);
        // Ids are never reused here, so that a claim that a failover lost keeps its own.
        if steps.found.is_empty() || world.new_id() > 100 {
            break;
        }
        path.push(steps.found[dice.below(steps.found.len())].1);
    }
    path
}

fn is_open(world: &World) -> bool {
    !world.row.state.is_closed()
}

fn is_due(world: &World) -> bool {
    is_open(world) && world.row.due.is_some_and(|due| due >= 0)
}

fn is_decidable(world: &World) -> bool {
    matches!(world.row.state, State::OutcomeUnknown | State::TerminalFailure)
}

fn has_learnt(world: &World) -> bool {
    world.workers.iter().flatten().any(|worker| matches!(worker.phase, Phase::Got(_)) && world.is_current(worker))
}

fn is_overtaken(world: &World) -> bool {
    world.workers.iter().flatten().any(|worker| matches!(worker.phase, Phase::Got(_)) && !world.is_current(worker))
}

fn is_held(world: &World) -> bool {
    world.workers.iter().flatten().any(|worker| worker.phase == Phase::Fresh && world.is_current(worker))
}

/// Longer than a statement takes, and much shorter than a tick.
const AHEAD: Duration = Duration::from_secs(2);
