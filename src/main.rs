//! outboxd.
fn main() {}
