//! The history in time order: what was committed, tried, learnt, requested and decided.

use super::evidence;
use super::facts::{self, Left};
use crate::cli::print::text::{detail, name};
use crate::cli::print::words::{clock, clock_ms, day};
use crate::core::time::Timestamp;
use crate::ledger::{Entry, EntryKind, HISTORY_MAX, Story};

/// A run of more entries that are alike is shown by its first and its last.
const ALIKE_MAX: usize = 4;

/// One line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Line {
    /// When; lines are in this order.
    pub at: Timestamp,
    /// A few words.
    pub what: String,
    /// Who, how, why. May be empty.
    pub detail: String,
}

/// Every line, in time order.
pub fn lines(story: &Story) -> Vec<Line> {
    let mut lines = vec![committed(story)];
    lines.extend(stops(story));
    lines.extend(entries(story));
    // Stable: what is of the same moment stays in the order of the history.
    lines.sort_by_key(|line| line.at);
    lines
}

/// As text: three columns, the day where it changes.
pub fn show(story: &Story) -> String {
    let lines = lines(story);
    let wide = lines.iter().map(|line| line.what.chars().count()).max().unwrap_or(0);
    let one_day = lines.iter().all(|line| day(line.at) == day(story.now));
    let (mut out, mut of) = (String::new(), String::new());
    for line in &lines {
        if !one_day && day(line.at) != of {
            of = day(line.at);
            out.push_str(&format!("  {of}\n"));
        }
        let row = format!("  {}  {:wide$}  {}", clock_ms(line.at), line.what, line.detail);
        out.push_str(row.trim_end());
        out.push('\n');
    }
    out
}

fn committed(story: &Story) -> Line {
    let c = &story.committed;
    let id = |what: &str, id: &Option<String>| id.as_deref().map(|id| format!("{what} {}", name(id)));
    let parts = [
        id("workflow", &c.workflow_id),
        id("proposal", &c.proposal_id),
        id("event", &c.event_id),
        id("trace", &c.traceparent),
        id("authority", &c.authority),
        id("ordering key", &c.ordering_key),
        c.not_before.map(|at| format!("not before {}", clock(at, story.now))),
        c.expires_at.map(|at| format!("expires {}", clock(at, story.now))),
        story.compensates.as_ref().map(|original| format!("compensates {}", original.id)),
    ];
    Line { at: c.created_at, what: "committed".to_owned(), detail: joined(parts) }
}

fn stops(story: &Story) -> Vec<Line> {
    let mut lines = Vec::new();
    if let Some(note) = &story.cancellation {
        let detail = format!("by {}: {}", name(&note.by), detail(&note.reason));
        lines.push(Line { at: note.at, what: "cancel requested".to_owned(), detail });
    }
    for revocation in &story.revocations {
        let detail_of = |note: &crate::ledger::Note| {
            format!("revocation {} by {}: {}", revocation.number, name(&note.by), detail(&note.reason))
        };
        let made = &revocation.made;
        // One that was made before the action was committed stands at its beginning.
        lines.push(Line { at: made.at, what: "authority revoked".to_owned(), detail: detail_of(made) });
        if let Some(note) = &revocation.lifted {
            lines.push(Line { at: note.at, what: "revocation lifted".to_owned(), detail: detail_of(note) });
        }
    }
    if let Some(at) = story.standing.cancel_sent_at {
        let text = "from here on nothing may be sent under the key";
        lines.push(Line { at, what: "cancel by key sent".to_owned(), detail: text.to_owned() });
    }
    lines
}

fn entries(story: &Story) -> Vec<Line> {
    let mut lines = Vec::new();
    if story.history.len() >= HISTORY_MAX {
        let at = story.history.first().map_or(story.now, |entry| entry.finished_at);
        let text = format!("only the latest {HISTORY_MAX} entries are shown");
        lines.push(Line { at, what: "…".to_owned(), detail: text });
    }
    let mut sent = 0;
    let alike = |a: &Entry, b: &Entry| {
        (a.kind, &a.evidence, &a.verdict, a.status) == (b.kind, &b.evidence, &b.verdict, b.status)
    };
    for run in story.history.chunk_by(alike) {
        for (at, entry) in run.iter().enumerate() {
            let is_send = entry.kind == EntryKind::Send && facts::left(entry) != Some(Left::No);
            sent += usize::from(is_send);
            if run.len() <= ALIKE_MAX || at == 0 || at + 1 == run.len() {
                lines.extend(of_entry(entry, sent, story.now));
            } else if at == 1 {
                let text = format!("{} more alike", run.len() - 2);
                lines.push(Line { at: entry.finished_at, what: "…".to_owned(), detail: text });
            }
        }
    }
    lines
}

