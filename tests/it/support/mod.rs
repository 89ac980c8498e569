//! What the tests stand on.

pub mod database;
pub mod gate;
pub mod ledger;
pub mod world;

pub use database::Database;
pub use gate::GatedClaim;
pub use world::World;
