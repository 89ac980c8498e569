//! The journal's file: frames that are appended and synced, each a checksum and a line of JSON, under a lock.
//!
//! A frame is written in one piece and counts once it has been synced. So only the last one can be torn, by a crash in the
//! middle of it, and what it would have said was never relied upon. Anything else that cannot be read is refused.

use std::fs::{File, OpenOptions, Permissions};
use std::io::{self, Read as _};
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use uuid::Uuid;

use super::record::{Kept, Words};
use crate::ledger::ClaimMark;

/// The longest file that is read: far more than what is ever in flight.
const LONGEST: u64 = 256 << 20;
/// Room on the disk that is taken at once where the system can: in an outage there may be none.
const RESERVED: u64 = 1 << 20;
/// The form of a frame.
const VERSION: u32 = 1;

/// Why a journal cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// Another process has it.
    #[error("the journal {0} is in use by another process; each daemon needs a journal of its own")]
    InUse(String),
    /// The system refuses.
    #[error("the journal {path} cannot be used: {error}")]
    Io {
        /// Where.
        path: String,
        /// Why.
        #[source]
        error: io::Error,
    },
    /// Something is in it that was not written by this version, or was changed since.
    #[error(
        "frame {frame} of the journal {path} cannot be read; nothing was changed. It may hold outcomes that the ledger \
         does not have: use the version that wrote it, or move it away and look at what is dispatching"
    )]
    Unreadable {
        /// Where.
        path: String,
        /// From 1.
        frame: usize,
    },
}

/// What one process has written at once.
#[derive(Clone, PartialEq, Debug)]
pub struct Frame {
    /// Of which ledger.
    pub ledger: Uuid,
    /// By which worker.
    pub worker: String,
    /// What it knew.
    pub outcomes: Vec<Kept>,
    /// Which of its claims were never answered: nothing of them was sent.
    pub unanswered: Vec<ClaimMark>,
}

#[derive(Serialize, Deserialize)]
struct FrameWords {
    v: u32,
    ledger: Uuid,
    worker: String,
    outcomes: Vec<Words>,
    unanswered: Vec<Uuid>,
}

/// What was found in a file.
#[derive(Debug, Default)]
pub struct Content {
    /// In the order in which they were written.
    pub frames: Vec<Frame>,
    /// Bytes of a last frame that a crash has torn.
    pub torn: u64,
}

/// An open file, locked until it is dropped.
#[derive(Debug)]
pub struct JournalFile {
    file: File,
    path: String,
    /// Where the next frame goes. What lies behind it, of an append that went wrong, counts for nothing.
    end: u64,
}

impl JournalFile {
    /// Opens it, readable by its owner alone, or makes it; locks it; reads what is in it.
    pub fn open(path: &Path) -> Result<(Self, Content), JournalError> {
        let name = path.display().to_string();
        let refused = |error| JournalError::Io { path: path.display().to_string(), error };
        let opened = OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(path);
        let file = opened.map_err(refused)?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(rustix::io::Errno::WOULDBLOCK) => return Err(JournalError::InUse(name)),
            Err(error) => return Err(refused(error.into())),
        }
        let prepared = || -> io::Result<(u64, Vec<u8>)> {
            let found = file.metadata()?;
            if !found.is_file() {
                return Err(io::Error::other("it is not a regular file"));
            }
            if found.permissions().mode() & 0o077 != 0 {
                file.set_permissions(Permissions::from_mode(0o600))?;
            }
            if found.len() > LONGEST {
                return Err(io::Error::other(format!("it has more than {LONGEST} bytes")));
            }
            let mut bytes = Vec::new();
            (&file).take(LONGEST).read_to_end(&mut bytes)?;
            // So that its name outlives a power cut, too.
            if let Some(directory) = directory(path) {
                File::open(directory)?.sync_all()?;
            }
            Ok((found.len(), bytes))
        };
        let (length, bytes) = prepared().map_err(refused)?;
        let (frames, end) = read(&bytes).map_err(|frame| JournalError::Unreadable { path: name.clone(), frame })?;
        if end < length {
            file.set_len(end).map_err(refused)?;
        }
        let opened = Self { file, path: name, end };
        opened.reserve();
        Ok((opened, Content { frames, torn: length - end }))
    }

    /// Bytes that count.
    pub fn length(&self) -> u64 {
        self.end
    }

    /// Appends a frame and syncs it. Where that does not work nothing has been appended.
    pub fn append(&mut self, frame: &Frame) -> Result<(), JournalError> {
        self.append_and(frame, File::sync_data)
    }

    fn append_and(&mut self, frame: &Frame, sync: impl FnOnce(&File) -> io::Result<()>) -> Result<(), JournalError> {
        let bytes = written(frame);
        let appended = self.cut_off().and_then(|()| {
            self.file.write_all_at(&bytes, self.end)?;
            sync(&self.file)
        });
        match appended {
            Ok(()) => {
                self.end += u64::try_from(bytes.len()).unwrap_or(u64::MAX);
                Ok(())
            }
            Err(error) => Err(self.refused(error)),
        }
    }

    /// Empties it: the ledger has what was in it.
    pub fn clear(&mut self) -> Result<(), JournalError> {
        self.file.set_len(0).map_err(|error| self.refused(error))?;
        // From here on there is nothing before the next frame, synced or not.
        self.end = 0;
        self.file.sync_all().map_err(|error| self.refused(error))?;
        self.reserve();
        Ok(())
    }

    /// What appends that went wrong have left behind the end goes: more than one of them can leave more than one line, and
    /// only the last line of a file may be unreadable.
    fn cut_off(&self) -> io::Result<()> {
        if self.file.metadata()?.len() > self.end {
            self.file.set_len(self.end)?;
        }
        Ok(())
    }

    fn refused(&self, error: io::Error) -> JournalError {
        JournalError::Io { path: self.path.clone(), error }
    }

    /// Where that is not possible, an append says so when its time comes.
    fn reserve(&self) {
        #[cfg(target_os = "linux")]
        let _ = rustix::fs::fallocate(&self.file, rustix::fs::FallocateFlags::KEEP_SIZE, 0, RESERVED);
    }
}

