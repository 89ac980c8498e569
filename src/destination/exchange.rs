//! One exchange with a destination: a request departs, an answer is heard or not.

use std::borrow::Cow;
use std::time::Duration;

use hyper::body::Incoming;
use hyper::header::HeaderMap;
use hyper::{Request, Response, StatusCode};
use hyper_util::client::legacy::Error;

use super::answer::{Answer, read_body};
use super::build::Built;
use super::departure::{Outgoing, Ticket};
use super::http2::Flight;
use super::judge::Reads;
use super::mask::Mask;
use super::{DRAIN, Destination, LAST_POLL, LOOK, Limits, STRANDED, unanswered};
use crate::clock::{Uptime, wall};
use crate::core::evidence::{Evidence, Finding};
use crate::core::reason::Reason;

/// What came of a request.
pub(super) enum Heard<'d> {
    /// An answer, what holds its connection until it has been judged, and what of it must not be repeated.
    Answer(Answer, Hold, Cow<'d, Mask>),
    /// None; what is known of the request.
    Nothing(Finding),
}

/// What holds the connection of an answered request.
pub(super) enum Hold {
    /// A whole connection.
    One(Ticket),
    /// A stream of one.
    Two(Box<Flight>),
}

impl Hold {
    /// Waits until the whole request has left, or until `deadline`.
    pub(super) async fn drain(&mut self, deadline: Uptime) {
        match self {
            Self::One(ticket) => {
                while ticket.is_behind() && !deadline.is_over() {
                    tokio::time::sleep(DRAIN).await;
                }
            }
            Self::Two(flight) => flight.drain(deadline).await,
        }
    }

    /// The answer has been judged. A connection that is older than `oldest` serves no other request.
    pub(super) fn release(self, oldest: Duration) {
        match self {
            Self::One(ticket) => ticket.release(oldest),
            // A stream is never used again, and its connection is looked at before it takes another one.
            Self::Two(flight) => drop(flight),
        }
    }
}

impl Destination {
    /// Lets a request depart and hears the answer, its body as far as `reads` says and at most `max` bytes of it. Takes
    /// as long as `limits` allow; never longer, but for one bounded last look at what has arrived.
    pub(super) async fn exchange(
        &self,
        mut built: Built,
        limits: &Limits,
        max: usize,
        reads: impl FnOnce(StatusCode, &HeaderMap) -> Reads,
    ) -> Heard<'_> {
        if limits.leave_by().is_over() {
            return Heard::Nothing(unanswered::too_late(limits));
        }
        // The ways that few destinations go are boxed: every send would otherwise carry room for all of them.
        let token = match &self.oauth {
            None => None,
            Some(oauth) => match Box::pin(oauth.token(limits)).await {
                Ok(token) => {
                    token.write(built.request.headers_mut());
                    Some((oauth, token))
                }
                Err(finding) => return Heard::Nothing(finding),
            },
        };
        match (self.let_depart(built, limits, max, reads).await, token) {
            (Heard::Answer(answer, ticket, mask), Some((oauth, token))) => {
                if answer.status == StatusCode::UNAUTHORIZED {
                    oauth.forget(&token);
                }
                Heard::Answer(answer, ticket, Cow::Owned(mask.and(token.text())))
            }
            (heard @ (Heard::Answer(..) | Heard::Nothing(_)), _) => heard,
        }
    }

    /// The same with the credentials that stand in it, and without the first look at the clock.
    pub(super) async fn let_depart(
        &self,
        mut built: Built,
        limits: &Limits,
        max: usize,
        reads: impl FnOnce(StatusCode, &HeaderMap) -> Reads,
    ) -> Heard<'_> {
        // Only now: a signature must not be older than it has to be.
        if let Err(why) = self.stem.sign(&mut built, wall()) {
            return Heard::Nothing(
                Finding::because(Evidence::Unsendable, Reason::Unsendable).with_detail(why.to_string()),
            );
        }
        let carrier = match (&self.carrier, &self.chooses) {
            (None, _) => None,
            (Some(carrier), None) => Some(carrier),
            (Some(carrier), Some(choices)) => {
                match Box::pin(carrier.is_chosen(choices, built.request.uri(), limits, self.oldest)).await {
                    Ok(chosen) => chosen.then_some(carrier),
                    Err(finding) => return Heard::Nothing(finding),
                }
            }
        };
        if let Some(carrier) = carrier {
            return Box::pin(carrier.exchange(built, limits, self.oldest, max, &self.mask, reads)).await;
        }
        let Built { mut request, body } = built;
        let ticket = Ticket::new(&mut request, limits.leave_by());
        let request = request.map(|()| ticket.body(body));
        match self.response(request, &ticket, limits).await {
            Some(Ok(response)) => {
                let (head, body) = response.into_parts();
                let last = limits.deadline.plus(LAST_POLL);
                let body = read_body(body, reads(head.status, &head.headers), max, last).await;
                Heard::Answer(
                    Answer { status: head.status, headers: head.headers, body },
                    Hold::One(ticket),
                    Cow::Borrowed(&self.mask),
                )
            }
            Some(Err(error)) => {
                let host_from_data = self.target.host_from_data();
                Heard::Nothing(unanswered::broken(&error, ticket.end(), limits, host_from_data))
            }
            None => Heard::Nothing(unanswered::timed_out(ticket.end(), limits)),
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
}

/// Until `end`, or until the request is found stranded.
pub(super) async fn passed(end: Uptime, waiting: Option<&Ticket>) {
    while !end.is_over() && !waiting.is_some_and(|ticket| ticket.is_stranded(STRANDED)) {
        tokio::time::sleep(end.left().min(LOOK)).await;
    }
}
