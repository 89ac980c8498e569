//! Reading a story: one snapshot, a few statements by primary key.

use std::time::Duration;

use bytes::Bytes;
use tokio_postgres::Row as SqlRow;
use uuid::Uuid;

use super::{
    Committed, Content, Entry, EntryKind, HISTORY_MAX, Head, InQueue, Inventory, Linked, Note, Position, Revocation,
    Story, Told, Tombstone, Weight,
};
use crate::core::action::{ActionId, AttemptId, Intent, State, Step};
use crate::core::row::{Doubt, SentUnder};
use crate::core::time::Timestamp;
use crate::ledger::{Ledger, LedgerError, WAITING_MAX};

const ACTION: &str = include_str!("../../../sql/story_action.sql");
const CONTENT: &str = include_str!("../../../sql/story_content.sql");
const HISTORY: &str = include_str!("../../../sql/story_history.sql");
const LINKS: &str = include_str!("../../../sql/story_links.sql");
const REVOCATIONS: &str = include_str!("../../../sql/story_revocations.sql");
const QUEUE: &str = include_str!("../../../sql/story_queue.sql");
const TOMBSTONE: &str = include_str!("../../../sql/story_tombstone.sql");
const INTENT: &str = include_str!("../../../sql/story_intent.sql");

impl Ledger {
    /// Everything that is known of an action, of one snapshot.
    pub async fn story(&self, id: ActionId) -> Result<Told, LedgerError> {
        let mut session = self.session().await?;
        let snapshot = session.snapshot().await?;
        let Some(action) = snapshot.query_opt(ACTION, &[&id.0]).await? else {
            return Ok(match snapshot.query_opt(TOMBSTONE, &[&id.0]).await? {
                Some(row) => Told::Pruned(tombstone(id, &row)?),
                None => Told::Nothing,
            });
        };
        let content = match action.try_get("may_read")? {
            true => snapshot.query_opt(CONTENT, &[&id.0]).await?,
            false => None,
        };
        let most = i64::try_from(HISTORY_MAX).unwrap_or(i64::MAX);
        let compensates: Option<Uuid> = action.try_get("compensates")?;
        let history = snapshot.query(HISTORY, &[&id.0, &most]).await?;
        let revocations = snapshot.query(REVOCATIONS, &[&id.0]).await?;
        let links = snapshot.query(LINKS, &[&id.0, &compensates]).await?;
        let queue = snapshot.query_opt(QUEUE, &[&id.0, &WAITING_MAX]).await?;
        snapshot.commit().await?;
        let mut story = story(id, &action)?;
        story.committed.content = content.as_ref().map(self::content).transpose()?;
        story.queue = queue.as_ref().map(in_queue).transpose()?;
        story.history = history.iter().map(entry).collect::<Result<_, _>>()?;
        story.revocations = revocations.iter().map(revocation).collect::<Result<_, _>>()?;
        for row in &links {
            if row.try_get("compensates")? {
                story.compensates = Some(linked(row)?);
            } else {
                story.compensated_by.push(linked(row)?);
            }
        }
        Ok(Told::Whole(Box::new(story)))
    }

    /// What is sent for an action, whole; `None` where it is gone.
    pub async fn intent(&self, id: ActionId) -> Result<Option<Intent>, LedgerError> {
        let session = self.session().await?;
        let Some(row) = session.query_opt(INTENT, &[&id.0]).await? else { return Ok(None) };
        Ok(Some(Intent {
            id,
            tenant: row.try_get("tenant")?,
            operation: row.try_get("operation")?,
            traceparent: row.try_get("traceparent")?,
            params: row.try_get("params")?,
            headers: row.try_get("headers")?,
            content_type: row.try_get("content_type")?,
            body: row.try_get::<_, Option<Vec<u8>>>("body")?.map_or_else(Bytes::new, Bytes::from),
        }))
    }
}

fn story(id: ActionId, row: &SqlRow) -> Result<Story, LedgerError> {
    Ok(Story {
        now: row.try_get("now")?,
        committed: committed(id, row)?,
        standing: standing(row)?,
        cancellation: note(row, "cancel_requested_at", "cancel_requested_by", "cancel_reason")?,
        revocations: vec![],
        history: vec![],
        compensates: None,
        compensated_by: vec![],
        queue: None,
        inventory: if row.try_get("is_inventoried")? { Some(inventory(row)?) } else { None },
    })
}

fn inventory(row: &SqlRow) -> Result<Inventory, LedgerError> {
    let absence: Option<i64> = row.try_get("inventory_absence")?;
    Ok(Inventory {
        destination: row.try_get("inventory_destination")?,
        contract: row.try_get("inventory_contract")?,
        owner: row.try_get("inventory_owner")?,
        absence: absence.map(|micros| Duration::from_micros(u64::try_from(micros).unwrap_or(0))),
    })
}

fn content(row: &SqlRow) -> Result<Content, LedgerError> {
    let bytes: Option<i64> = row.try_get("body_bytes")?;
    let sha256: Option<String> = row.try_get("body_sha256")?;
    Ok(Content {
        params: row.try_get("params")?,
        header_names: row.try_get("header_names")?,
        body: bytes.zip(sha256).map(|(bytes, sha256)| Weight { bytes: u64::try_from(bytes).unwrap_or(0), sha256 }),
    })
}

