//! Integration tests: a real PostgreSQL, real sockets, real processes, real signals. tests/README.md says which
//! promise and which case each keeps.

#![allow(missing_docs, reason = "tests read as sentences")]

mod demo;
mod support;
