//! The loop that joins ledger and destinations: claim → `next_step` → send → evidence → `decide` → settle.

mod claimer;
mod deliveries;
mod delivery;
mod edge;
mod health;
mod inventory;
mod janitor;
mod journal;
mod orphans;
mod pause;
mod pauses;
mod presence;
mod queues;
mod rates;
mod reconnect;
mod rest;
mod restraint;
mod roster;
mod route;
mod settler;
mod slots;
mod stats;
mod tally;
mod telling;
mod trouble;
mod waiting;
mod walk;
mod weights;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Notify, mpsc, watch};
use tokio_util::sync::CancellationToken;

use crate::core::action::ActionId;
use crate::core::target::{Operation, Target};
use crate::destination::TlsError;
use crate::ledger::{BellAt, Ledger, LedgerError};
use crate::log::events;
use claimer::Claimer;
use deliveries::Deliveries;
use edge::Edge;
use health::Health;
pub use journal::{Journal, JournalError, Look as JournalLook, look as look_at_journal};
use orphans::Orphans;
use pauses::Pauses;
use presence::Presence;
use rates::Rates;
use rest::Sleeper;
pub use roster::Reloader;
use roster::Roster;
use settler::{Settler, Unsettled};
use slots::Slots;
use tally::Tally;
use telling::Telling;
use walk::Walk;
use weights::Weights;

/// How the daemon runs.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Sends at once, over all operations.
    pub max_in_flight: u32,
    /// What a lease outlives its operation's timeout by.
    pub lease_margin: Duration,
    /// The longest sleep.
    pub poll_interval: Duration,
    /// How long a stop waits for sends that are under way.
    pub drain_timeout: Duration,
    /// Between two stats lines, and between two rounds of the janitor.
    pub stats_interval: Duration,
    /// Bytes of bodies in memory at once; one body more may be.
    pub bytes_in_flight_max: u64,
    /// The most bytes that a body may have to be sent.
    pub body_max_bytes: u64,
    /// A direct session for the doorbell; `None` polls.
    pub bell: Option<BellAt>,
}

/// What is dispatched.
#[derive(Clone, Debug)]
pub struct Catalogue {
    /// Destinations by name.
    pub targets: BTreeMap<String, Target>,
    /// Operations, each with how much at once.
    pub operations: Vec<(Operation, AtOnce)>,
    /// How long closed actions of each are remembered.
    pub memory: Vec<Memory>,
}

/// How much of an operation at once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AtOnce {
    /// Requests.
    pub requests: u32,
    /// Requests of one tenant; `None` = no bound of its own.
    pub of_one_tenant: Option<u32>,
}

/// How long closed actions of an operation are remembered.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Memory {
    /// Its name.
    pub operation: String,
    /// Payload and history.
    pub payload: Duration,
    /// Identity and end, at least as long.
    pub identity: Duration,
}

/// How a daemon is told to end.
#[derive(Clone, Debug, Default)]
pub struct Stop {
    /// Claim nothing more, wait for what is under way.
    pub drain: CancellationToken,
    /// Don't wait.
    pub abandon: CancellationToken,
}

/// A destination that cannot be used as it is configured.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("`tls` of [destination.{destination}]: {cause}")]
pub struct Unusable {
    destination: String,
    #[source]
    cause: TlsError,
}

/// Whether every destination's client can be built; connects to nothing.
///
/// # Errors
/// Where a destination's TLS settings cannot be used.
pub fn check_destinations(catalogue: Catalogue) -> Result<(), Unusable> {
    roster::begin(catalogue, Arc::new(Pauses::new())).map(drop)
}

/// The daemon.
pub struct Dispatcher {
    settings: Settings,
    ledger: Ledger,
    roster: watch::Receiver<Arc<Roster>>,
    pauses: Arc<Pauses>,
    tally: Arc<Tally>,
    journal: Journal,
}

/// What a daemon leaves behind.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Left {
    /// Actions whose send was cut short, or whose outcome is written down nowhere.
    pub abandoned: Vec<ActionId>,
    /// Actions whose outcomes only the journal has.
    pub journaled: Vec<ActionId>,
}

impl Dispatcher {
    /// Builds the clients; claims nothing yet. Comes with what exchanges the catalogue later. An operation whose
    /// destination is not in the catalogue is left out; the configuration refuses such an operation before it gets here.
    ///
    /// # Errors
    /// Where a destination's TLS settings cannot be used.
    pub fn new(settings: Settings, ledger: Ledger, catalogue: Catalogue) -> Result<(Self, Reloader), Unusable> {
        let pauses = Arc::new(Pauses::new());
        let (roster, reloader) = roster::begin(catalogue, Arc::clone(&pauses))?;
        Ok((
            Self { settings, ledger, roster, pauses, tally: Arc::new(Tally::default()), journal: Journal::default() },
            reloader,
        ))
    }

    /// Keeps in a journal what the ledger doesn't take.
    #[must_use]
    pub fn with_journal(self, journal: Journal) -> Self {
        Self { journal, ..self }
    }

