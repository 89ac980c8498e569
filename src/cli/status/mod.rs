//! `outboxd status`

mod queue;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use clap::Args;
use serde_json::{Value, json};

use super::print::screen::Screen;
use super::print::table::{Side, Table};
use super::print::text::name;
use super::print::words::{age_or_dash, clock, grouped, rfc3339};
use super::standing::{self, standings};
use super::{ConfigFile, Exit, print, set_up, show};
use crate::config::Config;
use crate::ledger::{Counts, DaemonSeen, HeldQueue, Overview};

/// How it is shown.
#[derive(Args)]
pub struct Options {
    /// One JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    file: ConfigFile,
}

/// Prints it.
pub async fn run(options: Options) -> Exit {
    let (config, ledger) = match set_up::open(&options.file.config).await {
        Ok(open) => open,
        Err(exit) => return exit,
    };
    let asked = async { Ok((ledger.daemons().await?, ledger.overview().await?)) };
    let (daemons, overview) = match set_up::patiently(asked).await {
        Ok(both) => both,
        Err(error) => return set_up::failed("count actions", &error),
    };
    let queues = match set_up::patiently(ledger.held_queues(queue::QUEUES_MAX)).await {
        Ok(queues) => queues,
        Err(error) => return set_up::failed("look at the serial queues", &error),
    };
    if options.json {
        return print::out(&format!("{}\n", json_of(&overview, &daemons, &queues, &config)));
    }
    let given = show::given(&options.file.config);
    print::out(&page(&overview, &daemons, &queues, &config, &given, Screen::of_stdout()))
}

/// Every operation of the configuration, and those that only the ledger knows.
fn operations(overview: &Overview, config: &Config) -> Vec<Counts> {
    let mut all: BTreeMap<&str, Counts> = config
        .operations
        .keys()
        .map(|operation| (operation.as_str(), Counts { operation: operation.clone(), ..Counts::default() }))
        .collect();
    for counts in &overview.operations {
        all.insert(&counts.operation, counts.clone());
    }
    all.into_values().collect()
}

fn page(
    overview: &Overview,
    daemons: &[DaemonSeen],
    queues: &[HeldQueue],
    config: &Config,
    given: &str,
    screen: Screen,
) -> String {
    let delivered = u64::try_from(overview.delivered).unwrap_or(0);
    let rate = match delivered {
        0 => "nothing delivered in the last minute".to_owned(),
        1..600 => format!("{delivered} delivered in the last minute"),
        _ => format!("{}/s delivered in the last minute", grouped(delivered / 60)),
    };
    let how_many = match daemons.len() {
        0 => screen.warn("no daemon"),
        1 => "1 daemon".to_owned(),
        n => format!("{n} daemons"),
    };
    let mut out = format!(
        "outboxd {} on {} · {how_many} · {} UTC · {rate}\n\n",
        env!("CARGO_PKG_VERSION"),
        config.database.place(),
        clock(overview.now, overview.now)
    );
    let operations = operations(overview, config);
    out.push_str(&table_of_operations(&operations, config, screen));
    out.push('\n');
    out.push_str(&standing::table(&standings(config, daemons, &operations), overview.now, given, screen));
    if !overview.all_counted {
        out.push_str("\nthere are more open actions than are counted: the figures are a lower bound\n");
    }
    if !queues.is_empty() {
        out.push('\n');
        out.push_str(&queue::table(queues, overview.now, screen));
    }
    let review: i64 = operations.iter().map(|counts| counts.review).sum();
    let mut needs = Vec::new();
    if review > 0 {
        let what = if review == 1 { "1 action needs".to_owned() } else { format!("{review} actions need") };
        needs.push(format!("{what} a person: outboxd review {given}").trim_end().to_owned());
    }
    needs.extend(queue::needs(queues, given));
    let _ = match needs.is_empty() {
        true => writeln!(out, "\nnothing needs a person"),
        false => writeln!(out, "\n{}", needs.iter().map(|need| screen.warn(need)).collect::<Vec<_>>().join("\n")),
    };
    out
}

fn table_of_operations(operations: &[Counts], config: &Config, screen: Screen) -> String {
    let mut table = Table::new(&[
        ("operation", Side::Left),
        ("due", Side::Right),
        ("later", Side::Right),
        ("waiting", Side::Right),
        ("retry", Side::Right),
        ("in flight", Side::Right),
        ("unknown", Side::Right),
        ("(resend lookup review)", Side::Left),
        ("oldest due", Side::Right),
        ("oldest unknown", Side::Right),
    ]);
    for counts in operations {
        let here = if config.operations.contains_key(&counts.operation) { "" } else { " (not configured)" };
        let kinds = match counts.unknown() {
            0 => String::new(),
            _ => format!("({} {} {})", counts.resend, counts.lookup, counts.review),
        };
        table.row([
            format!("{}{here}", name(&counts.operation)),
            counts.due.to_string(),
            counts.scheduled.to_string(),
            counts.parked.to_string(),
            counts.retrying.to_string(),
            counts.in_flight.to_string(),
            counts.unknown().to_string(),
            kinds,
            age_or_dash(counts.oldest_due),
            age_or_dash(counts.oldest_unknown),
        ]);
    }
    table.show(screen)
}

fn json_of(overview: &Overview, daemons: &[DaemonSeen], queues: &[HeldQueue], config: &Config) -> Value {
    let ms = |age: Option<Duration>| age.map(|age| u64::try_from(age.as_millis()).unwrap_or(u64::MAX));
    let operations = operations(overview, config);
    let operation = |counts: &Counts| {
        json!({
            "operation": counts.operation,
            "configured": config.operations.contains_key(&counts.operation),
            "due": counts.due,
            "scheduled": counts.scheduled,
            "retrying": counts.retrying,
            "in_flight": counts.in_flight,
            "unknown": counts.unknown(),
            "unknown_resend": counts.resend,
            "unknown_lookup": counts.lookup,
            "unknown_review": counts.review,
            "parked": counts.parked,
            "oldest_due_ms": ms(counts.oldest_due),
            "oldest_unknown_ms": ms(counts.oldest_unknown),
        })
    };
    json!({
        "version": env!("CARGO_PKG_VERSION"),
        "database": config.database.place().to_string(),
        "now": rfc3339(overview.now),
        "daemons": standing::json_of_daemons(daemons),
        "workers_with_leases": overview.workers,
        "delivered_last_minute": overview.delivered,
        "all_counted": overview.all_counted,
        "operations": operations.iter().map(operation).collect::<Vec<_>>(),
        "destinations": standing::json_of(&standings(config, daemons, &operations)),
        "queues_held": queues.iter().map(queue::json_of).collect::<Vec<_>>(),
        "review": operations.iter().map(|counts| counts.review).sum::<i64>(),
    })
}
