//! Everything that may happen next in a world.

use super::contracts::{Memory, Promise};
use super::destination::{self, Oddities};
use super::mirror::{self, Decision};
use super::mistakes::Mistake;
use super::world::{Doing, LEASE, NETWORK, NOBODY, Phase, Request, TIMEOUT, Worker, World};
use crate::core::action::State;
use crate::core::evidence::Evidence;

/// What is explored: the contract, the rules, and how much may go wrong.
#[derive(Debug)]
pub struct Setting {
    pub promise: Promise,
    pub mistake: Mistake,
    pub oddities: Oddities,
    /// A drain hands claims back.
    pub hand_backs: bool,
}

/// One step, in words.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Deed {
    pub worker: Option<u8>,
    pub what: &'static str,
    pub evidence: Option<Evidence>,
    pub kind: DeedKind,
}

/// What a step counts as where it is asked whether rows close by themselves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DeedKind {
    /// Work, and time.
    Plain,
    /// A row is taken.
    Claim,
    /// Nobody promised it: a fault, a person, a change of the configuration.
    Outside,
}

/// The steps found so far.
pub struct Steps<'a> {
    pub setting: &'a Setting,
    pub found: Vec<(Deed, World)>,
    /// A rule that a single step has broken.
    pub broken: Option<(Deed, &'static str)>,
}

