//! Contracts that contradict themselves, and operations that contradict their contract.

use super::*;

pub(super) const KEY: &str = "key = { mode = \"dedupe\", place = \"header:K\", window = \"1h\" }\n";
pub(super) const REF: &str = "ref = { place = \"json:/ref\" }\n";
pub(super) const LOOKUP: &str = "[contract.c.lookup]\nby = \"key\"\nrequest = { method = \"GET\", path = \"/x/{key}\" }\n\
                      found = { status = 200 }\nabsent = { status = 404 }\n";
pub(super) const CANCEL: &str = "[contract.c.cancel]\nrequest = { method = \"DELETE\", path = \"/x/{key}\" }\n\
                      done = { status = 200 }\n";

/// What is said about a contract of its own that the operation uses; `[contract.c]` stands in line 14.
pub(super) fn contract(reconcile: &str, rest: &str) -> Vec<String> {
    operation("", reconcile, rest)
}

fn operation(operation: &str, reconcile: &str, rest: &str) -> Vec<String> {
    let text = file("", operation, &format!("[contract.c]\nreconcile = [{reconcile}]\n{rest}"));
    refused(&text.replace("http.post", "c"))
}

/// Exactly one complaint, without its place.
#[track_caller]
pub(super) fn only(complaints: Vec<String>) -> String {
    assert_eq!(complaints.len(), 1, "{complaints:#?}");
    let complaint = complaints.first().expect("one");
    complaint.splitn(3, ':').nth(2).expect("a message").trim().to_owned()
}

#[test]
fn b76_a_rung_needs_what_it_climbs_on() {
    assert_eq!(
        contract("\"lookup\", \"cancel\"", KEY),
        [
            "outboxd.toml:15: `reconcile` in [contract.c] has \"lookup\", but the contract does not say how to ask; add \
             `lookup`",
            "outboxd.toml:15: `reconcile` in [contract.c] has \"cancel\", but the contract does not say how; add `cancel`",
        ]
    );
    let then = format!("{KEY}[[contract.c.rule]]\nwhen = {{ status = 409 }}\nclass = \"unknown\"\nthen = [\"lookup\"]");
    assert_eq!(
        only(contract("\"resend\"", &then)),
        "`then` in [contract.c.rule] has \"lookup\", but the contract does not say how to ask; add `lookup`"
    );
    assert_eq!(contract("\"lookup\"", &format!("{KEY}{LOOKUP}")), [""; 0]);
    assert_eq!(contract("\"cancel\"", &format!("{KEY}{CANCEL}")), [""; 0]);
}

#[test]
fn b76_a_rung_that_would_never_be_reached_is_refused() {
    let never = format!("{KEY}{LOOKUP}{CANCEL}");
    assert_eq!(
        only(contract("\"lookup\", \"resend\"", &never)),
        "`reconcile` in [contract.c] has \"resend\" behind \"lookup\", where it would never be reached: the lookup's \
         `absence` is \"never\", so it is asked again and again; put \"resend\" before it, or say after how long \"not \
         there\" is proof"
    );
    assert!(only(contract("\"lookup\", \"cancel\"", &never)).contains("has \"cancel\" behind \"lookup\""));
    let then = "[[contract.c.rule]]\nwhen = { status = 500 }\nclass = \"unknown\"\nthen = [\"lookup\", \"resend\"]";
    assert!(
        only(contract("\"resend\", \"lookup\"", &format!("{never}{then}")))
            .starts_with("`then` in [contract.c.rule] has")
    );
    let settled = format!("{KEY}{}absence = \"after:60s\"\n{CANCEL}", LOOKUP);
    assert_eq!(contract("\"lookup\", \"resend\", \"cancel\"", &settled), [""; 0]);
}

#[test]
fn b76_a_resend_that_rests_on_proof_of_the_key_stands_first() {
    let honoured = KEY.replace(" }", ", honoured = { header = { K = \"*\" } } }");
    let settled = format!("{honoured}{LOOKUP}absence = \"after:60s\"\n{CANCEL}");
    assert_eq!(
        only(contract("\"lookup\", \"resend\"", &settled)),
        "`reconcile` in [contract.c] has \"resend\" behind \"lookup\", and the key has `honoured`: by then nobody knows \
         any more whether the destination took the key; put \"resend\" first"
    );
    assert!(only(contract("\"cancel\", \"resend\"", &settled)).contains("has \"resend\" behind \"cancel\""));
    assert_eq!(contract("\"resend\", \"lookup\", \"cancel\"", &settled), [""; 0]);
}

