//! Every key there is: what the parser knows, and what README's table is made of. Ranges and defaults stand here and
//! nowhere else.

mod contract;
mod contract_answers;
mod contract_key;
mod daemon;
mod operation;

use std::collections::HashMap;
use std::fmt;
use std::sync::LazyLock;
use std::time::Duration;

use super::duration;

/// One key.
#[derive(Clone, Copy, Debug)]
pub struct KeyDoc {
    /// The table it stands in, as in `operation.NAME.backoff`; empty for the top level.
    pub table: &'static str,
    /// Its name.
    pub key: &'static str,
    /// Type and range.
    pub kind: Kind,
    /// Whether it must be given, and what holds where it is not.
    pub need: Need,
    /// One sentence for a person.
    pub meaning: &'static str,
}

/// Type and range of a value. Ranges are inclusive.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// A string that is not empty.
    Text,
    /// `true` or `false`.
    Bool,
    /// An integer.
    Integer {
        /// The least.
        min: u64,
        /// The most.
        max: u64,
    },
    /// A number.
    Number {
        /// The least.
        min: f64,
        /// The most.
        max: f64,
    },
    /// A string with a unit, like `"30s"`.
    Duration {
        /// The shortest.
        min: Duration,
        /// The longest.
        max: Duration,
    },
    /// A duration or `"forever"`.
    Window,
    /// One of these strings.
    Choice(&'static [&'static str]),
    /// A string or a list of strings.
    Texts,
    /// A list of strings with a unit.
    Durations,
    /// A list of these strings.
    Choices(&'static [&'static str]),
    /// `{ env = "NAME" }` or `{ file = "path" }`.
    Secret,
    /// The same, or the value itself as a string.
    TextOrSecret,
    /// A status, a class like `"4xx"`, or a list of them.
    Status,
    /// A table from names to values.
    Map,
    /// A table with the keys of that table.
    Table(&'static str),
    /// Tables with the keys of that table, by name.
    Named(&'static str),
    /// A list of tables with the keys of that table.
    Tables(&'static str),
    /// Anything; it is not looked at.
    Any,
}

/// Whether a key must be given.
#[derive(Clone, Copy, Debug)]
pub enum Need {
    /// It must.
    Required,
    /// It need not; this holds instead.
    Default(Fallback),
    /// It need not; in words, what holds instead.
    Optional(&'static str),
    /// It is for readers of the file, nothing follows from it.
    Documentation,
    /// Known, and refused by this version.
    Later,
}

/// A default.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs, reason = "the type is the meaning")]
pub enum Fallback {
    Bool(bool),
    Integer(u64),
    Number(f64),
    Duration(Duration),
    Text(&'static str),
}

impl KeyDoc {
    /// What holds where the key is not given, as one would write it.
    pub fn default_text(&self) -> String {
        match self.need {
            Need::Required => "required".to_owned(),
            Need::Default(fallback) => fallback.to_string(),
            Need::Optional(words) => words.to_owned(),
            Need::Documentation => "for people".to_owned(),
            Need::Later => super::later::NOT_YET.to_owned(),
        }
    }
}

impl fmt::Display for Fallback {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bool(value) => write!(f, "{value}"),
            Self::Integer(value) => write!(f, "{value}"),
            Self::Number(value) => write!(f, "{value:?}"),
            Self::Duration(value) => write!(f, "{:?}", duration::show(*value)),
            Self::Text(value) => write!(f, "{value:?}"),
        }
    }
}

impl Kind {
    /// The type in a word or two.
    pub fn type_text(&self) -> &'static str {
        match self {
            Self::Text => "string",
            Self::Bool => "boolean",
            Self::Integer { .. } => "integer",
            Self::Number { .. } => "number",
            Self::Duration { .. } => "duration",
            Self::Window => "duration or \"forever\"",
            Self::Choice(_) => "string",
            Self::Choices(_) => "list of strings",
            Self::Texts => "string or list",
            Self::Durations => "list of durations",
            Self::Secret => "secret",
            Self::TextOrSecret => "string or secret",
            Self::Status => "status",
            Self::Map | Self::Table(_) => "table",
            Self::Named(_) => "tables by name",
            Self::Tables("secret") => "list of secrets",
            Self::Tables(_) => "list of tables",
            Self::Any => "any",
        }
    }

    /// What is allowed; empty where the type says it all.
    pub fn range_text(&self) -> String {
        match self {
            Self::Integer { min, max } => format!("{min} to {max}"),
            Self::Number { min, max } => format!("{min:?} to {max:?}"),
            Self::Duration { min, max } => format!("{} to {}", duration::show(*min), duration::show(*max)),
            Self::Choice(names) | Self::Choices(names) => names.join(", "),
            Self::Secret => "{ env = \"NAME\" } or { file = \"path\" }".to_owned(),
            Self::Status => "409, \"409\", \"4xx\" or a list".to_owned(),
            Self::Text | Self::Texts | Self::Durations | Self::Bool | Self::Window => String::new(),
            Self::TextOrSecret | Self::Any => String::new(),
            Self::Map | Self::Table(_) | Self::Named(_) | Self::Tables(_) => String::new(),
        }
    }
}

/// Every key, table by table, in the order in which a reader meets them.
pub fn reference() -> &'static [KeyDoc] {
    static ALL: LazyLock<Vec<KeyDoc>> = LazyLock::new(|| {
        [daemon::KEYS, operation::KEYS, contract::KEYS, contract_key::KEYS, contract_answers::KEYS].concat()
    });
    &ALL
}

