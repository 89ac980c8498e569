//! What is known about an action, in sentences that follow from facts.

use super::View;
use super::doubt::{since, unknown};
use super::evidence;
use super::facts::{self, Sends};
use super::queue;
use crate::cli::print::promise;
use crate::cli::print::text::{detail, name};
use crate::cli::print::words::{age, clock, relative, times};
use crate::core::action::{State, Step};
use crate::core::reason::Reason;
use crate::ledger::Story;

/// The sentences, by line. The order: what was done, what came back, what is promised, what follows.
pub fn known(view: &View<'_>) -> Vec<String> {
    let story = view.story;
    let mut lines = vec![join([Some(sent(story)), came_back(story)])];
    let in_doubt = story.standing.doubt.is_some();
    if in_doubt || is_contradicted(story) {
        lines.push(match view.operation {
            Some(operation) => promise::long(operation),
            None => not_configured(story),
        });
    }
    lines.extend(follows(view));
    if is_overdue(story) {
        lines.extend(view.obstacle.clone());
    }
    if view.operation.is_none() && !in_doubt && !story.standing.state.is_closed() {
        lines.push(nobody_sends(story));
    }
    lines.extend(queue::others(story));
    lines.extend(stops(story));
    lines
}

pub(super) fn join<const N: usize>(sentences: [Option<String>; N]) -> String {
    sentences.into_iter().flatten().collect::<Vec<_>>().join(" ")
}

/// How often it was sent, and when.
fn sent(story: &Story) -> String {
    let Sends { certain, perhaps, unsent, first, last } = facts::sends(story);
    let ago = |at| age(story.now.since(at));
    let when = match (first, last) {
        (Some(first), Some(last)) if certain + perhaps > 1 => {
            format!(", first {} ago, last {} ago", ago(first), ago(last))
        }
        (_, Some(last)) => format!(", {} ago", ago(last)),
        (_, None) => String::new(),
    };
    match (certain, perhaps) {
        (0, 0) if unsent > 0 => format!("Nothing has been sent; {} it was tried and no byte left.", times(unsent)),
        (0, 0) => match (story.standing.first_sent_at, facts::is_being_sent(story)) {
            // After a failover the history of a send may be gone while the row remembers it, or the reverse.
            (Some(first), false) => {
                format!("Perhaps sent, {} ago at the earliest; how often is not recorded.", ago(first))
            }
            (Some(_), true) | (None, _) => "Nothing has been sent yet, as far as is recorded.".to_owned(),
        },
        (0, perhaps) => format!("Perhaps sent {}{when}.", times(perhaps)),
        (certain, 0) => format!("Sent {}{when}.", times(certain)),
        (certain, perhaps) => format!("Sent {} and perhaps {} more{when}.", times(certain), times(perhaps)),
    }
}

/// What came back: to the last send, and to the last question after it.
fn came_back(story: &Story) -> Option<String> {
    let send = facts::last_send(story).filter(|entry| facts::left(entry) != Some(facts::Left::No));
    let said = send.map(evidence::sentence);
    let asked = facts::last_asked(story).map(evidence::sentence);
    (said.is_some() || asked.is_some()).then(|| join([said, asked]))
}

fn not_configured(story: &Story) -> String {
    let text = "This configuration does not have the operation, so what its destination promises is not known here";
    match &story.inventory {
        Some(inventory) => format!(
            "{text}; a daemon has last run it for destination {} under contract {}.",
            inventory.destination.as_deref().map_or("–".to_owned(), name),
            inventory.contract.as_deref().map_or("–".to_owned(), name),
        ),
        None => format!("{text}."),
    }
}

/// Whether a daemon could have taken it by now and none has.
fn is_overdue(story: &Story) -> bool {
    let standing = &story.standing;
    let is_taken = standing.state == State::Dispatching || standing.state.is_closed();
    !is_taken && standing.due_at.is_some_and(|due| due <= story.now)
}

