//! What the journal keeps of an outcome, and how it is written.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::core::action::{ActionId, AttemptId, Fence, Step, Stop};
use crate::core::decide::{Next, SentTimes, Transition};
use crate::core::evidence::Evidence;
use crate::core::queue::{Queue, queue_after};
use crate::core::reason::Reason;
use crate::core::row::{Doubt, Row, SentUnder};
use crate::core::terms::Pins;
use crate::core::time::Timestamp;
use crate::dispatcher::delivery::Outcome;
use crate::ledger::{History, Settlement};

/// An outcome: everything that a settle or a late testimony needs, and nothing of what was sent.
#[derive(Clone, PartialEq, Debug)]
pub struct Kept {
    /// Its name, for logs.
    pub operation: String,
    /// Its name, for logs.
    pub destination: String,
    /// The decision. When the attempt started is known by `row.claimed_at`; `history.started_ago` means nothing here.
    pub settlement: Settlement,
    /// What was learnt.
    pub evidence: Evidence,
    /// The operation's timeout: nothing of a send left later than that after the claim.
    pub timeout: Duration,
    /// What it was sent under.
    pub pins: Pins,
}

impl Kept {
    /// Of an outcome.
    pub fn of(outcome: &Outcome) -> Self {
        Self {
            operation: outcome.route.operation.name.clone(),
            destination: outcome.route.operation.target.clone(),
            settlement: outcome.settlement(),
            evidence: outcome.finding.evidence,
            timeout: outcome.claimed.lease.timeout,
            pins: outcome.route.operation.terms.pins,
        }
    }

    /// As it is written.
    pub fn words(&self) -> Words {
        let (row, transition) = (&self.settlement.row, &self.settlement.transition);
        let (state, next_step, delay) = next_words(transition.next);
        Words {
            operation: self.operation.clone(),
            destination: self.destination.clone(),
            action: self.settlement.action.0,
            fence: self.settlement.fence.0,
            lane: self.settlement.lane,
            holds_queue: self.settlement.queue == Queue::IsHeld,
            timeout_us: micros(self.timeout),
            pins: Uuid::from_bytes(self.pins.0),
            evidence: self.evidence.as_str().to_owned(),
            row: RowWords {
                attempt: row.attempt.0,
                claimed_at: row.claimed_at.micros(),
                step: row.step.as_str().to_owned(),
                attempts: row.attempts,
                claims: row.claims,
                committed_at: row.committed_at.micros(),
                budget_from: row.budget_from.micros(),
                first_sent_at: row.first_sent_at.map(Timestamp::micros),
                last_sent_at: row.last_sent_at.map(Timestamp::micros),
                doubt: row.doubt.map(DoubtWords::of),
                proof: row.proof.clone(),
                cancel_sent: row.cancel_sent,
                overridden: row.overridden,
                sent_under: match row.sent_under {
                    SentUnder::Nothing => None,
                    SentUnder::These(pins) => Some(Uuid::from_bytes(pins.0).to_string()),
                    SentUnder::Mixed => Some(MIXED.to_owned()),
                },
                stop: row.stop.map(|stop| Reason::from(stop).code().to_owned()),
            },
            verdict: VerdictWords {
                state: state.to_owned(),
                step: next_step.map(|step| step.as_str().to_owned()),
                delay_us: micros(delay),
                reason: transition.reason.map(|reason| reason.code().to_owned()),
                receipt: transition.receipt.clone(),
                attempts: transition.attempts,
                doubt: transition.doubt.map(DoubtWords::of),
                sent: sent_words(transition.sent).to_owned(),
                override_back: transition.override_back,
            },
            tried: self.settlement.history.as_ref().map(|history| TriedWords {
                kind: history.kind.as_str().to_owned(),
                key: history.idempotency_key.clone(),
                status: history.status,
                detail: history.detail.clone(),
            }),
        }
    }

    /// From what was written; `None` where a word is none of ours.
    pub fn read(words: Words) -> Option<Self> {
        let stop = match words.row.stop {
            None => None,
            Some(code) => Some(STOPS.into_iter().find(|stop| Reason::from(*stop).code() == code)?),
        };
        let evidence = evidence(&words.evidence, stop)?;
        let timeout = Duration::from_micros(words.timeout_us);
        let row = Row {
            attempt: AttemptId(words.row.attempt),
            claimed_at: Timestamp::from_micros(words.row.claimed_at),
            step: Step::parse(&words.row.step)?,
            attempts: words.row.attempts,
            claims: words.row.claims,
            committed_at: Timestamp::from_micros(words.row.committed_at),
            budget_from: Timestamp::from_micros(words.row.budget_from),
            first_sent_at: words.row.first_sent_at.map(Timestamp::from_micros),
            last_sent_at: words.row.last_sent_at.map(Timestamp::from_micros),
            doubt: words.row.doubt.map(DoubtWords::doubt),
            proof: words.row.proof,
            cancel_sent: words.row.cancel_sent,
            overridden: words.row.overridden,
            sent_under: match words.row.sent_under.as_deref() {
                None => SentUnder::Nothing,
                Some(MIXED) => SentUnder::Mixed,
                Some(pins) => SentUnder::These(Pins(*Uuid::parse_str(pins).ok()?.as_bytes())),
            },
            stop,
        };
        let verdict = words.verdict;
        let delay = Duration::from_micros(verdict.delay_us);
        let transition = Transition {
            next: next(&verdict.state, verdict.step.as_deref(), delay)?,
            reason: match verdict.reason {
                None => None,
                Some(code) => Some(Reason::parse(&code)?),
            },
            receipt: verdict.receipt,
            attempts: verdict.attempts,
            doubt: verdict.doubt.map(DoubtWords::doubt),
            sent: SENT.into_iter().find(|sent| sent_words(*sent) == verdict.sent)?,
            override_back: verdict.override_back,
        };
        let history = match words.tried {
            None => None,
            Some(tried) => Some(History {
                kind: Step::parse(&tried.kind)?,
                idempotency_key: tried.key,
                started_ago: Duration::ZERO,
                deadline_in: timeout,
                evidence: evidence.as_str(),
                status: tried.status,
                detail: tried.detail,
            }),
        };
        let (action, fence, lane) = (ActionId(words.action), Fence(words.fence), words.lane);
        let queue = queue_after(&transition, words.holds_queue);
        Some(Self {
            operation: words.operation,
            destination: words.destination,
            settlement: Settlement { action, fence, row, transition, history, lane, queue },
            evidence,
            timeout,
            pins: Pins(words.pins.into_bytes()),
        })
    }
}

