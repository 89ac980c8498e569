//! `outboxd release`

use clap::Args;

use super::Exit;
use super::ruling::{self, Who};
use crate::ledger::Decision;

/// What, who, why.
#[derive(Args)]
pub struct Options {
    #[command(flatten)]
    who: Who,
}

/// Records it.
pub async fn run(options: Options) -> Exit {
    ruling::run(options.who, Decision::Release).await
}
