//! The command line of outboxd. The library's front page tells the architecture.

use std::process::ExitCode;

fn main() -> ExitCode {
    outboxd::cli::main()
}
