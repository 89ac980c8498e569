//! What `outboxd contracts` and `outboxd operations` have in common: a table with lines beneath its rows, and contracts
//! in a few words.

use std::time::Duration;

use serde_json::{Value, json};

use super::print::screen::Screen;
use super::print::table::{Side, Table};
use crate::config::{Promise, Trust};
use crate::core::contract::{By, Contract, KeyMode, Place, Rung, Window};

/// How wide a line beneath a row gets where the screen has room, in characters.
const WIDTH: usize = 120;

/// A row, and the lines beneath it.
pub struct Row {
    /// One for each column.
    pub cells: Vec<String>,
    /// Each with what stands before its first line.
    pub beneath: Vec<(&'static str, String)>,
}

/// The table, each row followed by its lines, which are broken at the edge.
pub fn table(head: &[&'static str], rows: &[Row], screen: Screen) -> String {
    let columns: Vec<_> = head.iter().map(|name| (*name, Side::Left)).collect();
    let mut table = Table::new(&columns);
    for row in rows {
        table.row(row.cells.clone());
    }
    let width = screen.width().map_or(WIDTH, |width| width.min(WIDTH));
    let mut blocks = table.blocks(screen).into_iter();
    let mut out: Vec<String> = blocks.next().into_iter().collect();
    for (row, block) in rows.iter().zip(blocks) {
        out.push(block);
        let beneath = row.beneath.iter().flat_map(|(before, text)| broken(before, text, width));
        out.extend(beneath.map(|line| line + "\n"));
    }
    out.concat().trim_end().to_owned()
}

/// A text in lines of at most `most` characters, all but the first indented as far as it is.
fn broken(before: &str, text: &str, most: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = before.to_owned();
    let indent = before.chars().count();
    for word in text.split_whitespace() {
        let used = line.chars().count();
        if used > indent && used + 1 + word.chars().count() > most {
            lines.push(std::mem::replace(&mut line, " ".repeat(indent)));
        } else if used > indent {
            line.push(' ');
        }
        line.push_str(word);
    }
    lines.push(line);
    lines
}

/// How people say a duration: hours up to two days, and no more than two units.
pub fn said(duration: Duration) -> String {
    const UNITS: [(u128, &str); 5] = [(86_400_000, "d"), (3_600_000, "h"), (60_000, "min"), (1_000, "s"), (1, "ms")];
    let mut rest = duration.as_millis();
    let mut words = Vec::new();
    for (size, unit) in UNITS {
        // A day and a half is said in hours.
        if rest >= size && words.len() < 2 && !(unit == "d" && rest < 2 * size) {
            words.push(format!("{} {unit}", rest / size));
            rest %= size;
        }
    }
    if words.is_empty() { "0 s".to_owned() } else { words.join(" ") }
}

/// Where the key goes, and how long it is remembered.
pub fn key(contract: &Contract) -> String {
    let Some(key) = &contract.key else { return "none".to_owned() };
    let place = match &key.place {
        Place::Header(_) => "header",
        Place::Json(_) | Place::Form(_) => "body",
        Place::Query(_) => "query",
        Place::Path(_) => "path",
    };
    match (key.mode, key.window) {
        (KeyMode::Natural, _) => "natural".to_owned(),
        (KeyMode::Receiver, _) => format!("{place} · receiver's"),
        (KeyMode::Dedupe | KeyMode::Conflict, Some(Window::For(window))) => format!("{place} · {}", said(window)),
        (KeyMode::Dedupe | KeyMode::Conflict, Some(Window::Forever)) => format!("{place} · for ever"),
        (KeyMode::Dedupe | KeyMode::Conflict, None) => format!("{place} · unpublished"),
    }
}

/// How the destination can be asked.
pub fn asked(contract: &Contract) -> String {
    let lookup = contract.lookup.as_ref().map(|lookup| match lookup.by {
        By::Key => "by key",
        By::Reference => "by ref",
    });
    let cancel = contract.cancel.as_ref().map(|_| "cancel");
    let ways: Vec<_> = lookup.into_iter().chain(cancel).collect();
    match (ways.is_empty(), &contract.hint) {
        (false, _) => ways.join(", "),
        (true, Some(_)) => "hint only".to_owned(),
        (true, None) => "–".to_owned(),
    }
}

/// What is tried, in order.
pub fn ladder(rungs: &[Rung]) -> String {
    rungs.iter().map(|rung| rung.as_str()).collect::<Vec<_>>().join(" → ")
}

/// How sure a contract is, in a word.
pub fn trust(trust: Option<Trust>) -> &'static str {
    match trust {
        Some(Trust::Official) => "official",
        Some(Trust::Source) => "source",
        Some(Trust::Relayed) => "relayed",
        Some(Trust::Memory) => "unverified",
        None => "–",
    }
}

/// What a contract promises, for programs. Durations in milliseconds; the window may be `"forever"`.
pub fn as_json(promise: &Promise) -> Value {
    let contract = &promise.contract;
    let rungs: Vec<_> = contract.reconcile.iter().map(|rung| rung.as_str()).collect();
    let key = contract.key.as_ref().map(|key| {
        let window = match key.window {
            Some(Window::For(window)) => json!(window.as_millis() as u64),
            Some(Window::Forever) => json!("forever"),
            None => Value::Null,
        };
        json!({ "summary": self::key(contract), "window_ms": window, "margin_ms": key.margin.as_millis() as u64 })
    });
    let by = contract.lookup.as_ref().map(|lookup| match lookup.by {
        By::Key => "key",
        By::Reference => "ref",
    });
    let absence_after = contract.lookup.as_ref().and_then(|lookup| lookup.asking.absence.after());
    json!({
        "contract": contract.name,
        "title": promise.title,
        "built_in": promise.built_in,
        "key": key,
        "lookup_by": by,
        "absence_after_ms": absence_after.map(|after| after.as_millis() as u64),
        "cancel": contract.cancel.is_some(),
        "hint": contract.hint.is_some(),
        "on_unknown": rungs,
        "trust": promise.trust().map(Trust::as_str),
        "unverified": promise.unverified(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_said_as_people_say_them() {
        let s = Duration::from_secs;
        let all =
            [s(86_400), s(172_800), s(30 * 86_400), s(5400), s(10), s(129_600), s(90), Duration::from_millis(1500)];
        assert_eq!(all.map(said), ["24 h", "2 d", "30 d", "1 h 30 min", "10 s", "36 h", "1 min 30 s", "1 s 500 ms"]);
        assert_eq!(said(Duration::ZERO), "0 s");
    }

    #[test]
    fn lines_beneath_a_row_are_broken_at_the_edge() {
        let rows = [Row { cells: vec!["a".into(), "b".into()], beneath: vec![("  ⚠ ", "word ".repeat(40))] }];
        let drawn = table(&["one", "two"], &rows, Screen::of_width(80));
        let lines: Vec<_> = drawn.lines().collect();
        assert_eq!(lines[..2], ["one  two", "a    b"]);
        assert!(lines[2].starts_with("  ⚠ word") && lines[3].starts_with("    word"), "{drawn}");
        assert!(lines.iter().all(|line| line.chars().count() <= 80), "{drawn}");
    }
}
