//! The destinations of a drill: one server that keeps what every contract promises, and no more. It counts effects.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use uuid::Uuid;

use super::WAYS;
use super::answers;
use super::kinds::{FOUND_WITHIN, Kind};
use super::moves::Move;
use super::plan::Plan;
use super::records::{Effect, Request, What};
use crate::clock::Uptime;
use crate::proving::fake::{Behaviour, Fake, Seen};

/// A mistake that is put in on purpose, to see whether the referee finds it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Plant {
    /// The destination confirms what comes under a key, and does nothing.
    Liar,
    /// It forgets its keys at once.
    Forgetful,
    /// It does what it says that it has refused.
    Sneak,
    /// The operator says the opposite of what the destination has.
    Contrary,
    /// The application forgets its ordering keys.
    Jumble,
    /// The daemons are not told of rates and bounds.
    Haste,
}

/// The destinations' own record, as a person would look it up there.
#[derive(Clone)]
pub struct Record(Arc<Mutex<Book>>);

impl Record {
    /// The receipt of an effect of this action that stands; `None` = there is none.
    pub fn live(&self, action: Uuid) -> Option<String> {
        let book = locked(&self.0);
        let live = book.effects.iter().find(|effect| effect.action == Some(action) && !effect.void);
        live.map(|effect| effect.receipt.clone())
    }
}

/// What a way's destinations are like just now.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Mood {
    /// Answers take their time.
    pub slow: bool,
    /// Our credentials are refused.
    pub blocked: bool,
}

/// The server and its book.
pub struct Outside {
    fake: Fake,
    book: Arc<Mutex<Book>>,
}

impl Outside {
    /// Starts it. Orders meet what the plan says.
    ///
    /// # Errors
    /// If no port can be had.
    pub async fn start(plan: &Plan, plant: Option<Plant>) -> io::Result<Self> {
        let fake = Fake::start().await?;
        fake.record_requests(false);
        let moves = plan.orders.iter().map(|order| (order.number, order.moves.clone())).collect();
        let book = Arc::new(Mutex::new(Book { moves, plant, ..Book::default() }));
        let kept = Arc::clone(&book);
        fake.behave(move |seen, _| locked(&kept).receive(seen));
        Ok(Self { fake, book })
    }

    /// Where it listens.
    pub fn base_url(&self) -> String {
        self.fake.base_url()
    }

    /// From now on the destinations of a way are like this.
    pub fn feel(&self, way: usize, change: impl FnOnce(&mut Mood)) {
        change(&mut locked(&self.book).moods[way]);
    }

    /// Their record, for whoever asks them.
    pub fn record(&self) -> Record {
        Record(Arc::clone(&self.book))
    }

    /// Every request and every effect so far.
    pub fn records(&self) -> (Vec<Request>, Vec<Effect>) {
        let book = locked(&self.book);
        (book.requests.clone(), book.effects.clone())
    }
}

/// What a destination remembers under a key.
struct Remembered {
    since: Uptime,
    receipt: String,
    /// The first request is worked on until then.
    busy_until: Uptime,
}

#[derive(Default)]
struct Book {
    moves: HashMap<u32, Vec<Move>>,
    moods: [Mood; WAYS],
    plant: Option<Plant>,
    /// Sends by order.
    asked: HashMap<u32, usize>,
    /// By account and key.
    memory: HashMap<String, Remembered>,
    requests: Vec<Request>,
    effects: Vec<Effect>,
    /// When each effect may be found.
    visible: Vec<Uptime>,
    receipts: usize,
    questions: usize,
}

