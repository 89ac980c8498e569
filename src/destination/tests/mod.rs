//! Whole exchanges with a peer that misbehaves on command.

mod answered;
mod asked;
mod departing;
mod hostile;
mod idle;
mod lost;
mod reached;
mod secure;
mod token;
