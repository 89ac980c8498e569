//! Serial queues: what the end of an action means for those that wait behind it.

use super::decide::{Next, Transition};
use super::reason::Reason;

/// What becomes of the queue that a row has the turn of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Queue {
    /// The row is not at its end: the others wait.
    Waits,
    /// The next one gets its turn.
    GoesOn,
    /// The row failed, and holds the queue until a person tries it again or lets the next go.
    IsHeld,
}

/// What a decision means for the queue. `hold_on_failure`: the owner wants a failure to be looked at before anything
/// else goes. What was cancelled is looked at already, and where there was nothing to compensate nothing failed.
pub fn queue_after(transition: &Transition, hold_on_failure: bool) -> Queue {
    match transition.next {
        Next::Succeeded => Queue::GoesOn,
        Next::TerminalFailure => match transition.reason {
            Some(Reason::Cancelled | Reason::NothingToCompensate) => Queue::GoesOn,
            Some(_) | None if hold_on_failure => Queue::IsHeld,
            Some(_) | None => Queue::GoesOn,
        },
        Next::Pending { .. } | Next::RetryableFailure { .. } | Next::Unknown { .. } | Next::Held => Queue::Waits,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::core::action::Step;
    use crate::core::decide::SentTimes;

    fn ended(next: Next, reason: Option<Reason>) -> Transition {
        let (receipt, doubt, sent) = (None, None, SentTimes::Keep);
        Transition { next, reason, receipt, attempts: 1, doubt, sent, override_back: false }
    }

    #[test]
    fn r27_only_an_end_moves_a_queue_on_and_only_a_failure_holds_it() {
        let delay = Duration::ZERO;
        for (next, reason, otherwise, held) in [
            (Next::Succeeded, None, Queue::GoesOn, Queue::GoesOn),
            (Next::TerminalFailure, Some(Reason::Rejected), Queue::GoesOn, Queue::IsHeld),
            (Next::TerminalFailure, None, Queue::GoesOn, Queue::IsHeld),
            (Next::TerminalFailure, Some(Reason::AuthorityRevoked), Queue::GoesOn, Queue::IsHeld),
            (Next::TerminalFailure, Some(Reason::Cancelled), Queue::GoesOn, Queue::GoesOn),
            (Next::TerminalFailure, Some(Reason::NothingToCompensate), Queue::GoesOn, Queue::GoesOn),
            (Next::Pending { delay }, Some(Reason::NotReached), Queue::Waits, Queue::Waits),
            (Next::RetryableFailure { delay }, Some(Reason::Throttled), Queue::Waits, Queue::Waits),
            (Next::Unknown { step: Step::Lookup, delay }, Some(Reason::Timeout), Queue::Waits, Queue::Waits),
            (Next::Held, Some(Reason::ReviewAfter), Queue::Waits, Queue::Waits),
        ] {
            let transition = ended(next, reason);
            assert_eq!(queue_after(&transition, false), otherwise, "{next:?} {reason:?}");
            assert_eq!(queue_after(&transition, true), held, "{next:?} {reason:?}");
        }
    }
}
