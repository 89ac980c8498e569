//! The stats line.

use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::health::Health;
use super::tally::Tally;
use crate::clock::Uptime;
use crate::ledger::Ledger;
use crate::log::events;

/// Writes a line every `interval` until the drain begins: the figures, or that the ledger is still lost.
pub async fn run(ledger: Ledger, tally: Arc<Tally>, health: Health, interval: Duration, drain: CancellationToken) {
    let (mut before, mut since, mut short) = (tally.deliveries(), Uptime::now(), false);
    loop {
        tokio::select! {
            () = tokio::time::sleep(interval) => {}
            () = drain.cancelled() => return,
        }
        if let Some((lasted, error)) = health.lost_for(interval) {
            events::ledger_still_lost(lasted, &error);
            continue;
        }
        let (missing, pool_size) = ledger.sessions_missing();
        if missing > 0 && !std::mem::replace(&mut short, true) {
            events::sessions_short(pool_size.saturating_sub(missing), pool_size);
        }
        if let Ok(open) = ledger.open_rows().await {
            let (now, at) = (tally.deliveries(), Uptime::now());
            let delivered = now - before;
            let seconds = at.since(since).as_secs_f64().max(0.001);
            #[allow(clippy::cast_precision_loss, reason = "a rate for people")]
            let per_s = (delivered as f64 / seconds * 10.0).round() / 10.0;
            events::stats(&events::Stats { delivered, per_s, open });
            (before, since) = (now, at);
        }
    }
}
