//! A destination that misbehaves on command: a real server on loopback that keeps book of what it really did.
//!
//! [`Fake`] is the handle. A [`Behaviour`] says what becomes of a request, a [`Reception`] what becomes of a
//! connection.

mod behaviour;
mod record;
mod reply;
mod retry_after;
mod serve;
mod wire;

use std::fmt;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;

pub use behaviour::{Answer, Behaviour, Effect, Ending, Gate, Wait};
pub use record::{EffectRecord, Seen};
pub use reply::{RECEIPT, Reply};
pub use retry_after::RetryAfter;
pub use serve::Reception;

use record::{Outcome, Record};

/// How long [`Fake::wait_seen`] and its like wait.
const PATIENCE: Duration = Duration::from_secs(15);

type Behave = dyn Fn(&Seen, usize) -> Behaviour + Send + Sync;
type Receive = dyn Fn(usize) -> Reception + Send + Sync;
type KeyOf = dyn Fn(&Seen) -> Option<String> + Send + Sync;

/// What has happened so far, in numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Connections accepted.
    pub connections: usize,
    /// Requests that arrived whole; those whose effect is not a late one have had it.
    pub requests: usize,
    /// Requests that did not arrive whole.
    pub torn: usize,
    /// Effects, duplicates included.
    pub effects: usize,
    /// Repeats recognised by their key.
    pub replays: usize,
    /// Effects beyond the first of the same action (of the same key where the request names no action).
    pub duplicates: usize,
}

/// Something did not happen in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the destination waited {within:?} in vain; until then: {tally:?}")]
pub struct WaitedInVain {
    /// How long it waited.
    pub within: Duration,
    /// What it had seen by then.
    pub tally: Tally,
}

/// The misbehaving destination. Dropping it closes everything it has open.
#[derive(Debug)]
pub struct Fake {
    addr: SocketAddr,
    shared: Arc<Shared>,
    running: Mutex<Option<Running>>,
}

#[derive(Debug)]
struct Running {
    stop: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

impl Fake {
    /// Starts one on a free port of 127.0.0.1, in the current runtime. It behaves well until told otherwise.
    ///
    /// # Errors
    /// If no port can be had.
    pub async fn start() -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let fake = Self { addr: listener.local_addr()?, shared: Arc::new(Shared::new()), running: Mutex::new(None) };
        fake.run(listener);
        Ok(fake)
    }

    fn run(&self, listener: TcpListener) {
        let (stop, stopping) = oneshot::channel();
        let task = tokio::spawn(serve::accept(listener, Arc::clone(&self.shared), stopping));
        *locked(&self.running) = Some(Running { stop, task });
    }

    /// Where it listens.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// `http://127.0.0.1:PORT`
    pub fn base_url(&self) -> String {
        format!("http://{}", self.addr)
    }

    /// From now on each request is treated as `f` says. It is given the request and how many with the same key were
    /// received before it (0 where there is no key).
    pub fn behave(&self, f: impl Fn(&Seen, usize) -> Behaviour + Send + Sync + 'static) {
        self.shared.settings().behave = Arc::new(f);
    }

    /// From now on each connection, numbered from 1, is received as `f` says.
    pub fn receive(&self, f: impl Fn(usize) -> Reception + Send + Sync + 'static) {
        self.shared.settings().receive = Arc::new(f);
    }

    /// From now on a request's key is what `f` finds in it (by default the header `Idempotency-Key`).
    pub fn keyed_by(&self, f: impl Fn(&Seen) -> Option<String> + Send + Sync + 'static) {
        self.shared.settings().key_of = Some(Arc::new(f));
    }

    /// Whether requests are kept for [`Self::seen`] (yes by default). Effects and counts always are.
    pub fn record_requests(&self, record: bool) {
        self.shared.settings().record = record;
    }

    /// Every request that arrived whole, in order.
    pub fn seen(&self) -> Vec<Seen> {
        locked(&self.shared.record).seen.clone()
    }

    /// Every effect, in the order of their first happening.
    pub fn effects(&self) -> Vec<EffectRecord> {
        locked(&self.shared.record).effects.clone()
    }

    /// Effects beyond the first of the same action: what must be 0.
    pub fn duplicates(&self) -> usize {
        self.tally().duplicates
    }

    /// Connections accepted so far.
    pub fn connections(&self) -> usize {
        self.tally().connections
    }

