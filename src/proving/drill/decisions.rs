//! Whether the ledger keeps what a person has decided, and whether they could know it.

use super::promise::{Promise, Violation};
use super::records::{Attempt, Entry, What, World};
use crate::core::action::State;
use crate::core::reason::Reason;

/// Every decision that is not kept.
pub fn judge(world: &World) -> Vec<Violation> {
    let mut found = Vec::new();
    for entry in &world.entries {
        let broken = |what: &str| Violation::of(world, entry, Promise::Decision, what);
        found.extend(last(entry).and_then(|last| outcome(entry, last)).map(broken));
        found.extend(later(world, entry).map(broken));
        if world.office.is_some() && entry.is_held() {
            found.push(Violation::of(world, entry, Promise::Lost, "it is held, and nobody could decide about it"));
        }
    }
    found
}

/// The last decision about its outcome: who lets a queue go on says nothing of that.
fn last(entry: &Entry) -> Option<&Attempt> {
    entry.decisions().filter(|decision| decision.evidence != "release").last()
}

/// What the last decision says, and the ledger does not.
fn outcome(entry: &Entry, decision: &Attempt) -> Option<&'static str> {
    let claimed = entry.attempts.iter().any(|line| line.kind == "send" && line.fence > decision.fence);
    match decision.evidence.as_str() {
        "happened" if entry.state != State::Succeeded => Some("a person has said that it happened"),
        "happened" if claimed => Some("a person has said that it happened, and it was claimed again"),
        "did_not_happen" if entry.state != State::TerminalFailure => Some("a person has said that it did not happen"),
        "did_not_happen" if claimed => Some("a person has said that it did not happen, and it was claimed again"),
        "send_again" | "retry" if entry.is_closed() && !claimed && !needs_no_send(entry) => {
            Some("a person has wanted it sent again, and it was not")
        }
        _ => None,
    }
}

/// Whether it may be closed without a send after all: something has stopped it, or a late answer has come.
fn needs_no_send(entry: &Entry) -> bool {
    let stops = [Reason::Cancelled, Reason::Deadline, Reason::AuthorityRevoked, Reason::NothingToCompensate];
    entry.state == State::Succeeded || stops.iter().any(|stop| entry.reason.as_deref() == Some(stop.code()))
}

/// Something that was sent before it was said that nothing had happened, and came afterwards.
fn later(world: &World, entry: &Entry) -> Option<&'static str> {
    let mut said = entry.decisions().filter(|decision| decision.evidence == "did_not_happen");
    let came = said.any(|decision| {
        world.requests.iter().any(|request| {
            request.action == Some(entry.action)
                && request.what == What::Send
                && request.fence.is_some_and(|fence| fence <= decision.fence)
                && request.at > decision.finished_at
        })
    });
    came.then_some("a request arrived after a person had said that it did not happen")
}
