//! Where the due rows of each stream begin, so that claims need not step over what is dead (B59).
//!
//! While somebody holds a snapshot open, the entries of rows that have been claimed stay in the index, and every claim from
//! its left edge steps over all of them. So where a backlog is seen, or a look at the edge takes long, claims begin at the
//! oldest row that the last one has met, and go back to the edge about once a second. What is due since before that row (it
//! was committed late) waits until then.

use std::time::Duration;

use crate::clock::Uptime;
use crate::core::time::Timestamp;

/// Between two looks at the edge.
const LOOKS: Duration = Duration::from_secs(1);
/// A look at the edge that takes longer has stepped over much.
const SLOW: Duration = Duration::from_millis(25);
/// Where nothing is in arrears, rows are looked at that are due since so long before the oldest: transactions take their
/// time to commit.
const GRACE: Duration = Duration::from_secs(5);

/// Of one stream.
#[derive(Clone, Copy, Debug)]
struct Begin {
    /// The oldest due row that the last claim met, where it met all tenants.
    oldest: Option<Timestamp>,
    looked: Uptime,
    slow: bool,
}

/// Of all streams.
#[derive(Debug)]
pub struct Edge {
    begins: Vec<Begin>,
    looks: Duration,
}

impl Edge {
    /// Nothing is known.
    pub fn new(streams: usize, poll_interval: Duration) -> Self {
        let begin = Begin { oldest: None, looked: Uptime::now(), slow: false };
        Self { begins: vec![begin; streams], looks: LOOKS.min(poll_interval) }
    }

    /// Where the next claim of a stream begins; `None` = at the edge. `hungry`: the last one left due rows behind.
    pub fn since(&self, stream: usize, hungry: bool) -> Option<Timestamp> {
        let begin = self.begins[stream];
        if begin.looked.plus(self.looks).is_over() {
            return None;
        }
        let grace = if hungry { Duration::ZERO } else { GRACE };
        begin.oldest.filter(|_| hungry || begin.slow).map(|oldest| oldest.minus(grace))
    }

    /// When a look at the edge is due of a stream that begins elsewhere, among those with `room`.
    pub fn next_look_in(&self, room: &[bool]) -> Duration {
        let with_room =
            self.begins.iter().zip(room).filter(|(begin, room)| **room && begin.slow && begin.oldest.is_some());
        with_room.map(|(begin, _)| begin.looked.plus(self.looks).left()).min().unwrap_or(Duration::MAX)
    }

    /// A claim has met this `oldest` row, where it began at `since`. `whole`: it met all tenants.
    pub fn met(
        &mut self,
        stream: usize,
        since: Option<Timestamp>,
        took: Duration,
        whole: bool,
        oldest: Option<Timestamp>,
    ) {
        let begin = &mut self.begins[stream];
        if since.is_none() {
            (begin.looked, begin.slow) = (Uptime::now(), took > SLOW);
        }
        begin.oldest = if whole { oldest.or(begin.oldest) } else { None };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FAST: Duration = Duration::from_millis(1);
    const LONG: Duration = Duration::from_secs(1);

    fn at(seconds: u64) -> Timestamp {
        Timestamp::from_micros(0).plus(Duration::from_secs(seconds))
    }

    #[test]
    fn b59_a_backlog_is_claimed_from_where_it_begins() {
        let mut edge = Edge::new(1, LONG);
        assert_eq!(edge.since(0, true), None, "nothing is known");
        edge.met(0, None, FAST, true, Some(at(100)));
        assert_eq!(edge.since(0, true), Some(at(100)));
        edge.met(0, Some(at(100)), FAST, true, Some(at(101)));
        assert_eq!(edge.since(0, true), Some(at(101)));
        assert_eq!(edge.since(0, false), None, "where nothing is in arrears and the edge is clean, all is looked at");
        edge.met(0, Some(at(101)), FAST, false, Some(at(102)));
        assert_eq!(edge.since(0, true), None, "an older row may be another tenant's");
    }

    #[test]
    fn b59_a_slow_edge_is_not_looked_at_for_a_second_and_late_commits_have_their_time() {
        let mut edge = Edge::new(1, LONG);
        edge.met(0, None, LONG, true, Some(at(100)));
        assert_eq!(edge.since(0, false), Some(at(95)));
        edge.met(0, Some(at(95)), FAST, true, None);
        assert_eq!(edge.since(0, false), Some(at(95)), "a claim that met nothing knows nothing new");
        assert!(edge.next_look_in(&[true]) <= LONG);
        assert_eq!(edge.next_look_in(&[false]), Duration::MAX, "nothing is claimed of it");
        edge.met(0, None, FAST, true, None);
        assert_eq!(
            (edge.since(0, false), edge.next_look_in(&[true])),
            (None, Duration::MAX),
            "the edge is clean again"
        );
    }

    #[test]
    fn b59_the_edge_is_looked_at_as_often_as_anything_is() {
        let mut edge = Edge::new(1, Duration::ZERO);
        edge.met(0, None, LONG, true, Some(at(100)));
        assert_eq!((edge.since(0, true), edge.next_look_in(&[true])), (None, Duration::ZERO));
    }
}
