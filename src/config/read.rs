//! Typed reads from a table. Range and default come from the reference; what is wrong is reported once and becomes a
//! [`Reported`] that says no more.

#![allow(clippy::wildcard_enum_match_arm, reason = "TOML's values are not our enum: what is not expected is refused")]

use std::time::Duration;

use toml::de::DeValue;

use super::duration;
use super::nearest::nearest;
use super::problem::{At, Reported};
use super::reference::{self, Fallback, Kind, Need};
use super::table::{Item, Table, type_of};

impl<'a> Table<'a> {
    /// A string; the default or a missing required key is settled here.
    pub(super) fn text(&self, key: &str) -> Result<String, Reported> {
        let given = self.text_if(key)?;
        self.settle(key, given, |fallback| match fallback {
            Fallback::Text(text) => Some(text.to_owned()),
            Fallback::Bool(_) | Fallback::Integer(_) | Fallback::Number(_) | Fallback::Duration(_) => None,
        })
    }

    /// A string that is not empty, if it is given.
    pub(super) fn text_if(&self, key: &str) -> Result<Option<String>, Reported> {
        self.read(key, |item| match item.value {
            DeValue::String(text) if text.trim().is_empty() => Err("must not be empty".to_owned()),
            DeValue::String(text) => Ok(text.to_string()),
            other => Err(format!("must be a string, found {}", type_of(other))),
        })
    }

    pub(super) fn boolean_if(&self, key: &str) -> Result<Option<bool>, Reported> {
        self.read(key, |item| match item.value {
            DeValue::Boolean(value) => Ok(*value),
            other => Err(format!("must be true or false, found {}", type_of(other))),
        })
    }

    pub(super) fn boolean(&self, key: &str) -> Result<bool, Reported> {
        let given = self.boolean_if(key)?;
        self.settle(key, given, |fallback| match fallback {
            Fallback::Bool(value) => Some(value),
            Fallback::Text(_) | Fallback::Integer(_) | Fallback::Number(_) | Fallback::Duration(_) => None,
        })
    }

    pub(super) fn integer(&self, key: &str) -> Result<u32, Reported> {
        let given = self.integer_if(key)?;
        self.settle(key, given, |fallback| match fallback {
            Fallback::Integer(value) => u32::try_from(value).ok(),
            Fallback::Text(_) | Fallback::Bool(_) | Fallback::Number(_) | Fallback::Duration(_) => None,
        })
    }

    pub(super) fn integer_if(&self, key: &str) -> Result<Option<u32>, Reported> {
        let (min, max) = match self.kind(key) {
            Some(Kind::Integer { min, max }) => (min, max),
            _ => (0, u64::from(u32::MAX)),
        };
        self.read(key, |item| match item.value {
            DeValue::Integer(integer) => {
                let value = i128::from_str_radix(integer.as_str(), integer.radix()).ok();
                let fits = value.filter(|value| (i128::from(min)..=i128::from(max)).contains(value));
                fits.and_then(|value| u32::try_from(value).ok()).ok_or_else(|| match (min, max) {
                    (min, max) if min == max => format!("must be {min}, found {integer}"),
                    (min, max) => format!("must be between {min} and {max}, found {integer}"),
                })
            }
            other => Err(format!("must be an integer, found {}", type_of(other))),
        })
    }

    pub(super) fn number(&self, key: &str) -> Result<f64, Reported> {
        let given = self.number_if(key)?;
        self.settle(key, given, |fallback| match fallback {
            Fallback::Number(value) => Some(value),
            Fallback::Text(_) | Fallback::Bool(_) | Fallback::Integer(_) | Fallback::Duration(_) => None,
        })
    }

