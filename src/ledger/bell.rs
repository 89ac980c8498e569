//! The doorbell: who sleeps is woken by an enqueue, and an enqueue that wakes nobody pays nothing.
//!
//! A dispatcher that is about to sleep tries to keep the door (an advisory lock). An enqueue tries the same lock
//! shared, and only where that fails it notifies. So while nobody keeps the door no transaction sends a NOTIFY.
//!
//! Whoever keeps the door keeps it for as long as there is nothing to do, also over looks of its own: dispatchers that
//! have nothing to do don't wake each other.

use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};

use tokio::sync::Notify;
use tokio_postgres::{AsyncMessage, Client};

use super::LedgerError;
use super::session::session_config;
use crate::core::target::Secret;

/// The advisory lock of the door; `outbox.enqueue_bytes` has the same number.
const DOOR: i64 = 7_813_402_954_201_167_431;

const TRY_DOOR: &str = include_str!("../../sql/try_door.sql");

/// Who keeps the door.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Door {
    /// We have kept it since before this approach: whatever has been committed since has rung.
    Kept,
    /// We do now: every enqueue rings from now on. Look once more, then sleep.
    Ours,
    /// Another dispatcher does: every enqueue rings for all. Look once more, then sleep.
    Theirs,
    /// An enqueue is in flight: look again in a moment.
    EnqueueInFlight,
}

/// A direct session that listens. Never used for transactions: what it hears would wait for their end.
pub struct Bell {
    client: Client,
    rung: Arc<Notify>,
    gone: Arc<AtomicBool>,
    keeps_door: bool,
}

impl Bell {
    /// Opens the session and listens.
    pub async fn connect(url: &Secret) -> Result<Self, LedgerError> {
        let (config, tls) = session_config(url)?;
        let (client, mut connection) = config.connect(tls).await?;
        let (rung, gone) = (Arc::new(Notify::new()), Arc::new(AtomicBool::new(false)));
        let (rings, is_gone) = (Arc::clone(&rung), Arc::clone(&gone));
        let own = Arc::new(AtomicI32::new(0));
        let own_pid = Arc::clone(&own);
        // Ends with the session: when the client is dropped or the server is gone.
        tokio::spawn(async move {
            while let Some(Ok(message)) = poll_fn(|cx| connection.poll_message(cx)).await {
                if let AsyncMessage::Notification(note) = message
                    && note.process_id() != own_pid.load(Ordering::Acquire)
                {
                    rings.notify_one();
                }
            }
            is_gone.store(true, Ordering::Release);
            rings.notify_one();
        });
        // What we ring when we leave the door is for the others.
        own.store(client.query_one("select pg_backend_pid()", &[]).await?.try_get(0)?, Ordering::Release);
        client.batch_execute("listen outbox").await?;
        Ok(Self { client, rung, gone, keeps_door: false })
    }

    /// Tries to keep the door.
    pub async fn approach(&mut self) -> Result<Door, LedgerError> {
        if self.keeps_door {
            return Ok(Door::Kept);
        }
        let door = match self.client.query_one(TRY_DOOR, &[&DOOR]).await?.try_get(0)? {
            "ours" => Door::Ours,
            "theirs" => Door::Theirs,
            "in_flight" => Door::EnqueueInFlight,
            _ => return Err(LedgerError::Unreadable { what: "sql/try_door.sql" }),
        };
        self.keeps_door = door == Door::Ours;
        Ok(door)
    }

    /// Leaves the door, and rings for those who slept under our cover: they look, and one of them keeps it next.
    pub async fn leave(&mut self) -> Result<(), LedgerError> {
        if self.keeps_door {
            self.keeps_door = false;
            self.client.query("select pg_advisory_unlock($1), pg_notify('outbox', '')", &[&DOOR]).await?;
        }
        Ok(())
    }

    /// Waits for a ring, or for the end of the session.
    pub async fn rung(&self) {
        self.rung.notified().await;
    }

    /// Whether the session has ended.
    pub fn is_gone(&self) -> bool {
        self.gone.load(Ordering::Acquire)
    }
}
