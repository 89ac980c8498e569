//! Whether somebody wants a long command to stop.

use tokio::signal::unix::{SignalKind, signal};

/// Ends with the first signal that asks to stop.
pub async fn interrupted() -> Box<dyn std::error::Error + Send + Sync> {
    let signals = async {
        let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
        let mut hangup = signal(SignalKind::hangup())?;
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
            _ = hangup.recv() => {}
        }
        Ok::<_, std::io::Error>(())
    };
    match signals.await {
        Ok(()) => "interrupted".into(),
        Err(error) => error.into(),
    }
}
