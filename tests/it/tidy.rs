//! The tree itself, read as text: who may import whom, how long a file may be, what stands where, and that the
//! documents say what the code does.

pub mod documents;
mod links;
mod promises;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use outboxd::config::{Config, Secrets};
use regex::Regex;

/// Which modules each module may name; `proving` and `cli` may name all.
const LAYERS: &[(&str, &[&str])] = &[
    ("clock", &[]),
    ("failpoint", &[]),
    ("core", &[]),
    ("config", &["core"]),
    ("ledger", &["core", "clock", "failpoint"]),
    ("destination", &["core", "clock", "failpoint"]),
    // `stats` has the ledger's counts as its fields.
    ("log", &["core", "ledger"]),
    ("dispatcher", &["ledger", "destination", "core", "clock", "log", "failpoint"]),
];

/// What the rules must not touch: the network, the runtime, the log, the clock, the dice, the disk.
const NOT_IN_CORE: &str = r"\b(tokio|hyper|hyper_util|tokio_postgres|tracing|rand|rustix)::|\bstd::(net|fs|env|process)\b|\b(Instant|SystemTime)\b";

/// Lines of a file. Past that there is a file that was never cut.
const LONGEST: usize = 400;

/// The root of the repository.
fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

pub fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn regex(pattern: &str) -> Regex {
    Regex::new(pattern).expect("a regular expression")
}

/// Every file below a directory whose name ends so, relative to the root and sorted.
fn files(below: &str, ends: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut open = vec![root().join(below)];
    while let Some(directory) = open.pop() {
        for entry in std::fs::read_dir(&directory).expect("a directory") {
            let path: PathBuf = entry.expect("an entry").path();
            let name = path.file_name().and_then(|name| name.to_str()).expect("a name").to_owned();
            if path.is_dir() {
                if name != "target" && name != ".git" {
                    open.push(path);
                }
            } else if name.ends_with(ends) {
                found.push(path.strip_prefix(root()).expect("below").to_str().expect("text").to_owned());
            }
        }
    }
    found.sort();
    found
}

/// A source without its comments, so that a mention is no use.
fn code(path: &str) -> String {
    read(path)
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"))
        .fold(String::new(), |all, line| all + line + "\n")
}

