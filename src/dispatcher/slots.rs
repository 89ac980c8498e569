//! Who may send how much at once: slots of the daemon, of each destination and of each operation.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

/// A limit, cut in two where somebody asks: reconciling never starves sending, nor the other way round.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Cut {
    all: u32,
    sends: u32,
    asks: u32,
}

impl Cut {
    /// An eighth, at least one, is for asking. Where nobody asks, or there is only one, it is not cut: rows that are to
    /// be asked about under a contract that has changed since find their way all the same.
    fn new(max: u32, asked: bool) -> Self {
        if asked && max > 1 {
            let asks = (max / 8).max(1);
            Self { all: max, sends: max - asks, asks }
        } else {
            Self { all: max, sends: max, asks: max }
        }
    }

    /// What is left for sends, or for asking.
    fn left(self, used: Used, asks: bool) -> u32 {
        let own = if asks { self.asks.saturating_sub(used.asks) } else { self.sends.saturating_sub(used.sends) };
        own.min(self.all.saturating_sub(used.sends + used.asks))
    }
}

/// Slots in use under one limit.
#[derive(Clone, Copy, Debug, Default)]
struct Used {
    sends: u32,
    asks: u32,
}

impl Used {
    fn both(self) -> u32 {
        self.sends + self.asks
    }

    fn count(&mut self, asks: bool) -> &mut u32 {
        if asks { &mut self.asks } else { &mut self.sends }
    }
}

/// The most at once of one operation, and which destination's limit it shares.
#[derive(Clone, Debug)]
pub struct Limit {
    /// The operation's number, which it keeps when limits change.
    pub number: usize,
    /// The destination's number, which it keeps too.
    pub destination: usize,
    /// Requests at once of this operation.
    pub operation_max: u32,
    /// Whether its contract asks: has a lookup or a cancel.
    pub asks: bool,
}

/// What can be claimed: of each operation its sends, and what is asked about it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stream {
    /// Index of the operation among the limits.
    pub operation: usize,
    /// Lookups and cancels; otherwise everything else.
    pub asks: bool,
}

/// The slots. Those who hold one give it back by dropping it, however they end.
#[derive(Debug)]
pub struct Slots {
    streams: Vec<Stream>,
    limits: Vec<Limit>,
    all: Cut,
    /// By number.
    destinations: Vec<Cut>,
    /// As the limits.
    operations: Vec<Cut>,
    counts: Arc<Counts>,
}

/// How many are in use, whatever the limits are.
#[derive(Debug, Default)]
pub struct Counts {
    used: Mutex<InUse>,
    freed: Notify,
}

/// Slots in use, by number.
#[derive(Clone, Debug, Default)]
struct InUse {
    all: Used,
    destinations: Vec<Used>,
    operations: Vec<Used>,
}

/// Whose limits a slot counts against.
#[derive(Clone, Copy, Debug)]
struct Holder {
    operation: usize,
    destination: usize,
    asks: bool,
}

/// One slot.
#[derive(Debug)]
pub struct Slot {
    counts: Arc<Counts>,
    holder: Holder,
}

impl Slots {
    /// All free.
    pub fn new(max: u32, destination_max: &[u32], limits: &[Limit]) -> Self {
        Self::counted(Arc::default(), max, destination_max, limits)
    }

    /// The same under other limits. What is in use counts against them.
    pub fn limited(&mut self, max: u32, destination_max: &[u32], limits: &[Limit]) {
        *self = Self::counted(Arc::clone(&self.counts), max, destination_max, limits);
    }

    fn counted(counts: Arc<Counts>, max: u32, destination_max: &[u32], limits: &[Limit]) -> Self {
        let both = |operation| [false, true].map(|asks| Stream { operation, asks });
        let asked = |destination| limits.iter().any(|limit| limit.asks && limit.destination == destination);
        let numbers = limits.iter().map(|limit| limit.number + 1).max().unwrap_or(0);
        counts.lock().know(destination_max.len(), numbers);
        Self {
            streams: (0..limits.len()).flat_map(both).collect(),
            limits: limits.to_vec(),
            all: Cut::new(max, limits.iter().any(|limit| limit.asks)),
            destinations: destination_max.iter().enumerate().map(|(at, max)| Cut::new(*max, asked(at))).collect(),
            operations: limits.iter().map(|limit| Cut::new(limit.operation_max, limit.asks)).collect(),
            counts,
        }
    }

    /// The counts, which outlive the limits.
    pub fn counts(&self) -> Arc<Counts> {
        Arc::clone(&self.counts)
    }

