//! A socket that hyper reads and writes while we keep a hand on it.

use std::io::{self, ErrorKind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::sleep;

use super::behaviour::Ending;

/// One connection. Clones are the same one; it closes with the last.
#[derive(Clone, Debug)]
pub(super) struct Wire(Arc<TcpStream>);

impl Wire {
    pub(super) fn new(stream: TcpStream) -> Self {
        // Small answers should not wait for each other; a connection that is gone already is met again soon enough.
        let _ = stream.set_nodelay(true);
        Self(Arc::new(stream))
    }

    /// Sends these bytes past hyper.
    pub(super) async fn say(&self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            self.0.writable().await?;
            match self.0.try_write(bytes) {
                Ok(written) => bytes = &bytes[written..],
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Returns when the caller has closed the connection, or at least its side of it.
    pub(super) async fn gone(&self) {
        loop {
            match self.0.peek(&mut [0]).await {
                Ok(0) | Err(_) => return,
                // Something that nobody reads stands before the end; only the kernel knows whether that has come.
                Ok(_) => match self.0.ready(Interest::READABLE).await {
                    Ok(ready) if !ready.is_read_closed() => sleep(Duration::from_millis(20)).await,
                    Ok(_) | Err(_) => return,
                },
            }
        }
    }

    /// Prepares for what dropping the connection will look like. With [`Ending::Hold`] it waits for the caller's end.
    pub(super) async fn end(&self, ending: Ending) {
        match ending {
            Ending::Hold => self.gone().await,
            Ending::Close => {}
            // Closing with a zero linger time sends RST.
            Ending::Reset => drop(self.0.set_zero_linger()),
        }
    }
}

impl AsyncRead for Wire {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        loop {
            ready!(self.0.poll_read_ready(cx))?;
            match self.0.try_read(buf.initialize_unfilled()) {
                Ok(read) => {
                    buf.advance(read);
                    return Poll::Ready(Ok(()));
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
    }
}

impl AsyncWrite for Wire {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        loop {
            ready!(self.0.poll_write_ready(cx))?;
            match self.0.try_write(bytes) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                result => return Poll::Ready(result),
            }
        }
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    /// FIN is sent when the last clone is dropped, which follows.
    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
