//! HTTP/2: many requests on one connection, each judged by itself.
//!
//! A request is handed to a connection ([`Link`]), and from then on its stream's share of the wire ([`trunk`]) says what is
//! known of it. Nothing of it left, or the peer says that it did nothing with it (REFUSED_STREAM, or a GOAWAY below it;
//! RFC 9113 sections 5.1.1, 6.8 and 8.7): not sent. Anything else without an answer: unknown.

mod choices;
mod flight;
mod frames;
mod link;
mod stream;
mod trunk;

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hyper::header::{self, HeaderMap, HeaderValue};
use hyper::{Method, Request, StatusCode, Uri};

use super::build::Built;
use super::connector::{ConnectError, Connector};
use super::exchange::{Heard, Hold, passed};
use super::judge::Reads;
use super::mask::Mask;
use super::{Limits, unanswered};
use crate::core::evidence::{Evidence, Finding};
use crate::core::reason::Reason;
pub(super) use choices::Choices;
pub(super) use flight::Flight;
use link::Link;

/// Scheme and authority of a URL.
type Origin = (Option<String>, Option<String>);

/// Connections to one origin; who opens one holds the lock, so that others wait for it instead of opening more.
type Links = Arc<tokio::sync::Mutex<Vec<Link>>>;

/// Carries requests by HTTP/2.
pub(super) struct Carrier {
    connector: Connector,
    origins: Mutex<HashMap<Origin, Links>>,
    host_from_data: bool,
}

/// A connection to hand a request to, or why there is none.
enum Way {
    Link(Link),
    None(ConnectError),
}

impl Carrier {
    pub(super) fn new(connector: Connector, host_from_data: bool) -> Self {
        Self { connector, origins: Mutex::default(), host_from_data }
    }

    /// As [`super::Destination::exchange`]. A connection older than `oldest` takes no new request.
    pub(super) async fn exchange<'d>(
        &self,
        built: Built,
        limits: &Limits,
        oldest: Duration,
        max: usize,
        mask: &'d Mask,
        reads: impl FnOnce(StatusCode, &HeaderMap) -> Reads,
    ) -> Heard<'d> {
        let Built { request, body } = built;
        let request = for_http2(request, body.len());
        // A connection may end in the instant in which it is chosen; then nothing was handed over, and another one is
        // tried, once.
        for _ in 0..2 {
            let way = tokio::select! {
                biased;
                way = self.way(request.uri(), oldest) => way,
                () = passed(limits.leave_by(), None) => return Heard::Nothing(unanswered::too_late(limits)),
            };
            let link = match way {
                Way::Link(link) => link,
                Way::None(error) => return Heard::Nothing(unanswered::not_sent(&error, self.host_from_data)),
            };
            if let Some(flight) = link.hand_over(request.clone(), body.clone(), limits.leave_by()) {
                return flight.heard(limits, max, mask, reads).await;
            }
        }
        let finding = Finding::because(Evidence::NotSent, Reason::NotReached);
        Heard::Nothing(finding.with_detail("the connection closed before it took it"))
    }

    /// Whether the destination, asked where it is not known, chooses HTTP/2. Then the connection that it was asked on is
    /// kept for the request.
    pub(super) async fn is_chosen(
        &self,
        choices: &Choices,
        uri: &Uri,
        limits: &Limits,
        oldest: Duration,
    ) -> Result<bool, Finding> {
        // Over plain TCP there is no asking.
        if uri.scheme_str() != Some("https") || choices.is_declined(uri) {
            return Ok(false);
        }
        let way = tokio::select! {
            biased;
            way = self.way(uri, oldest) => way,
            () = passed(limits.leave_by(), None) => return Err(unanswered::too_late(limits)),
        };
        match way {
            Way::Link(_) => Ok(true),
            Way::None(ConnectError::NotHttp2) => {
                choices.declined(uri);
                Ok(false)
            }
            Way::None(error) => Err(unanswered::not_sent(&error, self.host_from_data)),
        }
    }

    async fn way(&self, uri: &Uri, oldest: Duration) -> Way {
        let links = self.links(uri);
        let mut links = links.lock().await;
        links.retain(|link| link.is_usable(oldest));
        if let Some(link) = links.first() {
            return Way::Link(link.clone());
        }
        match self.connect(uri.clone()).await {
            Ok(link) => {
                links.push(link.clone());
                Way::Link(link)
            }
            Err(error) => Way::None(error),
        }
    }

    async fn connect(&self, uri: Uri) -> Result<Link, ConnectError> {
        let (stream, tap) = self.connector.clone().open_http2(uri).await?;
        Link::new(stream, tap).await.map_err(|error| ConnectError::Failed(error.into()))
    }

    fn links(&self, uri: &Uri) -> Links {
        let origin = (uri.scheme_str().map(ToOwned::to_owned), uri.authority().map(ToString::to_string));
        let mut origins = self.origins.lock().unwrap_or_else(PoisonError::into_inner);
        // Hosts that come from data may be many.
        origins.retain(|known, links| *known == origin || Arc::strong_count(links) > 1 || is_used(links));
        Arc::clone(origins.entry(origin).or_default())
    }
}

fn is_used(links: &Links) -> bool {
    links.try_lock().map_or(true, |links| links.iter().any(|link| link.is_usable(Duration::MAX)))
}

/// The request as HTTP/2 has it: the authority says what `Host` does elsewhere, and nobody adds the length.
fn for_http2(mut request: Request<()>, length: usize) -> Request<()> {
    *request.version_mut() = hyper::Version::HTTP_2;
    let headers = request.headers_mut();
    headers.remove(header::HOST);
    if length > 0 || matches!(*request.method(), Method::POST | Method::PUT | Method::PATCH) {
        request.headers_mut().insert(header::CONTENT_LENGTH, HeaderValue::from(length));
    }
    request
}

/// What a request's connection is held by until its answer has been judged.
impl From<Flight> for Hold {
    fn from(flight: Flight) -> Self {
        Self::Two(Box::new(flight))
    }
}
