//! One statement on both sides.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio_postgres::Client;

use super::AHEAD;
use super::rows::{Case, Memory, Told};
use crate::core::action::{State, Step};
use crate::core::decide::{self, Moment};
use crate::core::evidence::{Evidence, Finding};
use crate::core::model::contracts::Promise;
use crate::core::model::mirror::{self, Decision, Settled};
use crate::core::model::mistakes::Mistake;
use crate::core::model::world::{Doing, Phase, Worker, World, now, pins};
use crate::core::queue::Queue;
use crate::core::retry::Dice;
use crate::ledger::{History, LateTestimony, Ledger, Settlement, Standing};

const DECISIONS: [Decision; 5] =
    [Decision::Happened, Decision::DidNotHappen, Decision::DidNotHappenRetry, Decision::SendAgain, Decision::Retry];

/// What they are tried with, and how many of each have been.
pub struct Bench {
    pub client: Client,
    pub ledger: Ledger,
    pub number: usize,
    pub tried: BTreeMap<&'static str, usize>,
}

impl Bench {
    /// A claim where it is due, what workers write where they have learnt something or hold it, and what others do.
    pub async fn attempt(&mut self, promise: &Promise, worlds: [Option<World>; 6], kind: &str) {
        let [due, learnt, overtaken, held, decidable, open] = worlds;
        if let Some(world) = due {
            self.claim(promise, &world, kind).await;
        }
        for world in [learnt, overtaken, held].into_iter().flatten() {
            for worker in world.workers.iter().flatten() {
                self.works(promise, &world, worker, kind).await;
            }
        }
        if let Some(world) = decidable {
            for decision in DECISIONS {
                self.decide(promise, &world, decision, kind).await;
            }
        }
        if let Some(world) = open {
            self.claim(promise, &world, kind).await;
            self.cancel(promise, &world, kind).await;
            self.decide(promise, &world, Decision::Happened, kind).await;
        }
    }

    async fn works(&mut self, promise: &Promise, world: &World, worker: &Worker, kind: &str) {
        let Phase::Got(evidence) = worker.phase else {
            self.settle(promise, world, worker, (None, None), kind).await;
            return self.mark(promise, world, worker, kind).await;
        };
        for meanwhile in [None, Some(Evidence::NoAnswer), Some(Evidence::Accepted)] {
            self.settle(promise, world, worker, (Some(evidence), meanwhile), kind).await;
        }
        if worker.doing == Doing::Send && !world.is_current(worker) {
            self.testify(promise, world, worker, evidence, kind).await;
        }
    }

    async fn case(&mut self, what: &'static str, promise: &Promise, world: &World, ahead: Duration) -> Case {
        self.number += 1;
        *self.tried.entry(what).or_default() += 1;
        Case::write(&self.client, self.number, world, promise, ahead).await
    }

    async fn alike(&self, case: &Case, before: &World, after: &World, what: &str) {
        let (told, expected) = (case.read(&self.client).await, Told::of(&after.row));
        if told != expected {
            let dump = case.dump(&self.client).await;
            panic!("{what}\nbefore   {before:?}\nmirror   {expected:?}\nledger   {told:?}\n{dump}");
        }
    }

    async fn claim(&mut self, promise: &Promise, world: &World, kind: &str) {
        let case = self.case("claim", promise, world, Duration::ZERO).await;
        let mut claims = self.ledger.claim(&case.wants(world, promise)).await.expect("a claim").claimed;
        let mut next = *world;
        if !world.row.state.is_closed() && world.row.due.is_some_and(|due| due >= 0) {
            mirror::claim(&mut next, 0, false, promise, Mistake::None);
            let worker = next.workers[0].expect("a claim");
            let claimed = claims.pop().unwrap_or_else(|| panic!("{kind}: not claimed: {:?}", world.row));
            let expected = Memory::of(&case, &case.claimed(&next, &worker).row);
            assert_eq!(Memory::of(&case, &claimed.row), expected, "{kind}: claim: {world:?}");
        }
        assert!(claims.is_empty(), "{kind}: claimed: {:?}", world.row);
        self.alike(&case, world, &next, &format!("{kind}: claim")).await;
    }

