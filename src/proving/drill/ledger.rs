//! What the ledger has written, read back when everything is over.

use std::collections::HashMap;

use tokio_postgres::{Client, Error};
use uuid::Uuid;

use super::kinds::Kind;
use super::records::{Attempt, Entry};
use crate::core::action::State;

const ENTRIES: &str = "
    select a.action_id, a.operation, a.retry_key, a.compensates, a.expires_at, a.created_at, d.state::text, d.step::text,
      d.due_at, d.reason, d.receipt, d.doubt_since is not null as doubt, d.cancel_sent_at is not null as cancel_sent,
      d.closed_at
    from outbox.action a join outbox.delivery d using (action_id) order by a.created_at, a.action_id";

const HISTORY: &str = "
    select action_id, attempt_id, kind, fence, worker, idempotency_key, evidence, verdict, http_status, started_at,
      finished_at
    from outbox.attempt order by action_id, finished_at, fence";

/// How many actions there are, are closed, are held, are in doubt, and are under way.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Standing {
    /// All.
    pub all: u64,
    /// Nothing will be done about them any more.
    pub closed: u64,
    /// A person must decide.
    pub held: u64,
    /// Their outcome is unknown.
    pub unknown: u64,
    /// Compensations whose original is open.
    pub waiting: u64,
    /// Others of their queue come first.
    pub queued: u64,
}

impl Standing {
    /// Asks the database.
    pub async fn read(client: &Client) -> Result<Self, Error> {
        let sql = "
            select count(*), count(*) filter (where d.closed_at is not null),
              count(*) filter (where d.closed_at is null and d.due_at is null and d.step = 'review'), count(*) filter (where d.doubt_since is not null),
              count(*) filter (where d.state = 'pending' and exists (
                select from outbox.delivery o where o.action_id = a.compensates and o.closed_at is null and o.due_at is null)),
              count(*) filter (where d.closed_at is null and d.lane is not null and not d.turn)
            from outbox.delivery d join outbox.action a using (action_id)";
        let row = client.query_one(sql, &[]).await?;
        let count = |place: usize| row.try_get::<_, i64>(place).map(|count| u64::try_from(count).unwrap_or(0));
        Ok(Self {
            all: count(0)?,
            closed: count(1)?,
            held: count(2)?,
            unknown: count(3)?,
            waiting: count(4)?,
            queued: count(5)?,
        })
    }

    /// Whether nothing happens any more until a person decides.
    pub fn rests(&self) -> bool {
        self.closed + self.held + self.waiting == self.all
    }
}

/// Every action with its history, in the order of their commit.
///
/// # Errors
/// Where the database refuses, or the ledger holds what no drill has put there.
pub async fn read(client: &Client) -> Result<Vec<Entry>, Error> {
    let mut entries = Vec::new();
    for row in client.query(ENTRIES, &[]).await? {
        let (operation, state): (String, String) = (row.try_get("operation")?, row.try_get("state")?);
        let retry_key: String = row.try_get("retry_key")?;
        let kind = operation.strip_prefix("drill.").and_then(Kind::parse);
        let state = State::ALL.into_iter().find(|known| known.as_str() == state);
        let order = retry_key.strip_prefix("order-").and_then(|number| number.parse().ok());
        let (Some(kind), Some(state), Some(order)) = (kind, state, order) else { continue };
        entries.push(Entry {
            action: row.try_get("action_id")?,
            kind,
            order,
            state,
            step: row.try_get("step")?,
            due_at: row.try_get("due_at")?,
            reason: row.try_get("reason")?,
            receipt: row.try_get("receipt")?,
            doubt: row.try_get("doubt")?,
            cancel_sent: row.try_get("cancel_sent")?,
            compensates: row.try_get("compensates")?,
            expires_at: row.try_get("expires_at")?,
            created_at: row.try_get("created_at")?,
            closed_at: row.try_get("closed_at")?,
            attempts: Vec::new(),
        });
    }
    let places: HashMap<Uuid, usize> = entries.iter().enumerate().map(|(place, entry)| (entry.action, place)).collect();
    for row in client.query(HISTORY, &[]).await? {
        let Some(place) = places.get(&row.try_get("action_id")?) else { continue };
        entries[*place].attempts.push(Attempt {
            attempt: row.try_get("attempt_id")?,
            kind: row.try_get("kind")?,
            fence: row.try_get("fence")?,
            worker: row.try_get("worker")?,
            key: row.try_get("idempotency_key")?,
            evidence: row.try_get("evidence")?,
            verdict: row.try_get("verdict")?,
            status: row.try_get("http_status")?,
            started_at: row.try_get("started_at")?,
            finished_at: row.try_get("finished_at")?,
        });
    }
    Ok(entries)
}
