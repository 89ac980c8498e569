//! outboxd delivers what an application has committed to PostgreSQL, and tells the truth about what became of it.
//!
//! # The one idea
//!
//! A row is closed, due, or held for a person. Whoever claims a due row learns one fact; a pure function says what the
//! fact means; one fenced statement writes it down.
//!
//! Sending for the first time, retrying, resending under the same key, asking the destination, cancelling by key and
//! taking over from a worker that died are that one loop. There is no second path for recovery: an expired lease is a due
//! row whose fact is "lapsed", and an unknown outcome is a due row with another next step, or a row that is held.
//!
//! # The life of one action
//!
//! 1. An application calls `outbox.enqueue` (`sql/migrations/V3__enqueue.sql`) in a transaction of its own. Two rows
//!    commit with it: the intent, which never changes again, and where it stands.
//! 2. The loop in [`dispatcher`] works out which operation may take how much and claims in one statement for all of
//!    them (`sql/claim.sql`, [`ledger`]). A claim adds one to the row's fence, mints an attempt id, takes a lease in
//!    database time, and is durable before anything leaves. A send that lapsed becomes doubt in the same statement.
//! 3. [`core::next_step`] says what to do with the row: send it, ask whether it took effect, cancel it by its key, or
//!    conclude from what is known, where it must not be sent any more or a proof is already waiting. Each claim is carried
//!    out in a task of its own (`dispatcher::deliveries`); where an answer has closed the way since it was asked for, it is
//!    handed back.
//! 4. A [`destination`] builds the request from the operation's templates and the contract, counts every byte that leaves,
//!    and comes back with [`Evidence`](core::evidence::Evidence): never an error, since "no answer" is a fact too. The
//!    contract says what an answer means.
//! 5. [`core::decide`] turns row, evidence and terms into a [`Transition`](core::decide::Transition). Where the outcome
//!    is unknown, [`core::ladder`] picks the first thing that the contract makes possible now.
//! 6. The settler writes transitions down in batches (`sql/settle.sql`), each only if fence, attempt id and doubt are
//!    still those that were decided upon, with a line of history.
//! 7. What was overtaken meanwhile cannot settle any more. What it learnt is late testimony ([`core::late`]), and a late
//!    proof of success is still a proof.
//! 8. Only then is an event written ([`log::events`]).
//! 9. While the ledger cannot be written nothing is claimed, and what is learnt is kept, in a journal where there is one
//!    (`dispatcher::journal`); what a claim took that was never answered is given back (`sql/give_back.sql`).
//!
//! An action with an ordering key is claimed only when it has the turn of its queue. Turns are given by one function of the
//! schema (`sql/migrations/V8__lanes.sql`), which sees to what is marked on the rows: by an enqueue, by an end, by a
//! decision. A settle calls it in its own transaction, and every claim says whether it is to be called.
//!
//! # Who may know whom
//!
//! ```text
//! cli ──▶ config ─────────────────────┐
//!  │                                  ▼
//!  └────▶ dispatcher ─┬─▶ ledger ───▶ core
//!                     └─▶ destination ─▲
//! ```
//!
//! [`core`] knows nobody: no runtime, clock, randomness, log, SQL or network; the time and the dice are arguments.
//! [`ledger`] knows no HTTP and [`destination`] no SQL; they meet in [`dispatcher`] only. [`config`] parses a file into
//! types that cannot be wrong, so nobody checks them again. [`clock`] is the one place that reads a clock, [`log`] the one
//! that writes events, and [`failpoint`] is where a test lets a daemon die; no release has it. [`cli`] joins all of it, one
//! file per command, and those that ask or decide speak with the ledger themselves. [`proving`] may use all of it to show
//! that it works: a private PostgreSQL, a destination that misbehaves, the demo, the drill, the benchmark.
//! `tests/it/tidy.rs` reads the sources and holds this.
//!
//! The database enforces the same rules a second time, whoever writes to it: constraints of the same names, and triggers
//! that refuse every edge that is not drawn (`sql/migrations/V1__tables.sql`, `V2__guards.sql`).

pub mod cli;
pub mod clock;
pub mod config;
pub mod core;
pub mod destination;
pub mod dispatcher;
pub mod failpoint;
pub mod ledger;
pub mod log;
pub mod proving;
