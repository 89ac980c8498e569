//! Sends, as they go out.

use super::*;
use crate::core::action::{AttemptId, Fence};
use crate::core::contract::{Encode, KeyForm, Place};
use crate::core::request::Template;
use crate::core::target::{Auth, Secret, Target};
use crate::destination::testing::{header_key, intent, operation, target};
use uuid::Uuid;

const CLAIM: Claim = Claim { attempt: AttemptId(Uuid::from_u128(0xa)), fence: Fence(7) };

fn build(target: &Target, operation: &Operation, intent: &Intent) -> Result<(Request<()>, Bytes), Unbuildable> {
    Stem::new(target).send(operation, intent, &CLAIM).map(|built| (built.request, built.body))
}

fn template(text: &str) -> Template {
    Template::parse(text).expect("valid")
}

#[test]
fn a_request_carries_key_identity_and_credentials() {
    let mut target = target("http://h.example:8080/api");
    target.auth = Auth::Basic { user: "Aladdin".into(), password: Secret::new("open sesame") };
    let mut operation = operation();
    operation.request.path = template("/v1/{channel}/x");
    operation.request.query = vec![("q v".into(), template("a b{n}"))];
    operation.request.headers = vec![("x-shop".into(), template("shop {n}"))];
    let mut intent = intent(b"{\"a\":1.10}");
    intent.params = Some("{\"channel\":\"a/b\",\"n\":1}".into());
    intent.headers = Some("{\"X-Note\":\"hi\"}".into());
    intent.content_type = Some("application/json".into());
    intent.traceparent = Some("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01".into());
    let (request, body) = build(&target, &operation, &intent).expect("buildable");
    assert_eq!(request.uri(), "http://h.example:8080/api/v1/a%2Fb/x?q%20v=a%20b1");
    assert_eq!(body, intent.body);
    let of = |name: &str| request.headers().get(name).and_then(|v| v.to_str().ok()).map(ToOwned::to_owned);
    for (name, value) in [
        ("host", "h.example:8080"),
        ("authorization", "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=="),
        ("idempotency-key", "00000000-0000-0000-0000-000000000001"),
        ("outbox-action", "00000000-0000-0000-0000-000000000001"),
        ("outbox-attempt", "00000000-0000-0000-0000-00000000000a"),
        ("outbox-fence", "7"),
        ("content-type", "application/json"),
        ("x-note", "hi"),
        ("x-shop", "shop 1"),
        ("traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"),
        ("user-agent", concat!("outboxd/", env!("CARGO_PKG_VERSION"))),
    ] {
        assert_eq!(of(name).as_deref(), Some(value), "{name}");
    }
    assert!(!format!("{request:?}").contains("QWxhZGRp"));
}

#[test]
fn the_key_goes_where_the_contract_says() {
    let key = "00000000000000000000000001";
    let with = |place: Place, path: &str| {
        let mut operation = operation();
        operation.request.path = template(path);
        let mut of = header_key();
        of.place = place;
        of.form = KeyForm::Base36;
        operation.terms.contract.key = Some(of);
        operation
    };
    let key = &key[1..];
    let target = target("http://h");
    let intent = intent(b"{\"a\":1.10}");
    let (request, _) = build(&target, &with(Place::Query("k".into()), "/x"), &intent).expect("buildable");
    assert_eq!(request.uri().query(), Some(format!("k={key}").as_str()));
    let (request, _) = build(&target, &with(Place::Path("id".into()), "/x/{id}"), &intent).expect("buildable");
    assert_eq!(request.uri().path(), format!("/x/{key}"));
    let (_, body) = build(&target, &with(Place::Json("/m/k".into()), "/x"), &intent).expect("buildable");
    assert_eq!(body, format!("{{\"a\":1.10,\"m\":{{\"k\":\"{key}\"}}}}").as_bytes());
    let (_, body) = build(&target, &with(Place::Form("k".into()), "/x"), &intent).expect("buildable");
    assert!(body.ends_with(format!("&k={key}").as_bytes()));
    let error = build(&target, &with(Place::Path("id".into()), "/x"), &intent).expect_err("no place");
    assert_eq!(error, Unbuildable::NotInPath { name: "id".into(), what: What::Key });
    let mut quoted = operation();
    quoted.terms.contract.key = Some(crate::core::contract::Key { encode: Encode::SfString, ..header_key() });
    let (request, _) = build(&target, &quoted, &intent).expect("buildable");
    assert_eq!(request.headers()["idempotency-key"], "\"00000000-0000-0000-0000-000000000001\"");
}

#[test]
fn b26_a_nul_in_the_body_goes_out_and_one_in_a_header_does_not() {
    let target = target("http://h");
    let raw = intent(b"a\0b{\"x\":\"\\u0000\"}");
    assert_eq!(build(&target, &operation(), &raw).expect("buildable").1, raw.body);
    let mut bad = intent(b"");
    bad.headers = Some("{\"X-A\":\"\\u0000\"}".into());
    assert_eq!(build(&target, &operation(), &bad).expect_err("refused"), Unbuildable::HeaderValue("x-a".into()));
}

#[test]
fn a_host_may_come_from_data() {
    let mut from_data = intent(b"");
    from_data.params = Some("{\"h\":\"127.0.0.1:9\"}".into());
    let (request, _) = build(&target("http://{h}/v1"), &operation(), &from_data).expect("buildable");
    assert_eq!(request.uri(), "http://127.0.0.1:9/v1/x");
    assert_eq!(build(&target("http://u:pw@h"), &operation(), &from_data).expect_err("refused"), Unbuildable::BaseUrl);
}

#[test]
fn an_empty_body_says_its_length_where_one_is_expected() {
    let mut operation = operation();
    let length = |operation: &Operation| {
        let (request, _) = build(&target("http://h"), operation, &intent(b"")).expect("buildable");
        request.headers().get(header::CONTENT_LENGTH).cloned()
    };
    assert_eq!(length(&operation), Some(HeaderValue::from_static("0")));
    operation.request.method = "GET".into();
    assert_eq!(length(&operation), None);
}

#[test]
fn what_cannot_be_sent_is_refused() {
    let mut operation = operation();
    operation.request.path = template("/x#y");
    assert_eq!(build(&target("http://h"), &operation, &intent(b"")).expect_err("refused"), Unbuildable::Path);
    operation.request.path = template("/x y");
    assert_eq!(build(&target("http://h"), &operation, &intent(b"")).expect_err("refused"), Unbuildable::Path);
    operation.request.path = template("/x");
    operation.request.method = "CONNECT".into();
    assert_eq!(build(&target("http://h"), &operation, &intent(b"")).expect_err("refused"), Unbuildable::Method);
    operation.request.method = "POST".into();
    let mut target = target("http://h");
    target.auth = Auth::Bearer(Secret::new("a\nb"));
    assert_eq!(build(&target, &operation, &intent(b"")).expect_err("refused"), Unbuildable::Credentials);
}