/// Why an open action may be waiting for nobody.
fn nobody_sends(story: &Story) -> String {
    let operation = name(&story.committed.operation);
    match &story.inventory {
        Some(_) => format!("This configuration does not have {operation}: only a daemon whose file has it sends this."),
        None => format!(
            "No daemon has ever had {operation}, and this configuration does not either: if the name is wrong, cancel this \
             and enqueue it anew."
        ),
    }
}

/// What follows from that, and what comes next.
fn follows(view: &View<'_>) -> Vec<String> {
    let story = view.story;
    match story.standing.state {
        State::Pending => vec![pending(view)],
        State::RetryableFailure => {
            vec![format!("{}{}.", because(story, "Not done yet"), next(view, "the next attempt"))]
        }
        State::Dispatching => dispatching(view),
        State::OutcomeUnknown => unknown(view),
        State::Succeeded => vec![succeeded(story)],
        State::TerminalFailure => vec![terminal(story)],
    }
}

/// "Not done yet: the destination asked to slow down; "
fn because(story: &Story, what: &str) -> String {
    match reason(story) {
        Some(reason) => format!("{what}: {reason}; "),
        None => format!("{what}; "),
    }
}

/// Why it stands where it stands, as a clause; a code of another version as it is.
pub(super) fn reason(story: &Story) -> Option<String> {
    let code = story.standing.reason.as_deref()?;
    Some(Reason::parse(code).map_or_else(|| name(code), |reason| reason.sentence().to_owned()))
}

/// "the next attempt is in 3 s, number 2 of 5"
fn next(view: &View<'_>, what: &str) -> String {
    let story = view.story;
    let due = match story.standing.due_at {
        Some(due) if due > story.now => format!("{what} is in {}", age(due.since(story.now))),
        Some(due) => format!("{what} has been due for {} and no worker has taken it", age(story.now.since(due))),
        None => format!("{what} is not scheduled"),
    };
    match view.operation {
        Some(operation) => {
            let (next, most) = (story.standing.attempts.saturating_add(1), operation.terms.policy.attempts_max);
            format!("{due}, number {next} of at most {most}")
        }
        None => due,
    }
}

fn pending(view: &View<'_>) -> String {
    let story = view.story;
    if story.stop().is_some() {
        return "It is not sent; the next daemon that has its operation closes it.".to_owned();
    }
    if let Some(waits) = queue::waits(story) {
        return waits;
    }
    if let Some(original) = story.compensates.as_ref().filter(|original| original.took_effect.is_none()) {
        return format!("It waits until {}, which it compensates, is known to have happened.", original.id);
    }
    let waits = match story.standing.due_at {
        Some(due) if due > story.now => format!("It is to be sent {}", relative(due, story.now)),
        Some(due) => format!("It has been due for {}; no worker has taken it yet", age(story.now.since(due))),
        None => "It is not scheduled".to_owned(),
    };
    match reason(story) {
        Some(reason) => format!("{waits}. Before that: {reason}."),
        None => format!("{waits}."),
    }
}

fn dispatching(view: &View<'_>) -> Vec<String> {
    let (story, standing) = (view.story, &view.story.standing);
    let worker = standing.worker.as_deref().map_or("A worker".to_owned(), |worker| format!("Worker {}", name(worker)));
    let doing = match (standing.step, standing.doubt.is_some()) {
        (Step::Send, false) => "may be sending it",
        (Step::Send, true) => "may be sending it again",
        (Step::Lookup, _) => "asks the destination",
        (Step::Cancel, _) => "cancels it at the destination",
        (Step::Conclude | Step::Review, _) => "works out what comes next",
    };
    let holds = match standing.due_at {
        Some(end) if end <= story.now => format!(
            "{worker} had a lease (fence {}) that ended {} ago: it is late or gone, and the next claim takes over.",
            standing.fence,
            age(story.now.since(end))
        ),
        Some(end) => format!(
            "{worker} holds it (fence {}) for {} more and {doing}; no answer is recorded yet.",
            standing.fence,
            age(end.since(story.now))
        ),
        None => format!("{worker} holds it (fence {}).", standing.fence),
    };
    let doubt = standing.doubt.map(|_| format!("{} {}", since(story), "Whether it took effect is still unknown."));
    let proof = standing.proof.is_some().then(|| {
        "Late proof of success has arrived meanwhile; the worker, or the next one, closes it with that.".to_owned()
    });
    [Some(holds), doubt, proof].into_iter().flatten().collect()
}

