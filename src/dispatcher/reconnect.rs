//! How long to wait before trying a lost database again: the one use of `backoff`, which is unmaintained
//! (RUSTSEC-2025-0012; it brings `instant`, RUSTSEC-2024-0384).

use std::time::Duration;

use backoff::ExponentialBackoff;
use backoff::backoff::Backoff as _;

use crate::clock::Uptime;

/// The longest wait: when the database is back, deliveries resume within seconds.
const LONGEST: Duration = Duration::from_secs(5);

/// One outage, from the first failure to the first success.
pub struct Outage {
    since: Uptime,
    tries: u32,
    waits: ExponentialBackoff,
}

impl Outage {
    /// It begins now.
    pub fn begin() -> Self {
        let waits = ExponentialBackoff {
            current_interval: Duration::from_millis(250),
            initial_interval: Duration::from_millis(250),
            randomization_factor: 0.5,
            multiplier: 2.0,
            max_interval: LONGEST,
            max_elapsed_time: None,
            ..ExponentialBackoff::default()
        };
        Self { since: Uptime::now(), tries: 0, waits }
    }

    /// The next wait, jittered.
    pub fn wait(&mut self) -> Duration {
        self.tries = self.tries.saturating_add(1);
        self.waits.next_backoff().unwrap_or(LONGEST).min(LONGEST)
    }

    /// How long it has lasted.
    pub fn lasted(&self) -> Duration {
        Uptime::now().since(self.since)
    }

    /// How often it was tried.
    pub fn tries(&self) -> u32 {
        self.tries
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn b44_waits_grow_and_stay_below_five_seconds() {
        let mut outage = Outage::begin();
        let waits: Vec<Duration> = (0..20).map(|_| outage.wait()).collect();
        assert!(waits[0] >= Duration::from_millis(125) && waits[0] <= Duration::from_millis(375));
        assert!(waits.iter().all(|w| *w <= LONGEST));
        assert!(waits[10..].iter().all(|w| *w >= LONGEST / 2));
    }
}
