//! What is the same in every request to one destination, and the head that grows from it.

use std::time::SystemTime;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use bytes::Bytes;
use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
use hyper::http::uri::PathAndQuery;
use hyper::{Method, Request, Uri};
use uuid::Uuid;
use uuid::fmt::Hyphenated;

use super::Built;
use super::fill::{Values, Within, push_encoded};
use super::headers::{Reserved, Rule, add_from_data, is_framing, is_traceparent, set, visible};
use super::origin::Origin;
use super::planting::Planting;
use super::sign::Signer;
use super::unbuildable::Unbuildable;
use crate::core::action::Intent;
use crate::core::request::{RequestTemplate, Template};
use crate::core::target::{Auth, Target};
use crate::destination::Claim;

/// Who asks.
pub(in crate::destination) const OUTBOXD: HeaderValue =
    HeaderValue::from_static(concat!("outboxd/", env!("CARGO_PKG_VERSION")));
const OUTBOX_ACTION: HeaderName = HeaderName::from_static("outbox-action");
const OUTBOX_ATTEMPT: HeaderName = HeaderName::from_static("outbox-attempt");
const OUTBOX_FENCE: HeaderName = HeaderName::from_static("outbox-fence");
const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");

/// What is the same in every request to one destination, worked out once.
pub(in crate::destination) struct Stem {
    base: Base,
    /// Header and value; `None` where the destination doesn't know us.
    auth: Result<Option<(HeaderName, HeaderValue)>, Unbuildable>,
    /// What signs its requests; `None` = nothing does.
    signer: Result<Option<Signer>, Unbuildable>,
    /// Whose account the credentials are.
    pub(super) account: Option<String>,
}

enum Base {
    Fixed(Result<Origin, Unbuildable>),
    Templated(Template),
}

/// One request before it is filled in.
pub(super) struct Draft<'a> {
    pub(super) template: &'a RequestTemplate,
    pub(super) values: &'a Values<'a>,
    pub(super) plantings: &'a [Planting<'a>],
    pub(super) content_type: Option<&'a str>,
    /// JSON object text with headers from data.
    pub(super) given: Option<&'a str>,
}

impl Stem {
    pub(in crate::destination) fn new(target: &Target) -> Self {
        let base = if target.base_url.params().next().is_some() {
            Base::Templated(target.base_url.clone())
        } else {
            Base::Fixed(Origin::parse(target.base_url.source()))
        };
        let signer = target.signing.as_ref().map(Signer::new).transpose();
        Self { base, auth: auth_header(&target.auth), signer, account: target.account.clone() }
    }

    /// The same as the message of that id, where messages have one.
    pub(super) fn named(&self, mut request: Request<()>, id: Uuid) -> Result<Request<()>, Unbuildable> {
        if self.signer.as_ref().map_err(Clone::clone)?.is_some() {
            Signer::name(request.headers_mut(), id)?;
        }
        Ok(request)
    }

    /// Signs it, where requests are signed, as it is now.
    pub(in crate::destination) fn sign(&self, built: &mut Built, at: SystemTime) -> Result<(), Unbuildable> {
        match self.signer.as_ref().map_err(Clone::clone)? {
            None => Ok(()),
            Some(signer) => signer.sign(built.request.headers_mut(), &built.body, at),
        }
    }

    /// The request, its body apart.
    pub(super) fn head(&self, draft: &Draft<'_>, intent: &Intent, claim: &Claim) -> Result<Request<()>, Unbuildable> {
        let mut request = Request::new(());
        *request.method_mut() = method(draft.template)?;
        let (uri, host) = self.uri(draft)?;
        *request.uri_mut() = uri;
        self.headers(request.headers_mut(), host, draft, intent, claim)?;
        Ok(request)
    }

    /// Where it goes, and the `Host` header that says so.
    pub(super) fn uri(&self, draft: &Draft<'_>) -> Result<(Uri, HeaderValue), Unbuildable> {
        match &self.base {
            Base::Fixed(Ok(origin)) => Ok((uri(origin, draft)?, origin.host.clone())),
            Base::Fixed(Err(error)) => Err(error.clone()),
            Base::Templated(template) => {
                let origin = Origin::parse(&draft.values.fill_base(template)?)?;
                Ok((uri(&origin, draft)?, origin.host))
            }
        }
    }

    fn headers(
        &self,
        out: &mut HeaderMap,
        host: HeaderValue,
        draft: &Draft<'_>,
        intent: &Intent,
        claim: &Claim,
    ) -> Result<(), Unbuildable> {
        let auth = self.auth.as_ref().map_err(Clone::clone)?;
        out.reserve(10 + draft.template.headers.len());
        out.insert(header::HOST, host);
        out.insert(header::USER_AGENT, OUTBOXD);
        if let Some(content_type) = draft.content_type {
            set(out, header::CONTENT_TYPE, content_type)?;
        }
        for (index, (name, value)) in draft.template.headers.iter().enumerate() {
            let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| Unbuildable::HeaderName(index + 1))?;
            if is_framing(&name) {
                return Err(Unbuildable::HeaderReserved { name: name.as_str().to_owned(), rule: Rule::Framing });
            }
            let mut filled = String::new();
            draft.values.fill(&mut filled, value, Within::Whole)?;
            set(out, name, &filled)?;
        }
        if let Some(given) = draft.given {
            let signer = self.signer.as_ref().map_err(Clone::clone)?.as_ref();
            let auth = auth.as_ref().map(|(name, _)| name.as_str());
            let reserved = Reserved { auth, signer, plantings: draft.plantings };
            add_from_data(out, given, &reserved)?;
        }
        if let Some(traceparent) = intent.traceparent.as_deref().filter(|text| is_traceparent(text)) {
            set(out, TRACEPARENT, traceparent)?;
        }
        if let Some((name, value)) = auth {
            out.insert(name.clone(), value.clone());
        }
        for planting in draft.plantings {
            if let Some(name) = planting.header() {
                let not_a_header = Unbuildable::NotAHeader { what: planting.what };
                let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| not_a_header.clone())?;
                set(out, name, &planting.text()).map_err(|_| not_a_header)?;
            }
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
        // A token is written in when there is one.
        Auth::None | Auth::OAuth2(_) => return Ok(None),
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
pub(in crate::destination) fn basic(user: &str, password: &str) -> String {
    BASE64.encode(format!("{user}:{password}"))
}

fn method(template: &RequestTemplate) -> Result<Method, Unbuildable> {
    match Method::from_bytes(template.method.as_bytes()) {
        // A tunnel is not a request to a resource.
        Ok(Method::CONNECT) | Err(_) => Err(Unbuildable::Method),
        Ok(method) => Ok(method),
    }
}

fn uri(origin: &Origin, draft: &Draft<'_>) -> Result<Uri, Unbuildable> {
    let mut text = String::with_capacity(128);
    text.push_str(&origin.path);
    draft.values.fill_path(&mut text, &draft.template.path)?;
    let mut separator = if text.contains('?') { '&' } else { '?' };
    let mut begin = |text: &mut String, name: &str| {
        text.push(separator);
        separator = '&';
        push_encoded(text, name);
        text.push('=');
    };
    for (name, value) in &draft.template.query {
        if !draft.plantings.iter().any(|planting| planting.query() == Some(name)) {
            begin(&mut text, name);
            // The template's own text is a value like any other.
            let mut filled = String::new();
            draft.values.fill(&mut filled, value, Within::Whole)?;
            push_encoded(&mut text, &filled);
        }
    }
    for planting in draft.plantings {
        if let Some(name) = planting.query() {
            begin(&mut text, name);
            push_encoded(&mut text, &planting.text());
        }
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
