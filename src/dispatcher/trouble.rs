//! When a destination's answers are trouble, and when they are well again: what is said once each way of 500, 503, 429 and
//! lost connections that come between good answers, where no pause begins. Nothing else hangs on it. Pure.
//!
//! It begins with the twentieth attempt of an interval that got nothing out of the destination, if that is a quarter of all.
//! It is over when a whole interval had attempts and nearly all of them were well.

use std::time::Duration;

use crate::clock::Uptime;

const BEGINS_WITH: u32 = 20;
const BEGINS_AT_ONE_OF: u32 = 4;
const ENDS_BELOW_ONE_OF: u32 = 10;

/// What one attempt got out of the destination.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Word {
    /// An answer that settles something.
    Well,
    /// None, or one that settles nothing.
    Trouble,
}

/// What has changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Change {
    /// Nothing.
    None,
    /// Trouble: so many of so many attempts within that time.
    Begun {
        /// Attempts that got nothing.
        troubled: u32,
        /// All.
        attempts: u32,
        /// Since the first of them.
        within: Duration,
    },
    /// It is over.
    Over {
        /// From its beginning to the last attempt that got nothing.
        lasted: Duration,
        /// So many got nothing.
        troubled: u64,
    },
}

/// A trouble that goes on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Going {
    since: Uptime,
    last: Uptime,
    troubled: u64,
}

/// How a destination's answers have been.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Trouble {
    going: Option<Going>,
    /// Of this interval.
    attempts: u32,
    troubled: u32,
    first: Option<Uptime>,
}

impl Trouble {
    /// One more attempt.
    pub fn learnt(&mut self, word: Word, now: Uptime) -> Change {
        self.attempts = self.attempts.saturating_add(1);
        match word {
            Word::Well => Change::None,
            Word::Trouble => {
                self.troubled = self.troubled.saturating_add(1);
                let first = *self.first.get_or_insert(now);
                if let Some(going) = &mut self.going {
                    (going.last, going.troubled) = (now, going.troubled + 1);
                    return Change::None;
                }
                let share = self.troubled.saturating_mul(BEGINS_AT_ONE_OF);
                if self.troubled < BEGINS_WITH || share < self.attempts {
                    return Change::None;
                }
                self.going = Some(Going { since: first, last: now, troubled: u64::from(self.troubled) });
                Change::Begun { troubled: self.troubled, attempts: self.attempts, within: now.since(first) }
            }
        }
    }

    /// An interval is over, and another one begins.
    pub fn round(&mut self) -> Change {
        let share = self.troubled.saturating_mul(ENDS_BELOW_ONE_OF);
        let well = self.attempts > 0 && share < self.attempts;
        (self.attempts, self.troubled, self.first) = (0, 0, None);
        match self.going.take_if(|_| well) {
            None => Change::None,
            Some(Going { since, last, troubled }) => Change::Over { lasted: last.since(since), troubled },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// So many words, a second apart; what they changed.
    fn hears(trouble: &mut Trouble, now: &mut Uptime, words: &[(Word, usize)]) -> Vec<Change> {
        let mut changes = Vec::new();
        for word in words.iter().flat_map(|(word, n)| std::iter::repeat_n(*word, *n)) {
            *now = now.plus(SECOND);
            changes.push(trouble.learnt(word, *now));
        }
        changes.retain(|change| *change != Change::None);
        changes
    }

    #[test]
    fn b83_trouble_is_said_once_and_so_is_its_end() {
        let (mut trouble, mut now) = (Trouble::default(), Uptime::now());
        let begun = hears(&mut trouble, &mut now, &[(Word::Well, 5), (Word::Trouble, 200)]);
        assert_eq!(begun, [Change::Begun { troubled: 20, attempts: 25, within: 19 * SECOND }]);
        assert_eq!(trouble.round(), Change::None, "it goes on");
        assert_eq!(trouble.round(), Change::None, "nothing was tried: nothing is known");
        assert_eq!(hears(&mut trouble, &mut now, &[(Word::Trouble, 10), (Word::Well, 30)]), []);
        assert_eq!(trouble.round(), Change::None, "not yet");
        assert_eq!(hears(&mut trouble, &mut now, &[(Word::Well, 1)]), []);
        assert_eq!(trouble.round(), Change::Over { lasted: 209 * SECOND, troubled: 210 });
        assert_eq!(trouble.round(), Change::None);
    }

    #[test]
    fn b83_a_few_in_an_interval_or_among_many_are_no_trouble() {
        let (mut trouble, mut now) = (Trouble::default(), Uptime::now());
        for _ in 0..10 {
            assert_eq!(hears(&mut trouble, &mut now, &[(Word::Trouble, 19)]), []);
            assert_eq!(trouble.round(), Change::None);
        }
        let among_many: Vec<_> = std::iter::repeat_n([(Word::Well, 4), (Word::Trouble, 1)], 100).flatten().collect();
        assert_eq!(hears(&mut trouble, &mut now, &among_many), []);
    }
}
