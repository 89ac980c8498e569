//! What is known where no answer came.

use std::error::Error as _;

use hyper_util::client::legacy::Error;

use super::Limits;
use super::connector::{reason_not_reached, said, took_too_long};
use super::departure::Sent;
use super::wire::Traffic;
use crate::core::evidence::{Evidence, Finding};
use crate::core::reason::Reason;

const NO_CONNECTION_IN_TIME: &str = "no connection within the connect timeout";

/// Nothing left, because its time was over.
pub(super) fn too_late(limits: &Limits) -> Finding {
    if limits.leave_before < limits.deadline {
        Finding::because(Evidence::NotSent, Reason::LeaseLost)
    } else {
        Finding::because(Evidence::NotSent, Reason::NotReached).with_detail("no connection before the deadline")
    }
}

/// No answer in time.
pub(super) fn timed_out(sent: Sent, limits: &Limits) -> Finding {
    match sent {
        Sent::Nothing { .. } if limits.leave_by().is_over() => too_late(limits),
        Sent::Nothing { .. } => Finding::because(Evidence::NotSent, Reason::NotReached)
            .with_detail("the connection closed before it took it"),
        Sent::Bytes(traffic) => Finding::because(Evidence::NoAnswer, Reason::Timeout).with_detail(crossed(
            "no answer in time",
            traffic.written,
            traffic.read,
        )),
        Sent::Unknown => Finding::because(Evidence::NoAnswer, Reason::Timeout),
    }
}

/// The exchange broke off. `host_from_data`: an action's params say where it goes.
pub(super) fn broken(error: &Error, sent: Sent, limits: &Limits, host_from_data: bool) -> Finding {
    match sent {
        Sent::Nothing { missed: true } => too_late(limits),
        Sent::Nothing { missed: false } => not_sent(error, host_from_data),
        Sent::Bytes(traffic) if traffic.missed => Finding::because(Evidence::NoAnswer, Reason::Timeout)
            .with_detail(crossed("stopped at its time", traffic.written, traffic.read)),
        Sent::Bytes(traffic) => after_bytes(error, Some(traffic)),
        Sent::Unknown => after_bytes(error, None),
    }
}

/// What became of a question that got no answer, for a person.
pub(super) fn told(finding: &Finding) -> String {
    let reason = finding.reason.map_or("no answer", Reason::sentence);
    match &finding.detail {
        Some(detail) => format!("{reason}: {detail}"),
        None => reason.to_owned(),
    }
}

/// An address that is not public is, of a host in the configuration, a matter of that or of DNS, which a person mends and
/// the action then goes out. A host that the action itself names cannot be mended: it can never be sent, and trying again
/// would only let whoever chose the host probe our network over and over.
pub(super) fn not_sent(error: &(dyn std::error::Error + 'static), host_from_data: bool) -> Finding {
    let reason = reason_not_reached(error);
    let finding = if host_from_data && reason == Reason::AddressNotPublic {
        Finding::because(Evidence::Unsendable, Reason::Unsendable)
    } else {
        Finding::because(Evidence::NotSent, reason)
    };
    match said(error) {
        // The connector's own timer and the one for each address may go off together.
        _ if took_too_long(error) => finding.with_detail(NO_CONNECTION_IN_TIME),
        Some(said) => finding.with_detail(said),
        None => finding.with_detail("the connection closed before anything was sent"),
    }
}

fn after_bytes(error: &Error, traffic: Option<Traffic>) -> Finding {
    let cause = error.source().and_then(|cause| cause.downcast_ref::<hyper::Error>());
    let (finding, what) = if cause.is_some_and(hyper::Error::is_parse) {
        (Finding::because(Evidence::UnknownAnswer, Reason::UnknownAnswer), "the answer is not valid HTTP".to_owned())
    } else {
        let what = said(error).unwrap_or_else(|| "connection closed".to_owned());
        (Finding::because(Evidence::NoAnswer, Reason::ConnectionLost), what)
    };
    match traffic {
        Some(traffic) => finding.with_detail(crossed(&what, traffic.written, traffic.read)),
        None => finding.with_detail(what),
    }
}

pub(super) fn crossed(what: &str, written: u64, read: u64) -> String {
    format!("{what}, after {written} bytes of the request and {read} of an answer")
}
