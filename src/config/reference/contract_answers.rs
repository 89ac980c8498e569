//! The keys of a contract that speak of answers: rules, and requests about an action.

use super::*;

const RULE: &str = "contract.NAME.rule";
const WHEN: &str = "contract.NAME.rule.when";
const LOOKUP: &str = "contract.NAME.lookup";
const CANCEL: &str = "contract.NAME.cancel";
const REQUEST: &str = "contract.NAME.lookup.request";

const EVERY_SO_OFTEN: Need = Need::Optional("`[\"30s\", \"5m\", \"1h\"]`");

pub(super) const KEYS: &[KeyDoc] = &[
    key(RULE, "when", Kind::Table(WHEN), Need::Required, "the answers it speaks of; all that is given must match"),
    key(
        RULE,
        "class",
        Kind::Choice(&[
            "applied",
            "duplicate",
            "not_applied",
            "rejected",
            "blocked",
            "in_flight",
            "key_conflict",
            "unknown",
        ]),
        Need::Required,
        "what they mean, in this order: it took effect; it had before, and the repeat was recognised; not done, try later; \
         refused for good; our credentials are refused; the first request is still being worked on; the key is known with \
         other content; it may or may not have taken effect",
    ),
    key(
        RULE,
        "then",
        Kind::Choices(&["resend", "lookup", "cancel", "review"]),
        Need::Optional("the contract's `reconcile`"),
        "what to try, in order, after such an answer",
    ),
    key(RULE, "wait", zero_to(CENTURY), Need::Optional("the operation's backoff"), "the earliest next step"),
    key(RULE, "note", Kind::Text, Need::Documentation, "for people"),
    key(WHEN, "status", Kind::Status, Need::Optional("any"), "any of these"),
    key(WHEN, "header", Kind::Map, Need::Optional("any"), "header name and value; `*` is any run of characters"),
    key(
        WHEN,
        "json",
        Kind::Map,
        Need::Optional("any"),
        "JSON pointer and value; `\"*\"` is anything but null, `\"[]\"` an empty list",
    ),
    later(WHEN, "error"),
    key(
        LOOKUP,
        "by",
        Kind::Choice(&["key", "ref"]),
        Need::Required,
        "whether it asks by the idempotency key or by our reference",
    ),
    key(
        LOOKUP,
        "request",
        Kind::Table(REQUEST),
        Need::Required,
        "what is asked; `{key}`, `{ref}` and the action's params are filled in",
    ),
    key(LOOKUP, "found", Kind::Table(WHEN), Need::Required, "answers that say: it is there"),
    key(LOOKUP, "absent", Kind::Table(WHEN), Need::Optional("no answer says so"), "answers that say: it is not there"),
    key(
        LOOKUP,
        "receipt",
        Kind::Text,
        Need::Optional("none"),
        "`header:Name` or `json:/pointer`: the destination's reference for the effect",
    ),
    key(
        LOOKUP,
        "compare",
        Kind::Map,
        Need::Optional("not compared"),
        "what was found must be what was sent, as the contract's `compare`",
    ),
    key(LOOKUP, "first_after", zero_to(CENTURY), secs(5), "from the last send to the first question"),
    key(LOOKUP, "repeat", Kind::Durations, EVERY_SO_OFTEN, "between one question and the next; the last one repeats"),
    key(
        LOOKUP,
        "absence",
        Kind::Text,
        Need::Default(Fallback::Text("never")),
        "what \"not there\" proves: `never`, or `after:60s` if asked that long after the last send ended",
    ),
    key(CANCEL, "request", Kind::Table(REQUEST), Need::Required, "what is asked; it holds `{key}`"),
    key(CANCEL, "done", Kind::Table(WHEN), Need::Required, "answers that say: it has no effect, and will have none"),
    key(CANCEL, "first_after", zero_to(CENTURY), secs(5), "from the last send to the first cancel"),
    key(CANCEL, "repeat", Kind::Durations, EVERY_SO_OFTEN, "between one cancel and the next; the last one repeats"),
    key(
        CANCEL,
        "absence",
        Kind::Text,
        Need::Default(Fallback::Text("never")),
        "when such an answer is final: `never`, or `after:60s` if asked that long after the last send ended",
    ),
    key(
        "contract.NAME.hint",
        "request",
        Kind::Table(REQUEST),
        Need::Required,
        "what is asked; besides the lookup's placeholders `{body.NAME}`, `{sent.date}` and `{account}` are filled in",
    ),
    key(REQUEST, "method", Kind::Text, Need::Required, "an HTTP method, in upper case"),
    key(REQUEST, "path", Kind::Text, Need::Required, "begins with `/`; appended to the destination's `base_url`"),
    key(REQUEST, "query", Kind::Map, Need::Optional("none"), "query parameters, in this order"),
    key(REQUEST, "headers", Kind::Map, Need::Optional("none"), "request headers"),
    key(
        REQUEST,
        "body",
        Kind::Map,
        Need::Optional("no body"),
        "sent as a JSON object; a string in it may hold `{key}` and `{ref}`, or be one placeholder, and other braces \
         are text",
    ),
];
