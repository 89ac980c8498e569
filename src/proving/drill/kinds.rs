//! The kinds of contract that a drill sends under: what each destination promises, as TOML, and what a referee may
//! therefore expect. Nothing is expected that the contract does not promise.

use std::time::Duration;

/// One attempt, from the claim to the end of the answer.
pub const TIMEOUT: Duration = Duration::from_millis(1500);
/// A lease is the timeout and this.
pub const LEASE_MARGIN: Duration = Duration::from_millis(500);
/// The network of a drill delivers nothing that is older than this: what waits longer in the dark is lost.
pub const NETWORK_KEEPS: Duration = Duration::from_secs(4);
/// What took effect is found by a lookup after this at the latest.
pub const FOUND_WITHIN: Duration = Duration::from_secs(1);
/// How long after the last send "not there" proves something: longer than the network keeps a request, a lookup misses
/// an effect, and a busy machine takes for both.
pub const ABSENCE: Duration = Duration::from_secs(9);
/// How long a destination with a short memory remembers a key.
pub const SHORT_WINDOW: Duration = Duration::from_secs(18);
/// Taken off it: longer than the network keeps a request.
pub const SHORT_MARGIN: Duration = Duration::from_secs(9);
/// How late a repeat may leave that no memory guards.
pub const RESEND_WITHIN: Duration = Duration::from_secs(12);
/// How long an outcome may stay unknown before a person is asked.
pub const REVIEW_AFTER: Duration = Duration::from_secs(30);

/// What the destination with a rate takes of each daemon: so many at once after a rest, and so many a second.
pub const fn rate() -> (u32, u32) {
    (2, 1)
}
/// What one tenant may have under way at once of an operation that bounds it, of each daemon.
pub const TENANT_MAX: u32 = 1;

/// A kind of contract; each is one operation `drill.NAME`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Kind {
    /// Remembers a key longer than any drill.
    Keyed,
    /// Remembers a key for a short time, and promises nothing else.
    KeyedShort,
    /// The same, and can be asked afterwards.
    KeyedThenLookup,
    /// Refuses a repeat in a recognisable way.
    Conflict,
    /// The address names the thing: a repeat is the same request.
    Natural,
    /// Knows no keys; can be asked by our reference, and "not there" is proof after a while.
    Lookup,
    /// The same, but "not there" never proves anything.
    LookupNever,
    /// Remembers a key for a short time; whatever it has under a key can be cancelled.
    Cancel,
    /// Keyed, and its account changes while the drill runs: repeats under another account prove nothing.
    Moving,
    /// Keyed, and compensates what a keyed action did.
    Refund,
    /// Passes everything on; who receives it sorts repeats out.
    Receiver,
    /// Knows no keys; doing it twice leaves what doing it once leaves.
    Idempotent,
    /// Changes nothing.
    ReadOnly,
    /// Promises nothing: sent once.
    Unreconcilable,
}

/// What a destination promises about a second effect.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Repeats {
    /// None, whatever happens.
    Never,
    /// Possible, and the reason why that is no fault.
    Possible(&'static str),
}

/// Whether an unknown outcome can be settled without a person.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Settles {
    /// The destination can be asked, or told to undo it.
    ByAsking,
    /// By a repeat, unless something stops it or the destination refuses repeats.
    ByRepeating,
    /// As long as something is remembered; later it is held.
    WhileRemembered,
    /// Only where what is found settles it, or a late answer.
    ByLuck,
}

impl Kind {
    /// Every kind.
    pub const ALL: [Self; 14] = [
        Self::Keyed,
        Self::KeyedShort,
        Self::KeyedThenLookup,
        Self::Conflict,
        Self::Natural,
        Self::Lookup,
        Self::LookupNever,
        Self::Cancel,
        Self::Moving,
        Self::Refund,
        Self::Receiver,
        Self::Idempotent,
        Self::ReadOnly,
        Self::Unreconcilable,
    ];

