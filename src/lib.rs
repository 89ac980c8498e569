//! outboxd.
pub mod clock;
pub mod config;
pub mod core;
pub mod destination;
pub mod ledger;
pub mod proving;