/// A send that left has two lines, its beginning and its end; everything else has one.
fn of_entry(entry: &Entry, ordinal: usize, now: Timestamp) -> Vec<Line> {
    let end = |what: String, detail: String| Line { at: entry.finished_at, what, detail };
    let short = evidence::short(&entry.evidence);
    match entry.kind {
        EntryKind::Send if facts::left(entry) == Some(Left::No) => {
            vec![end(short, joined([who(entry), learnt(entry)]))]
        }
        EntryKind::Send => {
            let perhaps = if facts::left(entry) == Some(Left::Perhaps) { "may have been sent" } else { "sent" };
            let deadline = entry.deadline_at.map(|at| format!("deadline {}", clock(at, now)));
            let begin = entry.started_at.map(|at| Line {
                at,
                what: format!("attempt {ordinal} {perhaps}"),
                detail: joined([who(entry), deadline]),
            });
            let end = match entry.evidence.as_str() {
                "lapsed" => end(short, "its lease ended without an answer".to_owned()),
                _ => end(short, joined([learnt(entry)])),
            };
            begin.into_iter().chain([end]).collect()
        }
        EntryKind::Lookup => {
            vec![end(format!("asked: {short}"), joined([proved(entry), who(entry), learnt(entry)]))]
        }
        EntryKind::Cancel => {
            vec![end(format!("cancel by key: {short}"), joined([proved(entry), who(entry), learnt(entry)]))]
        }
        EntryKind::Late => vec![end(format!("late: {short}"), joined([Some(late(entry)), who(entry), learnt(entry)]))],
        EntryKind::Decision => vec![end(
            format!("decided: {}", name(&entry.evidence.replace('_', " "))),
            format!(
                "by {}{}{}",
                entry.decided_by.as_deref().map_or("nobody".to_owned(), name),
                entry.detail.as_deref().map(|why| format!(": {}", detail(why))).unwrap_or_default(),
                entry.receipt.as_deref().map(|r| format!(" (receipt {})", name(r))).unwrap_or_default(),
            ),
        )],
    }
}

/// What it proved that the destination does not have it: the same answer may come too early and be none.
fn proved(entry: &Entry) -> Option<String> {
    let text = match (entry.evidence.as_str(), entry.verdict.as_str()) {
        ("absent" | "neutralised", "outcome_unknown") => "proves nothing yet",
        ("absent", "pending" | "retryable_failure") => "proof that nothing happened, so it is sent anew",
        ("absent" | "neutralised", "terminal_failure") => "proof that nothing happened",
        (_, _) => return None,
    };
    Some(text.to_owned())
}

/// What became of a late testimony.
fn late(entry: &Entry) -> String {
    match entry.verdict.as_str() {
        "contradicts" => "CONTRADICTS how it was closed".to_owned(),
        "succeeded" => "a worker that was overtaken has brought proof, which closes it".to_owned(),
        "dispatching" | "wait" => "a worker that was overtaken; kept for whoever holds it now".to_owned(),
        "pending" | "retryable_failure" => "a worker that was overtaken; clears the doubt".to_owned(),
        "outcome_unknown" => "a worker that was overtaken; its outcome is unknown".to_owned(),
        _ => "a worker that was overtaken; recorded only".to_owned(),
    }
}

fn who(entry: &Entry) -> Option<String> {
    entry.worker.as_deref().map(|worker| format!("worker {}, fence {}", name(worker), entry.fence))
}

/// Status, receipt and what else the answer was like.
fn learnt(entry: &Entry) -> Option<String> {
    let text = entry.detail.as_deref().map(detail);
    let starts = |text: &String, status: u16| text.starts_with(&status.to_string());
    // A detail that explains an answer begins with its status.
    let status = entry.status.filter(|status| !text.as_ref().is_some_and(|text| starts(text, *status)));
    let parts = [
        status.map(|status| format!("HTTP {status}")),
        entry.receipt.as_deref().map(|receipt| format!("receipt {}", name(receipt))),
        text,
    ];
    Some(joined(parts)).filter(|text| !text.is_empty())
}

fn joined<const N: usize>(parts: [Option<String>; N]) -> String {
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}