/// [`Kept`] in JSON. Times are microseconds since the Unix epoch, of the database's clock.
#[derive(Serialize, Deserialize, Debug)]
pub struct Words {
    operation: String,
    destination: String,
    action: Uuid,
    fence: i64,
    lane: Option<i64>,
    holds_queue: bool,
    timeout_us: u64,
    pins: Uuid,
    evidence: String,
    row: RowWords,
    verdict: VerdictWords,
    tried: Option<TriedWords>,
}

#[derive(Serialize, Deserialize, Debug)]
struct RowWords {
    attempt: Uuid,
    claimed_at: i64,
    step: String,
    attempts: u32,
    claims: u32,
    committed_at: i64,
    budget_from: i64,
    first_sent_at: Option<i64>,
    last_sent_at: Option<i64>,
    doubt: Option<DoubtWords>,
    proof: Option<String>,
    cancel_sent: bool,
    overridden: bool,
    sent_under: Option<String>,
    stop: Option<String>,
}

#[derive(Serialize, Deserialize, Debug)]
struct DoubtWords {
    since: i64,
    attempt: Option<Uuid>,
}

#[derive(Serialize, Deserialize, Debug)]
struct VerdictWords {
    state: String,
    step: Option<String>,
    delay_us: u64,
    reason: Option<String>,
    receipt: Option<String>,
    attempts: u32,
    doubt: Option<DoubtWords>,
    sent: String,
    override_back: bool,
}

#[derive(Serialize, Deserialize, Debug)]
struct TriedWords {
    kind: String,
    key: Option<String>,
    status: Option<u16>,
    detail: Option<String>,
}

impl DoubtWords {
    fn of(doubt: Doubt) -> Self {
        Self { since: doubt.since.micros(), attempt: doubt.attempt.map(|attempt| attempt.0) }
    }

    fn doubt(self) -> Doubt {
        Doubt { since: Timestamp::from_micros(self.since), attempt: self.attempt.map(AttemptId) }
    }
}

const MIXED: &str = "mixed";
const HELD: &str = "held";
const STOPS: [Stop; 4] = [Stop::Cancelled, Stop::Deadline, Stop::AuthorityRevoked, Stop::NothingToCompensate];
const SENT: [SentTimes; 4] = [SentTimes::Keep, SentTimes::Ended, SentTimes::GivenBack, SentTimes::Cleared];

fn sent_words(sent: SentTimes) -> &'static str {
    match sent {
        SentTimes::Keep => "keep",
        SentTimes::Ended => "ended",
        SentTimes::GivenBack => "given_back",
        SentTimes::Cleared => "cleared",
    }
}

fn next_words(next: Next) -> (&'static str, Option<Step>, Duration) {
    match next {
        Next::Succeeded => ("succeeded", None, Duration::ZERO),
        Next::TerminalFailure => ("terminal_failure", None, Duration::ZERO),
        Next::Pending { delay } => ("pending", None, delay),
        Next::RetryableFailure { delay } => ("retryable_failure", None, delay),
        Next::Unknown { step, delay } => ("unknown", Some(step), delay),
        Next::Held => (HELD, None, Duration::ZERO),
    }
}

fn next(state: &str, step: Option<&str>, delay: Duration) -> Option<Next> {
    match (state, step) {
        ("succeeded", None) => Some(Next::Succeeded),
        ("terminal_failure", None) => Some(Next::TerminalFailure),
        ("pending", None) => Some(Next::Pending { delay }),
        ("retryable_failure", None) => Some(Next::RetryableFailure { delay }),
        ("unknown", Some(step)) => Some(Next::Unknown { step: Step::parse(step)?, delay }),
        (HELD, None) => Some(Next::Held),
        (_, _) => None,
    }
}

fn evidence(name: &str, stop: Option<Stop>) -> Option<Evidence> {
    let plain = [
        Evidence::Accepted,
        Evidence::Found,
        Evidence::Mismatch,
        Evidence::NotSent,
        Evidence::Deferred,
        Evidence::Blocked,
        Evidence::Rejected { replayed: false },
        Evidence::Rejected { replayed: true },
        Evidence::KeyConflict,
        Evidence::InFlight,
        Evidence::NoAnswer,
        Evidence::UnknownAnswer,
        Evidence::Lapsed,
        Evidence::Absent,
        Evidence::Neutralised,
        Evidence::Inconclusive,
        Evidence::Spent,
        Evidence::RungGone,
        Evidence::Unsendable,
        Evidence::Proof,
    ];
    plain.into_iter().chain(stop.map(Evidence::Stopped)).find(|evidence| evidence.as_str() == name)
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
#[path = "record_tests.rs"]
mod tests;
