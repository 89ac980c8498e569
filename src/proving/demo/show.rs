//! The report as people read it: the answer first, then on whose promise it rests.

use super::Kept;
use super::report::Report;
use crate::core::action::State;

/// How many violations are told in full.
const VIOLATIONS_TOLD: usize = 10;

/// The whole text that ends a demo.
pub fn report(report: &Report) -> String {
    [vec![opening(report)], table(report), vec![asides(report)], doubts(report), vec![verdict(report)]]
        .map(|lines| lines.join("\n"))
        .into_iter()
        .filter(|part| !part.is_empty())
        .collect::<Vec<_>>()
        .join("\n\n")
}

fn opening(report: &Report) -> String {
    let desk = &report.desk;
    format!(
        "Release Desk wrote {} notes, rolled {} of them back, and asked for {} announcements; {} were asked for twice.",
        desk.notes, desk.rolled_back, desk.asked, desk.asked_twice
    )
}

fn table(report: &Report) -> Vec<String> {
    let there = &report.destination;
    let right = [("effects", there.effects), ("rejected", there.rejected), ("duplicates", there.duplicates)];
    let closing = [State::Succeeded, State::TerminalFailure, State::OutcomeUnknown];
    let open = [State::Pending, State::Dispatching, State::RetryableFailure];
    let left = closing.into_iter().chain(open.into_iter().filter(|state| report.in_state(*state) > 0));
    let mut lines = vec![format!("{:<32}{}", "what the ledger says", "what the destination recorded")];
    for (place, state) in left.enumerate() {
        let name = state.as_str().replace('_', " ");
        let mut line = format!("{name:<18}{:>6}", report.in_state(state));
        if let Some((what, count)) = right.get(place) {
            line = format!("{line:<32}{what:<16}{count:>6}");
        }
        lines.push(line);
    }
    lines
}

fn asides(report: &Report) -> String {
    let (desk, there) = (&report.desk, &report.destination);
    format!(
        "Rolled back: {} sent. Asked for twice: {} sent twice. Told to come back later (429): {}.",
        desk.rolled_back_sent,
        desk.asked_twice_sent_twice,
        times(there.throttled)
    )
}

/// Why the outcome was unknown, and what settled it.
fn doubts(report: &Report) -> Vec<String> {
    let (there, doubts) = (&report.destination, &report.doubts);
    let mut lines = vec![format!(
        "The destination hid its answer {} after taking effect, and broke off {} before any effect.",
        times(there.hidden),
        times(there.lost)
    )];
    let others = [(doubts.answered_late, "answers came too late"), (doubts.never_arrived, "requests never arrived")];
    lines
        .extend(others.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("Besides, {count} {what}.")));
    if doubts.attempts == 0 {
        return lines;
    }
    lines.push(format!(
        "From here they look the same: {} attempts of {} actions had an unknown outcome, not a failed one. Of these:",
        doubts.attempts, doubts.actions
    ));
    let ends = [
        (doubts.recognised, "sent again under the same key; recognised by the destination, which did nothing more"),
        (doubts.taken_then, "sent again under the same key; new to the destination, which took it then"),
        (doubts.late_answer, "settled by an answer that came late"),
        (doubts.not_done, "found not to have happened"),
        (doubts.open, "not settled"),
    ];
    lines.extend(ends.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("  {count:>4} {what}")));
    lines
}

fn verdict(report: &Report) -> String {
    if !report.violations.is_empty() {
        let count = report.violations.len();
        return format!("NOT AS PROMISED: {count} {}.", if count == 1 { "violation" } else { "violations" });
    }
    format!(
        "As promised, compared action by action: no effect missing, none too many, no outcome left unknown ({} s).\n\
         That nothing happened twice rests on the destination: it promises to remember a key for {} h, and within that\n\
         time outboxd asks again under the same key. Where a destination promises nothing, it would not ask again:\n\
         such an outcome stays unknown until a person decides.",
        report.seconds,
        super::settings::WINDOW_HOURS
    )
}

fn times(count: usize) -> String {
    match count {
        0 => "never".to_owned(),
        1 => "once".to_owned(),
        more => format!("{more} times"),
    }
}

