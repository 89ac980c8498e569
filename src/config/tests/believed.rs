//! Contracts that would be believed or acted on where nothing speaks for it.

use super::checks::{CANCEL, KEY, LOOKUP, REF, contract, only};
use super::*;

#[test]
fn r19_an_absence_is_believed_only_of_what_names_the_action() {
    let asks = |request: &str, absence: &str| {
        let lookup = LOOKUP.replace("{ method = \"GET\", path = \"/x/{key}\" }", request);
        contract("\"lookup\"", &format!("{KEY}{REF}{lookup}absence = \"{absence}\""))
    };
    let nothing = "`request` in [contract.c.lookup] names nothing of the action, yet its \"not there\" is believed; put \
                   `{key}` or `{ref}` into its path, query or body (a header may go unread), or write `absence = \
                   \"never\"`";
    for request in [
        "{ method = \"GET\", path = \"/x/{channel}\" }",
        "{ method = \"GET\", path = \"/x\", headers = { x-key = \"{key}\" } }",
        "{ method = \"POST\", path = \"/x\", body = { id = \"{channel}\" } }",
    ] {
        assert_eq!(only(asks(request, "after:60s")), nothing, "{request}");
        assert_eq!(asks(request, "never"), [""; 0], "{request}");
    }
    for request in [
        "{ method = \"GET\", path = \"/x/{ref}\" }",
        "{ method = \"GET\", path = \"/x\", query = { q = \"ref:{ref}\" } }",
        "{ method = \"POST\", path = \"/x\", body = { id = [\"k-{key}\"] } }",
    ] {
        assert_eq!(asks(request, "after:60s"), [""; 0], "{request}");
    }
}

#[test]
fn r19_what_is_asked_by_the_key_needs_a_key_that_was_sent() {
    let natural = "key = { mode = \"natural\" }\n";
    let with = |path: &str, reconcile: &str, rest: &str| {
        let text = file("", "", &format!("[contract.c]\nreconcile = [{reconcile}]\n{natural}{rest}"));
        refused(&text.replace("http.post", "c").replace("path = \"/x\"", &format!("path = \"{path}\"")))
    };
    let settled = format!("{LOOKUP}absence = \"after:60s\"\n");
    assert_eq!(
        with("/x/{name}", "\"lookup\"", &settled),
        [
            "outboxd.toml:8: operation \"o\": the contract's lookup goes by `{key}` and its word is proof, but the operation's \
             requests carry no key; write `{key}` into `path`"
        ]
    );
    assert!(only(with("/x", "\"cancel\"", CANCEL)).contains("the contract's cancel goes by `{key}`"));
    assert_eq!(with("/x/{key}", "\"lookup\", \"cancel\"", &format!("{settled}{CANCEL}")), [""; 0]);
    assert_eq!(with("/x", "\"lookup\"", LOOKUP), [""; 0], "finding nothing proves nothing");
    assert_eq!(with("/x", "\"resend\"", &settled), [""; 0], "nobody asks");
}

#[test]
fn r18_what_a_rule_forbids_does_not_come_back_behind_its_lookup() {
    let settled = format!("{KEY}{LOOKUP}absence = \"after:60s\"\n{CANCEL}");
    let rule = |then: &str| {
        format!("{settled}[[contract.c.rule]]\nwhen = {{ status = 500 }}\nclass = \"unknown\"\nthen = {then}")
    };
    assert_eq!(
        contract("\"lookup\", \"resend\"", &rule("[\"lookup\"]")),
        [
            "outboxd.toml:29: `then` in [contract.c.rule] has \"lookup\" without \"resend\", and `reconcile` has \"resend\" behind \
             \"lookup\": once asking has settled nothing it goes on there and sends again what this rule forbids; in \
             `reconcile` put \"resend\" before \"lookup\" or take it out, or allow it here"
        ]
    );
    assert!(
        only(contract("\"cancel\", \"resend\"", &rule("[\"cancel\"]"))).contains("has \"cancel\" without \"resend\"")
    );
    for (reconcile, then) in [
        ("\"resend\", \"lookup\"", "[\"lookup\"]"),
        ("\"lookup\", \"cancel\"", "[\"lookup\"]"),
        ("\"lookup\", \"resend\"", "[\"lookup\", \"resend\"]"),
        ("\"lookup\", \"resend\"", "[\"review\"]"),
    ] {
        assert_eq!(contract(reconcile, &rule(then)), [""; 0], "{reconcile}, {then}");
    }
}

#[test]
fn what_only_some_contracts_rest_on_decides_there() {
    let key = |key: &str, effect: &str| {
        let text = file("", "", &format!("[contract.c]\nreconcile = [\"resend\"]\n[contract.c.key]\n{key}"));
        refused(&text.replace("http.post", "c").replace("compensatable", effect))
    };
    let dedupe = "mode = \"dedupe\"\nplace = \"header:K\"\nwindow = \"1h\"\n";
    let margin = "margin = \"1m\"\nmargin_trust = \"memory\"";
    assert!(only(key(&format!("{dedupe}{margin}"), "keyed")).contains("nobody has verified: key.margin;"));
    let within = "resend_within = \"20m\"\nresend_within_trust = \"memory\"";
    assert!(
        only(key(&format!("mode = \"natural\"\n{within}"), "keyed"))
            .contains("nobody has verified: key.resend_within;")
    );
    assert_eq!(key(&format!("{dedupe}{within}"), "keyed"), [""; 0], "the window ends the repeats");
    let reference = "[contract.c.ref]\nplace = \"json:/ref\"\nplace_trust = \"memory\"\n";
    let by_ref = LOOKUP.replace("\"key\"", "\"ref\"").replace("{key}", "{ref}");
    assert!(only(contract("\"lookup\"", &format!("{reference}{by_ref}"))).contains("nobody has verified: ref.place;"));
    assert_eq!(contract("\"lookup\"", &format!("{KEY}{reference}{LOOKUP}")), [""; 0], "for people only");
}
