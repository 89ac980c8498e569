//! One connection: what has crossed it, and whether anything more may.
//!
//! hyper is never asked what it has sent. Every byte passes a [`super::metered::Metered`] stream, which has it counted
//! here, and it passes only while an exchange holds the gate open. The gate and the count stand under one lock that is
//! held during the (non-blocking) write, so after [`Exchange::end`] the count is final: no write is on its way that it
//! does not know of.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use super::socket::Tap;
use crate::clock::Uptime;
use crate::failpoint::{self, Point};

/// The meter and the gate of one connection.
pub(super) struct Wire {
    line: Mutex<Line>,
    tap: Arc<Tap>,
    opened: Uptime,
}

struct Line {
    /// Bytes of requests that the socket, or TLS above it, has taken since the connection was opened.
    written: u64,
    /// Counts exchanges, so that one which is over cannot end its successor.
    exchange: u64,
    /// `written` when the current exchange began.
    began_at: u64,
    gate: Gate,
    /// The last write did not go through in full: bytes of the request wait for the peer to take more.
    behind: bool,
    /// TLS may have taken bytes that the socket has not: they are counted as written, and still on this machine. From
    /// every write until a flush went through.
    unflushed: bool,
    /// Bytes read since the connection was opened.
    read: u64,
    /// Bytes came while the request was behind.
    early: bool,
    /// When the connection was closed.
    closed: Option<Uptime>,
    /// The connection's task, as it last wrote.
    task: Option<Waker>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Gate {
    /// No exchange: nothing may leave.
    Idle,
    /// Bytes may leave until then.
    Open(Uptime),
    /// That moment passed with bytes still to be written. Nothing leaves any more.
    Missed,
    /// The peer stopped taking bytes in mid-request. The rest is thrown away, so that hyper goes on to read an answer
    /// which the peer may have given before it hung up (an early 413).
    PeerStopped,
    /// Nothing leaves any more.
    Shut,
}

/// One request's time on a wire.
pub(super) struct Exchange {
    wire: Arc<Wire>,
    number: u64,
    read_before: u64,
}

/// What crossed the wire in one exchange.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Traffic {
    /// Bytes of the request that the socket took.
    pub(super) written: u64,
    /// Bytes of the answer that were read.
    pub(super) read: u64,
    /// Bytes were still to be written when their time was over.
    pub(super) missed: bool,
}

impl Wire {
    pub(super) fn new(tap: Arc<Tap>) -> Arc<Self> {
        Arc::new(Self {
            tap,
            line: Mutex::new(Line {
                written: 0,
                exchange: 0,
                began_at: 0,
                gate: Gate::Idle,
                behind: false,
                unflushed: false,
                read: 0,
                early: false,
                closed: None,
                task: None,
            }),
            opened: Uptime::now(),
        })
    }

    fn line(&self) -> MutexGuard<'_, Line> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens the gate for one request, whose bytes may leave until `until`. A wire that has been shut stays shut.
    pub(super) fn begin(self: &Arc<Self>, until: Uptime) -> Exchange {
        let mut line = self.line();
        line.exchange += 1;
        line.began_at = line.written;
        line.behind = false;
        line.unflushed = false;
        line.early = false;
        line.gate = match line.gate {
            Gate::Idle | Gate::Open(_) => Gate::Open(until),
            Gate::Missed | Gate::PeerStopped | Gate::Shut => Gate::Shut,
        };
        Exchange { wire: Arc::clone(self), number: line.exchange, read_before: line.read }
    }

    /// Shuts the gate for good.
    pub(super) fn shut(&self) {
        let task = {
            let mut line = self.line();
            line.gate = Gate::Shut;
            line.task.take()
        };
        // It finds the gate shut and closes the connection.
        if let Some(task) = task {
            task.wake();
        }
    }

    /// Lets one read happen and counts its bytes. Where a request's time is over, TLS cannot use the read to write what
    /// it holds back of it.
    pub(super) fn read<T>(&self, read: impl FnOnce() -> (T, usize)) -> T {
        let mut line = self.line();
        let over = match line.gate {
            Gate::Idle => false,
            Gate::Open(until) => line.unflushed && until.is_over(),
            Gate::Missed | Gate::PeerStopped | Gate::Shut => true,
        };
        let (read, bytes) = self.tap.barred(line.unflushed && over, read);
        line.read += bytes as u64;
        line.early |= line.is_behind() && bytes > 0;
        read
    }

    /// Its stream is gone.
    pub(super) fn close(&self) {
        self.line().closed = Some(Uptime::now());
    }

    /// How long it has been closed; `None` while it is open.
    pub(super) fn closed_for(&self) -> Option<Duration> {
        self.line().closed.map(|closed| Uptime::now().since(closed))
    }

    /// How long ago the connection was opened.
    pub(super) fn age(&self) -> Duration {
        Uptime::now().since(self.opened)
    }