fn committed(id: ActionId, row: &SqlRow) -> Result<Committed, LedgerError> {
    Ok(Committed {
        id,
        tenant: row.try_get("tenant")?,
        principal: row.try_get("principal")?,
        operation: row.try_get("operation")?,
        retry_key: row.try_get("retry_key")?,
        event_id: row.try_get("event_id")?,
        proposal_id: row.try_get("proposal_id")?,
        workflow_id: row.try_get("workflow_id")?,
        traceparent: row.try_get("traceparent")?,
        content_type: row.try_get("content_type")?,
        content: None,
        ordering_key: row.try_get("ordering_key")?,
        not_before: row.try_get("not_before")?,
        expires_at: row.try_get("expires_at")?,
        authority: row.try_get("authority")?,
        created_at: row.try_get("created_at")?,
    })
}

fn standing(row: &SqlRow) -> Result<Position, LedgerError> {
    let doubt_since: Option<Timestamp> = row.try_get("doubt_since")?;
    let doubt_attempt: Option<Uuid> = row.try_get("doubt_attempt")?;
    let unreadable = |what| LedgerError::Unreadable { what };
    Ok(Position {
        state: State::parse(row.try_get("state")?).ok_or_else(|| unreadable("outbox.delivery.state"))?,
        step: Step::parse(row.try_get("step")?).ok_or_else(|| unreadable("outbox.delivery.step"))?,
        label: row.try_get("label")?,
        sentence: row.try_get("sentence")?,
        took_effect: row.try_get("took_effect")?,
        due_at: row.try_get("due_at")?,
        fence: row.try_get("fence")?,
        attempt: row.try_get("attempt_id")?,
        attempts: u32::try_from(row.try_get::<_, i32>("attempts")?).unwrap_or(0),
        worker: row.try_get("worker")?,
        budget_from: row.try_get("budget_from")?,
        first_sent_at: row.try_get("first_sent_at")?,
        last_sent_at: row.try_get("last_sent_at")?,
        doubt: doubt_since.map(|since| Doubt { since, attempt: doubt_attempt.map(AttemptId) }),
        proof: row.try_get("proof")?,
        cancel_sent_at: row.try_get("cancel_sent_at")?,
        overridden: row.try_get("override")?,
        sent_under: SentUnder::from_digest(row.try_get("sent_digest")?),
        reason: row.try_get("reason")?,
        receipt: row.try_get("receipt")?,
        closed_at: row.try_get("closed_at")?,
    })
}

fn entry(row: &SqlRow) -> Result<Entry, LedgerError> {
    let kind: &str = row.try_get("kind")?;
    let status: Option<i32> = row.try_get("http_status")?;
    Ok(Entry {
        attempt: row.try_get("attempt_id")?,
        number: u32::try_from(row.try_get::<_, i32>("number")?).unwrap_or(0),
        kind: (EntryKind::ALL.into_iter().find(|(_, name)| *name == kind).map(|(kind, _)| kind))
            .ok_or(LedgerError::Unreadable { what: "outbox.attempt.kind" })?,
        fence: row.try_get("fence")?,
        worker: row.try_get("worker")?,
        idempotency_key: row.try_get("idempotency_key")?,
        started_at: row.try_get("started_at")?,
        deadline_at: row.try_get("deadline_at")?,
        finished_at: row.try_get("finished_at")?,
        evidence: row.try_get("evidence")?,
        verdict: row.try_get("verdict")?,
        status: status.and_then(|status| u16::try_from(status).ok()),
        receipt: row.try_get("receipt")?,
        detail: row.try_get("detail")?,
        decided_by: row.try_get("decided_by")?,
    })
}

fn in_queue(row: &SqlRow) -> Result<InQueue, LedgerError> {
    let head: Option<Uuid> = row.try_get("head")?;
    Ok(InQueue {
        has_turn: row.try_get("has_turn")?,
        holds: row.try_get("holds")?,
        head: match head {
            Some(id) => {
                Some(Head { id: ActionId(id), label: row.try_get("head_label")?, reason: row.try_get("head_reason")? })
            }
            None => None,
        },
        before: row.try_get("before")?,
        behind: row.try_get("behind")?,
    })
}

/// Somebody's note, where the time of it is there.
fn note(row: &SqlRow, at: &str, by: &str, reason: &str) -> Result<Option<Note>, LedgerError> {
    let Some(at) = row.try_get(at)? else { return Ok(None) };
    let (by, reason): (Option<String>, Option<String>) = (row.try_get(by)?, row.try_get(reason)?);
    Ok(Some(Note { at, by: by.unwrap_or_default(), reason: reason.unwrap_or_default() }))
}

fn revocation(row: &SqlRow) -> Result<Revocation, LedgerError> {
    Ok(Revocation {
        number: row.try_get("revocation")?,
        made: Note { at: row.try_get("revoked_at")?, by: row.try_get("revoked_by")?, reason: row.try_get("reason")? },
        lifted: note(row, "lifted_at", "lifted_by", "lifted_reason")?,
    })
}

fn linked(row: &SqlRow) -> Result<Linked, LedgerError> {
    Ok(Linked {
        id: ActionId(row.try_get("action_id")?),
        operation: row.try_get("operation")?,
        label: row.try_get("label")?,
        receipt: row.try_get("receipt")?,
        took_effect: row.try_get("took_effect")?,
    })
}

fn tombstone(id: ActionId, row: &SqlRow) -> Result<Tombstone, LedgerError> {
    Ok(Tombstone {
        now: row.try_get("now")?,
        id,
        tenant: row.try_get("tenant")?,
        principal: row.try_get("principal")?,
        operation: row.try_get("operation")?,
        retry_key: row.try_get("retry_key")?,
        state: row.try_get("state")?,
        receipt: row.try_get("receipt")?,
        created_at: row.try_get("created_at")?,
        closed_at: row.try_get("closed_at")?,
    })
}
