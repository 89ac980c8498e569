//! What a decision needs from the world.

use std::time::Duration;

use super::retry::Dice;
use super::time::Timestamp;

/// When a decision is made.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Moment {
    /// Database time now, or a little later.
    pub now: Timestamp,
    /// How long the destination has been paused since the outcome became unknown, as far as this worker knows: that
    /// long `review_after` has stood still.
    pub paused: Duration,
    /// The destination is paused, as far as this worker knows: the pause paces what goes to it, not the row's own waits.
    pub probed: bool,
    /// For jitter.
    pub dice: Dice,
}
