//! A connection that takes requests.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use h2::client::SendRequest;
use hyper::Request;

use super::super::connector::Stream;
use super::super::socket::Tap;
use super::super::{IDLE, LOOK};
use super::flight::Flight;
use super::stream::Metered;
use super::trunk::Trunk;
use crate::clock::Uptime;

/// The longest head of an answer, in bytes.
const HEAD_MAX_BYTES: u32 = 256 * 1024;

/// The first stream that a client opens; those that follow are two apart (RFC 9113 section 5.1.1).
const FIRST: u32 = 1;

/// A connection that takes requests. The connection lives until the last of these is gone, or for as long as it is idle.
#[derive(Clone)]
pub(super) struct Link {
    send: SendRequest<Bytes>,
    trunk: Arc<Trunk>,
    /// The next stream.
    next: Arc<Mutex<u32>>,
}

impl Link {
    /// Says hello and begins to serve the connection. Does not wait for the peer's hello.
    pub(super) async fn new(stream: Stream, tap: Arc<Tap>) -> Result<Self, h2::Error> {
        let trunk = Trunk::new(tap);
        let (send, connection) = h2::client::Builder::new()
            .enable_push(false)
            .max_header_list_size(HEAD_MAX_BYTES)
            .handshake(Metered::new(stream, Arc::clone(&trunk)))
            .await?;
        let wire = Arc::clone(&trunk);
        tokio::spawn(async move {
            tokio::select! {
                // How it ended is known of each stream.
                _ = connection => {}
                () = idle(&wire) => {}
            }
            wire.shut();
        });
        Ok(Self { send, trunk, next: Arc::new(Mutex::new(FIRST)) })
    }

    pub(super) fn is_usable(&self, oldest: Duration) -> bool {
        self.trunk.is_usable(oldest)
    }

    /// Hands a request over, of which no byte may leave after `until`. `None` where the connection did not take it: nothing
    /// of it left, and nothing will.
    pub(super) fn hand_over(mut self, request: Request<()>, body: Bytes, until: Uptime) -> Option<Flight> {
        let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
        let id = *next;
        // Before the library knows of it: what it writes of a stream that the trunk does not know ends the connection.
        if !self.trunk.begin(id, until) {
            self.trunk.end(id);
            return None;
        }
        match self.send.send_request(request, body.is_empty()) {
            Ok((response, send)) if response.stream_id().as_u32() == id => {
                *next += 2;
                Some(Flight::new(id, Arc::clone(&self.trunk), response, send, body))
            }
            Ok(_) => {
                // It would be unknown to the trunk under its number.
                self.trunk.shut();
                self.trunk.end(id);
                None
            }
            Err(_) => {
                self.trunk.end(id);
                self.trunk.retire();
                None
            }
        }
    }
}

/// Until no stream has been open for too long.
async fn idle(trunk: &Trunk) {
    while !trunk.shut_if_idle(IDLE) {
        tokio::time::sleep(LOOK).await;
    }
}
