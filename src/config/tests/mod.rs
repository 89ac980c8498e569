//! What a person meets who writes a configuration.

use std::time::Duration;

use proptest::prelude::*;

use super::*;

mod believed;
mod checks;
mod contracts;
mod credentials;
mod presets;
mod secrets;
mod unknown;
mod values;
mod vocabulary;
mod warnings;

const DATABASE: &str = "[database]\nurl = \"postgres://outboxd@localhost/app\"\n";

fn env(name: &str) -> Option<String> {
    match name {
        "DATABASE_URL" => Some("postgres://outboxd:hunter2@db1:6432/app".into()),
        "TOKEN" | "ANNOUNCE_TOKEN" => Some("hunter2".into()),
        "WEBHOOKS" => Some("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw".into()),
        "WEBHOOKS_NEXT" => Some("whsk_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=".into()),
        "EMPTY" => Some(String::new()),
        "BROKEN" => Some("hunter2\nx".into()),
        _ => None,
    }
}

fn parse(text: &str) -> Result<Config, Refusal> {
    Config::parse(text, "outboxd.toml", Secrets::Resolve, &env)
}

fn accepted(text: &str) -> Config {
    parse(text).unwrap_or_else(|refusal| panic!("{refusal}"))
}

/// The complaints, each with its line.
fn refused(text: &str) -> Vec<String> {
    match parse(text) {
        Ok(_) => vec![],
        Err(refusal) => refusal.problems.iter().map(ToString::to_string).collect(),
    }
}

/// A file where `destination` stands in line 5, `operation` in line 13, and `rest` after it.
fn file(destination: &str, operation: &str, rest: &str) -> String {
    let required = "destination = \"d\"\nrequest = { method = \"POST\", path = \"/x\" }\ncontract = \"http.post\"\n\
                    effect = \"compensatable\"\nmeaning = \"m\"\nowner = \"o\"\n";
    format!(
        "{DATABASE}[destination.d]\nbase_url = \"http://d\"\n{destination}\n[operation.o]\n{required}{operation}\n{rest}"
    )
}

#[test]
fn the_example_is_complete_and_parses() {
    let example = include_str!("../../../deploy/outboxd.toml");
    let config = accepted(example);
    assert_eq!(config.operations.len(), 3);
    let example: String = example.lines().map(|line| line.trim_start_matches("# ")).collect::<Vec<_>>().join("\n");
    for doc in reference().iter().filter(|doc| !matches!(doc.need, Need::Later | Need::Documentation)) {
        let optional = ["schema", "transport"].contains(&doc.key);
        assert!(optional || example.contains(doc.key), "[{}] {} is not in the example", doc.table, doc.key);
    }
}

#[test]
fn defaults_are_those_of_the_reference() {
    let config = accepted(&file("", "", ""));
    assert_eq!(config.database.pool_size, 8);
    assert_eq!((config.dispatcher.max_in_flight, config.dispatcher.notify), (256, true));
    assert_eq!(config.dispatcher.lease_margin, Duration::from_secs(5));
    assert_eq!((config.log.format, config.log.level), (LogFormat::Json, LogLevel::Info));
    let operation = &config.operations["o"];
    let policy = &operation.terms.policy;
    assert_eq!((policy.timeout, policy.attempts_max), (Duration::from_secs(10), 5));
    assert_eq!((policy.backoff.initial, policy.backoff.max), (Duration::from_millis(500), Duration::from_secs(300)));
    assert_eq!((operation.response_max_bytes, operation.cost), (65536, None));
    assert_eq!(config.limits["o"].max_in_flight, 64);
    assert_eq!(config.limits["o"].keep.identity, Duration::from_secs(400 * 86400));
}

#[test]
fn the_canonical_form_reads_back_as_itself() {
    let config = accepted(include_str!("../../../deploy/outboxd.toml"));
    let described = config.describe();
    let readable = described.replace("\"[secret]\"", "{ env = \"TOKEN\" }");
    assert_eq!(accepted(&readable).describe(), described);
}

#[test]
fn the_canonical_form_has_every_default_filled_in() {
    let described = accepted(&file("", "", "")).describe();
    let tables = ["database", "dispatcher", "log", "destination.NAME", "operation.NAME"];
    let defaults = reference().iter().filter(|doc| matches!(doc.need, Need::Default(_)) && tables.contains(&doc.table));
    for doc in defaults.clone() {
        assert!(described.contains(&format!("\n{} = ", doc.key)), "[{}] {} is not in {described}", doc.table, doc.key);
    }
    assert!(defaults.count() > 20);
    let journal = accepted(&format!("{}\n[dispatcher]\njournal = \"outcomes\"\n", file("", "", ""))).describe();
    assert!(journal.contains("\njournal = \"outcomes\"\n"), "{journal}");
}

#[test]
fn an_unreadable_file_has_its_own_message() {
    let refusal = Config::load(Path::new("no/such.toml"), Secrets::Skip).expect_err("refused");
    assert_eq!(
        refusal.to_string(),
        "no/such.toml: the configuration does not exist; name another file with --config\nconfiguration refused: 1 problem"
    );
}

/// Texts near to a configuration: pieces of one, cut and joined.
fn pieces() -> impl Strategy<Value = String> {
    let example: Vec<&str> =
        include_str!("../../../deploy/outboxd.toml").split_inclusive(['\n', '=', '.', '"', ' ']).collect();
    prop::collection::vec(prop::sample::select(example), 0..60).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn no_text_makes_the_parser_panic(text in prop_oneof![any::<String>(), pieces()]) {
        let _ = parse(&text);
    }

    #[test]
    fn no_value_makes_the_parser_panic(at in 0usize..200, value in "[-0-9a-z\"\\[\\]{}:/=. ]{0,24}") {
        let lines = include_str!("../../../deploy/outboxd.toml").lines().enumerate().map(|(n, line)| {
            match line.split_once('=').filter(|_| n == at) {
                Some((key, _)) => format!("{key}= {value}\n"),
                None => format!("{line}\n"),
            }
        });
        let _ = parse(&lines.collect::<String>());
    }
}
