//! Where an operation's actions go.

use std::sync::Arc;

use super::pauses::Pauses;
use crate::core::target::Operation;
use crate::destination::Destination;

/// An operation and its destination.
pub struct Route {
    /// What is sent, and under which terms.
    pub operation: Operation,
    /// The client.
    pub destination: Arc<Destination>,
    /// Index among the destinations.
    pub destination_index: usize,
    /// Number of the operation.
    pub operation_number: usize,
    /// Its actions say themselves on which host it is.
    pub host_from_data: bool,
    /// Which destinations are paused.
    pub pauses: Arc<Pauses>,
}
