//! Where a result is printed: whether it has colour, which is never the only carrier of meaning, and how wide it is.

use std::io::IsTerminal as _;

use super::text;

/// The most characters of a line of running text, on whatever it is read.
const READABLE: usize = 100;
/// The least: what is narrower than this is read by scrolling.
const NARROWEST: usize = 40;

/// A terminal, or a file or pipe that is read by programs too.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Screen {
    colour: bool,
    /// Its columns; `None` where lines may be as long as they are.
    width: Option<usize>,
}

impl Screen {
    /// Standard output, as it and the environment want it (`NO_COLOR`, see <https://no-color.org>; `TERM=dumb`).
    pub fn of_stdout() -> Self {
        let set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        let is_terminal = std::io::stdout().is_terminal();
        let columns = || rustix::termios::tcgetwinsize(std::io::stdout()).ok().map(|size| usize::from(size.ws_col));
        Self {
            colour: is_terminal && !set("NO_COLOR") && !dumb,
            // Terminals that do not know say 0.
            width: if is_terminal { columns().filter(|columns| *columns > 0) } else { None },
        }
    }

    /// Without colour, as wide as it must be.
    #[cfg(test)]
    pub const fn plain() -> Self {
        Self { colour: false, width: None }
    }

    /// Without colour, so many columns wide.
    #[cfg(test)]
    pub const fn of_width(columns: usize) -> Self {
        Self { colour: false, width: Some(columns) }
    }

    /// The columns of a table's lines; `None` where there is no bound.
    pub fn width(self) -> Option<usize> {
        self.width.map(|width| width.max(NARROWEST))
    }

    /// The columns of running text.
    pub fn readable(self) -> usize {
        self.width().map_or(READABLE, |width| width.min(READABLE))
    }

    /// Running text behind an indent, in lines that fit.
    pub fn wrapped(self, text: &str, indent: usize) -> String {
        text::wrapped(text, indent, self.readable())
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
        if self.colour { format!("\u{1b}[{code}m{text}\u{1b}[0m") } else { text.to_owned() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn running_text_is_as_wide_as_it_reads_well_and_fits() {
        let widths = [Screen::plain(), Screen::of_width(200), Screen::of_width(80), Screen::of_width(3)];
        assert_eq!(widths.map(Screen::readable), [100, 100, 80, 40]);
        assert_eq!(widths.map(Screen::width), [None, Some(200), Some(80), Some(40)]);
    }
}
