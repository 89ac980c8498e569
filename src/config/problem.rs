//! What is wrong with a configuration, and where. Problems are collected, never thrown: a person fixes them all at once.

use std::cell::RefCell;
use std::fmt;

/// One thing to fix.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Problem {
    /// The file as it was named.
    pub file: String,
    /// From 1; `None` where it concerns the file as a whole.
    pub line: Option<usize>,
    /// What is wrong and what to write instead. Never holds a secret.
    pub message: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "{}:{line}: {}", self.file, self.message),
            None => write!(f, "{}: {}", self.file, self.message),
        }
    }
}

/// Why a configuration was refused: everything that is wrong with it, in file order. Never empty.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Refusal {
    /// In file order.
    pub problems: Vec<Problem>,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for problem in &self.problems {
            writeln!(f, "{problem}")?;
        }
        match self.problems.len() {
            1 => f.write_str("configuration refused: 1 problem"),
            n => write!(f, "configuration refused: {n} problems"),
        }
    }
}

impl std::error::Error for Refusal {}

/// A text that was read, and where its lines begin.
pub(super) struct Origin {
    file: String,
    newlines: Vec<usize>,
}

impl Origin {
    pub(super) fn new(file: &str, text: &str) -> Self {
        let newlines = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(at, _)| at).collect();
        Self { file: file.to_owned(), newlines }
    }

    /// The place of a byte offset.
    pub(super) fn at(&self, offset: usize) -> At<'_> {
        At { origin: self, offset: Some(offset) }
    }

    /// The file as a whole.
    pub(super) fn whole(&self) -> At<'_> {
        At { origin: self, offset: None }
    }
}

/// A place in a text.
#[derive(Clone, Copy)]
pub(super) struct At<'a> {
    origin: &'a Origin,
    offset: Option<usize>,
}

impl At<'_> {
    fn line(self) -> Option<usize> {
        self.offset.map(|offset| self.origin.newlines.partition_point(|newline| *newline < offset) + 1)
    }
}

/// The token of a problem that has been reported: whoever holds it must not report it again.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reported;

/// The problems met so far. Shared by all readers, so it is filled through a shared reference.
#[derive(Default)]
pub(super) struct Problems(RefCell<Vec<Problem>>);

impl Problems {
    pub(super) fn report(&self, at: At<'_>, message: impl Into<String>) -> Reported {
        let problem = Problem { file: at.origin.file.clone(), line: at.line(), message: message.into() };
        let mut met = self.0.borrow_mut();
        // A table that another one extends is read once for itself and once for that one.
        if !met.contains(&problem) {
            met.push(problem);
        }
        Reported
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.borrow().is_empty()
    }

    pub(super) fn into_refusal(self) -> Refusal {
        let mut problems = self.0.into_inner();
        problems.sort_by_key(|problem| problem.line);
        Refusal { problems }
    }
}
