//! What is planted in a send, what a question carries, and what a hint shows.

use hyper::header::CONTENT_TYPE;
use serde_json::{Value, json};
use uuid::Uuid;

use super::super::*;
use super::carries;
use crate::core::action::{ActionId, AttemptId, Fence};
use crate::core::contract::{Contract, Encode, Key, KeyForm, KeyMode, Place, Question, Reference};
use crate::core::request::Template;
use crate::core::target::{Auth, Secret};
use crate::destination::testing::{header_key, intent, operation, question, target};

const CLAIM: Claim = Claim { attempt: AttemptId(Uuid::from_u128(0xa)), fence: Fence(7) };
const ID: &str = "00000000-0000-0000-0000-000000000001";

fn stem() -> Stem {
    let mut target = target("http://h.example/api");
    target.auth = Auth::Bearer(Secret::new("hunter2"));
    target.account = Some("AC1".into());
    Stem::new(&target)
}

/// Key in a header and a reference in the body.
fn contract() -> Contract {
    let reference = Some(Reference { place: Place::Json("/meta/ref".into()) });
    let key = Some(Key { encode: Encode::SfString, form: KeyForm::Hex, ..header_key() });
    Contract { reference, key, ..operation().terms.contract }
}

fn under(contract: Contract) -> Operation {
    let mut operation = operation();
    operation.terms.contract = contract;
    operation
}

fn planted(contract: Contract, body: &str) -> Result<Built, Unbuildable> {
    stem().send(&under(contract), &intent(body.as_bytes()), &CLAIM)
}

#[test]
fn b24_reference_and_fixed_fields_are_planted_and_every_other_byte_stays() {
    let mut contract = contract();
    contract.key.as_mut().expect("a key").also = vec![
        (Place::Json("/enforce_nonce".into()), json!(true)),
        (Place::Json("/n".into()), json!(1.50)),
        (Place::Header("x-dedupe".into()), json!(true)),
        (Place::Query("strict".into()), json!("y/n")),
    ];
    let built = planted(contract, "{ \"x\":1.10 , \"n\":7}").expect("buildable");
    let body = format!("{{ \"x\":1.10 , \"n\":1.5,\"meta\":{{\"ref\":\"{ID}\"}},\"enforce_nonce\":true}}");
    assert_eq!(String::from_utf8_lossy(&built.body), body);
    assert_eq!(built.request.headers()["x-dedupe"], "true");
    assert_eq!(built.request.headers()["idempotency-key"], "\"00000000000000000000000000000001\"");
    assert_eq!(built.request.uri().query(), Some("strict=y%2Fn"));
}

#[test]
fn a_natural_key_may_be_the_path_that_the_application_chose() {
    let natural = Key::new(KeyMode::Natural, Place::Path("key".into()));
    let mut operation = under(Contract { key: Some(natural), ..Contract::silent("c") });
    let path = |operation: &Operation| {
        stem().send(operation, &intent(b""), &CLAIM).map(|built| built.request.uri().path().to_owned())
    };
    assert_eq!(path(&operation).as_deref(), Ok("/api/x"));
    operation.request.path = Template::parse("/x/{key}").expect("a template");
    assert_eq!(path(&operation), Ok(format!("/api/x/{ID}")));
    let sent = stem().send(&operation, &intent(b""), &CLAIM).expect("buildable");
    assert_eq!(
        Sent::new(&operation, &intent(b""), &sent).value(&Place::Path("key".into())),
        Some(Value::String(ID.into()))
    );
}

#[test]
fn a_form_takes_reference_key_and_fields_as_text() {
    let mut key = Key::new(KeyMode::Dedupe, Place::Form("key".into()));
    key.also = vec![(Place::Form("dedupe".into()), json!(false))];
    let reference = Some(Reference { place: Place::Form("metadata[ref]".into()) });
    let built =
        planted(Contract { key: Some(key), reference, ..Contract::silent("c") }, "a=1&metadata%5Bref%5D=theirs");
    let body = format!("a=1&metadata%5Bref%5D={ID}&dedupe=false&key={ID}");
    assert_eq!(built.expect("buildable").body, body.as_bytes());
}

