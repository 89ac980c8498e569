//! A request that has been handed to a connection.

use std::borrow::Cow;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use h2::client::ResponseFuture;
use h2::{RecvStream, SendStream};
use hyper::body::{Body, Frame};
use hyper::header::HeaderMap;
use hyper::{Response, StatusCode};

use super::super::answer::{Answer, read_body};
use super::super::clean::one_line;
use super::super::exchange::{Heard, passed};
use super::super::judge::Reads;
use super::super::mask::Mask;
use super::super::unanswered::{crossed, too_late};
use super::super::{DRAIN, LAST_POLL, Limits};
use super::trunk::{Traffic, Trunk};
use crate::clock::Uptime;
use crate::core::evidence::{Evidence, Finding};
use crate::core::reason::Reason;

/// How much of a body is handed over at once, in bytes, and how long what the library says may be.
const PIECE_BYTES: usize = 16 * 1024;
const SAID_MAX_BYTES: usize = 200;

type Pump = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A request that has been handed to a connection. Dropping it stops the request where it is.
pub(in crate::destination) struct Flight {
    // First, so that the stream is taken away before the library gives it up.
    stay: Stay,
    /// `None` once there is an answer.
    response: Option<ResponseFuture>,
    /// What hands its body over; `None` when it is done.
    pump: Option<Pump>,
}

/// Its place on the connection.
struct Stay {
    id: u32,
    trunk: Arc<Trunk>,
}

impl Drop for Stay {
    fn drop(&mut self) {
        self.trunk.end(self.id);
    }
}

impl Flight {
    pub(super) fn new(
        id: u32,
        trunk: Arc<Trunk>,
        response: ResponseFuture,
        send: SendStream<Bytes>,
        body: Bytes,
    ) -> Self {
        let pump: Option<Pump> = if body.is_empty() { None } else { Some(Box::pin(pump(send, body))) };
        Self { stay: Stay { id, trunk }, response: Some(response), pump }
    }

    /// Waits for the answer and reads it.
    pub(super) async fn heard<'d>(
        mut self,
        limits: &Limits,
        max: usize,
        mask: &'d Mask,
        reads: impl FnOnce(StatusCode, &HeaderMap) -> Reads,
    ) -> Heard<'d> {
        match self.answer(limits).await {
            Some(Ok(response)) => {
                let (head, body) = response.into_parts();
                let last = limits.deadline.plus(LAST_POLL);
                let reads = reads(head.status, &head.headers);
                let body = {
                    let mut reading = std::pin::pin!(read_body(Incoming(body), reads, max, last));
                    loop {
                        tokio::select! {
                            biased;
                            body = &mut reading => break body,
                            () = go_on(&mut self.pump) => {}
                        }
                    }
                };
                let answer = Answer { status: head.status, headers: head.headers, body };
                Heard::Answer(answer, self.into(), Cow::Borrowed(mask))
            }
            Some(Err(error)) => Heard::Nothing(broken(&error, self.end(), limits)),
            None => {
                // Whoever leaves one unanswered may be gone.
                self.stay.trunk.retire();
                Heard::Nothing(timed_out(self.end(), limits))
            }
        }
    }

    /// `None` = not in time.
    async fn answer(&mut self, limits: &Limits) -> Option<Result<Response<RecvStream>, h2::Error>> {
        let mut response = self.response.take()?;
        let mut leave = std::pin::pin!(passed(limits.leave_by(), None));
        loop {
            tokio::select! {
                biased;
                response = &mut response => return Some(response),
                () = &mut leave => break,
                () = go_on(&mut self.pump) => {}
            }
        }
        if !self.stay.trunk.is_out(self.stay.id) {
            return None;
        }
        tokio::select! {
            biased;
            response = &mut response => return Some(response),
            () = passed(limits.deadline, None) => {}
        }
        tokio::time::timeout(LAST_POLL, response).await.ok()
    }

    /// Stops the request where it is, and says what crossed the wire.
    fn end(&self) -> Traffic {
        self.stay.trunk.end(self.stay.id)
    }

    /// Waits until the whole request has left, or until `deadline`.
    pub(in crate::destination) async fn drain(&mut self, deadline: Uptime) {
        while !self.stay.trunk.is_out(self.stay.id) && !deadline.is_over() {
            tokio::select! {
                () = go_on(&mut self.pump) => {}
                () = tokio::time::sleep(DRAIN) => {}
            }
        }
    }
}

/// Hands on more of the body, until it has been handed over; then it never ends.
async fn go_on(pump: &mut Option<Pump>) {
    match pump {
        Some(going) => {
            going.await;
            *pump = None;
        }
        None => std::future::pending().await,
    }
}

/// Hands a body over, never more of it than may leave at once: what the library held back until the peer opens its window
/// would not be seen to wait.
async fn pump(mut send: SendStream<Bytes>, mut body: Bytes) {
    while !body.is_empty() {
        send.reserve_capacity(body.len().min(PIECE_BYTES));
        let Some(Ok(room)) = std::future::poll_fn(|cx| send.poll_capacity(cx)).await else { return };
        let piece = body.split_to(room.min(body.len()));
        if !piece.is_empty() && send.send_data(piece, body.is_empty()).is_err() {
            return;
        }
    }
    // Dropping a stream that has ended does not reset it.
}

fn timed_out(traffic: Traffic, limits: &Limits) -> Finding {
    if traffic.written == 0 {
        return unsent(traffic, limits);
    }
    let what = if traffic.missed { "stopped at its time" } else { "no answer in time" };
    Finding::because(Evidence::NoAnswer, Reason::Timeout).with_detail(crossed(what, traffic.written, traffic.read))
}

fn broken(error: &h2::Error, traffic: Traffic, limits: &Limits) -> Finding {
    let said = one_line(error.to_string().as_bytes(), SAID_MAX_BYTES);
    if traffic.written == 0 {
        return unsent(traffic, limits);
    }
    if traffic.untouched {
        return Finding::because(Evidence::NotSent, Reason::StreamRefused).with_detail(said);
    }
    let (evidence, reason) = match error.is_library() && error.is_reset() {
        true => (Evidence::UnknownAnswer, Reason::UnknownAnswer),
        false if traffic.missed => (Evidence::NoAnswer, Reason::Timeout),
        false => (Evidence::NoAnswer, Reason::ConnectionLost),
    };
    Finding::because(evidence, reason).with_detail(crossed(&said, traffic.written, traffic.read))
}

/// No byte of it left, and none will.
fn unsent(traffic: Traffic, limits: &Limits) -> Finding {
    if traffic.missed || limits.leave_by().is_over() {
        return too_late(limits);
    }
    let finding = Finding::because(Evidence::NotSent, Reason::NotReached);
    finding.with_detail("the connection closed before it took it")
}

/// A body as it comes in.
struct Incoming(RecvStream);

impl Body for Incoming {
    type Data = Bytes;
    type Error = h2::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, h2::Error>>> {
        let data = ready!(self.0.poll_data(cx));
        Poll::Ready(data.map(|data| {
            let data = data?;
            // Read is read: the peer may send as much again.
            self.0.flow_control().release_capacity(data.len())?;
            Ok(Frame::data(data))
        }))
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_end_stream()
    }
}