/// What is not as promised, each with the action and its history; where there is much of it, the first of it.
pub fn violations(report: &Report) -> String {
    let mut lines = Vec::new();
    for violation in report.violations.iter().take(VIOLATIONS_TOLD) {
        let whose = violation.action.map(|action| format!("action {action}: ")).unwrap_or_default();
        lines.push(format!("{whose}{}", violation.what));
        lines.extend(violation.history.iter().map(|line| format!("    {line}")));
    }
    let more = report.violations.len().saturating_sub(VIOLATIONS_TOLD);
    lines.extend((more > 0).then(|| format!("and {more} more; --json names them all")));
    lines.join("\n")
}

/// How to look around in what was kept.
pub fn kept(kept: &Kept) -> String {
    let line = |what: &str, command: String| format!("  {what}\n    {command}\n");
    let outboxd = |command: &str| format!("{} {command} --config {}", kept.program.display(), kept.config.display());
    let psql = |what: &str, sql: &str| line(what, format!("psql '{}' -c \"{sql}\"", kept.url));
    let mut text = String::from("The database is still up. Look around:\n");
    if let Some(action) = kept.in_doubt {
        text +=
            &line("the story of an action whose outcome was unknown for a while", outboxd(&format!("show {action}")));
    }
    text += &line("what was refused for good", outboxd("list --state terminal_failure"));
    text += &line("where the queue stands", outboxd("status"));
    text += &psql("the same in SQL", "select * from outbox.status order by created_at");
    text += &psql(
        "every doubt there was",
        "select * from outbox.attempt where evidence = 'no_answer' order by finished_at",
    );
    text += &psql("the application's own table", "select * from desk.note order by note");
    text += &format!("  what the daemon said\n    less {}\n", kept.log.display());
    text + &format!("Stop it and remove everything:\n    {}", kept.remove)
}

#[cfg(test)]
mod tests {
    use super::super::check::Violation;
    use super::super::doubt::Doubts;
    use super::super::report::{DeskFigures, DestinationFigures};
    use super::*;

    fn example() -> Report {
        Report {
            seed: 1,
            seconds: 17.4,
            desk: DeskFigures {
                notes: 200,
                rolled_back: 20,
                rolled_back_sent: 0,
                asked: 180,
                asked_twice: 30,
                asked_twice_sent_twice: 0,
            },
            ledger: [("succeeded", 173), ("terminal_failure", 7)].into(),
            destination: DestinationFigures {
                requests: 240,
                effects: 173,
                duplicates: 0,
                recognised: 31,
                rejected: 7,
                throttled: 12,
                hidden: 31,
                lost: 4,
            },
            doubts: Doubts {
                attempts: 35,
                actions: 30,
                withheld: 20,
                reset: 11,
                lost: 4,
                recognised: 31,
                taken_then: 4,
                ..Doubts::default()
            },
            violations: Vec::new(),
        }
    }

    #[test]
    fn the_two_sides_stand_beside_each_other() {
        let text = report(&example());
        let line =
            |start: &str| text.lines().find(|l| l.starts_with(start)).map(|l| l.split_whitespace().collect::<Vec<_>>());
        assert_eq!(line("succeeded").unwrap(), ["succeeded", "173", "effects", "173"]);
        assert_eq!(line("terminal").unwrap(), ["terminal", "failure", "7", "rejected", "7"]);
        assert_eq!(line("outcome").unwrap(), ["outcome", "unknown", "0", "duplicates", "0"]);
        assert_eq!(line("pending"), None);
        assert!(text.contains("  31 sent again under the same key; recognised by the destination"));
        assert!(text.lines().all(|line| line.chars().count() <= 120), "{text}");
    }

    #[test]
    fn r31_the_verdict_says_on_whose_promise_it_rests() {
        let text = report(&example());
        assert!(text.contains("rests on the destination"));
        assert!(!text.to_lowercase().contains("exactly once"));
    }

    #[test]
    fn a_violation_takes_the_verdict_back_and_shows_the_history() {
        let mut example = example();
        example.ledger.insert("pending", 1);
        let history = vec!["10:31:02.114 send 1: no_answer, then outcome_unknown".to_owned()];
        let action = Some(uuid::Uuid::from_u128(7));
        example.violations.push(Violation { what: "it is still open (pending)".into(), action, history });
        let text = report(&example);
        assert!(text.contains("NOT AS PROMISED: 1 violation."));
        assert!(text.contains("pending"));
        assert!(!text.contains("As promised"));
        assert!(violations(&example).contains("    10:31:02.114 send 1"));
    }
}