#[test]
fn what_has_no_place_is_named() {
    let with = |place| Contract { reference: Some(Reference { place }), ..contract() };
    let error = |contract, body| planted(contract, body).err().map(|error| error.to_string());
    assert_eq!(
        error(with(Place::Json("/a/b".into())), "{\"a\":1}").as_deref(),
        Some("the body has no place `/a/b` for the reference")
    );
    assert_eq!(
        error(with(Place::Path("id".into())), "{}").as_deref(),
        Some("the path has no placeholder `id` for the reference")
    );
    let operation = under(with(Place::Header("x-ref".into())));
    let mut given = intent(b"");
    given.headers = Some("{\"X-Ref\":\"mine\"}".into());
    let error = stem().send(&operation, &given, &CLAIM).err().map(|error| error.to_string());
    assert_eq!(error.as_deref(), Some("header `x-ref` cannot be given: it holds the reference"));
}

fn asked(question: &Question, contract: &Contract, params: &str) -> Result<Built, Unbuildable> {
    let mut intent = intent(b"secret body");
    intent.params = Some(params.to_owned());
    intent.headers = Some("{\"X-Given\":\"1\"}".into());
    intent.content_type = Some("text/plain".into());
    stem().question(question, contract, &intent, &CLAIM)
}

#[test]
fn a_question_carries_the_key_where_its_placeholders_are_and_nowhere_else() {
    let mut question = question("GET", "/v1/{shop}/{key}", &[("q", "metadata['ref']:'{ref}'")]);
    question.request.headers = vec![("x-key".into(), Template::parse("k {key}").expect("a template"))];
    let built = asked(&question, &contract(), r#"{"shop":"a/b","key":"data","ref":"data"}"#).expect("buildable");
    assert_eq!(
        built.request.uri().to_string(),
        format!(
            "http://h.example/api/v1/a%2Fb/00000000000000000000000000000001?q=metadata%5B%27ref%27%5D%3A%27{ID}%27"
        )
    );
    let headers = built.request.headers();
    assert_eq!(headers["authorization"], "Bearer hunter2");
    assert_eq!((&headers["outbox-fence"], &headers["outbox-action"]), (&"7".parse().unwrap(), &ID.parse().unwrap()));
    assert_eq!(headers["outbox-attempt"], "00000000-0000-0000-0000-00000000000a");
    assert_eq!(headers["x-key"], "k 00000000000000000000000000000001");
    for absent in ["idempotency-key", "x-given", "content-type", "content-length"] {
        assert!(!headers.contains_key(absent), "{absent}");
    }
    assert!(built.body.is_empty());
}

#[test]
fn a_question_in_json_fills_what_is_a_placeholder_and_leaves_every_other_brace() {
    let mut question = question("POST", "/graphql", &[]);
    question.body = Some(json!({
        "query": "query($id:String!){issue(id:$id){id url}} # {ref} {shop}",
        "variables": { "id": "{key}", "n": "{n}", "{key}": ["{shop}", 1, null, "{key}-{ref}", "{not a name}"] },
    }));
    let built = asked(&question, &contract(), r#"{"n":1.50,"shop":"s"}"#).expect("buildable");
    assert_eq!(built.request.headers()[CONTENT_TYPE], "application/json");
    let hex = "00000000000000000000000000000001";
    assert_eq!(
        String::from_utf8_lossy(&built.body),
        json!({
            "query": format!("query($id:String!){{issue(id:$id){{id url}}}} # {ID} {{shop}}"),
            "variables": { "id": hex, "n": 0, "{key}": ["s", 1, null, format!("{hex}-{ID}"), "{not a name}"] },
        })
        .to_string()
        .replace("\"n\":0", "\"n\":1.50")
    );
    let missing = asked(&question, &contract(), "{}").err();
    assert_eq!(missing, Some(Unbuildable::ParamMissing("n".into())));
    let no_key = asked(&question, &Contract::silent("c"), r#"{"n":1,"shop":"s"}"#).err();
    assert_eq!(no_key, Some(Unbuildable::ParamMissing("ref".into())));
}

#[test]
fn a_question_carries_only_what_its_sends_were_planted_with() {
    let body = |text: &str| Question { body: Some(json!({ "a": [{ "b": text }] })), ..question("POST", "/q", &[]) };
    let silent = under(Contract::silent("c"));
    let only_key = under(Contract { reference: None, ..contract() });
    let both = under(contract());
    let mut by_path = only_key.clone();
    by_path.terms.contract.key = Some(Key::new(KeyMode::Natural, Place::Path("key".into())));
    assert!(!carries(&question("GET", "/{key}", &[]), &by_path), "its own name, not ours");
    by_path.request.path = Template::parse("/{key}").expect("a template");
    assert!(carries(&question("GET", "/{key}", &[]), &by_path));
    for (question, by_both, by_key) in [
        (question("GET", "/{key}", &[]), true, true),
        (question("GET", "/", &[("q", "x{ref}")]), true, false),
        (question("GET", "/{shop}", &[("key", "ref")]), false, false),
        (body("x {key}"), true, true),
        (body("{ref}"), true, false),
        (body("{ key }"), false, false),
    ] {
        assert_eq!(carries(&question, &both), by_both, "{question:?}");
        assert_eq!(carries(&question, &only_key), by_key, "{question:?}");
        assert!(!carries(&question, &silent), "{question:?}");
    }
}

#[test]
fn r17_what_was_sent_is_read_from_the_request_itself() {
    let mut operation = under(contract());
    operation.request.path = Template::parse("/{shop}").expect("a template");
    operation.request.query = vec![("q".into(), Template::parse("a {shop}").expect("a template"))];
    let mut intent = intent(br#"{"amount":1.10,"list":[{"x":null}]}"#);
    intent.params = Some(r#"{"shop":"s/1"}"#.into());
    intent.headers = Some(r#"{"X-Note":"hi"}"#.into());
    let built = stem().send(&operation, &intent, &CLAIM).expect("buildable");
    let sent = Sent::new(&operation, &intent, &built);
    let text = |text: &str| Some(Value::String(text.into()));
    for (place, value) in [
        (Place::Header("idempotency-key".into()), text("00000000000000000000000000000001")),
        (Place::Json("/meta/ref".into()), text(ID)),
        (Place::Json("/amount".into()), serde_json::from_str("1.10").ok()),
        (Place::Json("/gone".into()), None),
        (Place::Header("x-note".into()), text("hi")),
        (Place::Query("q".into()), text("a s/1")),
        (Place::Query("r".into()), None),
        (Place::Path("shop".into()), text("s/1")),
        (Place::Path("gone".into()), None),
    ] {
        assert_eq!(sent.value(&place), value, "{place:?}");
    }
    let built =
        planted(Contract::silent("c"), "amount=20+00&amount%5Bx%5D=%C3%A9&twice=1&twice=1&flag").expect("built");
    let sent = Sent::new(&operation, &intent, &built);
    let form = |field: &str| sent.value(&Place::Form(field.into()));
    assert_eq!((form("amount"), form("amount[x]"), form("flag")), (text("20 00"), text("é"), text("")));
    assert_eq!((form("twice"), form("gone")), (None, None));
}

#[test]
fn a_hint_is_one_line_without_credentials() {
    let hint = question(
        "GET",
        "/{account}/Messages.json",
        &[("To", "{body.To}"), ("Ref", "{body.ref}"), ("Sent", "{sent.date}"), ("k", "{key}")],
    );
    let mut operation = operation();
    let reference = Some(Reference { place: Place::Form("ref".into()) });
    operation.terms.contract = Contract { reference, ..operation.terms.contract };
    let line = |hint: &Question, body: &str, day| stem().hint(hint, &operation, &intent(body.as_bytes()), day);
    assert_eq!(
        line(&hint, "To=%2B1+5&x=1", Some("2026-01-31")).as_deref(),
        Ok(format!("GET http://h.example/api/AC1/Messages.json?To=%2B1%205&Ref={ID}&Sent=2026-01-31&k={ID}").as_str())
    );
    assert_eq!(line(&hint, "To=1", None), Err(Unbuildable::ParamMissing("sent.date".into())));
    assert_eq!(line(&hint, "x=1", Some("2026-01-31")), Err(Unbuildable::ParamMissing("body.To".into())));
}

#[test]
fn a_hint_reads_top_level_members_of_a_json_body() {
    let mut hint = question("POST", "/search", &[("n", "{body.n}")]);
    hint.body = Some(json!({ "text": "{body.text}" }));
    let line = |body: &str| stem().hint(&hint, &operation(), &intent(body.as_bytes()), None);
    assert_eq!(
        line(r#"{"n":1.10,"text":"a\nb"}"#).as_deref(),
        Ok("POST http://h.example/api/search?n=1.10 {\"text\":\"a\\nb\"}")
    );
    assert_eq!(line(r#"{"n":[1],"text":"a"}"#), Err(Unbuildable::ParamMissing("body.n".into())));
    assert_eq!(line("[]"), Err(Unbuildable::ParamMissing("body.n".into())));
}

#[test]
fn two_actions_never_ask_for_the_same() {
    let contract = contract();
    let of = |n| super::ours(&contract, ActionId(Uuid::from_u128(n)));
    assert_ne!(of(1), of(2));
}
