//! Whether the ledger answers, as claims and settles find it. Said once each way, whoever finds out first.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, watch};

use super::reconnect::Outage;
use crate::ledger::LedgerError;
use crate::log::events;

/// Who asks the ledger.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Who {
    /// The claims.
    Claims,
    /// The settles.
    Settles,
}

impl Who {
    /// What takes longer is as good as not answered: nothing is claimed, and nothing sent, until it has been. A claim may
    /// have much to look through, and nothing waits for it but what it claims.
    const fn slow(self) -> Duration {
        match self {
            Self::Claims => Duration::from_secs(10),
            Self::Settles => Duration::from_secs(2),
        }
    }

    const fn asks_for(self) -> &'static str {
        match self {
            Self::Claims => "claim",
            Self::Settles => "settle",
        }
    }
}

#[derive(Default)]
struct Found {
    claims: Option<Outage>,
    settles: Option<Outage>,
    /// Claims and settles that take too long, and since when any does.
    slow: u32,
    slowness: Option<Outage>,
    /// What was said last.
    error: String,
}

impl Found {
    fn is_well(&self) -> bool {
        self.claims.is_none() && self.settles.is_none() && self.slow == 0
    }

    fn outage(&mut self, who: Who) -> &mut Option<Outage> {
        match who {
            Who::Claims => &mut self.claims,
            Who::Settles => &mut self.settles,
        }
    }
}

/// The ledger's health. Shared.
#[derive(Clone)]
pub struct Health {
    found: Arc<Mutex<Found>>,
    /// Whether all evidence so far could be written. While it could not, nothing is claimed.
    settles: watch::Sender<bool>,
    /// A settle was told what no waiting mends, perhaps.
    doubted: Arc<Notify>,
}

impl Health {
    /// Good.
    pub fn new() -> Self {
        Self { found: Arc::default(), settles: watch::Sender::new(true), doubted: Arc::default() }
    }

    /// The ledger did not answer `who`. Returns how long to wait before the next try.
    pub fn lost(&self, who: Who, error: &LedgerError) -> Duration {
        let mut found = self.lock();
        if found.is_well() && !error.is_stranger() {
            events::ledger_lost(error);
        }
        found.error = error.to_string();
        if who == Who::Settles {
            self.look_at(error);
        }
        let wait = found.outage(who).get_or_insert_with(Outage::begin).wait();
        self.publish(&found);
        wait
    }

    /// How long it has been lost, where that is `long` or longer, and what was said last.
    pub fn lost_for(&self, long: Duration) -> Option<(Duration, String)> {
        let found = self.lock();
        let outages = [&found.claims, &found.settles, &found.slowness];
        let lasted = outages.into_iter().flatten().map(Outage::lasted).max()?;
        (lasted >= long).then(|| (lasted, found.error.clone()))
    }

    /// After such an error of a settle's the claims ask whether this is still our ledger.
    pub fn look_at(&self, error: &LedgerError) {
        if error.is_stranger() || error.is_of_the_ledger() {
            self.doubted.notify_one();
        }
    }

    /// The ledger answered `who`, and nothing that `who` has to write waits any more.
    pub fn well(&self, who: Who) {
        let mut found = self.lock();
        let over = found.outage(who).take();
        self.over(&found, over);
    }

    /// What becomes of what `who` asked. While it takes long nothing is claimed, and `hurry` is called once.
    pub async fn unless_slow<T>(
        &self,
        who: Who,
        asked: impl Future<Output = Result<T, LedgerError>>,
        hurry: impl FnOnce(),
    ) -> Result<T, LedgerError> {
        let mut asked = std::pin::pin!(asked);
        if let Ok(done) = tokio::time::timeout(who.slow(), &mut asked).await {
            return done;
        }
        {
            let mut found = self.lock();
            let error = format!("no answer to a {} for {} s", who.asks_for(), who.slow().as_secs());
            if found.is_well() {
                events::ledger_lost(&error);
            }
            found.error = error;
            found.slow += 1;
            found.slowness.get_or_insert_with(Outage::begin);
            self.publish(&found);
        }
        hurry();
        let mut slow = Slow { health: self, who, end: End::GivenUp };
        let answer = asked.await;
        slow.end = match &answer {
            Err(error) if error.is_session() => End::Lost,
            Ok(_) | Err(_) => End::Answered,
        };
        answer
    }

    /// Waits until no evidence waits to be written.
    pub async fn settled(&self) {
        // The sender is ours, so it cannot have gone.
        let _ = self.settles.subscribe().wait_for(|well| *well).await;
    }

    /// Waits until a settle has met an error after which this may not be the ledger that it was, or have another schema.
    /// Nothing is claimed then, so no claim finds out.
    pub async fn doubted(&self) {
        self.doubted.notified().await;
    }

    /// Whether no evidence waits to be written.
    pub fn is_settled(&self) -> bool {
        *self.settles.borrow()
    }

    fn over(&self, found: &Found, over: Option<Outage>) {
        if let (Some(over), true) = (over, found.is_well()) {
            events::ledger_back(over.lasted(), over.tries());
        }
        self.publish(found);
    }

    fn publish(&self, found: &Found) {
        let well = found.settles.is_none() && found.slow == 0;
        self.settles.send_if_modified(|was| std::mem::replace(was, well) != well);
    }

    fn lock(&self) -> MutexGuard<'_, Found> {
        self.found.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A claim or a settle that takes too long, until it is dropped.
struct Slow<'a> {
    health: &'a Health,
    who: Who,
    end: End,
}

/// How it ended.
enum End {
    Answered,
    /// Its session did: the outage goes on.
    Lost,
    /// Nobody waits for it any more, and nothing is known.
    GivenUp,
}

impl Drop for Slow<'_> {
    fn drop(&mut self) {
        let mut found = self.health.lock();
        found.slow -= 1;
        let over = if found.slow == 0 { found.slowness.take() } else { None };
        match self.end {
            End::Answered => self.health.over(&found, over),
            End::GivenUp => self.health.publish(&found),
            End::Lost => {
                let outage = found.outage(self.who);
                if outage.is_none() {
                    *outage = Some(over.unwrap_or_else(Outage::begin));
                }
                self.health.publish(&found);
            }
        }
    }
}
