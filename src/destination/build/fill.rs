//! Templates filled with an action's params, so that no value can leave the place it was meant for.

use std::borrow::Cow;
use std::cell::OnceCell;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use serde_json::Value;

use super::members::{Member, members};
use super::unbuildable::Unbuildable;
use crate::core::request::{Part, Template};

/// Everything but the unreserved characters of RFC 3986 section 2.3.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// What placeholders stand for.
pub(super) struct Values<'a> {
    params: Option<&'a str>,
    /// Read when the first placeholder is met.
    read: OnceCell<Option<Vec<Member<'a>>>>,
    /// Placeholders that do not stand for a param, and what they stand for.
    own: Vec<(Cow<'a, str>, Cow<'a, str>)>,
}

/// How far a value may reach.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Within {
    /// Part of a host name.
    Label,
    /// A whole authority: host and perhaps port.
    Authority,
    /// Within a segment of the path.
    Segment,
    /// A text that is checked or escaped as a whole later: a header, a value of the query.
    Whole,
}

impl<'a> Values<'a> {
    pub(super) fn new(params: Option<&'a str>, own: Vec<(Cow<'a, str>, Cow<'a, str>)>) -> Self {
        Self { params, read: OnceCell::new(), own }
    }

    /// The text that a placeholder stands for.
    pub(super) fn get(&self, name: &str) -> Result<Cow<'_, str>, Unbuildable> {
        if let Some((_, text)) = self.own.iter().find(|(placeholder, _)| placeholder == name) {
            return Ok(Cow::Borrowed(text));
        }
        self.param_text(name)
    }

    fn param_text(&self, name: &str) -> Result<Cow<'_, str>, Unbuildable> {
        let raw = self.param(name)?;
        let not_scalar = || Unbuildable::ParamNotScalar(name.to_owned());
        match raw.bytes().next() {
            Some(b'"') => serde_json::from_str::<String>(raw).map(Cow::Owned).map_err(|_| not_scalar()),
            Some(b'-' | b'0'..=b'9' | b't' | b'f') => Ok(Cow::Borrowed(raw)),
            Some(_) | None => Err(not_scalar()),
        }
    }

    /// The JSON value that a placeholder stands for: a number stays one.
    pub(super) fn json(&self, name: &str) -> Result<Value, Unbuildable> {
        let text = self.get(name)?;
        if self.own.iter().any(|(placeholder, _)| placeholder == name) {
            return Ok(Value::String(text.into_owned()));
        }
        serde_json::from_str(self.param(name)?).map_err(|_| Unbuildable::ParamNotScalar(name.to_owned()))
    }

    /// A param as it was written.
    fn param(&self, name: &str) -> Result<&str, Unbuildable> {
        let params = self
            .read
            .get_or_init(|| self.params.map_or_else(|| Some(Vec::new()), members))
            .as_ref()
            .ok_or(Unbuildable::ParamsNotObject)?;
        // Of two members with one name the last one counts, as in PostgreSQL's `->>`.
        let (_, raw) = params
            .iter()
            .rev()
            .find(|(param, _)| param == name)
            .ok_or_else(|| Unbuildable::ParamMissing(name.to_owned()))?;
        Ok(raw.get())
    }

    /// Appends the filled template.
    pub(super) fn fill(&self, out: &mut String, template: &Template, place: Within) -> Result<(), Unbuildable> {
        for part in template.parts() {
            match part {
                Part::Text(text) => out.push_str(text),
                Part::Param(name) => append(out, name, &self.get(name)?, place)?,
            }
        }
        Ok(())
    }

    /// Appends the filled path. A value cannot add, remove or climb out of a segment.
    pub(super) fn fill_path(&self, out: &mut String, template: &Template) -> Result<(), Unbuildable> {
        let start = out.len();
        self.fill(out, template, Within::Segment)?;
        let filled = out[start..].split('?').next().unwrap_or_default();
        if template.params().next().is_some() && filled.split('/').any(is_dots) {
            return Err(Unbuildable::DotSegment);
        }
        Ok(())
    }

    /// The filled base URL, from params only, so that a question goes where its sends went. Values of its authority are
    /// held to host names, those of its path as in any path.
    pub(super) fn fill_base(&self, template: &Template) -> Result<String, Unbuildable> {
        let mut out = String::new();
        let mut parts = template.parts().iter().peekable();
        while let Some(part) = parts.next() {
            match part {
                Part::Text(text) => out.push_str(text),
                Part::Param(name) => {
                    let authority = out.split_once("://").map_or("", |(_, rest)| rest);
                    let next_is_path = match parts.peek() {
                        None => true,
                        Some(Part::Text(text)) => text.starts_with('/'),
                        Some(Part::Param(_)) => false,
                    };
                    let place = if authority.contains('/') {
                        Within::Segment
                    } else if authority.is_empty() && next_is_path {
                        Within::Authority
                    } else {
                        Within::Label
                    };
                    append(&mut out, name, &self.param_text(name)?, place)?;
                }
            }
        }
        if out.split_once("://").is_some_and(|(_, rest)| rest.split('/').skip(1).any(is_dots)) {
            return Err(Unbuildable::DotSegment);
        }
        Ok(out)
    }
}

