//! What must hold in every world.

use super::contracts::Memory;
use super::steps::Setting;
use super::world::{Doing, Phase, World};
use crate::core::action::State;

/// Worlds that are not followed: a claim that a failover lost has sent, and its worker is gone, so that the ledger
/// cannot ever learn of it. The guarantees say so.
pub fn is_beyond(world: &World) -> bool {
    world.truth.ghost && !world.workers.iter().flatten().any(|worker| worker.lost)
}

/// The invariant that this world breaks.
pub fn broken(world: &World, setting: &Setting) -> Option<&'static str> {
    let (row, truth) = (&world.row, &world.truth);
    // Until a lost claim's worker has told, the ledger cannot know what it did.
    if truth.ghost {
        return None;
    }
    let memory = setting.promise.memory;
    let unheard = world.workers.iter().flatten().any(|worker| worker.lost);
    let live = world.is_live();
    let can_still = world.can_arrive(memory) || may_leave(world, setting);
    let waits = matches!(row.state, State::Pending | State::RetryableFailure);
    let spent = world.workers.iter().flatten().any(|worker| {
        worker.doing == Doing::Send && worker.cancel_sent && matches!(worker.phase, Phase::Fresh | Phase::Marked)
    });
    let succeeded = row.state == State::Succeeded;
    let failed = row.state == State::TerminalFailure;
    match () {
        () if spent || waits && row.cancel_sent => Some("to be sent under a key that a cancel has spent"),
        () if succeeded && !live && row.cancel_sent => Some("succeeded, yet a cancel has made it void"),
        () if succeeded && !live => Some("succeeded, yet it did not take effect"),
        () if failed && live => Some("terminal_failure, yet it took effect"),
        () if failed && can_still && !unheard => Some("terminal_failure, yet it can still take effect"),
        () if waits && live && !unheard => Some("pending or retryable, yet it took effect"),
        () if waits && can_still && !unheard => Some("pending or retryable, yet an earlier send can still take effect"),
        () if world.effects() > 1 && memory != Memory::Natural && !truth.chosen && !truth.collided => {
            Some("it took effect twice")
        }
        () if truth.told && !row.proof && !row.cancel_sent && !row.state.is_closed() => {
            Some("a worker has told of the success, yet the row is still open")
        }
        () => None,
    }
}

/// A worker whose claim is not the row's any more may still send.
fn may_leave(world: &World, setting: &Setting) -> bool {
    world.workers.iter().flatten().any(|worker| {
        let unmarked = setting.promise.terms(worker.pins).marks_sends() && worker.phase == Phase::Fresh;
        worker.doing == Doing::Send
            && !world.is_current(worker)
            && matches!(worker.phase, Phase::Fresh | Phase::Marked)
            && world.may_still_leave(worker, setting.mistake)
            && !unmarked
    })
}
