//! `outboxd bench`

use std::time::Duration;

use clap::{Args, Subcommand};

use super::print::screen::Screen;
use super::print::table::{Side, Table};
use super::{Exit, print};
use crate::proving::{bench, fair, flow};

/// What is measured.
#[derive(Args)]
pub struct Options {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// Enqueue first, then deliver everything: throughput, memory, CPU and write-ahead log for an action
    Drain {
        /// How many actions
        #[arg(long, default_value_t = 20_000, value_parser = clap::value_parser!(u64).range(1..=10_000_000))]
        actions: u64,
        /// Sends at once
        #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=10_000))]
        in_flight: u32,
        /// One line of JSON
        #[arg(long)]
        json: bool,
    },
    /// What a hanging, a refusing and a throttling destination cost a good one beside them
    Flow {
        /// How long actions come in, each of two times
        #[arg(long, default_value_t = 12, value_parser = clap::value_parser!(u64).range(1..=3600))]
        seconds: u64,
        /// One JSON object
        #[arg(long)]
        json: bool,
    },
    /// Whether a claim costs more the larger one tenant's flood is, and how long others wait
    Fair {
        /// Due actions of that tenant; several are measured one after the other
        #[arg(long, value_delimiter = ',', default_values_t = [10_000, 200_000], value_parser = clap::value_parser!(i64).range(10_000..=10_000_000))]
        floods: Vec<i64>,
        /// One JSON object
        #[arg(long)]
        json: bool,
    },
}

type Measured = Result<(), Box<dyn std::error::Error + Send + Sync>>;

/// Measures, and prints what was measured.
pub async fn run(options: Options) -> Exit {
    let measured = match options.what {
        What::Drain { actions, in_flight, json } => drain(actions, in_flight, json).await,
        What::Flow { seconds, json } => flow(seconds, json).await,
        What::Fair { floods, json } => fair(&floods, json).await,
    };
    match measured {
        Ok(()) => Exit::Done,
        Err(error) => print::failed("measure", &*error),
    }
}

async fn drain(actions: u64, in_flight: u32, json: bool) -> Measured {
    let drain = bench::drain(&std::env::current_exe()?, actions, in_flight, json).await?;
    let value = serde_json::to_value(&drain)?;
    if json {
        print::line(&value.to_string());
    } else if let Some(figures) = value.as_object() {
        let mut table = comfy_table::Table::new();
        table.load_preset(comfy_table::presets::NOTHING);
        for (name, figure) in figures {
            table.add_row([name.replace('_', " "), figure.to_string()]);
        }
        print::line(&table.to_string());
    }
    Ok(())
}

async fn flow(seconds: u64, json: bool) -> Measured {
    let flow = flow::flow(&std::env::current_exe()?, Duration::from_secs(seconds)).await?;
    if json {
        print::line(&serde_json::to_string(&flow)?);
        return Ok(());
    }
    let names = ["destination", "actions", "attempts", "requests", "effects", "duplicates", "doubts", "reviews"];
    let sides = [Side::Left].into_iter().chain(std::iter::repeat(Side::Right));
    let columns: Vec<_> = names.into_iter().zip(sides).chain([("state", Side::Left)]).collect();
    let mut table = Table::new(&columns);
    for of in &flow.destinations {
        let counts = [of.actions, of.attempts].map(|n| n.to_string());
        let there = [of.requests, of.effects, of.duplicates].map(|n| n.to_string());
        let [actions, attempts] = counts;
        let [requests, effects, duplicates] = there;
        let (doubts, reviews) = (of.doubts.to_string(), of.reviews.to_string());
        let (destination, state) = (of.destination.to_owned(), of.state.clone());
        table.row([destination, actions, attempts, requests, effects, duplicates, doubts, reviews, state]);
    }
    print::out(&table.show(Screen::of_stdout()));
    print::line("\nfrom commit to confirmed, healthy");
    for (name, of) in [("alone", flow.alone), ("beside the others", flow.beside)] {
        print::line(&format!("  {name:18} {} actions   p50 {} ms   p99 {} ms", of.actions, of.p50_ms, of.p99_ms));
    }
    print::line(&format!("  ratio              p50 {}   p99 {}", flow.p50_ratio, flow.p99_ratio));
    print::line(&format!("\n{} lines of log at info and above, {} MiB at most", flow.log_lines, flow.rss_mb));
    Ok(())
}

async fn fair(floods: &[i64], json: bool) -> Measured {
    let measured = fair::fair(floods).await?;
    if json {
        print::line(&serde_json::json!({ "floods": measured }).to_string());
        return Ok(());
    }
    let mut table = Table::new(&[
        ("one tenant's flood", Side::Right),
        ("claim p50, ms", Side::Right),
        ("p90, ms", Side::Right),
        ("claims until 50 others had theirs", Side::Right),
    ]);
    for of in measured {
        let (p50, p90) = (of.claim_p50_ms.to_string(), of.claim_p90_ms.to_string());
        table.row([of.flood.to_string(), p50, p90, of.claims_until_all_had_theirs.to_string()]);
    }
    print::out(&table.show(Screen::of_stdout()));
    Ok(())
}
