//! The command line: one file per command.

mod action_id;
mod bench;
mod cancel;
mod check;
mod completions;
mod contracts;
mod demo;
mod destinations;
mod drill;
#[cfg(test)]
mod help_tests;
mod interrupted;
mod inventory;
mod list;
mod migrate;
mod operations;
mod print;
mod prune;
mod release;
mod reload;
mod resolve;
mod retry;
mod review;
mod ruling;
mod run;
mod schema;
mod set_up;
mod show;
mod standing;
mod status;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, CommandFactory as _, Parser, Subcommand};

use interrupted::interrupted;

/// Exit codes: 0 done, 1 failed, 2 usage, and these (sysexits.h where it has one).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Exit {
    /// 0
    Done,
    /// 1
    Failed,
    /// 69: the schema is newer than this binary.
    SchemaNewer,
    /// 75: the drain's time ran out with attempts abandoned, or with outcomes that only the journal has.
    Abandoned,
    /// 76: this is not the ledger that it was. EX_PROTOCOL: the other side is there, and is not who it has to be.
    LedgerRefused,
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
            Exit::LedgerRefused => 76,
            Exit::ConfigRefused => 78,
        })
    }
}

/// A transactional outbox dispatcher for PostgreSQL that knows when it does not know.
///
/// Applications commit a state change and an action in one transaction; outboxd delivers the action, and where a
/// request timed out after it may have left, it says so and resolves the doubt by what the destination promises.
#[derive(Parser)]
#[command(name = "outboxd", version, propagate_version = true, max_term_width = 100)]
#[command(after_help = EXIT_CODES)]
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
    Migrate(migrate::Options),
    /// List every operation: what it means, who owns it, what it may cost, what happens when its outcome is unknown
    Operations(operations::Options),
    /// List the contracts, built in or of a file, or print one with its sources
    Contracts(contracts::Options),
    /// Print the schema as SQL, for a migration tool of your own
    Schema,
    /// How it stands: what is due, in flight and unknown, by operation and destination
    Status(status::Options),
    /// How the destinations stand with the daemons; `resume` has a paused one probed at once
    Destinations(destinations::Options),
    /// List actions, the youngest first
    List(list::Options),
    /// List what only a person can decide, the longest unknown first
    Review(review::Options),
    /// Tell the whole story of one action: what is known, what happened, what may be decided
    Show(show::Options),
    /// Decide what only a person can: whether an action of unknown outcome happened, or is sent again
    #[command(after_help = RESOLVE_HELP)]
    Resolve(resolve::Options),
    /// Try again an action that was closed as not done, with new budgets
    Retry(retry::Options),
    /// Ask that an action is not sent any more
    #[command(after_help = CANCEL_HELP)]
    Cancel(cancel::Options),
    /// Let a serial queue go on past the failed action that holds it
    #[command(after_help = RELEASE_HELP)]
    Release(release::Options),
    /// Forget closed actions that are older than the configuration keeps them; a daemon does it by itself, too
    #[command(after_help = PRUNE_HELP)]
    Prune(prune::Options),
    /// See it work: a private database, a Release Desk, a destination that misbehaves, the real dispatcher (about 20 s)
    Demo(demo::Options),
    /// Attack it: real daemons killed, paused and cut off by a seed, and every effect counted (about 2 minutes)
    #[command(after_help = DRILL_HELP)]
    Drill(drill::Options),
    /// Measure it on this machine
    Bench(bench::Options),
    /// Print the completions of a shell: bash, zsh, fish, elvish, powershell
    #[command(after_help = COMPLETIONS_HELP)]
    Completions(completions::Options),
}

const EXIT_CODES: &str = "See it work: outboxd demo. What is stuck, and who must do something: outboxd status.\n\n\
Exit codes: 0 done; 1 failed; 2 usage; 69 schema newer than this binary; 75 the drain's time ran out with attempts \
abandoned, or with outcomes that only the journal has; 76 another cluster, timeline or ledger than before; \
78 configuration refused.";

const RESOLVE_HELP: &str = "Look at it first: outboxd show ACTION says what is known, what each decision risks, and \
which are not possible. The decision is kept in the history with who and why. It is refused where a worker holds the \
action, or where the evidence does not allow it; then nothing is changed and the exit code is 1.";

const CANCEL_HELP: &str = "What has not been sent is certainly not sent any more. Where a worker holds the action, or an \
earlier attempt may have taken effect, the request stands: it is not sent again, but what was sent may have happened.";

const RELEASE_HELP: &str = "Where an operation says hold_on_failure = true, an action of a serial queue that ends as not \
delivered holds those behind it, until it is tried again (outboxd retry) or this lets them go. The action stays closed \
as it is.";

const PRUNE_HELP: &str = "First the payload and history go, and a tombstone stays: identity, end, receipt. Much later \
that goes too, and older requests under its key are refused from then on. Nothing that is open, unknown or contradicted \
is touched.";

const DRILL_HELP: &str = "A private PostgreSQL, daemons as child processes and destinations of every kind of contract. \
Daemons are killed and paused past their lease, connections cut, sessions terminated, the database crashed. At the end \
application, ledger and destinations are compared. The exit code is 1 where a promise is broken, with the story of the \
action. The same seed plans the same; what it meets depends on the machine, too.";

const COMPLETIONS_HELP: &str = "For bash, in ~/.bashrc: source <(outboxd completions bash)\n\
For zsh, as _outboxd in a directory of $fpath: outboxd completions zsh\n\
For fish: outboxd completions fish > ~/.config/fish/completions/outboxd.fish";

/// Where the configuration is looked for.
const DEFAULT_CONFIG: &str = "outboxd.toml";

/// Where the configuration is.
#[derive(Args, Clone)]
struct ConfigFile {
    /// The configuration file
    #[arg(long, value_name = "FILE", default_value = DEFAULT_CONFIG)]
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
            Command::Migrate(options) => migrate::run(&options).await,
            Command::Operations(options) => operations::run(&options),
            Command::Contracts(options) => contracts::run(&options),
            Command::Schema => schema::run(),
            Command::Status(options) => status::run(options).await,
            Command::Destinations(options) => destinations::run(options).await,
            Command::List(options) => list::run(options).await,
            Command::Review(options) => review::run(options).await,
            Command::Show(options) => show::run(options).await,
            Command::Resolve(options) => resolve::run(options).await,
            Command::Retry(options) => retry::run(options).await,
            Command::Cancel(options) => cancel::run(options).await,
            Command::Release(options) => release::run(options).await,
            Command::Prune(options) => prune::run(options).await,
            Command::Demo(options) => demo::run(options).await,
            Command::Drill(options) => drill::run(options).await,
            Command::Bench(options) => bench::run(options).await,
            Command::Completions(options) => completions::run(&options, Cli::command()),
        }
    });
    // Whatever still waits for a name to resolve must not hold the process.
    runtime.shutdown_background();
    exit.into()
}
