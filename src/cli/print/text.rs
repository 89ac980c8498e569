//! Text on a screen: what came from outside is escaped and capped (B81), what is long is wrapped.

use std::fmt::Write as _;

use crate::destination::one_line;

/// The most bytes of a name, key or receipt in running text.
const NAME_MAX_BYTES: usize = 200;
/// The most bytes of a detail or a reason somebody gave.
const DETAIL_MAX_BYTES: usize = 600;

/// A name, key or receipt that somebody else chose.
pub fn name(text: &str) -> String {
    one_line(text.as_bytes(), NAME_MAX_BYTES)
}

/// What somebody else wrote.
pub fn detail(text: &str) -> String {
    one_line(text.as_bytes(), DETAIL_MAX_BYTES)
}

/// An argument that a shell takes as it is.
pub fn shell(argument: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=@%+,".contains(c);
    if !argument.is_empty() && argument.chars().all(plain) {
        argument.to_owned()
    } else {
        format!("'{}'", argument.replace('\'', r"'\''"))
    }
}

/// Text in lines of at most `most` characters behind an indent of so many. A longer word stays whole: ids are pasted.
pub fn wrapped(text: &str, indent: usize, most: usize) -> String {
    let mut out = String::new();
    let mut width = 0;
    for word in text.split(' ') {
        let length = word.chars().count();
        if width == 0 {
            let _ = write!(out, "{:indent$}{word}", "");
            width = indent + length;
        } else if width + 1 + length <= most {
            let _ = write!(out, " {word}");
            width += 1 + length;
        } else {
            let _ = write!(out, "\n{:indent$}{word}", "");
            width = indent + length;
        }
    }
    out
}

/// A body as it can be shown: text with its line ends and tabs, everything else escaped.
pub fn body(bytes: &[u8]) -> String {
    let lines: Vec<String> = bytes.split(|byte| *byte == b'\n').map(line_of_body).collect();
    lines.join("\n")
}

fn line_of_body(line: &[u8]) -> String {
    let (line, end) = match line.strip_suffix(b"\r") {
        Some(line) => (line, "\\r"),
        None => (line, ""),
    };
    let cells: Vec<String> = line.split(|byte| *byte == b'\t').map(|cell| one_line(cell, usize::MAX)).collect();
    cells.join("\t") + end
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn b81_what_somebody_else_chose_is_one_short_line() {
        assert_eq!(name("a\n\u{1b}[2Jb"), "a\\n\\u{1b}[2Jb");
        assert!(name(&"x".repeat(10_000)).len() <= NAME_MAX_BYTES);
        assert!(detail(&"x".repeat(10_000)).len() <= DETAIL_MAX_BYTES);
    }

    #[test]
    fn b81_a_body_keeps_its_lines_and_nothing_else_that_moves_a_cursor() {
        assert_eq!(body(b"{\n\t\"a\": 1\r\n}"), "{\n\t\"a\": 1\\r\n}");
        assert_eq!(body(b"\x1b[2J\x00\xff"), "\\u{1b}[2J\\u{0}\\xff");
        assert_eq!(body("größer\u{202e}".as_bytes()), "größer\\u{202e}");
    }

    #[test]
    fn an_argument_is_quoted_only_where_a_shell_needs_it() {
        for (argument, quoted) in [("a/b-c.toml", "a/b-c.toml"), ("", "''"), ("a b", "'a b'"), ("it's", r"'it'\''s'")] {
            assert_eq!(shell(argument), quoted);
        }
    }

    #[test]
    fn running_text_is_wrapped_between_words() {
        let text = "word ".repeat(50);
        let lines = wrapped(text.trim_end(), 2, 80);
        assert!(lines.lines().count() > 1);
        assert!(lines.lines().all(|line| line.chars().count() <= 80 && line.starts_with("  word")));
        assert_eq!(lines.matches("word").count(), 50);
    }
}
