//! A value put into a body. Every other byte stays as it was given: nothing is parsed and written anew.

use percent_encoding::percent_decode;
use serde_json::value::RawValue;

use super::fill::push_encoded;
use super::members::members;

/// `body` with `value`, which is JSON text, at `pointer` (RFC 6901). Missing objects on the way are made. `None` where
/// the body is not JSON, a step of the way is neither object nor array element, or a name on it stands there twice.
pub(super) fn into_json(body: &[u8], pointer: &str, value: &str) -> Option<Vec<u8>> {
    let body = std::str::from_utf8(body).ok()?;
    let steps: Vec<String> =
        pointer.strip_prefix('/')?.split('/').map(|step| step.replace("~1", "/").replace("~0", "~")).collect();
    put(body, &steps, value).map(String::into_bytes)
}

/// `text`, one JSON value, with `value` at the end of `steps`.
fn put(text: &str, steps: &[String], value: &str) -> Option<String> {
    let Some((step, rest)) = steps.split_first() else {
        return Some(value.to_owned());
    };
    if text.trim_ascii_start().starts_with('[') {
        let elements: Vec<&RawValue> = serde_json::from_str(text).ok()?;
        let canonical = step == "0" || !step.starts_with(['0', '+']);
        let element = elements.get(step.parse::<usize>().ok().filter(|_| canonical)?)?;
        return splice(text, element, &put(element.get(), rest, value)?);
    }
    let members = members(text)?;
    let mut named = members.iter().filter(|(name, _)| name == step).map(|(_, member)| member);
    match (named.next(), named.next()) {
        (Some(member), None) => splice(text, member, &put(member.get(), rest, value)?),
        (Some(_), Some(_)) => None,
        (None, _) => {
            let end = text.rfind('}')?;
            let mut out = String::with_capacity(text.len() + value.len() + 64);
            out.push_str(text.get(..end)?);
            if !members.is_empty() {
                out.push(',');
            }
            push_nested(&mut out, steps, value)?;
            out.push_str(text.get(end..)?);
            Some(out)
        }
    }
}

/// Appends `"a":{"b":value}` for the steps `a`, `b`.
fn push_nested(out: &mut String, steps: &[String], value: &str) -> Option<()> {
    for (depth, step) in steps.iter().enumerate() {
        if depth > 0 {
            out.push('{');
        }
        out.push_str(&serde_json::to_string(step).ok()?);
        out.push(':');
    }
    out.push_str(value);
    out.extend(steps.iter().skip(1).map(|_| '}'));
    Some(())
}

/// `text` with `part`, which lies in it, replaced.
fn splice(text: &str, part: &RawValue, by: &str) -> Option<String> {
    let start = (part.get().as_ptr() as usize).checked_sub(text.as_ptr() as usize)?;
    let end = start + part.get().len();
    Some([text.get(..start)?, by, text.get(end..)?].concat())
}

