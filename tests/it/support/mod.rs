//! What the tests stand on.

pub mod database;
pub mod ledger;
pub mod world;

pub use database::Database;
pub use world::World;