/// Appends a value, as far as it may reach.
fn append(out: &mut String, name: &str, value: &str, place: Within) -> Result<(), Unbuildable> {
    if value.is_empty() && matches!(place, Within::Label | Within::Authority | Within::Segment) {
        return Err(Unbuildable::ParamEmpty(name.to_owned()));
    }
    let in_label = |b: u8| b.is_ascii_alphanumeric() || b"-._".contains(&b);
    let is_host = match place {
        Within::Label => value.bytes().all(in_label),
        Within::Authority => value.bytes().all(|b| in_label(b) || b":[]".contains(&b)),
        Within::Segment | Within::Whole => true,
    };
    if !is_host {
        return Err(Unbuildable::ParamNotHost(name.to_owned()));
    }
    match place {
        Within::Label | Within::Authority | Within::Whole => out.push_str(value),
        Within::Segment => push_encoded(out, value),
    }
    Ok(())
}

/// Appends `text` with everything escaped that could mean something in a URL or a form.
pub(super) fn push_encoded(out: &mut String, text: &str) {
    out.extend(utf8_percent_encode(text, RESERVED));
}

/// Whether a segment would be resolved away; servers decode `%2e` before they resolve.
fn is_dots(segment: &str) -> bool {
    let decoded = percent_decode_str(segment);
    decoded.clone().eq(b".".iter().copied()) || decoded.eq(b"..".iter().copied())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn path(template: &str, params: &str) -> Result<String, Unbuildable> {
        let mut out = String::new();
        let template = Template::parse(template).expect("valid");
        Values::new(Some(params), vec![]).fill_path(&mut out, &template).map(|()| out)
    }

    fn base(template: &str, params: &str) -> Result<String, Unbuildable> {
        Values::new(Some(params), vec![]).fill_base(&Template::parse(template).expect("valid"))
    }

    #[test]
    fn values_are_escaped_for_their_place() {
        assert_eq!(path("/c/{a}/x", r#"{"a":"n/e ws?#%"}"#).as_deref(), Ok("/c/n%2Fe%20ws%3F%23%25/x"));
        assert_eq!(path("/{a}", r#"{"a":"é\u0000"}"#).as_deref(), Ok("/%C3%A9%00"));
        assert_eq!(path("/{a}/{b}", r#"{"a":1.10,"b":true}"#).as_deref(), Ok("/1.10/true"));
        assert_eq!(path("/{a}", r#"{"a":9223372036854775807000}"#).as_deref(), Ok("/9223372036854775807000"));
    }

    #[test]
    fn a_value_cannot_climb_out_of_its_segment() {
        assert_eq!(path("/a/{x}/b", r#"{"x":".."}"#), Err(Unbuildable::DotSegment));
        assert_eq!(path("/a/{x}", r#"{"x":"."}"#), Err(Unbuildable::DotSegment));
        assert_eq!(path("/a/{x}{y}", r#"{"x":".","y":"."}"#), Err(Unbuildable::DotSegment));
        assert_eq!(path("/a/{x}", r#"{"x":""}"#), Err(Unbuildable::ParamEmpty("x".into())));
        assert_eq!(path("/a/{x}", r#"{"x":"..."}"#).as_deref(), Ok("/a/..."));
    }

    #[test]
    fn what_is_missing_or_no_scalar_is_named() {
        assert_eq!(path("/{a}", "{}"), Err(Unbuildable::ParamMissing("a".into())));
        for value in ["null", "[]", "{}"] {
            assert_eq!(path("/{a}", &format!(r#"{{"a":{value}}}"#)), Err(Unbuildable::ParamNotScalar("a".into())));
        }
        assert_eq!(path("/{a}", "[]"), Err(Unbuildable::ParamsNotObject));
        assert_eq!(path("/plain", "not even JSON").as_deref(), Ok("/plain"));
    }

    #[test]
    fn a_host_from_data_stays_a_host() {
        assert_eq!(base("http://{t}.example.com/v1", r#"{"t":"shop"}"#).as_deref(), Ok("http://shop.example.com/v1"));
        assert_eq!(base("http://{h}", r#"{"h":"127.0.0.1:80"}"#).as_deref(), Ok("http://127.0.0.1:80"));
        assert_eq!(base("http://h/{p}/x", r#"{"p":"a/b"}"#).as_deref(), Ok("http://h/a%2Fb/x"));
        for evil in ["evil.example:80", "evil.example/", "a@b", "a#", "a b", "a\\\\b"] {
            let params = format!(r#"{{"t":"{evil}"}}"#);
            assert_eq!(base("http://{t}.example.com", &params), Err(Unbuildable::ParamNotHost("t".into())), "{evil}");
        }
        assert_eq!(base("http://h/{p}", r#"{"p":".."}"#), Err(Unbuildable::DotSegment));
    }

    #[test]
    fn what_is_ours_never_says_where_to_go() {
        let own = vec![(Cow::Borrowed("key"), Cow::Borrowed("k1"))];
        let values = Values::new(Some(r#"{"key":"shop"}"#), own);
        let template = Template::parse("http://{key}.example.com").expect("valid");
        assert_eq!(values.fill_base(&template).as_deref(), Ok("http://shop.example.com"));
        assert_eq!(values.get("key").as_deref(), Ok("k1"));
    }

    proptest! {
        #[test]
        fn any_value_comes_back_as_one_segment(value in "\\PC{1,20}") {
            let params = serde_json::json!({ "x": value }).to_string();
            match path("/a/{x}/b", &params) {
                Ok(path) => {
                    let segments: Vec<_> = path.split('/').collect();
                    prop_assert_eq!(segments.len(), 4);
                    prop_assert!(!path.contains(['?', '#']));
                    prop_assert_eq!(percent_decode_str(segments[2]).decode_utf8_lossy(), value);
                }
                Err(error) => {
                    prop_assert_eq!(error, Unbuildable::DotSegment);
                    prop_assert!(value == "." || value == "..");
                }
            }
        }
    }
}
