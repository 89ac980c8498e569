//! The request for a token (RFC 6749 section 4.4.2), and what is read in its answer.

use std::time::Duration;

use bytes::Bytes;
use hyper::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderValue, USER_AGENT};
use hyper::{Method, Request, Uri};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;

use super::super::answer::Answer;
use super::super::build::{Built, OUTBOXD, basic};
use super::super::clean::one_line;
use super::super::mask::Mask;
use crate::core::credentials::{ClientAuth, ClientCredentials};
use crate::core::target::Auth;

/// What needs no escape in a form. Servers that forget to decode the user of `Basic` see most names as they are.
const PLAIN: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_');

/// How long a token is used whose server does not say how long it is good for.
const LIFETIME: Duration = Duration::from_secs(300);

/// A token is given up so long before its end, or a tenth of its life where that is less: a request that is under way
/// needs it until it arrives.
const BEFORE_ITS_END: Duration = Duration::from_secs(30);

/// Whoever waited for a token uses it, however short its life.
const SHORTEST: Duration = Duration::from_secs(1);

/// The longest error code that is shown, in bytes.
const CODE_MAX_BYTES: usize = 64;

/// How a token is asked for; the same every time.
pub(super) struct Ask {
    uri: String,
    body: Bytes,
    basic: Option<String>,
    mask: Mask,
}

/// A token as it was granted.
pub(super) struct Granted {
    pub(super) header: HeaderValue,
    pub(super) text: String,
    /// From when it was asked for.
    pub(super) lifetime: Duration,
}

impl Ask {
    pub(super) fn new(client: &ClientCredentials) -> Self {
        let ClientCredentials { token_url, client_id, client_secret, client_auth, scope, audience } = client;
        let mut body = String::from("grant_type=client_credentials");
        let mut add = |name: &str, value: &str| {
            body.push_str(&format!("&{name}={}", encoded(value)));
        };
        if let Some(scope) = scope {
            add("scope", scope);
        }
        if let Some(audience) = audience {
            add("audience", audience);
        }
        let basic = match client_auth {
            ClientAuth::Basic => Some(basic(&encoded(client_id), &encoded(client_secret.expose()))),
            ClientAuth::Post => {
                add("client_id", client_id);
                add("client_secret", client_secret.expose());
                None
            }
        };
        let mut mask = Mask::new(&Auth::OAuth2(client.clone()));
        if let Some(basic) = &basic {
            mask = mask.and(basic);
        }
        Self { uri: token_url.source().to_owned(), body: Bytes::from(body), basic, mask }
    }

    /// The request.
    pub(super) fn built(&self) -> Result<Built, String> {
        let mut request = Request::new(());
        *request.method_mut() = Method::POST;
        *request.uri_mut() = self.uri.parse::<Uri>().map_err(|_| "`token_url` is not a usable URL".to_owned())?;
        let headers = request.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/x-www-form-urlencoded"));
        headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
        headers.insert(USER_AGENT, OUTBOXD);
        if let Some(basic) = &self.basic {
            let unusable = |_| "the client's credentials cannot be sent as a header".to_owned();
            let mut value = HeaderValue::try_from(format!("Basic {basic}")).map_err(unusable)?;
            value.set_sensitive(true);
            headers.insert(AUTHORIZATION, value);
        }
        Ok(Built { request, body: self.body.clone() })
    }

    /// The token in an answer, or why there is none.
    pub(super) fn granted(&self, answer: &Answer) -> Result<Granted, String> {
        let status = answer.status;
        let json = answer.body.json.as_ref();
        let text_at = |name: &str| json.and_then(|json| json.get(name)).and_then(Value::as_str);
        if !status.is_success() {
            // The code is enough; its description may say anything.
            let code = text_at("error").map(|code| {
                let code = self.mask.apply(code.as_bytes(), CODE_MAX_BYTES, b"");
                format!(": {}", one_line(&code, CODE_MAX_BYTES))
            });
            return Err(format!("the token server answered {}{}", status.as_u16(), code.unwrap_or_default()));
        }
        let Some(token) = text_at("access_token").filter(|token| !token.is_empty()) else {
            return Err(format!("the token server answered {} without a token", status.as_u16()));
        };
        // RFC 6749 section 7.1: a token of a kind that is not understood must not be used.
        if text_at("token_type").is_some_and(|kind| !kind.eq_ignore_ascii_case("bearer")) {
            return Err("the token server gave a token that is no bearer token".to_owned());
        }
        let visible = token.bytes().all(|byte| byte.is_ascii_graphic());
        let header = HeaderValue::try_from(format!("Bearer {token}")).ok().filter(|_| visible);
        let Some(mut header) = header else {
            return Err("the token server gave a token that no header can carry".to_owned());
        };
        header.set_sensitive(true);
        let lifetime = json.and_then(|json| json.get("expires_in")).and_then(seconds).unwrap_or(LIFETIME);
        let lifetime = lifetime.saturating_sub(BEFORE_ITS_END.min(lifetime / 10)).max(SHORTEST);
        Ok(Granted { header, text: token.to_owned(), lifetime })
    }
}

