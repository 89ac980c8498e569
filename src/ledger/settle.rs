//! Writing decisions down.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use tokio_postgres::Row as SqlRow;
use uuid::Uuid;

use super::param::Param;
use super::queue::PROMOTE;
use super::statement::Session;
use super::values::micros;
use super::{Ledger, LedgerError};
use crate::core::action::{ActionId, AttemptId, Fence, State, Step};
use crate::core::decide::{Next, SentTimes, Transition};
use crate::core::queue::Queue;
use crate::core::row::{Doubt, Row, SentUnder};
use crate::core::time::Timestamp;
use crate::failpoint::{self, Point};

const SETTLE: &str = include_str!("../../sql/settle.sql");
const UNSETTLED: &str = include_str!("../../sql/unsettled.sql");

/// A decision about a row that this worker claimed.
#[derive(Clone, PartialEq, Debug)]
pub struct Settlement {
    /// Whose row.
    pub action: ActionId,
    /// The claim's fence.
    pub fence: Fence,
    /// The row as decided upon.
    pub row: Row,
    /// The decision.
    pub transition: Transition,
    /// What the history says of it; `None` where nothing was tried.
    pub history: Option<History>,
    /// The serial queue whose turn it has; `None` = it is in none.
    pub lane: Option<i64>,
    /// What becomes of that queue.
    pub queue: Queue,
}

impl Settlement {
    /// Whether another row may get its turn then.
    pub fn leaves_queue(&self) -> bool {
        self.lane.is_some() && self.queue == Queue::GoesOn
    }
}

/// One finished attempt, as the history has it.
#[derive(Clone, PartialEq, Debug)]
pub struct History {
    /// send, lookup or cancel.
    pub kind: Step,
    /// The key as it was sent.
    pub idempotency_key: Option<String>,
    /// Since the claim was asked for.
    pub started_ago: Duration,
    /// From the start to the deadline.
    pub deadline_in: Duration,
    /// [`crate::core::evidence::Evidence::as_str`]
    pub evidence: &'static str,
    /// HTTP status.
    pub status: Option<u16>,
    /// Bounded, clean.
    pub detail: Option<String>,
}

/// What became of a row that a settle did not write.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Standing {
    /// It had been written before; the answer to that COMMIT was lost.
    SettledBefore,
    /// Still ours, but doubt, proof or sent times changed meanwhile: decide again, upon this.
    Changed(Box<Row>),
    /// Somebody else's by now.
    Overtaken,
}

impl Ledger {
    /// Settles all of them, and returns the claims whose decision was written. A refusal of the whole batch is the caller's to take
    /// apart: one bad row must not hold up the others.
    ///
    /// Where a serial queue moves on, the next turn is given in the same transaction. Where that is refused the rows
    /// are settled all the same: they are marked, and a later [`Ledger::promote`] sees to them.
    pub async fn settle(&self, batch: &[Settlement]) -> Result<HashSet<AttemptId>, LedgerError> {
        let mut sorted: Vec<&Settlement> = batch.iter().collect();
        sorted.sort_unstable_by_key(|s| s.action);
        let mut session = self.session().await?;
        let columns = Columns::of(&sorted);
        let params = columns.params(&self.worker);
        failpoint::reach(Point::BeforeSettle);
        let settled = match batch.iter().any(Settlement::leaves_queue) {
            true => settle_and_promote(&mut session, &params).await?,
            false => None,
        };
        let rows = match settled {
            Some(rows) => rows,
            None => {
                let statement = session.prepare(SETTLE).await?;
                failpoint::unheard(Point::SettleUnheard, statement.query(&params)).await?
            }
        };
        failpoint::reach(Point::AfterSettle);
        rows.iter().map(|row| Ok(AttemptId(row.try_get(0)?))).collect()
    }

