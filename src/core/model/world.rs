//! The world that is explored: one action, two workers, a network, a destination with two accounts.
//!
//! Times are ages in ticks (0 = now, negative = still to come) and stop growing where no rule can tell them apart any
//! more, so the number of worlds is finite without a horizon.

use std::time::Duration;

use uuid::Uuid;

use super::destination::Account;
use crate::core::action::{AttemptId, State, Step, Stop};
use crate::core::evidence::Evidence;
use crate::core::row::{Doubt, Row, SentUnder};
use crate::core::terms::Pins;
use crate::core::time::Timestamp;

/// Ticks since a moment.
pub type Age = i8;
/// An attempt id, renamed in every world; 0 = null.
pub type Id = u8;

/// One attempt: until this age of its claim bytes may leave.
pub const TIMEOUT: Age = 1;
/// The timeout and the lease margin.
pub const LEASE: Age = 2;
/// The longest that a request is on its way.
pub const NETWORK: Age = 1;
/// The longest that an effect is invisible to a lookup.
pub const LAG: Age = 1;
/// The contract's `absence = after:`. Compared strictly, so this is exact in whole ticks.
pub const ABSENCE: Age = NETWORK + LAG - 1;
/// How long a short key is remembered.
pub const WINDOW: Age = 6;
/// Taken off the window. Exact in whole ticks as well: one less, and a resend can arrive when the key is forgotten.
pub const MARGIN: Age = NETWORK + 1;
/// How late a resend without a window may leave.
pub const RESEND_WITHIN: Age = 5;
/// When a person is asked.
pub const REVIEW_AFTER: Age = 6;
/// The elapsed budget.
pub const ELAPSED: Age = 7;
/// The budget of attempts.
pub const ATTEMPTS: u8 = 2;

const TICK_MICROS: i64 = 1_000_000;
const NOW: Timestamp = Timestamp::from_micros(1_000_000 * TICK_MICROS);

/// The digest under which nothing was sent, or more than one set of pins.
pub const NOTHING: u8 = 0;
/// See [`NOTHING`]; 1 and 2 are pins.
pub const MIXED: u8 = 9;

/// So many ticks.
pub const fn ticks(n: Age) -> Duration {
    Duration::from_secs(n.unsigned_abs() as u64)
}

/// A wait in whole ticks.
pub fn in_ticks(wait: Duration) -> Age {
    Age::try_from(wait.as_micros().div_ceil(TICK_MICROS.unsigned_abs().into())).unwrap_or(Age::MAX)
}

/// The moment that is now.
pub const fn now() -> Timestamp {
    NOW
}

/// The moment of that age.
pub fn ago(age: Age) -> Timestamp {
    Timestamp::from_micros(NOW.micros() - i64::from(age) * TICK_MICROS)
}

/// The age of a moment, at least `least` and at most one tick.
pub fn age_of(moment: Timestamp, least: Age) -> Age {
    let age = (NOW.micros() - moment.micros()) / TICK_MICROS;
    Age::try_from(age.clamp(least.into(), 1)).unwrap_or(1)
}

/// The core's name of an attempt.
pub fn attempt(id: Id) -> AttemptId {
    AttemptId(Uuid::from_u128(id.into()))
}

/// Pins number 1 or 2.
pub const fn pins(number: u8) -> Pins {
    Pins([number; 16])
}

/// `last_sent_at`. A late widening puts it one microsecond past a lease's end.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct LastSent {
    pub age: Age,
    pub past: bool,
}

impl LastSent {
    pub const fn at(age: Age) -> Self {
        Self { age, past: false }
    }

    /// SQL's `greatest`, which ignores nulls.
    pub fn or_later(this: Option<Self>, that: Self) -> Self {
        match this {
            Some(this) if this.is_after(that) => this,
            Some(_) | None => that,
        }
    }

    fn is_after(self, that: Self) -> bool {
        self.age < that.age || self.age == that.age && self.past && !that.past
    }

    /// SQL's `>=`.
    pub fn not_before(self, that: Self) -> bool {
        self == that || self.is_after(that)
    }
}

/// `doubt_since` and `doubt_attempt` (0 = several).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Doubtful {
    pub since: Age,
    pub attempt: Id,
}

impl Doubtful {
    pub fn core(self) -> Doubt {
        Doubt { since: ago(self.since), attempt: (self.attempt != 0).then(|| attempt(self.attempt)) }
    }

    pub fn of(doubt: Doubt) -> Self {
        let since = (NOW.micros() - doubt.since.micros()) / TICK_MICROS;
        let attempt = doubt.attempt.map_or(0, |a| Id::try_from(a.0.as_u128()).unwrap_or(0));
        Self { since: Age::try_from(since).unwrap_or(REVIEW_AFTER), attempt }
    }
}

/// `outbox.delivery`, as far as the rules read it. `fence` is not here: workers hold theirs relative to it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Delivery {
    pub state: State,
    pub step: Step,
    pub due: Option<Age>,
    pub attempt: Id,
    pub attempts: u8,
    pub budget_from: Age,
    pub first: Option<Age>,
    pub last: Option<LastSent>,
    pub doubt: Option<Doubtful>,
    pub proof: bool,
    pub cancel_sent: bool,
    pub send_again: bool,
    pub digest: u8,
    /// `reason` is one of the stops.
    pub stop_seen: bool,
}

