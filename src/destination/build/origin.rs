//! Where requests go: a base URL in its pieces.

use hyper::Uri;
use hyper::header::HeaderValue;
use hyper::http::uri::{Authority, PathAndQuery, Scheme};

use super::unbuildable::Unbuildable;

/// A base URL in its pieces.
pub(super) struct Origin {
    pub(super) scheme: Scheme,
    pub(super) authority: Authority,
    pub(super) host: HeaderValue,
    /// What the path of every request begins with; empty or `/…`.
    pub(super) path: String,
}

impl Origin {
    /// Splits a URL that holds nothing but where to go.
    pub(super) fn parse(url: &str) -> Result<Self, Unbuildable> {
        let parts = url.parse::<Uri>().map_err(|_| Unbuildable::BaseUrl)?.into_parts();
        let (Some(scheme), Some(authority)) = (parts.scheme, parts.authority) else {
            return Err(Unbuildable::BaseUrl);
        };
        let host = authority.host();
        let port = authority.port_u16();
        // Whole, or something else hides in it: credentials, or a port that is none.
        let whole = port.map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"));
        if whole != authority.as_str() || host.is_empty() {
            return Err(Unbuildable::BaseUrl);
        }
        let is_default = (scheme == Scheme::HTTP && port == Some(80)) || (scheme == Scheme::HTTPS && port == Some(443));
        let host = HeaderValue::from_str(if is_default { host } else { &whole }).map_err(|_| Unbuildable::BaseUrl)?;
        let path = parts.path_and_query.as_ref().map_or("", PathAndQuery::as_str);
        if path.contains('?') {
            return Err(Unbuildable::BaseUrl);
        }
        let path = path.strip_suffix('/').unwrap_or(path).to_owned();
        Ok(Self { scheme, authority, host, path })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_base_url_holds_nothing_but_where_to_go() {
        for url in ["http://user:pw@h", "http://h:port", "http://h:", "http://h/x?y=1", "h", "/x", "http://"] {
            assert_eq!(Origin::parse(url).map(|_| ()), Err(Unbuildable::BaseUrl), "{url}");
        }
        for (url, host, path) in [
            ("http://h", "h", ""),
            ("http://h/", "h", ""),
            ("http://h:80/a", "h", "/a"),
            ("http://h:81/a/", "h:81", "/a"),
            ("https://h:443", "h", ""),
            ("http://[::1]:9/", "[::1]:9", ""),
        ] {
            let origin = Origin::parse(url).expect("usable");
            assert_eq!((origin.host.to_str().expect("text"), origin.path.as_str()), (host, path), "{url}");
        }
    }
}
