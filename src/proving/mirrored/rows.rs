//! The model's worlds as rows of a real ledger, and back. A tick is ten seconds there; ages are counted from `zero`.

use std::time::Duration;

use bytes::Bytes;
use serde_json::Value;
use tokio_postgres::Client;
use uuid::Uuid;

use crate::clock::Uptime;
use crate::core::action::{ActionId, AttemptId, Fence, Intent, State, Step, Stop};
use crate::core::decide::{Next, Transition};
use crate::core::model::contracts::Promise;
use crate::core::model::world::{
    ATTEMPTS, Age, Delivery, Doubtful, Id, LEASE, LastSent, MIXED, NOTHING, TIMEOUT, Worker, World, attempt, in_ticks,
    now, pins,
};
use crate::core::row::{Doubt, Row, SentUnder};
use crate::core::time::Timestamp;
use crate::ledger::{Claimed, Lease, Want};

const TICK: Duration = Duration::from_secs(10);
/// The row's fence; workers have theirs relative to it.
const FENCE: i64 = 10;

/// So many ticks.
pub fn ticks(n: Age) -> Duration {
    TICK * u32::from(n.unsigned_abs())
}

/// One world in the ledger: an action of an operation of its own.
pub struct Case {
    pub action: Uuid,
    pub operation: String,
    /// The moment of age 0, and the name of the attempt that is minted next.
    pub zero: Timestamp,
    pub fresh: Id,
}

