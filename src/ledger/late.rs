//! Writing late testimony down.

use uuid::Uuid;

use super::settle::History;
use super::values::micros;
use super::{Claimed, Ledger, LedgerError};
use crate::clock::Uptime;
use crate::core::action::{AttemptId, State};
use crate::core::evidence::Finding;
use crate::core::late::{LateRow, Testimony, testify};
use crate::core::row::Doubt;
use crate::core::terms::Pins;
use crate::core::time::Timestamp;

const LOOK: &str = include_str!("../../sql/late_look.sql");
const WRITE: &str = include_str!("../../sql/late_write.sql");

/// What an overtaken send claim learnt.
#[derive(Clone, Copy, Debug)]
pub struct LateTestimony<'a> {
    /// The claim.
    pub claimed: &'a Claimed,
    /// What it learnt.
    pub finding: &'a Finding,
    /// What it was sent under.
    pub pins: Pins,
    /// How the history has it.
    pub history: &'a History,
}

impl Ledger {
    /// Reads the row under a lock, decides what the testimony means, writes that and the history, and returns it.
    /// `None` where the action is gone.
    pub async fn testify(&self, told: LateTestimony<'_>) -> Result<Option<Testimony>, LedgerError> {
        let mut session = self.session().await?;
        let transaction = session.transaction().await?;
        let action = told.claimed.intent.id.0;
        let attempt = told.claimed.row.attempt;
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
        let testimony = testify(&row, attempt, told.finding.evidence);
        let lease = told.claimed.lease;
        transaction
            .query(
                WRITE,
                &[
                    &action,
                    &attempt.0,
                    &meaning(testimony),
                    &told.finding.receipt,
                    &told.pins.0.as_slice(),
                    // It left between the claim and the deadline, on this machine's uptime.
                    &micros(Uptime::now().since(lease.asked_at)),
                    &micros(Uptime::now().since(lease.deadline)),
                    &told.claimed.fence.0,
                    &self.worker,
                    &told.history.idempotency_key,
                    &micros(told.history.started_ago),
                    &told.history.evidence,
                    &told.history.status.map(i32::from),
                    &told.history.detail,
                    &i32::try_from(told.claimed.row.attempts.saturating_add(1)).unwrap_or(i32::MAX),
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
