//! Parts for this module's tests: an operation, and a peer that does exactly what a test says.

pub(super) mod secure;

use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use hyper::StatusCode;
use hyper::header::{HeaderMap, HeaderName, HeaderValue};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use uuid::Uuid;

use super::answer::{Answer, Body, End};
use super::{Claim, Destination, Limits};
use crate::clock::Uptime;
use crate::core::action::{ActionId, AttemptId, Fence, Intent};
use crate::core::contract::{
    Absence, Asking, Contract, Effect, JsonIs, Key, KeyMode, Place, Question, StatusSet, TextIs, When,
};
use crate::core::evidence::Finding;
use crate::core::request::{RequestTemplate, Template};
use crate::core::retry::Backoff;
use crate::core::target::{Auth, Http, Operation, Target, Tls};
use crate::core::terms::{Pins, Policy, Terms};

pub(super) fn target(base_url: &str) -> Target {
    Target {
        name: "d".into(),
        base_url: Template::parse(base_url).expect("a template"),
        account: None,
        auth: Auth::None,
        signing: None,
        tls: Tls::default(),
        connect_timeout: Duration::from_secs(3),
        max_in_flight: 16,
        rate: None,
        public_only: false,
        http: Http::One,
    }
}

pub(super) fn header_key() -> Key {
    Key::new(KeyMode::Dedupe, Place::Header("idempotency-key".into()))
}

/// `POST /x` with a key in a header and no rules.
pub(super) fn operation() -> Operation {
    let contract = Contract { key: Some(header_key()), ..Contract::silent("c") };
    let second = Duration::from_secs(1);
    let policy = Policy {
        effect: Effect::Keyed,
        timeout: second,
        attempts_max: 3,
        affordable: None,
        elapsed_max: second,
        backoff: Backoff { initial: second, multiplier: 2.0, max: second },
        retry_after_max: second,
        review_after: second,
        resend_within: second,
    };
    let request = RequestTemplate { path: Template::parse("/x").expect("a template"), ..RequestTemplate::bare("POST") };
    Operation {
        name: "o".into(),
        meaning: "m".into(),
        owner: "w".into(),
        target: "d".into(),
        request,
        terms: Terms { policy, contract, pins: Pins([0; 16]) },
        response_max_bytes: 64 * 1024,
        hold_on_failure: false,
        cost: None,
    }
}

pub(super) fn intent(body: &[u8]) -> Intent {
    Intent {
        id: ActionId(Uuid::from_u128(1)),
        tenant: String::new(),
        operation: "o".into(),
        traceparent: None,
        params: None,
        headers: None,
        content_type: None,
        body: Bytes::copy_from_slice(body),
    }
}

/// An answer as it is when it is judged.
pub(super) fn answer(status: u16, headers: &[(&str, &str)], body: &str, end: End) -> Answer {
    let mut map = HeaderMap::new();
    for (name, value) in headers {
        let name = HeaderName::from_bytes(name.as_bytes()).expect("a name");
        map.append(name, HeaderValue::from_str(value).expect("a value"));
    }
    let json = (end == End::Complete).then(|| serde_json::from_str(body).ok()).flatten();
    let body = Body { bytes: body.to_owned().into(), end, json };
    Answer { status: StatusCode::from_u16(status).expect("a status"), headers: map, body }
}

/// A matcher of a status, a class of them (`4` = 4xx), and what stands at a pointer.
pub(super) fn when(status: u16, json: Option<(&str, &str)>) -> When {
    let status = if status < 10 { StatusSet::Class(status as u8) } else { StatusSet::Exact(status) };
    let is = |is: &str| if is == "*" { JsonIs::Present } else { JsonIs::Text(TextIs::new(is)) };
    let json = json.map(|(at, text)| (at.to_owned(), is(text))).into_iter().collect();
    When { status: Some(vec![status]), headers: vec![], json }
}