impl Case {
    /// Writes a world down. Age 0 is so long after now.
    pub async fn write(client: &Client, number: usize, world: &World, promise: &Promise, ahead: Duration) -> Self {
        let clock = client.query_one("select clock_timestamp()", &[]).await.expect("a clock").get::<_, Timestamp>(0);
        let case = Self {
            action: Uuid::new_v4(),
            operation: format!("op{number}"),
            zero: clock.plus(ahead),
            fresh: world.new_id(),
        };
        let row = &world.row;
        let sql = "insert into outbox.action (action_id, operation, retry_key, input_hash, created_at)
            values ($1, $2, 'k', sha256(''), $3)";
        client.execute(sql, &[&case.action, &case.operation, &case.zero]).await.expect("an action");
        let held = row.state == State::Dispatching;
        let reason = if row.stop_seen { Some("authority_revoked") } else { row.doubt.map(|_| "timeout") };
        let sql = "insert into outbox.delivery (action_id, operation, state, step, due_at, fence, attempt_id, attempts, worker,
              budget_from, first_sent_at, last_sent_at, doubt_since, doubt_attempt, proof, cancel_sent_at, override,
              sent_digest, reason, closed_at, updated_at)
            values ($1, $2, $3::text, $4::text, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21)";
        client
            .execute(
                sql,
                &[
                    &case.action,
                    &case.operation,
                    &row.state.as_str(),
                    &row.step.as_str(),
                    &row.due.map(|age| case.at(age)),
                    &FENCE,
                    &(row.attempt != 0).then(|| attempt(row.attempt).0),
                    &i32::from(row.attempts),
                    &held.then_some("somebody"),
                    &case.at(row.budget_from),
                    &row.first.map(|age| case.at(age)),
                    &row.last.map(|last| case.at_last(last)),
                    &row.doubt.map(|doubt| case.at(doubt.since)),
                    &row.doubt.and_then(|doubt| named(doubt.attempt)),
                    &row.proof.then_some(""),
                    &row.cancel_sent.then_some(case.zero),
                    &row.send_again,
                    &digest(row.digest),
                    &reason,
                    &row.state.is_closed().then_some(case.zero),
                    &case.zero,
                ],
            )
            .await
            .unwrap_or_else(|error| panic!("{error:?}\n{row:?}"));
        case.surround(client, world, promise).await;
        case
    }

    /// What stands in other tables.
    async fn surround(&self, client: &Client, world: &World, promise: &Promise) {
        let absence = promise.terms(world.pins).contract.absence().map_or(0, in_ticks);
        let absence = i64::try_from(ticks(absence).as_micros()).expect("a short time");
        let sql =
            "insert into outbox.operation (operation, absence) values ($1, $2::bigint * interval '1 microsecond')";
        client.execute(sql, &[&self.operation, &absence]).await.expect("an operation");
        if world.cancelled {
            let sql = "insert into outbox.cancellation (action_id, requested_by, reason) values ($1, 'ann', 'why')";
            client.execute(sql, &[&self.action]).await.expect("a cancellation");
        }
        if world.revoked {
            let sql = "select outbox.revoke('ann', 'why', operation => $1)";
            client.query(sql, &[&self.operation]).await.expect("a revocation");
        }
        let sql =
            "insert into outbox.attempt (attempt_id, action_id, number, kind, fence, finished_at, evidence, verdict)
            values ($1, $2, 1, 'send', 1, now(), $3, 'outcome_unknown') on conflict do nothing";
        for worker in world.workers.iter().flatten().filter(|worker| worker.known) {
            let evidence = if worker.settled { "no_answer" } else { "lapsed" };
            client.execute(sql, &[&attempt(worker.attempt).0, &self.action, &evidence]).await.expect("a history");
        }
    }

    /// The moment of an age.
    pub fn at(&self, age: Age) -> Timestamp {
        if age < 0 { self.zero.plus(ticks(age)) } else { self.zero.minus(ticks(age)) }
    }

    pub fn at_last(&self, last: LastSent) -> Timestamp {
        self.at(last.age).plus(Duration::from_micros(last.past.into()))
    }

    fn age(&self, moment: Timestamp) -> Age {
        let tick = i64::try_from(TICK.as_micros()).expect("a short time");
        let age = (self.zero.micros() - moment.micros() + tick / 2).div_euclid(tick);
        Age::try_from(age).expect("an age")
    }

    fn id(&self, attempt: Option<Uuid>) -> Id {
        attempt.map_or(0, |uuid| Id::try_from(uuid.as_u128()).unwrap_or(self.fresh))
    }

    /// The row as the model would have it.
    pub async fn read(&self, client: &Client) -> Told {
        let sql =
            "select state::text, step::text, due_at, attempt_id, attempts, budget_from, first_sent_at, last_sent_at,
              doubt_since, doubt_attempt, proof, cancel_sent_at is not null, override, sent_digest, reason
            from outbox.delivery where action_id = $1";
        let row = client.query_one(sql, &[&self.action]).await.expect("a row");
        let moment = |column: usize| row.get::<_, Option<Timestamp>>(column);
        let state = State::parse(row.get(0)).expect("a state");
        let (due, last) = (moment(2), moment(7));
        let delivery = Delivery {
            state,
            step: Step::parse(row.get(1)).expect("a step"),
            due: due.map(|at| self.age(at)),
            attempt: self.id(row.get(3)),
            attempts: u8::try_from(row.get::<_, i32>(4)).expect("few attempts").min(ATTEMPTS),
            budget_from: self.age(row.get(5)),
            first: moment(6).map(|at| self.age(at)),
            last: last.map(|at| LastSent::at(self.age(at))),
            doubt: moment(8).map(|at| Doubtful { since: self.age(at), attempt: self.id(row.get(9)) }),
            proof: row.get::<_, Option<String>>(10).is_some(),
            cancel_sent: row.get(11),
            send_again: row.get(12),
            digest: match row.get::<_, Option<&[u8]>>(13) {
                None => NOTHING,
                Some([]) => MIXED,
                Some(bytes) => bytes[0],
            },
            stop_seen: matches!(row.get(14), Some("cancelled" | "deadline" | "authority_revoked")),
        };
        let held = state == State::Dispatching;
        Told { delivery, covered: last.zip(due).filter(|_| held).map(|(last, due)| last.cmp(&due)) }
    }

    /// What one operation could take, as the model's worker asks.
    pub fn wants(&self, world: &World, promise: &Promise) -> [Want; 2] {
        [false, true].map(|asks| Want {
            operation: self.operation.clone(),
            asks,
            since: None,
            free: 1,
            timeout: ticks(TIMEOUT),
            margin: ticks(LEASE - TIMEOUT),
            after: String::new(),
            pins: pins(world.pins),
            marks: promise.terms(world.pins).marks_sends(),
            tenants: None,
        })
    }

    /// A worker's claim, as it remembers it.
    pub fn claimed(&self, world: &World, worker: &Worker) -> Claimed {
        let asked_at = Uptime::now().minus(ticks(worker.age));
        let model = world.core_row(worker);
        Claimed {
            intent: Intent {
                id: ActionId(self.action),
                tenant: String::new(),
                operation: self.operation.clone(),
                traceparent: None,
                params: None,
                headers: None,
                content_type: None,
                body: Bytes::new(),
            },
            asked: matches!(worker.step, Step::Lookup | Step::Cancel),
            fence: Fence(FENCE + i64::from(worker.fence)),
            row: Row {
                claimed_at: self.at(worker.age),
                budget_from: self.at(world.row.budget_from),
                first_sent_at: worker.first.map(|age| self.at(age)),
                last_sent_at: worker.last.map(|last| self.at_last(last)),
                doubt: worker.doubt.map(|doubt| Doubt { since: self.at(doubt.since), ..doubt.core() }),
                ..model
            },
            oversize: None,
            lease: Lease { asked_at, deadline: asked_at.plus(ticks(TIMEOUT)), timeout: ticks(TIMEOUT) },
            lane: None,
        }
    }

    /// A decision of the model, in the ledger's times.
    pub fn scaled(&self, told: &Transition) -> Transition {
        let whole = |delay: Duration| ticks(in_ticks(delay));
        let since = |doubt: Doubt| Age::try_from(now().since(doubt.since).as_secs()).expect("an age");
        Transition {
            next: match told.next {
                Next::Pending { delay } => Next::Pending { delay: whole(delay) },
                Next::RetryableFailure { delay } => Next::RetryableFailure { delay: whole(delay) },
                Next::Unknown { step, delay } => Next::Unknown { step, delay: whole(delay) },
                next @ (Next::Succeeded | Next::TerminalFailure | Next::Held) => next,
            },
            doubt: told.doubt.map(|doubt| Doubt { since: self.at(since(doubt)), ..doubt }),
            ..told.clone()
        }
    }

    /// The whole row, for whoever reads of a difference.
    pub async fn dump(&self, client: &Client) -> Value {
        let sql = "select to_jsonb(d) from outbox.delivery d where action_id = $1";
        client.query_one(sql, &[&self.action]).await.expect("a row").get(0)
    }
}

