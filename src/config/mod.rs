//! TOML into types that cannot be wrong.
