//! What `outboxd contracts` and `outboxd operations` show: without a database, without a secret.

use std::path::Path;
use std::process::Command;

use outboxd::config::{Config, Secrets, contracts};
use serde_json::Value;

/// Exit code, and what was said on stdout and stderr.
fn outboxd(arguments: &[&str]) -> (Option<i32>, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_outboxd"));
    // Nothing of the surroundings may matter.
    let output = command.args(arguments).env_clear().output().expect("it runs");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
    (output.status.code(), text(output.stdout), text(output.stderr))
}

fn said(arguments: &[&str]) -> String {
    let (code, out, err) = outboxd(arguments);
    assert_eq!((code, err.as_str()), (Some(0), ""), "{arguments:?}");
    out
}

fn json(arguments: &[&str]) -> Value {
    serde_json::from_str(&said(&[arguments, &["--json"]].concat())).expect("JSON")
}

/// The example of the repository, and one operation that nothing can settle.
fn example(directory: &Path) -> String {
    let example = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/deploy/outboxd.toml")).expect("a file");
    let more = "\n[operation.\"sms.send\"]\ndestination = \"announcements\"\ncontract = \"twilio.messages.create\"\n\
                request = { method = \"POST\", path = \"/2010-04-01/Accounts/{sid}/Messages.json\" }\n\
                effect = \"unreconcilable\"\nmeaning = \"Text a customer\"\nowner = \"support\"\ntimeout = \"15s\"\n\
                attempts_max = 1\ncost = { attempt = 0.04, max = 0.04 }\n";
    let path = directory.join("outboxd.toml");
    std::fs::write(&path, example + more).expect("written");
    path.to_str().expect("a path").to_owned()
}

