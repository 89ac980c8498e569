//! Tokens of OAuth 2.0 client credentials (RFC 6749 section 4.4): asked for when they are needed, by one for all, and
//! kept until shortly before they end or until the destination refuses one.
//!
//! Asking goes on where the delivery that began it has no more time: a server that takes long has an answer for the
//! next one.

mod ask;

use std::sync::Arc;
use std::time::Duration;

use hyper::header::{AUTHORIZATION, HeaderMap, HeaderValue};
use tokio::sync::watch;

use super::exchange::{Heard, passed};
use super::judge::Reads;
use super::{Destination, Limits, OLDEST, TlsError, unanswered};
use crate::clock::Uptime;
use crate::core::credentials::ClientCredentials;
use crate::core::evidence::{Evidence, Finding};
use crate::core::reason::Reason;
use crate::core::target::{Auth, Http, Target};
use ask::{Ask, Granted};

/// One exchange with the token server, whatever a delivery's own time is.
const PATIENCE: Duration = Duration::from_secs(10);

/// Until it is asked again after it gave none. What waited meanwhile was given up together.
const AGAIN: Duration = Duration::from_secs(1);

/// How much of its answer is read, in bytes.
const ANSWER_MAX_BYTES: usize = 64 * 1024;

/// The tokens of one destination.
pub(super) struct OAuth(Arc<Shared>);

struct Shared {
    /// The token server, connected to as the destination is.
    server: Destination,
    ask: Ask,
    standing: watch::Sender<Standing>,
}

#[derive(Clone)]
enum Standing {
    /// There is none, and nobody has asked.
    None,
    /// Somebody is asking.
    Asking,
    /// There is one.
    Token(Arc<Token>),
    /// There was none to be had.
    Refused {
        /// For a person, clean and bounded.
        why: String,
        /// Nobody asks before.
        until: Uptime,
    },
}

/// A token.
pub(super) struct Token {
    /// `Bearer …`, marked as sensitive.
    header: HeaderValue,
    text: String,
    /// It is used for requests that are made before.
    until: Uptime,
}

impl Token {
    /// Writes it into a request.
    pub(super) fn write(&self, headers: &mut HeaderMap) {
        headers.insert(AUTHORIZATION, self.header.clone());
    }

    /// What must not be repeated.
    pub(super) fn text(&self) -> &str {
        &self.text
    }
}

impl OAuth {
    /// Asks for nothing yet. `target` says how to connect.
    pub(super) fn new(client: &ClientCredentials, target: &Target) -> Result<Self, TlsError> {
        let server = Target {
            base_url: client.token_url.clone(),
            auth: Auth::None,
            signing: None,
            max_in_flight: 1,
            // What the destination speaks says nothing of its token server.
            http: Http::One,
            ..target.clone()
        };
        let server = Destination::new(server)?;
        Ok(Self(Arc::new(Shared { server, ask: Ask::new(client), standing: watch::Sender::new(Standing::None) })))
    }

    /// A token for a request that is made now. Waits for one no longer than the request may wait to leave.
    ///
    /// # Errors
    /// What is to be said of the request: nothing of it left.
    pub(super) async fn token(&self, limits: &Limits) -> Result<Arc<Token>, Finding> {
        let mut standing = self.0.standing.subscribe();
        loop {
            let seen = standing.borrow_and_update().clone();
            match seen {
                Standing::Token(token) if !token.until.is_over() => return Ok(token),
                Standing::Refused { why, until } if !until.is_over() => return Err(unavailable(why)),
                Standing::Asking => {
                    tokio::select! {
                        biased;
                        // Its sender is ours.
                        _ = standing.changed() => {}
                        () = passed(limits.leave_by(), None) => return Err(too_late(limits)),
                    }
                }
                Standing::None | Standing::Token(_) | Standing::Refused { .. } => self.ask(),
            }
        }
    }

    /// The destination refused this token: the next request is made with another.
    pub(super) fn forget(&self, refused: &Arc<Token>) {
        self.0.standing.send_if_modified(|standing| match standing {
            Standing::Token(token) if Arc::ptr_eq(token, refused) => {
                *standing = Standing::None;
                true
            }
            Standing::Token(_) | Standing::None | Standing::Asking | Standing::Refused { .. } => false,
        });
    }

    /// Asks for a token, unless somebody is already asking or has just been answered.
    fn ask(&self) {
        let asks = self.0.standing.send_if_modified(|standing| {
            let over = match standing {
                Standing::None => true,
                Standing::Asking => false,
                Standing::Token(token) => token.until.is_over(),
                Standing::Refused { until, .. } => until.is_over(),
            };
            if over {
                *standing = Standing::Asking;
            }
            over
        });
        if asks {
            let asking = Asking(Arc::clone(&self.0));
            tokio::spawn(async move {
                let answered = match asking.0.fetch().await {
                    Ok(token) => Standing::Token(Arc::new(token)),
                    Err(why) => Standing::Refused { why, until: Uptime::now().plus(AGAIN) },
                };
                asking.0.standing.send_replace(answered);
            });
        }
    }
}

/// Whoever waits for an answer is not left waiting where asking ends without one.
struct Asking(Arc<Shared>);

impl Drop for Asking {
    fn drop(&mut self) {
        self.0.standing.send_if_modified(|standing| {
            let open = matches!(standing, Standing::Asking);
            if open {
                let why = "asking for a token broke off".to_owned();
                *standing = Standing::Refused { why, until: Uptime::now().plus(AGAIN) };
            }
            open
        });
    }
}

impl Shared {
    async fn fetch(&self) -> Result<Token, String> {
        let asked_at = Uptime::now();
        let end = asked_at.plus(PATIENCE);
        let limits = Limits { deadline: end, leave_before: end };
        let built = self.ask.built()?;
        match self.server.let_depart(built, &limits, ANSWER_MAX_BYTES, |_, _| Reads::Whole).await {
            Heard::Answer(answer, ticket, _) => {
                ticket.release(OLDEST);
                let Granted { header, text, lifetime } = self.ask.granted(&answer)?;
                Ok(Token { header, text, until: asked_at.plus(lifetime) })
            }
            Heard::Nothing(finding) => Err(format!("the token server gave no answer: {}", unanswered::told(&finding))),
        }
    }
}

fn unavailable(why: String) -> Finding {
    Finding::because(Evidence::NotSent, Reason::CredentialsUnavailable).with_detail(why)
}

fn too_late(limits: &Limits) -> Finding {
    if limits.leave_before < limits.deadline {
        unanswered::too_late(limits)
    } else {
        unavailable("the token server gave no token before the deadline".to_owned())
    }
}
