//! The statements of the ledger, in the model's terms. Each function names the statement it mirrors; keep them alike.

use super::contracts::Promise;
use super::mistakes::Mistake;
use super::world::{
    ABSENCE, Age, Delivery, Doing, Doubtful, LEASE, LastSent, MIXED, NOTHING, Phase, TIMEOUT, Worker, World, age_of,
    attempt, in_ticks,
};
use crate::core::action::{State, Step, Stop};
use crate::core::decide::{Next, SentTimes, Transition};
use crate::core::evidence::Evidence;
use crate::core::late::{LateRow, Testimony};
use crate::core::next_step::Plan;
use crate::core::reason::Reason;

/// `sql/claim.sql`, and `next_step` after it. `lost` = a failover loses the claim; its worker does not know.
pub fn claim(world: &mut World, at: usize, lost: bool, promise: &Promise, mistake: Mistake) {
    let row = world.row;
    let terms = promise.terms(world.pins);
    let id = world.new_id();
    let stop = match () {
        () if world.cancelled => Some(Stop::Cancelled),
        () if world.revoked || row.stop_seen => Some(Stop::AuthorityRevoked),
        () => None,
    };
    let due = LastSent::at(row.due.unwrap_or(0));
    let covered = row.last.is_some_and(|last| last.not_before(due)) || mistake.lapses_by_step(row.step);
    let lapsed = !row.proof && row.state == State::Dispatching && row.step == Step::Send && covered;
    let stopped = matches!(row.step, Step::Send | Step::Conclude) && stop.is_some() && !row.send_again;
    let now = if row.proof || lapsed || stopped { Step::Conclude } else { row.step };
    let sends = now == Step::Send;
    let mut next = Delivery { state: State::Dispatching, step: now, attempt: id, due: Some(-LEASE), ..row };
    if lapsed {
        next.attempts = (row.attempts + 1).min(super::world::ATTEMPTS);
        next.doubt = Some(match row.doubt {
            None => Doubtful { since: 0, attempt: row.attempt },
            Some(doubt) if doubt.attempt == row.attempt => doubt,
            Some(doubt) => Doubtful { attempt: 0, ..doubt },
        });
    }
    if sends && row.doubt.is_none() {
        next.digest = world.pins;
    } else if sends && row.send_again && row.digest != world.pins {
        next.digest = MIXED;
    }
    if sends && !terms.marks_sends() {
        next.first = row.first.or(Some(0));
        let end = if mistake == Mistake::ClaimTimeAsLastSent { 0 } else { -LEASE };
        next.last = Some(LastSent::or_later(row.last, LastSent::at(end)));
    }
    next.send_again = row.send_again && !sends;

    let mut worker = Worker {
        attempt: id,
        fence: i8::from(lost),
        age: 0,
        doing: Doing::Nothing,
        phase: Phase::Fresh,
        pins: world.pins,
        not_after: None,
        step: now,
        attempts: next.attempts,
        first: row.first,
        last: row.last,
        gap: row.last.map(|last| last.age.min(ABSENCE + 1)),
        doubt: next.doubt,
        proof: row.proof,
        cancel_sent: row.cancel_sent,
        overridden: row.send_again && sends,
        digest: next.digest,
        stop,
        lost,
        known: false,
        settled: false,
    };
    match mistake.next_step(&world.core_row(&worker), terms) {
        Plan::Send { not_after } => {
            worker.doing = Doing::Send;
            worker.not_after = not_after.map(|end| age_of(end, -LEASE));
        }
        Plan::Lookup => worker.doing = Doing::Lookup,
        Plan::Cancel => worker.doing = Doing::Cancel,
        Plan::Conclude(finding) => worker.phase = Phase::Got(finding.evidence),
    }
    if !lost {
        for other in world.workers.iter_mut().flatten() {
            other.fence = (other.fence - 1).max(-1);
            other.known |= lapsed && other.attempt == row.attempt;
        }
        world.row = next;
    }
    world.workers[at] = Some(worker);
}

/// `sql/mark.sql`: the send is marked, where the claim is still the row's.
pub fn mark(world: &mut World, at: usize) {
    let row = &mut world.row;
    let Some(due) = row.due.filter(|due| *due < 0) else { return };
    row.first = row.first.or(Some(0));
    row.last = Some(LastSent::or_later(row.last, LastSent::at(due)));
    if let Some(worker) = &mut world.workers[at] {
        worker.phase = Phase::Marked;
    }
}

/// `sql/mark_cancel.sql`: the cancel is recorded before it leaves, where the claim is still the row's.
pub fn record_cancel(world: &mut World, at: usize) {
    if world.row.due.is_none_or(|due| due >= 0) {
        return;
    }
    world.row.cancel_sent = true;
    if let Some(worker) = &mut world.workers[at] {
        worker.cancel_sent = true;
        worker.phase = Phase::Marked;
    }
}

/// What a settle found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Settled {
    Written,
    /// As `sql/unsettled.sql` reads it: still ours, but changed.
    Changed,
    /// Somebody else's by now, or settled before.
    Overtaken,
}

