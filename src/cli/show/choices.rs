//! What a person may decide about an action, what each decision risks, and which are impossible and why. The database
//! has the last word (OB412); this says the same beforehand.

use super::View;
use super::doubt::repeat_may_double;
use super::queue;
use super::ruled_out::ruled_out;
use crate::cli::print::words::{age, clock};
use crate::core::action::{State, Step};
use crate::core::ladder;
use crate::core::time::Timestamp;
use crate::ledger::Story;

/// A decision that could be typed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Choice {
    /// Its name, as in the history.
    pub name: &'static str,
    /// What it asserts, for a person.
    pub says: &'static str,
    /// What it may cost, or why it is not possible.
    pub verdict: Verdict,
    /// The command, without the placeholders' values.
    pub command: String,
}

/// Whether a decision is possible.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// It is, and this is what it risks.
    Possible(String),
    /// It is not, and this is why.
    Refused(String),
}

/// What may be decided now; empty where nothing can.
pub fn choices(view: &View<'_>) -> Vec<Choice> {
    let story = view.story;
    match (story.standing.state, story.standing.took_effect) {
        (State::OutcomeUnknown, _) => vec![happened(view), did_not_happen(view), send_again(view)],
        // Contradicted: it stays closed, but a person can say what is true of it.
        (State::TerminalFailure, None) => vec![happened(view), did_not_happen(view)],
        (State::TerminalFailure, Some(false)) if queue::holds(story) => vec![retry(view), release(view)],
        (State::TerminalFailure, Some(false)) => vec![retry(view)],
        (State::Pending | State::RetryableFailure, _) if story.cancellation.is_none() => vec![cancel(view)],
        (State::TerminalFailure, Some(true)) => vec![],
        (State::Pending | State::RetryableFailure | State::Dispatching | State::Succeeded, _) => vec![],
    }
}

/// What stands above them.
pub fn heading(story: &Story) -> &'static str {
    match (story.standing.state, story.standing.step, story.standing.took_effect) {
        (State::OutcomeUnknown, Step::Review, _) | (State::TerminalFailure, _, None) => "You may decide",
        (State::OutcomeUnknown, _, _) => "You may decide before outboxd does",
        (_, _, _) => "You may",
    }
}

/// The command with everything but who and why.
fn command(view: &View<'_>, verb: &str, flags: &str) -> String {
    let mut command = format!("outboxd {verb} {}", view.story.committed.id);
    for part in [flags, "--by YOU --reason WHY", &view.config] {
        if !part.is_empty() {
            command.push(' ');
            command.push_str(part);
        }
    }
    command
}

fn happened(view: &View<'_>) -> Choice {
    let risk = if view.story.standing.state == State::TerminalFailure {
        "It stays closed; what is known of it is recorded."
    } else {
        "If that is wrong, it never happens: nothing is sent any more."
    };
    Choice {
        name: "happened",
        says: "It happened: you saw the effect at the destination.",
        verdict: Verdict::Possible(risk.to_owned()),
        command: command(view, "resolve", "--happened --receipt RECEIPT"),
    }
}

fn did_not_happen(view: &View<'_>) -> Choice {
    let story = view.story;
    let verdict = if story.standing.state == State::TerminalFailure {
        Verdict::Possible("It stays closed; what is known of it is recorded, and it may be tried again.".to_owned())
    } else if story.standing.proof.is_some() {
        Verdict::Refused(PROVED.to_owned())
    } else if let Some(end) = still_arriving(view) {
        Verdict::Refused(format!(
            "not before {} UTC (in {}); until then a request may still arrive, or not be seen yet.",
            clock(end, story.now),
            age(end.since(story.now))
        ))
    } else {
        let retry = match repeat_may_double(view) {
            true => "With --retry it is sent anew and, if that is wrong, happens twice.",
            false => "With --retry it is sent anew.",
        };
        let risk = "If that is wrong, it has happened although the ledger says that it has not.";
        Verdict::Possible(format!("{risk} {retry}"))
    };
    Choice {
        name: "did_not_happen",
        says: "It did not happen: you made sure that it is not there.",
        verdict,
        command: command(view, "resolve", "--did-not-happen"),
    }
}

