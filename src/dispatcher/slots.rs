//! Who may send how much at once: slots of the daemon, of each destination and of each operation.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

/// The limits of one operation, and which destination's limit it shares.
#[derive(Clone, Debug)]
pub struct Limit {
    /// Index of the destination.
    pub destination: usize,
    /// Sends at once of this operation.
    pub operation_max: u32,
}

/// Slots in use.
#[derive(Debug)]
struct Used {
    all: u32,
    destinations: Vec<u32>,
    operations: Vec<u32>,
}

/// The slots. Those who hold one give it back by dropping it, however they end.
#[derive(Debug)]
pub struct Slots {
    max: u32,
    destination_max: Vec<u32>,
    limits: Vec<Limit>,
    used: Mutex<Used>,
    freed: Notify,
}

/// One slot.
#[derive(Debug)]
pub struct Slot {
    slots: Arc<Slots>,
    operation: usize,
}

impl Slots {
    /// All free.
    pub fn new(max: u32, destination_max: Vec<u32>, limits: Vec<Limit>) -> Arc<Self> {
        let used = Used { all: 0, destinations: vec![0; destination_max.len()], operations: vec![0; limits.len()] };
        Arc::new(Self { max, destination_max, limits, used: Mutex::new(used), freed: Notify::new() })
    }

    /// How much each operation may claim now: never more in sum than a shared limit has left. Every operation gets
    /// one; those that were `hungry` (had more due than they got) share what remains. `open` says how many a
    /// destination takes at all: one while it is probed, none while it is paused. `turn` says who is served first;
    /// the caller goes round, so that nobody is last for ever.
    pub fn shares(&self, hungry: &[bool], open: &[u32], turn: usize) -> Vec<u32> {
        let used = self.lock();
        let mut all = self.max.saturating_sub(used.all);
        let mut destinations: Vec<u32> = (self.destination_max.iter().zip(&used.destinations).zip(open))
            .map(|((max, used), open)| max.saturating_sub(*used).min(*open))
            .collect();
        let mut left: Vec<u32> =
            self.limits.iter().zip(&used.operations).map(|(l, used)| l.operation_max.saturating_sub(*used)).collect();
        drop(used);
        let mut shares = vec![0; self.limits.len()];
        let mut take = |operation: usize, want: u32, shares: &mut Vec<u32>| {
            let destination = self.limits[operation].destination;
            let got = want.min(all).min(destinations[destination]).min(left[operation]);
            all -= got;
            destinations[destination] -= got;
            left[operation] -= got;
            shares[operation] += got;
        };
        let round: Vec<usize> = (0..shares.len()).map(|i| (i + turn) % self.limits.len()).collect();
        for operation in &round {
            take(*operation, 1, &mut shares);
        }
        let eaters = u32::try_from(hungry.iter().filter(|h| **h).count()).unwrap_or(u32::MAX).max(1);
        // An even share first, then what others could not use.
        for most in [self.max.div_ceil(eaters), self.max] {
            for operation in round.iter().filter(|o| hungry[**o]) {
                take(*operation, most, &mut shares);
            }
        }
        shares
    }

    /// Takes a slot that `shares` has offered.
    pub fn take(self: &Arc<Self>, operation: usize) -> Slot {
        let mut used = self.lock();
        used.all += 1;
        used.operations[operation] += 1;
        used.destinations[self.limits[operation].destination] += 1;
        Slot { slots: Arc::clone(self), operation }
    }

    /// Slots in use.
    pub fn in_use(&self) -> u32 {
        self.lock().all
    }

    /// Waits until a slot has been given back since the last wait.
    pub async fn freed(&self) {
        self.freed.notified().await;
    }

    fn lock(&self) -> MutexGuard<'_, Used> {
        // Counts stay right even if a holder panicked: each change is a single step.
        self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let mut used = self.slots.lock();
        used.all -= 1;
        used.operations[self.operation] -= 1;
        used.destinations[self.slots.limits[self.operation].destination] -= 1;
        drop(used);
        self.slots.freed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Operations 0 and 1 share destination 0, operation 2 has destination 1.
    fn slots(max: u32) -> Arc<Slots> {
        let limit = |destination, operation_max| Limit { destination, operation_max };
        Slots::new(max, vec![10, 10], vec![limit(0, 10), limit(0, 10), limit(1, 4)])
    }

    #[test]
    fn shares_never_exceed_a_shared_limit() {
        for (max, open) in [(100, [10, 10]), (5, [10, 10]), (100, [1, 10]), (100, [0, 0])] {
            for hungry in [[true; 3], [false; 3], [true, false, true]] {
                let shares = slots(max).shares(&hungry, &open, 1);
                assert!(shares[0] + shares[1] <= 10.min(open[0]), "{shares:?}");
                assert!(shares[2] <= 4.min(open[1]), "{shares:?}");
                assert!(shares.iter().sum::<u32>() <= max);
            }
        }
    }

    #[test]
    fn an_idle_operation_keeps_one_slot_and_the_hungry_get_the_rest() {
        assert_eq!(slots(100).shares(&[true, false, false], &[10, 10], 0), [9, 1, 1]);
        assert_eq!(slots(2).shares(&[true, true, true], &[10, 10], 0), [1, 1, 0]);
    }

    #[test]
    fn a_dropped_slot_is_free_again() {
        let slots = slots(100);
        let held: Vec<Slot> = (0..4).map(|_| slots.take(2)).collect();
        assert_eq!(slots.shares(&[true; 3], &[10, 10], 0)[2], 0);
        drop(held);
        assert_eq!((slots.in_use(), slots.shares(&[true; 3], &[10, 10], 0)[2]), (0, 4));
    }
}
