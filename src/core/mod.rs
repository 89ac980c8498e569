//! The rules, and nothing else: no async, clock, randomness, log, SQL or network.
//!
//! A claim hands over a [`row::Row`]. [`next_step::next_step`] says what to do with it, somebody does that and comes
//! back with a [`evidence::Finding`], [`decide::decide`] says what the finding means. Whatever the rules need from
//! the world (the time, a random number) is an argument.

pub mod action;
pub mod contract;
pub mod credentials;
pub mod decide;
pub mod dsn;
pub mod evidence;
pub mod ladder;
pub mod late;
#[cfg(test)]
pub(crate) mod model;
pub mod moment;
pub mod next_step;
pub mod queue;
pub mod reason;
pub mod request;
pub mod retry;
pub mod row;
pub mod target;
pub mod terms;
pub mod time;
