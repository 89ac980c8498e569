//! A walker over the parsed TOML that knows where everything stands. Whoever opens a table has thereby refused the keys
//! that nobody reads (B75).

#![allow(clippy::wildcard_enum_match_arm, reason = "TOML's values are not our enum: what is not expected is refused")]

use toml::de::{DeTable, DeValue};

use super::later::NOT_YET;
use super::nearest::did_you_mean;
use super::problem::{At, Origin, Problems, Reported};
use super::reference::{self, KeyDoc, Kind, Need};
use super::trust::Trust;

/// A table of the file, with the tables it extends beneath it.
#[derive(Clone)]
pub(super) struct Table<'a> {
    problems: &'a Problems,
    /// The table's name in the reference, as in `operation.NAME.backoff`.
    section: &'static str,
    /// Its name in the file, as in `operation."refund.create".backoff`; empty at the top.
    name: String,
    /// Where it begins.
    pub(super) at: At<'a>,
    /// The first that has a key gives its value.
    layers: Vec<Layer<'a>>,
}

/// One table and the text it stands in.
#[derive(Clone, Copy)]
pub(super) struct Layer<'a> {
    pub(super) table: &'a DeTable<'a>,
    pub(super) origin: &'a Origin,
}

/// A value and where its key stands.
#[derive(Clone, Copy)]
pub(super) struct Item<'a> {
    pub(super) value: &'a DeValue<'a>,
    pub(super) at: At<'a>,
}

/// What a value is, in words.
pub(super) fn type_of(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "a string",
        DeValue::Integer(_) => "an integer",
        DeValue::Float(_) => "a number",
        DeValue::Boolean(_) => "a boolean",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    }
}

impl<'a> Table<'a> {
    /// The top of a file.
    pub(super) fn top(problems: &'a Problems, layer: Layer<'a>) -> Self {
        Self::open(problems, "", String::new(), layer.origin.whole(), vec![layer])
    }

    fn open(problems: &'a Problems, section: &'static str, name: String, at: At<'a>, layers: Vec<Layer<'a>>) -> Self {
        let table = Self { problems, section, name, at, layers };
        table.refuse_unknown_keys();
        table
    }

    /// The same table with others beneath it.
    pub(super) fn over(mut self, base: &Table<'a>) -> Self {
        self.layers.extend(&base.layers);
        self
    }

    /// `[name]`, or what the top is called.
    pub(super) fn title(&self) -> String {
        if self.name.is_empty() { "the file".to_owned() } else { format!("[{}]", self.name) }
    }

