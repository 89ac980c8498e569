//! Places in an answer.

use std::borrow::Cow;

use hyper::StatusCode;
use hyper::header::HeaderMap;
use serde_json::Value;

use super::super::answer::{Answer, End};
use super::super::clean::one_line;
use crate::core::contract::{Source, When};

/// How long a stored receipt may be, in bytes.
pub(super) const RECEIPT_MAX_BYTES: usize = 500;

/// The text at a place in an answer; numbers as JSON writes them.
pub(super) fn value_at<'a>(answer: &'a Answer, source: &Source) -> Option<Cow<'a, str>> {
    match source {
        Source::Header(name) => answer.headers.get(name).map(|value| String::from_utf8_lossy(value.as_bytes())),
        Source::Json(pointer) => match answer.body.json.as_ref()?.pointer(pointer)? {
            Value::String(text) => Some(Cow::Borrowed(text)),
            Value::Number(number) => Some(Cow::Owned(number.to_string())),
            Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
        },
    }
}

/// Whether any of these places is in the body.
pub(super) fn any_in_body<'a>(sources: impl IntoIterator<Item = &'a Source>) -> bool {
    sources.into_iter().any(|source| pointer_of(source).is_some())
}

/// The pointer into the body that a place is.
pub(super) fn pointer_of(source: &Source) -> Option<&str> {
    match source {
        Source::Json(pointer) => Some(pointer),
        Source::Header(_) => None,
    }
}

/// The destination's reference for the effect: the first of these places that has one.
pub(super) fn receipt<'a>(sources: impl IntoIterator<Item = &'a Source>, answer: &Answer) -> Option<String> {
    let text = sources.into_iter().find_map(|source| value_at(answer, source))?;
    Some(one_line(text.as_bytes(), RECEIPT_MAX_BYTES))
}

/// Why there is no receipt, where one may have been cut off. It undoes nothing.
pub(super) fn receipt_cut_off<'a>(sources: impl IntoIterator<Item = &'a Source>, answer: &Answer) -> Option<String> {
    let cut_off = answer.body.end != End::Complete && any_in_body(sources);
    cut_off.then(|| format!("no receipt: the answer's body {}", answer.body.end.sentence()))
}

/// Whether an answer is one of those.
pub(super) fn matches(when: &When, answer: &Answer) -> bool {
    head_matches(when, answer.status, &answer.headers) && when.body_matches(answer.body.json.as_ref())
}

/// Whether an answer with that head can be one of those.
pub(super) fn head_matches(when: &When, status: StatusCode, headers: &HeaderMap) -> bool {
    when.head_matches(status.as_u16(), |name: &str| {
        headers.get_all(name).iter().filter_map(|value| std::str::from_utf8(value.as_bytes()).ok()).collect()
    })
}

/// Whether a pointer picks the first of several: behind one of its `0`s there is a `1` as well.
pub(super) fn is_one_of_several(json: &Value, pointer: &str) -> bool {
    firsts(pointer).any(|before| json.pointer(&format!("{before}/1")).is_some())
}

/// Whether a pointer picks the first of a list.
pub(super) fn picks_first(pointer: &str) -> bool {
    firsts(pointer).next().is_some()
}

/// What stands before each segment `0`.
fn firsts(pointer: &str) -> impl Iterator<Item = &str> {
    let ends = pointer.match_indices('/').map(|(at, _)| at).chain([pointer.len()]);
    let starts = pointer.match_indices('/').map(|(at, _)| at);
    starts
        .zip(ends.skip(1))
        .filter(|&(start, end)| pointer.get(start + 1..end) == Some("0"))
        .map(|(start, _)| &pointer[..start])
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_second_item_is_seen_at_every_depth() {
        let json = json!({"data": [{"lines": [1, 2]}], "one": [{"lines": [1]}], "0": [7, 8]});
        for (pointer, several) in [
            ("/data/0/lines", false),
            ("/data/0/lines/0", true),
            ("/one/0/lines/0", false),
            ("/0/0", true),
            ("/0", false),
            ("/data/00/lines", false),
            ("", false),
            ("/nothing/0", false),
        ] {
            assert_eq!(is_one_of_several(&json, pointer), several, "{pointer}");
        }
        assert!(picks_first("/a/0") && !picks_first("/a/10") && !picks_first(""));
        assert!(is_one_of_several(&json!([{}, {}]), "/0/id"));
    }
}
