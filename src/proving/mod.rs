//! Real parts to prove it with: a private PostgreSQL, a destination that misbehaves, the demo.

pub mod cluster;
pub mod fake;
