//! Places: where something stands in a request, or in an answer.

use super::http;
use super::later::NOT_YET;
use super::problem::Reported;
use super::table::Table;
use crate::core::contract::{Compare, Place, Source};
use crate::core::request::Template;

/// A place in a request.
pub(super) fn place(text: &str) -> Result<Place, String> {
    const PLACES: &str =
        "`header:Name`, `json:/pointer`, `form:name`, `query:name`, `path:name` or `gql-var:name.name`";
    match text.split_once(':') {
        Some(("header", name)) => http::request_header_name(name).map(Place::Header),
        Some(("json", pointer)) if pointer.len() > 1 => json_pointer(pointer).map(Place::Json),
        Some(("form", name)) if !name.is_empty() => Ok(Place::Form(name.to_owned())),
        Some(("query", name)) if !name.is_empty() => Ok(Place::Query(name.to_owned())),
        Some(("path", name)) if Template::parse(&format!("{{{name}}}")).is_ok_and(|t| t.parts().len() == 1) => {
            Ok(Place::Path(name.to_owned()))
        }
        Some(("gql-var", path)) => graphql_variable(path).map(Place::Json),
        Some((kind @ "prop", _)) => Err(format!("`{kind}:` {NOT_YET}; it can be {PLACES}")),
        Some(_) | None => Err(format!("must be {PLACES}, found {text:?}")),
    }
}

/// A variable of a GraphQL request, or a field in one. GraphQL over HTTP sends them as the member `variables` of a JSON
/// object.
fn graphql_variable(path: &str) -> Result<String, String> {
    let is_name =
        |name: &str| !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    match path.split('.').all(is_name) {
        true => Ok(format!("/variables/{}", path.replace('.', "/"))),
        false => Err(format!("has `gql-var:{path}`, which must be names like `gql-var:input.id`")),
    }
}

/// A place in an answer.
pub(super) fn source(text: &str) -> Result<Source, String> {
    match text.split_once(':') {
        Some(("header", name)) => http::header_name(name).map(Source::Header),
        Some(("json", pointer)) => json_pointer(pointer).map(Source::Json),
        Some(_) | None => Err(format!("must be `header:Name` or `json:/pointer`, found {text:?}")),
    }
}

/// A JSON pointer (RFC 6901).
pub(super) fn json_pointer(text: &str) -> Result<String, String> {
    let escapes = text.split('~').skip(1).all(|rest| rest.starts_with(['0', '1']));
    match (text.is_empty() || text.starts_with('/')) && escapes {
        true => Ok(text.to_owned()),
        false => Err(format!("has {text:?}, which is not a JSON pointer like \"/error/code\"")),
    }
}

/// The place under a key, if it is given.
pub(super) fn place_if(table: &Table<'_>, key: &str) -> Result<Option<Place>, Reported> {
    let text = table.text_if(key)?;
    text.map(|text| place(&text).map_err(|complaint| table.wrong(key, complaint))).transpose()
}

/// The place in an answer under a key, if it is given.
pub(super) fn source_if(table: &Table<'_>, key: &str) -> Result<Option<Source>, Reported> {
    let text = table.text_if(key)?;
    text.map(|text| source(&text).map_err(|complaint| table.wrong(key, complaint))).transpose()
}

/// `compare`: pointers into an answer, each with the place of what was sent.
pub(super) fn compare(table: &Table<'_>) -> Result<Vec<Compare>, Reported> {
    table.each("compare", |answer, value| {
        let sent =
            value.as_str().ok_or_else(|| format!("has `{answer}`, which must name a place like \"json:/amount\""))?;
        let sent = place(sent).map_err(|complaint| format!("has `{answer}`, which {complaint}"))?;
        Ok(Compare { answer: json_pointer(answer)?, sent })
    })
}

/// As it is written.
pub(super) fn show_place(place: &Place) -> String {
    match place {
        Place::Header(name) => format!("header:{name}"),
        Place::Json(pointer) => format!("json:{pointer}"),
        Place::Form(name) => format!("form:{name}"),
        Place::Query(name) => format!("query:{name}"),
        Place::Path(name) => format!("path:{name}"),
    }
}

/// As it is written.
pub(super) fn show_source(source: &Source) -> String {
    match source {
        Source::Header(name) => format!("header:{name}"),
        Source::Json(pointer) => format!("json:{pointer}"),
    }
}
