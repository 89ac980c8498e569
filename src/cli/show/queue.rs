//! The serial queue of an action, in sentences.

use crate::cli::print::text::name;
use crate::cli::print::words::grouped;
use crate::ledger::{Story, WAITING_MAX};

/// Whether it is closed, and holds its queue.
pub fn holds(story: &Story) -> bool {
    story.queue.as_ref().is_some_and(|queue| queue.holds)
}

/// Where it waits for its turn: behind whom, and how that one stands.
pub fn waits(story: &Story) -> Option<String> {
    let queue = story.queue.as_ref().filter(|queue| !queue.has_turn)?;
    let place = match queue.before {
        0 => "it is the next one".to_owned(),
        1 => "1 more comes before it".to_owned(),
        n => format!("{} more come before it", count(n)),
    };
    Some(match &queue.head {
        Some(head) => {
            let reason = head.reason.as_deref().map(|code| format!(": {}", name(&code.replace('_', " "))));
            format!(
                "It waits for its turn behind {} ({}{}); {place}.",
                head.id,
                name(&head.label.replace('_', " ")),
                reason.unwrap_or_default()
            )
        }
        None => format!("It waits for its turn, which is being given; {place}."),
    })
}

/// Who waits behind it, where it has the turn.
pub fn others(story: &Story) -> Option<String> {
    let queue = story.queue.as_ref().filter(|queue| queue.has_turn && (queue.behind > 0 || queue.holds))?;
    let (who, wait) = match queue.behind {
        0 => ("Whatever".to_owned(), "waits"),
        1 => ("1 more".to_owned(), "waits"),
        n => (format!("{} more", count(n)), "wait"),
    };
    let until = match queue.holds {
        true => "until it is tried again, or they are let go",
        false => "until it has ended",
    };
    Some(match queue.behind {
        0 => format!("It holds its queue: {} comes behind it {wait} {until}.", who.to_lowercase()),
        _ => format!("{who} {wait} behind it in its queue {until}."),
    })
}

/// A number of actions; "at least" where no more were counted.
fn count(n: i64) -> String {
    let number = grouped(n.unsigned_abs());
    if n >= WAITING_MAX { format!("at least {number}") } else { number }
}
