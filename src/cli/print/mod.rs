//! What people read: ages and times in words, tables, text from outside made safe, and what a screen can show.

use std::error::Error;
use std::io::Write as _;

use super::Exit;

pub mod promise;
pub mod screen;
pub mod table;
pub mod text;
pub mod words;

/// Prints a result. Whoever reads may have stopped reading.
pub fn out(text: &str) -> Exit {
    match std::io::stdout().write_all(text.as_bytes()) {
        Ok(()) => Exit::Done,
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Exit::Done,
        Err(error) => {
            eprintln!("failed to print: {error}");
            Exit::Failed
        }
    }
}

/// The same with the end of its line.
pub fn line(text: &str) -> Exit {
    out(&format!("{text}\n"))
}

/// Says what could not be done, and why: the error and its causes, in one line.
pub fn failed(what: &str, error: &dyn Error) -> Exit {
    let mut text = format!("failed to {what}: {error}");
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(&format!(": {error}"));
        cause = error.source();
    }
    eprintln!("{text}");
    Exit::Failed
}
