//! The report as people read it on a terminal: the verdict first.

use std::collections::BTreeMap;

use comfy_table::presets::NOTHING;
use comfy_table::{CellAlignment, Table};

use super::failover::Failover;
use super::faults::Faults;
use super::figures::{Figures, Settled};
use super::kinds::rate;
use super::paces::PaceFigures;
use super::promise::Promise;
use super::queues::QueueFigures;
use super::report::Report;
use super::soak::Soak;

/// How many violations are told in full.
const VIOLATIONS_TOLD: usize = 5;

/// How many of a list are named.
const NAMED: usize = 5;

/// The whole text that ends a drill.
pub fn report(report: &Report) -> String {
    let mut parts = vec![verdict(report), figures(&report.figures), broken(report)];
    parts.extend([kinds(&report.figures), faults(&report.figures)]);
    parts.extend(report.soak.as_ref().map(soak));
    parts.join("\n\n")
}

fn verdict(report: &Report) -> String {
    let opening =
        format!("{} actions, {} workers, seed {}, {} s: ", report.actions, report.workers, report.seed, report.seconds);
    if report.is_well() {
        return format!(
            "{opening}as promised.\nNo second effect where the contract promises none, no state that the destination \
             contradicts, nothing lost, no queue out of order."
        );
    }
    let mut text = format!("{opening}NOT AS PROMISED.");
    if !report.rested {
        text += "\nNot everything came to rest in time.";
    }
    if let Some(shortfall) = &report.shortfall {
        text += &format!("\n{shortfall}.");
    }
    text + &format!("\nDo it again: {}", report.again)
}

fn figures(figures: &Figures) -> String {
    let settled = |settled: Settled| match settled.percent {
        Some(share) => format!("{share} % ({} of {})", settled.were, settled.can_be),
        None => "none had to be".to_owned(),
    };
    let times = figures.seconds_to_end;
    let mut table = plain();
    for (name, value) in [
        ("reached unknown", format!("{} % ({} of {})", figures.unknown_percent, figures.unknown, figures.committed)),
        ("settled by asking", settled(figures.asked)),
        ("settled by repeating", settled(figures.repeatable)),
        ("held for a person", format!("{} % ({})", figures.review_percent, listed(&figures.held_because))),
        ("decided by a person", format!("{}; {} wait still", listed(&figures.decided), figures.held_still)),
        ("serial queues", queues(figures.queues)),
        ("… and their order", order(figures.queues)),
        ("under a rate", paces(figures.paces)),
        (
            "sent more than once",
            format!("{}; key and content kept in {} %", figures.repeated, figures.keys_kept_percent),
        ),
        ("late testimony", format!("{}, of which {} changed something", figures.late, figures.late_used)),
        ("from commit to the end", format!("median {} s, p99 {} s", times.median, times.p99)),
        (
            "orders",
            format!(
                "{} committed, {} rolled back, {} asked for again",
                figures.committed, figures.rolled_back, figures.asked_again
            ),
        ),
        ("at the destinations", format!("{} requests, {} effects", figures.requests, figures.effects)),
    ] {
        table.add_row([name.to_owned(), value]);
    }
    table.to_string()
}

/// How many queues.
pub fn queues(queues: QueueFigures) -> String {
    format!("{} with {} actions, up to {} each", queues.queues, queues.actions, queues.longest)
}

/// What was looked at of their order.
pub fn order(queues: QueueFigures) -> String {
    format!(
        "{} pairs whose order is promised; {} went behind what had been unknown; {} failures held; {} late requests",
        queues.pairs, queues.behind_unknown, queues.held, queues.late
    )
}

/// What was looked at of rates and bounds.
pub fn paces(paces: PaceFigures) -> String {
    let (burst, a_second) = rate();
    format!(
        "{} requests, of one daemon at most {} in a second and {} in ten ({a_second}/s burst {burst}); {} under a tenant's \
         bound",
        paces.rated, paces.fullest, paces.fullest_ten, paces.bounded
    )
}

/// The most frequent first, and what is left of them together: a line of a terminal.
fn listed(counts: &BTreeMap<String, usize>) -> String {
    let mut all: Vec<(&str, usize)> = counts.iter().map(|(what, count)| (what.as_str(), *count)).collect();
    all.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let others: usize = all.iter().skip(NAMED).map(|(_, count)| count).sum();
    all.truncate(NAMED);
    all.extend((others > 0).then_some(("others", others)));
    all.iter().map(|(what, count)| format!("{count} {what}")).collect::<Vec<_>>().join(", ")
}

fn broken(report: &Report) -> String {
    let mut table = plain();
    table.set_header(["must be 0", ""]);
    for promise in Promise::ALL {
        let count = report.broken.get(&promise).copied().unwrap_or(0);
        table.add_row([promise.told().to_owned(), count.to_string()]);
    }
    right(&mut table, 1);
    table.to_string()
}

