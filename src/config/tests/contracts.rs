//! Contracts, and whether operations agree with them.

use super::*;
use crate::core::contract::{Encode, Rung, Window};

/// An operation under a contract of its own; its `contract` stands in line 9, the contract's `reconcile` in line 15.
fn keyed(key: &str, operation: &str) -> Vec<String> {
    let rest = format!("[contract.c]\nreconcile = [\"resend\"]\n[contract.c.key]\n{key}");
    refused(&file("", operation, &rest).replace("http.post", "c").replace("compensatable", "keyed"))
}

#[test]
fn b76_a_resend_needs_a_window_that_outlives_an_attempt() {
    let key = "mode = \"dedupe\"\nplace = \"header:Idempotency-Key\"\n";
    assert_eq!(
        keyed(key, ""),
        [
            "outboxd.toml:9: operation \"o\": `resend` needs to know how long the destination remembers a key; add `window` \
          to [contract.c.key] or take `resend` out of `reconcile`"
        ]
    );
    assert_eq!(keyed(&format!("{key}window = \"24h\""), ""), [""; 0]);
    assert_eq!(
        keyed(&format!("{key}window = \"11s\"\nmargin = \"1s\""), ""),
        [
            "outboxd.toml:9: operation \"o\": the key's `window` (11s) less its `margin` (1s) must be longer than `timeout` \
          (10s), or nothing is ever resent"
        ]
    );
    assert_eq!(
        keyed(&format!("{key}window = \"1h\"\nmargin = \"1h\""), ""),
        ["outboxd.toml:20: `margin` in [contract.c.key] must be shorter than `window` (1h), found 1h"]
    );
    assert_eq!(
        keyed(&key.replace("dedupe", "receiver"), "resend_within = \"5s\""),
        [
            "outboxd.toml:9: operation \"o\": `resend_within` (5s) must be longer than `timeout` (10s), or nothing is ever \
          resent"
        ]
    );
}

#[test]
fn b76_a_key_must_fit_where_it_goes() {
    let key = "mode = \"dedupe\"\nwindow = \"1d\"\n";
    let refused = |more: &str, request: &str| keyed(&format!("{key}{more}"), request).join("\n");
    assert_eq!(
        refused("place = \"json:/key\"\nmax_bytes = 25", ""),
        "outboxd.toml:20: `max_bytes` in [contract.c.key] is 25, but a key of form \"uuid\" is 36 bytes long"
    );
    assert_eq!(refused("place = \"json:/key\"\nmax_bytes = 25\nform = \"base36\"", ""), "");
    assert!(
        refused("place = \"json:/key\"\ncharset = \"[0-9a-f]+\"", "")
            .starts_with("outboxd.toml:20: `charset` in [contract.c.key] does not match keys of the `form`, like \"")
    );
    assert_eq!(refused("place = \"json:/key\"\ncharset = \"[^.]+\"", ""), "");
    assert_eq!(
        refused("place = \"path:key\"", ""),
        "outboxd.toml:8: operation \"o\": the contract puts the key into the path; write `{key}` into `path`"
    );
    assert_eq!(
        refused("place = \"json:/key\"\nencode = \"sf-string\"", ""),
        "outboxd.toml:20: `encode` in [contract.c.key] can be \"sf-string\" only where `place` is a header"
    );
    assert_eq!(
        refused("", ""),
        "outboxd.toml:16: `place` is missing in [contract.c.key]: `header:Name`, `json:/pointer`, \
         `form:name`, `query:name`, `path:name`, or `gql-var:name.name` for a GraphQL variable"
    );
}

#[test]
fn b76_an_effect_must_agree_with_the_contract() {
    let text = file("", "", "").replace("compensatable", "keyed");
    assert_eq!(
        refused(&text),
        ["outboxd.toml:10: operation \"o\": effect \"keyed\" needs a key, or a `ref` with a lookup, and contract \
          \"http.post\" has neither"]
    );
    let free = "[contract.c]\nreconcile = [\"resend\"]";
    let with = |effect| refused(&file("", "", free).replace("http.post", "c").replace("compensatable", effect));
    assert_eq!(with("idempotent"), [""; 0]);
    assert_eq!(
        with("compensatable"),
        ["outboxd.toml:9: operation \"o\": `resend` needs a key by which the destination recognises a repeat; add \
          [contract.c.key] or take `resend` out of `reconcile`"]
    );
}

