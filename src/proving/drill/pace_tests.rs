//! What the referee finds of rates and bounds, in worlds in which all that matters is when requests arrived.

use super::faults::{Fault, Light};
use super::kinds::Kind;
use super::paces::{PaceFigures, judge};
use super::promise::Promise;
use super::records::{Attempt, Happened, Request, World};
use super::testing::{at, attempt, entry, order, request, world};
use crate::core::action::State;

/// Order, worker, milliseconds of the claim and of the arrival.
type Sent = (u32, &'static str, u64, u64);

fn sent(kind: Kind, sent: &[Sent]) -> World {
    let mut world = world();
    world.plan.orders = (1..=9).map(|number| order(number, kind)).collect();
    (world.entries, world.requests, world.effects) = Default::default();
    for (number, (order, worker, claimed, arrived)) in (100..).zip(sent) {
        let mut entry = entry(*order, kind, State::Succeeded);
        let worker = Some((*worker).to_owned());
        entry.attempts =
            vec![Attempt { worker, started_at: Some(at(*claimed)), ..attempt(number, "accepted", "succeeded") }];
        world.entries.push(entry);
        world.requests.push(Request { at: at(*arrived), ..request(*order, kind, number, true) });
    }
    world
}

fn dark(mut world: World, kind: Kind) -> World {
    let fault = Fault::DarkWay(kind.way(), Light::Flows);
    world.faults.push(Happened { fault, from: at(0), to: at(300) });
    world
}

fn found(world: &World) -> Vec<Promise> {
    judge(world).into_iter().map(|violation| violation.promise).collect()
}

#[test]
fn r30_more_than_a_rate_allows_is_found_of_each_daemon_alone() {
    let kind = Kind::KeyedThenLookup;
    // Two at once and one more, and what two seconds of a lease bring.
    let five: Vec<Sent> = (0..5).map(|n| (1, "a", 0, 200 + n)).collect();
    assert_eq!(found(&sent(kind, &five)), []);
    let six = [&five[..], &[(1, "a", 0, 240)]].concat();
    assert_eq!(found(&sent(kind, &six)), [Promise::Pace]);
    let later = [&five[..], &[(1, "a", 0, 1300)]].concat();
    assert_eq!(found(&sent(kind, &later)), []);
    let another = [&five[..], &[(1, "b", 0, 240)]].concat();
    assert_eq!(found(&sent(kind, &another)), [], "the rate is a daemon's own");
    assert_eq!(found(&sent(Kind::Keyed, &six)), [], "its destination has none");
    assert_eq!(found(&dark(sent(kind, &six), kind)), [], "they may have waited for each other");
    let ten: Vec<Sent> = (0..10).map(|n| (1, "a", 0, 200 + n)).collect();
    assert_eq!(found(&dark(sent(kind, &ten), kind)), [Promise::Pace]);
    let figures = PaceFigures::of(&sent(kind, &later));
    assert_eq!(figures, PaceFigures { rated: 6, fullest: 5, fullest_ten: 6, bounded: 0 });
}

#[test]
fn r30_more_of_one_tenant_at_once_than_it_may_have_is_found() {
    let kind = Kind::Conflict;
    let both = |second: Sent| sent(kind, &[(1, "a", 100, 200), second]);
    assert_eq!(found(&both((4, "a", 110, 210))), [Promise::Pace]);
    for (what, second) in [
        ("claimed when the first had arrived", (4, "a", 201, 210)),
        ("of another daemon", (4, "b", 110, 210)),
        ("of another tenant", (2, "a", 110, 210)),
        ("its time was over before", (4, "a", 2000, 2100)),
    ] {
        assert_eq!(found(&both(second)), [], "{what}");
    }
    assert_eq!(found(&dark(both((4, "a", 110, 210)), kind)), [], "nobody knows when the first had ended");
    assert_eq!(found(&sent(Kind::Keyed, &[(1, "a", 100, 200), (4, "a", 110, 210)])), [], "it has no bound");
    assert_eq!(PaceFigures::of(&both((4, "a", 110, 210))).bounded, 2);
}
