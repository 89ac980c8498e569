//! Between two claims: waiting for slots, or sleeping until something is due.

use std::time::Duration;

use super::claimer::Claimer;
use super::rest::Rest;
use super::walk::{Found, SHORTEST_LOOK};
use crate::ledger::{LedgerError, next_due_in};

/// While more is due than slots are free: how long a claim waits for slots to come together.
const COALESCE: Duration = Duration::from_millis(3);

/// Nobody hears the bell while slots or tokens are waited for. Where streams that are not full could take what it rings
/// for, that is borne for so long: what comes faster than this is worth more than the way to the door and back.
const DEAF: Duration = Duration::from_millis(5);

/// Tokens that come within that time are waited for awake, where nothing else could be taken meanwhile.
const TOKENS: Duration = Duration::from_millis(60);

impl Claimer {
    /// Sleeps as long as there is nothing to claim.
    pub async fn rest(&mut self, found: Found) {
        if found.some || found.hungry {
            self.sleeper.leave().await;
        }
        if found.hungry || found.partly {
            return self.await_slots(found).await;
        }
        if found.some || found.passed_over {
            return;
        }
        // More is due, and the next tokens are not far: not worth the door.
        let opens = self.opens_in();
        if self.walk.hungry.contains(&true) && opens < self.deaf_for() {
            tokio::select! {
                () = tokio::time::sleep(opens) => {}
                () = self.stop.drain.cancelled() => {}
            }
            return;
        }
        match self.sleeper.approach().await {
            Rest::LookAfter(wait) => {
                tokio::select! {
                    () = tokio::time::sleep(wait) => {}
                    () = self.stop.drain.cancelled() => {}
                }
            }
            Rest::LookThenSleep => match self.look().await {
                Ok(Found { some: false, hungry: false, .. }) => self.sleep(found.full).await,
                // Somebody else sleeps for us; the next claim says what else there is.
                Ok(_) | Err(_) => self.sleeper.leave().await,
            },
            Rest::Sleep => self.sleep(found.full).await,
        }
    }

    /// How long nobody need hear the bell.
    fn deaf_for(&mut self) -> Duration {
        let open = self.open();
        if self.slots.room(&open).contains(&true) { DEAF } else { TOKENS }
    }

    /// Until something is due, the bell rings or there is another reason to look; `full`: or a slot is free.
    async fn sleep(&mut self, full: bool) {
        let at_most = self.until_due().await.min(self.sleeper.retry_in());
        tokio::select! {
            () = tokio::time::sleep(at_most) => {}
            () = self.sleeper.rung() => {}
            () = self.turns.notified() => {}
            () = self.slots.freed(), if full => {}
            Ok(()) = self.rosters.changed() => {}
            () = self.pauses.sooner() => {}
            () = self.stop.drain.cancelled() => {}
        }
    }

    /// A whole walk over the tenants, or as much of it as finds something.
    async fn look(&mut self) -> Result<Found, LedgerError> {
        loop {
            let found = self.claim().await?;
            let goes_on = found.partly || found.passed_over;
            if found.some || !goes_on || self.stop.drain.is_cancelled() {
                return Ok(found);
            }
        }
    }

    /// More is due than there were slots for: waits until a claim is worth its way.
    async fn await_slots(&self, found: Found) {
        if found.full && !found.partly {
            let longest = if found.others { DEAF } else { self.settings.poll_interval };
            let wait = self.opens_in().min(longest);
            tokio::select! {
                () = self.slots.freed() => {}
                () = tokio::time::sleep(wait) => {}
                () = self.pauses.sooner() => {}
                () = self.stop.drain.cancelled() => return,
            }
        }
        let enough = self.settings.max_in_flight.div_ceil(4) * 3;
        let coalesce = tokio::time::sleep(COALESCE);
        tokio::pin!(coalesce);
        while self.settings.max_in_flight.saturating_sub(self.slots.in_use()) < enough {
            tokio::select! {
                () = self.slots.freed() => {}
                () = &mut coalesce => return,
                () = self.stop.drain.cancelled() => return,
            }
        }
    }

    /// How long until something is due, at most the poll interval. What waits for a slot or a probe is not due here.
    async fn until_due(&mut self) -> Duration {
        let open = self.open();
        let room = self.slots.room(&open);
        let open: Vec<_> = (self.slots.streams().iter().enumerate())
            .filter(|(at, _)| room[*at])
            .map(|(at, stream)| {
                let operation = self.roster.routes[stream.operation].operation.name.as_str();
                (operation, stream.asks, self.edge.since(at, false))
            })
            .collect();
        let due = next_due_in(&self.ledger, &open).await.ok().flatten().unwrap_or(Duration::MAX);
        // What is due and yet was not claimed is locked by somebody else: look again soon, then less and less often. Or
        // it waits for a slot of its tenant, which rings.
        let due = match due.is_zero() {
            true if self.slots.some_tenant_is_full() => Duration::MAX,
            true => self.walk.locked_out(),
            false => due.max(SHORTEST_LOOK),
        };
        due.min(self.opens_in().max(SHORTEST_LOOK))
            .min(self.orphans.next_look_in())
            .min(self.edge.next_look_in(&room).max(SHORTEST_LOOK))
            .min(self.settings.poll_interval)
    }
}
