//! `[contract.NAME.key]`: how a repeat is recognised.

#![allow(clippy::wildcard_enum_match_arm, reason = "TOML's values are not our enum: what is not expected is refused")]

use std::time::Duration;

use regex::Regex;
use serde_json::Value;
use toml::de::DeValue;
use uuid::Uuid;

use super::duration::show;
use super::place::{place, place_if};
use super::problem::Reported;
use super::read::{one_of, read_duration};
use super::table::{Table, type_of};
use super::{body, http, matcher};
use crate::core::action::ActionId;
use crate::core::contract::{Encode, Key, KeyForm, KeyMode, Place, Window};

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
    /// How late a repeat may leave that no memory of the key guards; the operation's own goes before it.
    pub(super) resend_within: Option<Duration>,
    pub(super) notes: Notes,
}

/// What is written about a key for people, and what has been checked at load and is needed no more.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Notes {
    /// The longest key it takes, in bytes.
    pub(super) max_bytes: Option<u32>,
    /// A regular expression that every key matches.
    pub(super) charset: Option<String>,
    /// What must be unchanged since the first send.
    pub(super) pins: Vec<&'static str>,
    /// What the destination does with the key under another body.
    pub(super) other_body: Option<&'static str>,
    /// Which first results a repeat gives.
    pub(super) replays: Option<String>,
    /// Whether a late repeat could undo a newer edit.
    pub(super) overwrites: Option<bool>,
}

/// What must be unchanged since the first send.
const PINS: [(&str, &str); 3] = [("url", "url"), ("credential-account", "credential-account"), ("stream", "stream")];

const OTHER_BODY: [(&str, &str); 4] =
    [("error", "error"), ("replay", "replay"), ("execute", "execute"), ("unknown", "unknown")];

impl Notes {
    fn parse(table: &Table<'_>) -> Result<Self, Reported> {
        let pins = table.texts("pins").and_then(|pins| {
            let read: Result<_, _> = pins.iter().map(|pin| one_of(pin, &PINS)).collect();
            read.map_err(|complaint| table.wrong("pins", complaint))
        });
        let (other_body, replays) = (table.choice_if("other_body", &OTHER_BODY), table.text_if("replays"));
        let (max_bytes, charset) = (table.integer_if("max_bytes"), table.text_if("charset"));
        let overwrites = table.boolean_if("overwrites");
        Ok(Self {
            max_bytes: max_bytes?,
            charset: charset?,
            pins: pins?,
            other_body: other_body?,
            replays: replays?,
            overwrites: overwrites?,
        })
    }
}

pub(super) fn parse(contract: &Table<'_>) -> Result<Option<Keyed>, Reported> {
    let Some(table) = contract.sub("key")? else { return Ok(None) };
    let mode = table.choice("mode", &MODES)?;
    let written = place_if(&table, "place");
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
    let (also, resend_within) = (also(&table), table.duration_if("resend_within"));
    let (replayed, honoured) = (matcher::when_if(&table, "replayed"), matcher::when_if(&table, "honoured"));
    let notes = Notes::parse(&table);
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
        also: also?,
        replayed: replayed?,
        honoured: honoured?,
        ..Key::new(mode, place?)
    };
    if key.encode == Encode::SfString && !matches!(key.place, Place::Header(_)) {
        return Err(table.wrong("encode", "can be \"sf-string\" only where `place` is a header"));
    }
    let (fits, spells) = (check_length(&table, &key), check_charset(&table, &key));
    fits.and(spells)?;
    Ok(Some(Keyed { key, needs_place, resend_within: resend_within?, notes: notes? }))
}

/// Fields that switch the destination's memory on.
fn also(table: &Table<'_>) -> Result<Vec<(Place, Value)>, Reported> {
    table.each("also", |name, value| {
        let value = body::scalar(value).map_err(|complaint| format!("has `{name}`, which {complaint}"))?;
        match place(name)? {
            Place::Path(_) => Err(format!("has `{name}`, which belongs in the operation's `path` itself")),
            Place::Header(_) if value.as_str().is_some_and(|text| !http::is_header_value(text)) => {
                Err(format!("has `{}` with a control character, which no header can carry", name.escape_debug()))
            }
            place => Ok((place, value)),
        }
    })
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