    /// What became of the decisions that a settle did not write, by claim. Those whose rows are gone are not in the answer.
    pub async fn standing(&self, missing: &[&Settlement]) -> Result<HashMap<AttemptId, Standing>, LedgerError> {
        let session = self.session().await?;
        let actions: Vec<Uuid> = missing.iter().map(|s| s.action.0).collect();
        let attempts: Vec<Uuid> = missing.iter().map(|s| s.row.attempt.0).collect();
        let rows = session.query(UNSETTLED, &[&actions, &attempts]).await?;
        let mut standing = HashMap::with_capacity(rows.len());
        for row in &rows {
            let claim = AttemptId(row.try_get("claim")?);
            let Some(ours) = missing.iter().find(|s| s.row.attempt == claim) else { continue };
            let held = row.try_get::<_, &str>("state")? == State::Dispatching.as_str()
                && row.try_get::<_, i64>("fence")? == ours.fence.0
                && row.try_get::<_, Option<Uuid>>("attempt_id")? == Some(ours.row.attempt.0);
            let doubt_since: Option<Timestamp> = row.try_get("doubt_since")?;
            let doubt_attempt: Option<Uuid> = row.try_get("doubt_attempt")?;
            standing.insert(
                claim,
                if row.try_get("settled_before")? {
                    Standing::SettledBefore
                } else if held {
                    let now = Row {
                        doubt: doubt_since.map(|since| Doubt { since, attempt: doubt_attempt.map(AttemptId) }),
                        proof: row.try_get("proof")?,
                        sent_under: SentUnder::from_digest(row.try_get("sent_digest")?),
                        ..ours.row.clone()
                    };
                    let first_sent_at: Option<Timestamp> = row.try_get("first_sent_at")?;
                    Standing::Changed(Box::new(match now.step {
                        // The row has what the claim itself wrote; earlier than that is a late widening.
                        Step::Send => Row {
                            first_sent_at: first_sent_at.filter(|first| *first < now.claimed_at).or(now.first_sent_at),
                            ..now
                        },
                        Step::Lookup | Step::Cancel | Step::Conclude | Step::Review => {
                            Row { first_sent_at, last_sent_at: row.try_get("last_sent_at")?, ..now }
                        }
                    }))
                } else {
                    Standing::Overtaken
                },
            );
        }
        Ok(standing)
    }
}

/// Both in one transaction; `None` where turns could not be given, and then nothing was settled either.
async fn settle_and_promote(session: &mut Session, params: &[&dyn Param]) -> Result<Option<Vec<SqlRow>>, LedgerError> {
    let transaction = session.transaction().await?;
    let rows = transaction.query(SETTLE, params).await?;
    match transaction.query(PROMOTE, &[]).await.map_err(LedgerError::from) {
        Ok(_) => {
            failpoint::unheard(Point::SettleUnheard, transaction.commit()).await?;
            Ok(Some(rows))
        }
        Err(error) if error.is_session() => Err(error),
        Err(_) => {
            transaction.rollback().await?;
            Ok(None)
        }
    }
}

/// The state, step and wait of a decision.
fn place(next: Next) -> (State, Step, Option<Duration>) {
    match next {
        Next::Succeeded => (State::Succeeded, Step::Conclude, None),
        Next::TerminalFailure => (State::TerminalFailure, Step::Conclude, None),
        Next::Pending { delay } => (State::Pending, Step::Send, Some(delay)),
        Next::RetryableFailure { delay } => (State::RetryableFailure, Step::Send, Some(delay)),
        Next::Unknown { step, delay } => (State::OutcomeUnknown, step, Some(delay)),
        Next::Held => (State::OutcomeUnknown, Step::Review, None),
    }
}

fn sent_times(sent: SentTimes) -> &'static str {
    match sent {
        SentTimes::Keep => "keep",
        SentTimes::Ended => "ended",
        SentTimes::GivenBack => "given_back",
        SentTimes::Cleared => "cleared",
    }
}