    pub(super) fn number_if(&self, key: &str) -> Result<Option<f64>, Reported> {
        let (min, max) = match self.kind(key) {
            Some(Kind::Number { min, max }) => (min, max),
            _ => (f64::MIN, f64::MAX),
        };
        self.read(key, |item| {
            let number: Option<f64> = match item.value {
                DeValue::Integer(integer) => {
                    i64::from_str_radix(integer.as_str(), integer.radix()).ok().map(|value| value as f64)
                }
                DeValue::Float(float) => float.as_str().parse().ok(),
                other => return Err(format!("must be a number, found {}", type_of(other))),
            };
            // NaN is in no range.
            number.filter(|number| (min..=max).contains(number)).ok_or_else(|| {
                let found = item.value.as_float().map(ToString::to_string);
                let found = found.or_else(|| item.value.as_integer().map(ToString::to_string)).unwrap_or_default();
                format!("must be between {min} and {max}, found {found}")
            })
        })
    }

    pub(super) fn duration(&self, key: &str) -> Result<Duration, Reported> {
        let given = self.duration_if(key)?;
        self.settle(key, given, |fallback| match fallback {
            Fallback::Duration(value) => Some(value),
            Fallback::Text(_) | Fallback::Bool(_) | Fallback::Integer(_) | Fallback::Number(_) => None,
        })
    }

    pub(super) fn duration_if(&self, key: &str) -> Result<Option<Duration>, Reported> {
        let (min, max) = match self.kind(key) {
            Some(Kind::Duration { min, max }) => (min, max),
            _ => (Duration::from_nanos(1), Duration::MAX),
        };
        self.read(key, |item| {
            let value = read_duration(&item)?;
            if value < min {
                let found = duration::show(value);
                return Err(match value.is_zero() {
                    true => "must be longer than 0s; write a duration like \"30s\"".to_owned(),
                    false => format!("must be at least {}, found {found}", duration::show(min)),
                });
            }
            if value > max {
                return Err(format!("must be at most {}, found {}", duration::show(max), duration::show(value)));
            }
            Ok(value)
        })
    }

