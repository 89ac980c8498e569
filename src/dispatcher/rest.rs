//! Sleeping until there is something to claim, and being woken in time.

use std::time::Duration;

use tokio::task::JoinHandle;

use super::reconnect::Outage;
use crate::clock::Uptime;
use crate::ledger::{Bell, BellAt, Door, Ledger, LedgerError};
use crate::log::events;

/// Between two looks while an enqueue is in flight.
const SHORTEST_LOOK: Duration = Duration::from_millis(2);
const LONGEST_LOOK: Duration = Duration::from_millis(100);

/// What to do instead of sleeping.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rest {
    /// Nothing that the last claim could not see goes unheard: sleep.
    Sleep,
    /// Whatever was committed before the door was kept rang nobody: look once more, then sleep.
    LookThenSleep,
    /// An enqueue is in flight: look again after this.
    LookAfter(Duration),
}

/// The bell, or polling where there is none.
pub struct Sleeper {
    at: Option<BellAt>,
    ledger: Ledger,
    bell: Option<Bell>,
    /// One that is being opened. What is due doesn't wait for it.
    opening: Option<JoinHandle<Result<Bell, LedgerError>>>,
    outage: Option<(Outage, Uptime)>,
    look: Duration,
}

impl Sleeper {
    /// `at` is where the bell hears what is rung at `ledger`; `None` polls only.
    pub fn new(at: Option<BellAt>, ledger: Ledger) -> Self {
        Self { at, ledger, bell: None, opening: None, outage: None, look: SHORTEST_LOOK }
    }

    /// Before the first claim: opens the bell, where there is to be one.
    ///
    /// # Errors
    /// Where it can never ring, as it is configured. One that is not to be had now is waited for.
    pub async fn begin(&mut self) -> Result<(), LedgerError> {
        let (None, Some(at)) = (&self.bell, &self.at) else { return Ok(()) };
        match Bell::open(at, &self.ledger).await {
            Ok(bell) => self.bell = Some(bell),
            Err(error) if error.is_config() => return Err(error),
            Err(error) => self.lost(&error),
        }
        Ok(())
    }

    /// Before sleeping, when a claim has found nothing: tries to keep the door.
    pub async fn approach(&mut self) -> Rest {
        if self.bell.as_ref().is_some_and(Bell::is_gone) {
            self.lost(&LedgerError::Unreachable("the listening session has ended".to_owned()));
        }
        self.connect();
        // Without a bell nothing is heard, and looking twice at once helps nobody.
        let Some(bell) = &mut self.bell else { return Rest::Sleep };
        let door = bell.approach().await;
        if let Ok(Door::Kept | Door::Ours | Door::Theirs) = door {
            self.look = SHORTEST_LOOK;
        }
        match door {
            Ok(Door::Kept) => Rest::Sleep,
            Ok(Door::Ours | Door::Theirs) => Rest::LookThenSleep,
            Ok(Door::EnqueueInFlight) => {
                let look = self.look;
                self.look = (look * 2).min(LONGEST_LOOK);
                Rest::LookAfter(look)
            }
            Err(error) => {
                self.lost(&error);
                Rest::Sleep
            }
        }
    }

    /// Sleeps until the bell rings, or one that was lost is there again or is not to be had; for ever where there is none.
    pub async fn rung(&mut self) {
        match (&self.bell, &mut self.opening) {
            (Some(bell), _) => bell.rung().await,
            (None, Some(opening)) => {
                let opened = opening.await;
                self.opening = None;
                self.opened(opened.unwrap_or_else(|ended| Err(LedgerError::Unreachable(ended.to_string()))));
            }
            (None, None) => std::future::pending().await,
        }
    }

    /// There is something to do: leaves the door to somebody who has nothing.
    pub async fn leave(&mut self) {
        if let Some(bell) = &mut self.bell
            && let Err(error) = bell.leave().await
        {
            self.lost(&error);
        }
    }

    /// The longest sleep that leaves a lost bell no longer lost than it must be.
    pub fn retry_in(&self) -> Duration {
        match (&self.bell, &self.opening, &self.outage) {
            (None, None, Some((_, next))) => next.left().max(SHORTEST_LOOK),
            (Some(_), _, _) | (None, Some(_), _) | (None, None, None) => Duration::MAX,
        }
    }

    /// Begins to open one, where there is none and it is time.
    fn connect(&mut self) {
        let (None, None, Some(at)) = (&self.bell, &self.opening, &self.at) else { return };
        if self.outage.as_ref().is_some_and(|(_, next)| !next.is_over()) {
            return;
        }
        let (at, ledger) = (at.clone(), self.ledger.clone());
        self.opening = Some(tokio::spawn(async move { Bell::open(&at, &ledger).await }));
    }

    fn opened(&mut self, opened: Result<Bell, LedgerError>) {
        match opened {
            Ok(bell) => {
                self.bell = Some(bell);
                if self.outage.take().is_some() {
                    events::doorbell_back();
                }
            }
            Err(error) => self.lost(&error),
        }
    }

    fn lost(&mut self, error: &LedgerError) {
        self.bell = None;
        if self.outage.is_none() {
            events::doorbell_lost(error);
        }
        let (outage, next) = self.outage.get_or_insert_with(|| (Outage::begin(), Uptime::now()));
        *next = Uptime::now().plus(outage.wait());
    }
}