fn succeeded(story: &Story) -> String {
    let standing = &story.standing;
    let when = standing.closed_at.map(|at| format!(" at {} UTC", clock(at, story.now))).unwrap_or_default();
    let receipt = standing.receipt.as_deref().map(|r| format!(", receipt {}", name(r))).unwrap_or_default();
    let how = match facts::last_decision(story) {
        Some(decision) => format!(
            "{} has recorded{when} that it happened{receipt}.",
            decision.decided_by.as_deref().map_or("Somebody".to_owned(), name)
        ),
        None => format!("It took effect: that was settled{when}{receipt}."),
    };
    let doubt = facts::was_unknown_since(story).zip(standing.closed_at);
    let doubt =
        doubt.map(|(since, end)| format!("Its outcome had been unknown for {} by then.", age(end.since(since))));
    join([Some(how), doubt])
}

/// Closed as not done, then confirmed by its destination, and nobody has decided about it.
fn is_contradicted(story: &Story) -> bool {
    story.standing.state == State::TerminalFailure && story.standing.took_effect.is_none()
}

fn terminal(story: &Story) -> String {
    let standing = &story.standing;
    let decided_by =
        facts::last_decision(story).map(|decision| decision.decided_by.as_deref().map_or("Somebody".to_owned(), name));
    if is_contradicted(story) {
        let (late, end) = (facts::contradiction(story), standing.closed_at);
        return format!(
            "CONTRADICTED: it was closed as not done ({}), and {} later the destination's confirmation of an earlier \
             send came to light{}. It probably took effect; a person must look.",
            standing.reason.as_deref().map_or("no reason".to_owned(), |code| name(&code.replace('_', " "))),
            late.zip(end).map_or("some time".to_owned(), |(late, end)| age(late.finished_at.since(end))),
            late.and_then(|late| late.receipt.as_deref())
                .map(|r| format!(" (receipt {})", name(r)))
                .unwrap_or_default(),
        );
    }
    match (standing.took_effect, decided_by) {
        (Some(true), by) => format!(
            "It was closed as not done, was confirmed afterwards, and {} has recorded that it took effect.",
            by.unwrap_or_else(|| "somebody".to_owned())
        ),
        (_, Some(by)) => format!("{by} has recorded that it did not happen; it will not be tried again."),
        (_, None) => format!(
            "It did not take effect and will not be tried again{}: {}.",
            if queue::holds(story) { " by itself" } else { "" },
            reason(story).unwrap_or_else(|| "no reason is recorded".to_owned())
        ),
    }
}

/// Who has asked that it is not sent any more; of what is closed the reason says it.
fn stops(story: &Story) -> Vec<String> {
    if story.standing.state.is_closed() {
        return vec![];
    }
    let mut lines = Vec::new();
    if let Some(note) = &story.cancellation {
        let when = relative(note.at, story.now);
        let effect = match story.standing.doubt {
            Some(_) => " It is not sent again, but what was sent may have taken effect.",
            None => "",
        };
        lines.push(format!("{} asked {when} to cancel it: {}.{effect}", name(&note.by), detail(&note.reason)));
    }
    if let Some(end) = story.committed.expires_at.filter(|end| *end <= story.now) {
        lines.push(format!("Its deadline passed {}.", relative(end, story.now)));
    }
    for revocation in story.revocations.iter().filter(|revocation| revocation.lifted.is_none()) {
        lines.push(format!(
            "{} has revoked its authority {} (revocation {}): {}.",
            name(&revocation.made.by),
            relative(revocation.made.at, story.now),
            revocation.number,
            detail(&revocation.made.reason)
        ));
    }
    lines
}