impl Steps<'_> {
    /// Finds every step out of `world`.
    pub fn out_of(&mut self, world: &World) {
        self.found.clear();
        self.time(world);
        self.outside(world);
        self.network(world);
        for at in 0..2 {
            match world.workers[at] {
                None => self.claims(world, at),
                Some(worker) => self.works(world, at, &worker),
            }
        }
    }

    fn add(&mut self, worker: Option<usize>, kind: DeedKind, what: &'static str, next: World) {
        let worker = worker.and_then(|at| u8::try_from(at).ok());
        self.found.push((Deed { worker, what, evidence: None, kind }, next));
    }

    fn plain(&mut self, at: usize, what: &'static str, next: World) {
        self.add(Some(at), DeedKind::Plain, what, next);
    }

    fn outer(&mut self, what: &'static str, next: World) {
        self.add(None, DeedKind::Outside, what, next);
    }

    /// No request outlives the network's bound; a worker that is paused past its lease is a fault.
    fn time(&mut self, world: &World) {
        let paused = world.workers.iter().flatten().filter(|w| world.is_current(w) && w.age == LEASE - 1).count() as u8;
        if world.allowed.faults < paused || world.wire.iter().flatten().any(|request| request.left == 0) {
            return;
        }
        let mut next = *world;
        next.allowed.faults -= paused;
        next.tick();
        if paused > 0 {
            self.outer("a tick passes; a worker is paused past its lease", next);
        } else {
            self.add(None, DeedKind::Plain, "a tick passes", next);
        }
    }

    fn outside(&mut self, world: &World) {
        if world.allowed.pin_changes > 0 {
            let mut next = *world;
            next.allowed.pin_changes -= 1;
            next.pins = 3 - next.pins;
            self.outer("the configuration changes: other pins", next);
        }
        let open = !world.row.state.is_closed();
        if world.allowed.stops > 0 && open {
            let mut next = *world;
            next.allowed.stops -= 1;
            next.revoked = true;
            self.outer("its authority is revoked", next);
            if !world.cancelled {
                let mut next = *world;
                next.allowed.stops -= 1;
                mirror::request_cancel(&mut next);
                self.outer("its cancellation is requested", next);
            }
        }
        if world.revoked {
            let mut next = *world;
            next.revoked = false;
            self.outer("the revocation is lifted", next);
        }
        if world.allowed.decisions > 0 {
            self.decisions(world);
        }
    }

    /// A person who is wrong excuses everything, so only decisions that agree with the world are explored.
    fn decisions(&mut self, world: &World) {
        let happened = world.is_live();
        let on_its_way = world.wire.iter().any(Option::is_some) || world.workers.iter().flatten().any(|w| w.lost);
        for (decision, true_now, what) in [
            (Decision::Happened, happened, "an operator decides: it happened"),
            (Decision::DidNotHappen, !happened && !on_its_way, "an operator decides: it did not happen"),
            (Decision::DidNotHappenRetry, !happened && !on_its_way, "an operator decides: it did not happen, retry"),
            (Decision::SendAgain, true, "an operator decides: send again"),
            (Decision::Retry, true, "an operator retries it"),
        ] {
            let mut next = *world;
            if true_now && mirror::resolve(&mut next, decision, &self.setting.promise) {
                next.allowed.decisions -= 1;
                next.truth.chosen |= decision == Decision::SendAgain;
                next.truth.conflict = false;
                next.truth.told = false;
                self.outer(what, next);
            }
        }
    }

    fn network(&mut self, world: &World) {
        let mut arrivals = Vec::new();
        for slot in 0..2 {
            if world.wire[slot].is_some() {
                destination::arrive(world, self.setting.promise.memory, self.setting.oddities, slot, &mut arrivals);
                let mut next = *world;
                next.wire[slot] = None;
                self.add(None, DeedKind::Plain, "the request is lost", next);
            }
        }
        for (what, next) in arrivals {
            self.add(None, DeedKind::Plain, what, next);
        }
    }

    fn claims(&mut self, world: &World, at: usize) {
        // Workers are alike: where both are free, the first claims.
        if world.row.state.is_closed()
            || world.row.due.is_none_or(|due| due < 0)
            || at == 1 && world.workers[0].is_none()
        {
            return;
        }
        let claim = |lost| {
            let mut next = *world;
            mirror::claim(&mut next, at, lost, &self.setting.promise, self.setting.mistake);
            next
        };
        let (kept, lost) = (claim(false), claim(true));
        self.add(Some(at), DeedKind::Claim, "claims", kept);
        let sends = lost.workers[at].is_some_and(|w| w.doing == Doing::Send);
        if world.allowed.failovers > 0 && sends && world.row.state != State::Dispatching {
            let mut lost = lost;
            lost.allowed.failovers -= 1;
            self.add(Some(at), DeedKind::Outside, "claims; a failover loses the claim", lost);
        }
    }

    fn works(&mut self, world: &World, at: usize, worker: &Worker) {
        let current = world.is_current(worker);
        if !current || world.allowed.faults > 0 {
            let mut next = *world;
            next.allowed.faults -= u8::from(current);
            next.workers[at] = None;
            nobody_waits(&mut next, at);
            self.add(Some(at), DeedKind::Outside, "crashes", next);
        }
        if self.setting.hand_backs
            && current
            && worker.age == 0
            && (worker.phase == Phase::Fresh || worker.doing == Doing::Nothing)
        {
            self.settles(world, at, worker, Evidence::NotSent, true);
        }
        let got = |evidence| {
            let mut next = *world;
            next.workers[at] = Some(Worker { phase: Phase::Got(evidence), ..*worker });
            next
        };
        match (worker.phase, worker.doing) {
            (Phase::Got(evidence), _) => self.settles(world, at, worker, evidence, false),
            (Phase::Waiting, _) => {
                let mut next = got(Evidence::NoAnswer);
                nobody_waits(&mut next, at);
                self.plain(at, "gives up waiting: no answer", next);
            }
            (Phase::Fresh | Phase::Marked, Doing::Send) => {
                self.plain(at, "proves that it did not send", got(Evidence::NotSent));
                self.sends(world, at, worker, current);
            }
            (Phase::Fresh, Doing::Lookup) => {
                let account = &world.accounts[usize::from(worker.pins - 1)];
                let memory = self.setting.promise.memory;
                destination::look_up(account, memory, |what, evidence| self.plain(at, what, got(evidence)));
            }
            (Phase::Fresh, Doing::Cancel) => {
                self.plain(at, "does not send its cancel", got(Evidence::Inconclusive));
                if current && worker.age <= TIMEOUT {
                    let mut next = *world;
                    mirror::record_cancel(&mut next, at);
                    self.plain(at, "records its cancel", next);
                }
            }
            (Phase::Marked, Doing::Cancel) => {
                let account = usize::from(worker.pins - 1);
                self.plain(at, "does not send its cancel", got(Evidence::Inconclusive));
                if worker.age <= TIMEOUT {
                    destination::cancel(&world.accounts[account], |what, evidence, changed| {
                        let mut next = got(evidence);
                        next.accounts[account] = changed;
                        self.plain(at, what, next);
                    });
                }
            }
            (Phase::Fresh, Doing::Nothing) | (Phase::Marked, Doing::Nothing | Doing::Lookup) => {}
        }
    }

    fn sends(&mut self, world: &World, at: usize, worker: &Worker, current: bool) {
        if !world.may_still_leave(worker, self.setting.mistake) {
            return;
        }
        let marks = self.setting.promise.terms(worker.pins).marks_sends();
        if marks && worker.phase == Phase::Fresh && self.setting.mistake != Mistake::SendsUnmarked {
            if current {
                let mut next = *world;
                mirror::mark(&mut next, at);
                self.plain(at, "marks its send", next);
            }
            return;
        }
        let Some(slot) = world.wire.iter().position(Option::is_none) else { return };
        let mut next = *world;
        let bit = 1 << (worker.pins - 1);
        let truth = &mut next.truth;
        truth.collided |= truth.ghost;
        if worker.lost {
            let met = world.row.first.is_some() || world.effects() > 0 || world.wire.iter().any(Option::is_some);
            truth.collided |= met;
            truth.ghost = true;
        } else {
            truth.sent_under |= bit;
        }
        let request = Request { left: NETWORK, account: worker.pins - 1, from: at as u8 };
        next.wire[slot] = Some(request);
        next.workers[at] = Some(Worker { phase: Phase::Waiting, ..*worker });
        self.plain(at, "sends", next);
        if !worker.lost && !worker.overridden {
            let wrong = match () {
                // What is told of after the claim cannot stop the send any more.
                () if worker.doubt.is_some() && !world.truth.collided && world.truth.sent_under & !bit != 0 => {
                    Some("sent again under other pins while in doubt")
                }
                () if world.truth.conflict => Some("sent again after the destination said that the key is another's"),
                () => None,
            };
            self.broken = self.broken.or(wrong.zip(self.found.last()).map(|(why, found)| (found.0, why)));
        }
    }
}

impl World {
    /// Whether bytes of that claim may still leave.
    pub fn may_still_leave(&self, worker: &Worker, mistake: Mistake) -> bool {
        let trusted = worker.age <= TIMEOUT || mistake == Mistake::LeaseTrustedForEver;
        trusted && worker.not_after.is_none_or(|end| end <= 0)
    }

    /// It is in force at the destination.
    pub fn is_live(&self) -> bool {
        self.accounts.iter().any(|account| account.live)
    }

    /// How often it took effect.
    pub fn effects(&self) -> u8 {
        self.accounts.iter().map(|account| account.taken).sum()
    }

    /// A request on its way may still take effect.
    pub fn can_arrive(&self, memory: Memory) -> bool {
        self.wire.iter().flatten().any(|request| destination::can_take_effect(self, memory, request.account))
    }
}

fn nobody_waits(world: &mut World, at: usize) {
    for request in world.wire.iter_mut().flatten().filter(|request| usize::from(request.from) == at) {
        request.from = NOBODY;
    }
}
