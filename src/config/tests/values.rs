//! Values that cannot be meant (B76).

use super::*;
use crate::core::target::Http;

#[test]
fn b76_durations_need_a_unit_and_must_make_sense() {
    let timeout = |written: &str| refused(&file("", &format!("timeout = {written}"), "")).join("\n");
    let prefix = "outboxd.toml:13: `timeout` in [operation.o]";
    assert_eq!(timeout("30"), format!("{prefix} needs a unit: write \"30s\" for seconds"));
    assert_eq!(timeout("\"30\""), format!("{prefix} needs a unit: write \"30s\" for seconds"));
    assert_eq!(timeout("\"0s\""), format!("{prefix} must be longer than 0s; write a duration like \"30s\""));
    assert_eq!(
        timeout("0"),
        format!("{prefix} needs a unit and must be longer than 0s; write a duration like \"30s\"")
    );
    assert_eq!(
        timeout("\"-5s\""),
        format!("{prefix} must not be negative, found \"-5s\"; write a duration like \"30s\"")
    );
    assert_eq!(timeout("-5"), format!("{prefix} must not be negative, found \"-5\"; write a duration like \"30s\""));
    assert_eq!(timeout("\"1ns\""), format!("{prefix} must be at least 1ms, found 1ns"));
    assert_eq!(timeout("\"2h\""), format!("{prefix} must be at most 1h, found 2h"));
    assert_eq!(timeout("true"), format!("{prefix} must be a duration like \"30s\", found a boolean"));
    let config = accepted(&file("", "elapsed_max = \"1h30m\"\nbackoff = { initial = \"1us\" }", ""));
    assert!(
        config
            .describe()
            .contains("elapsed_max = \"1h 30m\"\nbackoff = { initial = \"1us\", multiplier = 2.0, max = \"5m\" }")
    );
}

#[test]
fn b76_values_out_of_range_and_of_another_type_say_what_was_found() {
    let text = format!(
        "{DATABASE}pool_size = 0\n[dispatcher]\nmax_in_flight = 99999999999999999999\nnotify = \"yes\"\nlease_margin = \"0s\"\n\
         [log]\nlevel = \"infos\"\n"
    );
    assert_eq!(
        refused(&text),
        [
            "outboxd.toml:3: `pool_size` in [database] must be between 1 and 100, found 0",
            "outboxd.toml:5: `max_in_flight` in [dispatcher] must be between 1 and 10000, found 99999999999999999999",
            "outboxd.toml:6: `notify` in [dispatcher] must be true or false, found a string",
            "outboxd.toml:7: `lease_margin` in [dispatcher] must be longer than 0s; write a duration like \"30s\"",
            "outboxd.toml:9: `level` in [log] must be one of \"error\", \"warn\", \"info\", \"debug\", \"trace\", found \
             \"infos\"; did you mean \"info\"?",
        ]
    );
    assert_eq!(
        refused("database = 1\nlog = []\n"),
        [
            "outboxd.toml:1: `database` in the file must be a table, found an integer",
            "outboxd.toml:2: `log` in the file must be a table, found a list",
        ]
    );
}

#[test]
fn b76_contradictions_within_an_operation_are_refused() {
    let operation = "backoff = { initial = \"10m\", multiplier = 0.5 }\ncost = { attempt = 2, max = 1 }\n\
                     keep = { payload = \"500d\" }\nattempts_max = 0\nresponse_max_bytes = 16777217";
    assert_eq!(
        refused(&file("", operation, "")),
        [
            "outboxd.toml:13: `multiplier` in [operation.o.backoff] must be between 1 and 1000, found 0.5",
            "outboxd.toml:14: `max` in [operation.o.cost] must be at least what one attempt costs (2), found 1",
            "outboxd.toml:15: `payload` in [operation.o.keep] must not be longer than `identity` (400d), found 500d",
            "outboxd.toml:16: `attempts_max` in [operation.o] must be between 1 and 10000, found 0",
            "outboxd.toml:17: `response_max_bytes` in [operation.o] must be between 1 and 16777216, found 16777217",
        ]
    );
    assert_eq!(
        refused(&file("", "backoff = { initial = \"10m\" }", "")),
        ["outboxd.toml:13: `initial` in [operation.o.backoff] must not be longer than `max` (5m), found 10m"]
    );
}

