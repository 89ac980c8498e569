//! Real parts to prove it with: a private PostgreSQL, a destination that misbehaves, a daemon as a child process, the
//! demo, the drill and the benchmarks.

pub mod bench;
pub mod cluster;
pub mod daemon;
pub mod demo;
pub mod drill;
pub mod fair;
pub mod fake;
pub mod flow;
#[cfg(test)]
mod mirrored;
pub mod proxy;
pub mod session;
pub mod usage;
