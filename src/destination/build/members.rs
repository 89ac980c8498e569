//! A JSON object as it was written: its members in order, each value's text untouched.

use std::fmt;

use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

/// Name and value of one member.
pub(super) type Member<'a> = (String, &'a RawValue);

/// The members of the object that `text` is; `None` where it is not an object.
pub(super) fn members(text: &str) -> Option<Vec<Member<'_>>> {
    let mut json = serde_json::Deserializer::from_str(text);
    let members = json.deserialize_map(Members).ok()?;
    json.end().ok()?;
    Some(members)
}

struct Members;

impl<'de> Visitor<'de> for Members {
    type Value = Vec<Member<'de>>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut members = Vec::new();
        while let Some(member) = map.next_entry()? {
            members.push(member);
        }
        Ok(members)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_keep_their_text_and_order() {
        let members = members(r#" {"b":1e400 , "a":[ 1,2], "b":"\u00e9"} "#).expect("an object");
        let text: Vec<_> = members.iter().map(|(name, value)| (name.as_str(), value.get())).collect();
        assert_eq!(text, [("b", "1e400"), ("a", "[ 1,2]"), ("b", r#""\u00e9""#)]);
    }

    #[test]
    fn what_is_not_one_object_has_no_members() {
        for text in ["", "[]", "1", "{} {}", "{\"a\":}", "null"] {
            assert!(members(text).is_none(), "{text}");
        }
    }
}
