//! What was learnt and could not be written down yet, in a local file (R11): neither a long outage nor a restart during one
//! loses it. Without a file there is nothing here to do.
//!
//! Every outcome is known here from when it was learnt until the ledger has it. One that the ledger does not have within a
//! moment is appended; when the ledger has all that was appended, the file is emptied. At a start what is in the file goes
//! to the ledger before anything is claimed ([`replay`]).

mod file;
mod record;
mod replay;

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::delivery::Outcome;
use super::orphans::Orphans;
use crate::clock::Uptime;
use crate::core::action::{ActionId, AttemptId};
use crate::ledger::ClaimMark;
use crate::log::events;
use file::{Frame, JournalFile};
pub use file::{JournalError, Look, look};
use record::Kept;

/// How long the ledger may take before an outcome is appended.
const MOMENT: Duration = Duration::from_millis(500);
/// Between two looks at what has taken so long.
const LOOKS: Duration = Duration::from_millis(250);
/// The longest file under which anything is claimed. It is emptied as soon as the ledger has what is in it.
const LONG: u64 = 16 << 20;

/// The journal, or none.
#[derive(Clone, Default)]
pub struct Journal(Option<Arc<Inner>>);

struct Inner {
    /// Only ever locked by one who may block.
    file: Mutex<JournalFile>,
    known: Mutex<Known>,
    /// What the ledger does not have cannot wait.
    urgent: Notify,
    /// Whether anything may be claimed, as far as the journal goes.
    sound: watch::Sender<bool>,
}

#[derive(Default)]
struct Known {
    /// Whose outcomes these are.
    ledger: Option<Uuid>,
    worker: String,
    /// By the claim that they were learnt under.
    outcomes: HashMap<AttemptId, Entry>,
    /// Unanswered claims that have been appended.
    unanswered: Vec<ClaimMark>,
    /// What was in the file at the start and is not in the ledger yet.
    found: Vec<Frame>,
    /// Bytes in the file.
    length: u64,
    /// Whether the file could not be written the last time that it had to be.
    failing: bool,
    /// Whether that was said, and the file has not been written since.
    told_failing: bool,
    /// Whether it was said that something is in it.
    told: bool,
}

struct Entry {
    kept: Kept,
    since: Uptime,
    appended: bool,
}

impl Journal {
    /// Opens the file for a worker of this name.
    ///
    /// # Errors
    /// Where another process has it, where the system refuses, and where something in it cannot be read.
    pub fn open(path: &Path, worker: &str) -> Result<Self, JournalError> {
        let (file, content) = JournalFile::open(path)?;
        if content.torn > 0 {
            events::journal_torn(content.torn);
        }
        let length = file.length();
        let known = Known { worker: worker.to_owned(), found: content.frames, length, ..Known::default() };
        let sound = watch::Sender::new(true);
        Ok(Self(Some(Arc::new(Inner {
            file: Mutex::new(file),
            known: Mutex::new(known),
            urgent: Notify::new(),
            sound,
        }))))
    }

    /// This was learnt; from now on it is not forgotten.
    pub(super) fn learnt(&self, outcome: &Outcome) {
        let Some(inner) = &self.0 else { return };
        let entry = Entry { kept: Kept::of(outcome), since: Uptime::now(), appended: false };
        inner.lock().outcomes.insert(outcome.claimed.row.attempt, entry);
    }

    /// The ledger has what was learnt under this claim, or never will.
    pub(super) fn forget(&self, attempt: AttemptId) {
        if let Some(inner) = &self.0 {
            inner.lock().outcomes.remove(&attempt);
        }
    }

    /// The ledger cannot be written: whatever is known is appended at once.
    pub(super) fn hurry(&self) {
        if let Some(inner) = &self.0 {
            inner.urgent.notify_one();
        }
    }

    /// Waits until what is learnt from now on can be kept.
    pub(super) async fn sound(&self) {
        if let Some(inner) = &self.0 {
            // The sender is ours, so it cannot have gone.
            let _ = inner.sound.subscribe().wait_for(|sound| *sound).await;
        }
    }

    /// Appends what the ledger doesn't take, and empties the file when it has, until told to end.
    pub(super) async fn keep(self, orphans: Arc<Orphans>, end: CancellationToken) {
        let Some(inner) = &self.0 else { return };
        loop {
            let older_than = tokio::select! {
                () = tokio::time::sleep(LOOKS) => MOMENT,
                () = inner.urgent.notified() => Duration::ZERO,
                () = end.cancelled() => return,
            };
            inner.round(&orphans, older_than).await;
        }
    }