#[test]
fn requests_are_checked_for_what_http_allows() {
    let request = "request = { method = \"POST\", path = \"/x\" }";
    let with = |request_: &str| refused(&file("", "", "").replace(request, request_)).join("\n");
    assert_eq!(
        with("request = { method = \"post\", path = \"x?y\", query = { a = 1 }, headers = { authorization = \"x\" } }"),
        "outboxd.toml:8: `method` in [operation.o.request] must be in upper case: write \"POST\"\n\
         outboxd.toml:8: `path` in [operation.o.request] must begin with `/`\n\
         outboxd.toml:8: `query` in [operation.o.request] has `a`, which must be a string, found an integer\n\
         outboxd.toml:8: `headers` in [operation.o.request] cannot set `authorization`: credentials belong in the \
         destination's `auth`"
    );
    let twice = file("auth = { header = { name = \"X-Key\", value = { env = \"TOKEN\" } } }", "", "")
        .replace(request, "request = { method = \"POST\", path = \"/x\", headers = { x-key = \"1\" } }");
    assert_eq!(
        refused(&twice),
        ["outboxd.toml:8: operation \"o\": header `x-key` is set twice: the destination's `auth` has it too"]
    );
    assert_eq!(
        with("request = { method = \"POST\", path = \"/{x\" }"),
        "outboxd.toml:8: `path` in [operation.o.request] is not a valid template: a brace without its partner"
    );
    let text = file("", "", "")
        .replace(request, "request = { method = \"GET\", path = \"/{z}\", query = { z = \"1\", a = \"{b}\" } }");
    let query: Vec<_> = accepted(&text).operations["o"].request.query.iter().map(|(name, _)| name.clone()).collect();
    assert_eq!(query, ["z", "a"]);
}

#[test]
fn which_http_is_spoken_is_one_of_three() {
    let speaks = |written: &str| accepted(&file(&format!("http = {written}"), "", "")).targets["d"].http;
    assert_eq!((speaks("\"1\""), speaks("\"2\""), speaks("\"auto\"")), (Http::One, Http::Two, Http::Auto));
    assert!(refused(&file("http = \"3\"", "", ""))[0].contains("must be one of \"1\", \"2\", \"auto\""));
}

#[test]
fn b76_a_rate_and_a_pause_that_cannot_be_meant_are_refused_with_what_to_write() {
    let pace = |line: &str| format!("[contract.c]\nreconcile = []\n[contract.c.pace]\n{line}");
    let rate = "must be a number of requests, `/` and s, min or h, like \"50/s\" or \"600/min burst 20\"";
    assert_eq!(
        refused(&file("rate = \"50 a second\"", "", "")),
        [format!("outboxd.toml:5: `rate` in [destination.d] {rate}, found \"50 a second\"")]
    );
    for (line, says) in [
        ("pause_scope = \"tenant\"", "must be one of \"action\", \"operation\", \"destination\", found \"tenant\""),
        ("pause_scope = \"header:X-Scope\"", "`pause_scopes` is missing"),
        ("pause_scopes = { a = \"action\" }", "`pause_scope` is missing"),
        ("pause_scope = \"action\"\npause_scopes = { a = \"action\" }", "has a meaning only where"),
        ("pause_scope = \"header:X\"\npause_scopes = { a = \"all\" }", "has `a`, which must be one of"),
        ("min_gap = \"2h\"", "must be at most 1h"),
    ] {
        let said = refused(&file("", "", &pace(line)));
        assert!(said.len() == 1 && said[0].contains(says), "{line}: {said:?}");
    }
    assert_eq!(refused(&file("rate = \"600/min\"", "tenant_max_in_flight = 2", &pace("min_gap = \"1s\""))), [""; 0]);
}
