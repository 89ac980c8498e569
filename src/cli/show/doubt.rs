//! What an unknown outcome means: what comes next, until when a repeat is recognised, why only a person can decide.

use super::View;
use super::known::{join, reason};
use super::ruled_out::ruled_out;
use crate::cli::print::text::detail;
use crate::cli::print::words::{age, clock, relative};
use crate::core::action::Step;
use crate::core::ladder::{self, ResendEnds};
use crate::core::reason::Reason;
use crate::core::row::SentUnder;
use crate::ledger::Story;

/// "Unknown for 12 min (since 10:31:09 UTC), because of more than one attempt."
pub(super) fn since(story: &Story) -> String {
    match story.standing.doubt {
        Some(doubt) => {
            format!("Unknown for {} (since {} UTC).", age(story.now.since(doubt.since)), clock(doubt.since, story.now),)
        }
        None => String::new(),
    }
}

pub(super) fn unknown(view: &View<'_>) -> Vec<String> {
    let (story, standing) = (view.story, &view.story.standing);
    let soon = |what: &str| match standing.due_at {
        Some(due) if due > story.now => format!("{what} {}.", relative(due, story.now)),
        Some(_) | None => format!("{what} as soon as a worker is free."),
    };
    let so = match standing.step {
        Step::Send if standing.overridden => {
            soon("So it may or may not have taken effect; a person has decided that it is sent again, which happens")
        }
        Step::Send => soon("So it may or may not have taken effect. The same request is sent again under the same key"),
        Step::Lookup => soon("So it may or may not have taken effect. The destination is asked"),
        Step::Cancel => soon("So it may or may not have taken effect. It is cancelled at the destination, by its key,"),
        Step::Conclude => soon("So it may or may not have taken effect. What comes next is worked out"),
        Step::Review if repeat_may_double(view) => {
            "So it may or may not have taken effect, and sending it again could make it happen twice.".to_owned()
        }
        Step::Review => "So it may or may not have taken effect.".to_owned(),
    };
    let held = (standing.step == Step::Review).then(|| held(story));
    [Some(so), resend_until(view), Some(join([Some(since(story)), held]))].into_iter().flatten().collect()
}

/// Why only a person can decide. What was learnt last is no reason by itself: it has been said.
fn held(story: &Story) -> String {
    let learnt = [
        Reason::Timeout,
        Reason::ConnectionLost,
        Reason::UnknownAnswer,
        Reason::ServerError,
        Reason::WorkerLost,
        Reason::InFlight,
        Reason::NothingPromised,
    ];
    match reason(story) {
        Some(reason) if !learnt.iter().any(|learnt| learnt.sentence() == reason) => {
            format!("It is held for a person: {reason}.")
        }
        Some(_) | None => "It is held for a person: nothing that is promised can settle it.".to_owned(),
    }
}

/// Whether a repeat now could take effect a second time. Where nothing is known of a promise, it could.
pub fn repeat_may_double(view: &View<'_>) -> bool {
    let Some(operation) = view.operation else { return true };
    if operation.terms.policy.effect.repeats_freely() {
        return false;
    }
    let row = view.story.as_row();
    let recognised = match ladder::resend_ends(&row, &operation.terms) {
        ResendEnds::Never => true,
        ResendEnds::At(end) => view.story.now.plus(operation.terms.policy.timeout) <= end,
        ResendEnds::NotAllowed => false,
    };
    !(recognised && row.sent_under.is(operation.terms.pins) && !row.cancel_sent) || ruled_out(view).is_some()
}

/// Until when a repeat is recognised, or why it is not.
fn resend_until(view: &View<'_>) -> Option<String> {
    let (story, operation) = (view.story, view.operation?);
    let row = story.as_row();
    if row.cancel_sent {
        return Some(
            "A cancel by its key has been sent: the key is spent, and nothing may be sent under it.".to_owned(),
        );
    }
    if row.sent_under != SentUnder::Nothing && !row.sent_under.is(operation.terms.pins) {
        return Some(
            "URL, key form or account have changed since it was sent: nothing is sent again by itself, and not finding \
             it proves nothing."
                .to_owned(),
        );
    }
    if let Some(ruled_out) = ruled_out(view) {
        let what = "After what was answered, nothing promises that a repeat is recognised.";
        return Some(match ruled_out.note {
            Some(note) => format!("{what} The contract notes: {}", detail(note)),
            None => what.to_owned(),
        });
    }
    let key = operation.terms.contract.key.as_ref().is_some_and(|key| key.mode.needs_window());
    match ladder::resend_ends(&row, &operation.terms) {
        ResendEnds::At(end) if key && story.standing.first_sent_at.is_some() => Some(if end > story.now {
            let (at, left) = (clock(end, story.now), age(end.since(story.now)));
            format!("A repeat is recognised until {at} UTC, for {left} more.")
        } else {
            format!("The time in which a repeat is sure to be recognised ended {} ago.", age(story.now.since(end)))
        }),
        ResendEnds::At(_) | ResendEnds::Never | ResendEnds::NotAllowed => None,
    }
}
