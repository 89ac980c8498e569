//! An answer, read as far as anybody needs it.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt as _;
use hyper::StatusCode;
use hyper::body::Body as HttpBody;
use hyper::header::HeaderMap;
use serde_json::Value;

use super::judge::Reads;
use crate::clock::Uptime;

/// How much of a body is read that nothing decides by, in bytes and time: enough to explain itself in a log and to
/// leave the connection usable.
const UNDECIDING_MAX_BYTES: usize = 64 * 1024;
const UNDECIDING_PATIENCE: Duration = Duration::from_millis(250);

/// An answer whose head is complete.
pub(super) struct Answer {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    pub(super) body: Body,
}

/// What was read of a body.
pub(super) struct Body {
    pub(super) bytes: Bytes,
    pub(super) end: End,
    /// What it says, where it had to be known, is complete and is JSON.
    pub(super) json: Option<Value>,
}

/// Why reading stopped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum End {
    /// At its end.
    Complete,
    /// At the limit.
    TooLong,
    /// At the deadline.
    TimedOut,
    /// The connection was lost, or what came is not HTTP.
    Broken,
}

impl End {
    /// What it says to a person; fits after "the answer's body".
    pub(super) const fn sentence(self) -> &'static str {
        match self {
            Self::Complete => "is complete",
            Self::TooLong => "is longer than is read",
            Self::TimedOut => "did not end in time",
            Self::Broken => "broke off",
        }
    }
}

/// Reads at most `max` bytes until `deadline`; less where nothing decides by them. What is left unread costs the
/// connection, or the stream: it is closed when the rest is dropped.
pub(super) async fn read_body(
    body: impl HttpBody<Data = Bytes> + Unpin,
    reads: Reads,
    max: usize,
    deadline: Uptime,
) -> Body {
    let (max, patience) = match reads {
        Reads::Whole => (max, deadline.left()),
        Reads::Excerpt | Reads::Nothing => (max.min(UNDECIDING_MAX_BYTES), deadline.left().min(UNDECIDING_PATIENCE)),
    };
    let mut read = Collected::default();
    let end = if body.is_end_stream() {
        End::Complete
    } else {
        tokio::time::timeout(patience, read.collect(body, max)).await.unwrap_or(End::TimedOut)
    };
    let bytes = read.into_bytes();
    let json = match reads {
        Reads::Whole if end == End::Complete => serde_json::from_slice(&bytes).ok(),
        Reads::Whole | Reads::Excerpt | Reads::Nothing => None,
    };
    Body { bytes, end, json }
}

/// Most bodies come in one piece, which needs no copy.
#[derive(Default)]
struct Collected {
    first: Bytes,
    rest: BytesMut,
}

impl Collected {
    async fn collect(&mut self, mut body: impl HttpBody<Data = Bytes> + Unpin, max: usize) -> End {
        while let Some(frame) = body.frame().await {
            let Ok(frame) = frame else { return End::Broken };
            let Ok(mut data) = frame.into_data() else { continue };
            let room = max - self.first.len() - self.rest.len();
            let too_long = data.len() > room;
            data.truncate(room);
            if self.first.is_empty() {
                self.first = data;
            } else {
                self.rest.extend_from_slice(&data);
            }
            if too_long {
                return End::TooLong;
            }
        }
        End::Complete
    }

    fn into_bytes(self) -> Bytes {
        if self.rest.is_empty() {
            return self.first;
        }
        let mut all = BytesMut::with_capacity(self.first.len() + self.rest.len());
        all.extend_from_slice(&self.first);
        all.extend_from_slice(&self.rest);
        all.freeze()
    }
}
