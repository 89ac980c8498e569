//! Names that nobody knows, or that stand in the wrong place (B75).

use super::*;

#[test]
fn b75_misspelled_and_misplaced_keys_are_named_all_at_once() {
    let text = file(
        "timeout = \"3s\"",
        "max_atempts = 3\ncost = { atempt = 1, attempt = 1 }",
        "[dispacher]\n[log]\npoll_intervall = \"1s\"",
    );
    assert_eq!(
        parse(&text).expect_err("refused").to_string(),
        "outboxd.toml:5: unknown key `timeout` in [destination.d]; `timeout` belongs in [operation.…]\n\
         outboxd.toml:13: unknown key `max_atempts` in [operation.o]; did you mean `attempts_max`?\n\
         outboxd.toml:14: unknown key `atempt` in [operation.o.cost]; did you mean `attempt`?\n\
         outboxd.toml:15: unknown table [dispacher]; did you mean [dispatcher]?\n\
         outboxd.toml:17: unknown key `poll_intervall` in [log]\n\
         configuration refused: 5 problems"
    );
    let text = format!("{DATABASE}[dispatcher]\npoll_intervall = \"1s\"\n");
    assert_eq!(
        parse(&text).expect_err("refused").to_string(),
        "outboxd.toml:4: unknown key `poll_intervall` in [dispatcher]; did you mean `poll_interval`?\n\
         configuration refused: 1 problem"
    );
}

#[test]
fn b75_a_second_destination_of_the_same_name_is_refused_beside_other_problems() {
    let text = file("", "colour = 1", "[destination.d]\nbase_url = \"http://e\"");
    assert_eq!(
        refused(&text),
        [
            "outboxd.toml:13: unknown key `colour` in [operation.o]",
            "outboxd.toml:14: `d` stands here a second time; write it once",
            "outboxd.toml:15: `base_url` stands here a second time; write it once",
        ]
    );
}

#[test]
fn b75_broken_syntax_is_named_with_its_line_and_nothing_else() {
    assert_eq!(
        refused("[database]\nurl = \"postgres://u:hunter2@h/d\nnonsense = 1\n"),
        ["outboxd.toml:2: not valid TOML: invalid basic string, expected `\"`"]
    );
    for (broken, line) in
        [("a = 1\n[database\nb = 2\n", 2), ("a = 1\nb 2\n", 2), ("a = yes\n", 1), ("a = [1,\nb = 2\n", 2)]
    {
        let complaints = refused(broken);
        assert!(complaints.iter().all(|complaint| complaint.contains(": not valid TOML: ")), "{complaints:?}");
        assert!(complaints[0].starts_with(&format!("outboxd.toml:{line}: ")), "{complaints:?}");
    }
    assert_eq!(refused(""), ["outboxd.toml: [database] is missing: where the ledger is"]);
}

#[test]
fn b75_unknown_names_are_refused_with_the_nearest() {
    let text = file("", "", "")
        .replace("= \"d\"", "= \"dd\"")
        .replace("http.post", "http.pots")
        .replace("compensatable", "compensable");
    assert_eq!(
        refused(&text),
        [
            "outboxd.toml:7: `destination` in [operation.o] names \"dd\", which does not exist; did you mean `d`?",
            "outboxd.toml:9: `contract` in [operation.o] names \"http.pots\", which does not exist; did you mean `http.post`?",
            "outboxd.toml:10: `effect` in [operation.o] must be one of \"read_only\", \"idempotent\", \"keyed\", \
             \"compensatable\", \"unreconcilable\", found \"compensable\"; did you mean \"compensatable\"?",
        ]
    );
}

#[test]
fn b75_what_a_later_version_knows_is_not_called_unknown() {
    let rest = "[contract.c]\nreconcile = []\n[contract.c.key]\n\
                mode = \"dedupe\"\nplace = \"prop:Nats-Msg-Id\"\n[[contract.c.rule]]\n\
                when = { error = \"no-responders\" }\nclass = \"unknown\"";
    let text = file("", "", rest);
    assert_eq!(
        refused(&text),
        [
            "outboxd.toml:18: `place` in [contract.c.key] `prop:` is not supported by this version; it can be \
             `header:Name`, `json:/pointer`, `form:name`, `query:name`, `path:name` or `gql-var:name.name`",
            "outboxd.toml:20: `error` in [contract.c.rule.when] is not supported by this version",
        ]
    );
}
