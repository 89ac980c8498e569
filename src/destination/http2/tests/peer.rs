//! A peer that speaks HTTP/2 frame by frame, as a test says.

use std::future::Future;
use std::sync::Arc;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::core::target::Http;
use crate::destination::Destination;
use crate::destination::testing::{Peer, target};

pub(super) const DATA: u8 = 0;
pub(super) const HEADERS: u8 = 1;
pub(super) const RST_STREAM: u8 = 3;
pub(super) const SETTINGS: u8 = 4;
pub(super) const GOAWAY: u8 = 7;
pub(super) const END_STREAM: u8 = 1;
pub(super) const END_HEADERS: u8 = 4;

/// `:status` of 200, 204 and 500 in the static table of RFC 7541, and a literal 413.
pub(super) const OK: &[u8] = &[0x88];
pub(super) const NO_CONTENT: &[u8] = &[0x89];
pub(super) const TOO_LARGE: &[u8] = b"\x08\x03413";

/// The peer's end of one connection.
pub(super) struct Raw {
    stream: TcpStream,
}

/// A frame that says something of a stream, or of the end of all.
pub(super) struct Frame {
    pub(super) kind: u8,
    pub(super) flags: u8,
    pub(super) stream: u32,
    pub(super) payload: Vec<u8>,
}

impl Raw {
    /// Hears the client's hello and says its own, with these settings.
    pub(super) async fn hello(mut stream: TcpStream, settings: &[(u16, u32)]) -> Self {
        let _ = stream.read_exact(&mut [0; 24]).await;
        let mut raw = Self { stream };
        let payload: Vec<u8> =
            settings.iter().flat_map(|(id, value)| [&id.to_be_bytes()[..], &value.to_be_bytes()].concat()).collect();
        raw.put(SETTINGS, 0, 0, &payload).await;
        raw
    }

    pub(super) async fn put(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
        let length = u32::try_from(payload.len()).expect("short") << 8 | u32::from(kind);
        let frame = [&length.to_be_bytes()[..], &[flags], &stream.to_be_bytes(), payload].concat();
        let _ = self.stream.write_all(&frame).await;
    }

    /// A whole answer without a body.
    pub(super) async fn answer(&mut self, stream: u32, head: &[u8]) {
        self.put(HEADERS, END_HEADERS | END_STREAM, stream, head).await;
    }

    /// The next frame of a stream; settings are agreed to, what governs flow is passed over. `None` at the end.
    pub(super) async fn next(&mut self) -> Option<Frame> {
        loop {
            let mut header = [0; 9];
            self.stream.read_exact(&mut header).await.ok()?;
            let [a, b, c, kind, flags, s0, s1, s2, s3] = header;
            let mut payload = vec![0; usize::from(a) << 16 | usize::from(b) << 8 | usize::from(c)];
            self.stream.read_exact(&mut payload).await.ok()?;
            match kind {
                SETTINGS if flags & 1 == 0 => self.put(SETTINGS, 1, 0, &[]).await,
                DATA | HEADERS | RST_STREAM | GOAWAY => {
                    return Some(Frame { kind, flags, stream: u32::from_be_bytes([s0, s1, s2, s3]), payload });
                }
                _ => {}
            }
        }
    }

    /// The next whole request; its stream. `None` at the end.
    pub(super) async fn request(&mut self) -> Option<u32> {
        loop {
            let frame = self.next().await?;
            if matches!(frame.kind, DATA | HEADERS) && frame.flags & END_STREAM != 0 {
                return Some(frame.stream);
            }
        }
    }

    /// Closes with RST instead of FIN.
    pub(super) fn reset(self) {
        self.stream.set_zero_linger().expect("a socket");
    }
}

/// A peer whose connections begin with that hello.
pub(super) async fn speaking<F>(
    settings: &'static [(u16, u32)],
    serve: impl Fn(Raw, usize) -> F + Send + Sync + 'static,
) -> Peer
where
    F: Future<Output = ()> + Send + 'static,
{
    let serve = Arc::new(serve);
    Peer::new(move |conversation, number| {
        let serve = Arc::clone(&serve);
        async move { serve(Raw::hello(conversation.stream, settings).await, number).await }
    })
    .await
}

/// It, by HTTP/2.
pub(super) fn destination(peer: &Peer) -> Arc<Destination> {
    let mut target = target(&format!("http://{}", peer.address));
    target.http = Http::Two;
    Arc::new(Destination::new(target).expect("usable"))
}
