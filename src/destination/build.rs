//! The request of one attempt, from the operation's templates and the action's intent.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use bytes::Bytes;
use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
use hyper::http::uri::PathAndQuery;
use hyper::{Method, Request, Uri};
use uuid::fmt::Hyphenated;

use super::Claim;
use super::fill::{Values, Within, push_encoded};
use super::headers::{Reserved, Rule, add_from_data, is_framing, is_traceparent, set, visible};
use super::key_in_body;
use super::origin::Origin;
use super::unbuildable::Unbuildable;
use crate::core::action::Intent;
use crate::core::contract::Place;
use crate::core::request::{RequestTemplate, Template};
use crate::core::target::{Auth, Operation, Target};

const USER_AGENT: HeaderValue = HeaderValue::from_static(concat!("outboxd/", env!("CARGO_PKG_VERSION")));
const OUTBOX_ACTION: HeaderName = HeaderName::from_static("outbox-action");
const OUTBOX_ATTEMPT: HeaderName = HeaderName::from_static("outbox-attempt");
const OUTBOX_FENCE: HeaderName = HeaderName::from_static("outbox-fence");
const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");

/// What is the same in every request to one destination, worked out once.
pub(super) struct Stem {
    base: Base,
    /// Header and value; `None` where the destination doesn't know us.
    auth: Result<Option<(HeaderName, HeaderValue)>, Unbuildable>,
}

enum Base {
    Fixed(Result<Origin, Unbuildable>),
    Templated(Template),
}

impl Stem {
    pub(super) fn new(target: &Target) -> Self {
        let base = if target.base_url.params().next().is_some() {
            Base::Templated(target.base_url.clone())
        } else {
            Base::Fixed(Origin::parse(target.base_url.source()))
        };
        Self { base, auth: auth_header(&target.auth) }
    }

    /// The request, its body apart.
    pub(super) fn request(
        &self,
        operation: &Operation,
        intent: &Intent,
        claim: &Claim,
    ) -> Result<(Request<()>, Bytes), Unbuildable> {
        let template = &operation.request;
        let key = operation.terms.contract.key.as_ref();
        let key = key.map(|key| (&key.place, key.render(intent.id)));
        let key = key.as_ref().map(|(place, key)| (*place, key.as_str()));

        let in_path = match key {
            Some((Place::Path(name), _)) if !template.path_takes(&Place::Path(name.clone())) => {
                return Err(Unbuildable::KeyPath(name.clone()));
            }
            Some((Place::Path(name), key)) => Some((name.as_str(), key)),
            Some((Place::Header(_) | Place::Json(_) | Place::Form(_) | Place::Query(_), _)) | None => None,
        };
        let values = Values::new(intent.params.as_deref(), in_path);

        let filled;
        let origin = match &self.base {
            Base::Fixed(Ok(origin)) => origin,
            Base::Fixed(Err(error)) => return Err(error.clone()),
            Base::Templated(template) => {
                filled = Origin::parse(&values.fill_base(template)?)?;
                &filled
            }
        };
        let mut request = Request::new(());
        *request.method_mut() = method(template)?;
        *request.uri_mut() = uri(origin, template, &values, key)?;
        self.headers(request.headers_mut(), origin, template, &values, key, intent, claim)?;
        let body = body(intent, key)?;
        // RFC 9110 section 8.6; hyper leaves it out and some servers answer 411.
        if body.is_empty() && matches!(*request.method(), Method::POST | Method::PUT | Method::PATCH) {
            request.headers_mut().insert(header::CONTENT_LENGTH, HeaderValue::from_static("0"));
        }
        Ok((request, body))
    }

    #[allow(clippy::too_many_arguments, reason = "one list of headers, in the order of who has the last word")]
    fn headers(
        &self,
        out: &mut HeaderMap,
        origin: &Origin,
        template: &RequestTemplate,
        values: &Values<'_>,
        key: Option<(&Place, &str)>,
        intent: &Intent,
        claim: &Claim,
    ) -> Result<(), Unbuildable> {
        let auth = self.auth.as_ref().map_err(Clone::clone)?;
        let key = match key {
            Some((Place::Header(name), key)) => Some((name.as_str(), key)),
            Some((Place::Json(_) | Place::Form(_) | Place::Query(_) | Place::Path(_), _)) | None => None,
        };
        out.reserve(10 + template.headers.len());
        out.insert(header::HOST, origin.host.clone());
        out.insert(header::USER_AGENT, USER_AGENT);
        if let Some(content_type) = &intent.content_type {
            set(out, header::CONTENT_TYPE, content_type)?;
        }
        for (index, (name, value)) in template.headers.iter().enumerate() {
            let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| Unbuildable::HeaderName(index + 1))?;
            if is_framing(&name) {
                return Err(Unbuildable::HeaderReserved { name: name.as_str().to_owned(), rule: Rule::Framing });
            }
            let mut filled = String::new();
            values.fill(&mut filled, value, Within::Whole)?;
            set(out, name, &filled)?;
        }
        if let Some(given) = &intent.headers {
            let reserved =
                Reserved { auth: auth.as_ref().map(|(name, _)| name.as_str()), key: key.map(|(name, _)| name) };
            add_from_data(out, given, &reserved)?;
        }
        if let Some(traceparent) = intent.traceparent.as_deref().filter(|text| is_traceparent(text)) {
            set(out, TRACEPARENT, traceparent)?;
        }
        if let Some((name, value)) = auth {
            out.insert(name.clone(), value.clone());
        }
        if let Some((name, key)) = key {
            let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| Unbuildable::KeyHeader)?;
            set(out, name, key).map_err(|_| Unbuildable::KeyHeader)?;
        }
        let mut id = [0; Hyphenated::LENGTH];
        set(out, OUTBOX_ACTION, intent.id.0.hyphenated().encode_lower(&mut id))?;
        set(out, OUTBOX_ATTEMPT, claim.attempt.0.hyphenated().encode_lower(&mut id))?;
        out.insert(OUTBOX_FENCE, HeaderValue::from(claim.fence.0));
        Ok(())
    }
}