/// A question of that method, path and query.
pub(super) fn question(method: &str, path: &str, query: &[(&str, &str)]) -> Question {
    let template = |text: &str| Template::parse(text).expect("a template");
    let query = query.iter().map(|(name, value)| ((*name).to_owned(), template(value))).collect();
    let request = RequestTemplate { path: template(path), query, ..RequestTemplate::bare(method) };
    Question { request, body: None }
}

/// Asked one second after the send, and proof at once.
pub(super) fn asking() -> Asking {
    let second = Duration::from_secs(1);
    Asking { first_after: second, repeat: vec![second], absence: Absence::After(second) }
}

pub(super) const CLAIM: Claim = Claim { attempt: AttemptId(Uuid::from_u128(2)), fence: Fence(1) };

pub(super) fn within(time: Duration) -> Limits {
    let end = Uptime::now().plus(time);
    Limits { deadline: end, leave_before: end }
}

/// A listener that hands each connection and its number, counted from 0, to what the test says.
pub(super) struct Peer {
    pub(super) address: SocketAddr,
    accepted: Arc<AtomicUsize>,
}

impl Peer {
    pub(super) async fn new<F>(serve: impl Fn(Conversation, usize) -> F + Send + 'static) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        Self::at("127.0.0.1:0".parse().expect("an address"), serve).await
    }

    /// The same at an address of one's choice.
    pub(super) async fn at<F>(address: SocketAddr, serve: impl Fn(Conversation, usize) -> F + Send + 'static) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let listener = TcpListener::bind(address).await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let accepted = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&accepted);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let number = count.fetch_add(1, Ordering::SeqCst);
                tokio::spawn(serve(Conversation::new(stream), number));
            }
        });
        Self { address, accepted }
    }

    pub(super) fn connections(&self) -> usize {
        self.accepted.load(Ordering::SeqCst)
    }

    pub(super) fn destination(&self) -> Destination {
        Destination::new(target(&format!("http://{}", self.address))).expect("usable")
    }
}

/// The peer's end of one connection.
pub(super) struct Conversation<S = TcpStream> {
    pub(super) stream: S,
    left: Vec<u8>,
}

impl Conversation {
    /// Closes with RST instead of FIN.
    pub(super) fn reset(self) {
        self.stream.set_zero_linger().expect("a socket");
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Conversation<S> {
    pub(super) fn new(stream: S) -> Self {
        Self { stream, left: Vec::new() }
    }

    /// One whole request as it came; what came before the end if the client went away.
    pub(super) async fn request(&mut self) -> Vec<u8> {
        loop {
            if let Some(head) = self.left.windows(4).position(|w| w == b"\r\n\r\n") {
                let text = String::from_utf8_lossy(&self.left[..head]).to_ascii_lowercase();
                let length = text.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
                let whole = head + 4 + length.unwrap_or(0);
                if self.left.len() >= whole {
                    let rest = self.left.split_off(whole);
                    return std::mem::replace(&mut self.left, rest);
                }
            }
            if self.stream.read_buf(&mut self.left).await.unwrap_or(0) == 0 {
                return std::mem::take(&mut self.left);
            }
        }
    }

    pub(super) async fn say(&mut self, text: &str) {
        let _ = self.stream.write_all(text.as_bytes()).await;
    }

    /// Whatever comes until the client closes.
    pub(super) async fn rest(mut self) -> Vec<u8> {
        let mut all = std::mem::take(&mut self.left);
        let _ = self.stream.read_to_end(&mut all).await;
        all
    }
}

/// A peer that answers every request the same way.
pub(super) async fn answering(answer: &'static str) -> Peer {
    Peer::new(move |mut conversation, _| async move {
        while !conversation.request().await.is_empty() {
            conversation.say(answer).await;
        }
    })
    .await
}

/// Sends an ordinary action and gives it that long.
pub(super) async fn send(destination: &Destination, time: Duration) -> Finding {
    destination.send(&operation(), &intent(b"{}"), &CLAIM, within(time)).await
}