/// `sql/settle.sql`: the decision under the fence.
pub fn settle(world: &mut World, worker: &Worker, told: &Transition, mistake: Mistake) -> Settled {
    let row = world.row;
    let same_fence = worker.fence == 0 || mistake == Mistake::NoFenceOnSettle;
    let same_attempt = worker.attempt == row.attempt || mistake.reads_stale_claims();
    let ours = same_fence && same_attempt;
    if !ours || row.state != State::Dispatching {
        return Settled::Overtaken;
    }
    let digest = row.digest == worker.digest || mistake == Mistake::DigestNotReadAgain;
    let unchanged = row.doubt == worker.doubt && row.proof == worker.proof && digest;
    let undated = row.step == Step::Send || row.last == worker.last || mistake == Mistake::LookupWrittenOverWidening;
    if !(unchanged && undated || mistake == Mistake::DoubtNotComparedOnSettle || mistake.reads_stale_claims()) {
        return Settled::Changed;
    }
    let (state, step, due) = match told.next {
        Next::Succeeded => (State::Succeeded, Step::Conclude, None),
        Next::TerminalFailure => (State::TerminalFailure, Step::Conclude, None),
        Next::Pending { delay } => (State::Pending, Step::Send, Some(-in_ticks(delay))),
        Next::RetryableFailure { delay } => (State::RetryableFailure, Step::Send, Some(-in_ticks(delay))),
        Next::Unknown { step, delay } => (State::OutcomeUnknown, step, Some(-in_ticks(delay))),
        Next::Held => (State::OutcomeUnknown, Step::Review, None),
    };
    let own_end = row.due.map(LastSent::at);
    let unwidened = row.last == own_end || mistake == Mistake::WideningGivenBack;
    let (first, last) = match told.sent {
        SentTimes::Cleared => (None, None),
        SentTimes::GivenBack if unwidened => (worker.first, worker.last),
        SentTimes::Ended if row.last == own_end => {
            let ended = row.last.map(|last| LastSent::at(last.age.max(0).min(row.first.unwrap_or(Age::MAX))));
            (row.first, ended)
        }
        SentTimes::GivenBack | SentTimes::Ended | SentTimes::Keep => (row.first, row.last),
    };
    let undigested = told.sent == SentTimes::Cleared || told.sent == SentTimes::GivenBack && told.doubt.is_none();
    world.row = Delivery {
        state,
        step,
        due,
        attempt: 0,
        attempts: u8::try_from(told.attempts).unwrap_or(u8::MAX).min(super::world::ATTEMPTS),
        doubt: told.doubt.map(Doubtful::of),
        proof: row.proof && !state.is_closed() && step != Step::Review,
        send_again: told.override_back,
        first,
        last,
        digest: if undigested { NOTHING } else { row.digest },
        stop_seen: is_stop(told.reason),
        ..row
    };
    Settled::Written
}

/// `sql/unsettled.sql`: the claim's memory, as the row stands now.
pub fn read_again(world: &World, worker: &mut Worker, mistake: Mistake) {
    worker.doubt = world.row.doubt;
    worker.proof = world.row.proof;
    if mistake != Mistake::DigestNotReadAgain {
        worker.digest = world.row.digest;
    }
    if worker.step == Step::Send {
        worker.first = world.row.first.filter(|first| *first > worker.age).or(worker.first);
    } else {
        worker.first = world.row.first;
        worker.last = world.row.last;
        worker.gap = world.row.last.map(|last| (last.age - worker.age).min(ABSENCE + 1));
    }
}

/// `sql/late_look.sql`, `testify` and `sql/late_write.sql`.
pub fn testify(world: &mut World, worker: &Worker, evidence: Evidence, mistake: Mistake) -> Testimony {
    let row = world.row;
    let look = LateRow {
        state: row.state,
        doubt: row.doubt.map(Doubtful::core),
        cancel_sent: row.cancel_sent,
        attempt_known: worker.known,
    };
    let meaning = mistake.testify(&look, attempt(worker.attempt), evidence);
    let held = row.state == State::Dispatching;
    let next = &mut world.row;
    let free = |state, step, due| if held { (row.state, row.step, row.due) } else { (state, step, due) };
    (next.state, next.step, next.due) = match meaning {
        Testimony::Record | Testimony::Contradicts | Testimony::Wait => (row.state, row.step, row.due),
        Testimony::Close => free(State::Succeeded, row.step, None),
        Testimony::Hold => free(State::OutcomeUnknown, Step::Review, None),
        Testimony::ClearToPending => free(State::Pending, Step::Send, Some(0)),
        Testimony::ClearToRetryable => free(State::RetryableFailure, Step::Send, Some(0)),
        Testimony::Doubt => free(State::OutcomeUnknown, Step::Conclude, Some(0)),
    };
    match meaning {
        Testimony::Record | Testimony::Contradicts => {}
        Testimony::Wait => next.proof = true,
        Testimony::Close => {
            next.doubt = None;
            next.proof = false;
            next.send_again = false;
            next.stop_seen = false;
        }
        Testimony::Hold => {
            next.doubt = row.doubt.or(Some(Doubtful { since: 0, attempt: 0 }));
            next.stop_seen = false;
        }
        Testimony::ClearToPending | Testimony::ClearToRetryable => {
            next.doubt = None;
            if !held {
                (next.first, next.last, next.digest) = (None, None, NOTHING);
            }
        }
        Testimony::Doubt => {
            next.doubt = Some(match row.doubt {
                None => Doubtful { since: 0, attempt: worker.attempt },
                Some(doubt) => Doubtful { attempt: 0, ..doubt },
            });
            if mistake != Mistake::LateWideningForgotten {
                widen(next, worker, held);
            }
            next.digest = if row.digest == NOTHING || row.digest == worker.pins { worker.pins } else { MIXED };
        }
    }
    meaning
}

