//! `outboxd migrate`

use clap::Args;

use super::{ConfigFile, Exit, print, set_up};
use crate::config::Secrets;
use crate::ledger;

/// What is migrated.
#[derive(Args)]
pub struct Options {
    #[command(flatten)]
    file: ConfigFile,
    /// After a failover or a restored backup: let daemons run on the cluster and timeline that this is now
    #[arg(long)]
    accept_timeline: bool,
}

/// Brings the schema up to date. Destinations' secrets are not needed for it.
pub async fn run(options: &Options) -> Exit {
    let config = match set_up::load(&options.file.config, Secrets::Skip) {
        Ok(config) => config,
        Err(exit) => return exit,
    };
    let url = config.database.direct_url.as_ref().unwrap_or(&config.database.url);
    match ledger::migrate(url).await {
        Ok(done) if done.from == done.to => {
            print::line(&format!("the outbox schema is at version {}; nothing to do", done.to));
        }
        Ok(done) => {
            print::line(&format!("the outbox schema is at version {} now (it was at {})", done.to, done.from));
        }
        Err(error) => return set_up::failed("bring the schema up to date", &error),
    }
    if !options.accept_timeline {
        return Exit::Done;
    }
    match ledger::accept_cluster(url).await {
        Ok(cluster) => print::line(&format!("daemons may run on this cluster from now on: {cluster}")),
        Err(error) => set_up::failed("accept this cluster", &error),
    }
}
