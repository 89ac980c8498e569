//! The whole contract vocabulary, read.

use serde_json::{Value, json};

use super::*;
use crate::core::contract::{Absence, By, Compare, Contract, Place, Reference, Rung, Source, WaitFormat};
use crate::core::target::pins;

/// A contract that says everything.
pub(super) const EVERYTHING: &str = r#"
[contract.c]
title = "An API: POST /x"
sources = [{ url = "https://api.example.com/docs", trust = "source", seen = "2026-01-15" }]
reconcile = ["resend", "lookup", "review"]
compare = { "/amount" = "json:/amount", "/who" = "header:X-Who" }
[contract.c.key]
mode = "dedupe"
place = "gql-var:input.id"
form = "base36"
also = { "json:/enforce_nonce" = true, "header:X-Mode" = "once", "query:n" = 3 }
window = "1h"
replayed = { header = { Idempotent-Replayed = "true" } }
honoured = { json = { "/key" = "*" } }
resend_within = "20m"
pins = ["url", "credential-account"]
other_body = "replay"
replays = "success"
overwrites = false
window_trust = "official"
[contract.c.ref]
place = "json:/reference"
max_bytes = 40
[contract.c.receipt]
id = ["json:/id", "header:Location"]
request_id = "header:X-Request-Id"
[contract.c.pace]
retry_after = ["json:/retry_after;seconds-float", "header:X-Reset;epoch"]
[contract.c.sign]
scheme = "standard-webhooks-v1"
per_attempt = ["webhook-signature", "webhook-timestamp"]
[[contract.c.rule]]
when = { status = 409 }
class = "duplicate"
then = ["lookup"]
note = "It exists under our id."
[contract.c.lookup]
by = "ref"
request = { method = "POST", path = "/graphql", headers = { X-Api = "2" }, body = { query = "query($id:ID!){x(id:$id){id}}", variables = { id = "{ref}", shop = "{shop}", deep = ["k-{key}", 1.5, 7, true] } } }
found = { status = "200", json = { "/data/x/id" = "*" } }
absent = { json = { "/data/x" = "[]" } }
receipt = "json:/data/x/id"
compare = { "/data/x/amount" = "json:/amount" }
first_after = "2s"
repeat = ["10s", "1m 30s"]
absence = "after:60s"
[contract.c.cancel]
request = { method = "DELETE", path = "/x/{key}" }
done = { status = ["200", 404] }
[contract.c.hint]
request = { method = "GET", path = "/accounts/{account}/x", query = { to = "{body.To}", day = "{sent.date}" } }
"#;

fn contract(text: &str) -> Contract {
    accepted(&file("", "", text)).contracts["c"].contract.clone()
}

#[test]
fn r16_r18_every_word_of_the_vocabulary_is_understood() {
    let contract = contract(EVERYTHING);
    let key = contract.key.as_ref().expect("a key");
    assert_eq!(key.place, Place::Json("/variables/input/id".into()));
    assert_eq!(
        key.also,
        [
            (Place::Json("/enforce_nonce".into()), json!(true)),
            (Place::Header("x-mode".into()), json!("once")),
            (Place::Query("n".into()), json!(3)),
        ]
    );
    assert!(key.replayed.as_ref().is_some_and(|when| when.headers.len() == 1 && !when.reads_body()));
    assert!(key.honoured.as_ref().is_some_and(|when| when.reads_body()));
    assert_eq!(contract.reference, Some(Reference { place: Place::Json("/reference".into()) }));
    assert_eq!(contract.receipt.id, [Source::Json("/id".into()), Source::Header("location".into())]);
    let sent = |answer: &str, sent| Compare { answer: answer.into(), sent };
    assert_eq!(
        contract.compare,
        [sent("/amount", Place::Json("/amount".into())), sent("/who", Place::Header("x-who".into()))]
    );
    let formats: Vec<_> = contract.retry_after.iter().map(|wait| wait.format).collect();
    assert_eq!(formats, [WaitFormat::SecondsFloat, WaitFormat::Epoch]);
    assert_eq!(contract.rules[0].then, Some(vec![Rung::Lookup, Rung::Review]));
}

#[test]
fn r19_a_lookup_says_what_is_asked_when_and_what_an_absence_proves() {
    let contract = contract(EVERYTHING);
    let lookup = contract.lookup.as_ref().expect("a lookup");
    assert_eq!((lookup.by, lookup.asking.absence), (By::Reference, Absence::After(Duration::from_secs(60))));
    assert_eq!(lookup.asking.first_after, Duration::from_secs(2));
    assert_eq!(lookup.asking.repeat, [10, 90].map(Duration::from_secs));
    let body = lookup.question.body.as_ref().expect("a body");
    assert_eq!(
        *body,
        json!({"query": "query($id:ID!){x(id:$id){id}}",
               "variables": {"id": "{ref}", "shop": "{shop}", "deep": ["k-{key}", 1.5, 7, true]}})
    );
    let order: Vec<_> = body.as_object().into_iter().flat_map(|members| members.keys()).collect();
    assert_eq!(order, ["query", "variables"]);
    let cancel = contract.cancel.expect("a cancel");
    assert_eq!(cancel.asking.absence, Absence::Never);
    assert_eq!((cancel.asking.first_after, cancel.asking.repeat.len()), (Duration::from_secs(5), 3));
    assert_eq!(contract.hint.expect("a hint").request.query.len(), 2);
}

