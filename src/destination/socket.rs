//! The socket beneath TLS, which knows what really left.
//!
//! TLS takes a request in and lets it out by and by, so its own word on a write is not the socket's: a write that TLS
//! reports as broken may have let records out, and TLS may write while it is only asked to read (an alert, with the
//! records that wait before it). The [`Tap`] counts at the last place before the kernel, and can be barred there.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll};

use hyper_util::client::legacy::connect::{Connected, Connection};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// What the connection knows of its socket. Used by the connection's own task only, or under its wire's lock.
#[derive(Default)]
pub(super) struct Tap {
    /// Bytes that the kernel has taken.
    taken: AtomicU64,
    /// Whether writes are refused.
    barred: AtomicBool,
}

impl Tap {
    /// Bytes that the kernel has taken since the connection was opened, those of TLS itself among them.
    pub(super) fn taken(&self) -> u64 {
        self.taken.load(Ordering::Relaxed)
    }

    /// Does something during which nothing may be written, if so.
    pub(super) fn barred<T>(&self, barred: bool, act: impl FnOnce() -> T) -> T {
        self.barred.store(barred, Ordering::Relaxed);
        let done = act();
        self.barred.store(false, Ordering::Relaxed);
        done
    }
}

/// A socket with its tap.
pub(super) struct Socket<S> {
    stream: S,
    tap: Arc<Tap>,
}

impl<S> Socket<S> {
    pub(super) fn new(stream: S) -> Self {
        Self { stream, tap: Arc::default() }
    }

    pub(super) fn tap(&self) -> Arc<Tap> {
        Arc::clone(&self.tap)
    }

    fn write(&mut self, write: impl FnOnce(Pin<&mut S>) -> Poll<io::Result<usize>>) -> Poll<io::Result<usize>>
    where
        S: Unpin,
    {
        if self.tap.barred.load(Ordering::Relaxed) {
            return Poll::Ready(Err(io::ErrorKind::NotConnected.into()));
        }
        let polled = write(Pin::new(&mut self.stream));
        if let Poll::Ready(Ok(taken)) = polled {
            self.tap.taken.fetch_add(taken as u64, Ordering::Relaxed);
        }
        polled
    }
}

/// The meter says what there is to say of the connection.
impl<S> Connection for Socket<S> {
    fn connected(&self) -> Connected {
        Connected::new()
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Socket<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Socket<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        self.write(|stream| stream.poll_write(cx, buf))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.write(|stream| stream.poll_write_vectored(cx, bufs))
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
