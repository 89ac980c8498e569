//! The outside. What comes back from it is evidence, never an error.
//!
//! [`Destination::send`] builds the request (`build`), lets it depart through a connection that counts every byte
//! (`departure`, `wire`), reads the answer as far as somebody needs it (`answer`), and says what it means (`judge`).
//! Where no answer comes, the wire's count says whether anything was sent.

mod answer;
mod build;
mod clean;
mod connector;
mod departure;
mod explain;
mod fill;
mod headers;
mod judge;
mod key_in_body;
mod mask;
mod members;
mod metered;
mod origin;
mod retry_after;
mod tls;
mod unanswered;
mod unbuildable;
mod wire;

#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;

use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use hyper::body::Incoming;
use hyper::{Request, Response};
use hyper_util::client::legacy::{Client, Error};
use hyper_util::rt::{TokioExecutor, TokioTimer};

pub use tls::TlsError;

use answer::{Answer, read_body};
use build::Stem;
use connector::Connector;
use departure::{Outgoing, Ticket};
use explain::explain;
use judge::{judge, reads};
use mask::Mask;

use crate::clock::{Uptime, wall};
use crate::core::action::{AttemptId, Fence, Intent};
use crate::core::evidence::{Evidence, Finding};
use crate::core::reason::Reason;
use crate::core::target::{Operation, Target};

/// One second less than the shortest idle time that is common among servers (Node.js: 5 s), so that it is mostly us
/// who let go of an idle connection. Where it is the server after all, the wire tells what was sent.
const IDLE: Duration = Duration::from_secs(4);

/// After this long a connection takes no new request, so that a name which has moved is followed (B20).
const OLDEST: Duration = Duration::from_secs(60);

/// After the deadline: for what has arrived but has not been read yet.
const LAST_POLL: Duration = Duration::from_millis(50);

/// How often a wait for the deadline looks at the clock, because a timer stands still while the machine is suspended.
const LOOK: Duration = Duration::from_millis(500);

/// How long a request may be queued on a connection that is no more. Longer than the client needs to pick another one;
/// where connecting anew takes longer, it is not sent this time.
const STRANDED: Duration = Duration::from_millis(500);

/// How often a wait for the rest of a request to go out looks at the wire.
const DRAIN: Duration = Duration::from_millis(5);

/// An external system, with connections of its own.
pub struct Destination {
    target: Target,
    stem: Stem,
    mask: Mask,
    client: Client<Connector, Outgoing>,
}

/// The claim under which an action is sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Claim {
    /// Sent as `Outbox-Attempt`.
    pub attempt: AttemptId,
    /// Sent as `Outbox-Fence`.
    pub fence: Fence,
}

/// Until when.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// The end of the exchange: name resolution, connecting, request and answer.
    pub deadline: Uptime,
    /// No byte of the request leaves after it: the end of the trust in the lease, or of the key's memory.
    pub leave_before: Uptime,
}

impl Limits {
    /// No byte of the request leaves after it.
    fn leave_by(&self) -> Uptime {
        self.leave_before.min(self.deadline)
    }
}

impl Destination {
    /// Ready to send. Connects to nothing yet.
    ///
    /// # Errors
    /// Where its TLS settings cannot be used.
    pub fn new(target: Target) -> Result<Self, TlsError> {
        let tls = tls::client(&target.tls, !target.base_url.source().starts_with("http://"))?;
        let client = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE)
            .pool_max_idle_per_host(usize::try_from(target.max_in_flight).unwrap_or(usize::MAX))
            .build(Connector::new(target.connect_timeout, tls));
        Ok(Self { stem: Stem::new(&target), mask: Mask::new(&target.auth), client, target })
    }

    /// Sends once. Takes as long as `limits` allow; never longer, but for one bounded last look at what has arrived.
    pub async fn send(&self, operation: &Operation, intent: &Intent, claim: &Claim, limits: Limits) -> Finding {
        let (request, body) = match self.stem.request(operation, intent, claim) {
            Ok(built) => built,
            Err(why) => {
                return Finding::because(Evidence::Unsendable, Reason::Unsendable).with_detail(why.to_string());
            }
        };
        if limits.leave_by().is_over() {
            return unanswered::too_late(&limits);
        }
        self.exchange(operation, request, body, &limits).await
    }

    /// Asks whether an action took effect, by its contract's lookup.
    pub async fn look_up(&self, _operation: &Operation, _intent: &Intent, _claim: &Claim, _limits: Limits) -> Finding {
        Finding::because(Evidence::Inconclusive, Reason::Inconclusive)
    }

    /// Cancels an action by its key, by its contract's cancel.
    pub async fn cancel(&self, _operation: &Operation, _intent: &Intent, _claim: &Claim, _limits: Limits) -> Finding {
        Finding::because(Evidence::Inconclusive, Reason::Inconclusive)
    }

    async fn exchange(&self, operation: &Operation, mut request: Request<()>, body: Bytes, limits: &Limits) -> Finding {
        let ticket = Ticket::new(&mut request, limits.leave_by());
        let request = request.map(|()| ticket.body(body.clone()));
        match self.response(request, &ticket, limits).await {
            Some(Ok(response)) => self.answered(operation, response, &body, ticket, limits).await,
            Some(Err(error)) => unanswered::broken(&error, ticket.end(), limits),
            None => unanswered::timed_out(ticket.end(), limits),
        }
    }

    /// `None` = not in time.
    async fn response(
        &self,
        request: Request<Outgoing>,
        ticket: &Ticket,
        limits: &Limits,
    ) -> Option<Result<Response<Incoming>, Error>> {
        let mut response = self.client.request(request);
        tokio::select! {
            biased;
            response = &mut response => return Some(response),
            () = passed(limits.leave_by(), Some(ticket)) => if ticket.revoke() {
                return None;
            }
        }
        tokio::select! {
            biased;
            response = &mut response => return Some(response),
            () = passed(limits.deadline, None) => {}
        }
        tokio::time::timeout(LAST_POLL, response).await.ok()
    }

    async fn answered(
        &self,
        operation: &Operation,
        response: Response<Incoming>,
        sent: &[u8],
        ticket: Ticket,
        limits: &Limits,
    ) -> Finding {
        let contract = &operation.terms.contract;
        let (head, body) = response.into_parts();
        let reads = reads(contract, head.status, &head.headers);
        let last = limits.deadline.plus(LAST_POLL);
        let body = read_body(body, reads, operation.response_max_bytes, last).await;
        let answer = Answer { status: head.status, headers: head.headers, body };
        let mut finding = judge(contract, &answer, wall());
        if finding.evidence == Evidence::Accepted {
            // Confirmed before all of it was read: cutting it short now could make the confirmation untrue.
            while ticket.is_behind() && !limits.deadline.is_over() {
                tokio::time::sleep(DRAIN).await;
            }
        } else {
            finding.detail = Some(explain(contract, &answer, &self.mask, sent));
        }
        ticket.release(OLDEST);
        finding
    }
}

/// Says which destination, never what we send or how it knows us.
impl fmt::Debug for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Destination").field("target", &self.target).finish_non_exhaustive()
    }
}

/// Until `end`, or until the request is found stranded.
async fn passed(end: Uptime, waiting: Option<&Ticket>) {
    while !end.is_over() && !waiting.is_some_and(|ticket| ticket.is_stranded(STRANDED)) {
        tokio::time::sleep(end.left().min(LOOK)).await;
    }
}
