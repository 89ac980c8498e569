//! What becomes of what a worker has learnt: decided, settled, decided again, or told late.

use std::time::Duration;

use super::mirror::{self, Settled};
use super::steps::{Deed, DeedKind, Steps};
use super::world::{Doing, Phase, Worker, World, now};
use crate::core::action::{State, Step};
use crate::core::decide::{self, Moment};
use crate::core::evidence::{Evidence, Finding};
use crate::core::late::Testimony;
use crate::core::retry::Dice;

impl Steps<'_> {
    /// Decides and settles, as the dispatcher's delivery and settler do.
    pub(super) fn settles(&mut self, world: &World, at: usize, worker: &Worker, evidence: Evidence, untouched: bool) {
        let mut next = *world;
        let mut worker = *worker;
        let terms = self.setting.promise.terms(worker.pins);
        let moment = Moment { now: now(), paused: Duration::ZERO, probed: false, dice: Dice::new(0.0) };
        let mut first = untouched;
        let what = loop {
            let row = next.core_row(&worker);
            let decided = if std::mem::take(&mut first) {
                decide::untouched(&row)
            } else {
                let evidence = if worker.proof { Evidence::Proof } else { evidence };
                self.setting.mistake.decide(&row, &Finding::new(evidence, None), terms, moment)
            };
            if worker.settled {
                break "finds that it has settled before:";
            }
            match mirror::settle(&mut next, &worker, &decided, self.setting.mistake) {
                Settled::Written => {
                    next.truth.conflict |= evidence == Evidence::KeyConflict;
                    break if untouched { "hands it back:" } else { "settles" };
                }
                Settled::Changed => mirror::read_again(&next, &mut worker, self.setting.mistake),
                Settled::Overtaken if worker.doing == Doing::Send => {
                    self.testifies(&mut next, &worker, evidence);
                    break "testifies late:";
                }
                Settled::Overtaken => break "is overtaken:",
            }
        };
        let kind = if untouched { DeedKind::Outside } else { DeedKind::Plain };
        next.workers[at] = None;
        let deed = Deed { worker: Some(at as u8), what, evidence: Some(evidence), kind };
        if let Some(check) = mirror::broken_check(&next.row) {
            self.broken = self.broken.or(Some((deed, check)));
        }
        self.found.push((deed, next));
        if !worker.settled && !untouched && world.allowed.faults > 0 {
            next.allowed.faults -= 1;
            next.workers[at] = Some(Worker { settled: true, known: true, phase: Phase::Got(evidence), ..worker });
            let what = "writes, but the answer to its COMMIT is lost:";
            self.found.push((Deed { what, kind: DeedKind::Outside, ..deed }, next));
        }
    }

    fn testifies(&mut self, next: &mut World, worker: &Worker, evidence: Evidence) {
        let before = next.row;
        let meaning = mirror::testify(next, worker, evidence, self.setting.mistake);
        if before.state.is_closed() {
            return;
        }
        next.truth.told |= evidence == Evidence::Accepted;
        let holder = next.workers.iter().flatten().find(|w| next.is_current(w) && w.doing == Doing::Send);
        let held_under = holder.map_or(0, |holder| 1 << (holder.pins - 1));
        let truth = &mut next.truth;
        match meaning {
            Testimony::Doubt => truth.sent_under |= 1 << (worker.pins - 1),
            Testimony::ClearToPending | Testimony::ClearToRetryable => truth.sent_under = held_under,
            Testimony::Record | Testimony::Contradicts | Testimony::Close | Testimony::Wait | Testimony::Hold => {}
        }
        if worker.lost && truth.ghost {
            truth.ghost = false;
            truth.collided |= before.state == State::Dispatching && before.step == Step::Send;
        }
    }
}
