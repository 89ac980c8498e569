//! Writing late testimony down.

use std::time::Duration;

use uuid::Uuid;

use super::settle::History;
use super::values::micros;
use super::{Claimed, Ledger, LedgerError};
use crate::clock::Uptime;
use crate::core::action::{ActionId, AttemptId, Fence, State};
use crate::core::evidence::{Evidence, Finding};
use crate::core::late::{LateRow, Testimony, testify};
use crate::core::row::Doubt;
use crate::core::terms::Pins;
use crate::core::time::Timestamp;

const LOOK: &str = include_str!("../../sql/late_look.sql");
const WRITE: &str = include_str!("../../sql/late_write.sql");

/// What an overtaken send claim learnt.
#[derive(Clone, Copy, Debug)]
pub struct LateTestimony<'a> {
    /// Whose row.
    pub action: ActionId,
    /// The claim.
    pub attempt: AttemptId,
    /// The claim's fence.
    pub fence: Fence,
    /// Sends that counted, this one included.
    pub number: u32,
    /// What it learnt.
    pub evidence: Evidence,
    /// The destination's reference.
    pub receipt: Option<&'a str>,
    /// What it was sent under.
    pub pins: Pins,
    /// How the history has it.
    pub history: &'a History,
    /// It left at most so long ago, and at least so long ago.
    pub left: (Duration, Duration),
}

impl<'a> LateTestimony<'a> {
    /// Of a claim of this process.
    pub fn of(claimed: &Claimed, finding: &'a Finding, pins: Pins, history: &'a History) -> Self {
        let now = Uptime::now();
        Self {
            action: claimed.intent.id,
            attempt: claimed.row.attempt,
            fence: claimed.fence,
            number: claimed.row.attempts.saturating_add(1),
            evidence: finding.evidence,
            receipt: finding.receipt.as_deref(),
            pins,
            history,
            // Between the claim and the deadline, on this machine's uptime.
            left: (now.since(claimed.lease.asked_at), now.since(claimed.lease.deadline)),
        }
    }
}

impl Ledger {
    /// Reads the row under a lock, decides what the testimony means, writes that and the history, and returns it.
    /// `None` where the action is gone.
    pub async fn testify(&self, told: LateTestimony<'_>) -> Result<Option<Testimony>, LedgerError> {
        let mut session = self.session().await?;
        let transaction = session.transaction().await?;
        let (action, attempt) = (told.action.0, told.attempt);
        let Some(found) = transaction.query_opt(LOOK, &[&action, &attempt.0]).await? else { return Ok(None) };
        let doubt_since: Option<Timestamp> = found.try_get("doubt_since")?;
        let doubt_attempt: Option<Uuid> = found.try_get("doubt_attempt")?;
        let row = LateRow {
            state: State::parse(found.try_get("state")?)
                .ok_or(LedgerError::Unreadable { what: "outbox.delivery.state" })?,
            doubt: doubt_since.map(|since| Doubt { since, attempt: doubt_attempt.map(AttemptId) }),
            cancel_sent: found.try_get("cancel_sent")?,
            attempt_known: found.try_get("attempt_known")?,
        };
        let testimony = testify(&row, attempt, told.evidence);
        transaction
            .query(
                WRITE,
                &[
                    &action,
                    &attempt.0,
                    &meaning(testimony),
                    &told.receipt,
                    &told.pins.0.as_slice(),
                    &micros(told.left.0),
                    &micros(told.left.1),
                    &told.fence.0,
                    &self.worker,
                    &told.history.idempotency_key,
                    &micros(told.history.started_ago),
                    &told.history.evidence,
                    &told.history.status.map(i32::from),
                    &told.history.detail,
                    &i32::try_from(told.number).unwrap_or(i32::MAX),
                ],
            )
            .await?;
        transaction.commit().await?;
        Ok(Some(testimony))
    }
}

fn meaning(testimony: Testimony) -> &'static str {
    match testimony {
        Testimony::Record => "record",
        Testimony::Contradicts => "contradicts",
        Testimony::Close => "close",
        Testimony::Wait => "wait",
        Testimony::Hold => "hold",
        Testimony::ClearToPending => "clear_to_pending",
        Testimony::ClearToRetryable => "clear_to_retryable",
        Testimony::Doubt => "doubt",
    }
}