fn encoded(text: &str) -> String {
    utf8_percent_encode(text, PLAIN).to_string()
}

/// A number of seconds, or the same as text, as some servers write it.
fn seconds(value: &Value) -> Option<Duration> {
    let number = match value {
        Value::Number(number) => number.as_f64(),
        Value::String(text) => text.trim().parse().ok(),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    };
    let number = number.filter(|number| *number >= 0.0)?;
    Some(Duration::try_from_secs_f64(number).unwrap_or(Duration::from_secs(u64::from(u32::MAX))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::request::Template;
    use crate::core::target::Secret;
    use crate::destination::answer::End;
    use crate::destination::testing::answer;

    fn client(client_auth: ClientAuth) -> ClientCredentials {
        ClientCredentials {
            token_url: Template::parse("https://id.example/token?tenant=1").expect("a URL"),
            client_id: "release desk".into(),
            client_secret: Secret::new("p:ss+w&rd="),
            client_auth,
            scope: Some("a b".into()),
            audience: Some("https://api.example/".into()),
        }
    }

    #[test]
    fn a_token_is_asked_for_as_the_rfc_says() {
        let built = Ask::new(&client(ClientAuth::Basic)).built().expect("a request");
        assert_eq!(built.request.uri(), "https://id.example/token?tenant=1");
        assert_eq!(
            built.request.headers()["authorization"],
            format!("Basic {}", basic("release%20desk", "p%3Ass%2Bw%26rd%3D"))
        );
        assert!(!format!("{:?}", built.request).contains("Basic"));
        let body = "grant_type=client_credentials&scope=a%20b&audience=https%3A%2F%2Fapi.example%2F";
        assert_eq!(built.body, body);
        let built = Ask::new(&client(ClientAuth::Post)).built().expect("a request");
        assert!(built.request.headers().get("authorization").is_none());
        assert_eq!(built.body, format!("{body}&client_id=release%20desk&client_secret=p%3Ass%2Bw%26rd%3D"));
    }

    fn granted(status: u16, body: &str) -> Result<Duration, String> {
        let granted = Ask::new(&client(ClientAuth::Basic)).granted(&answer(status, &[], body, End::Complete));
        granted.map(|granted| granted.lifetime)
    }

    #[test]
    fn a_token_is_used_until_shortly_before_its_end() {
        let lives = |expires: &str| {
            let life =
                granted(200, &format!("{{\"access_token\":\"t\",\"token_type\":\"BEARER\",\"expires_in\":{expires}}}"));
            life.map(|life| life.as_millis())
        };
        assert_eq!(lives("3600"), Ok(3_570_000));
        assert_eq!(lives("\"60\""), Ok(54_000));
        assert_eq!(lives("0"), Ok(1000));
        assert_eq!(lives("1.5"), Ok(1350));
        for unsaid in ["null", "-1", "\"soon\"", "[]"] {
            assert_eq!(lives(unsaid), Ok(270_000), "{unsaid}");
        }
        assert!(lives("1e300").is_ok_and(|life| life > 1_000_000_000_000));
    }

    #[test]
    fn an_answer_without_a_usable_token_says_why_and_shows_no_secret() {
        for (status, body, why) in [
            (
                400,
                "{\"error\":\"invalid_client\",\"error_description\":\"p:ss+w&rd= is wrong\"}",
                "answered 400: invalid_client",
            ),
            (401, "{\"error\":\"bad p:ss+w&rd=\"}", "answered 401: bad [masked]"),
            (302, "", "answered 302"),
            (500, "<html>", "answered 500"),
            (200, "{}", "answered 200 without a token"),
            (200, "no JSON", "answered 200 without a token"),
            (200, "{\"access_token\":\"\"}", "answered 200 without a token"),
            (200, "{\"access_token\":\"t\",\"token_type\":\"mac\"}", "gave a token that is no bearer token"),
            (200, "{\"access_token\":\"t\\r\\nX-Evil: 1\"}", "gave a token that no header can carry"),
        ] {
            assert_eq!(granted(status, body), Err(format!("the token server {why}")), "{body}");
        }
    }
}