    /// What a worker has learnt, and before it settles the testimony of a claim that a failover has lost. `None`: the
    /// claim is handed back untouched; nobody testifies.
    async fn settle(
        &mut self,
        promise: &Promise,
        world: &World,
        worker: &Worker,
        (learnt, meanwhile): (Option<Evidence>, Option<Evidence>),
        kind: &str,
    ) {
        let case = self.case("settle", promise, world, AHEAD).await;
        let (mut next, mut worker) = (*world, *worker);
        if let Some(evidence) = meanwhile {
            let lost = lost(world, &worker);
            self.tells(&case, &mut next, &lost, evidence, kind).await;
        }
        let mut first = learnt.is_none();
        let mut held = case.claimed(world, &worker).row;
        let moment = Moment { now: now(), paused: Duration::ZERO, probed: false, dice: Dice::new(0.0) };
        loop {
            let row = next.core_row(&worker);
            let evidence = if worker.proof { Evidence::Proof } else { learnt.unwrap_or(Evidence::NotSent) };
            let told = if std::mem::take(&mut first) {
                decide::untouched(&row)
            } else {
                decide::decide(&row, &Finding::new(evidence, None), promise.terms(worker.pins), moment)
            };
            let claimed = case.claimed(&next, &worker);
            let settlement = Settlement {
                action: claimed.intent.id,
                fence: claimed.fence,
                row: held.clone(),
                transition: case.scaled(&told),
                history: (learnt.is_some() && !worker.known).then(|| history(&worker, evidence)),
                lane: None,
                queue: Queue::Waits,
            };
            let written = self.ledger.settle(std::slice::from_ref(&settlement)).await;
            let written = written.unwrap_or_else(|error| panic!("{kind}: {error}: {world:?}")).len() == 1;
            let settled = mirror::settle(&mut next, &worker, &told, Mistake::None);
            let about = format!("{kind}: settle {evidence:?} of {worker:?}: {settled:?}");
            assert_eq!(written, settled == Settled::Written, "{about}: {world:?}");
            self.alike(&case, world, &next, &about).await;
            if written {
                break;
            }
            let standing = self.ledger.standing(&[&settlement]).await.expect("an answer");
            match standing.get(&settlement.row.attempt) {
                Some(Standing::SettledBefore) => {
                    assert!(worker.settled, "{about}: {world:?}");
                    break;
                }
                Some(Standing::Overtaken) => {
                    assert_eq!(settled, Settled::Overtaken, "{about}: {world:?}");
                    break;
                }
                Some(Standing::Changed(row)) => {
                    assert_eq!(settled, Settled::Changed, "{about}: {world:?}");
                    mirror::read_again(&next, &mut worker, Mistake::None);
                    let expected = Memory::of(&case, &case.claimed(&next, &worker).row);
                    assert_eq!(Memory::of(&case, row), expected, "{about}: {world:?}");
                    held = *row.clone();
                }
                None => panic!("{about}: the row is gone"),
            }
        }
    }

    async fn testify(&mut self, promise: &Promise, world: &World, worker: &Worker, evidence: Evidence, kind: &str) {
        let case = self.case("testify", promise, world, AHEAD).await;
        let mut next = *world;
        self.tells(&case, &mut next, worker, evidence, kind).await;
    }

    async fn tells(&self, case: &Case, world: &mut World, worker: &Worker, evidence: Evidence, kind: &str) {
        let before = *world;
        let claimed = case.claimed(world, worker);
        let (finding, history) = (Finding::new(evidence, None), history(worker, evidence));
        let told = LateTestimony::of(&claimed, &finding, pins(worker.pins), &history);
        let meaning = self.ledger.testify(told).await.expect("a testimony").expect("a row");
        let expected = mirror::testify(world, worker, evidence, Mistake::None);
        let about = format!("{kind}: testify {evidence:?} of {worker:?}: {meaning:?}");
        assert_eq!(meaning, expected, "{about}: {before:?}");
        self.alike(case, &before, world, &about).await;
    }

