//! How many lines about single actions a destination gets (B83): the first few of each kind, then one of a kind an interval,
//! until there were few again. The rest is counted. Pure.

/// What lines there are about single actions, those apart that are rare by nature.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Line {
    /// `outcome unknown`
    Unknown,
    /// `outcome resolved`
    Resolved,
    /// `action not delivered`
    NotDelivered,
    /// `action held for review`
    Held,
    /// `late testimony`
    Late,
    /// `receipt unread`
    Unread,
    /// `settle refused`
    Refused,
}

impl Line {
    /// Each of them.
    pub const ALL: [Self; 7] =
        [Self::Unknown, Self::Resolved, Self::NotDelivered, Self::Held, Self::Late, Self::Unread, Self::Refused];

    /// Its message.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Unknown => "outcome unknown",
            Self::Resolved => "outcome resolved",
            Self::NotDelivered => "action not delivered",
            Self::Held => "action held for review",
            Self::Late => "late testimony",
            Self::Unread => "receipt unread",
            Self::Refused => "settle refused",
        }
    }

    /// How many are written in full before any is only counted. An end, or a question to a person, is worth more than what
    /// goes on by itself.
    const fn first(self) -> u32 {
        match self {
            Self::Unknown | Self::Resolved | Self::Late | Self::Unread => 5,
            Self::NotDelivered | Self::Held | Self::Refused => 20,
        }
    }
}

/// In each interval that follows one in which some were only counted.
const AFTERWARDS: u32 = 1;

/// Of one kind of lines.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Allowance {
    left: u32,
    counted: u64,
}

/// Of one destination.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Restraint([Allowance; Line::ALL.len()]);

impl Restraint {
    /// Nothing has been said yet.
    pub fn new() -> Self {
        Self(Line::ALL.map(|line| Allowance { left: line.first(), counted: 0 }))
    }

    /// Whether one more is written in full; otherwise it is counted.
    pub fn allows(&mut self, line: Line) -> bool {
        let of = &mut self.0[line as usize];
        match of.left.checked_sub(1) {
            Some(left) => of.left = left,
            None => of.counted += 1,
        }
        of.counted == 0
    }

    /// How many of a kind were only counted since the last round.
    pub fn counted(&self, line: Line) -> u64 {
        self.0[line as usize].counted
    }

    /// The counts have been told, and an interval begins.
    pub fn round(&mut self) {
        for (of, line) in self.0.iter_mut().zip(Line::ALL) {
            let left = if of.counted == 0 { line.first() } else { AFTERWARDS };
            *of = Allowance { left, counted: 0 };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allowed(restraint: &mut Restraint, line: Line, n: usize) -> usize {
        (0..n).filter(|_| restraint.allows(line)).count()
    }

    #[test]
    fn b83_the_first_few_are_written_and_the_rest_is_counted() {
        let mut restraint = Restraint::new();
        for line in Line::ALL {
            let written = allowed(&mut restraint, line, 1000);
            assert!((1..=20).contains(&written), "{line:?}");
            assert_eq!(restraint.counted(line), 1000 - u64::try_from(written).expect("few"), "{line:?}");
        }
    }

    #[test]
    fn b83_a_storm_that_goes_on_shows_one_an_interval_until_there_are_few_again() {
        let mut restraint = Restraint::new();
        assert_eq!(allowed(&mut restraint, Line::Unknown, 100), 5);
        for _ in 0..3 {
            restraint.round();
            assert_eq!(allowed(&mut restraint, Line::Unknown, 100), 1);
            assert_eq!(restraint.counted(Line::Unknown), 99);
        }
        restraint.round();
        assert_eq!(allowed(&mut restraint, Line::Unknown, 1), 1);
        restraint.round();
        assert_eq!((restraint.counted(Line::Unknown), allowed(&mut restraint, Line::Unknown, 100)), (0, 5));
        assert_eq!(restraint.counted(Line::Held), 0, "each kind for itself");
    }

    #[test]
    fn each_line_has_its_own_count() {
        for (at, line) in Line::ALL.into_iter().enumerate() {
            assert_eq!(line as usize, at);
        }
    }
}