/// `body`, form-encoded, with `value` in its only field of that name. `None` where it is not text.
pub(super) fn into_form(body: &[u8], field: &str, value: &str) -> Option<Vec<u8>> {
    let body = std::str::from_utf8(body).ok()?;
    let mut out = String::with_capacity(body.len() + field.len() + value.len() + 2);
    for pair in body.split('&').filter(|pair| !pair.is_empty()) {
        let name = pair.split('=').next().unwrap_or_default().replace('+', " ");
        if !percent_decode(name.as_bytes()).eq(field.bytes()) {
            out.push_str(pair);
            out.push('&');
        }
    }
    push_encoded(&mut out, field);
    out.push('=');
    push_encoded(&mut out, value);
    Some(out.into_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn json(body: &str, pointer: &str) -> Option<String> {
        into_json(body.as_bytes(), pointer, "\"K\"").map(|body| String::from_utf8(body).expect("text"))
    }

    #[test]
    fn b24_numbers_order_and_escapes_survive_the_key() {
        let body = "{\"id\":9223372036854775807,\"x\":1.10,\"y\":1e400,\"b\":1,\"a\":2,\"s\":\"\\u00e9\"}";
        let expected = format!("{},\"ref\":\"K\"}}", body.strip_suffix('}').expect("a brace"));
        assert_eq!(json(body, "/ref"), Some(expected));
    }

    #[test]
    fn the_key_goes_where_the_pointer_points() {
        assert_eq!(json("{}", "/a").as_deref(), Some("{\"a\":\"K\"}"));
        assert_eq!(json(" { } \n", "/a").as_deref(), Some(" { \"a\":\"K\"} \n"));
        assert_eq!(json("{\"m\":{ }}", "/m/a").as_deref(), Some("{\"m\":{ \"a\":\"K\"}}"));
        assert_eq!(json("{\"n\": 1.0 }", "/m/~1/~0").as_deref(), Some("{\"n\": 1.0 ,\"m\":{\"/\":{\"~\":\"K\"}}}"));
        assert_eq!(json("{\"a\": \"theirs\" ,\"b\":2}", "/a").as_deref(), Some("{\"a\": \"K\" ,\"b\":2}"));
        assert_eq!(json("[1,{\"a\":2.50}]", "/1/k").as_deref(), Some("[1,{\"a\":2.50,\"k\":\"K\"}]"));
    }

    #[test]
    fn where_there_is_no_place_there_is_no_key() {
        for (body, pointer) in [
            ("", "/a"),
            ("[]", "/a"),
            ("[1]", "/01"),
            ("[1]", "/1"),
            ("7", "/a"),
            ("{\"a\":7}", "/a/b"),
            ("{\"a\":null}", "/a/b"),
            ("{\"a\":1,\"a\":2}", "/a"),
            ("{\"a\":1", "/b"),
            ("{}", ""),
        ] {
            assert_eq!(json(body, pointer), None, "{body} {pointer}");
        }
        assert!(into_json(b"\xff", "/a", "1").is_none());
    }

    #[test]
    fn a_form_holds_the_key_once() {
        let form =
            |body: &str| into_form(body.as_bytes(), "ref id", "a&b").map(|b| String::from_utf8(b).expect("text"));
        assert_eq!(form("").as_deref(), Some("ref%20id=a%26b"));
        assert_eq!(form("x=1&y=%2f").as_deref(), Some("x=1&y=%2f&ref%20id=a%26b"));
        assert_eq!(form("ref+id=old&x=1&ref%20id=older").as_deref(), Some("x=1&ref%20id=a%26b"));
    }

    proptest! {
        #[test]
        fn b24_every_other_member_stays_as_it_was(
            names in prop::collection::btree_set("[a-c]{1,3}", 0..6),
            values in prop::collection::vec(
                prop::sample::select(vec!["1.10", "1e400", "-0", "\"\\u00e9\"", "[ 1 ,2]", "{\"k\" :null}", " true "]), 6),
            step in "[a-d/~]{1,2}",
        ) {
            let members_text: Vec<String> =
                names.iter().zip(&values).map(|(name, value)| format!("\"{name}\":{value}")).collect();
            let body = format!("{{{}}}", members_text.join(","));
            let pointer = format!("/{}", step.replace('~', "~0").replace('/', "~1"));
            let spliced = json(&body, &pointer).expect("an object");
            let before = members(&body).expect("an object");
            let after = members(&spliced).expect("an object");
            let text = |list: &[(String, &RawValue)]| -> Vec<(String, String)> {
                list.iter().filter(|(n, _)| *n != step).map(|(n, v)| (n.clone(), v.get().to_owned())).collect()
            };
            prop_assert_eq!(text(&before), text(&after));
            let keys: Vec<_> = after.iter().filter(|(name, _)| *name == step).map(|(_, v)| v.get()).collect();
            prop_assert_eq!(keys, vec!["\"K\""]);
        }
    }
}
