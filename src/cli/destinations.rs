//! `outboxd destinations`

use clap::builder::NonEmptyStringValueParser;
use clap::{Args, Subcommand};
use serde_json::json;

use super::print::screen::Screen;
use super::print::text::name;
use super::standing::{json_of, standings, table};
use super::{ConfigFile, Exit, print, set_up, show};
use crate::config::nearest;

/// How they are shown, or what is asked of one.
#[derive(Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Options {
    #[command(subcommand)]
    verb: Option<Verb>,
    #[command(flatten)]
    list: List,
}

#[derive(Args)]
struct List {
    /// One JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    file: ConfigFile,
}

#[derive(Subcommand)]
enum Verb {
    /// Ask every daemon that has it paused to probe it at once
    Resume(Resume),
}

#[derive(Args)]
struct Resume {
    /// The destination
    #[arg(value_name = "NAME")]
    name: String,
    /// Who asks: kept with the request (by default who is logged in)
    #[arg(long, value_name = "WHO", value_parser = NonEmptyStringValueParser::new())]
    by: Option<String>,
    /// Why: kept with the request
    #[arg(long, value_name = "WHY", value_parser = NonEmptyStringValueParser::new())]
    reason: Option<String>,
    /// One JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    file: ConfigFile,
}

/// Prints them, or asks.
pub async fn run(options: Options) -> Exit {
    match options.verb {
        None => list(options.list).await,
        Some(Verb::Resume(resume)) => ask(resume).await,
    }
}

async fn list(options: List) -> Exit {
    let (config, ledger) = match set_up::open(&options.file.config).await {
        Ok(open) => open,
        Err(exit) => return exit,
    };
    let asked = async { Ok((ledger.daemons().await?, ledger.overview().await?)) };
    let (daemons, overview) = match set_up::patiently(asked).await {
        Ok(both) => both,
        Err(error) => return set_up::failed("look at the destinations", &error),
    };
    let standings = standings(&config, &daemons, &overview.operations);
    if options.json {
        return print::out(&format!("{}\n", json!({ "destinations": json_of(&standings) })));
    }
    print::out(&table(&standings, overview.now, &show::given(&options.file.config), Screen::of_stdout()))
}

async fn ask(resume: Resume) -> Exit {
    let (config, ledger) = match set_up::open(&resume.file.config).await {
        Ok(open) => open,
        Err(exit) => return exit,
    };
    if !config.targets.contains_key(&resume.name) {
        let near = nearest(&resume.name, config.targets.keys().map(String::as_str));
        let hint = near.map(|near| format!("; did you mean {near}?")).unwrap_or_default();
        eprintln!("the configuration has no destination {}{hint}", name(&resume.name));
        return Exit::Failed;
    }
    let by = resume.by.or_else(|| std::env::var("USER").ok().filter(|user| !user.trim().is_empty()));
    let by = by.unwrap_or_else(|| "the command line".to_owned());
    let reason = resume.reason.unwrap_or_else(|| "none was given".to_owned());
    match set_up::patiently(ledger.resume(&resume.name, &by, &reason)).await {
        Ok(daemons) if resume.json => print::out(&format!(
            "{}\n",
            json!({ "destination": resume.name, "asked": true, "paused_with_daemons": daemons })
        )),
        Ok(daemons) => {
            let name = name(&resume.name);
            print::out(&match daemons {
                0 => format!("Asked, but no daemon has said that {name} is paused.\n"),
                1 => format!("Asked the daemon that has {name} paused to probe it at once.\n"),
                n => format!("Asked the {n} daemons that have {name} paused to probe it at once.\n"),
            })
        }
        Err(error) => set_up::failed("ask the daemons", &error),
    }
}
