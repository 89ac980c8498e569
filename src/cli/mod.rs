//! The command line: one file per command.

mod bench;
mod check;
mod contracts;
mod demo;
mod inventory;
mod migrate;
mod operations;
mod run;
mod schema;
mod set_up;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};

/// Exit codes: 0 done, 1 failed, 2 usage, and these (sysexits.h where it has one).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Exit {
    /// 0
    Done,
    /// 1
    Failed,
    /// 69: the schema is newer than this binary.
    SchemaNewer,
    /// 75: the drain's time ran out with attempts abandoned.
    Abandoned,
    /// 78: the configuration is refused.
    ConfigRefused,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(match exit {
            Exit::Done => 0,
            Exit::Failed => 1,
            Exit::SchemaNewer => 69,
            Exit::Abandoned => 75,
            Exit::ConfigRefused => 78,
        })
    }
}

/// A transactional outbox dispatcher for PostgreSQL that knows when it does not know.
///
/// Applications commit a state change and an action in one transaction; outboxd delivers the action, and where a
/// request timed out after it may have left, it says so and resolves the doubt by what the destination promises.
#[derive(Parser)]
#[command(name = "outboxd", version, propagate_version = true)]
#[command(after_help = "Exit codes: 0 done, 1 failed, 2 usage, 69 schema newer than this binary,\n\
    75 drain time ran out with attempts abandoned, 78 configuration refused.")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Dispatch until told to stop (SIGTERM drains; a second one doesn't wait)
    Run(ConfigFile),
    /// Say what is wrong with the configuration and the database, and what would run
    Check(ConfigFile),
    /// Create the outbox schema or bring it up to date; safe to run many at once
    Migrate(ConfigFile),
    /// List every operation: what it means, who owns it, what it may cost, what happens when its outcome is unknown
    Operations(operations::Options),
    /// List the contracts, built in or of a file, or print one with its sources
    Contracts(contracts::Options),
    /// Print the schema as SQL, for a migration tool of your own
    Schema,
    /// See it work: a private database, a Release Desk, a destination that misbehaves, the real dispatcher (about 20 s)
    Demo(demo::Options),
    /// Measure it on this machine
    Bench(bench::Options),
}

/// Where the configuration is.
#[derive(Args, Clone)]
struct ConfigFile {
    /// The configuration file
    #[arg(long, value_name = "FILE", default_value = "outboxd.toml")]
    config: PathBuf,
}

/// Parses the arguments and carries the command out.
pub fn main() -> ExitCode {
    let cli = Cli::parse();
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("failed to start: {error}");
            return Exit::Failed.into();
        }
    };
    let exit = runtime.block_on(async {
        match cli.command {
            Command::Run(file) => run::run(&file.config).await,
            Command::Check(file) => check::run(&file.config).await,
            Command::Migrate(file) => migrate::run(&file.config).await,
            Command::Operations(options) => operations::run(&options),
            Command::Contracts(options) => contracts::run(&options),
            Command::Schema => schema::run(),
            Command::Demo(options) => demo::run(options).await,
            Command::Bench(options) => bench::run(options).await,
        }
    });
    // Whatever still waits for a name to resolve must not hold the process.
    runtime.shutdown_background();
    exit.into()
}
