//! Colour: only on a terminal, and never the only carrier of meaning.

use std::io::IsTerminal as _;

/// Whether to paint.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Paint(bool);

impl Paint {
    /// As standard output and the environment want it (`NO_COLOR`, see <https://no-color.org>; `TERM=dumb`).
    pub fn of_stdout() -> Self {
        let set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        Self(std::io::stdout().is_terminal() && !set("NO_COLOR") && !dumb)
    }

    /// Plain text.
    #[cfg(test)]
    pub const fn none() -> Self {
        Self(false)
    }

    /// A heading.
    pub fn bold(self, text: &str) -> String {
        self.with("1", text)
    }

    /// What a person should look at.
    pub fn warn(self, text: &str) -> String {
        self.with("33", text)
    }

    fn with(self, code: &str, text: &str) -> String {
        if self.0 { format!("\u{1b}[{code}m{text}\u{1b}[0m") } else { text.to_owned() }
    }
}
