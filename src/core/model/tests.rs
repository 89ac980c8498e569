//! Every kind of contract, and every mistake.

use super::contracts::{Kind, Promise};
use super::destination::Oddities;
use super::explore::{Explored, explore};
use super::mistakes::Mistake;
use super::steps::Setting;
use super::world::Allowance;

/// What may go wrong in one exploration.
#[derive(Clone, Copy)]
struct Trouble {
    name: &'static str,
    allowed: Allowance,
    oddities: Oddities,
    hand_backs: bool,
}

const CALM: Allowance = Allowance { faults: 0, failovers: 0, pin_changes: 0, decisions: 0, stops: 0 };
const PLAIN: Oddities = Oddities { odd: false, replays: false, blocks: false };

const fn trouble(name: &'static str, allowed: Allowance) -> Trouble {
    Trouble { name, allowed, oddities: PLAIN, hand_backs: false }
}

const FAULTS: Trouble = trouble("faults", Allowance { faults: 2, ..CALM });
const ANSWERS: Trouble = Trouble {
    oddities: Oddities { odd: true, replays: true, blocks: true },
    hand_backs: true,
    ..trouble("odd answers", Allowance { faults: 1, ..CALM })
};
const STOPS: Trouble = trouble("stops", Allowance { faults: 1, stops: 1, ..CALM });
const PINS: Trouble = Trouble {
    oddities: Oddities { replays: true, ..PLAIN },
    ..trouble("pins", Allowance { faults: 1, pin_changes: 2, ..CALM })
};
const DECISIONS: Trouble = trouble("decisions", Allowance { faults: 1, decisions: 1, ..CALM });
const FAILOVER: Trouble = trouble("failover", Allowance { faults: 1, failovers: 1, ..CALM });
const FAILOVER_PINS: Trouble = Trouble {
    oddities: Oddities { replays: true, ..PLAIN },
    ..trouble("failover and pins", Allowance { faults: 1, failovers: 1, pin_changes: 1, ..CALM })
};

fn all(kind: Kind) {
    for trouble in [FAULTS, ANSWERS, STOPS, PINS, DECISIONS, FAILOVER, FAILOVER_PINS] {
        run(kind, trouble, Mistake::None);
    }
}

fn run(kind: Kind, trouble: Trouble, mistake: Mistake) {
    let setting = Setting {
        promise: Promise::new(kind),
        mistake,
        oddities: trouble.oddities,
        hand_backs: trouble.hand_backs,
    };
    let name = trouble.name;
    match explore(&setting, trouble.allowed) {
        Explored::Clean(worlds) => println!("{kind:?}, {name}: {worlds} worlds"),
        Explored::Broken(path) => println!("{kind:?}, {name}: {path}"),
    }
}

#[test]
fn sweep() {
    use Kind::*;
    for kind in [
        NothingPromised, Unreconcilable, KeyLong, KeyShort, LookupSettled, LookupNever, KeyAndLookup, LookupThenResend,
        KeyAndCancel, CancelFirst, LookupAndCancel, Natural,
    ] {
        all(kind);
    }
}
