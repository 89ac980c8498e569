//! Which answers a rule speaks of.

use serde_json::Value;
use wildmatch::WildMatchPattern;

/// All parts that are given must match.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct When {
    /// Any of these; `None` = any status.
    pub status: Option<Vec<StatusSet>>,
    /// Header name in lower case, and what one of its values must be.
    pub headers: Vec<(String, TextIs)>,
    /// JSON pointer (RFC 6901) into the body, and what stands there.
    pub json: Vec<(String, JsonIs)>,
}

impl When {
    /// Whether the body has to be read to judge it.
    pub fn reads_body(&self) -> bool {
        !self.json.is_empty()
    }

    /// Whether status and headers allow it; the body is another question.
    pub fn head_matches<'a>(&self, status: u16, header: impl Fn(&str) -> Vec<&'a str>) -> bool {
        self.status.as_ref().is_none_or(|sets| sets.iter().any(|set| set.contains(status)))
            && self.headers.iter().all(|(name, is)| header(name).iter().any(|value| is.matches(value)))
    }

    /// Whether the body has everything that is asked of it. A body that is not JSON has nothing.
    pub fn body_matches(&self, body: Option<&Value>) -> bool {
        self.json.iter().all(|(pointer, is)| body.and_then(|b| b.pointer(pointer)).is_some_and(|v| is.matches(v)))
    }
}

/// One status or a whole class.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum StatusSet {
    /// Exactly this one, 100 to 599.
    Exact(u16),
    /// All of 100 to 199 for 1, and so on to 5.
    Class(u8),
}

impl StatusSet {
    /// Whether `status` is in the set.
    pub fn contains(self, status: u16) -> bool {
        match self {
            Self::Exact(exact) => exact == status,
            Self::Class(class) => u16::from(class) == status / 100,
        }
    }
}

/// What a text must be; `*` stands for any run of characters.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TextIs(String);

impl TextIs {
    /// From a pattern.
    pub fn new(pattern: impl Into<String>) -> Self {
        Self(pattern.into())
    }

    /// As it was written.
    pub fn pattern(&self) -> &str {
        &self.0
    }

    /// Whether the whole text matches.
    pub fn matches(&self, text: &str) -> bool {
        // NUL as the one-character wildcard: no text from a header or a rule holds it, so `?` stays itself.
        WildMatchPattern::<'*', '\0'>::new(&self.0).matches(text)
    }
}

/// What must stand at a JSON pointer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum JsonIs {
    /// A string, or a number or boolean as JSON writes it, that matches the pattern.
    Text(TextIs),
    /// Anything but null: the pattern `*`.
    Present,
    /// Exactly this value.
    Exactly(Value),
}

impl JsonIs {
    /// Whether `value` is that.
    pub fn matches(&self, value: &Value) -> bool {
        match self {
            Self::Present => !value.is_null(),
            Self::Exactly(exact) => exact == value,
            Self::Text(pattern) => match value {
                Value::String(text) => pattern.matches(text),
                Value::Number(_) | Value::Bool(_) => pattern.matches(&value.to_string()),
                Value::Null | Value::Array(_) | Value::Object(_) => false,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_status_matches_exactly_or_by_class() {
        assert!(StatusSet::Exact(409).contains(409));
        assert!(!StatusSet::Exact(409).contains(410));
        assert!(StatusSet::Class(4).contains(499) && !StatusSet::Class(4).contains(500));
    }

    #[test]
    fn a_star_is_a_glob_and_a_question_mark_is_itself() {
        assert!(TextIs::new("conflict on *").matches("conflict on insert of Issue"));
        assert!(TextIs::new("what?").matches("what?") && !TextIs::new("what?").matches("whats"));
        assert!(!TextIs::new("a*").matches("ba"));
    }

    #[test]
    fn json_values_match_by_text_presence_or_value() {
        assert!(JsonIs::Text(TextIs::new("704")).matches(&json!(704)));
        assert!(JsonIs::Text(TextIs::new("704")).matches(&json!("704")));
        assert!(!JsonIs::Text(TextIs::new("*")).matches(&json!({})));
        assert!(JsonIs::Present.matches(&json!({})) && !JsonIs::Present.matches(&Value::Null));
        assert!(JsonIs::Exactly(json!([])).matches(&json!([])) && !JsonIs::Exactly(json!([])).matches(&json!([1])));
    }

    #[test]
    fn every_given_part_must_match() {
        let when = When {
            status: Some(vec![StatusSet::Class(4)]),
            headers: vec![("x-replayed".into(), TextIs::new("true"))],
            json: vec![("/error/code".into(), JsonIs::Text(TextIs::new("in_*")))],
        };
        let header = |name: &str| if name == "x-replayed" { vec!["true"] } else { vec![] };
        assert!(when.head_matches(409, header) && !when.head_matches(200, header));
        assert!(!when.head_matches(409, |_: &str| vec![]));
        assert!(when.body_matches(Some(&json!({"error": {"code": "in_progress"}}))));
        assert!(!when.body_matches(Some(&json!({"error": {}}))) && !when.body_matches(None));
    }
}
