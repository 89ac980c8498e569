//! What each side has written down when a drill is over: the application, the ledger, the destinations, the conductor.

use std::collections::HashMap;
use std::time::SystemTime;

use uuid::Uuid;

use super::faults::Fault;
use super::kinds::Kind;
use super::plan::Plan;
use crate::core::action::State;

/// All of it.
#[derive(Clone, Debug)]
pub struct World {
    /// What the application meant to do.
    pub plan: Plan,
    /// What it did.
    pub desk: Desk,
    /// The ledger.
    pub entries: Vec<Entry>,
    /// The destinations: every request that arrived.
    pub requests: Vec<Request>,
    /// The destinations: every effect.
    pub effects: Vec<Effect>,
    /// What the operator found held; `None` = nobody was there to decide.
    pub office: Option<Office>,
    /// What went wrong, and when.
    pub faults: Vec<Happened>,
    /// What the workers said of actions, by time.
    pub said: Vec<Said>,
    /// When everything had come to rest; `None` = it had not within the bound.
    pub rested: Option<SystemTime>,
    /// Workers that ended by themselves, and how.
    pub deserters: Vec<String>,
}

/// The application's records.
#[derive(Clone, Debug, Default)]
pub struct Desk {
    /// The application's own table: what was really committed.
    pub written: Vec<Written>,
    /// When the first transaction for an order began, whatever became of it.
    pub tried: HashMap<u32, SystemTime>,
    /// What `outbox.enqueue` answered in transactions whose commit was confirmed.
    pub answers: Vec<Answer>,
    /// Cancellations that were answered.
    pub cancels: Vec<Cancel>,
    /// Revocations that were confirmed: grant, since, until.
    pub revoked: Vec<(u32, SystemTime, Option<SystemTime>)>,
}

/// The operator's records.
#[derive(Clone, Debug, Default)]
pub struct Office {
    /// Why each action was held, as it stood when it was first found.
    pub held: HashMap<Uuid, String>,
    /// Decisions that the ledger refused, since the evidence did not allow them or somebody had the row.
    pub refused: usize,
}

/// A row of the application's table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Written {
    /// Which order.
    pub order: u32,
    /// The action that was asked for with it.
    pub action: Uuid,
    /// When.
    pub at: SystemTime,
}

/// An answer of `outbox.enqueue`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Answer {
    /// For which order.
    pub order: u32,
    /// The action.
    pub action: Uuid,
    /// False where it was there before.
    pub created: bool,
    /// When.
    pub at: SystemTime,
}

/// An answer of `outbox.cancel`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Cancel {
    /// Which order.
    pub order: u32,
    /// It is certain that nothing is sent and nothing was done.
    pub certain: bool,
    /// When it was answered.
    pub at: SystemTime,
}

/// An action and where it ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Entry {
    /// The action.
    pub action: Uuid,
    /// Under which contract.
    pub kind: Kind,
    /// Of which order.
    pub order: u32,
    /// Where it stands.
    pub state: State,
    /// The step that it waits for.
    pub step: String,
    /// When it is due; `None` = closed or held.
    pub due_at: Option<SystemTime>,
    /// Why, as a code.
    pub reason: Option<String>,
    /// The destination's own reference.
    pub receipt: Option<String>,
    /// It is in doubt.
    pub doubt: bool,
    /// A cancel by key has been sent.
    pub cancel_sent: bool,
    /// What it compensates.
    pub compensates: Option<Uuid>,
    /// It must not be sent for the first time after this.
    pub expires_at: Option<SystemTime>,
    /// When it was committed, about.
    pub created_at: SystemTime,
    /// When it was closed.
    pub closed_at: Option<SystemTime>,
    /// Its history, oldest first.
    pub attempts: Vec<Attempt>,
}

/// A line of the history.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Attempt {
    /// The attempt.
    pub attempt: Uuid,
    /// send, lookup, cancel, late or decision.
    pub kind: String,
    /// The claim's fence.
    pub fence: i64,
    /// Who.
    pub worker: Option<String>,
    /// The key that was sent.
    pub key: Option<String>,
    /// What was learnt.
    pub evidence: String,
    /// Where that left the action, or what became of a late testimony.
    pub verdict: String,
    /// HTTP status.
    pub status: Option<i32>,
    /// When it began.
    pub started_at: Option<SystemTime>,
    /// When it was written down.
    pub finished_at: SystemTime,
}

/// What a request wants.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum What {
    /// An effect.
    Send,
    /// To know whether there was one.
    Lookup,
    /// To undo it.
    Cancel,
}

/// A request that arrived whole.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Request {
    /// When.
    pub at: SystemTime,
    /// What it wants.
    pub what: What,
    /// Under which contract; `None` = a question about nothing that is there.
    pub kind: Option<Kind>,
    /// Of which order, as its body says.
    pub order: Option<u32>,
    /// `Outbox-Action`.
    pub action: Option<Uuid>,
    /// `Outbox-Attempt`.
    pub attempt: Option<Uuid>,
    /// `Outbox-Fence`.
    pub fence: Option<i64>,
    /// The key it came under.
    pub key: Option<String>,
    /// Its path.
    pub path: String,
    /// A digest of method, query and body.
    pub content: u64,
    /// What the destination did, for people, after "it".
    pub did: String,
    /// Of the effect that it had or that was recognised.
    pub receipt: Option<String>,
    /// Whether it changed the world.
    pub took_effect: bool,
}

/// An effect at a destination.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Effect {
    /// When.
    pub at: SystemTime,
    /// Under which contract.
    pub kind: Kind,
    /// Of which order.
    pub order: Option<u32>,
    /// Of which action, as the request said.
    pub action: Option<Uuid>,
    /// Of which attempt.
    pub attempt: Option<Uuid>,
    /// The destination's reference.
    pub receipt: String,
    /// The key it came under.
    pub key: Option<String>,
    /// Our reference in its body.
    pub reference: Option<String>,
    /// What it says.
    pub text: String,
    /// It has been undone by its key.
    pub void: bool,
}

/// A fault that was carried out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Happened {
    /// What.
    pub fault: Fault,
    /// Since when.
    pub from: SystemTime,
    /// Until when.
    pub to: SystemTime,
}

/// A line of a worker's log about an action.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Said {
    /// When.
    pub at: SystemTime,
    /// Which worker, from 0.
    pub worker: usize,
    /// About which action.
    pub action: Uuid,
    /// What, with what belongs to it.
    pub text: String,
}

impl Entry {
    /// Whether nothing will be done about it any more.
    pub fn is_closed(&self) -> bool {
        matches!(self.state, State::Succeeded | State::TerminalFailure)
    }

    /// Whether only a person can decide.
    pub fn is_held(&self) -> bool {
        self.state == State::OutcomeUnknown && self.step == "review"
    }

    /// What a person has decided about it, oldest first.
    pub fn decisions(&self) -> impl Iterator<Item = &Attempt> {
        self.attempts.iter().filter(|attempt| attempt.kind == "decision")
    }

    /// Whether its outcome was decided by a person, or waits for one.
    pub fn was_held(&self) -> bool {
        let decided = |line: &Attempt| matches!(line.evidence.as_str(), "happened" | "did_not_happen" | "send_again");
        self.is_held() || self.decisions().any(decided)
    }

    /// Whether its outcome has ever been unknown.
    pub fn was_unknown(&self) -> bool {
        self.doubt || self.attempts.iter().any(|a| a.verdict == State::OutcomeUnknown.as_str())
    }
}
