//! One exchange with a destination: a request departs, an answer is heard or not.

use std::borrow::Cow;

use hyper::body::Incoming;
use hyper::header::HeaderMap;
use hyper::{Request, Response, StatusCode};
use hyper_util::client::legacy::Error;

use super::answer::{Answer, read_body};
use super::build::Built;
use super::departure::{Outgoing, Ticket};
use super::judge::Reads;
use super::mask::Mask;
use super::{Destination, LAST_POLL, LOOK, Limits, STRANDED, unanswered};
use crate::clock::{Uptime, wall};
use crate::core::evidence::{Evidence, Finding};
use crate::core::reason::Reason;

/// What came of a request.
pub(super) enum Heard<'d> {
    /// An answer, the ticket that holds its connection until it has been judged, and what of it must not be repeated.
    Answer(Answer, Ticket, Cow<'d, Mask>),
    /// None; what is known of the request.
    Nothing(Finding),
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
        let Some(oauth) = &self.oauth else { return self.let_depart(built, limits, max, reads).await };
        let token = match oauth.token(limits).await {
            Ok(token) => token,
            Err(finding) => return Heard::Nothing(finding),
        };
        token.write(built.request.headers_mut());
        match self.let_depart(built, limits, max, reads).await {
            Heard::Answer(answer, ticket, mask) => {
                if answer.status == StatusCode::UNAUTHORIZED {
                    oauth.forget(&token);
                }
                Heard::Answer(answer, ticket, Cow::Owned(mask.and(token.text())))
            }
            Heard::Nothing(finding) => Heard::Nothing(finding),
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
                    ticket,
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
