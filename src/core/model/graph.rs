//! Questions about the whole graph: can every row come to rest, and can none be claimed for ever.

use super::steps::DeedKind;

/// A step from one world to another.
#[derive(Clone, Copy, Debug)]
pub struct Edge {
    pub from: u32,
    pub to: u32,
    pub kind: DeedKind,
}

/// Neighbours by world, in one vector.
struct Neighbours {
    starts: Vec<u32>,
    all: Vec<u32>,
}

impl Neighbours {
    fn of(worlds: usize, pairs: impl Iterator<Item = (u32, u32)> + Clone) -> Self {
        let mut starts = vec![0; worlds + 1];
        for (at, _) in pairs.clone() {
            starts[at as usize + 1] += 1;
        }
        for at in 0..worlds {
            starts[at + 1] += starts[at];
        }
        let mut next = starts.clone();
        let mut all = vec![0; starts[worlds] as usize];
        for (at, neighbour) in pairs {
            all[next[at as usize] as usize] = neighbour;
            next[at as usize] += 1;
        }
        Self { starts, all }
    }

    fn at(&self, world: u32) -> &[u32] {
        let world = world as usize;
        &self.all[self.starts[world] as usize..self.starts[world + 1] as usize]
    }
}

/// A world from which no work and no time leads to rest.
pub fn stuck(resting: &[bool], edges: &[Edge]) -> Option<usize> {
    let plain = edges.iter().filter(|edge| edge.kind != DeedKind::Outside);
    let before = Neighbours::of(resting.len(), plain.map(|edge| (edge.to, edge.from)));
    let mut reaches = resting.to_vec();
    let mut open: Vec<u32> = (0..resting.len() as u32).filter(|at| resting[*at as usize]).collect();
    while let Some(at) = open.pop() {
        for from in before.at(at) {
            if !std::mem::replace(&mut reaches[*from as usize], true) {
                open.push(*from);
            }
        }
    }
    reaches.iter().position(|reaches| !reaches)
}

/// A world in a circle of work and time that claims the row, over and over.
pub fn turning(resting: &[bool], edges: &[Edge]) -> Option<usize> {
    let rests = |at: u32| resting[at as usize];
    let busy: Vec<Edge> = edges
        .iter()
        .filter(|e| e.kind != DeedKind::Outside && e.from != e.to && !rests(e.from) && !rests(e.to))
        .copied()
        .collect();
    // What has no way on is in no circle, nor what then has no way in.
    let mut alive = vec![true; resting.len()];
    prune(&mut alive, busy.iter().map(|edge| (edge.from, edge.to)));
    prune(&mut alive, busy.iter().map(|edge| (edge.to, edge.from)));
    let lives = |at: u32| alive[at as usize];
    let claim = busy.iter().find(|edge| edge.kind == DeedKind::Claim && lives(edge.from) && lives(edge.to));
    claim.map(|edge| edge.from as usize)
}

/// Leaves alive what always has a way on to something alive.
fn prune(alive: &mut [bool], ways: impl Iterator<Item = (u32, u32)> + Clone) {
    let before = Neighbours::of(alive.len(), ways.clone().map(|(from, to)| (to, from)));
    let mut left = vec![0_u32; alive.len()];
    for (from, to) in ways {
        left[from as usize] += u32::from(alive[from as usize] && alive[to as usize]);
    }
    let mut ended: Vec<u32> =
        (0..alive.len() as u32).filter(|at| alive[*at as usize] && left[*at as usize] == 0).collect();
    while let Some(at) = ended.pop() {
        alive[at as usize] = false;
        for from in before.at(at) {
            let from = *from as usize;
            if alive[from] {
                left[from] -= 1;
                if left[from] == 0 {
                    ended.push(from as u32);
                }
            }
        }
    }
}
