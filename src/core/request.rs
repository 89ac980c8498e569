//! What a request looks like before an action's values are filled in.

use std::fmt;

use super::contract::Place;

/// Text with `{name}` placeholders. Braces cannot be escaped: neither URLs nor our headers need them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Template {
    source: String,
    parts: Vec<Part>,
}

/// A piece of a template.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Part {
    /// As it stands.
    Text(String),
    /// The value of the param of that name.
    Param(String),
}

/// What is wrong with a template.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum TemplateError {
    /// `{` without `}` or the other way round.
    #[error("a brace without its partner")]
    Unbalanced,
    /// Not `[A-Za-z0-9_.-]+` between the braces.
    #[error("a placeholder needs a name of letters, digits, `_`, `.` or `-`")]
    BadName,
}

impl Template {
    /// Reads a template.
    pub fn parse(source: &str) -> Result<Self, TemplateError> {
        let mut parts = Vec::new();
        let mut rest = source;
        while let Some(open) = rest.find(['{', '}']) {
            let (text, tail) = rest.split_at(open);
            if !text.is_empty() {
                parts.push(Part::Text(text.to_owned()));
            }
            let tail = tail.strip_prefix('{').ok_or(TemplateError::Unbalanced)?;
            let (name, after) = tail.split_once('}').ok_or(TemplateError::Unbalanced)?;
            if name.is_empty() || !name.bytes().all(|b| b.is_ascii_alphanumeric() || b"_.-".contains(&b)) {
                return Err(TemplateError::BadName);
            }
            parts.push(Part::Param(name.to_owned()));
            rest = after;
        }
        if !rest.is_empty() {
            parts.push(Part::Text(rest.to_owned()));
        }
        Ok(Self { source: source.to_owned(), parts })
    }

    /// As it was written.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Its pieces, in order.
    pub fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// The names of its placeholders, in order of appearance.
    pub fn params(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().filter_map(|part| match part {
            Part::Text(_) => None,
            Part::Param(name) => Some(name.as_str()),
        })
    }
}

impl fmt::Display for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.source)
    }
}

/// How a request of one operation is built.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RequestTemplate {
    /// An HTTP method token in upper case.
    pub method: String,
    /// Appended to the destination's base URL; starts with `/`.
    pub path: Template,
    /// Query parameters: name and value, in the order given.
    pub query: Vec<(String, Template)>,
    /// Fixed headers: name in lower case, and value.
    pub headers: Vec<(String, Template)>,
}

impl RequestTemplate {
    /// A request to `/`, with nothing in it.
    pub fn bare(method: &str) -> Self {
        let path = Template { source: "/".to_owned(), parts: vec![Part::Text("/".to_owned())] };
        Self { method: method.to_owned(), path, query: vec![], headers: vec![] }
    }

    /// Whether the key is filled into the path by the template itself.
    pub fn path_takes(&self, place: &Place) -> bool {
        match place {
            Place::Path(name) => self.path.params().any(|param| param == name),
            Place::Header(_) | Place::Json(_) | Place::Form(_) | Place::Query(_) => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_template_is_cut_at_its_placeholders() {
        let template = Template::parse("/v1/channels/{channel}/x{y}").expect("valid");
        assert_eq!(template.params().collect::<Vec<_>>(), ["channel", "y"]);
        assert_eq!(template.parts().len(), 4);
        assert_eq!(template.to_string(), "/v1/channels/{channel}/x{y}");
        assert!(Template::parse("").expect("valid").parts().is_empty());
    }

    #[test]
    fn unbalanced_braces_and_bad_names_are_refused() {
        assert_eq!(Template::parse("/{a"), Err(TemplateError::Unbalanced));
        assert_eq!(Template::parse("/a}"), Err(TemplateError::Unbalanced));
        assert_eq!(Template::parse("/{}"), Err(TemplateError::BadName));
        assert_eq!(Template::parse("/{a b}"), Err(TemplateError::BadName));
        assert_eq!(Template::parse("/{a{b}}"), Err(TemplateError::BadName));
    }
}
