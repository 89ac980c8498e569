//! The tables of README.md that repeat what the code says: they are compared cell by cell, or made from the code.
//!
//! With `OUTBOXD_WRITE_DOCUMENTS=1` what the code says is written into the document instead of being asserted.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use outboxd::config::{KeyDoc, Kind, Need, reference};

use super::{files, read, regex, root};

/// Holds a document to what it should be: asserts, or writes.
pub fn hold(path: &str, is: &str, should_be: &str) {
    if is == should_be {
        return;
    }
    if std::env::var_os("OUTBOXD_WRITE_DOCUMENTS").is_some() {
        std::fs::write(root().join(path), should_be).expect("written");
        return;
    }
    let has: Vec<&str> = is.lines().collect();
    let wants: Vec<&str> = should_be.lines().collect();
    let gone = has.iter().filter(|line| !wants.contains(line)).map(|line| format!("- {line}"));
    let new = wants.iter().filter(|line| !has.contains(line)).map(|line| format!("+ {line}"));
    let difference: Vec<String> = gone.chain(new).collect();
    panic!(
        "{path} does not say what the code says. Write it by hand, or run the tests once with \
         OUTBOXD_WRITE_DOCUMENTS=1.\n{}",
        difference.join("\n")
    );
}

/// The cells of a line of a table, without the outer bars; `None` where it is not one.
pub fn cells(line: &str) -> Option<Vec<String>> {
    let inner = line.strip_prefix('|')?.strip_suffix('|')?;
    Some(inner.split('|').map(|cell| cell.trim().to_owned()).collect())
}

/// A document with the rows of one table changed; the table is the lines between `<!-- NAME -->` and the next blank
/// line that follows it.
pub fn change_rows(text: &str, name: &str, mut change: impl FnMut(Vec<String>) -> Vec<String>) -> String {
    let marker = format!("<!-- {name} -->");
    let (mut inside, mut rows) = (false, 0);
    let mut out = String::with_capacity(text.len());
    for line in text.lines() {
        if line == marker {
            inside = true;
        } else if line.is_empty() {
            inside = false;
        }
        match cells(line).filter(|_| inside) {
            Some(row) => {
                rows += 1;
                // The head, and the line below it.
                if rows > 2 {
                    let row = change(row);
                    let _ = writeln!(out, "| {} |", row.join(" | "));
                    continue;
                }
            }
            None => rows = if inside { rows } else { 0 },
        }
        let _ = writeln!(out, "{line}");
    }
    assert!(text.lines().any(|line| line == marker), "no table is marked {marker}");
    out
}

/// An event as src/log/events.rs, or a file below it, has it.
struct Event {
    level: String,
    fields: Vec<String>,
}

/// Every event, by its message.
fn events() -> BTreeMap<String, Event> {
    let below = files("src/log/events", ".rs");
    let source = below.iter().fold(read("src/log/events.rs"), |all, path| all + &read(path));
    let start = regex(r"(?m)^\s+(error|warn|info|debug)!\(");
    let mut events = BTreeMap::new();
    for call in start.captures_iter(&source) {
        let begin = call.get(0).expect("the call").end();
        let mut fields = arguments(&source[begin..]);
        let message = fields.pop().expect("a message").trim_matches('"').to_owned();
        let name = |field: String| {
            field.split('=').next().unwrap_or_default().trim().trim_start_matches(['%', '?']).to_owned()
        };
        let event = Event { level: call[1].to_owned(), fields: fields.into_iter().map(name).collect() };
        assert!(events.insert(message.clone(), event).is_none(), "{message:?} is written in two places");
    }
    events
}

/// The arguments of a call whose opening bracket has just been passed.
fn arguments(text: &str) -> Vec<String> {
    let (mut depth, mut in_text, mut all, mut one) = (0, false, Vec::new(), String::new());
    for c in text.chars() {
        match c {
            '"' => in_text = !in_text,
            '(' | '[' | '{' if !in_text => depth += 1,
            ')' if !in_text && depth == 0 => break,
            ')' | ']' | '}' if !in_text => depth -= 1,
            ',' if !in_text && depth == 0 => {
                all.push(std::mem::take(&mut one).trim().to_owned());
                continue;
            }
            _ => {}
        }
        one.push(c);
    }
    all.push(one.trim().to_owned());
    all.retain(|argument| !argument.is_empty());
    all
}