    /// Lets one write of `offered` bytes happen, or not.
    pub(super) fn write(
        &self,
        cx: &mut Context<'_>,
        offered: usize,
        write: impl FnOnce(&mut Context<'_>) -> Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        let mut line = self.line();
        match line.gate {
            Gate::Open(until) if until.is_over() => {
                line.gate = Gate::Missed;
                return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
            }
            Gate::Open(_) => {}
            Gate::PeerStopped => return Poll::Ready(Ok(offered)),
            Gate::Idle | Gate::Missed | Gate::Shut => return Poll::Ready(Err(io::ErrorKind::NotConnected.into())),
        }
        match &mut line.task {
            Some(task) => task.clone_from(cx.waker()),
            task @ None => *task = Some(cx.waker().clone()),
        }
        let before = self.tap.taken();
        match write(cx) {
            Poll::Ready(Ok(taken)) => {
                line.written += taken as u64;
                line.behind = taken < offered;
                line.unflushed |= taken > 0;
                Poll::Ready(Ok(taken))
            }
            // With TLS a write may break after a part of it has left.
            Poll::Ready(Err(_)) if line.written > line.began_at || self.tap.taken() > before => {
                line.written += self.tap.taken() - before;
                line.gate = Gate::PeerStopped;
                line.behind = false;
                line.unflushed = true;
                Poll::Ready(Ok(offered))
            }
            Poll::Ready(Err(error)) => {
                line.gate = Gate::Shut;
                line.unflushed = true;
                Poll::Ready(Err(error))
            }
            Poll::Pending => {
                line.behind = true;
                Poll::Pending
            }
        }
    }

    /// Lets what TLS holds back go out, or not. Without TLS nothing is held back.
    pub(super) fn flush(
        &self,
        cx: &mut Context<'_>,
        flush: impl FnOnce(&mut Context<'_>) -> Poll<io::Result<()>>,
    ) -> Poll<io::Result<()>> {
        let mut line = self.line();
        match line.gate {
            Gate::Open(until) if line.unflushed && until.is_over() => {
                line.gate = Gate::Missed;
                return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
            }
            Gate::Open(_) | Gate::Idle => {}
            Gate::PeerStopped => return Poll::Ready(Ok(())),
            Gate::Missed | Gate::Shut => return Poll::Ready(Err(io::ErrorKind::NotConnected.into())),
        }
        let flushed = flush(cx);
        line.unflushed = flushed.is_pending();
        if flushed.is_ready() && !line.behind && line.written > line.began_at {
            failpoint::reach(Point::AfterLastByte);
        }
        if matches!(flushed, Poll::Ready(Err(_))) && line.written > line.began_at {
            line.gate = Gate::PeerStopped;
            return Poll::Ready(Ok(()));
        }
        flushed
    }

    /// Whether the connection may be ended politely: that would send what TLS holds back.
    pub(super) fn may_say_goodbye(&self) -> bool {
        let line = self.line();
        match line.gate {
            Gate::Idle | Gate::Open(_) => true,
            Gate::Missed | Gate::PeerStopped | Gate::Shut => !line.unflushed,
        }
    }
}

impl Line {
    /// Bytes of the request have not gone out yet.
    fn is_behind(&self) -> bool {
        self.behind || self.unflushed
    }
}

impl Exchange {
    /// Stops the request where it is and says what crossed the wire. Final: nothing of it leaves afterwards. `None`
    /// where the connection already serves another request, which it does only after an answer was read in full.
    pub(super) fn end(&self) -> Option<Traffic> {
        let (traffic, task) = {
            let mut line = self.wire.line();
            if line.exchange != self.number {
                return None;
            }
            let traffic = Traffic {
                written: line.written - line.began_at,
                read: line.read.saturating_sub(self.read_before),
                missed: line.gate == Gate::Missed,
            };
            line.gate = Gate::Shut;
            (traffic, line.task.take())
        };
        if let Some(task) = task {
            task.wake();
        }
        Some(traffic)
    }

    /// Whether bytes of the request still wait for the peer to take them.
    pub(super) fn is_behind(&self) -> bool {
        let line = self.wire.line();
        line.exchange == self.number && line.is_behind() && matches!(line.gate, Gate::Open(_))
    }

    /// Ends the exchange after its answer. True where the connection may serve others.
    pub(super) fn release(&self) -> bool {
        let mut line = self.wire.line();
        if line.exchange != self.number {
            return true;
        }
        line.gate = match line.gate {
            Gate::Idle | Gate::Open(_) if !line.is_behind() && !line.early => Gate::Idle,
            Gate::Idle | Gate::Open(_) | Gate::Missed | Gate::PeerStopped | Gate::Shut => Gate::Shut,
        };
        line.gate == Gate::Idle
    }

    /// The connection it uses.
    pub(super) fn wire(&self) -> &Wire {
        &self.wire
    }
}

#[cfg(test)]
mod tests;