fn auth_header(auth: &Auth) -> Result<Option<(HeaderName, HeaderValue)>, Unbuildable> {
    let (name, value) = match auth {
        Auth::None => return Ok(None),
        Auth::Bearer(token) => (header::AUTHORIZATION, format!("Bearer {}", token.expose())),
        Auth::Basic { user, password } => (header::AUTHORIZATION, format!("Basic {}", basic(user, password.expose()))),
        Auth::Header { name, value } => {
            let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| Unbuildable::Credentials)?;
            (name, value.expose().to_owned())
        }
    };
    let mut value = visible(&value).ok_or(Unbuildable::Credentials)?;
    value.set_sensitive(true);
    Ok(Some((name, value)))
}

/// The credentials of RFC 7617.
pub(super) fn basic(user: &str, password: &str) -> String {
    BASE64.encode(format!("{user}:{password}"))
}

fn method(template: &RequestTemplate) -> Result<Method, Unbuildable> {
    match Method::from_bytes(template.method.as_bytes()) {
        // A tunnel is not a request to a resource.
        Ok(Method::CONNECT) | Err(_) => Err(Unbuildable::Method),
        Ok(method) => Ok(method),
    }
}

fn uri(
    origin: &Origin,
    template: &RequestTemplate,
    values: &Values<'_>,
    key: Option<(&Place, &str)>,
) -> Result<Uri, Unbuildable> {
    let mut text = String::with_capacity(128);
    text.push_str(&origin.path);
    values.fill_path(&mut text, &template.path)?;
    let key = match key {
        Some((Place::Query(name), key)) => Some((name.as_str(), key)),
        Some((Place::Json(_) | Place::Form(_) | Place::Header(_) | Place::Path(_), _)) | None => None,
    };
    let mut separator = if text.contains('?') { '&' } else { '?' };
    let mut begin = |text: &mut String, name: &str| {
        text.push(separator);
        separator = '&';
        push_encoded(text, name);
        text.push('=');
    };
    for (name, value) in &template.query {
        if key.is_none_or(|(key, _)| key != name) {
            begin(&mut text, name);
            // The template's own text is a value like any other.
            let mut filled = String::new();
            values.fill(&mut filled, value, Within::Whole)?;
            push_encoded(&mut text, &filled);
        }
    }
    if let Some((name, key)) = key {
        begin(&mut text, name);
        push_encoded(&mut text, key);
    }
    let length = text.len();
    let path = PathAndQuery::from_maybe_shared(Bytes::from(text)).map_err(|_| Unbuildable::Path)?;
    // The parser drops what follows a `#`.
    if path.as_str().len() != length || !path.as_str().starts_with('/') {
        return Err(Unbuildable::Path);
    }
    Uri::builder()
        .scheme(origin.scheme.clone())
        .authority(origin.authority.clone())
        .path_and_query(path)
        .build()
        .map_err(|_| Unbuildable::BaseUrl)
}

fn body(intent: &Intent, key: Option<(&Place, &str)>) -> Result<Bytes, Unbuildable> {
    match key {
        Some((Place::Json(pointer), key)) => key_in_body::into_json(&intent.body, pointer, key)
            .map(Bytes::from)
            .ok_or_else(|| Unbuildable::KeyJson(pointer.clone())),
        Some((Place::Form(field), key)) => {
            key_in_body::into_form(&intent.body, field, key).map(Bytes::from).ok_or(Unbuildable::KeyForm)
        }
        Some((Place::Header(_) | Place::Query(_) | Place::Path(_), _)) | None => Ok(intent.body.clone()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::action::{AttemptId, Fence};
    use crate::core::contract::{Encode, KeyForm};
    use crate::core::target::Secret;
    use crate::destination::testing::{header_key, intent, operation, target};
    use uuid::Uuid;

    const CLAIM: Claim = Claim { attempt: AttemptId(Uuid::from_u128(0xa)), fence: Fence(7) };

    fn build(target: &Target, operation: &Operation, intent: &Intent) -> Result<(Request<()>, Bytes), Unbuildable> {
        Stem::new(target).request(operation, intent, &CLAIM)
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
        assert_eq!(error, Unbuildable::KeyPath("id".into()));
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
        assert_eq!(
            build(&target("http://u:pw@h"), &operation(), &from_data).expect_err("refused"),
            Unbuildable::BaseUrl
        );
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
}
