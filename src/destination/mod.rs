//! The outside. What comes back from it is evidence, never an error.
//!
//! [`Destination::send`] builds the request (`build`), lets it depart through a connection that counts every byte
//! (`exchange`, `departure`, `wire`), reads the answer as far as somebody needs it (`answer`), and says what it means
//! (`judge`). Where no answer comes, the wire's count says whether anything was sent. `http2` does the same stream by
//! stream.
//!
//! Credentials that are not the same for every request come last: a token (`oauth`) and a signature over the bytes that
//! are handed over (`build::sign`).
//!
//! [`Destination::look_up`] and [`Destination::cancel`] go the same way; what they learn is about an earlier send, never
//! about a request of their own.

mod address;
mod answer;
mod build;
mod clean;
mod connector;
mod departure;
mod exchange;
mod http2;
mod judge;
mod mask;
mod metered;
mod oauth;
mod resolve;
mod socket;
mod tls;
mod unanswered;
mod wire;

#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;

use std::fmt;
use std::time::Duration;

use hyper::header::HeaderMap;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::dns::GaiResolver;
use hyper_util::rt::{TokioExecutor, TokioTimer};

pub use clean::one_line;
pub use tls::TlsError;

use build::{Sent, Stem, carries, carries_key};
use connector::{Connector, HTTP1, HTTP2};
use departure::Outgoing;
use exchange::Heard;
use http2::{Carrier, Choices};
use judge::{Against, Asked, Expected, Mark, explain, judge, reads, unsettled};
use mask::Mask;
use oauth::OAuth;
use resolve::{Names, Resolver};

use crate::clock::{Uptime, wall};
use crate::core::action::{AttemptId, Fence, Intent};
use crate::core::contract::{Cancel, Compare, Question};
use crate::core::evidence::{Evidence, Finding};
use crate::core::reason::Reason;
use crate::core::target::{Auth, Http, Operation, Target};

/// One second less than the shortest idle time that is common among servers (Node.js: 5 s), so that it is mostly us
/// who let go of an idle connection. Where it is the server after all, the wire tells what was sent.
const IDLE: Duration = Duration::from_secs(4);

/// After this long a connection takes no new request, so that a name which has moved is followed (B20).
const OLDEST: Duration = Duration::from_secs(60);

/// After the deadline: for what has arrived but has not been read yet, also by a process that has just woken.
const LAST_POLL: Duration = Duration::from_millis(250);

/// How often a wait for the deadline looks at the clock, because a timer stands still while the machine is suspended.
const LOOK: Duration = Duration::from_millis(500);

/// How long a request may be queued on a connection that is no more. Longer than the client needs to pick another one;
/// where connecting anew takes longer, it is not sent this time.
const STRANDED: Duration = Duration::from_millis(500);

/// How often a wait for the rest of a request to go out looks at the wire.
const DRAIN: Duration = Duration::from_millis(5);

/// How long a hint may be, in bytes.
const HINT_MAX_BYTES: usize = 4000;

