//! What the ledger has written, read back when everything is over.

use tokio_postgres::{Client, Error};
use uuid::Uuid;

use crate::core::evidence::Evidence;

/// An action and where it ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Entry {
    /// The action.
    pub action: Uuid,
    /// Its retry key.
    pub retry_key: String,
    /// Where it stands.
    pub state: String,
    /// Why, as a code.
    pub reason: Option<String>,
    /// The destination's own reference.
    pub receipt: Option<String>,
    /// Its history, oldest first.
    pub attempts: Vec<Attempt>,
}

/// A line of the history.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Attempt {
    /// The attempt.
    pub attempt: Uuid,
    /// send, lookup, cancel, late or decision.
    pub kind: String,
    /// Its number.
    pub number: i32,
    /// What was learnt.
    pub evidence: String,
    /// Where that left the action.
    pub verdict: String,
    /// HTTP status, where an answer came.
    pub status: Option<i32>,
    /// HH:MM:SS.mmm, UTC.
    pub finished: String,
}

impl Entry {
    /// Its history in lines for people.
    pub fn told(&self) -> Vec<String> {
        let lines = self.attempts.iter().map(|a| {
            let status = a.status.map(|status| format!(" ({status})")).unwrap_or_default();
            format!("{} {} {}: {}{status}, then {}", a.finished, a.kind, a.number, a.evidence, a.verdict)
        });
        lines.chain([format!("now {} ({})", self.state, self.reason.as_deref().unwrap_or("no reason"))]).collect()
    }

    /// Whether nothing will be done about it any more.
    pub fn is_closed(&self) -> bool {
        self.state == "succeeded" || self.state == "terminal_failure"
    }
}

impl Attempt {
    /// Whether it may have taken effect for all that was known when it ended.
    pub fn leaves_doubt(&self) -> bool {
        let unknown = [Evidence::NoAnswer, Evidence::UnknownAnswer, Evidence::InFlight];
        unknown.iter().any(|evidence| evidence.as_str() == self.evidence)
    }
}

/// Every action of the ledger with its history, in the order of their commit.
pub async fn read(client: &Client) -> Result<Vec<Entry>, Error> {
    let rows = client
        .query(
            "select action_id, retry_key, state, reason, receipt from outbox.status order by created_at, action_id",
            &[],
        )
        .await?;
    let mut entries = Vec::with_capacity(rows.len());
    for row in rows {
        entries.push(Entry {
            action: row.try_get("action_id")?,
            retry_key: row.try_get("retry_key")?,
            state: row.try_get("state")?,
            reason: row.try_get("reason")?,
            receipt: row.try_get("receipt")?,
            attempts: Vec::new(),
        });
    }
    let places: std::collections::HashMap<Uuid, usize> =
        entries.iter().enumerate().map(|(place, entry)| (entry.action, place)).collect();
    let history = "
        select action_id, attempt_id, kind, number, evidence, verdict, http_status,
          to_char(finished_at at time zone 'UTC', 'HH24:MI:SS.MS') as finished
        from outbox.attempt order by action_id, finished_at, fence";
    for row in client.query(history, &[]).await? {
        let attempt = Attempt {
            attempt: row.try_get("attempt_id")?,
            kind: row.try_get("kind")?,
            number: row.try_get("number")?,
            evidence: row.try_get("evidence")?,
            verdict: row.try_get("verdict")?,
            status: row.try_get("http_status")?,
            finished: row.try_get("finished")?,
        };
        if let Some(place) = places.get(&row.try_get("action_id")?) {
            entries[*place].attempts.push(attempt);
        }
    }
    Ok(entries)
}