#[test]
fn r18_every_built_in_contract_is_listed_with_what_it_promises() {
    let list = said(&["contracts"]);
    for (name, promise) in contracts() {
        assert!(list.lines().any(|line| line.starts_with(&name)), "{name} in {list}");
        assert!(list.contains(promise.title.as_deref().expect("a title")), "{name}");
    }
    let line = |name: &str| {
        let line = list.lines().find(|line| line.starts_with(name)).unwrap_or_else(|| panic!("{name}"));
        line.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(
        line("stripe.v1.payment_intents.create"),
        ["stripe.v1.payment_intents.create", "header · 24 h", "by ref", "resend → lookup → review", "official"]
    );
    assert_eq!(line("http.post"), ["http.post", "none", "–", "review", "official"]);
    assert_eq!(line("square.payments.create")[2..], ["cancel", "cancel → review", "unverified"]);
    for line in list.lines() {
        assert!(line.chars().count() <= 120, "{line}");
    }
    assert_eq!(json(&["contracts"]).as_array().map(Vec::len), Some(contracts().len()));
}

#[test]
fn r18_a_printed_contract_can_be_pasted_and_says_how_sure_it_is() {
    for name in contracts().keys() {
        let printed = said(&["contracts", name]);
        let file = format!("[database]\nurl = \"postgres://outboxd@localhost/app\"\n{printed}");
        let config = Config::parse(&file, "outboxd.toml", Secrets::Ignore, &|_| None);
        let config = config.unwrap_or_else(|refusal| panic!("{name}: {refusal}"));
        assert_eq!(config.contracts[name].contract, contracts()[name].contract, "{name}");
        assert!(printed.contains("# How sure it is:\n#   ") && printed.contains("sources = ["), "{printed}");
    }
    let printed = said(&["contracts", "square.payments.create"]);
    assert!(
        printed.contains("cancel.absence is unverified: an operation needs `allow_unverified = true`"),
        "{printed}"
    );
    let value = json(&["contracts", "zendesk.tickets.create"]);
    assert_eq!(value["trust"], "relayed");
    assert_eq!(value["trust_of"]["key.window"], "relayed");
    assert_eq!(value["key"]["window_ms"], 7_200_000);
    assert!(value["sources"][0]["url"].as_str().is_some_and(|url| url.starts_with("https://")), "{value}");
    assert!(value["toml"].as_str().is_some_and(|toml| toml.starts_with("[contract.\"zendesk.tickets.create\"]")));
}

#[test]
fn b75_an_unknown_contract_is_answered_with_the_nearest() {
    let (code, out, err) = outboxd(&["contracts", "http.pots"]);
    assert_eq!((code, out.as_str()), (Some(1), ""));
    assert_eq!(err, "there is no contract \"http.pots\"; did you mean http.post?\n");
    let (_, _, err) = outboxd(&["contracts", "stripe"]);
    assert!(err.contains("stripe.v1.post or stripe.v2.post"), "{err}");
    let (_, _, err) = outboxd(&["contracts", "acme.orders"]);
    assert!(err.contains("outboxd contracts lists them"), "{err}");
}

#[test]
fn a_files_own_contracts_are_shown_with_the_built_in_ones() {
    let directory = tempfile::tempdir().expect("a directory");
    let config = example(directory.path());
    let list = said(&["contracts", "--config", &config]);
    assert!(
        list.contains("Example announcements API: POST /v1/channels/{channel}/announcements (of this file)"),
        "{list}"
    );
    let without_sources = list.lines().find(|line| line.starts_with("example.deposits")).expect("it");
    assert!(without_sources.ends_with('–'), "nothing says how sure it is: {without_sources}");
    let printed = said(&["contracts", "example.orders", "--config", &config]);
    assert!(printed.contains("window = \"1d\"") && printed.contains("encode = \"sf-string\""), "{printed}");
    let (code, _, err) = outboxd(&["contracts", "--config", "no/such.toml"]);
    assert_eq!(code, Some(78), "{err}");
}

#[test]
fn r20_operations_are_an_inventory_that_warns_of_what_is_dangerous() {
    let directory = tempfile::tempdir().expect("a directory");
    let config = example(directory.path());
    let table = said(&["operations", "--config", &config]);
    let after = |name: &str| {
        let lines: Vec<_> = table.lines().collect();
        let at = lines.iter().position(|line| line.starts_with(name)).unwrap_or_else(|| panic!("{name}: {table}"));
        lines[at..].iter().take(4).map(|line| (*line).to_owned()).collect::<Vec<_>>()
    };
    let sms = after("sms.send");
    for part in ["unreconcilable", "none", "hint only", "15 s", "1 / 24 h", "0.04", "review"] {
        assert!(sms[0].contains(part), "{part}: {table}");
    }
    assert_eq!(sms[1], "  Text a customer (owner: support)");
    assert_eq!(sms[2], "  to announcements under twilio.messages.create, confirmed by its answer");
    assert_eq!(sms[3], "  ⚠ nothing can settle an unknown outcome; every one becomes a review for support");
    assert!(after("announcement.deliver")[0].contains("resend → lookup → review"), "{table}");
    for line in table.lines() {
        assert!(line.chars().count() <= 120, "{line}");
    }
    let all = json(&["operations", "--config", &config]);
    let all = all.as_array().expect("a list");
    let sms = all.iter().find(|operation| operation["operation"] == "sms.send").expect("it");
    assert_eq!(sms["on_unknown"], serde_json::json!(["review"]));
    assert_eq!((&sms["owner"], &sms["attempts_affordable"]), (&"support".into(), &1.into()));
    assert_eq!(sms["warnings"].as_array().map(Vec::len), Some(1));
}

#[test]
fn b75_a_refused_configuration_is_refused_by_every_command_that_reads_it() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("outboxd.toml");
    std::fs::write(&path, "[dispatcher]\npoll_intervall = \"1s\"\n").expect("written");
    let path = path.to_str().expect("a path");
    for command in ["operations", "contracts"] {
        let (code, out, err) = outboxd(&[command, "--config", path]);
        assert_eq!((code, out.as_str()), (Some(78), ""), "{command}");
        assert!(err.contains("did you mean `poll_interval`?") && err.contains("[database] is missing"), "{err}");
    }
}
