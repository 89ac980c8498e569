//! tests/README.md: which tests keep which promise (R1 …) and which case (B01 …).

use std::collections::{BTreeMap, BTreeSet};

use super::documents::{change_rows, hold};
use super::{files, read, regex};

/// The files with tests of each promise and case, as tests/README.md writes them.
fn places() -> BTreeMap<String, BTreeSet<String>> {
    let test = regex(r"(?m)^\s*(?:async )?fn ((?:[rb][0-9]+_)+)[a-z0-9_]+\(");
    let mut places: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for path in files("src", ".rs").into_iter().chain(files("tests", ".rs")) {
        for found in test.captures_iter(&read(&path)) {
            for id in found[1].split_terminator('_') {
                let place = path.trim_start_matches("tests/").trim_end_matches(".rs").trim_end_matches("/mod");
                places.entry(id.to_uppercase()).or_default().insert(format!("`{place}`"));
            }
        }
    }
    places
}

#[test]
fn every_promise_and_case_says_where_it_is_tested() {
    let document = read("tests/README.md");
    let mut open = places();
    assert!(open.len() > 40, "only {} ids were found", open.len());
    let mut cell = |mut row: Vec<String>| {
        let last = row.len() - 1;
        match open.remove(&row[0]) {
            Some(places) => row[last] = places.into_iter().collect::<Vec<_>>().join(" "),
            None => assert!(
                row[last].starts_with("not yet (step "),
                "tests/README.md: {} has no test of its name; write `not yet (step N)`",
                row[0]
            ),
        }
        row
    };
    let should_be = change_rows(&document, "promises", &mut cell);
    let should_be = change_rows(&should_be, "cases", &mut cell);
    let unknown: Vec<_> = open.keys().collect();
    assert!(unknown.is_empty(), "tests are named after {unknown:?}, which stand in no table of tests/README.md");
    hold("tests/README.md", &document, &should_be);
}

#[test]
fn promises_and_cases_stand_once_and_in_order() {
    let document = read("tests/README.md");
    for name in ["promises", "cases"] {
        let mut ids: Vec<u32> = Vec::new();
        change_rows(&document, name, |row| {
            ids.push(row[0][1..].parse().unwrap_or_else(|_| panic!("{row:?}")));
            row
        });
        assert!(ids.is_sorted_by(|a, b| a < b), "{name}: {ids:?}");
        assert!(name == "cases" || ids == (1..=31).collect::<Vec<_>>(), "{ids:?}");
    }
}