    /// One of `names`, if it is given.
    pub(super) fn choice_if<T: Copy>(&self, key: &str, names: &[(T, &'static str)]) -> Result<Option<T>, Reported> {
        self.read(key, |item| match item.value {
            DeValue::String(text) => one_of(text, names),
            other => Err(format!("must be a string, found {}", type_of(other))),
        })
    }

    /// One of `names`.
    pub(super) fn choice<T: Copy>(&self, key: &str, names: &[(T, &'static str)]) -> Result<T, Reported> {
        let given = self.choice_if(key, names)?;
        self.settle(key, given, |fallback| match fallback {
            Fallback::Text(text) => one_of(text, names).ok(),
            Fallback::Bool(_) | Fallback::Integer(_) | Fallback::Number(_) | Fallback::Duration(_) => None,
        })
    }

    /// A string or a list of strings, none empty. Nothing where it is not given.
    pub(super) fn texts(&self, key: &str) -> Result<Vec<String>, Reported> {
        let text = |value: &DeValue<'_>| match value {
            DeValue::String(text) if text.trim().is_empty() => Err("must not hold an empty string".to_owned()),
            DeValue::String(text) => Ok(text.to_string()),
            other => Err(format!("must hold strings, found {}", type_of(other))),
        };
        let read = self.read(key, |item| match item.value {
            DeValue::Array(texts) if texts.is_empty() => Err("must not be an empty list".to_owned()),
            DeValue::Array(texts) => texts.iter().map(|item| text(item.get_ref())).collect(),
            one => Ok(vec![text(one)?]),
        });
        Ok(read?.unwrap_or_default())
    }

    /// A list of durations that is not empty, if it is given.
    pub(super) fn durations_if(&self, key: &str) -> Result<Option<Vec<Duration>>, Reported> {
        self.read(key, |item| {
            let DeValue::Array(values) = item.value else {
                return Err(format!("must be a list like [\"30s\", \"5m\"], found {}", type_of(item.value)));
            };
            let one = |value: &'a toml::Spanned<DeValue<'a>>| {
                let value = read_duration(&Item { value: value.get_ref(), at: item.at })?;
                match value < Duration::from_millis(1) {
                    true => Err(format!("must hold durations of at least 1ms, found {}", duration::show(value))),
                    false => Ok(value),
                }
            };
            match values.is_empty() {
                true => Err("must not be an empty list".to_owned()),
                false => values.iter().map(one).collect(),
            }
        })
    }

    /// What stands in a table of free names, each read; all that is wrong is reported.
    pub(super) fn each<T>(
        &self,
        key: &str,
        read: impl Fn(&str, &DeValue<'_>) -> Result<T, String>,
    ) -> Result<Vec<T>, Reported> {
        let mut values = Vec::new();
        let mut refused = None;
        for (name, item, _) in self.entries(key)? {
            match read(&name, item.value) {
                Ok(value) => values.push(value),
                Err(complaint) => {
                    refused = Some(self.report(item.at, format!("`{key}` in {} {complaint}", self.title())));
                }
            }
        }
        refused.map_or(Ok(values), Err)
    }

    /// A value of its own type, if it is given.
    pub(super) fn read<T>(
        &self,
        key: &str,
        read: impl FnOnce(Item<'a>) -> Result<T, String>,
    ) -> Result<Option<T>, Reported> {
        debug_assert!(
            reference::find(self.section(), key).is_some(),
            "[{}] {key} is not in the reference",
            self.section()
        );
        let read = self.item(key).map(|item| read(item).map_err(|complaint| (item.at, complaint)));
        read.transpose().map_err(|(at, complaint): (At<'_>, String)| {
            self.report(at, format!("`{key}` in {} {complaint}", self.title()))
        })
    }

    /// The value given, else the reference's default, else a problem: it is required.
    pub(super) fn settle<T>(
        &self,
        key: &str,
        given: Option<T>,
        default: impl FnOnce(Fallback) -> Option<T>,
    ) -> Result<T, Reported> {
        let fallback = match reference::find(self.section(), key).map(|doc| doc.need) {
            Some(Need::Default(fallback)) => default(fallback),
            Some(Need::Required | Need::Optional(_) | Need::Documentation | Need::Later) | None => None,
        };
        given.or(fallback).ok_or_else(|| self.missing(key))
    }

    /// Reports that a key has to be given.
    pub(super) fn missing(&self, key: &str) -> Reported {
        let meaning = reference::find(self.section(), key).map_or("", |doc| doc.meaning);
        match self.section().is_empty() {
            true => self.report(self.at, format!("[{key}] is missing: {meaning}")),
            false => self.report(self.at, format!("`{key}` is missing in {}: {meaning}", self.title())),
        }
    }

    fn kind(&self, key: &str) -> Option<Kind> {
        reference::find(self.section(), key).map(|doc| doc.kind)
    }
}

/// A duration without regard to its range.
pub(super) fn read_duration(item: &Item<'_>) -> Result<Duration, String> {
    match item.value {
        DeValue::String(text) => duration::parse(text),
        DeValue::Integer(number) if number.as_str().starts_with('-') => duration::parse(number.as_str()),
        DeValue::Integer(number) => Err(duration::needs_unit(&number.to_string())),
        DeValue::Float(number) => Err(duration::needs_unit(number.as_str())),
        other => Err(format!("must be a duration like \"30s\", found {}", type_of(other))),
    }
}

/// The value of a name.
pub(super) fn one_of<T: Copy>(text: &str, names: &[(T, &'static str)]) -> Result<T, String> {
    names.iter().find(|(_, name)| *name == text).map(|(value, _)| *value).ok_or_else(|| {
        let near = nearest(text, names.iter().map(|(_, name)| *name));
        let hint = near.map(|name| format!("; did you mean \"{name}\"?")).unwrap_or_default();
        let all: Vec<_> = names.iter().map(|(_, name)| format!("\"{name}\"")).collect();
        format!("must be one of {}, found {text:?}{hint}", all.join(", "))
    })
}
