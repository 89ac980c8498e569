//! An external system as the configuration describes it, and an operation on it.

use std::fmt;
use std::time::Duration;

use sha2::{Digest as _, Sha256};

use super::contract::Contract;
use super::credentials::{ClientCredentials, Signing};
use super::request::{RequestTemplate, Template};
use super::terms::{Pins, Terms};

/// A value that is sent and never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Keeps a value from being shown.
    pub fn new(value: impl Into<String>) -> Self {
        Self(value.into())
    }

    /// The value, for the one place that sends it.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[secret]")
    }
}

/// How a destination knows us.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Auth {
    /// It doesn't.
    None,
    /// `Authorization: Bearer …`
    Bearer(Secret),
    /// `Authorization: Basic …`
    Basic {
        /// Without a colon.
        user: String,
        /// Any text.
        password: Secret,
    },
    /// A header of its own.
    Header {
        /// In lower case.
        name: String,
        /// The whole value.
        value: Secret,
    },
    /// `Authorization: Bearer …` with a token that is fetched.
    OAuth2(ClientCredentials),
}

/// Whom TLS connections trust, and how we show who we are.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Tls {
    /// Certificates of authorities, PEM; `None` = those that the operating system trusts.
    pub roots: Option<String>,
    /// Our own certificate; `None` = we show none.
    pub identity: Option<Identity>,
}

/// Our own certificate.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Identity {
    /// It and those between it and its authority, PEM.
    pub certificate: String,
    /// Its private key, PEM.
    pub key: Secret,
}

/// Which HTTP is spoken.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Http {
    /// HTTP/1.1: one request at a time on each connection.
    #[default]
    One,
    /// HTTP/2, and nothing else: agreed upon over TLS, unasked without.
    Two,
    /// HTTP/2 where the destination offers it over TLS, HTTP/1.1 everywhere else.
    Auto,
}

impl Http {
    /// All, with their names in `http = "…"`.
    pub const ALL: [(Self, &'static str); 3] = [(Self::One, "1"), (Self::Two, "2"), (Self::Auto, "auto")];

    /// Its name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::One => "1",
            Self::Two => "2",
            Self::Auto => "auto",
        }
    }
}

/// How often requests may leave, from this daemon.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rate {
    /// So many, at least 1.
    pub count: u32,
    /// In that time.
    pub per: Duration,
    /// At once after a rest, at least 1.
    pub burst: u32,
}

impl Rate {
    /// The time between two, on average.
    pub fn every(&self) -> Duration {
        self.per / self.count.max(1)
    }
}

/// An external system.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Target {
    /// As named in `[destination.…]`.
    pub name: String,
    /// `http://` or `https://`, without a trailing slash, query or fragment; may hold placeholders.
    pub base_url: Template,
    /// Whose account the credentials are; part of the pins, so that rotating a secret keeps them.
    pub account: Option<String>,
    /// How it knows us.
    pub auth: Auth,
    /// What requests are signed with, besides; `None` = they are not.
    pub signing: Option<Signing>,
    /// Whom its connections trust.
    pub tls: Tls,
    /// Name resolution, TCP and TLS together.
    pub connect_timeout: Duration,
    /// Requests at once, from this daemon.
    pub max_in_flight: u32,
    /// How often requests may leave; `None` = as often as there are free slots.
    pub rate: Option<Rate>,
    /// It may only have public addresses. Where the host comes from data that is so anyway.
    pub public_only: bool,
    /// What it speaks.
    pub http: Http,
}

impl Target {
    /// Whether params say on which host it is.
    pub fn host_from_data(&self) -> bool {
        let before_path = self.base_url.source().split('/').nth(2).unwrap_or_default();
        before_path.contains('{')
    }
}

/// A kind of effect.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Operation {
    /// As named in `[operation.…]` and in `outbox.enqueue`.
    pub name: String,
    /// What it does, for people.
    pub meaning: String,
    /// Who answers for it.
    pub owner: String,
    /// The destination's name.
    pub target: String,
    /// How its requests are built.
    pub request: RequestTemplate,
    /// Policy, contract and pins.
    pub terms: Terms,
    /// How much of an answer is read, in bytes.
    pub response_max_bytes: usize,
    /// What one attempt costs, and what an action may cost in all; in the owner's currency.
    pub cost: Option<Cost>,
    /// In a serial queue, a failure holds those that wait behind it until a person lets go.
    pub hold_on_failure: bool,
}

