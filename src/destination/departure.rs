//! The moment from which bytes of a request may leave, and who may still stop it.
//!
//! hyper's HTTP/1 dispatcher asks the body `is_end_stream` inside the connection's task, right after it has taken the
//! request from its queue and before it encodes a byte (hyper 1.12 `proto/h1/dispatch.rs`, `poll_write`); nothing in
//! the client asks earlier. So the first question is the departure: it opens the wire's gate. Whoever gives up a
//! request revokes it first; a departure after that shuts the wire instead. A write that no departure opened the gate
//! for is refused, so a hyper that asked later would send nothing rather than send unseen.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use hyper::Request;
use hyper::body::{Body, Frame, SizeHint};
use hyper::http::Extensions;
use hyper_util::client::legacy::connect::{CaptureConnection, capture_connection};

use super::wire::{Exchange, Traffic, Wire};
use crate::clock::Uptime;

struct Departure {
    /// No byte leaves after it.
    until: Uptime,
    captured: CaptureConnection,
    stage: Mutex<Stage>,
}

enum Stage {
    /// No connection has taken the request.
    Waiting,
    /// None may any more.
    Revoked,
    /// One has.
    Taken(Exchange),
    /// It has been answered.
    Over,
}

/// What is known of a request that got no answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Sent {
    /// Proved: no byte of it left, and none will.
    Nothing {
        /// Its time was over before it could leave.
        missed: bool,
    },
    /// Bytes of it left.
    Bytes(Traffic),
    /// Bytes of it may have left.
    Unknown,
}

impl Departure {
    fn stage(&self) -> MutexGuard<'_, Stage> {
        self.stage.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The client sets the captured connection just before it queues the request on it, anew for each it picks.
    fn wire(&self) -> Option<Arc<Wire>> {
        let mut extras = Extensions::new();
        self.captured.connection_metadata().as_ref()?.get_extras(&mut extras);
        extras.remove::<Arc<Wire>>()
    }

    /// The connection is about to write the request.
    fn depart(&self) {
        let mut stage = self.stage();
        match &*stage {
            Stage::Taken(_) => {}
            Stage::Waiting => match self.wire() {
                Some(wire) => *stage = Stage::Taken(wire.begin(self.until)),
                None => *stage = Stage::Revoked,
            },
            Stage::Revoked | Stage::Over => {
                if let Some(wire) = self.wire() {
                    wire.shut();
                }
            }
        }
    }

    fn end(&self) -> Sent {
        let mut stage = self.stage();
        match std::mem::replace(&mut *stage, Stage::Revoked) {
            Stage::Waiting | Stage::Revoked => Sent::Nothing { missed: false },
            Stage::Over => Sent::Unknown,
            Stage::Taken(exchange) => match exchange.end() {
                None => Sent::Unknown,
                Some(Traffic { written: 0, missed, .. }) => Sent::Nothing { missed },
                Some(traffic) => Sent::Bytes(traffic),
            },
        }
    }
}

/// The owner's end of a departure. Dropping it stops the request where it is.
pub(super) struct Ticket(Arc<Departure>);

impl Ticket {
    /// For `request`, of which no byte may leave after `until`.
    pub(super) fn new(request: &mut Request<()>, until: Uptime) -> Self {
        let captured = capture_connection(request);
        Self(Arc::new(Departure { until, captured, stage: Mutex::new(Stage::Waiting) }))
    }

    /// The body that departs with it.
    pub(super) fn body(&self, data: Bytes) -> Outgoing {
        Outgoing { data: (!data.is_empty()).then_some(data), departure: Arc::clone(&self.0) }
    }

    /// Takes it back where no connection has taken it yet. True: no byte of it left, and none will.
    pub(super) fn revoke(&self) -> bool {
        let mut stage = self.0.stage();
        match &*stage {
            Stage::Waiting | Stage::Revoked => {
                *stage = Stage::Revoked;
                true
            }
            Stage::Taken(_) | Stage::Over => false,
        }
    }

    /// Whether the connection it was queued on has been closed for that long without taking it or giving it back.
    ///
    /// hyper 1.12 loses a request that is pushed into a connection's queue in the instant in which the connection
    /// ends: its receiver is dropped without seeing it, and the client waits for an answer that cannot come.
    pub(super) fn is_stranded(&self, patience: Duration) -> bool {
        match &*self.0.stage() {
            Stage::Waiting => self.0.wire().and_then(|wire| wire.closed_for()).is_some_and(|closed| closed >= patience),
            Stage::Revoked | Stage::Taken(_) | Stage::Over => false,
        }
    }

    /// Stops the request where it is, and says what left.
    pub(super) fn end(&self) -> Sent {
        self.0.end()
    }

    /// Whether bytes of the request still wait for the peer to take them.
    pub(super) fn is_behind(&self) -> bool {
        match &*self.0.stage() {
            Stage::Taken(exchange) => exchange.is_behind(),
            Stage::Waiting | Stage::Revoked | Stage::Over => false,
        }
    }

    /// The answer has been read. The connection may serve others if the whole request had gone out before the answer
    /// came, and it is not older than `oldest`.
    ///
    /// After an early answer hyper 1.12 may stop looking at its queue although it takes the connection for idle: once
    /// the rest is flushed nothing wakes it. So such a connection is given up, and woken to notice.
    pub(super) fn release(&self, oldest: Duration) {
        let mut stage = self.0.stage();
        if let Stage::Taken(exchange) = std::mem::replace(&mut *stage, Stage::Over) {
            let reusable = exchange.release();
            if (!reusable || exchange.wire().age() > oldest)
                && let Some(connected) = self.0.captured.connection_metadata().as_ref()
            {
                connected.poison();
            }
            if !reusable {
                exchange.end();
            }
        }
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        if !matches!(*self.0.stage(), Stage::Over) {
            self.0.end();
        }
    }
}

/// The body of a request. It is there for empty ones too.
pub(super) struct Outgoing {
    /// What has not been handed over yet.
    data: Option<Bytes>,
    departure: Arc<Departure>,
}

impl Body for Outgoing {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.departure.depart();
        Poll::Ready(self.data.take().map(|data| Ok(Frame::data(data))))
    }

    fn is_end_stream(&self) -> bool {
        self.departure.depart();
        self.data.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.data.as_ref().map_or(0, |data| data.len() as u64))
    }
}
