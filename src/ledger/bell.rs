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
use std::time::Duration;

use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio_postgres::types::Type;
use tokio_postgres::{AsyncMessage, Client};

use super::session::{NO_IDLE_LIMIT, Way, open, session_config, way};
use super::{Ledger, LedgerError};
use crate::core::target::Secret;

/// The advisory lock of the door; `outbox.enqueue_bytes` has the same number.
const DOOR: i64 = 7_813_402_954_201_167_431;

/// Where a bell is tested whose session is not known to be with the ledger's own server.
const TEST: &str = "outbox_bell_test";
/// How long the test may take. Longer than a busy server needs, and nothing is claimed meanwhile.
const HEARD_WITHIN: Duration = Duration::from_secs(8);

/// How long a session may take to be open and tested, and to answer. Nothing is claimed while its answer is awaited.
const OPENED_WITHIN: Duration = Duration::from_secs(20);
const ANSWERED_WITHIN: Duration = Duration::from_secs(3);
const MUTE: &str = "the listening session does not answer";

const TRY_DOOR: &str = include_str!("../../sql/try_door.sql");

const THROUGH_A_POOLER: &str = "`url` of [database] leads through a connection pooler, where neither LISTEN nor a lock \
    outlasts a transaction; add `direct_url` with the address of the server itself, or write `notify = false` in [dispatcher]";
const HEARS_NOTHING: &str = "what is notified at `url` of [database] is not heard at its `direct_url`: that must lead to \
    the same database, and to the server itself or through a pooler in session mode; or write `notify = false` in [dispatcher]";

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

/// Where the bell's session is opened.
#[derive(Clone, Debug)]
pub enum BellAt {
    /// `database.url`: the ledger's own.
    Url(Secret),
    /// `database.direct_url`.
    DirectUrl(Secret),
}

/// A direct session that listens. Never used for transactions: what it hears would wait for their end.
pub struct Bell {
    client: Client,
    rung: Arc<Notify>,
    tested: Arc<Notify>,
    way: Way,
    gone: Arc<AtomicBool>,
    keeps_door: bool,
    _wire: Wired,
}

/// What carries a session. Ends with it, also where an answer is still awaited.
struct Wired(JoinHandle<()>);

impl Drop for Wired {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Bell {
    /// Opens the session, and makes sure that it hears what is rung at the ledger: through a pooler that gives a session
    /// away after each transaction it would hear nothing, and its lock would be somebody else's.
    pub async fn open(at: &BellAt, ledger: &Ledger) -> Result<Self, LedgerError> {
        within(OPENED_WITHIN, Self::open_and_test(at, ledger)).await
    }

    async fn open_and_test(at: &BellAt, ledger: &Ledger) -> Result<Self, LedgerError> {
        match at {
            BellAt::Url(url) => {
                let bell = Self::connect(url).await?;
                match bell.way {
                    Way::Direct => Ok(bell),
                    Way::Pooled => Err(LedgerError::NoDirectSession(THROUGH_A_POOLER)),
                }
            }
            BellAt::DirectUrl(url) => {
                let bell = Self::connect(url).await?;
                match bell.hears(ledger).await? {
                    true => Ok(bell),
                    false => Err(LedgerError::NoDirectSession(HEARS_NOTHING)),
                }
            }
        }
    }

    /// Opens the session and listens, if it is with the server itself; otherwise that is left to the test.
    pub async fn connect(url: &Secret) -> Result<Self, LedgerError> {
        let (config, tls) = session_config(url)?;
        let (client, mut connection) = open(&config, &tls).await?;
        let (rung, gone) = (Arc::new(Notify::new()), Arc::new(AtomicBool::new(false)));
        let tested = Arc::new(Notify::new());
        let (rings, passes, is_gone) = (Arc::clone(&rung), Arc::clone(&tested), Arc::clone(&gone));
        let own = Arc::new(AtomicI32::new(0));
        let own_pid = Arc::clone(&own);
        let wire = Wired(tokio::spawn(async move {
            while let Some(Ok(message)) = poll_fn(|cx| connection.poll_message(cx)).await {
                if let AsyncMessage::Notification(note) = message {
                    if note.channel() == TEST {
                        passes.notify_one();
                    } else if note.process_id() != own_pid.load(Ordering::Acquire) {
                        rings.notify_one();
                    }
                }
            }
            is_gone.store(true, Ordering::Release);
            rings.notify_one();
        }));
        // What we ring when we leave the door is for the others.
        own.store(client.query_typed_one("select pg_backend_pid()", &[]).await?.try_get(0)?, Ordering::Release);
        let way = way(&client).await?;
        // It idles for as long as nothing is to be done.
        client.batch_execute(NO_IDLE_LIMIT).await?;
        client.batch_execute("listen outbox").await?;
        Ok(Self { client, rung, tested, way, gone, keeps_door: false, _wire: wire })
    }

    /// Whether this session hears what one of the ledger's says.
    async fn hears(&self, ledger: &Ledger) -> Result<bool, LedgerError> {
        self.client.batch_execute(&format!("listen {TEST}")).await?;
        let nonce = rand::random::<u64>().to_string();
        ledger.session().await?.query("select pg_notify($1, $2)", &[&TEST, &nonce]).await?;
        let heard = tokio::time::timeout(HEARD_WITHIN, self.tested.notified()).await.is_ok();
        self.client.batch_execute(&format!("unlisten {TEST}")).await?;
        Ok(heard)
    }

    /// Tries to keep the door.
    pub async fn approach(&mut self) -> Result<Door, LedgerError> {
        if self.keeps_door {
            return Ok(Door::Kept);
        }
        let question = async { Ok(self.client.query_typed_one(TRY_DOOR, &[(&DOOR, Type::INT8)]).await?) };
        let door = match within(ANSWERED_WITHIN, question).await?.try_get(0)? {
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
            let leave = "select pg_advisory_unlock($1), pg_notify('outbox', '')";
            within(ANSWERED_WITHIN, async { Ok(self.client.query_typed(leave, &[(&DOOR, Type::INT8)]).await?) })
                .await?;
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

async fn within<T>(time: Duration, answer: impl Future<Output = Result<T, LedgerError>>) -> Result<T, LedgerError> {
    tokio::time::timeout(time, answer).await.unwrap_or_else(|_| Err(LedgerError::Unreachable(MUTE.to_owned())))
}
