//! `outboxd drill`

use std::error::Error;
use std::path::PathBuf;

use clap::Args;

use super::{Exit, interrupted, print};
use crate::proving::drill;

/// How hard.
#[derive(Args)]
pub struct Options {
    /// What everything is drawn from
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// How many actions are committed [default: 300, of a soak 300 a minute]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    actions: Option<u32>,
    /// How many daemons work
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..=32))]
    workers: u16,
    /// How long things go wrong [default: a fifth of a second for an action, from 12 s to 60 s; of a soak 3]
    #[arg(long, value_name = "M", value_parser = minutes)]
    minutes: Option<f64>,
    /// What is done
    #[arg(long, value_name = "S", value_enum, default_value_t = Scenario::Storm)]
    scenario: Scenario,
    /// The report as one JSON object
    #[arg(long)]
    json: bool,
    /// The report as one page, too: no script, nothing from elsewhere
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// A mistake put in on purpose, to see it found
    #[cfg(feature = "test-hooks")]
    #[arg(long, hide = true, value_enum)]
    plant: Option<Plant>,
}

/// What is done.
#[derive(Clone, Copy, clap::ValueEnum)]
enum Scenario {
    /// Everything goes wrong, and the sides are compared
    Storm,
    /// Less goes wrong, for longer; memory, sessions and log must not grow
    Soak,
    /// The database is stopped, then replaced by a copy that lacks the last commits; two daemons, its own actions
    Failover,
}

/// The destination breaks its word, or somebody on this side does.
#[cfg(feature = "test-hooks")]
#[derive(Clone, Copy, clap::ValueEnum)]
enum Plant {
    Liar,
    Forgetful,
    Sneak,
    Contrary,
    Jumble,
    Haste,
}

fn minutes(text: &str) -> Result<f64, String> {
    let minutes: f64 = text.parse().map_err(|_| "a number of minutes, as 1 or 0.5".to_owned())?;
    match minutes.is_finite() && (0.1..=600.0).contains(&minutes) {
        true => Ok(minutes),
        false => Err("from 0.1 to 600".to_owned()),
    }
}

/// Runs it, prints the report, and is done if every promise held.
pub async fn run(options: Options) -> Exit {
    let drill = async {
        let binary = std::env::current_exe()?;
        match storm(&options) {
            Some(storm) => print_storm(&drill::run(&binary, storm).await?, &options),
            None => print_failover(&drill::fail_over(&binary, options.seed).await?, &options),
        }
    };
    let ended = tokio::select! {
        ended = drill => ended,
        // Dropping it stops everything it has started.
        interrupted = interrupted() => Err(interrupted),
    };
    match ended {
        Ok(exit) => exit,
        Err(error) => print::failed("run the drill", &*error),
    }
}

/// `None` where it is a failover.
fn storm(options: &Options) -> Option<drill::Options> {
    #[cfg(feature = "test-hooks")]
    let plant = options.plant.map(|plant| match plant {
        Plant::Liar => drill::Plant::Liar,
        Plant::Forgetful => drill::Plant::Forgetful,
        Plant::Sneak => drill::Plant::Sneak,
        Plant::Contrary => drill::Plant::Contrary,
        Plant::Jumble => drill::Plant::Jumble,
        Plant::Haste => drill::Plant::Haste,
    });
    #[cfg(not(feature = "test-hooks"))]
    let plant = None;
    let scenario = match options.scenario {
        Scenario::Storm => drill::Scenario::Storm,
        Scenario::Soak => drill::Scenario::Soak,
        Scenario::Failover => return None,
    };
    Some(drill::Options {
        scenario,
        seed: options.seed,
        actions: options.actions,
        workers: options.workers.into(),
        minutes: options.minutes,
        plant,
    })
}

type Fault = Box<dyn Error + Send + Sync>;

fn print_storm(report: &drill::Report, options: &Options) -> Result<Exit, Fault> {
    if let Some(file) = &options.html {
        std::fs::write(file, drill::html_page(report))?;
    }
    if options.json {
        print::line(&serde_json::to_string(report)?);
    } else {
        print::line(&drill::show_report(report));
    }
    if report.is_well() {
        return Ok(Exit::Done);
    }
    eprintln!("{}", drill::show_violations(report));
    Ok(Exit::Failed)
}

fn print_failover(failover: &drill::Failover, options: &Options) -> Result<Exit, Fault> {
    if let Some(file) = &options.html {
        std::fs::write(file, drill::html_failover(failover))?;
    }
    print::line(&match options.json {
        true => serde_json::to_string(failover)?,
        false => drill::show_failover(failover),
    });
    Ok(if failover.is_well() { Exit::Done } else { Exit::Failed })
}
