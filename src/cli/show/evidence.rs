//! Evidence in words. The codes are stored text: what another version has written is shown as it stands.

use crate::cli::print::text::{detail, name};
use crate::ledger::{Entry, EntryKind};

/// For the history's middle column.
pub fn short(evidence: &str) -> String {
    match evidence {
        "accepted" => "confirmed",
        "found" => "found",
        "mismatch" => "mismatch",
        "not_sent" => "not sent",
        "deferred" => "not done, try later",
        "blocked" => "credentials refused",
        "rejected" => "refused for good",
        "rejected_replay" => "refused, as before",
        "key_conflict" => "key conflict",
        "in_flight" => "still being worked on",
        "no_answer" => "no answer",
        "unknown_answer" => "unclear answer",
        "lapsed" => "worker lost",
        "absent" => "not found",
        "neutralised" => "confirmed",
        "inconclusive" => "settled nothing",
        "unsendable" => "not sendable",
        other => return name(other),
    }
    .to_owned()
}

/// What came back, in a sentence.
pub fn sentence(entry: &Entry) -> String {
    let status = entry.status.map(|status| format!(" (HTTP {status})")).unwrap_or_default();
    let receipt = entry.receipt.as_deref().map(|receipt| format!(", receipt {}", name(receipt))).unwrap_or_default();
    match entry.evidence.as_str() {
        "accepted" => format!("The destination confirmed it{status}{receipt}."),
        "found" => format!("Asked about it, the destination has it{status}{receipt}."),
        "mismatch" => format!("The destination confirmed something that is not provably this{status}{receipt}."),
        "not_sent" => "No byte of the request left.".to_owned(),
        "deferred" => format!("The destination said: not done, try later{status}."),
        "blocked" => format!("The destination refused our credentials{status}."),
        "rejected" => format!("The destination refused it for good{status}."),
        "rejected_replay" => format!("The destination repeated its first answer: refused for good{status}."),
        "key_conflict" => format!("The destination knows the key with other content{status}."),
        "in_flight" => format!("The destination is still working on the first request{status}."),
        "no_answer" => match entry.detail.as_deref() {
            Some(text) => format!("No answer came: {}.", detail(text)),
            None => "No answer came.".to_owned(),
        },
        "unknown_answer" => format!("The answer{status} does not say whether it took effect."),
        "lapsed" => "Its worker was lost while it may have been sending.".to_owned(),
        "absent" => format!("Asked about it, the destination does not know it{status}."),
        "neutralised" => format!("The destination confirmed that it is cancelled by its key{status}."),
        "inconclusive" => match entry.kind {
            EntryKind::Cancel => format!("Cancelling it by its key has settled nothing yet{status}."),
            EntryKind::Send | EntryKind::Lookup | EntryKind::Late | EntryKind::Decision => {
                format!("Asking the destination has settled nothing yet{status}.")
            }
        },
        "unsendable" => "No valid request can be built from it.".to_owned(),
        other => format!("Learnt: {}{status}.", name(other)),
    }
}