#[test]
fn the_log_table_has_every_event_with_its_level_and_fields() {
    let readme = read("README.md");
    let mut open = events();
    assert!(open.len() > 15, "src/log/events was not understood");
    let should_be = change_rows(&readme, "events", |mut row| {
        assert_eq!(row.len(), 5, "{row:?}");
        let message = row[0].trim_matches('`').to_owned();
        let event = open.remove(&message).unwrap_or_else(|| panic!("README.md: there is no event {message:?}"));
        row[1] = event.level;
        row[2] = event.fields.iter().map(|field| format!("`{field}`")).collect::<Vec<_>>().join(" ");
        row
    });
    let missing: Vec<&String> = open.keys().collect();
    assert!(missing.is_empty(), "README.md has no row for {missing:?}");
    hold("README.md", &readme, &should_be);
}

#[test]
fn the_configuration_reference_is_that_of_the_parser() {
    let readme = read("README.md");
    let (begin, end) = ("<!-- reference: begin -->\n", "<!-- reference: end -->\n");
    let (before, rest) = readme.split_once(begin).expect("the beginning of the reference");
    let (_, after) = rest.split_once(end).expect("its end");
    hold("README.md", &readme, &format!("{before}{begin}\n{}\n{end}{after}", written_reference()));
}

/// The reference as README has it.
fn written_reference() -> String {
    let mut tables: Vec<&str> = Vec::new();
    for doc in reference() {
        if !tables.contains(&doc.table) {
            tables.push(doc.table);
        }
    }
    let mut out = String::from("| table | key | type | without it | meaning |\n|---|---|---|---|---|\n");
    let mut later = Vec::new();
    for table in tables {
        for doc in reference().iter().filter(|doc| doc.table == table) {
            if matches!(doc.need, Need::Later) {
                later.push(format!("`{}`", place(doc.table, doc.key)));
            } else {
                let _ = writeln!(out, "{}", row(doc));
            }
        }
    }
    let _ = writeln!(out, "\nKnown, and refused by this version: {}.", later.join(", "));
    out
}

fn place(table: &str, key: &str) -> String {
    if table.is_empty() { key.to_owned() } else { format!("{table}.{key}") }
}

fn row(doc: &KeyDoc) -> String {
    let table = match doc.table {
        "" => "the file".to_owned(),
        "secret" => "a secret".to_owned(),
        table => format!("`[{table}]`"),
    };
    let range = doc.kind.range_text();
    let own = place(doc.table, doc.key);
    let kind = match (doc.kind, range.is_empty()) {
        // One that has the keys of another, which are listed there only.
        (Kind::Table(of), _) if of != own => format!("table: the keys of `[{of}]`"),
        (Kind::Secret, _) | (_, true) => doc.kind.type_text().to_owned(),
        _ => format!("{}: {range}", doc.kind.type_text()),
    };
    let default = match doc.need {
        Need::Default(fallback) => format!("`{fallback}`"),
        Need::Required => "**required**".to_owned(),
        Need::Optional(_) | Need::Documentation | Need::Later => doc.default_text(),
    };
    let line = format!("| {table} | `{}` | {kind} | {default} | {} |", doc.key, doc.meaning);
    assert_eq!(cells(&line).map(|row| row.len()), Some(5), "a bar in a cell: {line}");
    line
}

#[test]
fn every_exit_code_stands_in_the_readme() {
    let source = read("src/cli/mod.rs");
    let code = regex(r"Exit::[A-Za-z]+ => ([0-9]+),");
    let readme = read("README.md");
    let codes: Vec<String> = code.captures_iter(&source).map(|found| found[1].to_owned()).collect();
    assert!(codes.len() >= 5, "{codes:?}");
    for code in codes.iter().map(String::as_str).chain(["2"]) {
        assert!(readme.lines().any(|line| line.starts_with(&format!("| {code} |"))), "README.md: exit code {code}");
    }
}

/// A supervisor that tries again what only a person can mend does so for ever.
#[test]
fn the_service_is_not_restarted_where_no_restart_helps() {
    let service = read("deploy/outboxd.service");
    let prevented = service.lines().find_map(|line| line.strip_prefix("RestartPreventExitStatus=")).expect("the line");
    for (exit, code) in [("SchemaNewer", "69"), ("LedgerRefused", "76"), ("ConfigRefused", "78")] {
        assert!(read("src/cli/mod.rs").contains(&format!("Exit::{exit} => {code},")), "{exit}");
        assert!(prevented.split(' ').any(|one| one == code), "deploy/outboxd.service: {code}");
    }
}

#[test]
fn every_sqlstate_of_ours_stands_in_the_readme() {
    let raised = regex(r"'(OB[0-9]{3})'");
    let readme = read("README.md");
    for path in super::files("sql", ".sql") {
        for found in raised.captures_iter(&read(&path)) {
            assert!(readme.contains(&format!("| `{}` |", &found[1])), "README.md lacks {} of {path}", &found[1]);
        }
    }
}
