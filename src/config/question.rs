//! The placeholders of a request about an action: our key, our reference, the action's params and, for people, what
//! was sent.

use serde_json::Value;

use crate::core::contract::{Contract, Question};
use crate::core::request::{Part, RequestTemplate, Template};

/// The names of its placeholders, each once.
pub(super) fn names(question: &Question) -> Vec<String> {
    let request = &question.request;
    let values = request.query.iter().chain(&request.headers).map(|(_, value)| value);
    let templates = [&request.path].into_iter().chain(values);
    let mut names: Vec<String> = templates.flat_map(Template::params).map(str::to_owned).collect();
    if let Some(body) = &question.body {
        names_in(body, &mut names);
    }
    names.sort_unstable();
    names.dedup();
    names
}

/// Whether it names the key, or our reference, where a destination looks for what is asked: not in a header.
pub(super) fn asks_by(question: &Question) -> (bool, bool) {
    let request = RequestTemplate { headers: vec![], ..question.request.clone() };
    let asked = names(&Question { request, body: question.body.clone() });
    (asked.iter().any(|name| name == "key"), asked.iter().any(|name| name == "ref"))
}

/// A string of a body may hold `{key}` and `{ref}` anywhere, or be one placeholder; other braces are text, as GraphQL
/// needs them.
fn names_in(body: &Value, names: &mut Vec<String>) {
    match body {
        Value::String(text) => match Template::parse(text).as_ref().map(Template::parts) {
            Ok([Part::Param(name)]) => names.push(name.clone()),
            Ok(_) | Err(_) => {
                let ours = ["key", "ref"].into_iter().filter(|name| text.contains(&format!("{{{name}}}")));
                names.extend(ours.map(str::to_owned));
            }
        },
        Value::Array(items) => items.iter().for_each(|item| names_in(item, names)),
        Value::Object(members) => members.values().for_each(|member| names_in(member, names)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// What is wrong with its placeholders. `for_people` = what was sent may be named too.
pub(super) fn complaints(question: &Question, contract: &Contract, for_people: bool) -> Vec<String> {
    let complaint = |name: &String| match name.as_str() {
        "key" if contract.key.is_none() => Some("holds `{key}`, but the contract has no key".to_owned()),
        "ref" if contract.reference.is_none() => Some("holds `{ref}`, but the contract has no `ref`".to_owned()),
        sent if sent.starts_with("sent.") && !for_people => {
            Some(format!("holds `{{{sent}}}`, which only `hint` can have"))
        }
        body if body.starts_with("body.") && !for_people => {
            Some(format!("holds `{{{body}}}`, which only `hint` can have"))
        }
        sent if sent.starts_with("sent.") && sent != "sent.date" => {
            Some(format!("holds `{{{sent}}}`; of what was sent there is only `{{sent.date}}` and `{{body.NAME}}`"))
        }
        _ => None,
    };
    names(question).iter().filter_map(complaint).collect()
}