#[test]
fn the_whole_vocabulary_reads_back_from_its_canonical_form() {
    let auth = "auth.sign = { scheme = \"standard-webhooks\", secrets = [{ env = \"WEBHOOKS\" }] }";
    let used = |text: &str| file(auth, "", text).replace("http.post", "c");
    let config = accepted(&used(EVERYTHING));
    let promise = &config.contracts["c"];
    let described = promise.describe();
    let again = &accepted(&used(&described)).contracts["c"];
    assert_eq!(again, promise, "{described}");
    assert_eq!(again.describe(), described);
    assert!(config.describe().contains(&described));
    for part in ["window_trust = \"official\"", "note = \"It exists under our id.\"", "other_body = \"replay\""] {
        assert!(described.contains(part), "{part} in {described}");
    }
}

#[test]
fn names_of_any_characters_read_back_from_the_canonical_form() {
    let odd = r#"{ "/e\u0301\u007f \"\\\n" = "json:/a" }"#;
    let promise = |text: &str| accepted(&file("", "", text)).contracts["c"].clone();
    let written = promise(&format!("[contract.c]\nreconcile = []\ncompare = {odd}"));
    assert_eq!(written.contract.compare[0].answer, "/e\u{301}\u{7f} \"\\\n");
    assert_eq!(promise(&written.describe()), written, "{}", written.describe());
}

#[test]
fn r18_pins_know_the_reference_and_what_switches_the_key_on() {
    let all = accepted(&file("", "", EVERYTHING));
    let (target, operation) = (&all.targets["d"], &all.operations["o"]);
    let of = |text: &str| pins(target, &operation.request, &contract(text));
    let first = of(EVERYTHING);
    assert_eq!(first, of(&EVERYTHING.replace("20m", "30m")));
    for (is, was) in
        [("nonce\" = false", "nonce\" = true"), ("json:/ref2", "json:/reference"), ("\"hex\"", "\"base36\"")]
    {
        assert_ne!(first, of(&EVERYTHING.replace(was, is)), "{is}");
    }
}

#[test]
fn r18_how_late_a_natural_repeat_may_leave_is_the_operations_the_contracts_or_an_hour() {
    let within = |contract: &str, operation: &str| {
        let rest = format!("[contract.c]\nreconcile = [\"resend\"]\nkey = {{ mode = \"natural\"{contract} }}");
        let config = accepted(&file("", operation, &rest).replace("http.post", "c"));
        config.operations["o"].terms.policy.resend_within.as_secs()
    };
    assert_eq!(within("", ""), 3600);
    assert_eq!(within(", resend_within = \"20m\"", ""), 1200);
    assert_eq!(within(", resend_within = \"20m\"", "resend_within = \"5m\""), 300);
}

#[test]
fn r23_what_may_be_spent_pays_for_whole_attempts() {
    let affordable = |cost: &str| {
        let config = accepted(&file("", &format!("cost = {{ {cost} }}"), ""));
        config.operations["o"].terms.policy.affordable
    };
    assert_eq!(affordable("attempt = 0.40, max = 2.00"), Some(5));
    assert_eq!(affordable("attempt = 0.1, max = 0.3"), Some(3));
    assert_eq!(affordable("attempt = 0.4, max = 1.99"), Some(4));
    assert_eq!(affordable("attempt = 3, max = 3"), Some(1));
    assert_eq!(affordable("attempt = 1"), None);
    assert_eq!(affordable("attempt = 0, max = 1"), None);
    assert_eq!(affordable("attempt = 0, max = 0"), None);
    assert_eq!(affordable("attempt = 1e-9, max = 1e12"), Some(u32::MAX));
}

#[test]
fn a_body_holds_whatever_json_has_a_word_for() {
    let with = |body: &str| {
        EVERYTHING.replace("body = { query = \"query($id:ID!){x(id:$id){id}}\",", &format!("body = {{ more = {body},"))
    };
    let more = |body: &str| {
        let question = contract(&with(body)).lookup.expect("a lookup").question;
        question.body.as_ref().and_then(|body| body.get("more").cloned()).unwrap_or(Value::Null)
    };
    assert_eq!(more("0x1f"), json!(31));
    assert_eq!(more("+5"), json!(5));
    assert_eq!(more("[]"), json!([]));
    assert_eq!(more("{ a = { b = [\"{c} d\"] } }"), json!({"a": {"b": ["{c} d"]}}));
    let complaints = |body: &str| refused(&file("", "", &with(body))).join("\n");
    assert!(complaints("inf").contains("`body` in [contract.c.lookup.request] holds inf, which JSON cannot write"));
    assert!(complaints("1979-05-27").contains("must hold strings, booleans or integers, found a date"));
    assert!(complaints("99999999999999999999").contains("which is too large"));
}
