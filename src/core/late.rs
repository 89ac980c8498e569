//! Late testimony: what a worker learnt whose claim had been overtaken by then (R25). It cannot settle the row any
//! more, but a proof is a proof.
//!
//! | evidence | of | row | what becomes of it |
//! |---|---|---|---|
//! | Accepted | any send | open, nobody holds it | succeeded (held after a cancel by key) |
//! | Accepted | any send | dispatching | waits in `proof` |
//! | Accepted | any send | closed as not done | recorded as contradicted |
//! | NotSent, Deferred, Blocked | the one doubtful attempt | open | the doubt is cleared |
//! | any other that may have taken effect | a send the ledger does not know of | open | doubt, and the sent times widened |
//! | anything else | | | recorded |

use super::action::{AttemptId, State};
use super::evidence::Evidence;
use super::row::Doubt;

/// The row as it stands when the testimony is written, locked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LateRow {
    /// Where it stands.
    pub state: State,
    /// Its doubt.
    pub doubt: Option<Doubt>,
    /// A cancel by key has been sent, ever.
    pub cancel_sent: bool,
    /// The ledger has recorded this attempt, as lapsed or otherwise. False after a failover has lost its claim.
    pub attempt_known: bool,
}

/// What becomes of a late testimony. It is recorded in every case.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Testimony {
    /// Nothing else.
    Record,
    /// The row was closed as not done, and this says it was: somebody must look.
    Contradicts,
    /// Close the row as succeeded.
    Close,
    /// Wait in `proof` for whoever holds the row.
    Wait,
    /// Hold the row for a person.
    Hold,
    /// Clear the doubt; where nobody holds the row it becomes pending.
    ClearToPending,
    /// Clear the doubt; where nobody holds the row it becomes retryable.
    ClearToRetryable,
    /// Set doubt and widen the sent times: a send that the ledger did not know of may have taken effect.
    Doubt,
}

/// What becomes of what an overtaken send claim learnt.
pub fn testify(row: &LateRow, attempt: AttemptId, evidence: Evidence) -> Testimony {
    let only_doubt = row.doubt.is_some_and(|doubt| doubt.attempt == Some(attempt));
    match (row.state, speaks_of(evidence)) {
        (State::TerminalFailure, Speaks::Done) => Testimony::Contradicts,
        (State::Succeeded | State::TerminalFailure, _) => Testimony::Record,
        (State::Dispatching, Speaks::Done) => Testimony::Wait,
        (_, Speaks::Done) if row.cancel_sent => Testimony::Hold,
        (_, Speaks::Done) => Testimony::Close,
        (_, Speaks::NotSent) if only_doubt && !row.cancel_sent => Testimony::ClearToPending,
        (_, Speaks::NotDone) if only_doubt && !row.cancel_sent => Testimony::ClearToRetryable,
        (_, Speaks::Perhaps) if !row.attempt_known => Testimony::Doubt,
        (_, Speaks::NotSent | Speaks::NotDone | Speaks::Perhaps | Speaks::Nothing) => Testimony::Record,
    }
}

/// What an evidence says about the attempt it came from.
#[derive(Clone, Copy)]
enum Speaks {
    Done,
    NotSent,
    NotDone,
    Perhaps,
    Nothing,
}

fn speaks_of(evidence: Evidence) -> Speaks {
    match evidence {
        Evidence::Accepted => Speaks::Done,
        Evidence::NotSent | Evidence::Unsendable => Speaks::NotSent,
        Evidence::Deferred | Evidence::Blocked => Speaks::NotDone,
        Evidence::Rejected { .. } | Evidence::Mismatch | Evidence::KeyConflict | Evidence::InFlight => Speaks::Perhaps,
        Evidence::NoAnswer | Evidence::UnknownAnswer => Speaks::Perhaps,
        Evidence::Found | Evidence::Absent | Evidence::Neutralised | Evidence::Inconclusive => Speaks::Nothing,
        Evidence::Lapsed | Evidence::Stopped(_) | Evidence::Spent | Evidence::RungGone | Evidence::Proof => {
            Speaks::Nothing
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::time::Timestamp;
    use uuid::Uuid;

    const MINE: AttemptId = AttemptId(Uuid::from_u128(1));

    fn row(state: State, doubtful: Option<AttemptId>) -> LateRow {
        let doubt = Some(Doubt { since: Timestamp::from_micros(0), attempt: doubtful });
        LateRow { state, doubt, cancel_sent: false, attempt_known: true }
    }

    #[test]
    fn r25_late_success_closes_an_open_row_or_waits_for_its_holder() {
        for state in [State::Pending, State::RetryableFailure, State::OutcomeUnknown] {
            assert_eq!(testify(&row(state, None), MINE, Evidence::Accepted), Testimony::Close);
        }
        assert_eq!(testify(&row(State::Dispatching, None), MINE, Evidence::Accepted), Testimony::Wait);
        assert_eq!(testify(&row(State::Succeeded, None), MINE, Evidence::Accepted), Testimony::Record);
        assert_eq!(testify(&row(State::TerminalFailure, None), MINE, Evidence::Accepted), Testimony::Contradicts);
    }

    #[test]
    fn r25_after_a_cancel_by_key_late_success_is_for_a_person() {
        let row = LateRow { cancel_sent: true, ..row(State::OutcomeUnknown, Some(MINE)) };
        assert_eq!(testify(&row, MINE, Evidence::Accepted), Testimony::Hold);
        assert_eq!(testify(&row, MINE, Evidence::NotSent), Testimony::Record);
    }

    #[test]
    fn r14_only_the_one_doubtful_attempt_can_clear_its_doubt() {
        let other = AttemptId(Uuid::from_u128(2));
        for evidence in [Evidence::NotSent, Evidence::Deferred] {
            assert_eq!(testify(&row(State::OutcomeUnknown, Some(other)), MINE, evidence), Testimony::Record);
            assert_eq!(testify(&row(State::OutcomeUnknown, None), MINE, evidence), Testimony::Record);
        }
        let mine = row(State::OutcomeUnknown, Some(MINE));
        assert_eq!(testify(&mine, MINE, Evidence::NotSent), Testimony::ClearToPending);
        assert_eq!(testify(&mine, MINE, Evidence::Deferred), Testimony::ClearToRetryable);
        assert_eq!(testify(&mine, MINE, Evidence::Rejected { replayed: true }), Testimony::Record);
    }

    #[test]
    fn r25_a_send_that_the_ledger_lost_sets_doubt() {
        for evidence in [Evidence::NoAnswer, Evidence::Rejected { replayed: false }, Evidence::Mismatch] {
            let lost = LateRow { attempt_known: false, doubt: None, ..row(State::Pending, None) };
            assert_eq!(testify(&lost, MINE, evidence), Testimony::Doubt);
            assert_eq!(testify(&LateRow { attempt_known: true, ..lost }, MINE, evidence), Testimony::Record);
        }
    }
}