/// A row, and how its `last_sent_at` compares with the end of its lease. One microsecond past a moment cannot be told
/// from any other, but that comparison is what the rules read.
#[derive(PartialEq, Eq, Debug)]
pub struct Told {
    pub delivery: Delivery,
    pub covered: Option<std::cmp::Ordering>,
}

impl Told {
    /// The model's row.
    pub fn of(row: &Delivery) -> Self {
        let held = row.state == State::Dispatching;
        let covered = row.last.zip(row.due).filter(|_| held).map(|(last, due)| {
            let due = LastSent::at(due);
            if last == due {
                std::cmp::Ordering::Equal
            } else if last.not_before(due) {
                std::cmp::Ordering::Greater
            } else {
                std::cmp::Ordering::Less
            }
        });
        Self { delivery: Delivery { last: row.last.map(|last| LastSent::at(last.age)), ..*row }, covered }
    }
}

fn named(id: Id) -> Option<Uuid> {
    (id != 0).then(|| attempt(id).0)
}

fn digest(number: u8) -> Option<Vec<u8>> {
    match number {
        NOTHING => None,
        MIXED => Some(vec![]),
        number => Some(pins(number).0.to_vec()),
    }
}

/// What of a claim's memory both sides have, in ages.
#[derive(PartialEq, Debug)]
pub struct Memory {
    step: Step,
    attempts: u32,
    first: Option<Age>,
    last: Option<Age>,
    doubt: Option<(Age, Option<AttemptId>)>,
    proof: bool,
    cancel_sent: bool,
    overridden: bool,
    sent_under: SentUnder,
    stop: Option<Stop>,
}

impl Memory {
    pub fn of(case: &Case, row: &Row) -> Self {
        Self {
            step: row.step,
            attempts: row.attempts.min(ATTEMPTS.into()),
            first: row.first_sent_at.map(|at| case.age(at)),
            last: row.last_sent_at.map(|at| case.age(at)),
            doubt: row.doubt.map(|doubt| (case.age(doubt.since), doubt.attempt)),
            proof: row.proof.is_some(),
            cancel_sent: row.cancel_sent,
            overridden: row.overridden,
            sent_under: row.sent_under,
            stop: row.stop,
        }
    }
}