/// The keys of one table.
pub(super) fn keys_of(table: &str) -> impl Iterator<Item = &'static KeyDoc> {
    reference().iter().filter(move |doc| doc.table == table)
}

/// One key of one table.
pub(super) fn find(table: &str, key: &str) -> Option<&'static KeyDoc> {
    static BY_NAME: LazyLock<HashMap<(&str, &str), &KeyDoc>> =
        LazyLock::new(|| reference().iter().map(|doc| ((doc.table, doc.key), doc)).collect());
    BY_NAME.get(&(table, key)).copied()
}

/// The tables of a file that know a key, but for `table` itself.
pub(super) fn tables_with(key: &str, table: &str) -> Vec<&'static str> {
    let known = reference().iter().filter(|doc| doc.key == key && doc.table != table && !doc.table.is_empty());
    known.filter(|doc| !matches!(doc.need, Need::Later) && doc.table != "secret").map(|doc| doc.table).collect()
}

const fn key(table: &'static str, key: &'static str, kind: Kind, need: Need, meaning: &'static str) -> KeyDoc {
    KeyDoc { table, key, kind, need, meaning }
}

const fn later(table: &'static str, name: &'static str) -> KeyDoc {
    key(table, name, Kind::Any, Need::Later, "known, for a later version")
}

const fn whole(value: u64) -> Need {
    Need::Default(Fallback::Integer(value))
}

const fn millis(value: u64) -> Need {
    Need::Default(Fallback::Duration(Duration::from_millis(value)))
}

const fn secs(value: u64) -> Need {
    Need::Default(Fallback::Duration(Duration::from_secs(value)))
}

const SECOND: u64 = 1;
const MINUTE: u64 = 60 * SECOND;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;

/// From a millisecond to that many seconds.
const fn up_to(seconds: u64) -> Kind {
    Kind::Duration { min: Duration::from_millis(1), max: Duration::from_secs(seconds) }
}

/// From nothing to that many seconds.
const fn zero_to(seconds: u64) -> Kind {
    Kind::Duration { min: Duration::ZERO, max: Duration::from_secs(seconds) }
}

const CENTURY: u64 = 36_500 * DAY;

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn b75_no_key_is_listed_twice_and_every_table_is_reached() {
        let mut seen = HashSet::new();
        for doc in reference() {
            assert!(seen.insert((doc.table, doc.key)), "[{}] {}", doc.table, doc.key);
            assert!(!doc.meaning.is_empty() && !doc.default_text().is_empty());
        }
        let reached: HashSet<_> = reference()
            .iter()
            .filter_map(|doc| match doc.kind {
                Kind::Table(table) | Kind::Named(table) | Kind::Tables(table) => Some(table),
                Kind::Text | Kind::Bool | Kind::Integer { .. } | Kind::Number { .. } | Kind::Duration { .. } => None,
                Kind::Window | Kind::Choice(_) | Kind::Choices(_) | Kind::Secret | Kind::TextOrSecret => None,
                Kind::Status | Kind::Map | Kind::Texts | Kind::Durations | Kind::Any => None,
            })
            .chain(["", "secret"])
            .collect();
        for doc in reference() {
            assert!(reached.contains(doc.table), "[{}]", doc.table);
        }
    }

    #[test]
    fn b76_every_default_is_in_its_own_range() {
        for doc in reference() {
            match (doc.kind, doc.need) {
                (Kind::Integer { min, max }, Need::Default(Fallback::Integer(n))) => assert!(min <= n && n <= max),
                (Kind::Number { min, max }, Need::Default(Fallback::Number(n))) => assert!(min <= n && n <= max),
                (Kind::Duration { min, max }, Need::Default(Fallback::Duration(d))) => assert!(min <= d && d <= max),
                (Kind::Choice(names), Need::Default(Fallback::Text(name))) => assert!(names.contains(&name)),
                (Kind::Bool, Need::Default(Fallback::Bool(_))) | (Kind::Text, Need::Default(Fallback::Text(_))) => {}
                (_, Need::Default(_)) => panic!("[{}] {}: a default of another type", doc.table, doc.key),
                (_, Need::Required | Need::Optional(_) | Need::Documentation | Need::Later) => {}
            }
        }
    }
}