#[test]
fn b76_a_lookup_asks_by_something_that_was_sent() {
    let by_ref = LOOKUP.replace("\"key\"", "\"ref\"").replace("{key}", "{ref}");
    assert_eq!(
        contract("\"lookup\"", LOOKUP),
        [
            "outboxd.toml:17: `by` in [contract.c.lookup] is \"key\", but the contract has no key; add one, or ask by \"ref\"",
            "outboxd.toml:18: `request` in [contract.c.lookup] holds `{key}`, but the contract has no key",
        ]
    );
    assert_eq!(
        contract("\"lookup\"", &by_ref),
        [
            "outboxd.toml:17: `by` in [contract.c.lookup] is \"ref\", but the contract has none; say in `ref` where our \
             reference is planted, or ask by \"key\"",
            "outboxd.toml:18: `request` in [contract.c.lookup] holds `{ref}`, but the contract has no `ref`",
        ]
    );
    assert_eq!(contract("\"lookup\"", &format!("{REF}{by_ref}")), [""; 0]);
    let keyed = |rest: &str| {
        let text = file("", "", &format!("[contract.c]\nreconcile = [\"lookup\"]\n{rest}"));
        refused(&text.replace("http.post", "c").replace("compensatable", "keyed"))
    };
    assert_eq!(keyed(&format!("{REF}{by_ref}")), [""; 0]);
    let neither = "outboxd.toml:10: operation \"o\": effect \"keyed\" needs a key, or a `ref` with a lookup, and contract \
                   \"c\" has neither";
    let text = file("", "", &format!("[contract.c]\nreconcile = []\n{REF}"));
    assert_eq!(refused(&text.replace("http.post", "c").replace("compensatable", "keyed")), [neither]);
}

#[test]
fn b76_a_cancel_goes_by_the_key() {
    assert_eq!(
        contract("\"cancel\"", &CANCEL.replace("{key}", "1")),
        [
            "outboxd.toml:16: `cancel` in [contract.c] needs a key, and the contract has none; add [key] or take `cancel` out"
        ]
    );
    assert_eq!(
        only(contract("\"cancel\"", &format!("{KEY}{}", CANCEL.replace("{key}", "{id}")))),
        "`request` in [contract.c.cancel] must hold `{key}` in its path, query or body: it is by its key that an action is cancelled"
    );
    let in_header =
        "request = { method = \"POST\", path = \"/void\", headers = { k = \"{key}\" } }\ndone = { status = 200 }\n";
    assert!(
        only(contract("\"cancel\"", &format!("{KEY}[contract.c.cancel]\n{in_header}")))
            .contains("must hold `{key}` in")
    );
    let body =
        "request = { method = \"POST\", path = \"/void\", body = { id = \"{key}\" } }\ndone = { status = 200 }\n";
    assert_eq!(contract("\"cancel\"", &format!("{KEY}[contract.c.cancel]\n{body}")), [""; 0]);
}

#[test]
fn b76_an_absence_is_believed_only_where_something_says_so() {
    let without = LOOKUP.replace("absent = { status = 404 }\n", "");
    assert_eq!(
        only(contract("\"lookup\"", &format!("{KEY}{without}absence = \"after:60s\""))),
        "`absence` in [contract.c.lookup] believes an answer that no matcher recognises; say which answers mean \"not \
         there\" in `absent`, or write \"never\""
    );
    let absence = |written: &str| only(contract("\"lookup\"", &format!("{KEY}{LOOKUP}absence = {written}")));
    assert_eq!(
        absence("\"60s\""),
        "`absence` in [contract.c.lookup] must be \"never\" or like \"after:60s\", found \"60s\""
    );
    assert_eq!(absence("\"after:60\""), "`absence` in [contract.c.lookup] needs a unit: write \"60s\" for seconds");
    let repeat = |written: &str| only(contract("\"lookup\"", &format!("{KEY}{LOOKUP}repeat = {written}")));
    assert_eq!(repeat("[]"), "`repeat` in [contract.c.lookup] must not be an empty list");
    assert_eq!(repeat("[30]"), "`repeat` in [contract.c.lookup] needs a unit: write \"30s\" for seconds");
    assert!(repeat("\"30s\"").contains("must be a list like [\"30s\", \"5m\"], found a string"));
    assert!(repeat("[\"0s\"]").contains("must hold durations of at least 1ms, found 0s"));
}