fn locked(book: &Mutex<Book>) -> MutexGuard<'_, Book> {
    // A panic elsewhere is no reason to lose the book.
    book.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Book {
    /// Everything that is decided about a request: what it does, what is answered, what is written down.
    fn receive(&mut self, seen: &Seen) -> Behaviour {
        let parts: Vec<&str> = seen.path.split('/').skip(1).collect();
        match (seen.method.as_str(), parts.as_slice()) {
            ("GET", ["lookup"]) => self.look_up(seen),
            ("POST", ["cancel", key]) => self.cancel(seen, key),
            ("PUT", ["natural", key]) => self.send(seen, Kind::Natural, Some((*key).to_owned()), ""),
            ("POST", [account, "moving"]) => {
                let key = seen.header("idempotency-key").map(str::to_owned);
                self.send(seen, Kind::Moving, key, account)
            }
            ("POST", [kind]) if Kind::parse(kind).is_some() => {
                let key = seen.header("idempotency-key").map(str::to_owned);
                self.send(seen, Kind::parse(kind).unwrap_or(Kind::Keyed), key, "")
            }
            _ => Behaviour::refuse(404),
        }
    }

    fn send(&mut self, seen: &Seen, kind: Kind, key: Option<String>, account: &str) -> Behaviour {
        let body: serde_json::Value = serde_json::from_slice(&seen.body).unwrap_or_default();
        let text = |name: &str| body.get(name).and_then(|value| value.as_str()).map(str::to_owned);
        let order = body.get("order").and_then(serde_json::Value::as_u64).and_then(|n| u32::try_from(n).ok());
        let mut request = Request::of(seen, What::Send, Some(kind));
        (request.order, request.key, request.content) = (order, key.clone(), content(seen));
        let mood = self.moods[kind.way()];
        if mood.blocked {
            return self.written(request, "refuses our credentials (401)", None, Behaviour::refuse(401));
        }
        let asked = self.asked.entry(order.unwrap_or(0)).or_default();
        let moves = order.and_then(|order| self.moves.get(&order)).map_or(&[Move::Answer][..], Vec::as_slice);
        let did = moves.get(*asked).or(moves.last()).copied().unwrap_or(Move::Answer);
        *asked += 1;
        let known = key.as_ref().map(|key| format!("{account}/{key}"));
        let behaviour = |did, receipt: &str, replayed, conflict| {
            answers::answer(did, receipt, text("text").as_deref().unwrap_or(""), replayed, conflict)
        };
        if let Some(first) = known.as_ref().and_then(|known| self.remembered(kind, known)) {
            let receipt = first.receipt.clone();
            if !first.busy_until.is_over() {
                return self.written(request, "says that it is at it (409)", None, answers::in_progress());
            }
            let told = format!("knows the key, and {}", did.told());
            let given = behaviour(did, &receipt, true, kind == Kind::Conflict);
            return self.written(request, told, Some(receipt), unhurried(given, mood, seen));
        }
        let sneaks = did == Move::Refuse && self.plant == Some(Plant::Sneak);
        let lies = did == Move::Answer && kind.memory().is_some() && self.plant == Some(Plant::Liar);
        if !(did.takes_effect() || sneaks) || lies {
            let given = behaviour(did, "r-0", false, false);
            return self.written(request, did.told(), None, unhurried(given, mood, seen));
        }
        self.receipts += 1;
        let receipt = format!("r-{}", self.receipts);
        if let Some(known) = known.filter(|_| kind.memory().is_some()) {
            let busy_until = Uptime::now().plus(did.takes());
            let since = Uptime::now();
            self.memory.insert(known, Remembered { since, receipt: receipt.clone(), busy_until });
        }
        if kind != Kind::ReadOnly {
            let lag = FOUND_WITHIN.mul_f64(f64::from(order.unwrap_or(0) * 379 % 1000) / 1000.0);
            self.visible.push(Uptime::now().plus(lag));
            self.effects.push(Effect {
                at: seen.at,
                kind,
                order,
                action: request.action,
                attempt: request.attempt,
                receipt: receipt.clone(),
                key,
                reference: text("reference"),
                text: text("text").unwrap_or_default(),
                void: false,
            });
        }
        let given = behaviour(did, &receipt, false, false);
        request.took_effect = kind != Kind::ReadOnly;
        self.written(request, did.told(), Some(receipt), unhurried(given, mood, seen))
    }

    /// What is remembered under a key: nothing once its time is over.
    fn remembered(&self, kind: Kind, known: &str) -> Option<&Remembered> {
        let memory = kind.memory().filter(|_| self.plant != Some(Plant::Forgetful))?;
        self.memory.get(known).filter(|first| Uptime::now().since(first.since) < memory)
    }

    fn look_up(&mut self, seen: &Seen) -> Behaviour {
        self.questions += 1;
        let asked = seen.query.as_deref().and_then(|query| query.split_once('='));
        let now = Uptime::now();
        let found = |(effect, visible): &(&Effect, &Uptime)| {
            let named = match asked {
                Some(("reference", reference)) => effect.reference.as_deref() == Some(reference),
                Some(("key", key)) => effect.key.as_deref() == Some(key),
                Some(_) | None => false,
            };
            named && !effect.void && **visible <= now
        };
        let found: Vec<&Effect> = self.effects.iter().zip(&self.visible).filter(found).map(|(e, _)| e).collect();
        let told = format!("finds {}", found.len());
        let given = answers::found(&found);
        let kind = found.first().map(|effect| effect.kind);
        let request = Request::of(seen, What::Lookup, kind);
        let blocked = kind.is_some_and(|kind| self.moods[kind.way()].blocked);
        match self.questions % 12 {
            _ if blocked => self.written(request, "refuses our credentials (401)", None, Behaviour::refuse(401)),
            4 => self.written(request, "breaks down (500)", None, Behaviour::refuse(500)),
            9 => self.written(request, format!("{told}, and withholds its answer"), None, given.withholding()),
            _ => self.written(request, told, None, given),
        }
    }

    fn cancel(&mut self, seen: &Seen, key: &str) -> Behaviour {
        self.questions += 1;
        let mut request = Request::of(seen, What::Cancel, Some(Kind::Cancel));
        request.key = Some(key.to_owned());
        if self.questions % 8 == 6 {
            return self.written(request, "breaks down (500)", None, Behaviour::refuse(500));
        }
        let mut voided = 0;
        for effect in self.effects.iter_mut().filter(|effect| effect.key.as_deref() == Some(key) && !effect.void) {
            (effect.void, voided) = (true, voided + 1);
        }
        let told = format!("undoes {voided}");
        match self.questions % 8 {
            3 => self.written(
                request,
                format!("{told}, and withholds its answer"),
                None,
                answers::cancelled(voided).withholding(),
            ),
            _ => self.written(request, told, None, answers::cancelled(voided)),
        }
    }

    fn written(
        &mut self,
        mut request: Request,
        did: impl Into<String>,
        receipt: Option<String>,
        behaviour: Behaviour,
    ) -> Behaviour {
        (request.did, request.receipt) = (did.into(), receipt);
        self.requests.push(request);
        behaviour
    }
}

/// A slow destination answers between 0.6 and 2 s later: some of that is too late.
fn unhurried(given: Behaviour, mood: Mood, seen: &Seen) -> Behaviour {
    match mood.slow {
        true => given.delayed(Duration::from_millis(600 + seen.number as u64 * 137 % 1400)),
        false => given,
    }
}

/// Of everything that a repeat must repeat.
fn content(seen: &Seen) -> u64 {
    let mut hasher = DefaultHasher::new();
    (&seen.method, &seen.query, &seen.body).hash(&mut hasher);
    hasher.finish()
}

impl Request {
    fn of(seen: &Seen, what: What, kind: Option<Kind>) -> Self {
        let id = |name| seen.header(name).and_then(|text| text.parse::<Uuid>().ok());
        Self {
            at: seen.at,
            what,
            kind,
            order: None,
            action: id("outbox-action"),
            attempt: id("outbox-attempt"),
            fence: seen.header("outbox-fence").and_then(|text| text.parse().ok()),
            key: None,
            path: seen.path.clone(),
            content: 0,
            did: String::new(),
            receipt: None,
            took_effect: false,
        }
    }
}
