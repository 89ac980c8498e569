//! `outboxd demo`

use std::error::Error;

use clap::Args;

use super::{Exit, interrupted, print};
use crate::proving::demo;

/// How it is shown.
#[derive(Args)]
pub struct Options {
    /// Leave the database up, and print the commands to explore it
    #[arg(long)]
    keep: bool,
    /// The report as one JSON object
    #[arg(long)]
    json: bool,
    /// What the application's and the destination's moods are drawn from
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// How many notes are published
    #[arg(long, value_name = "N", default_value_t = 180, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    notes: u32,
}

/// Runs it, prints the report, and is done if the report has no violation.
pub async fn run(options: Options) -> Exit {
    let Options { keep, json, seed, notes } = options;
    let demo = async {
        let binary = std::env::current_exe()?;
        Ok(demo::run(&binary, demo::Options { seed, notes, keep }).await?)
    };
    let ended = tokio::select! {
        ended = demo => ended,
        // Dropping it stops everything it has started.
        interrupted = interrupted() => Err(interrupted),
    };
    match ended.and_then(|ended| tell(&ended, json)) {
        Ok(exit) => exit,
        Err(error) => print::failed("run the demo", &*error),
    }
}

type Fault = Box<dyn Error + Send + Sync>;

fn tell(ended: &demo::Ended, json: bool) -> Result<Exit, Fault> {
    if json {
        print::out(&format!("{}\n", serde_json::to_string(ended)?));
    } else {
        let next = match &ended.kept {
            Some(kept) => demo::show_kept(kept),
            None => "Look around in the database: outboxd demo --keep".to_owned(),
        };
        print::out(&format!("{}\n\n{next}\n", demo::show_report(&ended.report)));
    }
    if ended.report.violations.is_empty() {
        return Ok(Exit::Done);
    }
    eprintln!("{}", demo::show_violations(&ended.report));
    Ok(Exit::Failed)
}
