//! What the application will do, drawn from a seed: which orders, when, how each transaction ends, and what is done to
//! them afterwards.

use std::time::Duration;

use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};

use super::kinds::Kind;
use super::moves::{self, Move};

/// One of so many orders is rolled back instead.
const ROLLED_BACK: u32 = 10;
/// One of so many is asked for twice, by two sessions.
const TWICE: u32 = 6;
/// One of so many is cancelled soon after.
const CANCELLED: u32 = 14;
/// One of so many has a deadline that it may miss.
const EXPIRES: u32 = 14;
/// One of so many is committed under an authority that is revoked on the way.
const GRANTED: u32 = 10;
/// One of so many stands in a queue.
const QUEUED: u32 = 4;
/// A queue for so many orders of all tenants together: most are of five or six.
const ORDERS_A_KEY: u32 = 70;
/// The tenants, by turns.
const TENANTS: [&str; 3] = ["acme", "birch", "cobalt"];
/// Orders a grant stands for: as many grants as are needed.
pub const GRANTS: u32 = 3;

/// One order: what the application writes down and asks for in one transaction.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Order {
    /// From 1.
    pub number: u32,
    /// Under which contract.
    pub kind: Kind,
    /// When, from the beginning.
    pub at: Duration,
    /// Whether its transaction is committed; else it is rolled back, and never tried again.
    pub committed: bool,
    /// It is asked for again so long after, by another session.
    pub again: Option<Duration>,
    /// It is cancelled so long after.
    pub cancelled: Option<Duration>,
    /// It must be sent within so long.
    pub expires: Option<Duration>,
    /// It rests on this grant.
    pub grant: Option<u32>,
    /// The order that it undoes.
    pub undoes: Option<u32>,
    /// The queue of its tenant in which it stands.
    pub queue: Option<u32>,
    /// What its requests meet, one after the other; the last stays.
    pub moves: Vec<Move>,
}

/// A grant that is revoked, and perhaps given back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Revocation {
    /// Which grant.
    pub grant: u32,
    /// When it is revoked.
    pub at: Duration,
    /// So long after it is lifted.
    pub lifted: Option<Duration>,
}

/// Everything the application will do.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Plan {
    /// In the order of their time.
    pub orders: Vec<Order>,
    /// In the order of their time.
    pub revocations: Vec<Revocation>,
    /// Until when orders are placed.
    pub spread: Duration,
}

impl Order {
    /// Whose it is. What undoes an order is of its tenant.
    pub fn tenant(&self) -> &'static str {
        TENANTS[self.undoes.unwrap_or(self.number) as usize % TENANTS.len()]
    }
}

impl Plan {
    /// Draws a plan with so many committed orders. The same seed draws the same plan.
    pub fn draw(seed: u64, actions: u32, spread: Duration) -> Self {
        let mut rng = StdRng::seed_from_u64(seed);
        // Another stream, so that everything else is drawn as it was without queues.
        let mut lines = StdRng::seed_from_u64(seed ^ 0x7175_6575_6573);
        let keys = (actions / ORDERS_A_KEY).max(1);
        let rolled_back = actions / ROLLED_BACK;
        let total = actions + rolled_back;
        let mut endings: Vec<bool> = (0..total).map(|n| n < actions).collect();
        endings.shuffle(&mut rng);
        let mut deck: Vec<Kind> = Vec::new();
        let mut orders: Vec<Order> = Vec::new();
        for (number, committed) in (1..).zip(endings) {
            if deck.is_empty() {
                deck.extend(Kind::ALL);
                deck.shuffle(&mut rng);
            }
            let mut kind = deck.pop().unwrap_or(Kind::Keyed);
            let at = spread.mul_f64(f64::from(number) / f64::from(total.max(1)));
            let undoes = (kind == Kind::Refund).then(|| undone(&orders, &mut rng)).flatten();
            if kind == Kind::Refund && undoes.is_none() {
                kind = Kind::Keyed;
            }
            let mut one_in = |n: u32| rng.random_range(0..n) == 0;
            let (again, cancelled, expires, granted) =
                (one_in(TWICE), one_in(CANCELLED), one_in(EXPIRES), one_in(GRANTED));
            let mut within = |ms: std::ops::Range<u64>| Duration::from_millis(rng.random_range(ms));
            orders.push(Order {
                number,
                kind,
                at,
                committed,
                again: (again && committed).then(|| within(0..3000)),
                cancelled: (cancelled && committed).then(|| within(0..4000)),
                expires: expires.then(|| within(300..6000)),
                grant: granted.then_some(number % GRANTS),
                undoes,
                queue: (lines.random_range(0..QUEUED) == 0).then(|| lines.random_range(0..keys)),
                moves: moves::deal(kind, &mut rng),
            });
        }
        let revocations = (0..GRANTS)
            .map(|grant| Revocation {
                grant,
                at: spread.mul_f64(rng.random_range(0.3..0.8)),
                lifted: {
                    let after = Duration::from_millis(rng.random_range(500..5000));
                    rng.random_range(0..2).eq(&0).then_some(after)
                },
            })
            .collect();
        Self { orders, revocations, spread }
    }

