//! The explorer (tests only).
mod contracts;
mod destination;
mod explore;
mod graph;
mod invariants;
mod mirror;
mod mistakes;
mod steps;
mod world;

mod tests;