    /// Runs until told to stop; returns what is left behind. Where the schema turns out not to fit this
    /// binary it drains and ends with that error; a database that doesn't answer is waited for.
    pub async fn run(self, stop: Stop) -> Result<Left, LedgerError> {
        let (outcomes, received) = mpsc::channel(usize::try_from(self.settings.max_in_flight).unwrap_or(256).max(256));
        let (health, give_up) = (Health::new(), CancellationToken::new());
        let turns = Arc::new(Notify::new());
        let telling = Arc::new(Telling::new(Arc::clone(&self.tally)));
        let settler = Settler {
            ledger: self.ledger.clone(),
            turns: Arc::clone(&turns),
            health: health.clone(),
            telling: Arc::clone(&telling),
            journal: self.journal.clone(),
            give_up: give_up.clone(),
        };
        let settler = tokio::spawn(settler.run(received));
        let timer = tokio::spawn(run_out(stop.clone(), self.settings.drain_timeout, give_up));
        let lines = tokio::spawn(stats::run(
            self.ledger.clone(),
            Arc::clone(&self.tally),
            health.clone(),
            self.settings.stats_interval,
            stop.drain.clone(),
        ));
        let counts_told = tokio::spawn(Arc::clone(&telling).rounds(self.settings.stats_interval));
        let janitor = tokio::spawn(janitor::run(
            self.ledger.clone(),
            self.roster.clone(),
            self.settings.stats_interval,
            stop.drain.clone(),
        ));
        let roster = Arc::clone(&self.roster.borrow());
        let weights = Weights::new(self.settings.bytes_in_flight_max, self.settings.max_in_flight);
        let slots = Slots::new(self.settings.max_in_flight, &roster.destination_max, &roster.limits).weighed(weights);
        let counts = slots.counts();
        let mut rates = Rates::default();
        rates.limited(&roster.destination_rates, &roster.operation_rates);
        let presence = Presence {
            ledger: self.ledger.clone(),
            rosters: self.roster.clone(),
            pauses: Arc::clone(&self.pauses),
            counts: Arc::clone(&counts),
            interval: self.settings.stats_interval,
            drain: stop.drain.clone(),
        };
        let mut presence = tokio::spawn(presence.run());
        let drain_timeout = self.settings.drain_timeout;
        let (orphans, ledger, journal) = (Arc::new(Orphans::default()), self.ledger.clone(), self.journal);
        let ended = CancellationToken::new();
        let keeper = tokio::spawn(journal.clone().keep(Arc::clone(&orphans), ended.clone()));
        let deliveries = Deliveries {
            ledger: self.ledger.clone(),
            outcomes,
            pauses: Arc::clone(&self.pauses),
            stop: stop.clone(),
            health: health.clone(),
            journal: journal.clone(),
        };
        let claimer = Claimer {
            walk: Walk::new(slots.streams().len()),
            edge: Edge::new(slots.streams().len(), self.settings.poll_interval),
            sleeper: Sleeper::new(self.settings.bell.clone(), self.ledger.clone()),
            settings: self.settings,
            ledger: self.ledger,
            roster,
            rosters: self.roster,
            slots,
            rates,
            pauses: self.pauses,
            stop: stop.clone(),
            deliveries: Arc::new(deliveries),
            orphans: Arc::clone(&orphans),
            health,
            journal: journal.clone(),
            turns,
            queues_refused: false,
            not_ours: false,
        };
        let claimed = tokio::select! {
            claimed = claimer.run() => claimed,
            // A claim that the database doesn't answer.
            () = stop.abandon.cancelled() => Ok(()),
        };

        if claimed.is_err() {
            // Nobody may be there to write to: what is under way is bounded as in any stop.
            stop.drain.cancel();
        }
        // The claimer is gone; the deliveries under way hold what senders there are.
        events::draining(counts.in_use(), drain_timeout);
        let (unsettled, ()) = tokio::join!(settler, orphans.give_back_all(&ledger, 2 * LAST_WORDS));
        let unsettled = match unsettled {
            Ok(unsettled) => unsettled,
            Err(ended) => match ended.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                Err(_) => Unsettled::default(),
            },
        };
        ended.cancel();
        // Whatever it was doing to the file is done.
        let _ = keeper.await;
        let kept = journal.keep_all(&orphans).await;
        let (journaled, forgotten) = unsettled.unwritten.into_iter().partition(|action| kept.contains(action));
        let left = Left { abandoned: [unsettled.cut_short, forgotten].concat(), journaled };
        timer.abort();
        counts_told.abort();
        telling.tell_counts();
        lines.abort();
        janitor.abort();
        if stop.drain.is_cancelled() {
            // It says that this daemon goes; where nobody hears that, it is not believed for long.
            let _ = tokio::time::timeout(LAST_WORDS, &mut presence).await;
        }
        presence.abort();
        left.abandoned.iter().copied().for_each(events::abandoned);
        left.journaled.iter().copied().for_each(events::outcome_journaled);
        events::stopped(left.abandoned.len(), left.journaled.len());
        claimed.map(|()| left)
    }
}

/// How long the settler goes on after the drain's time has run out: for what was cut short just then.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// From the first word of a stop on: the drain's time, and then the time for last words.
async fn run_out(stop: Stop, drain_timeout: Duration, give_up: CancellationToken) {
    stop.drain.cancelled().await;
    tokio::select! {
        () = tokio::time::sleep(drain_timeout) => stop.abandon.cancel(),
        () = stop.abandon.cancelled() => {}
    }
    tokio::time::sleep(LAST_WORDS).await;
    give_up.cancel();
}
