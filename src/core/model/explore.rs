//! Breadth first over every world that can be reached, so that the path to a violation is a shortest one.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::hash::{BuildHasherDefault, Hasher};

use super::graph::{self, Edge};
use super::invariants;
use super::steps::{Deed, DeedKind, Setting, Steps};
use super::world::{Allowance, World};
use crate::core::action::{State, Step};

/// What an exploration found.
#[derive(Debug)]
pub enum Explored {
    /// Every world is sound; so many were visited.
    Clean(usize),
    /// An invariant is broken; the shortest path to it, one step a line.
    Broken(String),
}

/// A hasher that is quick without optimisation; nobody attacks it.
#[derive(Default)]
struct Quick(u64);

impl Quick {
    fn mix(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(5) ^ word).wrapping_mul(0x517c_c1b7_2722_0a95);
    }
}

impl Hasher for Quick {
    fn finish(&self) -> u64 {
        self.0 ^ (self.0 >> 29)
    }
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.mix(u64::from(*byte));
        }
    }
    fn write_u8(&mut self, byte: u8) {
        self.mix(u64::from(byte));
    }
    fn write_i8(&mut self, byte: i8) {
        self.mix(u64::from(byte.cast_unsigned()));
    }
    fn write_isize(&mut self, word: isize) {
        self.mix(word as u64);
    }
    fn write_usize(&mut self, word: usize) {
        self.mix(word as u64);
    }
    fn write_u64(&mut self, word: u64) {
        self.mix(word);
    }
}

/// How a world was first reached.
#[derive(Clone, Copy)]
struct Origin {
    from: u32,
    deed: Deed,
    /// Its workers have changed places on the way.
    swapped: bool,
}

struct Search {
    worlds: Vec<World>,
    origins: Vec<Origin>,
    numbers: HashMap<World, u32, BuildHasherDefault<Quick>>,
    edges: Vec<Edge>,
}

/// Explores a setting to its end.
pub fn explore(setting: &Setting, allowed: Allowance) -> Explored {
    let start = World::new(allowed);
    let nothing = Deed { worker: None, what: "committed", evidence: None, kind: DeedKind::Plain };
    let mut search = Search {
        worlds: vec![start],
        origins: vec![Origin { from: 0, deed: nothing, swapped: false }],
        numbers: HashMap::from_iter([(start, 0)]),
        edges: vec![],
    };
    let mut steps = Steps { setting, found: vec![], broken: None };
    let mut at = 0;
    while at < search.worlds.len() {
        let world = search.worlds[at];
        if let Some(why) = invariants::broken(&world, setting) {
            return Explored::Broken(search.tell(at, None, why));
        }
        if !invariants::is_beyond(&world) {
            steps.out_of(&world);
            if let Some((deed, why)) = steps.broken
                && !world.truth.ghost
            {
                return Explored::Broken(search.tell(at, Some(deed), why));
            }
            steps.broken = None;
            for (deed, next) in &steps.found {
                if let Some(why) = reopened(&world, next, *deed) {
                    return Explored::Broken(search.tell(at, Some(*deed), why));
                }
                search.reach(at, *deed, *next, setting);
            }
        }
        at += 1;
    }
    let resting: Vec<bool> = search.worlds.iter().map(|w| is_at_rest(w) || invariants::is_beyond(w)).collect();
    if let Some(stuck) = graph::stuck(&resting, &search.edges) {
        return Explored::Broken(search.tell(stuck, None, "nothing leads from here to a closed or held row"));
    }
    if let Some(turning) = graph::turning(&resting, &search.edges) {
        return Explored::Broken(search.tell(turning, None, "claimed for ever without being closed or held"));
    }
    Explored::Clean(search.worlds.len())
}

fn is_at_rest(world: &World) -> bool {
    world.row.state.is_closed() || world.row.state == State::OutcomeUnknown && world.row.step == Step::Review
}

/// What is closed stays closed; only an operator tries a terminal failure again.
fn reopened(before: &World, after: &World, deed: Deed) -> Option<&'static str> {
    let again = before.row.state == State::TerminalFailure && deed.kind == DeedKind::Outside && deed.worker.is_none();
    let changed = before.row.state.is_closed() && before.row.state != after.row.state;
    (changed && !again).then_some("a closed row was changed")
}

impl Search {
    fn reach(&mut self, from: usize, deed: Deed, mut next: World, setting: &Setting) {
        if matches!(next.row.state, State::Pending | State::RetryableFailure) {
            next.truth.sent_under = 0;
        }
        let swapped = next.canonical(setting.mistake);
        let from = from as u32;
        let number = *self.numbers.entry(next).or_insert_with(|| {
            self.worlds.push(next);
            self.origins.push(Origin { from, deed, swapped });
            self.worlds.len() as u32 - 1
        });
        self.edges.push(Edge { from, to: number, kind: deed.kind });
    }

    /// The way there, one step a line, each with the row after it.
    fn tell(&self, to: usize, last: Option<Deed>, why: &str) -> String {
        let mut path = vec![];
        let mut at = to;
        while at != 0 {
            path.push(at);
            at = self.origins[at].from as usize;
        }
        path.reverse();
        // Which of the two has the first place now.
        let mut first = 0;
        let mut told = format!("{why}\n");
        let mut line = |number: usize, deed: Deed, first: u8, row: &str| {
            let who = deed.worker.map(|place| format!("worker {} ", ['A', 'B'][usize::from(place ^ first)]));
            let evidence = deed.evidence.map(|e| format!(" {}", e.as_str())).unwrap_or_default();
            let _ = writeln!(told, "{number:>3}. {}{}{evidence}{row}", who.unwrap_or_default(), deed.what);
        };
        for (number, at) in path.iter().enumerate() {
            let origin = &self.origins[*at];
            line(number + 1, origin.deed, first, &format!("  [{}]", row_in_words(&self.worlds[*at])));
            first ^= u8::from(origin.swapped);
        }
        if let Some(deed) = last {
            line(path.len() + 1, deed, first, "");
        }
        told
    }
}

fn row_in_words(world: &World) -> String {
    let row = &world.row;
    let mut words = format!("{}/{}", row.state.as_str(), row.step.as_str());
    if let Some(due) = row.due {
        let _ = write!(words, " due in {}", -due);
    }
    if let (Some(first), Some(last)) = (row.first, row.last) {
        let past = if last.past { "+1us" } else { "" };
        let _ = write!(words, " sent {first}..{}{past} ago", last.age);
    }
    for (held, word) in [
        (row.doubt.is_some(), "in doubt"),
        (row.doubt.is_some_and(|doubt| doubt.attempt == 0), "(several)"),
        (row.proof, "proof"),
        (row.cancel_sent, "cancel sent"),
        (row.send_again, "override"),
        (row.stop_seen, "stop seen"),
    ] {
        if held {
            words.push(' ');
            words.push_str(word);
        }
    }
    words
}