    pub(super) fn section(&self) -> &'static str {
        self.section
    }

    /// Where a key stands, or else its table.
    pub(super) fn at(&self, key: &str) -> At<'a> {
        self.item(key).map_or(self.at, |item| item.at)
    }

    /// Reports a problem with a key; the complaint goes on from its name.
    pub(super) fn wrong(&self, key: &str, complaint: impl AsRef<str>) -> Reported {
        self.report(self.at(key), format!("`{key}` in {} {}", self.title(), complaint.as_ref()))
    }

    /// Reports a problem at a place.
    pub(super) fn report(&self, at: At<'_>, message: impl Into<String>) -> Reported {
        self.problems.report(at, message)
    }

    /// The value of a key, if it is given.
    pub(super) fn item(&self, key: &str) -> Option<Item<'a>> {
        self.items(key).next()
    }

    fn items<'s>(&'s self, key: &'s str) -> impl Iterator<Item = Item<'a>> + 's {
        self.layers.iter().filter_map(move |layer| {
            let (key, value) = layer.table.get_key_value(key)?;
            Some(Item { value: value.get_ref(), at: layer.origin.at(key.span().start) })
        })
    }

    /// The table under a key, if it is given.
    pub(super) fn sub(&self, key: &str) -> Result<Option<Table<'a>>, Reported> {
        let section = match reference::find(self.section, key).map(|doc| doc.kind) {
            Some(Kind::Table(section)) => section,
            _ => "secret",
        };
        let Some(first) = self.item(key) else { return Ok(None) };
        if !matches!(first.value, DeValue::Table(_)) {
            return Err(self.wrong(key, format!("must be a table, found {}", type_of(first.value))));
        }
        let tables = self.layers.iter().map_while(|layer| match layer.table.get(key).map(|value| value.get_ref()) {
            None => Some(None),
            Some(DeValue::Table(table)) => Some(Some(Layer { table, origin: layer.origin })),
            Some(_) => None,
        });
        Ok(Some(Self::open(self.problems, section, self.name_of(key), first.at, tables.flatten().collect())))
    }

    /// The table under a key; where it is not given an empty one, which has all the defaults.
    pub(super) fn sub_or_default(&self, key: &str) -> Result<Table<'a>, Reported> {
        match (self.sub(key)?, reference::find(self.section, key).map(|doc| doc.kind)) {
            (Some(table), _) => Ok(table),
            (None, Some(Kind::Table(section))) => {
                Ok(Self { section, name: self.name_of(key), layers: vec![], ..self.clone() })
            }
            (None, _) => Err(self.missing(key)),
        }
    }

    /// The tables under a key, by name, in file order.
    pub(super) fn named(&self, key: &str) -> Vec<(String, Table<'a>)> {
        let Some(Kind::Named(section)) = reference::find(self.section, key).map(|doc| doc.kind) else { return vec![] };
        let prefix = self.name_of(key);
        let Ok(entries) = self.entries(key) else { return vec![] };
        let opened = entries.into_iter().filter_map(|(name, item, origin)| {
            let title = format!("{prefix}.{}", quoted(&name));
            let DeValue::Table(table) = item.value else {
                self.report(item.at, format!("[{title}] must be a table, found {}", type_of(item.value)));
                return None;
            };
            if name.is_empty() || name.len() > 200 || name.chars().any(char::is_control) {
                self.report(item.at, format!("[{title}] needs a name of 1 to 200 bytes without control characters"));
            }
            Some((name, Self::open(self.problems, section, title, item.at, vec![Layer { table, origin }])))
        });
        opened.collect()
    }

    /// What stands in a table of free names, in file order. Empty where it is not given.
    pub(super) fn entries(&self, key: &str) -> Result<Vec<(String, Item<'a>, &'a Origin)>, Reported> {
        let holder = self.layers.iter().find_map(|layer| Some((layer.table.get(key)?.get_ref(), layer.origin)));
        let (table, origin) = match holder {
            None => return Ok(vec![]),
            Some((DeValue::Table(table), origin)) => (table, origin),
            Some((other, _)) => return Err(self.wrong(key, format!("must be a table, found {}", type_of(other)))),
        };
        let mut entries: Vec<_> = table.iter().collect();
        entries.sort_by_key(|(name, _)| name.span().start);
        let item = |(name, value): (&'a toml::Spanned<_>, &'a toml::Spanned<DeValue<'a>>)| {
            let name_text: &std::borrow::Cow<'a, str> = name.get_ref();
            (name_text.to_string(), Item { value: value.get_ref(), at: origin.at(name.span().start) }, origin)
        };
        Ok(entries.into_iter().map(item).collect())
    }

    /// The tables in a list. Empty where it is not given.
    pub(super) fn list(&self, key: &str) -> Result<Vec<Table<'a>>, Reported> {
        let Some(Kind::Tables(section)) = reference::find(self.section, key).map(|doc| doc.kind) else {
            return Ok(vec![]);
        };
        let holder = self.layers.iter().find_map(|layer| Some((layer.table.get(key)?.get_ref(), layer.origin)));
        let (array, origin) = match holder {
            None => return Ok(vec![]),
            Some((DeValue::Array(array), origin)) => (array, origin),
            Some((other, _)) => return Err(self.wrong(key, format!("must be a list, found {}", type_of(other)))),
        };
        let mut tables = Vec::new();
        let mut refused = None;
        for value in array.iter() {
            let at = origin.at(value.span().start);
            match value.get_ref() {
                DeValue::Table(table) => {
                    let layers = vec![Layer { table, origin }];
                    tables.push(Self::open(self.problems, section, self.name_of(key), at, layers));
                }
                other => {
                    let message = format!("`{key}` in {} must hold tables, found {}", self.title(), type_of(other));
                    refused = Some(self.report(at, message));
                }
            }
        }
        refused.map_or(Ok(tables), Err)
    }

    fn name_of(&self, key: &str) -> String {
        if self.name.is_empty() { quoted(key) } else { format!("{}.{}", self.name, quoted(key)) }
    }

    /// Only the table itself: those beneath it have been opened for themselves.
    fn refuse_unknown_keys(&self) {
        let Some(own) = self.layers.first() else { return };
        for (key, value) in own.table.iter() {
            let at = own.origin.at(key.span().start);
            let key: &str = key.get_ref();
            match reference::find(self.section, key).map(|doc| doc.need) {
                Some(Need::Later) => {
                    self.report(at, format!("`{key}` in {} {NOT_YET}", self.title()));
                }
                Some(_) => {}
                None if self.is_trust_mark(key) => self.refuse_other_trust(at, key, value.get_ref()),
                None => {
                    self.report(at, self.unknown(key, value.get_ref()));
                }
            }
        }
    }

    fn unknown(&self, key: &str, value: &DeValue<'_>) -> String {
        let known = reference::keys_of(self.section).filter(|doc| !matches!(doc.need, Need::Later));
        let known: Vec<&KeyDoc> = known.collect();
        let elsewhere = reference::tables_with(key, self.section);
        let hint = if elsewhere.is_empty() {
            did_you_mean(key, known.iter().map(|doc| doc.key))
        } else {
            let tables: Vec<_> = elsewhere.iter().map(|table| format!("[{}]", table.replace("NAME", "…"))).collect();
            format!("; `{key}` belongs in {}", tables.join(" or "))
        };
        let shown =
            if key.chars().any(|c| c.is_control() || c == '`') { key.escape_debug().to_string() } else { key.into() };
        match value {
            DeValue::Table(_) if self.name.is_empty() => {
                let near = super::nearest::nearest(key, known.iter().map(|doc| doc.key));
                let hint = near.map(|name| format!("; did you mean [{name}]?")).unwrap_or(hint);
                format!("unknown table [{}]{hint}", quoted(key))
            }
            _ => format!("unknown key `{shown}` in {}{hint}", self.title()),
        }
    }

    /// `FIELD_trust` beside a field of a contract says where its value was read.
    fn is_trust_mark(&self, key: &str) -> bool {
        self.section.starts_with("contract.")
            && key.strip_suffix("_trust").is_some_and(|field| reference::find(self.section, field).is_some())
    }

    fn refuse_other_trust(&self, at: At<'_>, key: &str, value: &DeValue<'_>) {
        if value.as_str().and_then(Trust::of).is_none() {
            let names = Trust::ALL.map(|(_, name)| format!("\"{name}\"")).join(", ");
            self.report(at, format!("`{key}` in {} must be one of {names}", self.title()));
        }
    }

    /// How sure single values are. Where a table extends another, a mark speaks of the value beside it and of those
    /// beneath it, not of one that stands over it.
    pub(super) fn trust_marks(&self) -> Vec<(String, Trust)> {
        let mut marks: Vec<(String, Trust)> = Vec::new();
        let fields = reference::keys_of(self.section);
        for field in fields.map(|doc| doc.key) {
            let mark = format!("{field}_trust");
            for layer in &self.layers {
                if let Some(trust) =
                    layer.table.get(mark.as_str()).and_then(|value| Trust::of(value.get_ref().as_str()?))
                {
                    marks.push((field.to_owned(), trust));
                    break;
                }
                if layer.table.contains_key(field) {
                    break;
                }
            }
        }
        marks
    }
}

/// A key as TOML needs it written.
pub(super) fn quoted(key: &str) -> String {
    let bare = !key.is_empty() && key.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte));
    if bare {
        return key.to_owned();
    }
    // JSON's escapes are TOML's; only DEL has none there.
    serde_json::Value::from(key).to_string().replace('\u{7f}', "\\u007f")
}
