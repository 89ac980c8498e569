//! The keys of a contract's key: how a repeat is recognised.

use super::*;

const KEY: &str = "contract.NAME.key";

pub(super) const KEYS: &[KeyDoc] = &[
    key(
        KEY,
        "mode",
        Kind::Choice(&["dedupe", "conflict", "natural", "receiver", "none"]),
        Need::Required,
        "a repeat gives the first result, is refused recognisably, is the same request, is sorted out by the receiver, \
         or is not recognised",
    ),
    key(
        KEY,
        "place",
        Kind::Text,
        Need::Optional("required but for modes `natural` (the path's `{key}`, if it has one) and `none`"),
        "`header:Name`, `json:/pointer`, `form:name`, `query:name`, `path:name`, or `gql-var:name.name` for a GraphQL variable",
    ),
    key(
        KEY,
        "form",
        Kind::Choice(&["uuid", "uuid4", "hex", "base36"]),
        Need::Default(Fallback::Text("uuid")),
        "how it is rendered from the action id",
    ),
    key(
        KEY,
        "encode",
        Kind::Choice(&["raw", "sf-string"]),
        Need::Default(Fallback::Text("raw")),
        "as it is, or in double quotes (RFC 9651)",
    ),
    key(
        KEY,
        "window",
        Kind::Window,
        Need::Optional("not published: never resent on account of the key"),
        "how long it is remembered at least, from the first send",
    ),
    key(
        KEY,
        "margin",
        zero_to(CENTURY),
        Need::Optional("a tenth of `window`, at most 1h"),
        "taken off the window for clocks, queues and the request's own life",
    ),
    key(KEY, "min_gap", zero_to(CENTURY), secs(0), "the earliest resend after the last send"),
    key(
        KEY,
        "max_bytes",
        Kind::Integer { min: 1, max: 65_536 },
        Need::Optional("not limited"),
        "the longest key it takes, in bytes",
    ),
    key(KEY, "charset", Kind::Text, Need::Optional("any"), "a regular expression that the whole key must match"),
    key(
        KEY,
        "other_body",
        Kind::Choice(&["error", "replay", "execute", "unknown"]),
        Need::Documentation,
        "what it does with the key under another body",
    ),
    key(KEY, "replays", Kind::Text, Need::Documentation, "which first results a repeat gives"),
    key(KEY, "overwrites", Kind::Bool, Need::Documentation, "whether a late repeat could undo a newer edit"),
    key(
        KEY,
        "pins",
        Kind::Choices(&["url", "credential-account", "stream"]),
        Need::Documentation,
        "what must be unchanged since the first send; outboxd holds URL, templates and the destination's `account` to it",
    ),
    key(
        KEY,
        "also",
        Kind::Map,
        Need::Optional("none"),
        "place and string, boolean or integer: fields that switch the destination's memory on",
    ),
    key(
        KEY,
        "replayed",
        Kind::Table("contract.NAME.rule.when"),
        Need::Optional("a replay is not recognised"),
        "the answers that are the first one, given again",
    ),
    key(
        KEY,
        "honoured",
        Kind::Table("contract.NAME.rule.when"),
        Need::Optional("the key is always taken"),
        "the answers that prove that the destination took the key; after any other nothing is resent",
    ),
    key(
        KEY,
        "resend_within",
        up_to(CENTURY),
        Need::Optional("1h"),
        "how late a repeat that no memory of the key guards may still leave; the operation's own goes before it",
    ),
];