/// The statement's arrays, in its order.
#[derive(Default)]
struct Columns<'a> {
    action: Vec<Uuid>,
    fence: Vec<i64>,
    attempt: Vec<Uuid>,
    was_since: Vec<Option<Timestamp>>,
    was_attempt: Vec<Option<Uuid>>,
    was_proof: Vec<Option<&'a str>>,
    was_digest: Vec<Option<&'a [u8]>>,
    state: Vec<&'static str>,
    step: Vec<&'static str>,
    due_in: Vec<Option<i64>>,
    reason: Vec<Option<&'static str>>,
    receipt: Vec<Option<&'a str>>,
    attempts: Vec<i32>,
    doubt_since: Vec<Option<Timestamp>>,
    doubt_attempt: Vec<Option<Uuid>>,
    sent: Vec<&'static str>,
    first_before: Vec<Option<Timestamp>>,
    last_before: Vec<Option<Timestamp>>,
    override_back: Vec<bool>,
    kind: Vec<Option<&'static str>>,
    key: Vec<Option<&'a str>>,
    started_ago: Vec<Option<i64>>,
    deadline_in: Vec<Option<i64>>,
    evidence: Vec<Option<&'static str>>,
    status: Vec<Option<i32>>,
    detail: Vec<Option<&'a str>>,
    holds: Vec<bool>,
}

impl<'a> Columns<'a> {
    fn of(batch: &[&'a Settlement]) -> Self {
        let mut c = Self::default();
        for s in batch {
            let (state, step, delay) = place(s.transition.next);
            c.action.push(s.action.0);
            c.fence.push(s.fence.0);
            c.attempt.push(s.row.attempt.0);
            c.was_since.push(s.row.doubt.map(|d| d.since));
            c.was_attempt.push(s.row.doubt.and_then(|d| d.attempt).map(|a| a.0));
            c.was_proof.push(s.row.proof.as_deref());
            c.was_digest.push(s.row.sent_under.digest());
            c.state.push(state.as_str());
            c.step.push(step.as_str());
            c.due_in.push(delay.map(micros));
            c.reason.push(s.transition.reason.map(|r| r.code()));
            c.receipt.push(s.transition.receipt.as_deref());
            c.attempts.push(i32::try_from(s.transition.attempts).unwrap_or(i32::MAX));
            c.doubt_since.push(s.transition.doubt.map(|d| d.since));
            c.doubt_attempt.push(s.transition.doubt.and_then(|d| d.attempt).map(|a| a.0));
            c.sent.push(sent_times(s.transition.sent));
            c.first_before.push(s.row.first_sent_at);
            c.last_before.push(s.row.last_sent_at);
            c.override_back.push(s.transition.override_back);
            let history = s.history.as_ref();
            c.kind.push(history.map(|h| h.kind.as_str()));
            c.key.push(history.and_then(|h| h.idempotency_key.as_deref()));
            c.started_ago.push(history.map(|h| micros(h.started_ago)));
            c.deadline_in.push(history.map(|h| micros(h.deadline_in)));
            c.evidence.push(history.map(|h| h.evidence));
            c.status.push(history.and_then(|h| h.status).map(i32::from));
            c.detail.push(history.and_then(|h| h.detail.as_deref()));
            c.holds.push(s.queue == Queue::IsHeld);
        }
        c
    }

    fn params<'b>(&'b self, worker: &'b String) -> [&'b dyn Param; 28] {
        [
            &self.action,
            &self.fence,
            &self.attempt,
            &self.was_since,
            &self.was_attempt,
            &self.was_proof,
            &self.state,
            &self.step,
            &self.due_in,
            &self.reason,
            &self.receipt,
            &self.attempts,
            &self.doubt_since,
            &self.doubt_attempt,
            &self.sent,
            &self.first_before,
            &self.last_before,
            &self.override_back,
            &self.kind,
            &self.key,
            &self.started_ago,
            &self.deadline_in,
            &self.evidence,
            &self.status,
            &self.detail,
            worker,
            &self.was_digest,
            &self.holds,
        ]
    }
}