/// An external system, with connections of its own.
pub struct Destination {
    target: Target,
    stem: Stem,
    mask: Mask,
    /// Tokens, where it wants them.
    oauth: Option<OAuth>,
    client: Client<Connector, Outgoing>,
    /// Carries its requests instead, where HTTP/2 is spoken.
    carrier: Option<Carrier>,
    /// Which origins don't speak it, where that is for them to say; `None` = all are taken to speak it.
    chooses: Option<Choices>,
    /// After this long a connection takes no new request.
    oldest: Duration,
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
        Self::resolving(target, Names::System(GaiResolver::new()))
    }

    fn resolving(target: Target, names: Names) -> Result<Self, TlsError> {
        let tls = tls::client(&target.tls, !target.base_url.source().starts_with("http://"))?;
        let resolver = Resolver::new(names, target.public_only || target.host_from_data());
        let offering = |protocols: &[&[u8]]| {
            Connector::new(target.connect_timeout, tls::offering(&tls, protocols), resolver.clone())
        };
        let connector = Connector::new(target.connect_timeout, tls.clone(), resolver.clone());
        let (carrier, chooses) = match target.http {
            Http::One => (None, None),
            Http::Two => (Some(Carrier::new(offering(&[HTTP2]), target.host_from_data())), None),
            Http::Auto => {
                (Some(Carrier::new(offering(&[HTTP2, HTTP1]), target.host_from_data())), Some(Choices::default()))
            }
        };
        let client = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE)
            .pool_max_idle_per_host(usize::try_from(target.max_in_flight).unwrap_or(usize::MAX))
            .build(connector);
        let oauth = match &target.auth {
            Auth::OAuth2(credentials) => Some(OAuth::new(credentials, &target)?),
            Auth::None | Auth::Bearer(_) | Auth::Basic { .. } | Auth::Header { .. } => None,
        };
        let (stem, mask) = (Stem::new(&target), Mask::of(&target));
        Ok(Self { stem, mask, oauth, client, carrier, chooses, target, oldest: OLDEST })
    }

    /// Sends once. Takes as long as `limits` allow; never longer, but for one bounded last look at what has arrived.
    pub async fn send(&self, operation: &Operation, intent: &Intent, claim: &Claim, limits: Limits) -> Finding {
        let contract = &operation.terms.contract;
        let built = match self.stem.send(operation, intent, claim) {
            Ok(built) => built,
            Err(why) => {
                return Finding::because(Evidence::Unsendable, Reason::Unsendable).with_detail(why.to_string());
            }
        };
        let expected = Expected::all(&contract.compare, operation, Some(&Sent::new(operation, intent, &built)));
        let against = Against { contract, keyed: carries_key(operation), expected };
        let body = built.body.clone();
        let reads = |status, headers: &HeaderMap| reads(contract, status, headers);
        let (answer, mut ticket, mask) = match self.exchange(built, &limits, operation.response_max_bytes, reads).await
        {
            Heard::Answer(answer, ticket, mask) => (answer, ticket, mask),
            Heard::Nothing(finding) => return finding,
        };
        let finding = judge(&against, &answer, wall());
        if finding.evidence == Evidence::Accepted {
            // Confirmed before all of it was read: cutting it short now could make the confirmation untrue.
            ticket.drain(limits.deadline).await;
        }
        ticket.release(self.oldest);
        explained(finding, || explain(contract, &answer, &mask, &body))
    }

    /// Asks whether an action took effect, by its contract's lookup. Takes as long as [`Destination::send`].
    pub async fn look_up(&self, operation: &Operation, intent: &Intent, claim: &Claim, limits: Limits) -> Finding {
        let contract = &operation.terms.contract;
        let Some(lookup) = &contract.lookup else { return unsettled("the contract knows no lookup") };
        let expected = self.expected(&lookup.compare, operation, intent, claim);
        let carries = carries(&lookup.question, operation);
        let mark = Mark { asked: Asked::Lookup(lookup), contract, carries, expected };
        self.ask(&lookup.question, &mark, operation, intent, claim, &limits).await
    }

    /// Cancels an action by its key, by its contract's cancel. Takes as long as [`Destination::send`].
    pub async fn cancel(&self, operation: &Operation, intent: &Intent, claim: &Claim, limits: Limits) -> Finding {
        let contract = &operation.terms.contract;
        let Some(cancel) = &contract.cancel else { return unsettled("the contract knows no cancel") };
        let carries = carries(&cancel.question, operation);
        let mark = Mark { asked: Asked::Cancel(cancel), contract, carries, expected: vec![] };
        self.ask(&cancel.question, &mark, operation, intent, claim, &limits).await
    }

    /// Whether the request of a cancel can be built: where not, none leaves, and nobody should note that one did.
    pub fn can_cancel(&self, operation: &Operation, intent: &Intent, claim: &Claim) -> bool {
        let contract = &operation.terms.contract;
        let built = |cancel: &Cancel| self.stem.question(&cancel.question, contract, intent, claim).is_ok();
        contract.cancel.as_ref().is_some_and(built)
    }

    /// What was sent, as far as a lookup compares it: worked out anew from the same intent.
    fn expected<'c>(
        &self,
        list: &'c [Compare],
        operation: &Operation,
        intent: &Intent,
        claim: &Claim,
    ) -> Vec<Expected<'c>> {
        let built = self.stem.send(operation, intent, claim).ok();
        let sent = built.as_ref().map(|built| Sent::new(operation, intent, built));
        Expected::all(list, operation, sent.as_ref())
    }

    async fn ask(
        &self,
        question: &Question,
        mark: &Mark<'_>,
        operation: &Operation,
        intent: &Intent,
        claim: &Claim,
        limits: &Limits,
    ) -> Finding {
        let built = match self.stem.question(question, mark.contract, intent, claim) {
            Ok(built) => built,
            Err(why) => return unsettled(format!("no valid question can be built: {why}")),
        };
        let reads = |status, headers: &HeaderMap| mark.reads(status, headers);
        match self.exchange(built, limits, operation.response_max_bytes, reads).await {
            Heard::Answer(answer, ticket, mask) => {
                let finding = mark.judge(&answer, wall());
                ticket.release(self.oldest);
                explained(finding, || explain(mark.contract, &answer, &mask, &intent.body))
            }
            Heard::Nothing(finding) => {
                let unanswered = unsettled(unanswered::told(&finding));
                match finding.reason {
                    // Nothing else can be asked there either.
                    Some(Reason::CredentialsUnavailable) => Finding { reason: finding.reason, ..unanswered },
                    Some(_) | None => unanswered,
                }
            }
        }
    }

    /// What a person can ask who must decide, as one line without credentials: `GET https://…`. `sent_on` is the day
    /// of the last send, `YYYY-MM-DD`. `None` where the contract has no hint, `Some(Err(why))` where its request cannot
    /// be filled in. Connects to nothing.
    pub fn hint(
        &self,
        operation: &Operation,
        intent: &Intent,
        sent_on: Option<&str>,
    ) -> Option<Result<String, String>> {
        let hint = operation.terms.contract.hint.as_ref()?;
        Some(match self.stem.hint(hint, operation, intent, sent_on) {
            Ok(line) => Ok(one_line(&self.mask.apply(line.as_bytes(), line.len(), b""), HINT_MAX_BYTES)),
            Err(why) => Err(why.to_string()),
        })
    }
}

/// The finding with the answer itself in its detail, unless it settles the matter.
fn explained(finding: Finding, answer: impl FnOnce() -> String) -> Finding {
    if matches!(finding.evidence, Evidence::Accepted | Evidence::Found) {
        return finding;
    }
    let detail = match &finding.detail {
        Some(note) => format!("{note}: {}", answer()),
        None => answer(),
    };
    finding.with_detail(detail)
}

/// Says which destination, never what we send or how it knows us.
impl fmt::Debug for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Destination").field("target", &self.target).finish_non_exhaustive()
    }
}
