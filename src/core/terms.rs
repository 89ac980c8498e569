//! The terms under which one operation is dispatched: what its owner allows and what its destination promises.

use std::time::Duration;

use super::contract::{Contract, Effect};
use super::retry::Backoff;

/// A hash of everything a resend must find unchanged: base URL, templates, key form and place, account.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Pins(pub [u8; 16]);

/// What the operation's owner allows.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Policy {
    /// How much harm a repeat could do.
    pub effect: Effect,
    /// One attempt, from the claim to the end of the answer.
    pub timeout: Duration,
    /// Sends that got an ambiguous or failing answer, and lapses; at least 1.
    pub attempts_max: u32,
    /// How many attempts the owner pays for; `None` = any number.
    pub affordable: Option<u32>,
    /// From `budget_from` (commit, `not_before` or the operator's retry) to the last send.
    pub elapsed_max: Duration,
    /// Between attempts.
    pub backoff: Backoff,
    /// The longest wait a destination may ask for.
    pub retry_after_max: Duration,
    /// How long an outcome may stay unknown before a person is asked.
    pub review_after: Duration,
    /// How late a repeat that needs no key may still leave, from the first send.
    pub resend_within: Duration,
}

/// Policy, contract and pins of one operation, as the running configuration has them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Terms {
    /// What the owner allows.
    pub policy: Policy,
    /// What the destination promises.
    pub contract: Contract,
    /// What a resend must find unchanged.
    pub pins: Pins,
}

impl Terms {
    /// An operation that can neither resend nor look up marks its send just before it, so that a crash between claim
    /// and send is known to be one.
    pub fn marks_sends(&self) -> bool {
        use super::contract::Rung;
        !self.contract.reconcile.iter().any(|rung| match rung {
            Rung::Resend => self.policy.effect != Effect::Unreconcilable,
            Rung::Lookup | Rung::Cancel => true,
            Rung::Review => false,
        })
    }
}
