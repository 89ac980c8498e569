//! Whole exchanges with a peer that misbehaves on command.

mod answered;
mod departing;
mod lost;
