//! Who may send how much at once: slots of the daemon, of each destination and of each operation.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use super::weights::Weights;

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
    /// The same of one tenant, sends and questions each; `None` = no bound of its own.
    pub tenant_max: Option<u32>,
    /// Whether its contract asks: has a lookup or a cancel.
    pub asks: bool,
}

/// How many requests each may get now, whatever slots are free; `u32::MAX` = any number.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Open {
    /// Destinations, by number.
    pub destinations: Vec<u32>,
    /// Operations, by number.
    pub operations: Vec<u32>,
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
    /// Bytes of large bodies at once; see [`Weights`].
    weights: Weights,
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
    /// Bytes of large bodies.
    bytes: u64,
    destinations: Vec<Used>,
    operations: Vec<Used>,
    /// Of operations that bound what one tenant has at once: by operation, kind and tenant.
    tenants: HashMap<(usize, bool), HashMap<String, u32>>,
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
    /// Of a large body; else 0.
    bytes: u64,
    /// Whose it is, where that is counted.
    tenant: Option<String>,
}

impl Slots {
    /// All free.
    pub fn new(max: u32, destination_max: &[u32], limits: &[Limit]) -> Self {
        Self::counted(Arc::default(), max, destination_max, limits)
    }

    /// The same with a limit on bytes.
    #[must_use]
    pub fn weighed(self, weights: Weights) -> Self {
        Self { weights, ..self }
    }

    /// The same under other limits. What is in use counts against them.
    pub fn limited(&mut self, max: u32, destination_max: &[u32], limits: &[Limit]) {
        *self = Self::counted(Arc::clone(&self.counts), max, destination_max, limits).weighed(self.weights);
    }

    fn counted(counts: Arc<Counts>, max: u32, destination_max: &[u32], limits: &[Limit]) -> Self {
        let both = |operation| [false, true].map(|asks| Stream { operation, asks });
        let asked = |destination| limits.iter().any(|limit| limit.asks && limit.destination == destination);
        let numbers = limits.iter().map(|limit| limit.number + 1).max().unwrap_or(0);
        counts.lock().know(destination_max.len(), numbers);
        Self {
            weights: Weights { small: u64::MAX, large: u64::MAX },
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
    /// destination or an operation takes at all: one while it is probed, none while it is paused, as many as its rate
    /// allows. `turn` says who is served first;
    /// the caller goes round, so that nobody is last for ever.
    pub fn shares(&self, hungry: &[bool], open: &Open, turn: usize) -> Vec<u32> {
        let mut used = self.counts.lock().clone();
        let mut open = open.clone();
        let mut shares = vec![0; self.streams.len()];
        let mut take = |at: usize, want: u32, shares: &mut Vec<u32>| {
            let stream = self.streams[at];
            let holder = self.holder(stream);
            let got = want.min(self.left(stream, &used, &open));
            open.destinations[holder.destination] -= got;
            open.operations[holder.operation] -= got;
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
    pub fn room(&self, open: &Open) -> Vec<bool> {
        let used = self.counts.lock();
        self.streams.iter().map(|stream| self.left(*stream, &used, open) > 0).collect()
    }

    /// How much of a stream its limits leave.
    fn left(&self, stream: Stream, used: &InUse, open: &Open) -> u32 {
        let Holder { operation, destination, asks } = self.holder(stream);
        open.destinations[destination]
            .min(open.operations[operation])
            .min(self.all.left(used.all, asks))
            .min(self.destinations[destination].left(used.destinations[destination], asks))
            .min(self.operations[stream.operation].left(used.operations[operation], asks))
    }

    /// The longest body that is small, and bytes of larger ones that may be taken now.
    pub fn bytes_left(&self) -> Weights {
        Weights { large: self.weights.large.saturating_sub(self.counts.lock().bytes), ..self.weights }
    }

    /// Takes a slot that `shares` has offered, for an action of that tenant whose body has so many bytes.
    pub fn take(&self, stream: Stream, tenant: &str, bytes: usize) -> Slot {
        let holder = self.holder(stream);
        let tenant = self.limits[stream.operation].tenant_max.map(|_| tenant.to_owned());
        let bytes = self.weights.of(u64::try_from(bytes).unwrap_or(u64::MAX));
        let mut used = self.counts.lock();
        used.add(holder, 1);
        used.bytes = used.bytes.saturating_add(bytes);
        if let Some(tenant) = &tenant {
            *used.tenants.entry(holder.stream()).or_default().entry(tenant.clone()).or_default() += 1;
        }
        drop(used);
        Slot { counts: self.counts(), holder, bytes, tenant }
    }

    /// What one tenant may have at once of a stream, and what each has; `None` where there is no such bound.
    pub fn tenants(&self, stream: Stream) -> Option<(u32, Vec<(String, u32)>)> {
        let max = self.limits[stream.operation].tenant_max?;
        let used = self.counts.lock();
        let tenants = used.tenants.get(&self.holder(stream).stream());
        let tenants = tenants.map(|tenants| tenants.iter().map(|(tenant, n)| (tenant.clone(), *n)).collect());
        Some((max, tenants.unwrap_or_default()))
    }

    /// Whether some tenant has as much at once as it may: what it has due waits for a slot of its own.
    pub fn some_tenant_is_full(&self) -> bool {
        if self.limits.iter().all(|limit| limit.tenant_max.is_none()) {
            return false;
        }
        self.streams
            .iter()
            .filter_map(|stream| self.tenants(*stream))
            .any(|(max, used)| used.iter().any(|(_, n)| *n >= max))
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

impl Holder {
    fn stream(self) -> (usize, bool) {
        (self.operation, self.asks)
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

    fn give_back(&mut self, holder: Holder, bytes: u64) {
        self.bytes -= bytes;
        *self.all.count(holder.asks) -= 1;
        *self.destinations[holder.destination].count(holder.asks) -= 1;
        *self.operations[holder.operation].count(holder.asks) -= 1;
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let mut used = self.counts.lock();
        used.give_back(self.holder, self.bytes);
        if let (Some(tenant), Some(tenants)) = (&self.tenant, used.tenants.get_mut(&self.holder.stream())) {
            let left = tenants.get(tenant).map_or(0, |n| n.saturating_sub(1));
            match left {
                0 => tenants.remove(tenant),
                left => tenants.insert(tenant.clone(), left),
            };
        }
        drop(used);
        self.counts.freed.notify_one();
    }
}

#[cfg(test)]
#[path = "slots_tests.rs"]
mod tests;
