//! Text from outside, made safe to store and to print (B81).

use std::fmt::Write as _;

/// What stands for text that was cut off.
const CUT: char = '…';

/// `bytes` as one line of at most `max` bytes: controls, line separators, direction marks and what is not UTF-8 are
/// escaped.
pub fn one_line(bytes: &[u8], max: usize) -> String {
    let mut out = String::with_capacity(bytes.len().min(max));
    let mut piece = String::new();
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            piece.clear();
            escape(&mut piece, c);
            if !push(&mut out, &piece, max) {
                return out;
            }
        }
        for byte in chunk.invalid() {
            piece.clear();
            // Writing to a String cannot fail.
            let _ = write!(piece, "\\x{byte:02x}");
            if !push(&mut out, &piece, max) {
                return out;
            }
        }
    }
    out
}

fn escape(out: &mut String, c: char) {
    match c {
        '\n' => out.push_str("\\n"),
        '\r' => out.push_str("\\r"),
        '\t' => out.push_str("\\t"),
        // Line and paragraph separator; marks that reorder what a person sees; the byte order mark.
        '\u{2028}'
        | '\u{2029}'
        | '\u{200e}'
        | '\u{200f}'
        | '\u{202a}'..='\u{202e}'
        | '\u{2066}'..='\u{2069}'
        | '\u{feff}' => {
            let _ = write!(out, "\\u{{{:x}}}", u32::from(c));
        }
        c if c.is_control() => {
            let _ = write!(out, "\\u{{{:x}}}", u32::from(c));
        }
        c => out.push(c),
    }
}

/// Appends the piece, or the mark of a cut where there is no room for both.
fn push(out: &mut String, piece: &str, max: usize) -> bool {
    let fits = out.len() + piece.len() + CUT.len_utf8() <= max;
    if fits {
        out.push_str(piece);
    } else if out.len() + CUT.len_utf8() <= max {
        out.push(CUT);
    }
    fits
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn b81_outside_text_cannot_forge_a_line() {
        let text = "\n2026-01-01 ERROR forged\r\u{1b}[2J\u{85}\u{2028}\u{2029}\0\u{202e}";
        let clean = one_line(text.as_bytes(), 512);
        assert_eq!(clean, "\\n2026-01-01 ERROR forged\\r\\u{1b}[2J\\u{85}\\u{2028}\\u{2029}\\u{0}\\u{202e}");
        assert_eq!(one_line(b"a\xffb", 512), "a\\xffb");
        assert_eq!(one_line("größer".as_bytes(), 512), "größer");
    }

    #[test]
    fn b81_long_text_is_cut_at_a_whole_character() {
        let clean = one_line("é".repeat(1000).as_bytes(), 20);
        assert!(clean.len() <= 20 && clean.ends_with(CUT), "{clean}");
    }

    proptest! {
        #[test]
        fn b81_any_bytes_become_one_bounded_line(bytes in prop::collection::vec(any::<u8>(), 0..200), max in 0_usize..100) {
            let clean = one_line(&bytes, max);
            prop_assert!(clean.len() <= max);
            prop_assert!(!clean.chars().any(char::is_control));
        }
    }
}
