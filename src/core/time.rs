//! Database time as a value. Who reads a clock stands in [`crate::clock`].

use std::fmt;
use std::time::Duration;

/// A moment of the database's clock, in microseconds since the Unix epoch. Never compared with another clock's time.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(i64);

impl Timestamp {
    /// Earlier than every moment.
    pub const EARLIEST: Self = Self(i64::MIN);

    /// From microseconds since the Unix epoch.
    pub const fn from_micros(micros: i64) -> Self {
        Self(micros)
    }

    /// Microseconds since the Unix epoch.
    pub const fn micros(self) -> i64 {
        self.0
    }

    /// Later by `by`; stays at the last representable moment.
    pub fn plus(self, by: Duration) -> Self {
        Self(self.0.saturating_add(saturating_micros(by)))
    }

    /// Earlier by `by`; stays at the first representable moment.
    pub fn minus(self, by: Duration) -> Self {
        Self(self.0.saturating_sub(saturating_micros(by)))
    }

    /// How long after `earlier` this is; zero when it is not after it.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_micros(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }
}

impl fmt::Debug for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Timestamp({} us)", self.0)
    }
}

fn saturating_micros(d: Duration) -> i64 {
    i64::try_from(d.as_micros()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arithmetic_saturates_instead_of_wrapping() {
        let late = Timestamp::from_micros(i64::MAX - 1);
        assert_eq!(late.plus(Duration::MAX).micros(), i64::MAX);
        assert_eq!(Timestamp::from_micros(i64::MIN + 1).minus(Duration::MAX).micros(), i64::MIN);
        assert_eq!(Timestamp::from_micros(1).since(Timestamp::from_micros(5)), Duration::ZERO);
    }
}
