//! A stream behind the meter and the gate of its [`Wire`].

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use hyper_util::client::legacy::connect::{Connected, Connection};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::socket::Tap;
use super::wire::Wire;

/// A stream behind its meter. The stream may be TCP or TLS over TCP.
pub(super) struct Metered<S> {
    stream: S,
    wire: Arc<Wire>,
}

impl<S> Metered<S> {
    /// `tap` is that of the socket at the bottom.
    pub(super) fn new(stream: S, tap: Arc<Tap>) -> Self {
        Self { stream, wire: Wire::new(tap) }
    }

    #[cfg(test)]
    pub(super) fn wire(&self) -> Arc<Wire> {
        Arc::clone(&self.wire)
    }
}

impl<S> Drop for Metered<S> {
    fn drop(&mut self) {
        self.wire.close();
    }
}

/// Hands the wire to whoever captures the connection.
impl<S> Connection for Metered<S> {
    fn connected(&self) -> Connected {
        Connected::new().extra(Arc::clone(&self.wire))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Metered<S> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let stream = Pin::new(&mut this.stream);
        this.wire.read(|| {
            let before = buf.filled().len();
            let polled = stream.poll_read(cx, buf);
            (polled, buf.filled().len() - before)
        })
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Metered<S> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let stream = Pin::new(&mut this.stream);
        this.wire.write(cx, buf.len(), |cx| stream.poll_write(cx, buf))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let stream = Pin::new(&mut this.stream);
        let offered = bufs.iter().map(|buf| buf.len()).sum();
        this.wire.write(cx, offered, |cx| stream.poll_write_vectored(cx, bufs))
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let stream = Pin::new(&mut this.stream);
        this.wire.flush(cx, |cx| stream.poll_flush(cx))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.wire.may_say_goodbye() {
            Pin::new(&mut self.stream).poll_shutdown(cx)
        } else {
            // Dropping the stream closes the socket.
            Poll::Ready(Ok(()))
        }
    }
}