#[test]
fn b76_whoever_asks_does_so_before_a_person_is_asked() {
    let with = |review_after: &str, more: &str| {
        operation(&format!("review_after = \"{review_after}\""), "\"lookup\"", &format!("{KEY}{LOOKUP}{more}"))
    };
    assert_eq!(
        with("5s", ""),
        [
            "outboxd.toml:13: operation \"o\": `review_after` (5s) must be longer than `first_after` of the contract's lookup \
          (5s), or the destination is never asked"
        ]
    );
    assert_eq!(
        with("1m", "absence = \"after:60s\""),
        [
            "outboxd.toml:13: operation \"o\": `review_after` (1m) must be longer than the time after which the contract's \
          lookup is believed (1m), or it never is"
        ]
    );
    assert_eq!(with("61s", "absence = \"after:60s\""), [""; 0]);
}

#[test]
fn b76_only_placeholders_that_somebody_fills_are_accepted() {
    let asks = |path: &str| contract("\"lookup\"", &format!("{KEY}{}", LOOKUP.replace("/x/{key}", path)));
    assert_eq!(asks("/x/{key}/{channel}"), [""; 0]);
    assert_eq!(
        only(asks("/x/{sent.date}")),
        "`request` in [contract.c.lookup] holds `{sent.date}`, which only `hint` can have"
    );
    assert!(only(asks("/x/{body.To}")).contains("holds `{body.To}`, which only `hint` can have"));
    assert!(only(asks("/x/{key")).contains("is not a valid template: a brace without its partner"));
    let hint = |query: &str| {
        let hint =
            format!("[contract.c.hint]\nrequest = {{ method = \"GET\", path = \"/\", query = {{ q = \"{query}\" }} }}");
        contract("", &hint)
    };
    assert_eq!(hint("{body.To}{sent.date}{account}{channel}"), [""; 0]);
    assert!(only(hint("{sent.time}")).contains("of what was sent there is only `{sent.date}` and `{body.NAME}`"));
    assert!(only(hint("{ref}")).contains("holds `{ref}`, but the contract has no `ref`"));
}

#[test]
fn b76_what_is_put_into_a_request_does_not_meet() {
    let key = |key: &str, rest: &str| {
        only(contract("", &format!("key = {{ mode = \"dedupe\", place = \"{key}\"{rest} }}\n{REF}")))
    };
    assert_eq!(key("json:/ref", ""), "`place` in [contract.c.ref] has `json:/ref`, where `place` of `key` stands too");
    assert_eq!(
        key("json:/ref/x", ""),
        "`place` in [contract.c.ref] has `json:/ref`, where `place` of `key` stands too"
    );
    assert_eq!(
        key("header:K", ", also = { \"header:k\" = \"1\" }"),
        "`also` in [contract.c.key] has `header:k`, where `place` of `key` stands too"
    );
    assert_eq!(
        key("form:k", ""),
        "`place` in [contract.c.ref] has `json:/ref`, but the body holds `form:k`: it is either JSON or a form"
    );
    assert_eq!(
        key("header:K", ", also = { \"path:x\" = true }"),
        "`also` in [contract.c.key] has `path:x`, which belongs in the operation's `path` itself"
    );
    assert!(
        key("header:K", ", also = { \"json:/x\" = [1] }").contains("has `json:/x`, which must hold strings, booleans")
    );
    assert!(key("gql-var:a..b", "").contains("which must be names like `gql-var:input.id`"));
    let reference = |place: &str| contract("", &format!("ref = {{ place = \"{place}\" }}"));
    assert_eq!(
        only(reference("path:id")),
        "operation \"o\": the contract puts our reference into the path; write `{id}` into `path`"
    );
    assert_eq!(
        only(contract("", "ref = { place = \"json:/r\", max_bytes = 35 }")),
        "`max_bytes` in [contract.c.ref] is 35, but a reference is 36 bytes long"
    );
}