/// Spend, in the owner's currency.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Cost {
    /// One attempt.
    pub attempt: f64,
    /// One action in all its attempts; `None` = unbounded.
    pub max: Option<f64>,
}

// Both are checked at load to be numbers, so equality is total.
impl Eq for Cost {}

/// What a resend must find unchanged. Every field is length-prefixed, so that no two sets of fields hash alike.
pub fn pins(target: &Target, request: &RequestTemplate, contract: &Contract) -> Pins {
    let mut hash = Sha256::new();
    let mut field = |bytes: &[u8]| {
        hash.update((bytes.len() as u64).to_be_bytes());
        hash.update(bytes);
    };
    field(target.base_url.source().as_bytes());
    field(target.account.as_deref().unwrap_or_default().as_bytes());
    field(request.method.as_bytes());
    field(request.path.source().as_bytes());
    for (part, pairs) in [("query", &request.query), ("headers", &request.headers)] {
        for (name, value) in pairs {
            field(part.as_bytes());
            field(name.as_bytes());
            field(value.source().as_bytes());
        }
    }
    if let Some(key) = &contract.key {
        field(format!("{:?} {:?} {:?} {:?}", key.place, key.form, key.encode, key.also).as_bytes());
    }
    if let Some(reference) = &contract.reference {
        field(format!("ref {:?}", reference.place).as_bytes());
    }
    let digest: [u8; 32] = hash.finalize().into();
    let mut half = [0; 16];
    half.copy_from_slice(&digest[..16]);
    Pins(half)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(base_url: &str, account: Option<&str>, token: &str) -> Target {
        Target {
            name: "d".into(),
            base_url: Template::parse(base_url).expect("valid"),
            account: account.map(Into::into),
            auth: Auth::Bearer(Secret::new(token)),
            signing: None,
            tls: Tls::default(),
            connect_timeout: Duration::from_secs(3),
            max_in_flight: 8,
            rate: None,
            public_only: false,
            http: Http::One,
        }
    }

    #[test]
    fn pins_follow_url_and_account_but_not_a_rotated_secret() {
        let request = RequestTemplate {
            method: "POST".into(),
            path: Template::parse("/v1/x").expect("valid"),
            query: vec![],
            headers: vec![],
        };
        let of = |t: &Target| pins(t, &request, &Contract::silent("c"));
        let first = of(&target("https://a.example", Some("live"), "one"));
        assert_eq!(first, of(&target("https://a.example", Some("live"), "two")));
        assert_ne!(first, of(&target("https://b.example", Some("live"), "one")));
        assert_ne!(first, of(&target("https://a.example", Some("test"), "one")));
    }

    #[test]
    fn pins_tell_a_parameter_from_a_header() {
        let pair = vec![("account".to_owned(), Template::parse("x").expect("valid"))];
        let in_query = RequestTemplate { query: pair.clone(), ..RequestTemplate::bare("POST") };
        let in_headers = RequestTemplate { headers: pair, ..RequestTemplate::bare("POST") };
        let of = |request| pins(&target("https://a.example", None, "t"), request, &Contract::silent("c"));
        assert_ne!(of(&in_query), of(&in_headers));
    }

    #[test]
    fn only_a_placeholder_before_the_path_makes_the_host_one_from_data() {
        for (url, from_data) in [
            ("https://a.example", false),
            ("https://a.example/{x}", false),
            ("https://{x}.a.example", true),
            ("http://{x}/v1", true),
        ] {
            assert_eq!(target(url, None, "t").host_from_data(), from_data, "{url}");
        }
    }

    #[test]
    fn debug_shows_no_secret() {
        assert!(!format!("{:?}", target("https://a.example", None, "hunter2")).contains("hunter2"));
    }
}
