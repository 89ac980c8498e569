//! The explorer: every interleaving of two workers, a network, a destination, operators and time, breadth first,
//! against the real [`next_step`](super::next_step::next_step), [`decide`](super::decide::decide),
//! [`untouched`](super::decide::untouched) and [`testify`](super::late::testify), for every kind of contract. A violated
//! invariant is told with a shortest path to it, one step a line. Mistakes that must be caught stand in `mistakes`.
//!
//! `OUTBOXD_EXPLORE=full` explores more trouble at once (gigabytes, and long without optimisation).
//!
//! What may happen: claims; the mark before a send; requests that arrive late, are lost, are answered in every way the
//! contract allows, or whose answer is lost; lookups with index lag; cancels by key; crashes; pauses past the lease;
//! lapses; settles and testimony whose COMMIT is not answered; claims handed back by a drain; claims lost by a failover,
//! whose fence is handed out again; other pins; cancellation, revocation and its lifting; each decision of an operator.
//!
//! What must hold (`invariants`, and checks along the way):
//! - succeeded: it took effect, and no cancel has made it void; terminal failure: it did not and cannot any more;
//!   pending and retryable: likewise
//! - it takes effect twice only where an operator chose so, or where a failover lost a claim and it met another send
//! - nothing is sent again in doubt under other pins, nor after a key conflict, but by an operator's choice
//! - what is closed stays closed; a success that has been told is not lost; no settle meets a CHECK of the table
//! - every open row can still be closed or held by work and time alone, and none is claimed for ever
//!
//! Assumptions
//! - One action. Of serial queues, compensations, spend, paused destinations, `min_gap`, `then`, Retry-After and the
//!   fair walk nothing is explored; the `unknown` answer is taken as no answer.
//! - Time is whole ticks, and ages stop growing where no rule tells them apart (`canonical`). Backoff and lookup
//!   intervals are one tick, as long as a request can be on its way; within one tick everything may interleave.
//! - A request arrives within a bound (`NETWORK`) or never, an effect is visible to lookups within another (`LAG`), and
//!   the contract's numbers are honest about both: `absence`, `window` and `margin` are exact, one tick less is a
//!   violation. A lookup or cancel is answered in the tick it leaves.
//! - Statements are atomic; deciding and settling are one step, since the settle compares what was decided upon and
//!   a difference decides again. A pause may come before it.
//! - `mirror` says in Rust what `sql/claim.sql`, `mark.sql`, `mark_cancel.sql`, `settle.sql`, `unsettled.sql`,
//!   `late_look.sql`, `late_write.sql`, `outbox.cancel`, `outbox.resolve` and `outbox.retry` say; `proving::mirrored`
//!   holds both against each other.
//! - Operators are right: one who is wrong excuses everything. `send_again` is a choice and may take effect twice.
//! - A failover loses claims, not settles. Until the lost claim's worker testifies the ledger cannot know of its send;
//!   nothing is asked of the row until then, and nothing ever if that worker dies.
//! - A natural repeat takes effect once, whatever arrives.

mod canonical;
pub mod contracts;
pub mod destination;
mod explore;
mod graph;
mod invariants;
pub mod mirror;
pub mod mistakes;
mod settling;
pub mod steps;
mod tests;
pub mod world;