    /// The numbers.
    pub fn tally(&self) -> Tally {
        *self.shared.tally.borrow()
    }

    /// Waits until `n` requests have arrived and had their effects (but late ones); they need not be answered yet.
    ///
    /// # Errors
    /// If that takes more than 15 seconds.
    pub async fn wait_seen(&self, n: usize) -> Result<(), WaitedInVain> {
        self.wait_until(PATIENCE, |tally| tally.requests >= n).await
    }

    /// Waits until there were `n` effects.
    ///
    /// # Errors
    /// If that takes more than 15 seconds.
    pub async fn wait_effects(&self, n: usize) -> Result<(), WaitedInVain> {
        self.wait_until(PATIENCE, |tally| tally.effects >= n).await
    }

    /// Waits until the numbers are as wanted.
    ///
    /// # Errors
    /// If that takes more than `within`.
    pub async fn wait_until(&self, within: Duration, wanted: impl Fn(&Tally) -> bool) -> Result<(), WaitedInVain> {
        let mut tally = self.shared.tally.subscribe();
        match tokio::time::timeout(within, tally.wait_for(wanted)).await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(_)) | Err(_) => Err(WaitedInVain { within, tally: self.tally() }),
        }
    }

    /// Closes the port and every connection, and returns when that is done. What it has recorded stays.
    pub async fn stop(&self) {
        let Some(Running { stop, task }) = locked(&self.running).take() else { return };
        // It stops before that only with its runtime.
        let _ = stop.send(());
        let _ = task.await;
    }

    /// Listens again on the same port after [`Self::stop`].
    ///
    /// # Errors
    /// If something else has taken the port.
    pub async fn resume(&self) -> io::Result<()> {
        self.stop().await;
        self.run(TcpListener::bind(self.addr).await?);
        Ok(())
    }
}

impl Drop for Fake {
    fn drop(&mut self) {
        if let Some(running) = locked(&self.running).take() {
            running.task.abort();
        }
    }
}

/// What the handle and the connections have in common.
struct Shared {
    settings: Mutex<Settings>,
    record: Mutex<Record>,
    tally: watch::Sender<Tally>,
}

struct Settings {
    behave: Arc<Behave>,
    receive: Arc<Receive>,
    key_of: Option<Arc<KeyOf>>,
    record: bool,
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").field("tally", &*self.tally.borrow()).finish_non_exhaustive()
    }
}

impl Shared {
    fn new() -> Self {
        let settings = Settings {
            behave: Arc::new(|_, _| Behaviour::accept()),
            receive: Arc::new(|_| Reception::Serve),
            key_of: None,
            record: true,
        };
        Self { settings: Mutex::new(settings), record: Mutex::default(), tally: watch::Sender::new(Tally::default()) }
    }

    fn settings(&self) -> MutexGuard<'_, Settings> {
        locked(&self.settings)
    }

    fn behaviour(&self) -> Arc<Behave> {
        Arc::clone(&self.settings().behave)
    }

    fn receptionist(&self) -> Arc<Receive> {
        Arc::clone(&self.settings().receive)
    }

    fn count(&self, f: impl FnOnce(&mut Tally)) {
        self.tally.send_modify(f);
    }

    /// Numbers a request, finds its key and remembers it: with how many of that key came before.
    fn note(&self, mut seen: Seen) -> (Seen, usize) {
        let (key_of, keep) = {
            let settings = self.settings();
            (settings.key_of.clone(), settings.record)
        };
        seen.key = match key_of {
            Some(key_of) => key_of(&seen),
            None => seen.header("idempotency-key").map(str::to_owned),
        };
        let mut record = locked(&self.record);
        let before = record.ask(seen.key.as_deref());
        seen.number = record.next_number();
        if keep {
            record.seen.push(seen.clone());
        }
        (seen, before)
    }

    fn take_effect(&self, seen: &Seen, effect: Effect) -> Outcome {
        let mut record = locked(&self.record);
        let outcome = record.take_effect(seen, effect);
        self.tally.send_if_modified(|tally| {
            tally.effects += usize::from(outcome.receipt.is_some() && !outcome.replayed);
            tally.replays += usize::from(outcome.replayed);
            tally.duplicates = record.duplicates;
            outcome.receipt.is_some()
        });
        outcome
    }
}

/// A panic elsewhere is no reason to lose the book.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
