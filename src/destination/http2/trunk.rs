//! One connection of HTTP/2: what of each stream has crossed it, and whether more of it may.
//!
//! The library is never asked what it has sent. Frames are read off the bytes on their way to the socket: a byte of a
//! request passes only while its stream is known and its time is not over, and whoever gives a request up takes its stream
//! away first. A write that would let out more of it ends the connection instead: what is in one buffer cannot be told
//! apart any more. It happens only where the peer has stopped taking bytes; a stream that waits for its own window holds
//! nothing in any buffer, and giving it up costs the others nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use tokio::io::ReadBuf;

use super::super::socket::Tap;
use super::frames::{Frames, REFUSED_STREAM, Seen};
use crate::clock::Uptime;

/// The meter and the gate of one connection.
pub(super) struct Trunk {
    line: Mutex<Line>,
    tap: Arc<Tap>,
    opened: Uptime,
}

struct Line {
    sent: Frames,
    received: Frames,
    /// Those that may send.
    streams: BTreeMap<u32, Stream>,
    /// Streams with bytes that TLS may have taken and the socket has not.
    held: BTreeSet<u32>,
    /// Nothing leaves any more.
    dead: bool,
    /// It takes no new streams.
    retired: bool,
    /// The peer looks at no stream above it.
    goaway: Option<u32>,
    /// Since when no stream has been open.
    idle: Option<Uptime>,
    task: Option<Waker>,
}

#[derive(Clone, Copy)]
struct Stream {
    until: Uptime,
    traffic: Traffic,
    /// Its last byte has been taken.
    whole: bool,
}

/// What crossed the wire of one stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Traffic {
    /// Bytes of the request, its frames' headers among them, that the socket or TLS above it has taken.
    pub(super) written: u64,
    /// Bytes of an answer.
    pub(super) read: u64,
    /// Bytes were still to be written when their time was over.
    pub(super) missed: bool,
    /// The peer says that it did nothing with it: it refused the stream, or went away before it looked at it.
    pub(super) untouched: bool,
}

impl Trunk {
    pub(super) fn new(tap: Arc<Tap>) -> Arc<Self> {
        let line = Line {
            sent: Frames::sent(),
            received: Frames::received(),
            streams: BTreeMap::new(),
            held: BTreeSet::new(),
            dead: false,
            retired: false,
            goaway: None,
            idle: Some(Uptime::now()),
            task: None,
        };
        Arc::new(Self { line: Mutex::new(line), tap, opened: Uptime::now() })
    }

    fn line(&self) -> MutexGuard<'_, Line> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether it takes new streams.
    pub(super) fn is_usable(&self, oldest: Duration) -> bool {
        let line = self.line();
        !line.dead && !line.retired && line.goaway.is_none() && Uptime::now().since(self.opened) <= oldest
    }

    /// Lets a stream send until `until`. False where nothing leaves this connection any more.
    pub(super) fn begin(&self, stream: u32, until: Uptime) -> bool {
        let mut line = self.line();
        line.idle = None;
        line.streams.insert(stream, Stream { until, traffic: Traffic::default(), whole: false });
        !line.dead
    }

    /// Takes a stream away and says, once, what crossed the wire. Final: nothing of it leaves afterwards.
    pub(super) fn end(&self, stream: u32) -> Traffic {
        let mut line = self.line();
        let Some(taken) = line.streams.remove(&stream) else { return Traffic::default() };
        if line.streams.is_empty() {
            line.idle = Some(Uptime::now());
        }
        // What TLS holds back of it would leave with whatever comes next.
        if line.held.contains(&stream) {
            self.kill(&mut line);
        }
        let above = line.goaway.is_some_and(|last| stream > last) && taken.traffic.read == 0;
        Traffic { untouched: taken.traffic.untouched || above, ..taken.traffic }
    }

    /// Whether the whole of a stream's request has left.
    pub(super) fn is_out(&self, stream: u32) -> bool {
        let line = self.line();
        line.dead || line.streams.get(&stream).is_none_or(|known| known.whole && !line.held.contains(&stream))
    }

    /// Takes no new streams any more: a peer that left one unanswered may be gone.
    pub(super) fn retire(&self) {
        self.line().retired = true;
    }

    /// Lets nothing leave any more.
    pub(super) fn shut(&self) {
        self.kill(&mut self.line());
    }

    /// Shuts it where no stream has been open for that long.
    pub(super) fn shut_if_idle(&self, patience: Duration) -> bool {
        let mut line = self.line();
        let idle = line.idle.is_some_and(|since| Uptime::now().since(since) >= patience);
        if idle {
            self.kill(&mut line);
        }
        line.dead
    }

    fn kill(&self, line: &mut Line) {
        line.dead = true;
        if let Some(task) = line.task.take() {
            task.wake();
        }
    }

