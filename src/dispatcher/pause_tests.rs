//! One destination on a clock of its own.

use super::*;

const HALF: f64 = 0.5;

fn trouble(why: Why) -> Word {
    Word::Trouble(Cause { why, reason: None, status: None })
}

/// A destination on a clock of its own.
struct Trial {
    standing: Standing,
    now: Uptime,
}

/// Of every claim.
const LEASE: Duration = Duration::from_secs(30);

impl Trial {
    fn new() -> Self {
        Self { standing: Standing::default(), now: Uptime::now() }
    }

    fn after(&mut self, seconds: f64) -> &mut Self {
        self.now = self.now.plus(Duration::from_secs_f64(seconds));
        self
    }

    fn claimed(&mut self, at: Uptime) {
        self.standing.claimed(at, at.plus(LEASE));
    }

    /// Claimed now, and this came of it at once.
    fn hears(&mut self, word: Word) -> Change {
        self.claimed(self.now);
        self.standing.learnt(word, self.now, self.now, Dice::new(HALF))
    }

    /// The same, of what has been under way since before.
    fn still_hears(&mut self, word: Word) -> Change {
        let before = self.now.minus(Duration::from_secs(3600));
        self.standing.learnt(word, before, self.now, Dice::new(HALF))
    }

    fn takes(&self) -> u32 {
        self.standing.takes(self.now)
    }

    fn probe_in(&self) -> f64 {
        self.standing.pause().expect("a wait").waits_until().since(self.now).as_secs_f64()
    }

    fn is_paused(&self) -> Option<Why> {
        self.standing.pause().map(|pause| pause.cause.why)
    }
}

#[test]
fn b60_proofs_in_a_row_pause_it_and_one_answer_between_them_does_not_let_it_come_to_that() {
    let mut trial = Trial::new();
    for _ in 0..100 {
        for _ in 1..UNREACHED {
            assert_eq!(trial.hears(trouble(Why::Unreachable)), Change::None);
        }
        assert_eq!(trial.hears(Word::Answered), Change::None);
    }
    assert_eq!(trial.takes(), u32::MAX);
    for _ in 1..UNREACHED {
        trial.hears(trouble(Why::Unreachable));
    }
    assert!(matches!(trial.hears(trouble(Why::Unreachable)), Change::Paused(cause) if cause.why == Why::Unreachable));
    assert_eq!(trial.takes(), 0, "not before its probe is due");
}

#[test]
fn b60_probes_are_single_jittered_and_double_up_to_half_a_minute() {
    let mut trial = Trial::new();
    for _ in 0..UNREACHED {
        trial.hears(trouble(Why::Unreachable));
    }
    let mut waits = Vec::new();
    for _ in 0..8 {
        let wait = trial.probe_in();
        waits.push(wait);
        assert_eq!(trial.after(wait).takes(), 1);
        trial.claimed(trial.now);
        assert_eq!(trial.takes(), 0, "one at a time");
        assert_eq!(trial.hears(trouble(Why::Unreachable)), Change::Probed);
    }
    assert_eq!(waits, [0.75, 1.5, 3.0, 6.0, 12.0, 22.5, 22.5, 22.5], "three quarters of it, as the dice fell");
    let (earliest, latest) = (PROBES.delay(3, Dice::new(0.0)), PROBES.delay(3, Dice::new(1.0)));
    assert!(latest > earliest.mul_f64(1.9), "{earliest:?} to {latest:?}");
}

#[test]
fn b85_the_first_answer_takes_everything_in_again() {
    for why in [Why::Unreachable, Why::Silent] {
        let mut trial = Trial::new();
        for _ in 0..SILENT {
            trial.hears(trouble(why));
        }
        assert_eq!(trial.is_paused(), Some(why));
        let change = trial.after(40.0).still_hears(Word::Answered);
        assert!(matches!(change, Change::Resumed { .. }), "also one that was under way: {change:?}");
        assert_eq!(trial.takes(), u32::MAX);
        assert_eq!(trial.hears(trouble(why)), Change::None, "and it begins to count anew");
    }
}

#[test]
fn r15_refused_credentials_pause_it_at_once_until_a_probe_passes() {
    let mut trial = Trial::new();
    assert_eq!(trial.hears(Word::Answered), Change::None);
    assert!(matches!(trial.hears(trouble(Why::Credentials)), Change::Paused(_)));
    assert_eq!(trial.still_hears(Word::Answered), Change::None, "what was under way before says nothing");
    assert_eq!(trial.takes(), 0);
    trial.after(1.0);
    assert_eq!(trial.hears(trouble(Why::Credentials)), Change::Probed);
    trial.after(2.0);
    let change = trial.hears(Word::Answered);
    assert!(matches!(change, Change::Resumed { why: Why::Credentials, probes: 2, .. }), "{change:?}");
    assert_eq!(trial.takes(), u32::MAX);
}

#[test]
fn r15_a_destination_that_is_back_and_refuses_us_is_paused_for_that() {
    let mut trial = Trial::new();
    for _ in 0..UNREACHED {
        trial.hears(trouble(Why::Unreachable));
    }
    trial.after(2.0);
    assert!(matches!(trial.hears(trouble(Why::Credentials)), Change::Paused(_)));
    assert_eq!(trial.is_paused(), Some(Why::Credentials));
    trial.after(2.0).hears(trouble(Why::Unreachable));
    assert_eq!(trial.is_paused(), Some(Why::Credentials), "until it takes them, that is what is known of it");
}