    /// What can be claimed. [`Slots::shares`] speaks of them in this order.
    pub fn streams(&self) -> &[Stream] {
        &self.streams
    }

    /// How much of each stream may be claimed now: never more in sum than a shared limit has left. Every stream gets
    /// one; those that were `hungry` (had more due than they got) share what remains. `open` says how many a
    /// destination takes at all: one while it is probed, none while it is paused. `turn` says who is served first;
    /// the caller goes round, so that nobody is last for ever.
    pub fn shares(&self, hungry: &[bool], open: &[u32], turn: usize) -> Vec<u32> {
        let mut used = self.counts.lock().clone();
        let mut open = open.to_vec();
        let mut shares = vec![0; self.streams.len()];
        let mut take = |at: usize, want: u32, shares: &mut Vec<u32>| {
            let stream = self.streams[at];
            let holder = self.holder(stream);
            let got = want.min(self.left(stream, &used, &open));
            open[holder.destination] -= got;
            used.add(holder, got);
            shares[at] += got;
        };
        let round: Vec<usize> = (0..shares.len()).map(|i| (i + turn) % self.streams.len()).collect();
        for at in &round {
            take(*at, 1, &mut shares);
        }
        let eaters = u32::try_from(hungry.iter().filter(|h| **h).count()).unwrap_or(u32::MAX).max(1);
        // An even share first, then what others could not use.
        for most in [self.all.all.div_ceil(eaters), self.all.all] {
            for at in round.iter().filter(|at| hungry[**at]) {
                take(*at, most, &mut shares);
            }
        }
        shares
    }

    /// Whether each stream could take anything if it were alone.
    pub fn room(&self, open: &[u32]) -> Vec<bool> {
        let used = self.counts.lock();
        self.streams.iter().map(|stream| self.left(*stream, &used, open) > 0).collect()
    }

    /// How much of a stream its limits leave.
    fn left(&self, stream: Stream, used: &InUse, open: &[u32]) -> u32 {
        let Holder { operation, destination, asks } = self.holder(stream);
        open[destination]
            .min(self.all.left(used.all, asks))
            .min(self.destinations[destination].left(used.destinations[destination], asks))
            .min(self.operations[stream.operation].left(used.operations[operation], asks))
    }

    /// Takes a slot that `shares` has offered.
    pub fn take(&self, stream: Stream) -> Slot {
        let holder = self.holder(stream);
        self.counts.lock().add(holder, 1);
        Slot { counts: self.counts(), holder }
    }

    /// Slots in use.
    pub fn in_use(&self) -> u32 {
        self.counts.in_use()
    }

    /// Waits until a slot has been given back since the last wait.
    pub async fn freed(&self) {
        self.counts.freed.notified().await;
    }

    fn holder(&self, stream: Stream) -> Holder {
        let Limit { number, destination, .. } = self.limits[stream.operation];
        Holder { operation: number, destination, asks: stream.asks }
    }
}

impl Counts {
    /// Slots in use.
    pub fn in_use(&self) -> u32 {
        self.lock().all.both()
    }

    /// Slots in use of each destination, by number.
    pub fn by_destination(&self) -> Vec<u32> {
        self.lock().destinations.iter().map(|used| used.both()).collect()
    }

