//! outboxd.
pub mod cli;
pub mod clock;
pub mod config;
pub mod core;
pub mod destination;
pub mod dispatcher;
pub mod ledger;
pub mod log;
pub mod proving;
