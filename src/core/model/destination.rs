//! The destination: everything that a contract allows it to do.

use super::contracts::Memory;
use super::world::{Age, LAG, NOBODY, Phase, World};
use crate::core::evidence::Evidence;

/// What one account at the destination has and remembers.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Account {
    /// How often it took effect, as far as nobody voided it; at most 2 are counted.
    pub taken: u8,
    /// An effect is in force.
    pub live: bool,
    /// How long it has known the key.
    pub key: Option<Age>,
    /// What it remembers under the key is a refusal.
    pub refused: bool,
    /// Since the last effect: a lookup may miss it until [`LAG`].
    pub visible: Age,
}

impl Account {
    pub const fn new() -> Self {
        Self { taken: 0, live: false, key: None, refused: false, visible: LAG }
    }

    pub fn tick(&mut self) {
        if let Some(age) = &mut self.key {
            *age = (*age + 1).min(super::world::WINDOW);
        }
        self.visible = (self.visible + 1).min(LAG);
    }

    fn knows(&self, memory: Memory) -> bool {
        match memory {
            Memory::None => false,
            Memory::For(window) => self.key.is_some_and(|age| age < window),
            Memory::Forever => self.key.is_some(),
            Memory::Natural => self.taken > 0,
        }
    }

    fn takes_effect(&mut self, memory: Memory) {
        self.taken = (self.taken + 1).min(2);
        self.live = true;
        self.visible = 0;
        self.refused = false;
        match memory {
            Memory::None | Memory::Natural => {}
            Memory::For(_) | Memory::Forever => self.key = Some(0),
        }
    }
}

/// Which of the rarer answers are explored.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Oddities {
    /// Mismatching answers and key conflicts.
    pub odd: bool,
    /// Refusals that are kept with the key and replayed.
    pub replays: bool,
    /// Refused credentials.
    pub blocks: bool,
}

/// A request that may leave for an account, or be on its way there, can still change something.
pub fn can_take_effect(world: &World, memory: Memory, account: u8) -> bool {
    let account = &world.accounts[usize::from(account)];
    !account.knows(memory) || memory == Memory::Natural && !account.live
}

/// Every way in which a request that arrives now may be treated.
pub fn arrive(world: &World, memory: Memory, odd: Oddities, slot: usize, out: &mut Vec<(&'static str, World)>) {
    let Some(request) = world.wire[slot] else { return };
    let at = usize::from(request.account);
    let account = world.accounts[at];
    let mut answer = |what, evidence, change: &dyn Fn(&mut Account)| {
        let mut next = *world;
        next.wire[slot] = None;
        change(&mut next.accounts[at]);
        if request.from != NOBODY
            && let Some(worker) = &mut next.workers[usize::from(request.from)]
        {
            worker.phase = Phase::Got(evidence);
        }
        out.push((what, next));
    };
    let nothing = |_: &mut Account| {};
    let keyed = matches!(memory, Memory::For(_) | Memory::Forever);
    if account.knows(memory) {
        if account.refused {
            answer("the request arrives: the refusal is replayed", Evidence::Rejected { replayed: true }, &nothing);
        } else {
            answer("the request arrives: a repeat, confirmed", Evidence::Accepted, &|account| {
                if memory == Memory::Natural {
                    account.live = true;
                    account.visible = 0;
                }
            });
            if keyed && account.key.is_some_and(|age| age <= 1) {
                answer("the request arrives: the first is still in flight", Evidence::InFlight, &nothing);
            }
        }
        if odd.odd {
            answer("the request arrives: key conflict", Evidence::KeyConflict, &nothing);
        }
    } else {
        answer("the request arrives: EFFECT, accepted", Evidence::Accepted, &|a| a.takes_effect(memory));
        if odd.odd {
            answer("the request arrives: EFFECT, mismatch", Evidence::Mismatch, &|a| a.takes_effect(memory));
        }
        if odd.replays && keyed {
            let refused = |account: &mut Account| {
                account.key = Some(0);
                account.refused = true;
            };
            answer("the request arrives: refused for good, kept", Evidence::Rejected { replayed: false }, &refused);
        }
    }
    answer("the request arrives: refused for good", Evidence::Rejected { replayed: false }, &nothing);
    answer("the request arrives: not now", Evidence::Deferred, &nothing);
    if odd.blocks {
        answer("the request arrives: credentials refused", Evidence::Blocked, &nothing);
    }
}

/// What a lookup may say.
pub fn look_up(account: &Account, memory: Memory, mut say: impl FnMut(&'static str, Evidence)) {
    if account.live && (account.taken == 1 || memory == Memory::Natural) {
        say("finds it", Evidence::Found);
    }
    if account.live && account.taken > 1 {
        say("finds two", Evidence::Mismatch);
    }
    if !account.live || account.visible < LAG {
        say("finds nothing", Evidence::Absent);
    }
    say("learns nothing from its lookup", Evidence::Inconclusive);
}

/// What a cancel by key may do and say.
pub fn cancel(account: &Account, mut say: impl FnMut(&'static str, Evidence, Account)) {
    let void = Account { live: false, taken: account.taken.saturating_sub(1), ..*account };
    if account.live {
        say("cancels: the effect is void", Evidence::Neutralised, void);
        say("cancels: the effect is void, the answer is lost", Evidence::Inconclusive, void);
    }
    if !account.live || account.visible < LAG {
        say("cancels: there is nothing to cancel", Evidence::Neutralised, *account);
    }
    say("cancels: nothing comes of it", Evidence::Inconclusive, *account);
}
