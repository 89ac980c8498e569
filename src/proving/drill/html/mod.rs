//! The report as one page: no script, nothing from elsewhere, every text escaped.

mod stories;

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::failover::Failover;
use super::figures::{Figures, KindFigures, Settled};
use super::promise::{Promise, Violation};
use super::report::Report;
use super::show;
use super::soak::Soak;

const STYLE: &str = include_str!("page.css");

/// The whole page.
pub fn page(report: &Report) -> String {
    let body = [
        heading(report),
        tiles(&report.figures),
        promises(report),
        told(&report.violations),
        report.soak.as_ref().map(soak).unwrap_or_default(),
        kinds(&report.figures),
        faults(report),
        stories::section(report),
    ]
    .concat();
    framed(&format!("outboxd drill, seed {}", report.seed), &body)
}

/// What came of a failover, as a page.
pub fn failover(failover: &Failover) -> String {
    let (class, verdict) = if failover.is_well() { ("well", "As is said") } else { ("broken", "Not as is said") };
    let claim = |claim: &super::failover::Claim| {
        let held = if claim.held { "<td class=\"n zero\">held</td>" } else { "<td class=\"n bad\">broken</td>" };
        format!("<tr><td>{}</td><td>{}</td>{held}</tr>\n", escaped(claim.claim), escaped(&claim.seen))
    };
    let claims: String = failover.claims.iter().map(claim).collect();
    let costs: String = failover.costs.iter().map(|cost| format!("<li>{}</li>\n", escaped(cost))).collect();
    let body = format!(
        "<header class=\"{class}\">\n<h1>{verdict}</h1>\n<p>Failover to a copy that lacks the last commits; seed {}, {} s</p>\n\
         </header>\n<h2>What is said</h2>\n<table>\n{claims}</table>\n<h2>What it cost</h2>\n<ul>\n{costs}</ul>\n{}",
        failover.seed,
        failover.seconds,
        told(&failover.violations)
    );
    framed("outboxd drill, failover", &body)
}

fn framed(title: &str, body: &str) -> String {
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"content-security-policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>{}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n{body}</main>\n</body>\n</html>\n",
        escaped(title)
    )
}

/// Text that may stand anywhere in a page.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            _ => out.push(c),
        }
    }
    out
}

fn heading(report: &Report) -> String {
    let (class, verdict) = match report.is_well() {
        true => ("well", "As promised"),
        false => ("broken", "Not as promised"),
    };
    let mut text = format!(
        "<header class=\"{class}\">\n<h1>{verdict}</h1>\n<p>{} actions, {} daemons, seed {}, {} s. \
         Do it again: <code>{}</code></p>\n",
        report.actions,
        report.workers,
        report.seed,
        report.seconds,
        escaped(&report.again)
    );
    if let Some(shortfall) = &report.shortfall {
        let _ = writeln!(text, "<p>{}</p>", escaped(shortfall));
    }
    if !report.rested {
        text += "<p>Not everything came to rest in time.</p>\n";
    }
    text + "</header>\n"
}

fn tiles(figures: &Figures) -> String {
    let share = |settled: Settled| settled.percent.map_or_else(|| "–".to_owned(), |share| format!("{share} %"));
    let of = |settled: Settled, which: &str| format!("{} of {} {which}", settled.were, settled.can_be);
    let tiles = [
        (
            format!("{} %", figures.unknown_percent),
            "reached unknown",
            format!("{} of {} actions", figures.unknown, figures.committed),
        ),
        (share(figures.asked), "settled by asking", of(figures.asked, "that can be asked about")),
        (share(figures.repeatable), "settled by repeating", of(figures.repeatable, "that can be repeated")),
        (figures.duplicates.to_string(), "second effects", "where the contract promises none".to_owned()),
        (
            format!("{} %", figures.keys_kept_percent),
            "kept key and content",
            format!("of {} that were sent again", figures.repeated),
        ),
        (format!("{} %", figures.review_percent), "held for a person", listed(&figures.held_because)),
        (
            figures.decided.values().sum::<usize>().to_string(),
            "decisions of a person",
            format!("{}; {} wait still", listed(&figures.decided), figures.held_still),
        ),
        (
            format!("{} s", figures.seconds_to_end.median),
            "median to the end",
            format!("p99 {} s", figures.seconds_to_end.p99),
        ),
        (figures.queues.queues.to_string(), "serial queues", show::order(figures.queues)),
        (figures.paces.rated.to_string(), "requests under a rate", show::paces(figures.paces)),
        (figures.late_used.to_string(), "late testimonies used", format!("of {} recorded", figures.late)),
        (figures.effects.to_string(), "effects", format!("of {} requests", figures.requests)),
    ];
    let tile = |(value, name, note): (String, &str, String)| {
        format!(
            "<div class=\"tile\"><b>{}</b><span>{name}</span><small>{}</small></div>\n",
            escaped(&value),
            escaped(&note)
        )
    };
    format!("<section class=\"tiles\">\n{}</section>\n", tiles.map(tile).concat())
}

fn listed(counts: &BTreeMap<String, usize>) -> String {
    let each = counts.iter().map(|(what, count)| format!("{count} {}", what.replace('_', " ")));
    each.collect::<Vec<_>>().join(", ")
}

fn promises(report: &Report) -> String {
    let row = |promise: Promise| {
        let count = report.broken.get(&promise).copied().unwrap_or(0);
        let class = if count == 0 { "zero" } else { "bad" };
        format!("<tr><td>{}</td><td class=\"n {class}\">{count}</td></tr>\n", escaped(promise.told()))
    };
    format!("<h2>What must be 0</h2>\n<table class=\"narrow\">\n{}</table>\n", Promise::ALL.map(row).concat())
}

