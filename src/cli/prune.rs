//! `outboxd prune`

use std::time::Duration;

use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::json;

use super::print::screen::Screen;
use super::print::table::{Side, Table};
use super::print::text::name;
use super::print::words::{grouped, span};
use super::{ConfigFile, Exit, print, set_up};
use crate::config::{self, Config};
use crate::ledger::{Keep, Ledger, LedgerError, Prunable, Pruned};

/// How.
#[derive(Args)]
pub struct Options {
    /// Only count what would go
    #[arg(long)]
    dry_run: bool,
    /// One JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    file: ConfigFile,
}

/// How long a prune waits while somebody else prunes: a daemon's batch takes far less.
const BUSY: Duration = Duration::from_millis(250);
const BUSY_TIMES: u32 = 40;

/// What went of one operation, or would go.
struct Gone<'a> {
    keep: Keep<'a>,
    actions: u64,
    tombstones: u64,
    kept: u64,
}

/// Forgets what is older than it is kept, operation by operation, in small batches.
pub async fn run(options: Options) -> Exit {
    let (config, ledger) = match set_up::open(&options.file.config).await {
        Ok(open) => open,
        Err(exit) => return exit,
    };
    let quiet = options.json || options.dry_run;
    let mut all = Vec::new();
    for keep in keeps(&config) {
        let gone = match set_up::patiently(ledger.prunable(&[keep])).await {
            Ok(prunable) if options.dry_run => Ok(Some(counted(keep, prunable))),
            Ok(prunable) => prune(&ledger, keep, prunable, quiet).await,
            Err(error) => Err(error),
        };
        match gone {
            Ok(Some(gone)) => all.push(gone),
            Ok(None) => {
                eprintln!("another session has been pruning all the time; try again when it is done");
                return Exit::Failed;
            }
            Err(error) => return set_up::failed("prune", &error),
        }
    }
    print::out(&if options.json {
        json_of(&all, options.dry_run)
    } else {
        page(&all, options.dry_run, Screen::of_stdout())
    })
}

/// What the configuration keeps, by operation.
fn keeps(config: &Config) -> Vec<Keep<'_>> {
    let keep = |operation, keep: config::Keep| Keep { operation, payload: keep.payload, identity: keep.identity };
    config.limits.iter().map(|(operation, limits)| keep(operation, limits.keep)).collect()
}

fn counted(keep: Keep<'_>, prunable: Prunable) -> Gone<'_> {
    Gone { keep, actions: prunable.actions, tombstones: prunable.tombstones, kept: prunable.kept }
}

/// Batch after batch, until one finds nothing; `None` where somebody else prunes all the time.
async fn prune<'a>(
    ledger: &Ledger,
    keep: Keep<'a>,
    prunable: Prunable,
    quiet: bool,
) -> Result<Option<Gone<'a>>, LedgerError> {
    let bar = if quiet { ProgressBar::hidden() } else { ProgressBar::new(prunable.actions + prunable.tombstones) };
    if let Ok(style) = ProgressStyle::with_template("{msg} [{bar:30}] {human_pos} of at least {human_len}") {
        bar.set_style(style);
    }
    bar.set_message(name(keep.operation));
    let mut gone = Gone { keep, actions: 0, tombstones: 0, kept: prunable.kept };
    let mut busy = 0;
    loop {
        match set_up::patiently(ledger.prune(&[keep])).await? {
            Pruned::Done { actions: 0, tombstones: 0 } => break,
            Pruned::Done { actions, tombstones } => {
                gone.actions += actions;
                gone.tombstones += tombstones;
                bar.inc(actions + tombstones);
                busy = 0;
            }
            Pruned::Busy if busy >= BUSY_TIMES => return Ok(None),
            Pruned::Busy => {
                busy += 1;
                tokio::time::sleep(BUSY).await;
            }
        }
    }
    bar.finish_and_clear();
    Ok(Some(gone))
}

fn page(all: &[Gone<'_>], dry_run: bool, screen: Screen) -> String {
    let (actions, tombstones) = if dry_run { ("would prune", "would forget") } else { ("pruned", "forgotten") };
    let mut table = Table::new(&[
        ("operation", Side::Left),
        ("kept for", Side::Left),
        (actions, Side::Right),
        ("remembered for", Side::Left),
        (tombstones, Side::Right),
        ("left alone", Side::Right),
    ]);
    for gone in all {
        table.row([
            name(gone.keep.operation),
            span(gone.keep.payload),
            grouped(gone.actions),
            span(gone.keep.identity),
            grouped(gone.tombstones),
            grouped(gone.kept),
        ]);
    }
    let mut text = table.show(screen);
    if all.iter().any(|gone| gone.kept > 0) {
        text.push_str("\nleft alone: contradicted and not decided upon, or pointed to by an open compensation\n");
    }
    text
}

fn json_of(all: &[Gone<'_>], dry_run: bool) -> String {
    let operations: Vec<_> = all
        .iter()
        .map(|gone| {
            json!({
                "operation": gone.keep.operation,
                "keep_payload": span(gone.keep.payload),
                "keep_identity": span(gone.keep.identity),
                "actions": gone.actions,
                "tombstones": gone.tombstones,
                "left_alone": gone.kept,
            })
        })
        .collect();
    format!("{}\n", json!({ "dry_run": dry_run, "operations": operations }))
}
