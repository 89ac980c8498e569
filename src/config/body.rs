//! A TOML value as the JSON that it stands for: bodies of requests about an action, and values that switch a key on.

#![allow(clippy::wildcard_enum_match_arm, reason = "TOML's values are not our enum: what is not expected is refused")]

use serde_json::{Map, Number, Value};
use toml::de::DeValue;

use super::table::type_of;

/// The value, whatever JSON has a word for. Members keep the order of the file.
pub(super) fn json(value: &DeValue<'_>) -> Result<Value, String> {
    match value {
        DeValue::Array(items) => {
            items.iter().map(|item| json(item.get_ref())).collect::<Result<_, _>>().map(Value::Array)
        }
        DeValue::Table(table) => {
            let mut members: Vec<_> = table.iter().collect();
            members.sort_by_key(|(name, _)| name.span().start);
            let member = |(name, value): (&toml::Spanned<_>, &toml::Spanned<DeValue<'_>>)| {
                let name: &std::borrow::Cow<'_, str> = name.get_ref();
                Ok((name.to_string(), json(value.get_ref())?))
            };
            members.into_iter().map(member).collect::<Result<Map<_, _>, String>>().map(Value::Object)
        }
        DeValue::Float(float) => {
            let number = float.as_str().parse().ok().and_then(Number::from_f64);
            number.map(Value::Number).ok_or_else(|| format!("holds {}, which JSON cannot write", float.as_str()))
        }
        other => scalar(other),
    }
}

/// A string, boolean or integer.
pub(super) fn scalar(value: &DeValue<'_>) -> Result<Value, String> {
    match value {
        DeValue::String(text) => Ok(Value::String(text.to_string())),
        DeValue::Boolean(value) => Ok(Value::Bool(*value)),
        DeValue::Integer(integer) => {
            let value = i64::from_str_radix(integer.as_str(), integer.radix());
            value.map(Value::from).map_err(|_| format!("holds {integer}, which is too large"))
        }
        other => Err(format!("must hold strings, booleans or integers, found {}", type_of(other))),
    }
}