fn kinds(figures: &Figures) -> String {
    let mut table = plain();
    table.set_header([
        "contract",
        "actions",
        "done",
        "not done",
        "held",
        "unknown once",
        "settled",
        "second effects",
        "it",
    ]);
    for kind in &figures.kinds {
        let duplicates = match kind.duplicates_allowed {
            None => kind.duplicates.to_string(),
            Some(_) => format!("{} allowed", kind.duplicates),
        };
        table.add_row([
            kind.kind.to_owned(),
            kind.actions.to_string(),
            kind.succeeded.to_string(),
            kind.not_delivered.to_string(),
            kind.held.to_string(),
            kind.unknown.to_string(),
            kind.settled.to_string(),
            duplicates,
            kind.promise.to_owned(),
        ]);
    }
    (1..8).for_each(|column| right(&mut table, column));
    let allowed =
        figures.kinds.iter().filter_map(|kind| Some(format!("  {}: {}", kind.kind, kind.duplicates_allowed?)));
    let allowed: Vec<String> = allowed.collect();
    format!(
        "{table}\nA second effect is no fault where the contract does not promise that there is none:\n{}",
        allowed.join("\n")
    )
}

fn faults(figures: &Figures) -> String {
    let mut table = plain();
    table.set_header(["fault", "times", "attempts in doubt meanwhile"]);
    for fault in &figures.faults {
        table.add_row([fault.fault.replace('_', " "), fault.times.to_string(), fault.attempts_in_doubt.to_string()]);
    }
    (1..3).for_each(|column| right(&mut table, column));
    table.to_string()
}

fn soak(soak: &Soak) -> String {
    let mut table = plain();
    table.set_header(["must not grow", "first third", "last third"]);
    let row = |name: &str, values: [String; 2]| [&[name.to_owned()][..], &values].concat();
    table.add_row(row("largest daemon, MiB", soak.memory_mib.map(|value| value.to_string())));
    table.add_row(row("log, KiB a minute", soak.log_kib_per_minute.map(|value| value.to_string())));
    let [least, most] = soak.sessions;
    let sessions = format!("sessions at the database: {least} to {most}, of {} allowed", soak.sessions_allowed);
    let grown = match soak.grown.is_empty() {
        true => "Nothing has grown.".to_owned(),
        false => format!("GROWN: {}", soak.grown.join("; ")),
    };
    format!("{table}\n{sessions}\n{grown}")
}

/// What came of a failover.
pub fn failover(failover: &Failover) -> String {
    let verdict = if failover.is_well() { "as is said" } else { "NOT AS IS SAID" };
    let mut lines =
        vec![format!("failover, seed {}, {} s: {verdict}.", failover.seed, failover.seconds), String::new()];
    lines.extend(
        failover.claims.iter().map(|claim| {
            format!("  {} {} ({})", if claim.held { "held  " } else { "BROKEN" }, claim.claim, claim.seen)
        }),
    );
    lines.extend([String::new(), "What it cost, which nothing on this side can prevent:".to_owned()]);
    lines.extend(failover.costs.iter().map(|cost| format!("  {cost}")));
    for violation in &failover.violations {
        let whose = violation.action.map(|action| format!("action {action}: ")).unwrap_or_default();
        lines.push(format!("{}: {whose}{}", violation.promise.told(), violation.what));
        lines.extend(violation.story.iter().map(|line| format!("    {line}")));
    }
    lines.join("\n")
}

fn plain() -> Table {
    let mut table = Table::new();
    table.load_preset(NOTHING);
    table
}

fn right(table: &mut Table, column: usize) {
    if let Some(column) = table.column_mut(column) {
        column.set_cell_alignment(CellAlignment::Right);
    }
}

/// What is not as promised, each with the story of its action; where there is much of it, the first of it.
pub fn violations(report: &Report) -> String {
    let mut lines = Vec::new();
    for violation in report.violations.iter().take(VIOLATIONS_TOLD) {
        let whose = violation.action.map(|action| format!("action {action}: ")).unwrap_or_default();
        lines.push(format!("{}: {whose}{}", violation.promise.told(), violation.what));
        lines.extend(violation.story.iter().map(|line| format!("    {line}")));
    }
    let more = report.violations.len().saturating_sub(VIOLATIONS_TOLD);
    lines.extend((more > 0).then(|| format!("and {more} more; --json names them all")));
    lines.extend((!report.is_well()).then(|| format!("seed {}: {}", report.seed, report.again)));
    lines.join("\n")
}

/// The plan of faults, a line each.
pub fn plan(faults: &Faults) -> Vec<String> {
    let line = |planned: &super::faults::Planned| {
        let lasts = match planned.lasts.is_zero() {
            true => String::new(),
            false => format!(" for {:.1} s", planned.lasts.as_secs_f64()),
        };
        format!("{:>6.1} s  {}{lasts}", planned.at.as_secs_f64(), planned.fault)
    };
    faults.iter().map(line).collect()
}