    /// Lets one write happen, or not.
    pub(super) fn write(
        &self,
        cx: &mut Context<'_>,
        offered: &[&[u8]],
        write: impl FnOnce(&mut Context<'_>) -> Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        let mut line = self.line();
        line.attend(cx)?;
        let mut theirs = line.held.clone();
        let mut ahead = line.sent.clone();
        for bytes in offered {
            ahead.read(bytes, |seen| {
                if let Seen::Message { stream, .. } = seen {
                    theirs.insert(stream);
                }
            });
        }
        line.check(&theirs)?;
        let before = self.tap.taken();
        match write(cx) {
            Poll::Ready(Ok(taken)) => {
                line.took(offered, taken);
                Poll::Ready(Ok(taken))
            }
            Poll::Ready(Err(error)) => {
                line.dead = true;
                // With TLS a write may break after a part of it has left; of which streams, nobody knows.
                if self.tap.taken() > before {
                    for (stream, known) in &mut line.streams {
                        known.traffic.written += u64::from(theirs.contains(stream));
                    }
                }
                Poll::Ready(Err(error))
            }
            Poll::Pending => Poll::Pending,
        }
    }

    /// Lets what TLS holds back go out, or not.
    pub(super) fn flush(
        &self,
        cx: &mut Context<'_>,
        flush: impl FnOnce(&mut Context<'_>) -> Poll<io::Result<()>>,
    ) -> Poll<io::Result<()>> {
        let mut line = self.line();
        line.attend(cx)?;
        let held = line.held.clone();
        line.check(&held)?;
        let flushed = flush(cx);
        match &flushed {
            Poll::Ready(Ok(())) => {
                line.held.clear();
            }
            Poll::Ready(Err(_)) => line.dead = true,
            Poll::Pending => {}
        }
        flushed
    }

    /// Lets one read happen, and looks at what came.
    pub(super) fn read(
        &self,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
        read: impl FnOnce(&mut Context<'_>, &mut ReadBuf<'_>) -> Poll<io::Result<()>>,
    ) -> Poll<io::Result<()>> {
        let mut line = self.line();
        line.attend(cx)?;
        let overdue = line.held.iter().any(|stream| line.is_overdue(*stream));
        let before = buf.filled().len();
        let polled = self.tap.barred(overdue, || read(cx, buf));
        line.heard(&buf.filled()[before..]);
        polled
    }

    /// Whether the connection may be ended politely: that would send what TLS holds back.
    pub(super) fn may_say_goodbye(&self) -> bool {
        let line = self.line();
        line.held.is_empty() || (!line.dead && !line.held.iter().any(|stream| line.is_overdue(*stream)))
    }
}

impl Line {
    /// Keeps whom to wake; an error where the connection is over.
    fn attend(&mut self, cx: &Context<'_>) -> io::Result<()> {
        if self.dead {
            return Err(io::ErrorKind::NotConnected.into());
        }
        match &mut self.task {
            Some(task) => task.clone_from(cx.waker()),
            task @ None => *task = Some(cx.waker().clone()),
        }
        Ok(())
    }

    fn is_overdue(&self, stream: u32) -> bool {
        self.streams.get(&stream).is_none_or(|known| known.until.is_over())
    }

    /// Ends the connection where bytes of a stream that may not send are among those that would leave.
    fn check(&mut self, theirs: &BTreeSet<u32>) -> io::Result<()> {
        let overdue: Vec<u32> = theirs.iter().copied().filter(|stream| self.is_overdue(*stream)).collect();
        if overdue.is_empty() {
            return Ok(());
        }
        for stream in overdue {
            if let Some(known) = self.streams.get_mut(&stream) {
                known.traffic.missed = true;
            }
        }
        self.dead = true;
        Err(io::ErrorKind::TimedOut.into())
    }

    fn took(&mut self, offered: &[&[u8]], taken: usize) {
        let mut left = taken;
        let Self { sent, streams, held, .. } = self;
        for bytes in offered {
            let bytes = &bytes[..bytes.len().min(left)];
            left -= bytes.len();
            sent.read(bytes, |seen| {
                if let Seen::Message { stream, bytes, last } = seen
                    && let Some(known) = streams.get_mut(&stream)
                {
                    known.traffic.written += bytes as u64;
                    known.whole |= last;
                    held.insert(stream);
                }
            });
        }
    }

    fn heard(&mut self, bytes: &[u8]) {
        let Self { received, streams, goaway, .. } = self;
        received.read(bytes, |seen| match seen {
            Seen::Message { stream, bytes, .. } => {
                if let Some(known) = streams.get_mut(&stream) {
                    known.traffic.read += bytes as u64;
                }
            }
            Seen::Reset { stream, code } => {
                if let Some(known) = streams.get_mut(&stream) {
                    known.traffic.untouched |= code == REFUSED_STREAM && known.traffic.read == 0;
                }
            }
            Seen::GoAway { last } => *goaway = Some(goaway.map_or(last, |before| before.min(last))),
        });
    }
}
