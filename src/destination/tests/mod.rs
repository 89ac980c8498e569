//! Whole exchanges with a peer that misbehaves on command.

mod answered;
mod asked;
mod departing;
mod idle;
mod lost;
mod reached;
mod secure;