    fn lock(&self) -> MutexGuard<'_, InUse> {
        // Counts stay right even if a holder panicked: each change is a single step.
        self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl InUse {
    /// So many are counted from now on, never fewer than before.
    fn know(&mut self, destinations: usize, operations: usize) {
        self.destinations.resize_with(destinations.max(self.destinations.len()), Used::default);
        self.operations.resize_with(operations.max(self.operations.len()), Used::default);
    }

    fn add(&mut self, holder: Holder, n: u32) {
        *self.all.count(holder.asks) += n;
        *self.destinations[holder.destination].count(holder.asks) += n;
        *self.operations[holder.operation].count(holder.asks) += n;
    }

    fn give_back(&mut self, holder: Holder) {
        *self.all.count(holder.asks) -= 1;
        *self.destinations[holder.destination].count(holder.asks) -= 1;
        *self.operations[holder.operation].count(holder.asks) -= 1;
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.counts.lock().give_back(self.holder);
        self.counts.freed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEND_2: Stream = Stream { operation: 2, asks: false };

    /// `number` is the operation's.
    fn limit(number: usize, destination: usize, operation_max: u32, asks: bool) -> Limit {
        Limit { number, destination, operation_max, asks }
    }

    /// Operations 0 and 1 share destination 0, operation 2 has destination 1. None of them asks.
    fn slots(max: u32) -> Slots {
        Slots::new(max, &[10, 10], &[limit(0, 0, 10, false), limit(1, 0, 10, false), limit(2, 1, 4, false)])
    }

    #[test]
    fn shares_never_exceed_a_shared_limit() {
        for (max, open) in [(100, [10, 10]), (5, [10, 10]), (100, [1, 10]), (100, [0, 0])] {
            for hungry in [[true; 6], [false; 6], [true, false, true, true, false, false]] {
                let shares = slots(max).shares(&hungry, &open, 1);
                assert!(shares[..4].iter().sum::<u32>() <= 10.min(open[0]), "{shares:?}");
                assert!(shares[4..].iter().sum::<u32>() <= 4.min(open[1]), "{shares:?}");
                assert!(shares.iter().sum::<u32>() <= max);
            }
        }
    }

    #[test]
    fn an_idle_operation_keeps_one_slot_and_the_hungry_get_the_rest() {
        let hungry = [true, false, false, false, false, false];
        assert_eq!(slots(100).shares(&hungry, &[10, 10], 0), [7, 1, 1, 1, 1, 1]);
        assert_eq!(slots(2).shares(&[true; 6], &[10, 10], 0), [1, 1, 0, 0, 0, 0]);
    }

    #[test]
    fn a_dropped_slot_is_free_again() {
        let slots = slots(100);
        let held: Vec<Slot> = (0..4).map(|_| slots.take(SEND_2)).collect();
        assert_eq!(slots.shares(&[true; 6], &[10, 10], 0)[4..], [0, 0]);
        drop(held);
        assert_eq!((slots.in_use(), slots.shares(&[true; 6], &[10, 10], 0)[4]), (0, 3));
    }

    #[test]
    fn r19_asking_and_sending_never_take_each_others_slots() {
        let slots = Slots::new(64, &[16], &[limit(0, 0, 16, true)]);
        assert_eq!(slots.streams().len(), 2);
        assert_eq!(slots.shares(&[true, true], &[u32::MAX], 0), [14, 2]);
        let asking: Vec<Slot> = (0..2).map(|_| slots.take(slots.streams()[1])).collect();
        assert_eq!(slots.shares(&[true, true], &[u32::MAX], 0), [14, 0], "a flood of doubts leaves the sends alone");
        drop(asking);
        let _sending: Vec<Slot> = (0..14).map(|_| slots.take(slots.streams()[0])).collect();
        assert_eq!(slots.shares(&[true, true], &[u32::MAX], 0), [0, 2], "and a flood of sends the doubts");
    }

    #[test]
    fn what_has_room_is_another_question_than_what_gets_a_share() {
        let slots = Slots::new(64, &[1], &[limit(0, 0, 1, false), limit(1, 0, 1, false)]);
        assert_eq!(slots.shares(&[false; 4], &[u32::MAX], 2), [0, 0, 1, 0]);
        assert_eq!(slots.room(&[u32::MAX]), [true; 4]);
        let _held = slots.take(slots.streams()[0]);
        assert_eq!((slots.room(&[u32::MAX]), slots.room(&[0])), (vec![false; 4], vec![false; 4]));
    }

    #[test]
    fn r19_a_limit_of_one_is_taken_in_turns() {
        let slots = Slots::new(64, &[1], &[limit(0, 0, 1, true)]);
        assert_eq!(slots.shares(&[true, true], &[u32::MAX], 0), [1, 0]);
        assert_eq!(slots.shares(&[true, true], &[u32::MAX], 1), [0, 1]);
    }

    #[test]
    fn under_other_limits_what_is_in_use_goes_on_counting_where_it_was_taken() {
        let mut slots = slots(100);
        let held: Vec<Slot> = (0..3).map(|_| slots.take(SEND_2)).collect();
        // Operation 1 is gone, operation 2 leads to destination 0 now and may do more, operation 3 is new.
        slots.limited(100, &[10, 10], &[limit(0, 0, 10, false), limit(2, 0, 6, false), limit(3, 1, 9, false)]);
        let two = slots.take(Stream { operation: 1, asks: false });
        assert_eq!(slots.shares(&[true; 6], &[10, 10], 0), [6, 1, 1, 1, 6, 1], "three of destination 1 are still out");
        drop((held, two));
        assert_eq!(slots.in_use(), 0);
        assert_eq!(slots.shares(&[true; 6], &[10, 10], 0), [7, 1, 1, 1, 8, 1]);
    }
}