fn widen(row: &mut Delivery, worker: &Worker, held: bool) {
    row.first = Some(row.first.map_or(worker.age, |first| first.max(worker.age)));
    let sent_to = LastSent::at((worker.age - TIMEOUT).max(0));
    let mut last = LastSent::or_later(row.last, sent_to);
    if held && row.step == Step::Send {
        last = LastSent::or_later(Some(last), LastSent::at(row.due.unwrap_or(0)));
        // Two widenings in one lease put it further past; nothing tells one microsecond from two.
        last.past = true;
    }
    row.last = Some(last);
}

/// `outbox.cancel`.
pub fn request_cancel(world: &mut World) {
    world.cancelled = true;
    if matches!(world.row.state, State::Pending | State::RetryableFailure) {
        world.row.step = Step::Conclude;
        world.row.due = world.row.due.map(|due| due.max(0));
    }
}

/// An operator's decisions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Decision {
    Happened,
    DidNotHappen,
    DidNotHappenRetry,
    SendAgain,
    Retry,
}

/// `outbox.resolve` and `outbox.retry`. False = refused (OB412).
pub fn resolve(world: &mut World, decision: Decision, promise: &Promise) -> bool {
    let row = world.row;
    let unknown = row.state == State::OutcomeUnknown;
    let absence = promise.terms(world.pins).contract.absence().map_or(0, in_ticks);
    let may_arrive = row.last.is_some_and(|last| last.age <= absence);
    let undone = unknown && !row.proof && !may_arrive;
    let stopped = world.cancelled || world.revoked;
    let closed = |state| Delivery {
        state,
        step: Step::Conclude,
        due: None,
        doubt: None,
        proof: false,
        send_again: false,
        stop_seen: false,
        ..row
    };
    let again = Delivery { state: State::Pending, due: Some(0), ..World::new(world.allowed).row };
    world.row = match decision {
        Decision::Happened if unknown => closed(State::Succeeded),
        Decision::DidNotHappen if undone => closed(State::TerminalFailure),
        // Two decisions in one transaction.
        Decision::DidNotHappenRetry if undone && !row.cancel_sent && !stopped => again,
        Decision::SendAgain if unknown && !row.proof && !row.cancel_sent => {
            Delivery { send_again: true, step: Step::Send, due: Some(0), stop_seen: false, ..row }
        }
        Decision::Retry if row.state == State::TerminalFailure && !row.cancel_sent && !stopped => again,
        Decision::Happened | Decision::DidNotHappen | Decision::DidNotHappenRetry => return false,
        Decision::SendAgain | Decision::Retry => return false,
    };
    true
}

/// The named CHECKs of `outbox.delivery` that a wrong settle could meet: the one that the row breaks.
pub fn broken_check(row: &Delivery) -> Option<&'static str> {
    let closed = row.state.is_closed();
    let waiting = matches!(row.state, State::Pending | State::RetryableFailure);
    match row {
        _ if row.state == State::OutcomeUnknown && row.doubt.is_none() => Some("unknown_has_doubt"),
        _ if row.doubt.is_some() && (closed || waiting) => Some("doubt_only_while_open"),
        _ if !closed && row.due.is_none() && row.step != Step::Review => Some("open_is_due_or_held_or_parked"),
        _ if row.step == Step::Review && !closed && (row.state != State::OutcomeUnknown || row.due.is_some()) => {
            Some("held_is_unknown_and_never_due")
        }
        _ if row.proof && closed => Some("closed_waits_for_nothing"),
        _ if row.send_again && closed => Some("closed_waits_for_nothing"),
        _ if row.first.is_some() != row.last.is_some() => Some("sent_times_in_order"),
        _ if row.first.zip(row.last).is_some_and(|(first, last)| first < last.age) => Some("sent_times_in_order"),
        _ if waiting && (row.first.is_some() || row.digest != NOTHING) => Some("waiting_is_unsent"),
        _ => None,
    }
}

fn is_stop(reason: Option<Reason>) -> bool {
    matches!(reason, Some(Reason::Cancelled | Reason::Deadline | Reason::AuthorityRevoked))
}
