//! Time passing, and the one among equal worlds that stands for all.

use super::mistakes::Mistake;
use super::world::{
    ABSENCE, Age, Delivery, Doing, Doubtful, ELAPSED, Id, LEASE, LastSent, NOBODY, NOTHING, Phase, RESEND_WITHIN,
    REVIEW_AFTER, Worker, World,
};
use crate::core::action::{State, Step};

/// Ages that no rule tells apart. `last_sent_at` goes one further than `due_at`, unless they are equal, so that
/// comparing the two means the same for ever.
const LEASE_OVER: Age = ABSENCE + 1;
const LONG_SENT: Age = RESEND_WITHIN;

impl World {
    /// A tick passes.
    pub fn tick(&mut self) {
        let row = &mut self.row;
        let covered = row.state == State::Dispatching && row.last.map(|l| l.age) == row.due;
        bump(&mut row.due, if row.state == State::Dispatching { LEASE_OVER } else { 0 });
        bump(&mut row.first, LONG_SENT);
        bump_last(&mut row.last, if covered { LEASE_OVER } else { LEASE_OVER + 1 });
        bump_doubt(&mut row.doubt);
        row.budget_from = (row.budget_from + 1).min(ELAPSED);
        for worker in self.workers.iter_mut().flatten() {
            worker.age = (worker.age + 1).min(if worker.lost { LONG_SENT } else { LEASE + 1 });
            bump(&mut worker.not_after, 1);
            bump(&mut worker.first, LONG_SENT);
            bump_last(&mut worker.last, LEASE_OVER + 1);
            bump_doubt(&mut worker.doubt);
        }
        for request in self.wire.iter_mut().flatten() {
            request.left -= 1;
        }
        for account in &mut self.accounts {
            account.tick();
        }
    }

    /// The one among equal worlds that stands for all: attempts renamed, workers and requests in order, and what
    /// nothing can read any more forgotten. True where the workers have changed places.
    pub fn canonical(&mut self, mistake: Mistake) -> bool {
        if self.row.state.is_closed() {
            self.row = Delivery {
                state: self.row.state,
                cancel_sent: self.row.cancel_sent,
                step: Step::Conclude,
                ..Self::new(self.allowed).row
            };
            self.row.due = None;
            self.truth.told = false;
            self.truth.sent_under = 0;
            self.truth.conflict = false;
        }
        if self.row.state != State::Dispatching {
            self.row.attempt = 0;
        }
        if !mistake.reads_stale_claims() {
            self.forget_overtaken();
        }
        let swapped = self.order();
        self.rename();
        swapped
    }

    /// An overtaken claim has only testimony to give, and only about a send.
    fn forget_overtaken(&mut self) {
        for at in 0..2 {
            let Some(worker) = self.workers[at].filter(|w| !self.is_current(w)) else { continue };
            let cancelling = worker.doing == Doing::Cancel && worker.phase == Phase::Marked;
            self.workers[at] = (worker.doing == Doing::Send || cancelling).then_some(Worker {
                step: Step::Send,
                attempts: 0,
                first: None,
                last: None,
                gap: None,
                doubt: None,
                proof: false,
                cancel_sent: false,
                digest: NOTHING,
                stop: None,
                ..worker
            });
        }
    }

    fn order(&mut self) -> bool {
        let rank = |worker: &Option<Worker>| {
            let Some(w) = worker else { return 0 };
            let got = match w.phase {
                Phase::Fresh => 1,
                Phase::Marked => 2,
                Phase::Waiting => 3,
                Phase::Got(_) => 4,
            };
            let bits = [w.fence, w.age, got, w.doing as i8, w.pins as i8, i8::from(w.lost), i8::from(w.known)];
            bits.iter().fold(1_i64, |all, bit| all * 16 + i64::from(bit + 4))
        };
        let swap = rank(&self.workers[0]) < rank(&self.workers[1]);
        if swap {
            self.workers.swap(0, 1);
            for request in self.wire.iter_mut().flatten().filter(|r| r.from != NOBODY) {
                request.from = 1 - request.from;
            }
        }
        if self.wire[0] < self.wire[1] {
            self.wire.swap(0, 1);
        }
        swap
    }

    fn rename(&mut self) {
        let mut names = [0; 16];
        let mut next = 0;
        let mut rename = |id: &mut Id| {
            if *id != 0 {
                let name = &mut names[usize::from(*id)];
                if *name == 0 {
                    next += 1;
                    *name = next;
                }
                *id = *name;
            }
        };
        rename(&mut self.row.attempt);
        for worker in self.workers.iter_mut().flatten() {
            rename(&mut worker.attempt);
        }
        let doubts = self.workers.iter_mut().flatten().map(|worker| &mut worker.doubt);
        for doubt in doubts.chain([&mut self.row.doubt]).flatten() {
            rename(&mut doubt.attempt);
        }
    }
}

fn bump(age: &mut Option<Age>, most: Age) {
    if let Some(age) = age {
        *age = (*age + 1).min(most);
    }
}

fn bump_last(last: &mut Option<LastSent>, most: Age) {
    if let Some(last) = last {
        last.age = (last.age + 1).min(most);
    }
}

fn bump_doubt(doubt: &mut Option<Doubtful>) {
    if let Some(doubt) = doubt {
        doubt.since = (doubt.since + 1).min(REVIEW_AFTER);
    }
}