    /// Its name, in operations, paths and reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Keyed => "keyed",
            Self::KeyedShort => "keyed_short",
            Self::KeyedThenLookup => "keyed_then_lookup",
            Self::Conflict => "conflict",
            Self::Natural => "natural",
            Self::Lookup => "lookup",
            Self::LookupNever => "lookup_never",
            Self::Cancel => "cancel",
            Self::Moving => "moving",
            Self::Refund => "refund",
            Self::Receiver => "receiver",
            Self::Idempotent => "idempotent",
            Self::ReadOnly => "read_only",
            Self::Unreconcilable => "unreconcilable",
        }
    }

    /// The kind of that name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// `drill.NAME`.
    pub fn operation(self) -> String {
        format!("drill.{}", self.name())
    }

    /// Which of the drill's ways leads to its destination.
    pub fn way(self) -> usize {
        self as usize % super::WAYS
    }

    /// For how long the destination recognises a repeat; `None` = it takes no key.
    pub const fn memory(self) -> Option<Duration> {
        match self {
            Self::Keyed | Self::Conflict | Self::Natural | Self::Moving | Self::Refund => Some(Duration::MAX),
            Self::KeyedShort | Self::KeyedThenLookup | Self::Cancel => Some(SHORT_WINDOW),
            Self::Lookup | Self::LookupNever => None,
            Self::Receiver | Self::Idempotent | Self::ReadOnly | Self::Unreconcilable => None,
        }
    }

    /// What is promised about a second effect.
    pub const fn repeats(self) -> Repeats {
        match self {
            Self::Receiver => {
                Repeats::Possible("it passes repeats on; each carries the key, and who receives sorts it out")
            }
            Self::Idempotent => Repeats::Possible("doing it twice leaves what doing it once leaves"),
            Self::ReadOnly => Repeats::Possible("it changes nothing"),
            Self::Keyed | Self::KeyedShort | Self::KeyedThenLookup | Self::Conflict | Self::Natural => Repeats::Never,
            Self::Lookup | Self::LookupNever | Self::Cancel | Self::Moving | Self::Refund => Repeats::Never,
            Self::Unreconcilable => Repeats::Never,
        }
    }

    /// Whether an unknown outcome can be settled without a person.
    pub const fn settles(self) -> Settles {
        match self {
            Self::Lookup | Self::KeyedThenLookup | Self::Cancel => Settles::ByAsking,
            Self::Keyed | Self::Conflict | Self::Refund => Settles::ByRepeating,
            Self::KeyedShort | Self::Natural | Self::Receiver | Self::Idempotent | Self::ReadOnly => {
                Settles::WhileRemembered
            }
            Self::LookupNever | Self::Moving | Self::Unreconcilable => Settles::ByLuck,
        }
    }

    /// Whether its destination has a rate.
    pub const fn is_rated(self) -> bool {
        match self {
            Self::KeyedThenLookup | Self::Idempotent => true,
            Self::Keyed | Self::KeyedShort | Self::Conflict | Self::Natural | Self::Lookup | Self::LookupNever => false,
            Self::Cancel | Self::Moving | Self::Refund | Self::Receiver | Self::ReadOnly => false,
            Self::Unreconcilable => false,
        }
    }

    /// Whether it bounds what one tenant has at once.
    pub const fn is_bounded(self) -> bool {
        match self {
            Self::Conflict | Self::ReadOnly => true,
            Self::Keyed | Self::KeyedShort | Self::KeyedThenLookup | Self::Natural | Self::Lookup => false,
            Self::LookupNever | Self::Cancel | Self::Moving | Self::Refund | Self::Receiver => false,
            Self::Idempotent | Self::Unreconcilable => false,
        }
    }

    /// Whether a failure of it holds its serial queue until a person lets go.
    pub const fn holds(self) -> bool {
        match self {
            Self::Keyed | Self::Conflict | Self::Lookup | Self::Receiver | Self::Idempotent => true,
            Self::KeyedShort | Self::KeyedThenLookup | Self::Natural | Self::LookupNever | Self::Cancel => false,
            Self::Moving | Self::Refund | Self::ReadOnly | Self::Unreconcilable => false,
        }
    }

    /// What it promises, for people.
    pub const fn promise(self) -> &'static str {
        match self {
            Self::Keyed => "remembers keys; repeats give the first result",
            Self::KeyedShort => "remembers keys for 18 s, nothing else",
            Self::KeyedThenLookup => "remembers keys for 18 s; can be asked later",
            Self::Conflict => "remembers keys; repeats are refused recognisably",
            Self::Natural => "the address names the thing; repeats for 12 s",
            Self::Lookup => "no keys; can be asked by reference, absence is proof after 9 s",
            Self::LookupNever => "no keys; can be asked, absence is never proof",
            Self::Cancel => "remembers keys for 18 s; can cancel by key",
            Self::Moving => "remembers keys; our account there changes on the way",
            Self::Refund => "as keyed; undoes what a keyed action did",
            Self::Receiver => "passes repeats on; repeats for 12 s",
            Self::Idempotent => "no keys; twice is as once, repeats for 12 s",
            Self::ReadOnly => "changes nothing, repeats for 12 s",
            Self::Unreconcilable => "promises nothing",
        }
    }
}

/// Two versions of the configuration, between which daemons are reloaded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Version {
    /// The one that daemons start with.
    First,
    /// Other limits and waits, and another account at one destination.
    Second,
}

impl Version {
    /// For people.
    pub const fn name(self) -> &'static str {
        match self {
            Self::First => "first",
            Self::Second => "second",
        }
    }
}
