//! Tells the ledger that this daemon is there and how its destinations stand, and hears what is asked of it. A write at
//! each change and with each line of figures; a look for requests only while something is paused.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::pauses::Pauses;
use super::roster::Roster;
use super::slots::Counts;
use crate::clock::Uptime;
use crate::core::reason::Reason;
use crate::core::time::Timestamp;
use crate::ledger::{DestinationReport, Ledger, LedgerError, OPEN};
use crate::log::events;

/// While something is paused: between two looks for requests.
const ASK: Duration = Duration::from_secs(1);
/// After a change: several that come together are told together.
const TOGETHER: Duration = Duration::from_millis(100);
/// Where the ledger didn't answer: until the next try.
const AGAIN: Duration = Duration::from_secs(5);
/// It is believed for so many intervals, and never shorter than [`BELIEVED`].
const INTERVALS: u32 = 3;
const BELIEVED: Duration = Duration::from_secs(15);

/// Who tells.
pub struct Presence {
    /// Whom.
    pub ledger: Ledger,
    /// Of what.
    pub rosters: watch::Receiver<Arc<Roster>>,
    /// How it stands.
    pub pauses: Arc<Pauses>,
    /// How much is under way.
    pub counts: Arc<Counts>,
    /// At least every so often.
    pub interval: Duration,
    /// Until then.
    pub drain: CancellationToken,
}

impl Presence {
    /// Tells and hears until the drain begins, and then says that this daemon goes. Where the ledger doesn't answer,
    /// that is said elsewhere.
    pub async fn run(mut self) {
        let begun = Uptime::now();
        let mut changes = self.pauses.changes();
        // Requests that are older concern nobody.
        let mut heard: Option<Timestamp> = None;
        loop {
            let _ = (changes.borrow_and_update(), self.rosters.borrow_and_update());
            let told = self.tell(begun).await;
            heard = heard.or(told.as_ref().ok().copied());
            let next = Uptime::now().plus(if told.is_ok() { self.interval } else { AGAIN.min(self.interval) });
            loop {
                let paused = self.some_is_paused();
                tokio::select! {
                    () = tokio::time::sleep(next.left()) => break,
                    Ok(()) = changes.changed() => break tokio::time::sleep(TOGETHER).await,
                    Ok(()) = self.rosters.changed() => break,
                    () = tokio::time::sleep(ASK), if paused => {
                        // Where the ledger doesn't answer, the next look does as well.
                        heard = self.hear(heard).await.unwrap_or(heard);
                    }
                    () = self.drain.cancelled() => {
                        let _ = self.ledger.leave().await;
                        return;
                    }
                }
            }
        }
    }

    async fn tell(&self, begun: Uptime) -> Result<Timestamp, LedgerError> {
        let now = Uptime::now();
        let destinations = self.destinations(now);
        let believed = (self.interval * INTERVALS).max(BELIEVED);
        self.ledger.report(env!("CARGO_PKG_VERSION"), now.since(begun), believed, &destinations).await
    }

    /// Whether anything is paused that somebody could want probed: what the configuration has no more is not.
    fn some_is_paused(&self) -> bool {
        let roster = self.rosters.borrow();
        self.pauses.paused().iter().zip(&roster.destination_max).any(|(pause, max)| pause.is_some() && *max > 0)
    }

    fn destinations(&self, now: Uptime) -> Vec<DestinationReport> {
        let roster = self.rosters.borrow();
        let paused = self.pauses.paused();
        let in_flight = self.counts.by_destination();
        let report = |(number, name): (usize, &String)| {
            let max_in_flight = roster.destination_max[number];
            let pause = paused.get(number).copied().flatten();
            DestinationReport {
                destination: name.clone(),
                state: pause.map_or(OPEN, |pause| pause.cause.why.as_str()),
                since: pause.map(|pause| now.since(pause.since)),
                reason: pause.and_then(|pause| pause.cause.reason).map(Reason::code),
                status: pause.and_then(|pause| pause.cause.status),
                probes: pause.map_or(0, |pause| pause.probes),
                in_flight: in_flight.get(number).copied().unwrap_or(0),
                max_in_flight,
            }
        };
        // One that the configuration has no more is none of ours.
        let ours = roster.names.iter().enumerate().filter(|(number, _)| roster.destination_max[*number] > 0);
        ours.map(report).collect()
    }

    /// Probes what somebody asks to be probed. Returns when the youngest request was made.
    async fn hear(&self, heard: Option<Timestamp>) -> Result<Option<Timestamp>, LedgerError> {
        let Some(mut heard) = heard else { return Ok(None) };
        let paused = self.pauses.paused();
        for request in self.ledger.resume_requests(heard).await? {
            heard = heard.max(request.requested_at);
            let number = self.rosters.borrow().names.iter().position(|name| *name == request.destination);
            let pause = number.and_then(|number| Some((number, paused.get(number).copied().flatten()?)));
            // One that was made before the pause began was about another.
            if let Some((number, pause)) = pause
                && Uptime::now().since(pause.since) >= request.age
            {
                events::probe_requested(&request.destination);
                self.pauses.probe_soon(number);
            }
        }
        Ok(Some(heard))
    }
}
