//! Hearing the doorbell, as a dispatcher does.

use std::future::poll_fn;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio_postgres::{AsyncMessage, Client, Config, NoTls};

use super::Database;

/// A session that listens.
pub struct Ears {
    _session: Client,
    rings: mpsc::Receiver<()>,
}

impl Ears {
    /// Hears what rings from now on.
    pub async fn at(db: &Database) -> Self {
        let (ring, rings) = mpsc::channel(1024);
        let (session, mut connection) =
            db.url.parse::<Config>().expect("a URL").connect(NoTls).await.expect("a session");
        tokio::spawn(async move {
            while let Some(Ok(message)) = poll_fn(|cx| connection.poll_message(cx)).await {
                if matches!(message, AsyncMessage::Notification(_)) {
                    let _ = ring.try_send(());
                }
            }
        });
        session.batch_execute("listen outbox").await.expect("listening");
        Self { _session: session, rings }
    }

    /// Whether it rings within this time.
    pub async fn hear_within(&mut self, time: Duration) -> bool {
        tokio::time::timeout(time, self.rings.recv()).await.is_ok()
    }
}
