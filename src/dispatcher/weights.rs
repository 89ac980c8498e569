//! How many bytes of bodies may be in memory.

/// How many bytes of bodies may be in memory. Half of it is for small ones, of which as many as there can be fit; the other
/// half is for the larger ones together.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Weights {
    /// The longest body that is small.
    pub small: u64,
    /// Bytes of larger ones at once; the last of them may be longer than what is left.
    pub large: u64,
}

impl Weights {
    /// Of so many bytes for so many bodies at once.
    pub fn new(bytes_in_flight_max: u64, max_in_flight: u32) -> Self {
        let half = bytes_in_flight_max / 2;
        Self { small: half / u64::from(max_in_flight.max(1)), large: half }
    }

    /// What a body of so many bytes weighs: a small one nothing.
    pub fn of(self, bytes: u64) -> u64 {
        if bytes > self.small { bytes } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::super::slots::{Limit, Slot, Slots};
    use super::*;

    #[test]
    fn small_bodies_always_fit_and_of_the_large_ones_what_fits_and_one() {
        let limits = [Limit { number: 0, destination: 0, operation_max: 10, asks: false, tenant_max: None }];
        let mut slots = Slots::new(100, &[10], &limits).weighed(Weights::new(2000, 100));
        let stream = slots.streams()[0];
        assert_eq!(slots.bytes_left(), Weights { small: 10, large: 1000 });
        let small: Vec<Slot> = (0..4).map(|_| slots.take(stream, "t", 10)).collect();
        assert_eq!(slots.bytes_left().large, 1000);
        let large = slots.take(stream, "t", 999);
        assert_eq!(slots.bytes_left().large, 1);
        let huge = slots.take(stream, "t", 1_000_000);
        assert_eq!(slots.bytes_left().large, 0);
        slots.limited(100, &[10], &limits);
        assert_eq!(slots.bytes_left(), Weights { small: 10, large: 0 }, "other limits, the same bytes");
        drop(huge);
        assert_eq!(slots.bytes_left().large, 1);
        drop((small, large));
        assert_eq!(slots.bytes_left().large, 1000);
    }
}
