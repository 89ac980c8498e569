//! When to try again: exponential, jittered, saturating (R28). The dice are an argument.

use std::time::Duration;

/// A number from `[0, 1)` that somebody else drew.
#[derive(Clone, Copy, PartialEq, PartialOrd, Debug)]
pub struct Dice(f64);

impl Dice {
    /// Clamps what is not in `[0, 1)` into it.
    pub fn new(thrown: f64) -> Self {
        Self(if thrown.is_finite() { thrown.clamp(0.0, 1.0 - f64::EPSILON) } else { 0.0 })
    }
}

/// Exponential backoff with equal jitter.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Backoff {
    /// Before the second attempt; greater than zero.
    pub initial: Duration,
    /// From one delay to the next; at least 1.
    pub multiplier: f64,
    /// The longest delay; at least `initial`.
    pub max: Duration,
}

// `multiplier` is checked at load to be a number, so equality is total.
impl Eq for Backoff {}

impl Backoff {
    /// The delay after `attempts` attempts, without jitter: `initial * multiplier^(attempts - 1)`, at most `max`.
    pub fn ceiling(&self, attempts: u32) -> Duration {
        let exponent = i32::try_from(attempts.saturating_sub(1)).unwrap_or(i32::MAX);
        let seconds = self.initial.as_secs_f64() * self.multiplier.powi(exponent);
        if seconds.is_finite() && seconds < self.max.as_secs_f64() {
            Duration::try_from_secs_f64(seconds).unwrap_or(self.max)
        } else {
            self.max
        }
    }

    /// The delay after `attempts` attempts: evenly from `[ceiling / 2, ceiling]`.
    pub fn delay(&self, attempts: u32, dice: Dice) -> Duration {
        let ceiling = self.ceiling(attempts);
        ceiling / 2 + (ceiling / 2).mul_f64(dice.0)
    }
}

/// The wait a destination asked for: never shorter than asked or than our own delay, never longer than `longest`;
/// then up to a tenth more, so that those who were told the same moment don't all return at it.
pub fn asked_delay(asked: Duration, own: Duration, longest: Duration, dice: Dice) -> Duration {
    let wait = asked.min(longest).max(own);
    wait.saturating_add(wait.min(Duration::from_secs(300)).mul_f64(dice.0 / 10.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const FIVE: Backoff = Backoff { initial: Duration::from_millis(500), multiplier: 2.0, max: Duration::from_secs(5) };

    #[test]
    fn r28_delays_double_from_the_initial_one_to_the_cap() {
        let ms: Vec<_> = (1..=6).map(|n| FIVE.ceiling(n).as_millis()).collect();
        assert_eq!(ms, [500, 1000, 2000, 4000, 5000, 5000]);
    }

    #[test]
    fn b66_backoff_saturates_at_any_attempt_count() {
        for attempts in [31, 32, 63, 64, 1000, 32767, u32::MAX] {
            for thrown in [0.0, 0.5, 0.999_999] {
                let delay = FIVE.delay(attempts, Dice::new(thrown));
                assert!(delay >= FIVE.max / 2 && delay <= FIVE.max, "{attempts}: {delay:?}");
            }
        }
    }

    proptest! {
        #[test]
        fn r28_jitter_stays_between_half_and_whole(
            initial_ms in 1u64..100_000, multiplier in 1.0f64..1e6, over in 0u64..10_000_000,
            attempts in any::<u32>(), thrown in any::<f64>(),
        ) {
            let backoff = Backoff {
                initial: Duration::from_millis(initial_ms), multiplier, max: Duration::from_millis(initial_ms + over),
            };
            let (ceiling, delay) = (backoff.ceiling(attempts), backoff.delay(attempts, Dice::new(thrown)));
            prop_assert!(ceiling >= backoff.initial.min(backoff.max) && ceiling <= backoff.max);
            prop_assert!(delay >= ceiling / 2 && delay <= ceiling);
        }

        #[test]
        fn b12_an_asked_wait_is_never_cut_short(asked in 0u64..u64::MAX / 2, own in 0u64..100_000, thrown in 0.0f64..1.0) {
            let longest = Duration::from_secs(3600);
            let (asked, own) = (Duration::from_secs(asked), Duration::from_millis(own));
            let wait = asked_delay(asked, own, longest, Dice::new(thrown));
            prop_assert!(wait >= asked.min(longest) && wait >= own);
            prop_assert!(wait <= asked.min(longest).max(own) + Duration::from_secs(30));
        }
    }
}
