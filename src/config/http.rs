//! The parts of HTTP that a configuration writes down: tokens, headers, base URLs, paths.

use crate::core::request::{Part, Template};

/// A token (RFC 9110 section 5.6.2): what methods and header names are made of.
pub(super) fn is_token(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte))
}

/// Whether a header can carry it: no control character but the tab (RFC 9110 section 5.5).
pub(super) fn is_header_value(text: &str) -> bool {
    text.bytes().all(|byte| byte == b'\t' || (byte >= 0x20 && byte != 0x7f))
}

/// Headers that the daemon, or HTTP itself, writes.
const OURS: [&str; 14] = [
    "connection",
    "content-length",
    "expect",
    "host",
    "keep-alive",
    "outbox-action",
    "outbox-attempt",
    "outbox-fence",
    "proxy-connection",
    "te",
    "traceparent",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// A header name in lower case.
pub(super) fn header_name(text: &str) -> Result<String, String> {
    if !is_token(text) {
        return Err(format!("has {text:?}, which is not a header name"));
    }
    Ok(text.to_ascii_lowercase())
}

/// A header name that may be set by the configuration.
pub(super) fn request_header_name(text: &str) -> Result<String, String> {
    let name = header_name(text)?;
    if OURS.contains(&name.as_str()) {
        return Err(format!("cannot set `{name}`: outboxd writes that header itself"));
    }
    Ok(name)
}

/// A method in upper case.
pub(super) fn method(text: &str) -> Result<String, String> {
    match text {
        _ if !is_token(text) => Err(format!("has {text:?}, which is not an HTTP method")),
        "CONNECT" | "TRACE" => Err(format!("cannot be {text}")),
        _ if text.bytes().any(|byte| byte.is_ascii_lowercase()) => {
            Err(format!("must be in upper case: write \"{}\"", text.to_ascii_uppercase()))
        }
        _ => Ok(text.to_owned()),
    }
}

/// A path template.
pub(super) fn path(text: &str) -> Result<Template, String> {
    if !text.starts_with('/') {
        return Err("must begin with `/`".to_owned());
    }
    if text.contains('?') {
        return Err("must not hold a `?`; write parameters into `query`".to_owned());
    }
    path_characters(text)?;
    template(text)
}

/// A template.
pub(super) fn template(text: &str) -> Result<Template, String> {
    Template::parse(text).map_err(|error| format!("is not a valid template: {error}"))
}

fn path_characters(text: &str) -> Result<(), String> {
    let bad = |c: char| !c.is_ascii_graphic() || "\"#<>\\^`|".contains(c);
    match text.chars().find(|c| bad(*c)) {
        Some(c) => Err(format!("holds {c:?}, which a path must write percent-encoded")),
        None => Ok(()),
    }
}

/// Where tokens are had. The value is never quoted.
pub(super) fn token_url(text: &str) -> Result<Template, String> {
    let (plain, query) = text.split_once('?').map_or((text, None), |(plain, query)| (plain, Some(query)));
    if text.contains(['{', '}']) {
        return Err("must not hold placeholders".to_owned());
    }
    base_url(plain)?;
    if query.is_some_and(|query| query.contains('#')) {
        return Err("must not hold a fragment".to_owned());
    }
    path_characters(query.unwrap_or_default())?;
    template(text)
}

/// A base URL, without slashes at its end. The value is never quoted: people write credentials into URLs.
pub(super) fn base_url(text: &str) -> Result<Template, String> {
    const FORM: &str = "must be https://host[:port][/path] (or http://…)";
    let template = template(text.trim_end_matches('/'))?;
    // A placeholder is judged as the letter that may stand for it.
    let text: String = template.parts().iter().map(stand_in).collect();
    let Some(rest) = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://")) else {
        return Err(format!("{FORM}; it has no such scheme"));
    };
    if rest.contains('@') {
        return Err("must not hold credentials or an `@`; credentials belong in `auth`".to_owned());
    }
    if rest.contains(['?', '#']) {
        return Err("must not hold a query or a fragment; write parameters into the operation's `query`".to_owned());
    }
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let (host, port) = match authority.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((address, tail)) if address.parse::<std::net::Ipv6Addr>().is_ok() => match tail.strip_prefix(':') {
            Some(port) => ("v6", Some(port)),
            None if tail.is_empty() => ("v6", None),
            None => ("", None),
        },
        Some(_) => ("", None),
        None => authority.split_once(':').map_or((authority, None), |(host, port)| (host, Some(port))),
    };
    if host.is_empty() || !host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-_".contains(&byte)) {
        return Err(format!("{FORM}; its host is not valid"));
    }
    let digits = |port: &str| port.bytes().all(|byte| byte.is_ascii_digit());
    if port
        .is_some_and(|port| !digits(port) || port.parse::<u16>().is_ok_and(|n| n == 0) || port.parse::<u16>().is_err())
    {
        return Err(format!("{FORM}; its port is not between 1 and 65535"));
    }
    path_characters(path)?;
    Ok(template)
}

fn stand_in(part: &Part) -> &str {
    match part {
        Part::Text(text) => text,
        Part::Param(_) => "x",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn b79_a_base_url_is_checked_and_never_quoted() {
        assert_eq!(base_url("http://localhost:8080/api/").expect("valid").source(), "http://localhost:8080/api");
        assert_eq!(base_url("https://api.example.com").expect("valid").source(), "https://api.example.com");
        assert_eq!(base_url("http://[::1]:80").expect("valid").source(), "http://[::1]:80");
        for url in ["https://{host}", "https://{shop}.example.com:8443/v1/{version}", "http://{a}-{b}.example"] {
            assert_eq!(base_url(url).expect("valid").source(), url);
        }
        let wrong = [
            "",
            "api.example.com",
            "ftp://h",
            "http://",
            "http://h:0",
            "http://h:99999",
            "http://h:+5",
            "http://user:hunter2@h",
            "http://user:hunter2/x@h",
            "http://h/x?key=hunter2",
            "http://h#hunter2",
            "{scheme}://h",
            "http://h:{port}",
            "http://[{address}]",
            "http://{host",
            "http://{user}@h",
            "http://a b/",
            "http://h/{",
            "http://h/ü",
            "http://[::1",
            "http://[hunter2]/",
        ];
        for url in wrong {
            let refused = base_url(url).expect_err(url);
            assert!(!refused.contains("hunter2"), "{refused}");
        }
    }

    #[test]
    fn a_token_url_is_whole_and_never_quoted() {
        for url in ["https://id.example/oauth/token", "http://[::1]:80/t?tenant=a%20b&x=1", "https://id.example"] {
            assert_eq!(token_url(url).map(|url| url.source().to_owned()).as_deref(), Ok(url));
        }
        let wrong =
            ["", "/token", "https://u:hunter2@h/t", "https://h/{hunter2}", "https://h/t?x=hunter2#f", "https://h/#"];
        for url in wrong {
            let refused = token_url(url).expect_err(url);
            assert!(!refused.contains("hunter2"), "{refused}");
        }
    }

    #[test]
    fn methods_and_header_names_are_tokens() {
        assert_eq!(method("POST").as_deref(), Ok("POST"));
        assert_eq!(method("post"), Err("must be in upper case: write \"POST\"".into()));
        assert!(method("PO ST").is_err() && method("").is_err());
        assert_eq!(request_header_name("X-Kind").as_deref(), Ok("x-kind"));
        assert!(request_header_name("Host").is_err() && request_header_name("x y").is_err());
        assert!(is_header_value("a\tü") && !is_header_value("a\nb"));
    }
}
