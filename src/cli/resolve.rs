//! `outboxd resolve`

use clap::Args;

use super::Exit;
use super::ruling::{self, Who};
use crate::ledger::Decision;

/// What happened, and who says so.
#[derive(Args)]
#[command(group = clap::ArgGroup::new("decision").required(true))]
pub struct Options {
    /// It took effect: you saw it at the destination. Closed as succeeded
    #[arg(long, group = "decision")]
    happened: bool,
    /// The destination's own reference for the effect
    #[arg(long, value_name = "RECEIPT", requires = "happened", conflicts_with_all = ["did_not_happen", "send_again"])]
    receipt: Option<String>,
    /// It did not: you made sure that it is not there. Refused while a request may still arrive
    #[arg(long, group = "decision")]
    did_not_happen: bool,
    /// Send it anew instead of giving it up
    #[arg(long, requires = "did_not_happen", conflicts_with_all = ["happened", "send_again"])]
    retry: bool,
    /// Send it once more, whatever happened: under the same key, and it may happen twice
    #[arg(long, group = "decision")]
    send_again: bool,
    #[command(flatten)]
    who: Who,
}

/// Records it.
pub async fn run(options: Options) -> Exit {
    let Options { happened, receipt, did_not_happen, retry, send_again: _, who } = options;
    let decision = if happened {
        Decision::Happened { receipt }
    } else if did_not_happen {
        Decision::DidNotHappen { retry }
    } else {
        Decision::SendAgain
    };
    ruling::run(who, decision).await
}
