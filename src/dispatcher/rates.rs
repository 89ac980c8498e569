//! How often requests may leave. Tokens are taken before a claim, so that nothing is claimed which may not be sent now;
//! what a claim does not use stays in hand.

use std::num::NonZeroU32;
use std::time::Duration;

use governor::clock::{Clock, MonotonicClock};
use governor::middleware::NoOpMiddleware;
use governor::state::{InMemoryState, NotKeyed};
use governor::{Quota, RateLimiter};

use super::slots::Open;
use crate::core::target::Rate;

/// Few tokens are not waited for one by one: a claim is worth as many as come in this time, or a whole burst.
const TOGETHER: Duration = Duration::from_millis(20);

/// The tokens under one rate.
struct Tokens<C: Clock = MonotonicClock> {
    rate: Rate,
    /// Makes tokens. It is emptied at every look, so that all there are lie in hand, and never more than a burst.
    mint: RateLimiter<NotKeyed, InMemoryState, C, NoOpMiddleware<C::Instant>>,
    clock: C,
    hand: u32,
    /// How long until the mint has another one.
    next: Duration,
}

impl<C: Clock + Clone> Tokens<C> {
    fn new(rate: Rate, clock: C) -> Option<Self> {
        let quota = Quota::with_period(rate.every())?.allow_burst(NonZeroU32::new(rate.burst)?);
        let mint = RateLimiter::direct_with_clock(quota, clock.clone());
        Some(Self { rate, mint, clock, hand: 0, next: Duration::ZERO })
    }

    /// Takes what there is. Returns how many requests may leave now.
    fn look(&mut self) -> u32 {
        loop {
            match self.mint.check() {
                Ok(()) => self.hand = self.hand.saturating_add(1),
                Err(not_until) => {
                    self.next = not_until.wait_time_from(self.clock.now());
                    break;
                }
            }
        }
        self.hand = self.hand.min(self.rate.burst);
        self.hand
    }

    /// How long until a claim is worth its way; `None` while there are tokens in hand.
    fn wait(&self) -> Option<Duration> {
        let every = self.rate.every();
        let worth = u32::try_from(TOGETHER.as_nanos() / every.as_nanos().max(1)).unwrap_or(u32::MAX);
        (self.hand == 0).then(|| self.next.saturating_add(every.saturating_mul(worth.clamp(1, self.rate.burst) - 1)))
    }
}

/// The rates of destinations and operations, by number.
#[derive(Default)]
pub struct Rates {
    destinations: Vec<Option<Tokens>>,
    operations: Vec<Option<Tokens>>,
}

impl Rates {
    /// Other rates from now on. One that is as it was keeps its tokens.
    pub fn limited(&mut self, destinations: &[Option<Rate>], operations: &[Option<Rate>]) {
        exchange(&mut self.destinations, destinations);
        exchange(&mut self.operations, operations);
    }

    /// Narrows what is open to what there are tokens for.
    pub fn narrow(&mut self, open: &mut Open) {
        for (tokens, open) in
            [(&mut self.destinations, &mut open.destinations), (&mut self.operations, &mut open.operations)]
        {
            for (tokens, open) in tokens.iter_mut().zip(open) {
                if let Some(tokens) = tokens {
                    *open = tokens.look().min(*open);
                }
            }
        }
    }

    /// A request is going to leave.
    pub fn spend(&mut self, destination: usize, operation: usize) {
        for tokens in [self.destinations.get_mut(destination), self.operations.get_mut(operation)] {
            if let Some(Some(tokens)) = tokens {
                tokens.hand = tokens.hand.saturating_sub(1);
            }
        }
    }

    /// How long until there are tokens again where there are none now; `None` where there are some everywhere.
    pub fn more_in(&self) -> Option<Duration> {
        self.destinations.iter().chain(&self.operations).flatten().filter_map(Tokens::wait).min()
    }
}

fn exchange(tokens: &mut Vec<Option<Tokens>>, rates: &[Option<Rate>]) {
    tokens.resize_with(tokens.len().max(rates.len()), || None);
    for (number, tokens) in tokens.iter_mut().enumerate() {
        let rate = rates.get(number).copied().flatten();
        if tokens.as_ref().map(|tokens| tokens.rate) != rate {
            *tokens = rate.and_then(|rate| Tokens::new(rate, MonotonicClock));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use governor::clock::FakeRelativeClock;

    fn rate(count: u32, burst: u32) -> Rate {
        Rate { count, per: Duration::from_secs(1), burst }
    }

    fn tokens(count: u32, burst: u32) -> (Tokens<FakeRelativeClock>, FakeRelativeClock) {
        let clock = FakeRelativeClock::default();
        (Tokens::new(rate(count, burst), clock.clone()).expect("a rate"), clock)
    }

    #[test]
    fn tokens_come_at_the_rate_and_never_more_than_a_burst_lie_in_hand() {
        let (mut tokens, clock) = tokens(50, 5);
        assert_eq!(tokens.look(), 5);
        clock.advance(Duration::from_secs(60));
        assert_eq!(tokens.look(), 5, "however long it rested, and whatever it had not spent");
        tokens.hand = 0;
        assert_eq!((tokens.look(), tokens.wait()), (0, Some(Duration::from_millis(20))));
        let mut sent = 0;
        for _ in 0..1000 {
            clock.advance(Duration::from_millis(7));
            let some = tokens.look().min(2);
            tokens.hand -= some;
            sent += some;
        }
        assert!((345..=355).contains(&sent), "{sent} in seven seconds at 50/s");
    }

    #[test]
    fn what_was_not_spent_is_there_for_the_next_claim() {
        let (mut tokens, clock) = tokens(10, 4);
        assert_eq!(tokens.look(), 4);
        tokens.hand -= 1;
        assert_eq!((tokens.look(), tokens.wait()), (3, None));
        clock.advance(Duration::from_millis(100));
        assert_eq!(tokens.look(), 4);
    }

    #[test]
    fn fast_tokens_are_waited_for_in_handfuls_and_slow_ones_alone() {
        for (count, burst, wait) in [(1000, 100, 20.0), (1000, 4, 4.0), (10, 5, 100.0)] {
            let (mut tokens, _) = tokens(count, burst);
            tokens.look();
            tokens.hand = 0;
            tokens.look();
            let ms = tokens.wait().expect("none in hand").as_secs_f64() * 1000.0;
            assert!((ms - wait).abs() < 0.01, "{count}/s: {ms} ms");
        }
    }

    #[test]
    fn a_rate_that_is_as_it_was_keeps_its_tokens() {
        let mut rates = Rates::default();
        rates.limited(&[Some(rate(1, 3)), None], &[None]);
        let mut open = Open { destinations: vec![u32::MAX, 7], operations: vec![9] };
        rates.narrow(&mut open);
        assert_eq!((open.destinations, open.operations), (vec![3, 7], vec![9]));
        (0..3).for_each(|_| rates.spend(0, 0));
        assert!(rates.more_in().is_some());
        rates.limited(&[Some(rate(1, 3)), None, None], &[None]);
        assert!(rates.more_in().is_some());
        rates.limited(&[Some(rate(2, 3))], &[None]);
        let mut open = Open { destinations: vec![u32::MAX], operations: vec![9] };
        rates.narrow(&mut open);
        assert_eq!((open.destinations[0], rates.more_in()), (3, None), "another rate begins rested");
    }
}
