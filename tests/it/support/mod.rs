//! What the tests stand on.

pub mod cli;
pub mod database;
pub mod ears;
pub mod front;
pub mod gate;
pub mod ledger;
pub mod pooler;
pub mod queue;
pub mod shelf;
pub mod webhook;
pub mod world;

pub use database::Database;
pub use ears::Ears;
pub use front::Front;
pub use gate::GatedClaim;
pub use outboxd::proving::proxy::Proxy;
pub use pooler::Pooler;
pub use shelf::Shelf;
pub use world::World;
