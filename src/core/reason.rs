//! Reasons: short codes, all of them here, each with the sentence a person reads.

/// Why a row stands where it stands. The code is stored in `outbox.delivery.reason` and written to logs.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[allow(missing_docs, reason = "the code and the sentence below say what each is")]
pub enum Reason {
    Rejected,
    Deferred,
    Throttled,
    CredentialsRefused,
    Timeout,
    ConnectionLost,
    UnknownAnswer,
    UnmatchedAnswer,
    ServerError,
    WorkerLost,
    KeyConflict,
    InFlight,
    Mismatch,
    CredentialsUnavailable,
    NotReached,
    StreamRefused,
    ConnectionRefused,
    NameNotResolved,
    AddressNotPublic,
    TlsFailed,
    LeaseLost,
    Unsendable,
    AttemptsExhausted,
    ElapsedExhausted,
    SpendExhausted,
    KeyWindowClosed,
    PinsChanged,
    ReviewAfter,
    NothingPromised,
    Absent,
    Inconclusive,
    Neutralised,
    Cancelled,
    Deadline,
    AuthorityRevoked,
    NothingToCompensate,
    Contradicted,
    Operator,
}

impl Reason {
    /// Every reason.
    pub const ALL: [Self; 38] = [
        Self::Rejected,
        Self::Deferred,
        Self::Throttled,
        Self::CredentialsRefused,
        Self::Timeout,
        Self::ConnectionLost,
        Self::UnknownAnswer,
        Self::UnmatchedAnswer,
        Self::ServerError,
        Self::WorkerLost,
        Self::KeyConflict,
        Self::InFlight,
        Self::Mismatch,
        Self::CredentialsUnavailable,
        Self::NotReached,
        Self::StreamRefused,
        Self::ConnectionRefused,
        Self::NameNotResolved,
        Self::AddressNotPublic,
        Self::TlsFailed,
        Self::LeaseLost,
        Self::Unsendable,
        Self::AttemptsExhausted,
        Self::ElapsedExhausted,
        Self::SpendExhausted,
        Self::KeyWindowClosed,
        Self::PinsChanged,
        Self::ReviewAfter,
        Self::NothingPromised,
        Self::Absent,
        Self::Inconclusive,
        Self::Neutralised,
        Self::Cancelled,
        Self::Deadline,
        Self::AuthorityRevoked,
        Self::NothingToCompensate,
        Self::Contradicted,
        Self::Operator,
    ];

    /// The code, as stored and logged.
    pub const fn code(self) -> &'static str {
        self.entry().0
    }

    /// What it says to a person; fits after "because".
    pub const fn sentence(self) -> &'static str {
        self.entry().1
    }

    /// The reason with that code.
    pub fn parse(code: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|reason| reason.code() == code)
    }

    const fn entry(self) -> (&'static str, &'static str) {
        match self {
            Self::Rejected => ("rejected", "the destination refused it for good"),
            Self::Deferred => ("deferred", "the destination said: not done, try later"),
            Self::Throttled => ("throttled", "the destination asked to slow down"),
            Self::CredentialsRefused => ("credentials_refused", "the destination refused our credentials"),
            Self::Timeout => ("timeout", "no answer came in time after the request may have left"),
            Self::ConnectionLost => ("connection_lost", "the connection was lost after the request may have left"),
            Self::UnknownAnswer => ("unknown_answer", "the answer does not say whether it took effect"),
            Self::UnmatchedAnswer => ("unmatched_answer", "the answer lacks what the contract compares"),
            Self::ServerError => ("server_error", "the destination broke down while answering"),
            Self::WorkerLost => ("worker_lost", "the worker that held it was lost while it may have been sending"),
            Self::KeyConflict => ("key_conflict", "the destination knows the key with other content"),
            Self::InFlight => ("in_flight", "the destination is still working on the first request"),
            Self::Mismatch => ("mismatch", "the destination confirmed something other than what was intended"),
            Self::CredentialsUnavailable => {
                ("credentials_unavailable", "no token could be had for the destination, so nothing was sent")
            }
            Self::NotReached => ("not_reached", "no byte of the request left"),
            Self::StreamRefused => ("stream_refused", "the destination said that it did not look at the request"),
            Self::ConnectionRefused => ("connection_refused", "the destination refused the connection"),
            Self::NameNotResolved => ("name_not_resolved", "the destination's name could not be resolved"),
            Self::AddressNotPublic => {
                ("address_not_public", "the destination's address is not public, and only public ones are allowed")
            }
            Self::TlsFailed => ("tls_failed", "no trusted connection could be made before anything was sent"),
            Self::LeaseLost => ("lease_lost", "the lease no longer covered the send, so nothing was sent"),
            Self::Unsendable => ("unsendable", "no valid request can be built from it"),
            Self::AttemptsExhausted => ("attempts_exhausted", "its attempts are used up"),
            Self::ElapsedExhausted => ("elapsed_exhausted", "its time is used up"),
            Self::SpendExhausted => ("spend_exhausted", "what may be spent on it is used up"),
            Self::KeyWindowClosed => ("key_window_closed", "the destination may have forgotten the key"),
            Self::PinsChanged => ("pins_changed", "URL, key or account changed since it was first sent"),
            Self::ReviewAfter => ("review_after", "its outcome has been unknown for too long"),
            Self::NothingPromised => ("nothing_promised", "the destination offers no way to find out"),
            Self::Absent => ("absent", "the destination does not know it"),
            Self::Inconclusive => ("inconclusive", "asking the destination settled nothing yet"),
            Self::Neutralised => ("neutralised", "it was cancelled at the destination by its key"),
            Self::Cancelled => ("cancelled", "it was cancelled"),
            Self::Deadline => ("deadline", "its deadline passed before it was sent"),
            Self::AuthorityRevoked => ("authority_revoked", "the authority it was committed under was revoked"),
            Self::NothingToCompensate => ("nothing_to_compensate", "what it compensates did not happen"),
            Self::Contradicted => ("contradicted", "it was confirmed although a cancel by its key had been sent"),
            Self::Operator => ("operator", "an operator decided so"),
        }
    }
}

impl From<super::action::Stop> for Reason {
    fn from(stop: super::action::Stop) -> Self {
        match stop {
            super::action::Stop::Cancelled => Self::Cancelled,
            super::action::Stop::Deadline => Self::Deadline,
            super::action::Stop::AuthorityRevoked => Self::AuthorityRevoked,
            super::action::Stop::NothingToCompensate => Self::NothingToCompensate,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn codes_are_unique_and_survive_a_round_trip() {
        let codes: HashSet<_> = Reason::ALL.iter().map(|r| r.code()).collect();
        assert_eq!(codes.len(), Reason::ALL.len());
        for reason in Reason::ALL {
            assert_eq!(Reason::parse(reason.code()), Some(reason));
        }
    }

    #[test]
    fn r10_no_sentence_says_failed() {
        for reason in Reason::ALL {
            assert!(!reason.sentence().contains("failed"), "{}", reason.code());
        }
    }
}
