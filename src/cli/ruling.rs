//! What `resolve`, `retry`, `cancel` and `release` share: who decides and why, and what became of it.

use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use serde_json::json;
use uuid::Uuid;

use super::print::text::{detail, name};
use super::{ConfigFile, Exit, action_id, print, set_up};
use crate::core::action::ActionId;
use crate::ledger::{Decided, Decision, Refusal, Ruling};

/// About which actions, who decides, and why.
#[derive(Args)]
pub struct Who {
    /// The actions' ids, whole; one decision is recorded about each
    #[arg(value_name = "ACTION", value_parser = action_id::parse, required = true, num_args = 1..)]
    actions: Vec<Uuid>,
    /// Who decides: kept in the history
    #[arg(long, value_name = "WHO", value_parser = NonEmptyStringValueParser::new())]
    by: String,
    /// Why: kept in the history
    #[arg(long, value_name = "WHY", value_parser = NonEmptyStringValueParser::new())]
    reason: String,
    /// One JSON object for each action
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    file: ConfigFile,
}

/// Records the decision about each, and says what became of it in one sentence. What is refused of one says nothing
/// about the next; where the ledger cannot be asked the rest is left.
pub async fn run(who: Who, decision: Decision) -> Exit {
    if matches!(&decision, Decision::Happened { receipt: Some(_) }) && who.actions.len() > 1 {
        eprintln!("--receipt is one action's reference at the destination: decide one action at a time");
        return Exit::Failed;
    }
    let (_, ledger) = match set_up::open(&who.file.config).await {
        Ok(open) => open,
        Err(exit) => return exit,
    };
    let mut exit = Exit::Done;
    for action in who.actions.iter().copied().map(ActionId) {
        let decided = Decided { action, decision: decision.clone(), by: who.by.clone(), reason: who.reason.clone() };
        match set_up::patiently(ledger.rule(&decided)).await {
            Ok(ruling) => {
                if matches!(ruling, Ruling::Refused(_)) {
                    exit = Exit::Failed;
                }
                say(&who, &decided, &ruling);
            }
            Err(error) => {
                // Whether a lost COMMIT was carried out is not known: say so, and how to find out.
                if error.is_session() {
                    eprintln!("whether it was recorded is not known; look at it with outboxd show {action}");
                }
                return set_up::failed("record the decision", &error);
            }
        }
    }
    exit
}

/// What became of one.
fn say(who: &Who, decided: &Decided, ruling: &Ruling) {
    let which = if who.actions.len() > 1 { format!("{}: ", decided.action) } else { String::new() };
    match ruling {
        Ruling::Recorded { answer, state, label, sentence } if who.json => {
            let value = json!({
                "action_id": decided.action.0, "recorded": true, "answer": answer, "state": state, "label": label,
                "sentence": sentence,
            });
            print::line(&value.to_string());
        }
        Ruling::Recorded { sentence, .. } => {
            print::line(&format!("{which}{}. {}", done(&decided.decision), detail(sentence)));
        }
        Ruling::Refused(refusal) if who.json => {
            let value = json!({
                "action_id": decided.action.0, "recorded": false, "sqlstate": refusal.sqlstate,
                "message": refusal.message, "detail": refusal.detail, "hint": refusal.hint,
            });
            print::line(&value.to_string());
        }
        Ruling::Refused(refusal) => eprintln!("{which}{}", refused(refusal)),
    }
}

/// What was recorded.
fn done(decision: &Decision) -> &'static str {
    match decision {
        Decision::Happened { .. } => "Recorded that it happened",
        Decision::DidNotHappen { retry: false } => "Recorded that it did not happen",
        Decision::DidNotHappen { retry: true } => "Recorded that it did not happen, and it is sent anew",
        Decision::SendAgain => "Recorded that it is to be sent again",
        Decision::Retry => "Recorded that it is tried again",
        Decision::Cancel => "Recorded that it is to be cancelled",
        Decision::Release => "Recorded that its queue goes on",
    }
}

/// The ledger's own words; its code at the end, for whoever looks it up.
fn refused(refusal: &Refusal) -> String {
    let mut text = format!("refused: {} ({})", detail(&refusal.message), name(&refusal.sqlstate));
    for more in [&refusal.detail, &refusal.hint].into_iter().flatten() {
        text.push('\n');
        text.push_str(&detail(more));
    }
    text
}