    /// Before a send, or before a cancel by key.
    async fn mark(&mut self, promise: &Promise, world: &World, worker: &Worker, kind: &str) {
        if !world.is_current(worker) || worker.phase != Phase::Fresh {
            return;
        }
        let at = usize::from(world.workers[0] != Some(*worker));
        let mut next = *world;
        let case = match worker.doing {
            Doing::Send => {
                let case = self.case("mark", promise, world, Duration::ZERO).await;
                self.ledger.mark(&[case.claimed(world, worker)]).await.expect("a mark");
                mirror::mark(&mut next, at);
                case
            }
            Doing::Cancel => {
                let case = self.case("mark", promise, world, Duration::ZERO).await;
                self.ledger.mark_cancels(&[case.claimed(world, worker)]).await.expect("a mark");
                mirror::record_cancel(&mut next, at);
                case
            }
            Doing::Nothing | Doing::Lookup => return,
        };
        self.alike(&case, world, &next, &format!("{kind}: mark of {worker:?}")).await;
    }

    async fn decide(&mut self, promise: &Promise, world: &World, decision: Decision, kind: &str) {
        let case = self.case("decide", promise, world, AHEAD).await;
        let sql = match decision {
            Decision::Happened => "select outbox.resolve($1, 'happened', 'ann', 'why')",
            Decision::DidNotHappen => "select outbox.resolve($1, 'did_not_happen', 'ann', 'why')",
            Decision::DidNotHappenRetry => {
                "select outbox.resolve($1, 'did_not_happen', 'ann', 'why') || outbox.retry($1, 'ann', 'why')"
            }
            Decision::SendAgain => "select outbox.resolve($1, 'send_again', 'ann', 'why')",
            Decision::Retry => "select outbox.retry($1, 'ann', 'why')",
        };
        let answer = self.client.query_one(sql, &[&case.action]).await;
        let refused = answer.err().map(|error| error.code().map(|code| code.code().to_owned()));
        let mut next = *world;
        let taken = mirror::resolve(&mut next, decision, promise);
        let about = format!("{kind}: {decision:?}");
        assert_eq!(refused, (!taken).then(|| Some("OB412".to_owned())), "{about}: {world:?}");
        self.alike(&case, world, &next, &about).await;
    }

    async fn cancel(&mut self, promise: &Promise, world: &World, kind: &str) {
        if world.row.state.is_closed() || world.cancelled {
            return;
        }
        let case = self.case("cancel", promise, world, Duration::ZERO).await;
        let said = self.client.query_one("select outbox.cancel($1, 'ann', 'why')", &[&case.action]).await;
        let said: String = said.expect("an answer").get(0);
        let certain = matches!(world.row.state, State::Pending | State::RetryableFailure);
        assert_eq!(said, if certain { "cancelled" } else { "requested" }, "{kind}: {world:?}");
        let mut next = *world;
        mirror::request_cancel(&mut next);
        self.alike(&case, world, &next, &format!("{kind}: cancel")).await;
    }
}

/// A claim of the other configuration, a tick older than that worker's, of which the ledger does not know.
fn lost(world: &World, worker: &Worker) -> Worker {
    Worker {
        attempt: world.new_id(),
        fence: 1,
        age: worker.age + 1,
        doing: Doing::Send,
        pins: 3 - worker.pins,
        lost: true,
        known: false,
        settled: false,
        ..*worker
    }
}

fn history(worker: &Worker, evidence: Evidence) -> History {
    History {
        kind: match worker.doing {
            Doing::Lookup => Step::Lookup,
            Doing::Cancel => Step::Cancel,
            Doing::Nothing | Doing::Send => Step::Send,
        },
        idempotency_key: None,
        started_ago: Duration::from_millis(20),
        deadline_in: Duration::from_secs(10),
        evidence: evidence.as_str(),
        status: None,
        detail: None,
    }
}