/// Why nothing else may be decided while late proof waits in the row.
const PROVED: &str = "its destination has confirmed it meanwhile, and the next worker writes that down.";
/// Why nothing more is sent.
const SPENT: &str = "a cancel by its key has been sent, and the key is spent.";

/// Until when a request that was sent may still take effect or not be seen; `None` where that has passed. The ledger
/// goes by what a daemon has last written down; where none has, by this configuration.
fn still_arriving(view: &View<'_>) -> Option<Timestamp> {
    let settles = match &view.story.inventory {
        Some(inventory) => inventory.absence,
        None => view.operation.and_then(|operation| operation.terms.contract.absence()),
    };
    let end = view.story.standing.last_sent_at?.plus(settles.unwrap_or_default());
    (end >= view.story.now).then_some(end)
}

fn send_again(view: &View<'_>) -> Choice {
    let story = view.story;
    let row = story.as_row();
    let verdict = if row.cancel_sent {
        Verdict::Refused(SPENT.to_owned())
    } else if row.proof.is_some() {
        Verdict::Refused(PROVED.to_owned())
    } else {
        Verdict::Possible(match view.operation {
            None => "What the destination promises is not known here: it may happen twice.".to_owned(),
            Some(operation) if operation.terms.policy.effect.repeats_freely() => {
                "By its owner's word a repeat is harmless.".to_owned()
            }
            Some(operation) if !row.sent_under.is(operation.terms.pins) => {
                "URL, key form or account have changed since, so the destination may not recognise it: it may happen \
                 twice."
                    .to_owned()
            }
            Some(_) if ruled_out(view).is_some() => {
                "After what was answered, nothing promises that it is recognised: it may happen twice.".to_owned()
            }
            Some(operation) => match (repeat_may_double(view), ladder::resend_ends(&row, &operation.terms)) {
                (true, _) => "You accept that it may happen twice.".to_owned(),
                (false, ladder::ResendEnds::At(end)) if operation.terms.contract.key.is_some() => format!(
                    "It goes under the same key, which the destination promises to recognise until {} UTC.",
                    clock(end, story.now)
                ),
                (false, _) => "It goes under the same key, which the destination promises to recognise.".to_owned(),
            },
        })
    };
    Choice {
        name: "send_again",
        says: "Send it once more, whatever happened.",
        verdict,
        command: command(view, "resolve", "--send-again"),
    }
}

fn retry(view: &View<'_>) -> Choice {
    let story = view.story;
    let revoked = story.revocations.iter().find(|revocation| revocation.lifted.is_none());
    let undone = story.compensates.as_ref().is_some_and(|original| original.took_effect == Some(false));
    let refused = if story.standing.cancel_sent_at.is_some() {
        Some(SPENT.to_owned())
    } else if story.cancellation.is_some() {
        Some("it was cancelled, and that is not taken back; enqueue a new action.".to_owned())
    } else if story.committed.expires_at.is_some_and(|end| end <= story.now) {
        Some("its deadline has passed; enqueue a new action.".to_owned())
    } else if undone {
        Some("what it compensates did not happen.".to_owned())
    } else {
        revoked.map(|revocation| format!("its authority is revoked (revocation {}).", revocation.number))
    };
    let possible = || "It is sent anew, with its budgets as at the beginning.".to_owned();
    let verdict = refused.map_or_else(|| Verdict::Possible(possible()), Verdict::Refused);
    Choice { name: "retry", says: "Try it again.", verdict, command: command(view, "retry", "") }
}

fn release(view: &View<'_>) -> Choice {
    Choice {
        name: "release",
        says: "Let its queue go on without it.",
        verdict: Verdict::Possible(
            "It stays closed, and what comes behind it is sent although it is missing.".to_owned(),
        ),
        command: command(view, "release", ""),
    }
}

fn cancel(view: &View<'_>) -> Choice {
    Choice {
        name: "cancel",
        says: "Cancel it: it is not sent any more.",
        verdict: Verdict::Possible("Nothing is in doubt: nothing of it has taken effect.".to_owned()),
        command: command(view, "cancel", ""),
    }
}