    /// At the end of a daemon: appends everything that the ledger does not have. Returns the actions whose outcomes are in
    /// the file.
    pub(super) async fn keep_all(&self, orphans: &Orphans) -> HashSet<ActionId> {
        let Some(inner) = &self.0 else { return HashSet::new() };
        inner.round(orphans, Duration::ZERO).await;
        let known = inner.lock();
        known.outcomes.values().filter(|entry| entry.appended).map(|entry| entry.kept.settlement.action).collect()
    }
}

impl Inner {
    /// Appends what has waited for longer than this; where nothing in the file is needed any more, empties it.
    async fn round(self: &Arc<Self>, orphans: &Orphans, older_than: Duration) {
        let lost = orphans.lost_marks();
        let (frame, empties) = {
            let mut known = self.lock();
            known.unanswered.retain(|mark| lost.contains(mark));
            // Where there was no room for many, room for the few that have waited longest proves nothing.
            let older_than = if known.failing { Duration::ZERO } else { older_than };
            (known.frame(&lost, older_than), known.length > 0 && known.is_done())
        };
        if let Some(frame) = frame {
            self.append(frame).await;
        } else if empties {
            self.clear().await;
        } else {
            // It is not needed now. Whether it could be written is not known, so nothing is said.
            self.lock().failing = false;
        }
        let known = self.lock();
        let sound = !known.failing && known.length <= LONG;
        drop(known);
        self.sound.send_if_modified(|was| std::mem::replace(was, sound) != sound);
    }

    async fn append(self: &Arc<Self>, frame: Frame) {
        let frame = Arc::new(frame);
        let (result, length) = self
            .with_file({
                let frame = Arc::clone(&frame);
                move |file| (file.append(&frame), file.length())
            })
            .await;
        let mut known = self.lock();
        known.length = length;
        if !known.worked(result) {
            return;
        }
        for kept in &frame.outcomes {
            // Gone where the ledger has it by now.
            if let Some(entry) = known.outcomes.get_mut(&kept.settlement.row.attempt) {
                entry.appended = true;
            }
        }
        known.unanswered.extend(&frame.unanswered);
        if !std::mem::replace(&mut known.told, true) {
            events::journal_used(frame.outcomes.len());
        }
    }

    async fn clear(self: &Arc<Self>) {
        let (result, length) = self.with_file(|file| (file.clear(), file.length())).await;
        let mut known = self.lock();
        known.length = length;
        if known.worked(result) && std::mem::replace(&mut known.told, false) {
            events::journal_emptied();
        }
    }

    /// What may wait for the disk.
    async fn with_file<T: Send + 'static>(
        self: &Arc<Self>,
        act: impl FnOnce(&mut JournalFile) -> T + Send + 'static,
    ) -> T {
        let inner = Arc::clone(self);
        let done =
            tokio::task::spawn_blocking(move || act(&mut inner.file.lock().unwrap_or_else(PoisonError::into_inner)));
        match done.await {
            Ok(done) => done,
            Err(ended) => match ended.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                // The runtime is going down, and this task with it.
                Err(_) => std::future::pending().await,
            },
        }
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        // Each change is a single step.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Known {
    /// What is to be appended now.
    fn frame(&self, lost: &[ClaimMark], older_than: Duration) -> Option<Frame> {
        let now = Uptime::now();
        let waits = |entry: &&Entry| !entry.appended && now.since(entry.since) >= older_than;
        let outcomes: Vec<Kept> = self.outcomes.values().filter(waits).map(|entry| entry.kept.clone()).collect();
        let unanswered: Vec<ClaimMark> = lost.iter().filter(|mark| !self.unanswered.contains(mark)).copied().collect();
        if outcomes.is_empty() && unanswered.is_empty() {
            return None;
        }
        // Nothing is learnt before the ledger has said which it is.
        self.ledger.map(|ledger| Frame { ledger, worker: self.worker.clone(), outcomes, unanswered })
    }

    /// Whether the ledger has all that is in the file.
    fn is_done(&self) -> bool {
        self.found.is_empty() && self.unanswered.is_empty() && self.outcomes.values().all(|entry| !entry.appended)
    }

    /// Whether it worked; says where it does not any more.
    fn worked(&mut self, result: Result<(), JournalError>) -> bool {
        self.failing = result.is_err();
        let was_told = std::mem::replace(&mut self.told_failing, result.is_err());
        if let (Err(error), false) = (&result, was_told) {
            events::journal_failed(error);
        }
        result.is_ok()
    }
}
