//! `outboxd bench`

use clap::{Args, Subcommand};

use super::Exit;
use crate::proving::bench;

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
}

/// Measures, and prints what was measured.
pub async fn run(options: Options) -> Exit {
    let What::Drain { actions, in_flight, json } = options.what;
    let measured = async {
        let drain = bench::drain(&std::env::current_exe()?, actions, in_flight, json).await?;
        let value = serde_json::to_value(&drain)?;
        if json {
            println!("{value}");
        } else if let Some(figures) = value.as_object() {
            let mut table = comfy_table::Table::new();
            table.load_preset(comfy_table::presets::NOTHING);
            for (name, figure) in figures {
                table.add_row([name.replace('_', " "), figure.to_string()]);
            }
            println!("{table}");
        }
        Ok::<_, Box<dyn std::error::Error + Send + Sync>>(())
    }
    .await;
    match measured {
        Ok(()) => Exit::Done,
        Err(error) => {
            eprintln!("failed to measure: {error}");
            Exit::Failed
        }
    }
}