    /// The same for an application that forgets its ordering keys.
    pub fn jumbled(&self) -> Self {
        let orders = self.orders.iter().map(|order| Order { queue: None, ..order.clone() }).collect();
        Self { orders, ..self.clone() }
    }

    /// The order of that number.
    pub fn order(&self, number: u32) -> Option<&Order> {
        self.orders.get(usize::try_from(number.checked_sub(1)?).ok()?)
    }
}

/// An order that can be undone: a keyed one that is committed and that nothing undoes yet.
fn undone(orders: &[Order], rng: &mut StdRng) -> Option<u32> {
    let taken: Vec<u32> = orders.iter().filter_map(|order| order.undoes).collect();
    let open = |order: &&Order| order.kind == Kind::Keyed && order.committed && !taken.contains(&order.number);
    let open: Vec<u32> = orders.iter().filter(open).map(|order| order.number).collect();
    (!open.is_empty()).then(|| open[rng.random_range(0..open.len())])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_draws_one_plan_with_what_was_asked_for() {
        let spread = Duration::from_secs(60);
        let plan = Plan::draw(7, 300, spread);
        assert_eq!(plan, Plan::draw(7, 300, spread));
        assert_ne!(plan, Plan::draw(8, 300, spread));
        assert_eq!(plan.orders.iter().filter(|order| order.committed).count(), 300);
        assert_eq!(plan.orders.iter().filter(|order| !order.committed).count(), 30);
        assert!(plan.orders.iter().all(|order| order.at <= spread));
        assert!((1..).zip(&plan.orders).all(|(number, order)| plan.order(number) == Some(order)));
        for kind in Kind::ALL {
            assert!(plan.orders.iter().any(|order| order.kind == kind), "{kind:?}");
        }
        type Wanted = fn(&Order) -> bool;
        let wanted: [Wanted; 6] = [
            |order| order.again.is_some(),
            |order| order.cancelled.is_some(),
            |order| order.expires.is_some(),
            |order| order.grant.is_some(),
            |order| order.undoes.is_some(),
            |order| order.queue.is_some(),
        ];
        assert!(wanted.iter().all(|wanted| plan.orders.iter().any(wanted)));
    }

    #[test]
    fn what_undoes_comes_later_and_once() {
        let plan = Plan::draw(3, 300, Duration::from_secs(60));
        for order in plan.orders.iter().filter(|order| order.undoes.is_some()) {
            let undone = plan.order(order.undoes.unwrap()).unwrap();
            assert!(undone.number < order.number && undone.committed && undone.kind == Kind::Keyed);
            assert_eq!(plan.orders.iter().filter(|other| other.undoes == order.undoes).count(), 1);
        }
    }

    #[test]
    fn the_smallest_plans_can_be_drawn() {
        for actions in [1, 2, 9, 14] {
            assert_eq!(Plan::draw(1, actions, Duration::from_secs(1)).orders.len() as u32, actions + actions / 10);
        }
    }
}
