//! What an answer says, held against what was sent (R16).

use serde_json::Value;

use super::super::build::Sent;
use super::decimal::Decimal;
use crate::core::contract::Compare;
use crate::core::target::Operation;

/// A value of an answer, and what it must be.
pub(in crate::destination) struct Expected<'c> {
    /// Where in the answer: a JSON pointer.
    answer: &'c str,
    /// What was sent; `None` where nothing was, or what is no scalar.
    sent: Option<Value>,
    /// It is our key or reference.
    ours: bool,
}

impl<'c> Expected<'c> {
    /// Everything that an answer is held against. Where nothing is known of what was `sent`, all of it is missing.
    pub(in crate::destination) fn all(
        list: &'c [Compare],
        operation: &Operation,
        sent: Option<&Sent<'_>>,
    ) -> Vec<Self> {
        let expected = |compare: &'c Compare| Self {
            answer: &compare.answer,
            sent: sent.and_then(|sent| sent.value(&compare.sent)).filter(is_scalar),
            ours: Sent::is_ours(operation, &compare.sent),
        };
        list.iter().map(expected).collect()
    }

    #[cfg(test)]
    pub(super) fn test(answer: &'c str, sent: Option<Value>, ours: bool) -> Self {
        Self { answer, sent, ours }
    }
}

/// Whether one of them is our key or reference: an answer that holds the same is about our action.
pub(super) fn any_is_ours(expected: &[Expected<'_>]) -> bool {
    expected.iter().any(|expected| expected.ours)
}

/// How answer and request compare.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Compared<'c> {
    /// In everything.
    Same,
    /// Here they differ.
    Differs(&'c str),
    /// Nothing differs, but here one of them has nothing to compare.
    Missing(&'c str),
}

/// Compares what there is to compare. A difference outweighs what is missing.
pub(super) fn compare<'c>(expected: &[Expected<'c>], json: Option<&Value>) -> Compared<'c> {
    let mut missing = None;
    for Expected { answer, sent, .. } in expected {
        match (json.and_then(|json| json.pointer(answer)).filter(|value| is_scalar(value)), sent) {
            (Some(answered), Some(sent)) if is_same(answered, sent) => {}
            (Some(_), Some(_)) => return Compared::Differs(answer),
            (Some(_) | None, None) | (None, Some(_)) => missing = missing.or(Some(*answer)),
        }
    }
    missing.map_or(Compared::Same, Compared::Missing)
}

fn is_scalar(value: &Value) -> bool {
    match value {
        Value::String(_) | Value::Number(_) | Value::Bool(_) => true,
        Value::Null | Value::Array(_) | Value::Object(_) => false,
    }
}

/// Whether two scalars are the same text, or, where one of them is a number, the same number.
fn is_same(a: &Value, b: &Value) -> bool {
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), ToOwned::to_owned);
    let (text_a, text_b) = (text(a), text(b));
    let as_numbers = || Decimal::parse(&text_a).is_some_and(|value| Decimal::parse(&text_b) == Some(value));
    text_a == text_b || ((a.is_number() || b.is_number()) && as_numbers())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn scalars_are_the_same_as_text_or_as_numbers() {
        let parse = |text: &str| serde_json::from_str::<Value>(text).expect("JSON");
        for (a, b) in [("1.10", "1.1"), ("\"100\"", "100"), ("1e2", "100"), ("\"a\"", "\"a\""), ("true", "\"true\"")] {
            assert!(is_same(&parse(a), &parse(b)) && is_same(&parse(b), &parse(a)), "{a} {b}");
        }
        // Two texts are two texts: a reference `007` is not `7`.
        for (a, b) in
            [("\"007\"", "\"7\""), ("100", "\"100 EUR\""), ("9007199254740993", "9007199254740992"), ("1", "true")]
        {
            assert!(!is_same(&parse(a), &parse(b)), "{a} {b}");
        }
    }

    #[test]
    fn r16_a_difference_outweighs_what_is_missing() {
        let expect = |answer: &'static str, sent: Option<Value>| Expected { answer, sent, ours: false };
        let body = json!({"amount": 5, "currency": "eur", "null": null, "list": []});
        let same = expect("/amount", Some(json!("5")));
        assert_eq!(compare(&[same], Some(&body)), Compared::Same);
        for nothing in ["/gone", "/null", "/list"] {
            let all = [expect(nothing, Some(json!("x"))), expect("/currency", Some(json!("usd")))];
            assert_eq!(compare(&all[..1], Some(&body)), Compared::Missing(nothing));
            assert_eq!(compare(&all, Some(&body)), Compared::Differs("/currency"));
        }
        assert_eq!(compare(&[expect("/amount", None)], Some(&body)), Compared::Missing("/amount"));
        assert_eq!(compare(&[expect("/amount", Some(json!(5)))], None), Compared::Missing("/amount"));
        assert_eq!(compare(&[], None), Compared::Same);
    }
}
