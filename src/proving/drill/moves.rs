//! What a destination does with a request: whether it takes effect, and what the caller gets to know of it.

use std::time::Duration;

use rand::RngExt;
use rand::rngs::StdRng;

use super::kinds::{Kind, TIMEOUT};

/// What a request meets.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Move {
    /// It takes effect, and is answered.
    Answer,
    /// It takes effect, and is answered when nobody waits any more.
    AnswerLate,
    /// It takes effect, and is never answered.
    Withhold,
    /// It takes effect, and the connection is reset.
    Reset,
    /// It takes effect, and half a status line comes.
    Stutter,
    /// It takes effect, and a broken answer comes (500).
    Break,
    /// No effect: the connection is reset.
    Lose,
    /// No effect: broken (502).
    Fail,
    /// No effect: come back later (429).
    Throttle,
    /// No effect, for good (422).
    Refuse,
}

use Move::{Answer, AnswerLate, Break, Fail, Lose, Refuse, Reset, Stutter, Throttle, Withhold};

/// Most requests are answered; the others meet one of these first.
const TROUBLE: [Move; 9] = [Withhold, Withhold, Reset, AnswerLate, Stutter, Break, Lose, Fail, Throttle];

impl Move {
    /// Whether the world is changed by it, unless the destination recognises a repeat.
    pub const fn takes_effect(self) -> bool {
        match self {
            Answer | AnswerLate | Withhold | Reset | Stutter | Break => true,
            Lose | Fail | Throttle | Refuse => false,
        }
    }

    /// How long the answer takes.
    pub const fn takes(self) -> Duration {
        match self {
            AnswerLate => TIMEOUT.saturating_mul(2),
            Answer | Withhold | Reset | Stutter | Break | Lose | Fail | Throttle | Refuse => Duration::ZERO,
        }
    }

    /// For people, after "it".
    pub const fn told(self) -> &'static str {
        match self {
            Answer => "answers",
            AnswerLate => "answers too late",
            Withhold => "withholds its answer",
            Reset => "resets the connection after its effect",
            Stutter => "sends half a status line",
            Break => "answers 500 after its effect",
            Lose => "resets the connection before any effect",
            Fail => "answers 502 without effect",
            Throttle => "answers 429 without effect",
            Refuse => "refuses it for good (422)",
        }
    }
}

/// What the requests for one order meet. Trouble ends; a refusal stays.
pub fn deal(kind: Kind, rng: &mut StdRng) -> Vec<Move> {
    let mut moves = Vec::new();
    let troubles = match rng.random_range(0..10) {
        0..=4 => 0,
        5..=7 => 1,
        8 => 2,
        _ => 3,
    };
    for _ in 0..troubles {
        moves.push(TROUBLE[rng.random_range(0..TROUBLE.len())]);
    }
    // What has taken effect is not refused afterwards: no honest destination does that to a repeat it recognises, and
    // to one it doesn't recognise it would be another request.
    let refused = rng.random_range(0..12) == 0 && !moves.iter().any(|m| m.takes_effect()) && kind != Kind::ReadOnly;
    moves.push(if refused { Refuse } else { Answer });
    moves
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;

    #[test]
    fn trouble_ends_and_nothing_is_refused_after_an_effect() {
        let mut rng = StdRng::seed_from_u64(1);
        for round in 0..2000 {
            let moves = deal(Kind::ALL[round % Kind::ALL.len()], &mut rng);
            assert!(matches!(moves.last(), Some(Answer | Refuse)), "{moves:?}");
            assert!(!moves.contains(&Refuse) || !moves.iter().any(|m| m.takes_effect()), "{moves:?}");
        }
    }
}