/// What a look at a journal finds without touching it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Look {
    /// There is none; a daemon makes it.
    Absent,
    /// A daemon has it.
    InUse,
    /// So many outcomes wait to be written down by the next start.
    Holds(usize),
}

/// Looks at a journal without touching it.
pub fn look(path: &Path) -> Result<Look, JournalError> {
    let name = || path.display().to_string();
    let refused = |error| JournalError::Io { path: name(), error };
    let mut file = match OpenOptions::new().read(true).write(true).open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let directory = directory(path).unwrap_or(PathBuf::from("."));
            let writable = rustix::fs::access(directory, rustix::fs::Access::WRITE_OK | rustix::fs::Access::EXEC_OK);
            return writable.map(|()| Look::Absent).map_err(|error| refused(error.into()));
        }
        Err(error) => return Err(refused(error)),
    };
    match flock(&file, FlockOperation::NonBlockingLockShared) {
        Ok(()) => {}
        Err(rustix::io::Errno::WOULDBLOCK) => return Ok(Look::InUse),
        Err(error) => return Err(refused(error.into())),
    }
    let mut bytes = Vec::new();
    (&mut file).take(LONGEST).read_to_end(&mut bytes).map_err(refused)?;
    let (frames, _) = read(&bytes).map_err(|frame| JournalError::Unreadable { path: name(), frame })?;
    Ok(Look::Holds(frames.iter().map(|frame| frame.outcomes.len()).sum()))
}

/// The directory of a file; `None` where the file is named without one and it is the working directory.
fn directory(path: &Path) -> Option<PathBuf> {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).map(Path::to_owned)
}

fn checksum(json: &[u8]) -> String {
    let digest = Sha256::digest(json);
    digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

fn written(frame: &Frame) -> Vec<u8> {
    let words = FrameWords {
        v: VERSION,
        ledger: frame.ledger,
        worker: frame.worker.clone(),
        outcomes: frame.outcomes.iter().map(Kept::words).collect(),
        unanswered: frame.unanswered.iter().map(|mark| mark.first()).collect(),
    };
    // Numbers, texts and lists: there is nothing in it that cannot be JSON, and no line break outside a text.
    let json = serde_json::to_vec(&words).unwrap_or_default();
    let mut line = checksum(&json).into_bytes();
    line.push(b' ');
    line.extend_from_slice(&json);
    line.push(b'\n');
    line
}

/// The frames, and where they end. Fails with the number of a frame that is unreadable and not the torn last one.
fn read(bytes: &[u8]) -> Result<(Vec<Frame>, u64), usize> {
    let (mut frames, mut end, mut at) = (Vec::new(), 0, 0);
    for line in bytes.split_inclusive(|byte| *byte == b'\n') {
        at += line.len();
        match whole(line) {
            Some(json) => {
                let frame = frame(json).ok_or(frames.len() + 1)?;
                frames.push(frame);
                end = at;
            }
            None if at == bytes.len() => {}
            None => return Err(frames.len() + 1),
        }
    }
    Ok((frames, u64::try_from(end).unwrap_or(u64::MAX)))
}

/// The JSON of a line that is as it was written.
fn whole(line: &[u8]) -> Option<&[u8]> {
    let (sum, json) = line.strip_suffix(b"\n")?.split_at_checked(16)?;
    let json = json.strip_prefix(b" ")?;
    (checksum(json).as_bytes() == sum).then_some(json)
}

fn frame(json: &[u8]) -> Option<Frame> {
    let words: FrameWords = serde_json::from_slice(json).ok()?;
    (words.v == VERSION).then_some(())?;
    Some(Frame {
        ledger: words.ledger,
        worker: words.worker,
        outcomes: words.outcomes.into_iter().map(Kept::read).collect::<Option<_>>()?,
        unanswered: words.unanswered.into_iter().map(ClaimMark::of).collect(),
    })
}

#[cfg(test)]
#[path = "file_tests.rs"]
mod tests;