#[test]
fn modules_import_only_what_lies_below_them() {
    let named = regex(r"\bcrate::([a-z_]+)");
    let grouped = regex(r"\bcrate::\{");
    let mut wrong = Vec::new();
    let mut seen = BTreeSet::new();
    for path in files("src", ".rs") {
        let module = path["src/".len()..].split(['/', '.']).next().expect("a module").to_owned();
        let text = code(&path);
        if grouped.is_match(&text) {
            wrong.push(format!("{path}: write one `use crate::module::…` for each module"));
        }
        let Some((_, below)) = LAYERS.iter().find(|(name, _)| *name == module) else { continue };
        for name in named.captures_iter(&text).map(|found| found[1].to_owned()) {
            if name != module && !below.contains(&name.as_str()) {
                wrong.push(format!("{path}: `{module}` must not know `{name}`"));
            }
        }
        seen.insert(module);
    }
    assert_eq!(seen.len(), LAYERS.len(), "a module of the list is gone: {seen:?}");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_module_has_its_layer() {
    let declared = regex(r"(?m)^pub mod ([a-z_]+);");
    let lib = read("src/lib.rs");
    for module in declared.captures_iter(&lib).map(|found| found[1].to_owned()) {
        let layered = LAYERS.iter().any(|(name, _)| *name == module) || ["cli", "proving"].contains(&module.as_str());
        assert!(layered, "src/{module}: say in LAYERS what it may import");
    }
}

#[test]
fn the_rules_know_no_runtime_network_clock_dice_or_disk() {
    let forbidden = regex(NOT_IN_CORE);
    // The explorer's tests ask the environment how far to explore; they are no part of the rules.
    for path in files("src/core", ".rs").into_iter().filter(|path| path != "src/core/model/tests.rs") {
        let text = code(&path);
        let found: Vec<_> = forbidden.find_iter(&text).map(|found| found.as_str().to_owned()).collect();
        assert!(found.is_empty(), "{path}: {found:?}");
    }
}

#[test]
fn files_stay_short() {
    for path in files("src", ".rs") {
        let lines = read(&path).lines().count();
        assert!(lines <= LONGEST, "{path} has {lines} lines, more than {LONGEST}: which file was never cut?");
    }
}

#[test]
fn only_the_log_writes_events() {
    let uses = regex(r"\btracing::");
    for path in files("src", ".rs").into_iter().filter(|path| !path.starts_with("src/log")) {
        assert!(!uses.is_match(&code(&path)), "{path}: an event is a function of src/log/events.rs");
    }
}

#[test]
fn every_statement_is_explained_and_included_once() {
    let include = regex(r#"include_str!\("(?:\.\./)+(sql/[^"]+)"\)"#);
    let mut included: BTreeMap<String, usize> = BTreeMap::new();
    for path in files("src", ".rs") {
        for found in include.captures_iter(&code(&path)) {
            *included.entry(found[1].to_owned()).or_default() += 1;
        }
    }
    let statements = files("sql", ".sql");
    for path in &statements {
        assert!(read(path).starts_with("-- "), "{path}: begin with what it is for");
        assert_eq!(included.get(path), Some(&1), "{path}: how often it is included in src");
    }
    assert_eq!(included.len(), statements.len(), "{included:?}");
}

#[test]
fn every_dependency_has_its_reason() {
    let manifest = read("Cargo.toml");
    let (mut in_dependencies, mut before, mut count) = (false, "", 0);
    for line in manifest.lines() {
        if line.starts_with('[') {
            in_dependencies = line == "[dependencies]" || line == "[dev-dependencies]";
        } else if in_dependencies && !line.is_empty() && !line.starts_with('#') {
            assert!(before.starts_with("# "), "Cargo.toml: say above it why it is there: {line}");
            count += 1;
        }
        before = line;
    }
    assert!(count > 20, "only {count} dependencies were found");
}

#[test]
fn lints_that_the_style_rests_on_are_on() {
    let manifest = read("Cargo.toml");
    for lint in ["unsafe_code = \"forbid\"", "wildcard_enum_match_arm = \"warn\"", "missing_docs = \"warn\""] {
        assert!(manifest.contains(lint), "Cargo.toml lacks {lint}");
    }
    for path in files("src/core", ".rs") {
        assert!(!read(&path).contains("wildcard_enum_match_arm"), "{path}: a new evidence must be decided everywhere");
    }
    for banned in ["std::time::Instant::now", "std::time::SystemTime::now", "unbounded_channel"] {
        assert!(read(".clippy.toml").contains(banned), ".clippy.toml no longer bans {banned}");
    }
}

#[test]
fn the_example_configuration_is_accepted() {
    let env = |_: &str| Some("postgres://outboxd@localhost/app".to_owned());
    let config = Config::parse(&read("deploy/outboxd.toml"), "outboxd.toml", Secrets::Resolve, &env);
    if let Err(refusal) = config {
        panic!("deploy/outboxd.toml: {refusal}");
    }
}

#[test]
fn the_changelog_has_this_version() {
    let heading = format!("## {}", env!("CARGO_PKG_VERSION"));
    assert!(read("CHANGELOG.md").lines().any(|line| line.starts_with(&heading)), "CHANGELOG.md lacks `{heading}`");
}

#[test]
fn no_file_knows_whose_machine_it_was_written_on() {
    // In pieces, so that this file passes.
    let home = regex(&[r"(/home/|/Users", r"/)([a-z0-9_.-]+)|/work", r"/(main|shared)|/tmp/", "wt"].concat());
    let known = ["/home/linuxbrew"];
    for ends in [".rs", ".md", ".toml", ".sql", ".yaml", ".service", ".sh", "Dockerfile", "run", "demo"] {
        for path in files("", ends) {
            let Ok(text) = std::fs::read_to_string(root().join(&path)) else { continue };
            for found in home.find_iter(&text) {
                assert!(known.contains(&found.as_str()), "{path}: {}", found.as_str());
            }
        }
    }
}