#[test]
fn b76_places_of_the_contract_do_not_meet_the_operations_own() {
    let request = "request = { method = \"POST\", path = \"/x\", headers = { x-ref = \"1\" }, query = { q = \"1\" } }";
    let with = |place: &str, destination: &str| {
        let text = file(destination, "", &format!("[contract.c]\nreconcile = []\nref = {{ place = \"{place}\" }}"));
        let text = text.replace("http.post", "c").replace("request = { method = \"POST\", path = \"/x\" }", request);
        only(refused(&text))
    };
    assert_eq!(
        with("header:X-Ref", ""),
        "operation \"o\": `headers` must not set `x-ref`: the contract puts our reference there"
    );
    assert_eq!(with("query:q", ""), "operation \"o\": `query` must not set `q`: the contract puts our reference there");
    assert_eq!(
        with("header:X-Key", "auth = { header = { name = \"X-Key\", value = { env = \"TOKEN\" } } }"),
        "operation \"o\": header `x-key` is set twice: the destination's `auth` has it too"
    );
    assert_eq!(
        with("header:Authorization", "auth = { bearer = { env = \"TOKEN\" } }"),
        "operation \"o\": header `authorization` is set twice: the destination's `auth` has it too"
    );
}

#[test]
fn waits_are_places_with_a_format() {
    let pace = |written: &str| contract("", &format!("pace = {{ retry_after = {written} }}"));
    assert_eq!(pace("\"header:Retry-After;rfc9110\""), [""; 0]);
    assert!(only(pace("[\"header:Retry-After\"]")).contains(
        "`retry_after` in [contract.c.pace] must be a place and one of rfc9110, seconds, seconds-float, epoch"
    ));
    assert!(only(pace("[\"cookie:x;seconds\"]")).contains("must be `header:Name` or `json:/pointer`"));
}

#[test]
fn what_nobody_has_verified_is_accepted_only_knowingly() {
    let rests = |operation_: &str, rest: &str| {
        operation(operation_, "\"cancel\"", &format!("{KEY}{CANCEL}absence = \"after:60s\"\n{rest}"))
    };
    assert_eq!(rests("", ""), [""; 0]);
    assert_eq!(
        rests("", "absence_trust = \"memory\""),
        [
            "outboxd.toml:9: operation \"o\": contract \"c\" rests on what nobody has verified: cancel.absence; read it up, or \
          accept it with `allow_unverified = true`"
        ]
    );
    assert_eq!(rests("allow_unverified = true", "absence_trust = \"memory\""), [""; 0]);
    assert_eq!(rests("", "repeat = [\"1m\"]\nrepeat_trust = \"memory\""), [""; 0], "decides nothing");
    let rule = "[[contract.c.rule]]\nwhen = { status = 500 }\nclass = \"rejected\"\nclass_trust = \"memory\"";
    assert!(only(rests("", rule)).contains("nobody has verified: rule.1.class;"));
    let sources = "[[contract.c.sources]]\nurl = \"hearsay\"\ntrust = \"memory\"";
    assert!(only(rests("", sources)).contains("nobody has verified: everything in it;"));
}

#[test]
fn a_mark_of_trust_speaks_of_the_value_beside_it() {
    let base = "[contract.base]\nreconcile = [\"resend\"]\n[contract.base.key]\nmode = \"dedupe\"\nplace = \"header:K\"\n\
                window = \"1h\"\nwindow_trust = \"memory\"\n[contract.c]\nextends = \"base\"\n";
    let with = |key: &str| refused(&file("", "", &format!("{base}{key}")).replace("http.post", "c"));
    assert!(only(with("")).contains("nobody has verified: key.window;"));
    assert_eq!(with("key = { window = \"2h\" }"), [""; 0], "its own value replaces the unverified one");
    assert_eq!(with("key = { window_trust = \"official\" }"), [""; 0], "it has been read up");
}