#[test]
fn b41_silence_pauses_it_later_than_refusal_and_counts_both() {
    let mut trial = Trial::new();
    for _ in 1..SILENT {
        assert_eq!(trial.hears(trouble(Why::Silent)), Change::None);
    }
    assert!(matches!(trial.hears(trouble(Why::Silent)), Change::Paused(cause) if cause.why == Why::Silent));
    let mut mixed = Trial::new();
    for _ in 0..SILENT / 2 - 1 {
        mixed.hears(trouble(Why::Unreachable));
        mixed.hears(trouble(Why::Silent));
    }
    mixed.hears(trouble(Why::Unreachable));
    assert_eq!(mixed.is_paused(), None);
    mixed.hears(trouble(Why::Unreachable));
    assert_eq!(mixed.is_paused(), Some(Why::Unreachable));
}

#[test]
fn r15_a_probe_that_sends_nothing_leaves_its_turn_to_the_next() {
    let mut trial = Trial::new();
    trial.hears(trouble(Why::Credentials));
    let before = trial.now.minus(Duration::from_secs(1));
    trial.after(1.0).claimed(before);
    assert_eq!(trial.takes(), 1, "a claim that was on its way when the pause began is no probe");
    let now = trial.now;
    trial.claimed(now);
    assert_eq!(trial.takes(), 0);
    assert_eq!(trial.hears(Word::Nothing), Change::None);
    assert_eq!(trial.takes(), 1);
    assert_eq!(trial.hears(Word::Unheard), Change::Probed, "a question without an answer was one");
    assert_eq!(trial.takes(), 0);
}

#[test]
fn what_was_claimed_before_a_pause_began_finds_the_way_closed_and_a_probe_finds_it_open() {
    let mut trial = Trial::new();
    let before = trial.now;
    trial.after(1.0).hears(trouble(Why::Credentials));
    let wait = trial.probe_in();
    trial.after(wait);
    assert!(trial.standing.closed_since(before, trial.now), "although a probe would be due");
    trial.claimed(trial.now);
    assert!(!trial.standing.closed_since(trial.now, trial.now), "that is the probe");
    trial.standing.be_patient(trial.now.plus(LEASE));
    assert!(trial.standing.closed_since(trial.now, trial.now), "it asked for patience since");
    assert!(!trial.standing.closed_since(trial.now, trial.now.plus(LEASE)));
}

#[test]
fn a_probe_that_nothing_is_heard_of_is_over_with_its_lease() {
    let mut trial = Trial::new();
    trial.hears(trouble(Why::Credentials));
    let wait = trial.probe_in();
    trial.after(wait);
    trial.claimed(trial.now);
    assert_eq!((trial.takes(), trial.standing.opens_at(trial.now)), (0, Some(trial.now.plus(LEASE))));
    assert_eq!(trial.after(LEASE.as_secs_f64()).takes(), 1, "whoever carried it out is gone");
}

#[test]
fn r15_what_is_not_as_it_was_is_probed_at_once() {
    let mut trial = Trial::new();
    trial.hears(trouble(Why::Credentials));
    for _ in 0..5 {
        trial.after(30.0).hears(trouble(Why::Credentials));
    }
    assert_eq!(trial.takes(), 0);
    let now = trial.now;
    trial.standing.probe_soon(now);
    assert_eq!(trial.takes(), 1);
    trial.hears(trouble(Why::Credentials));
    assert!(trial.probe_in() <= 1.0, "the waits begin anew");
}

#[test]
fn the_time_of_pauses_is_known_also_when_they_are_over() {
    let mut trial = Trial::new();
    let begin = trial.now;
    let paused = |trial: &Trial, from| trial.standing.paused_since(from, trial.now).as_secs_f64();
    assert!(paused(&trial, begin) < 0.001);
    trial.hears(trouble(Why::Credentials));
    trial.after(20.0);
    assert!((paused(&trial, begin) - 20.0).abs() < 0.001);
    trial.hears(Word::Answered);
    let end = trial.after(10.0).now;
    assert!((paused(&trial, begin) - 20.0).abs() < 0.001);
    assert!(paused(&trial, end) < 0.001, "a doubt that is younger than the pause");
}

#[test]
fn a_probe_that_is_due_with_nothing_to_probe_wakes_nobody() {
    let mut trial = Trial::new();
    trial.hears(trouble(Why::Credentials));
    let opens = |trial: &Trial| trial.standing.opens_at(trial.now).map(|at| at.since(trial.now).as_secs_f64());
    assert_eq!(opens(&trial), Some(0.75));
    assert_eq!((trial.after(0.75).takes(), opens(&trial)), (1, None));
}

#[test]
fn b12_patience_ends_when_the_longest_wait_that_was_asked_for_does() {
    let mut trial = Trial::new();
    let later = |trial: &Trial, seconds| trial.now.plus(Duration::from_secs(seconds));
    assert_eq!(trial.standing.be_patient(later(&trial, 10)), None);
    trial.standing.be_patient(later(&trial, 3));
    assert_eq!((trial.after(9.0).takes(), trial.after(1.0).takes()), (0, u32::MAX));
    trial.hears(trouble(Why::Credentials));
    trial.standing.be_patient(later(&trial, 20));
    assert_eq!((trial.after(19.0).takes(), trial.after(1.0).takes()), (0, 1), "a probe is no exception");
}
