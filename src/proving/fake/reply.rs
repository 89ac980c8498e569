//! A complete answer.

use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{HeaderName, HeaderValue};
use hyper::{Response, StatusCode};

/// Stands for the effect's receipt in a reply's body and header values.
pub const RECEIPT: &str = "{receipt}";

/// A complete answer. [`RECEIPT`] in its body and header values becomes the receipt of the request's effect, if it has
/// one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// 100 to 999.
    pub status: u16,
    /// In this order, repeats allowed. `Content-Length` is added.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Bytes,
}

impl Reply {
    /// A status and nothing else.
    pub fn new(status: u16) -> Self {
        Self { status, headers: Vec::new(), body: Bytes::new() }
    }

    /// A status and a JSON text.
    pub fn json(status: u16, body: impl Into<Bytes>) -> Self {
        Self::new(status).header("content-type", "application/json").body(body)
    }

    /// 201 with `{"id":"…"}`, the receipt.
    pub fn receipt() -> Self {
        Self::json(201, Bytes::from_static(br#"{"id":"{receipt}"}"#))
    }

    /// With one more header.
    #[must_use]
    pub fn header(mut self, name: &str, value: impl Into<String>) -> Self {
        self.headers.push((name.to_owned(), value.into()));
        self
    }

    /// With this body.
    #[must_use]
    pub fn body(mut self, body: impl Into<Bytes>) -> Self {
        self.body = body.into();
        self
    }

    /// With the receipt put in, and marked when it repeats an earlier effect's answer.
    pub(super) fn filled(mut self, receipt: Option<&str>, replayed: bool) -> Self {
        if let Some(receipt) = receipt {
            if let Ok(text) = std::str::from_utf8(&self.body)
                && text.contains(RECEIPT)
            {
                self.body = text.replace(RECEIPT, receipt).into();
            }
            for (_, value) in self.headers.iter_mut().filter(|(_, value)| value.contains(RECEIPT)) {
                *value = value.replace(RECEIPT, receipt);
            }
        }
        match replayed {
            true => self.header("idempotent-replayed", "true"),
            false => self,
        }
    }

    /// For hyper. What HTTP cannot carry becomes a 500 that says so.
    pub(super) fn into_response(self) -> Response<Full<Bytes>> {
        let mut response = Response::new(Full::new(self.body));
        let status = StatusCode::from_u16(self.status).ok();
        *response.status_mut() = status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        for (name, value) in self.headers {
            match (HeaderName::try_from(name), HeaderValue::try_from(value)) {
                (Ok(name), Ok(value)) => drop(response.headers_mut().append(name, value)),
                (Err(_), _) | (_, Err(_)) => {
                    *response.status_mut() = StatusCode::INTERNAL_SERVER_ERROR;
                    *response.body_mut() =
                        Full::new(Bytes::from_static(b"the fake was given a header nobody can send"));
                }
            }
        }
        response
    }

    /// As bytes on the wire, to be sent by hand.
    pub fn to_wire(&self) -> Vec<u8> {
        let reason = StatusCode::from_u16(self.status).ok().and_then(|s| s.canonical_reason()).unwrap_or("Whatever");
        let mut head = format!("HTTP/1.1 {} {reason}\r\n", self.status);
        for (name, value) in &self.headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        head.push_str(&format!("content-length: {}\r\n\r\n", self.body.len()));
        [head.as_bytes(), &self.body].concat()
    }
}
