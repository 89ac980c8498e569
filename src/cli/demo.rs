//! `outboxd demo`

use clap::Args;

use super::Exit;

/// How it is shown.
#[derive(Args)]
pub struct Options {}

/// Not yet.
pub async fn run(_: Options) -> Exit {
    Exit::Failed
}
