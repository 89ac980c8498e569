//! Where the claims have got to.

use std::time::Duration;

/// The first wait where all that is due is locked by somebody else, and the shortest sleep.
pub const SHORTEST_LOOK: Duration = Duration::from_millis(5);

/// What a claim found.
#[derive(Clone, Copy)]
pub struct Found {
    /// At least one row.
    pub some: bool,
    /// Some stream had as much due as it could take.
    pub hungry: bool,
    /// Some stream had slots left, and tenants that have not been looked at.
    pub partly: bool,
    /// Some stream could take nothing.
    pub full: bool,
    /// Nothing was found, and some stream with room had no share this time: the next claim is another one's turn.
    pub passed_over: bool,
    /// Some stream had more due than it could take, and some stream can still take something.
    pub others: bool,
}

/// Where the claims have got to. A claim looks at a part of the tenants; several make a round.
pub struct Walk {
    /// Of each stream, the tenant where its next claim starts.
    pub after: Vec<String>,
    /// Whether each stream had more due than it got.
    pub hungry: Vec<bool>,
    /// Whether the round has found anything.
    found: Vec<bool>,
    /// Which stream is served first.
    pub turn: usize,
    /// Claims without a find, one after the other.
    barren: usize,
    locked_wait: Duration,
}

impl Walk {
    /// Before the first claim.
    pub fn new(streams: usize) -> Self {
        Self {
            after: vec![String::new(); streams],
            hungry: vec![true; streams],
            found: vec![false; streams],
            turn: 0,
            barren: 0,
            locked_wait: SHORTEST_LOOK,
        }
    }

    /// A claim of a stream has got so many rows and as far as `next_after`. True where more may be due: a part of
    /// a round says nothing about the rest; a whole round without a find says that nothing is.
    pub fn went(&mut self, stream: usize, next_after: String, got: u32) -> bool {
        let began_round = self.after[stream].is_empty();
        self.found[stream] = got > 0 || (!began_round && self.found[stream]);
        self.after[stream] = next_after;
        if got > 0 {
            self.locked_wait = SHORTEST_LOOK;
        }
        !self.after[stream].is_empty() || (!began_round && self.found[stream])
    }

    /// A claim over all streams has found something or not. True where it is another stream's turn: `passed_over` = one
    /// with room had no share.
    pub fn passes_over(&mut self, some: bool, passed_over: bool) -> bool {
        self.barren = if some { 0 } else { self.barren + 1 };
        !some && passed_over && self.barren < self.after.len()
    }

    /// How long to wait where something is due and was not claimed: twice as long each time. Either all of it is locked, or
    /// it is that of a stream which had no share: so the next claims go round once more.
    pub fn locked_out(&mut self) -> Duration {
        self.barren = 0;
        let wait = self.locked_wait;
        self.locked_wait = wait.saturating_mul(2);
        wait
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_without_a_find_ends_the_walk() {
        let mut walk = Walk::new(1);
        assert!(walk.went(0, "t256\u{1}".into(), 0), "a part of a round says nothing about the rest");
        assert!(!walk.went(0, String::new(), 0), "nothing is due");
        assert!(walk.went(0, "t256\u{1}".into(), 1));
        assert!(walk.went(0, String::new(), 0), "what came before the first find has not been seen since");
        assert!(!walk.went(0, String::new(), 0));
        assert!(!walk.went(0, String::new(), 1), "a round in one part has seen them all");
    }

    #[test]
    fn what_is_due_in_a_stream_that_had_no_share_gets_a_round_of_its_own() {
        let mut walk = Walk::new(3);
        let round = |walk: &mut Walk| (0..10).take_while(|_| walk.passes_over(false, true)).count();
        assert_eq!((round(&mut walk), round(&mut walk)), (2, 0), "nothing is due, as far as they know");
        walk.locked_out();
        assert_eq!(round(&mut walk), 2);
    }

    #[test]
    fn a_locked_row_is_looked_at_less_and_less_often() {
        let mut walk = Walk::new(1);
        assert_eq!([walk.locked_out(), walk.locked_out(), walk.locked_out()].map(|wait| wait.as_millis()), [5, 10, 20]);
        walk.went(0, String::new(), 1);
        assert_eq!(walk.locked_out(), SHORTEST_LOOK);
    }
}
