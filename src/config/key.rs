//! `[contract.NAME.key]`: how a repeat is recognised.

#![allow(clippy::wildcard_enum_match_arm, reason = "TOML's values are not our enum: what is not expected is refused")]

use std::time::Duration;

use regex::Regex;
use toml::de::DeValue;
use uuid::Uuid;

use super::duration::show;
use super::http;
use super::later::NOT_YET;
use super::problem::Reported;
use super::read::read_duration;
use super::table::{Table, type_of};
use crate::core::action::ActionId;
use crate::core::contract::{Encode, Key, KeyForm, KeyMode, Place, Window};
use crate::core::request::Template;

/// The encodings, with their names.
pub(super) const ENCODINGS: [(Encode, &str); 2] = [(Encode::Raw, "raw"), (Encode::SfString, "sf-string")];

/// The modes, with their names; `None` = there is no key.
pub(super) const MODES: [(Option<KeyMode>, &str); 5] = [
    (Some(KeyMode::Dedupe), "dedupe"),
    (Some(KeyMode::Conflict), "conflict"),
    (Some(KeyMode::Natural), "natural"),
    (Some(KeyMode::Receiver), "receiver"),
    (None, "none"),
];

/// A key, and what an operation that uses it must have.
pub(super) struct Keyed {
    pub(super) key: Key,
    /// The path must have the key's placeholder: its place was written down. A `natural` key without a place is the
    /// request itself, whatever its path is made of.
    pub(super) needs_place: bool,
}

pub(super) fn parse(contract: &Table<'_>) -> Result<Option<Keyed>, Reported> {
    let Some(table) = contract.sub("key")? else { return Ok(None) };
    let mode = table.choice("mode", &MODES)?;
    let written = table.text_if("place").and_then(|place| {
        place.map(|place| self::place(&place).map_err(|complaint| table.wrong("place", complaint))).transpose()
    });
    let (form, encode) = (table.choice("form", &KeyForm::ALL), table.choice("encode", &ENCODINGS));
    let window = table.read("window", |item| match item.value {
        DeValue::String(text) if text == "forever" => Ok(Window::Forever),
        _ => match read_duration(&item)? {
            Duration::ZERO => Err("must be longer than 0s; leave it out where it is not published".to_owned()),
            window => Ok(Window::For(window)),
        },
    });
    let margin = margin(&table, window);
    let min_gap = table.duration("min_gap");
    let Some(mode) = mode else { return Ok(None) };
    let written = written?;
    let needs_place = written.is_some();
    let place = match (written, mode) {
        (Some(place), _) => Ok(place),
        (None, KeyMode::Natural) => Ok(Place::Path("key".to_owned())),
        (None, KeyMode::Dedupe | KeyMode::Conflict | KeyMode::Receiver) => Err(table.missing("place")),
    };
    let key = Key {
        form: form?,
        encode: encode?,
        window: window?,
        margin: margin?,
        min_gap: min_gap?,
        ..Key::new(mode, place?)
    };
    if key.encode == Encode::SfString && !matches!(key.place, Place::Header(_)) {
        return Err(table.wrong("encode", "can be \"sf-string\" only where `place` is a header"));
    }
    let (fits, spells) = (check_length(&table, &key), check_charset(&table, &key));
    fits.and(spells)?;
    Ok(Some(Keyed { key, needs_place }))
}

/// As given, or a tenth of the window, at most an hour. Shorter than the window.
fn margin(table: &Table<'_>, window: Result<Option<Window>, Reported>) -> Result<Duration, Reported> {
    const AT_MOST: Duration = Duration::from_secs(3600);
    let given = table.duration_if("margin")?;
    match (given, window?) {
        (Some(margin), Some(Window::For(window))) if margin >= window => {
            Err(table
                .wrong("margin", format!("must be shorter than `window` ({}), found {}", show(window), show(margin))))
        }
        (Some(margin), _) => Ok(margin),
        (None, Some(Window::For(window))) => Ok((window / 10).min(AT_MOST)),
        (None, Some(Window::Forever) | None) => Ok(Duration::ZERO),
    }
}

fn place(text: &str) -> Result<Place, String> {
    const PLACES: &str = "`header:Name`, `json:/pointer`, `form:name`, `query:name` or `path:name`";
    match text.split_once(':') {
        Some(("header", name)) => http::request_header_name(name).map(Place::Header),
        Some(("json", pointer)) if pointer.len() > 1 => json_pointer(pointer).map(Place::Json),
        Some(("form", name)) if !name.is_empty() => Ok(Place::Form(name.to_owned())),
        Some(("query", name)) if !name.is_empty() => Ok(Place::Query(name.to_owned())),
        Some(("path", name)) if Template::parse(&format!("{{{name}}}")).is_ok_and(|t| t.parts().len() == 1) => {
            Ok(Place::Path(name.to_owned()))
        }
        Some((kind @ ("gql-var" | "prop"), _)) => Err(format!("`{kind}:` {NOT_YET}; it can be {PLACES}")),
        Some(_) | None => Err(format!("must be {PLACES}, found {text:?}")),
    }
}

/// A JSON pointer (RFC 6901).
pub(super) fn json_pointer(text: &str) -> Result<String, String> {
    let escapes = text.split('~').skip(1).all(|rest| rest.starts_with(['0', '1']));
    match (text.is_empty() || text.starts_with('/')) && escapes {
        true => Ok(text.to_owned()),
        false => Err(format!("has {text:?}, which is not a JSON pointer like \"/error/code\"")),
    }
}

/// Every form renders to one length.
fn check_length(table: &Table<'_>, key: &Key) -> Result<(), Reported> {
    let length = key.render(ActionId(Uuid::nil())).len();
    match table.integer_if("max_bytes")? {
        Some(max) if length > max as usize => {
            let form = KeyForm::ALL.iter().find(|(form, _)| *form == key.form).map_or("", |(_, name)| name);
            Err(table.wrong("max_bytes", format!("is {max}, but a key of form \"{form}\" is {length} bytes long")))
        }
        Some(_) | None => Ok(()),
    }
}

fn check_charset(table: &Table<'_>, key: &Key) -> Result<(), Reported> {
    let charset = table.read("charset", |item| match item.value {
        DeValue::String(text) => Regex::new(&format!("^(?:{text})$"))
            .map_err(|_| format!("must be a regular expression for the whole key, found {text:?}")),
        other => Err(format!("must be a string, found {}", type_of(other))),
    })?;
    let Some(charset) = charset else { return Ok(()) };
    // Enough ids to show every character in every position.
    let ids = (0..512u128).map(|n| n.wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835)).chain([u128::MAX]);
    let keys = ids.map(|id| key.form.render(ActionId(Uuid::from_u128(id))));
    match keys.into_iter().find(|rendered| !charset.is_match(rendered)) {
        Some(rendered) => Err(table.wrong("charset", format!("does not match keys of the `form`, like {rendered:?}"))),
        None => Ok(()),
    }
}