fn told(violations: &[Violation]) -> String {
    let mut text = String::new();
    for violation in violations.iter().take(20) {
        let action = violation.action.map(|action| format!(" <code>{action}</code>")).unwrap_or_default();
        let _ = writeln!(
            text,
            "<details open class=\"violation\"><summary>{}:{action} {}</summary><pre>{}</pre></details>",
            escaped(violation.promise.told()),
            escaped(&violation.what),
            escaped(&violation.story.join("\n"))
        );
    }
    text
}

fn soak(soak: &Soak) -> String {
    let [memory, log] = [soak.memory_mib, soak.log_kib_per_minute].map(|[first, last]| format!("{first} → {last}"));
    let [least, most] = soak.sessions;
    let most_memory = soak.looks.iter().flat_map(|look| &look.memory).max().copied().unwrap_or(1).max(1);
    let bars: String = (soak.looks.iter())
        .map(|look| {
            let share = look.memory.iter().max().copied().unwrap_or(0) * 100 / most_memory;
            format!("<i class=\"done\" style=\"height:{share}%\"></i>")
        })
        .collect();
    let grown = if soak.grown.is_empty() { "Nothing has grown.".to_owned() } else { soak.grown.join("; ") };
    format!(
        "<h2>What must not grow</h2>\n<p>{}</p>\n<table class=\"narrow\">\n<tr><td>largest daemon, MiB</td><td class=\"n\">{memory}</td></tr>\n\
         <tr><td>log, KiB a minute</td><td class=\"n\">{log}</td></tr>\n<tr><td>sessions at the database, of {} allowed</td>\
         <td class=\"n\">{least} to {most}</td></tr>\n</table>\n<div class=\"looks\">{bars}</div>\n\
         <p class=\"legend\">memory of the largest daemon, every 5 s</p>\n",
        escaped(&grown),
        soak.sessions_allowed
    )
}

fn kinds(figures: &Figures) -> String {
    let most = figures.kinds.iter().map(|kind| kind.actions).max().unwrap_or(1).max(1);
    let rows: String = figures.kinds.iter().map(|kind| kind_row(kind, most)).collect();
    let allowed = figures.kinds.iter().filter_map(|kind| Some((kind.kind, kind.duplicates_allowed?)));
    let notes: String = allowed.map(|(kind, why)| format!("<li><b>{kind}</b>: {}</li>\n", escaped(why))).collect();
    format!(
        "<h2>By contract</h2>\n<p class=\"legend\"><i class=\"done\"></i>succeeded <i class=\"not\"></i>not delivered \
         <i class=\"open\"></i>open</p>\n<table>\n<tr><th>contract</th>\
         <th>what it promises</th><th class=\"wide\">where its actions ended</th><th class=\"n\">unknown once</th>\
         <th class=\"n\">settled</th><th class=\"n\">held</th><th class=\"n\">second effects</th></tr>\n{rows}</table>\n\
         <p>A second effect is no fault where the contract does not promise that there is none:</p>\n<ul>\n{notes}</ul>\n"
    )
}

fn kind_row(kind: &KindFigures, most: usize) -> String {
    let parts = [("done", kind.succeeded), ("not", kind.not_delivered), ("open", kind.open)];
    let part = |(class, count): (&str, usize)| match count {
        0 => String::new(),
        _ => format!("<i class=\"{class}\" style=\"width:{}%\">{count}</i>", count * 100 / most),
    };
    let duplicates = match (kind.duplicates, kind.duplicates_allowed) {
        (count, Some(_)) => format!("<td class=\"n\">{count} <small>allowed</small></td>"),
        (0, None) => "<td class=\"n zero\">0</td>".to_owned(),
        (count, None) => format!("<td class=\"n bad\">{count}</td>"),
    };
    format!(
        "<tr><td><b>{}</b></td><td>{}</td><td><div class=\"bar\">{}</div></td><td class=\"n\">{}</td>\
         <td class=\"n\">{}</td><td class=\"n\">{}</td>{duplicates}</tr>\n",
        escaped(kind.kind),
        escaped(kind.promise),
        parts.map(part).concat(),
        kind.unknown,
        kind.settled,
        kind.held
    )
}

fn faults(report: &Report) -> String {
    let most = report.figures.faults.iter().map(|fault| fault.attempts_in_doubt).max().unwrap_or(1).max(1);
    let row = |fault: &super::figures::FaultFigures| {
        format!(
            "<tr><td>{}</td><td class=\"n\">{}</td><td><div class=\"bar\"><i class=\"held\" style=\"width:{}%\">{}</i></div></td></tr>\n",
            escaped(&fault.fault.replace('_', " ")),
            fault.times,
            fault.attempts_in_doubt * 100 / most,
            fault.attempts_in_doubt
        )
    };
    let rows: String = report.figures.faults.iter().map(row).collect();
    format!(
        "<h2>What went wrong on the way</h2>\n<table>\n<tr><th>fault</th><th class=\"n\">times</th>\
         <th class=\"wide\">attempts of unknown outcome that were under way meanwhile</th></tr>\n{rows}</table>\n\
         <details><summary>the plan, as drawn from the seed</summary><pre>{}</pre></details>\n",
        escaped(&report.faults.join("\n"))
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_can_become_markup() {
        assert_eq!(escaped("<script>'\"&"), "&lt;script&gt;&#39;&quot;&amp;");
    }
}