#[test]
fn a_built_in_contract_without_a_window_says_how_to_give_one() {
    let text = file("", "", "").replace("http.post", "http.idempotency-key");
    assert_eq!(
        refused(&text),
        ["outboxd.toml:9: operation \"o\": `resend` needs to know how long the destination remembers a key; write a \
          [contract.…] of your own with `extends = \"http.idempotency-key\"` and `key.window`, and name it here or take \
          `resend` out of `reconcile`"]
    );
}

#[test]
fn a_contract_that_extends_another_overrides_single_keys() {
    let rest = "[contract.mine]\nextends = \"http.idempotency-key\"\nkey.window = \"48h\"\n[contract.\"http.put\"]\n\
                extends = \"http.put\"\nreconcile = [\"review\"]\n[contract.third]\nextends = \"mine\"\nrule = []";
    let config = accepted(&file("", "", rest));
    let mine = &config.contracts["mine"];
    let key = mine.contract.key.as_ref().expect("inherited");
    assert_eq!((key.window, key.encode), (Some(Window::For(Duration::from_secs(48 * 3600))), Encode::SfString));
    assert_eq!(key.margin, Duration::from_secs(3600));
    assert_eq!((mine.contract.rules.len(), mine.built_in), (2, false));
    assert_eq!(config.contracts["third"].contract.rules.len(), 0);
    assert_eq!(config.contracts["third"].contract.key, mine.contract.key);
    let put = &config.contracts["http.put"];
    assert_eq!((put.contract.reconcile.as_slice(), put.built_in), ([Rung::Review].as_slice(), false));
    assert!(put.contract.key.is_some());
}

#[test]
fn contracts_that_extend_in_a_circle_or_nothing_are_refused() {
    let rest = "[contract.a]\nextends = \"b\"\n[contract.b]\nextends = \"a\"\n[contract.c]\nextends = \"http.putt\"";
    assert_eq!(
        refused(&file("", "", rest)),
        [
            "outboxd.toml:15: `extends` in [contract.a] goes round in a circle",
            "outboxd.toml:17: `extends` in [contract.b] goes round in a circle",
            "outboxd.toml:19: `extends` in [contract.c] names the contract \"http.putt\", which does not exist; did you \
             mean `http.put`?",
        ]
    );
}

#[test]
fn rules_are_read_as_the_vocabulary_says() {
    let rule = |when: &str, more: &str| {
        let rest = format!(
            "[contract.c]\nreconcile = []\n[[contract.c.rule]]\nwhen = {{ {when} }}\nclass = \"unknown\"\n{more}"
        );
        refused(&file("", "", &rest)).join("\n")
    };
    assert_eq!(
        rule("status = [409, \"4xx\"], header = { X-A = \"t*\" }, json = { \"/a\" = 704, \"/b\" = true }", ""),
        ""
    );
    assert_eq!(
        rule("status = \"6xx\"", ""),
        "outboxd.toml:17: `status` in [contract.c.rule.when] must be a status like 409 or \"4xx\", found \"6xx\""
    );
    assert_eq!(
        rule("", ""),
        "outboxd.toml:17: `when` in [contract.c.rule] must have at least one of `status`, `header`, `json`"
    );
    assert_eq!(
        rule("json = { \"a/b\" = \"x\" }", ""),
        "outboxd.toml:17: `json` in [contract.c.rule.when] has \"a/b\", which is not a JSON pointer like \"/error/code\""
    );
    assert_eq!(
        rule("status = 500", "then = [\"review\", \"resend\"]"),
        "outboxd.toml:19: `then` in [contract.c.rule] has \"resend\" behind \"review\", where it is never reached"
    );
    assert_eq!(
        rule("status = 500", "class_trust = \"hearsay\""),
        "outboxd.toml:19: `class_trust` in [contract.c.rule] must be one of \"official\", \"source\", \"relayed\", \
         \"memory\""
    );
}
