//! How sure the facts of a contract are. `FIELD_trust` beside a field says where that one value was read, where that
//! differs from the contract's sources.

use super::problem::Reported;
use super::question;
use super::table::Table;
use crate::core::contract::{By, Contract};

/// How sure a fact is; the surest first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Trust {
    /// Read on a page of whoever promises it.
    Official,
    /// Read in their own specification, SDK or source code.
    Source,
    /// Quoted by somebody else, or reported from what was observed.
    Relayed,
    /// Unverified: nothing may rest on it unless the operation's owner says so.
    Memory,
}

impl Trust {
    /// Every one, with its name in `trust = "…"`.
    pub const ALL: [(Self, &'static str); 4] =
        [(Self::Official, "official"), (Self::Source, "source"), (Self::Relayed, "relayed"), (Self::Memory, "memory")];

    /// The name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Official => "official",
            Self::Source => "source",
            Self::Relayed => "relayed",
            Self::Memory => "memory",
        }
    }

    /// The trust of that name.
    pub(super) fn of(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|(_, known)| *known == name).map(|(trust, _)| trust)
    }
}

/// How sure one value of a contract is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mark {
    /// The table within the contract: empty for the contract itself, `key`, `lookup`, `rule.2` (from 1), …
    pub table: String,
    /// The key.
    pub field: String,
    /// How sure its value is.
    pub trust: Trust,
}

/// What decides in every contract whether something is sent again, believed or given up. All else is timing, length or
/// for people, but for what only some contracts rest on.
const DECIDING: [(&str, &[&str]); 5] = [
    ("", &["reconcile", "key", "lookup", "cancel", "compare", "rule"]),
    ("key", &["mode", "place", "form", "also", "window", "margin", "replayed", "honoured"]),
    ("lookup", &["by", "request", "found", "absent", "compare", "absence"]),
    ("cancel", &["request", "done", "absence"]),
    ("rule", &["when", "class", "then"]),
];

impl Mark {
    /// Where it stands, as in `key.window`.
    pub fn path(&self) -> String {
        if self.table.is_empty() { self.field.clone() } else { format!("{}.{}", self.table, self.field) }
    }

    /// Whether an outcome under the contract is decided by it.
    pub(super) fn decides(&self, contract: &Contract) -> bool {
        let table = if self.table.starts_with("rule.") { "rule" } else { &self.table };
        match (table, self.field.as_str()) {
            ("ref", "place") | ("", "ref") => looks_up_by_reference(contract),
            // Where no memory of the key ends before it, it alone ends the repeats.
            ("key", "resend_within") => contract.key.as_ref().is_some_and(|key| !key.mode.needs_window()),
            (table, field) => DECIDING.iter().any(|(known, fields)| *known == table && fields.contains(&field)),
        }
    }
}

/// Whether what a lookup says rests on where our reference was planted.
fn looks_up_by_reference(contract: &Contract) -> bool {
    contract.lookup.as_ref().zip(contract.reference.as_ref()).is_some_and(|(lookup, reference)| {
        let compares = lookup.compare.iter().any(|compare| compare.sent == reference.place);
        lookup.by == By::Reference || question::asks_by(&lookup.question).1 || compares
    })
}

/// Every mark of a contract, in the order of its tables.
pub(super) fn marks(contract: &Table<'_>) -> Result<Vec<Mark>, Reported> {
    let mut marks = of(contract, "");
    for key in ["key", "ref", "receipt", "pace", "sign", "lookup", "cancel", "hint"] {
        if let Some(table) = contract.sub(key)? {
            marks.extend(of(&table, key));
        }
    }
    for (at, rule) in contract.list("rule")?.iter().enumerate() {
        marks.extend(of(rule, &format!("rule.{}", at + 1)));
    }
    Ok(marks)
}

fn of(table: &Table<'_>, name: &str) -> Vec<Mark> {
    let mark = |(field, trust)| Mark { table: name.to_owned(), field, trust };
    table.trust_marks().into_iter().map(mark).collect()
}