/// What a claim does outside.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Doing {
    Nothing,
    Send,
    Lookup,
    Cancel,
}

/// How far it is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Phase {
    /// Nothing has left.
    Fresh,
    /// The mark, or `cancel_sent_at`, is durable.
    Marked,
    /// A request has left and is waited for.
    Waiting,
    /// This is known.
    Got(Evidence),
}

/// A claim as its worker remembers it: the row as it was, or as it was last read again.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Worker {
    pub attempt: Id,
    /// Relative to the row's: 0 = the same, 1 = ahead (a failover lost the claim), -1 = behind.
    pub fence: i8,
    /// Since the claim.
    pub age: Age,
    pub doing: Doing,
    pub phase: Phase,
    /// The configuration it runs under.
    pub pins: u8,
    /// The end of the key's memory.
    pub not_after: Option<Age>,
    pub step: Step,
    pub attempts: u8,
    pub first: Option<Age>,
    pub last: Option<LastSent>,
    /// From `last` to the claim; does not change with time.
    pub gap: Option<Age>,
    pub doubt: Option<Doubtful>,
    pub proof: bool,
    pub cancel_sent: bool,
    pub overridden: bool,
    pub digest: u8,
    pub stop: Option<Stop>,
    /// A failover lost the claim.
    pub lost: bool,
    /// Its attempt stands in the history.
    pub known: bool,
    /// What it knows has been written; the answer to that COMMIT was lost.
    pub settled: bool,
}

/// A request on its way.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Request {
    /// Ticks until it must have arrived or been lost.
    pub left: Age,
    pub account: u8,
    /// The worker that waits for its answer; [`NOBODY`] when none does.
    pub from: u8,
}

/// Nobody waits for the answer.
pub const NOBODY: u8 = 9;

/// How often what nobody promised may still happen.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Allowance {
    /// Crashes, pauses past the lease, lost answers of COMMITs.
    pub faults: u8,
    /// Claims that a failover loses.
    pub failovers: u8,
    pub pin_changes: u8,
    pub decisions: u8,
    /// Cancellations and revocations.
    pub stops: u8,
}

/// What really happened, which no rule can read; invariants do.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Truth {
    /// An operator chose `send_again`.
    pub chosen: bool,
    /// A claim that a failover lost has sent, and the ledger has not heard of it.
    pub ghost: bool,
    /// A ghost met another send: that it took effect twice is nobody's choice.
    pub collided: bool,
    /// A worker has told the ledger of the success.
    pub told: bool,
    /// The destination said that the key is another's.
    pub conflict: bool,
    /// The pins (bits) under which something was sent that may have taken effect.
    pub sent_under: u8,
}

/// Everything.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct World {
    pub row: Delivery,
    pub workers: [Option<Worker>; 2],
    pub wire: [Option<Request>; 2],
    pub accounts: [Account; 2],
    pub pins: u8,
    /// `outbox.cancellation` has a row.
    pub cancelled: bool,
    /// A revocation is in force.
    pub revoked: bool,
    pub allowed: Allowance,
    pub truth: Truth,
}

impl World {
    /// Just committed.
    pub fn new(allowed: Allowance) -> Self {
        let row = Delivery {
            state: State::Pending,
            step: Step::Send,
            due: Some(0),
            attempt: 0,
            attempts: 0,
            budget_from: 0,
            first: None,
            last: None,
            doubt: None,
            proof: false,
            cancel_sent: false,
            send_again: false,
            digest: NOTHING,
            stop_seen: false,
        };
        Self {
            row,
            workers: [None; 2],
            wire: [None; 2],
            accounts: [Account::new(); 2],
            pins: 1,
            cancelled: false,
            revoked: false,
            allowed,
            truth: Truth::default(),
        }
    }

    /// Whether that worker's claim is the row's.
    pub fn is_current(&self, worker: &Worker) -> bool {
        self.row.state == State::Dispatching && worker.fence == 0 && worker.attempt == self.row.attempt
    }

    /// The row as the core wants it for that claim.
    pub fn core_row(&self, worker: &Worker) -> Row {
        let claimed_at = ago(worker.age);
        Row {
            attempt: attempt(worker.attempt),
            claimed_at,
            step: worker.step,
            attempts: worker.attempts.into(),
            claims: 1,
            committed_at: ago(self.row.budget_from),
            budget_from: ago(self.row.budget_from),
            first_sent_at: worker.first.map(ago),
            last_sent_at: worker.gap.map(|gap| ago(worker.age + gap)),
            doubt: worker.doubt.map(Doubtful::core),
            proof: worker.proof.then(String::new),
            cancel_sent: worker.cancel_sent,
            overridden: worker.overridden,
            sent_under: match worker.digest {
                NOTHING => SentUnder::Nothing,
                MIXED => SentUnder::Mixed,
                number => SentUnder::These(pins(number)),
            },
            stop: worker.stop,
        }
    }

    /// An attempt id that nobody has.
    pub fn new_id(&self) -> Id {
        let doubts = self.workers.iter().flatten().filter_map(|w| w.doubt).chain(self.row.doubt).map(|d| d.attempt);
        let taken = self.workers.iter().flatten().map(|w| w.attempt).chain(doubts);
        taken.fold(self.row.attempt, Id::max) + 1
    }
}
