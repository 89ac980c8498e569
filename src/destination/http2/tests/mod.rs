//! Streams, one by one.

mod auto;
mod gate;
mod peer;
mod streams;
