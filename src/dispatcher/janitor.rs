//! Forgetting what is old enough, a little at a time; noticing what nobody takes, and queues that nobody moves on.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::Memory;
use super::queues;
use super::roster::Roster;
use crate::clock::Uptime;
use crate::ledger::{Keep, Ledger, LedgerError, Pruned, overdue_elsewhere};
use crate::log::events;

/// Between two batches of a round: claims go first.
const BREATH: Duration = Duration::from_millis(200);

/// Between two looks for serial queues that nobody moves on: none are expected.
const MEND_EVERY: Duration = Duration::from_secs(60);

/// Looks after the ledger every `round` until the drain begins. Where it doesn't answer, that is said elsewhere, and the
/// next round goes on. What has been due for two rounds is overdue.
pub async fn run(ledger: Ledger, rosters: watch::Receiver<Arc<Roster>>, round: Duration, drain: CancellationToken) {
    let (mut told, mut was_refused) = (BTreeSet::new(), false);
    let (mut queue, mut mended) = (queues::mend(&ledger, None).await, Uptime::now());
    // Daemons that are started together don't come all at once.
    let mut wait = round.mul_f64(rand::random_range(0.2..1.0));
    loop {
        tokio::select! {
            () = tokio::time::sleep(wait) => wait = round,
            () = drain.cancelled() => return,
        }
        if Uptime::now().since(mended) >= MEND_EVERY {
            (queue, mended) = (queues::mend(&ledger, queue).await, Uptime::now());
        }
        // What is in force now.
        let roster = Arc::clone(&rosters.borrow());
        let memory = &roster.memory;
        let ours: Vec<&str> = memory.iter().map(|memory| memory.operation.as_str()).collect();
        if let Ok(waiting) = overdue_elsewhere(&ledger, &ours, 2 * round).await {
            for operation in waiting {
                if told.insert(operation.clone()) {
                    events::nobody_takes(&operation);
                }
            }
        }
        tokio::select! {
            pruned = prune(&ledger, memory) => match pruned {
                Ok(pruned) => {
                    was_refused = false;
                    if pruned != (0, 0) {
                        events::pruned(pruned.0, pruned.1);
                    }
                }
                Err(error) if error.is_session() => {}
                // A missing grant stays missing: once is enough.
                Err(error) => {
                    if !std::mem::replace(&mut was_refused, true) {
                        events::prune_refused(&error);
                    }
                }
            },
            () = drain.cancelled() => return,
        }
    }
}

/// One round: batches until nothing is left, or until another daemon is at it.
async fn prune(ledger: &Ledger, memory: &[Memory]) -> Result<(u64, u64), LedgerError> {
    let keeps: Vec<Keep<'_>> = memory
        .iter()
        .map(|memory| Keep { operation: &memory.operation, payload: memory.payload, identity: memory.identity })
        .collect();
    let (mut all_actions, mut all_tombstones) = (0, 0);
    loop {
        match ledger.prune(&keeps).await? {
            Pruned::Busy | Pruned::Done { actions: 0, tombstones: 0 } => return Ok((all_actions, all_tombstones)),
            Pruned::Done { actions, tombstones } => {
                all_actions += actions;
                all_tombstones += tombstones;
            }
        }
        tokio::time::sleep(BREATH).await;
    }
}
