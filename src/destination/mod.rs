//! The outside. What comes back from it is evidence, never an error.
