//! A stream of bytes behind the meter and the gate of its [`Trunk`].

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::trunk::Trunk;

/// A stream of bytes behind its meter. It may be TCP or TLS over TCP.
pub(super) struct Metered<S> {
    stream: S,
    trunk: Arc<Trunk>,
}

impl<S> Metered<S> {
    pub(super) fn new(stream: S, trunk: Arc<Trunk>) -> Self {
        Self { stream, trunk }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Metered<S> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let stream = Pin::new(&mut this.stream);
        this.trunk.read(cx, buf, |cx, buf| stream.poll_read(cx, buf))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Metered<S> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let stream = Pin::new(&mut this.stream);
        this.trunk.write(cx, &[buf], |cx| stream.poll_write(cx, buf))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let stream = Pin::new(&mut this.stream);
        let offered: Vec<&[u8]> = bufs.iter().map(|buf| &**buf).collect();
        this.trunk.write(cx, &offered, |cx| stream.poll_write_vectored(cx, bufs))
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let stream = Pin::new(&mut this.stream);
        this.trunk.flush(cx, |cx| stream.poll_flush(cx))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.trunk.may_say_goodbye() {
            Pin::new(&mut self.stream).poll_shutdown(cx)
        } else {
            // Dropping the stream closes the socket.
            Poll::Ready(Ok(()))
        }
    }
}
