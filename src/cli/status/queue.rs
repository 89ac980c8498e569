//! The serial queues in which nothing moves.

use serde_json::{Value, json};

use crate::cli::print::screen::Screen;
use crate::cli::print::table::{Side, Table};
use crate::cli::print::text::name;
use crate::cli::print::words::{age, grouped, rfc3339};
use crate::core::time::Timestamp;
use crate::ledger::{HeldQueue, WAITING_MAX};

/// The most queues that are shown: those held the longest.
pub const QUEUES_MAX: u32 = 20;

/// One line for each, the longest held first.
pub fn table(queues: &[HeldQueue], now: Timestamp, screen: Screen) -> String {
    let mut table = Table::new(&[
        ("held queue", Side::Left),
        ("waiting", Side::Right),
        ("for", Side::Right),
        ("behind", Side::Left),
        ("operation", Side::Left),
        ("since it is", Side::Left),
    ]);
    for queue in queues {
        let whose = match queue.tenant.as_str() {
            "" => name(&queue.ordering_key),
            tenant => format!("{} / {}", name(tenant), name(&queue.ordering_key)),
        };
        let waiting = grouped(queue.waiting.unsigned_abs());
        let more = if queue.waiting >= WAITING_MAX { "+" } else { "" };
        table.row([
            whose,
            format!("{waiting}{more}"),
            age(now.since(queue.since)),
            queue.head.to_string(),
            name(&queue.operation),
            why(queue),
        ]);
    }
    let mut out = table.show(screen);
    if queues.len() >= usize::try_from(QUEUES_MAX).unwrap_or(usize::MAX) {
        out.push_str(&format!("the {QUEUES_MAX} that have been held the longest\n"));
    }
    out
}

/// "awaiting review: timeout", "failed: rejected"
fn why(queue: &HeldQueue) -> String {
    let stands = if queue.holds { "a failure that holds it".to_owned() } else { queue.label.replace('_', " ") };
    match queue.reason.as_deref() {
        Some(reason) => format!("{}: {}", name(&stands), name(&reason.replace('_', " "))),
        None => name(&stands),
    }
}

/// What only a person can let go.
pub fn needs(queues: &[HeldQueue], given: &str) -> Option<String> {
    let mut failures = queues.iter().filter(|queue| queue.holds);
    let first = failures.next()?;
    let what = match failures.count() {
        0 => "1 failure holds its queue".to_owned(),
        n => format!("{} failures hold their queues", n + 1),
    };
    Some(format!("{what}: outboxd show {} {given}", first.head).trim_end().to_owned())
}

/// For programs.
pub fn json_of(queue: &HeldQueue) -> Value {
    json!({
        "tenant": queue.tenant,
        "ordering_key": queue.ordering_key,
        "waiting": queue.waiting,
        "since": rfc3339(queue.since),
        "holds": queue.holds,
        "head": {
            "action_id": queue.head.0,
            "operation": queue.operation,
            "label": queue.label,
            "reason": queue.reason,
            "due_at": queue.due_at.map(rfc3339),
        },
    })
}
