//! The one place that reads a clock.

use std::time::{Duration, Instant, SystemTime};

use rustix::time::{ClockId, clock_gettime};

/// A moment of this machine's uptime that goes on counting while it is suspended. Database time is paired with it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Uptime(Duration);

#[cfg(target_os = "linux")]
const UPTIME: ClockId = ClockId::Boottime;
// macOS has no CLOCK_BOOTTIME; its CLOCK_MONOTONIC counts through sleep.
#[cfg(not(target_os = "linux"))]
const UPTIME: ClockId = ClockId::Monotonic;

impl Uptime {
    /// Now.
    pub fn now() -> Self {
        let now = clock_gettime(UPTIME);
        Self(Duration::new(u64::try_from(now.tv_sec).unwrap_or(0), u32::try_from(now.tv_nsec).unwrap_or(0)))
    }

    /// Later by `by`.
    pub fn plus(self, by: Duration) -> Self {
        Self(self.0.saturating_add(by))
    }

    /// Earlier by `by`; at the earliest when the machine was started.
    pub fn minus(self, by: Duration) -> Self {
        Self(self.0.saturating_sub(by))
    }

    /// How long after `earlier`; zero when it is not after it.
    pub fn since(self, earlier: Self) -> Duration {
        self.0.saturating_sub(earlier.0)
    }

    /// How long until then; zero when it has passed.
    pub fn left(self) -> Duration {
        self.0.saturating_sub(Self::now().0)
    }

    /// Whether it has passed.
    pub fn is_over(self) -> bool {
        Self::now() >= self
    }
}

/// For measuring how long something took.
#[allow(clippy::disallowed_methods, reason = "this is the one place")]
pub fn stopwatch() -> Instant {
    Instant::now()
}

/// Wall-clock time, for what a person reads and for HTTP dates.
#[allow(clippy::disallowed_methods, reason = "this is the one place")]
pub fn wall() -> SystemTime {
    SystemTime::now()
}
