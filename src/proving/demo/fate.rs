//! What the destination does with each note: dealt like cards from a seed, so that every kind of trouble comes up.

use std::collections::HashMap;
use std::time::Duration;

use rand::SeedableRng;
use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use uuid::Uuid;

use crate::proving::fake::{Behaviour, Reply, RetryAfter, Seen};

/// What it does with one request.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Move {
    /// It takes effect once per key, and answers.
    Answer,
    /// It takes effect once per key, and never answers.
    Withhold,
    /// It takes effect once per key, and resets the connection.
    Reset,
    /// It resets the connection before any effect.
    Lose,
    /// No effect: 429, come back in a second.
    Throttle,
    /// No effect, for good: this status.
    Refuse(u16),
}

use Move::{Answer, Lose, Refuse, Reset, Throttle, Withhold};

/// What the first requests for a note meet. The last move stays; an empty hand is answered at once.
type Hand = &'static [Move];

/// The deck: dealt to every [`DECK`]`.len()` notes anew.
const DECK: [Hand; 30] = [
    &[Withhold, Answer],
    &[Withhold, Answer],
    &[Withhold, Withhold, Answer],
    &[Withhold, Throttle, Answer],
    &[Reset, Answer],
    &[Throttle, Reset, Answer],
    &[Lose, Answer],
    &[Throttle, Answer],
    &[Throttle, Answer],
    &[Refuse(422)],
    &[Throttle, Refuse(400)],
    &[Answer],
    &[Answer],
    &[Answer],
    &[Answer],
    &[Answer],
    &[Answer],
    &[Answer],
    &[Answer],
    &[Answer],
    &[Answer],
    &[Answer],
    &[Answer],
    &[Answer],
    &[Answer],
    &[Answer],
    &[Answer],
    &[Answer],
    &[Answer],
    &[Answer],
];

impl Move {
    /// Whether the world is changed by it, if it is the first under its key.
    pub fn takes_effect(self) -> bool {
        match self {
            Answer | Withhold | Reset => true,
            Lose | Throttle | Refuse(_) => false,
        }
    }

    /// Whether the caller is left without an answer after an effect.
    pub fn hides(self) -> bool {
        match self {
            Withhold | Reset => true,
            Answer | Lose | Throttle | Refuse(_) => false,
        }
    }

    /// As the fake knows it. `note` only varies how long a good answer takes.
    fn behaviour(self, note: u32) -> Behaviour {
        match self {
            Answer => Behaviour::accept().delayed(Duration::from_millis(10 + u64::from(note) * 37 % 90)),
            Withhold => Behaviour::accept().withholding(),
            Reset => Behaviour::accept().resetting(),
            Lose => Behaviour::reply(Reply::new(500)).resetting(),
            Throttle => Behaviour::throttle(&RetryAfter::Seconds(1)),
            Refuse(status) => Behaviour::refuse(status),
        }
    }
}

/// What each note meets.
#[derive(Clone, Debug)]
pub struct Fates(HashMap<u32, Hand>);

impl Fates {
    /// Deals to these notes. The same seed deals the same hands.
    pub fn deal(seed: u64, notes: impl IntoIterator<Item = u32>) -> Self {
        let mut rng = StdRng::seed_from_u64(seed);
        let mut deck: Vec<Hand> = Vec::new();
        let hands = notes.into_iter().map(|note| {
            if deck.is_empty() {
                deck.extend(DECK);
                deck.shuffle(&mut rng);
            }
            (note, deck.pop().unwrap_or(&[Answer]))
        });
        Self(hands.collect())
    }

    /// What a request for this note meets when `before` others came for it. Unknown notes are answered.
    pub fn next(&self, note: Option<u32>, before: usize) -> Move {
        let hand = note.and_then(|note| self.0.get(&note)).copied().unwrap_or(&[Answer]);
        hand.get(before).or(hand.last()).copied().unwrap_or(Answer)
    }

    /// What the fake is told to do with a request.
    pub fn behave(&self, seen: &Seen, before: usize) -> Behaviour {
        let note = note_of(seen);
        self.next(note, before).behaviour(note.unwrap_or(0))
    }

    /// What was done with each request that arrived, in order.
    pub fn recall(&self, seen: &[Seen]) -> Vec<Received> {
        let mut asked: HashMap<&str, usize> = HashMap::new();
        seen.iter()
            .map(|seen| {
                let before = seen.key.as_deref().map_or(0, |key| {
                    let count = asked.entry(key).or_default();
                    *count += 1;
                    *count - 1
                });
                let note = note_of(seen);
                let id = |name| seen.header(name).and_then(|text| text.parse().ok());
                let (action, attempt) = (id("outbox-action"), id("outbox-attempt"));
                Received { note, action, attempt, did: self.next(note, before) }
            })
            .collect()
    }
}

/// A request that arrived, and what was done with it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Received {
    /// Which note it is about.
    pub note: Option<u32>,
    /// The action it says it is of.
    pub action: Option<Uuid>,
    /// The attempt it says it is.
    pub attempt: Option<Uuid>,
    /// What was done.
    pub did: Move,
}

fn note_of(seen: &Seen) -> Option<u32> {
    let body: serde_json::Value = serde_json::from_slice(&seen.body).ok()?;
    body.get("note")?.as_u64()?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_trouble_comes_up_in_one_deck() {
        let fates = Fates::deal(1, 1..=30);
        let met: Vec<Move> = (1..=30)
            .flat_map(|note| (0..3).map(move |n| (note, n)))
            .map(|(note, before)| fates.next(Some(note), before))
            .collect();
        for wanted in [Answer, Withhold, Reset, Lose, Throttle, Refuse(422), Refuse(400)] {
            assert!(met.contains(&wanted), "{wanted:?}");
        }
    }

    #[test]
    fn trouble_ends_but_a_refusal_stays() {
        for hand in DECK {
            let last = hand.last().copied();
            assert!(matches!(last, Some(Answer | Refuse(_))), "{hand:?}");
            // An effect that was taken is never refused later: no honest destination does that under one key.
            let refused = hand.iter().any(|m| matches!(m, Refuse(_)));
            assert!(!refused || !hand.iter().any(|m| m.takes_effect()), "{hand:?}");
        }
    }

    #[test]
    fn a_seed_deals_one_set_of_hands() {
        let hands = |seed| (1..=60).map(|n| Fates::deal(seed, 1..=60).next(Some(n), 0)).collect::<Vec<_>>();
        assert_eq!(hands(5), hands(5));
        assert_ne!(hands(5), hands(6));
        assert_eq!(Fates::deal(5, 1..=60).next(None, 3), Answer);
    }
}
