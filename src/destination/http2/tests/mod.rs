//! Streams, one by one.

mod gate;
mod peer;
mod streams;
