//! `outboxd list`

use std::time::Duration;

use clap::Args;
use clap::builder::PossibleValuesParser;
use serde_json::{Value, json};
use uuid::Uuid;

use super::print::screen::Screen;
use super::print::table::{Side, Table};
use super::print::text::{name, shell};
use super::print::words::{age, relative, rfc3339};
use super::{ConfigFile, Exit, action_id, print, set_up, show};
use crate::core::action::{ActionId, State, Step};
use crate::ledger::{Filter, Listed, Page};

/// Which actions.
#[derive(Args)]
pub struct Options {
    /// Only in this state
    #[arg(long, value_name = "STATE", value_parser = PossibleValuesParser::new(State::ALL.map(State::as_str)))]
    state: Option<String>,
    /// Only with this label: a state, or what kind of unknown it is
    #[arg(long, value_name = "LABEL", conflicts_with = "state", value_parser = PossibleValuesParser::new(labels()))]
    label: Option<String>,
    /// Only what a person must decide, the longest unknown first
    #[arg(long, conflicts_with_all = ["state", "label"])]
    review: bool,
    /// Only with this retry key: of any tenant and operation, and also what has been pruned
    #[arg(long, value_name = "KEY", conflicts_with_all = ["state", "label", "review", "older_than"])]
    retry_key: Option<String>,
    #[command(flatten)]
    narrow: Narrow,
}

/// What any list can be narrowed to, and how it is printed.
#[derive(Args)]
pub struct Narrow {
    /// Only of this operation
    #[arg(long, value_name = "NAME")]
    operation: Option<String>,
    /// Only of this tenant; '' for the actions that have none
    #[arg(long, value_name = "NAME")]
    tenant: Option<String>,
    /// Only what was committed longer ago than this ("1h"); in a review, what has been unknown for longer
    #[arg(long, value_name = "DURATION", value_parser = humantime::parse_duration)]
    older_than: Option<Duration>,
    /// How many at most
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    limit: u32,
    /// Go on behind this action, in the order of the list
    #[arg(long, value_name = "ACTION", value_parser = action_id::parse)]
    after: Option<Uuid>,
    /// One JSON object
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub file: ConfigFile,
}

/// The kinds of unknown, each with its steps.
const UNKNOWN: [(&str, &[Step]); 3] = [
    ("awaiting_resend", &[Step::Send]),
    ("awaiting_reconciliation", &[Step::Lookup, Step::Cancel, Step::Conclude]),
    ("awaiting_review", &[Step::Review]),
];

fn labels() -> Vec<&'static str> {
    let states = State::ALL.into_iter().filter(|state| *state != State::OutcomeUnknown).map(State::as_str);
    states.chain(UNKNOWN.map(|(label, _)| label)).collect()
}

/// The state and steps that a label stands for.
fn meaning(label: &str) -> (Option<State>, Option<&'static [Step]>) {
    match UNKNOWN.into_iter().find(|(name, _)| *name == label) {
        Some((_, steps)) => (Some(State::OutcomeUnknown), Some(steps)),
        None => (State::parse(label), None),
    }
}

impl Narrow {
    /// With this, the whole filter.
    pub fn filter(&self, held: bool, label: Option<&str>) -> Filter {
        let (state, steps) = label.map_or((None, None), meaning);
        Filter {
            state,
            steps,
            held,
            operation: self.operation.clone(),
            tenant: self.tenant.clone(),
            older_than: self.older_than,
            after: self.after.map(ActionId),
        }
    }

    /// At most so many.
    pub fn limit(&self) -> u32 {
        self.limit
    }

    /// What to type for what comes behind, where there is more.
    pub fn more(&self, command: &str, page: &Page) -> Option<String> {
        let last = page.actions.last().filter(|_| page.more)?;
        let mut line = format!("{} shown; more: outboxd {command}", page.actions.len());
        let mut flag = |name: &str, value: Option<String>| {
            if let Some(value) = value {
                line.push_str(&format!(" --{name} {}", shell(&value)));
            }
        };
        flag("operation", self.operation.clone());
        flag("tenant", self.tenant.clone());
        flag("older-than", self.older_than.map(|age| humantime::format_duration(age).to_string().replace(' ', "")));
        flag("limit", (self.limit != 50).then(|| self.limit.to_string()));
        flag("after", Some(last.id.to_string()));
        let config = show::given(&self.file.config);
        Some(if config.is_empty() { line } else { format!("{line} {config}") })
    }
}

/// Prints the list.
pub async fn run(options: Options) -> Exit {
    let Options { state, label, review, retry_key, narrow } = options;
    if review {
        return super::review::list(&narrow).await;
    }
    let (_, ledger) = match set_up::open(&narrow.file.config).await {
        Ok(open) => open,
        Err(exit) => return exit,
    };
    let filter = narrow.filter(false, state.as_deref().or(label.as_deref()));
    let listed = async {
        match &retry_key {
            Some(key) => ledger.list_by_key(key, &filter, narrow.limit).await,
            None => ledger.list(&filter, narrow.limit).await,
        }
    };
    let page = match set_up::patiently(listed).await {
        Ok(page) => page,
        Err(error) => return set_up::failed("list actions", &error),
    };
    if narrow.json {
        return print::out(&format!("{}\n", json_of(&page, |_| Value::Null)));
    }
    if page.actions.is_empty() {
        let all = filter == Filter::default() && retry_key.is_none();
        return print::out(if all {
            "no action has been enqueued yet, or all are pruned\n"
        } else {
            "no such action\n"
        });
    }
    let given = [("state", &state), ("label", &label), ("retry-key", &retry_key)];
    let given = given.iter().filter_map(|(flag, value)| Some(format!(" --{flag} {}", shell(value.as_deref()?))));
    let command = format!("list{}", given.collect::<String>());
    let more = narrow.more(&command, &page).map(|line| format!("{line}\n")).unwrap_or_default();
    print::out(&(table(&page, Screen::of_stdout()) + &more))
}

fn table(page: &Page, screen: Screen) -> String {
    let columns = ["action", "operation", "tenant", "retry key", "label"].map(|name| (name, Side::Left));
    let mut table =
        Table::new(&[&columns[..], &[("age", Side::Right), ("reason", Side::Left), ("due", Side::Left)]].concat());
    for action in &page.actions {
        table.row([
            action.id.to_string(),
            name(&action.operation),
            name(&action.tenant),
            name(&action.retry_key),
            action.label.clone(),
            age(action.now.since(action.created_at)),
            action.reason.as_deref().map_or("–".to_owned(), name),
            due(action),
        ]);
    }
    table.show(screen)
}

/// When something happens next; for what is in flight, when its lease ends.
fn due(action: &Listed) -> String {
    match action.due_at {
        Some(due) => relative(due, action.now),
        // Only what waits for its turn in a serial queue is pending and never due.
        None if action.state == State::Pending.as_str() => "in queue".to_owned(),
        None => "–".to_owned(),
    }
}

/// A page as one object; `more` is what a command adds to each action, null for nothing.
pub fn json_of(page: &Page, more: impl Fn(&Listed) -> Value) -> Value {
    let action = |action: &Listed| {
        let mut value = json!({
            "action_id": action.id.0,
            "operation": action.operation,
            "tenant": action.tenant,
            "retry_key": action.retry_key,
            "state": action.state,
            "label": action.label,
            "reason": action.reason,
            "receipt": action.receipt,
            "attempts": action.attempts,
            "worker": action.worker,
            "created_at": rfc3339(action.created_at),
            "doubt_since": action.doubt_since.map(rfc3339),
            "due_at": action.due_at.map(rfc3339),
            "closed_at": action.closed_at.map(rfc3339),
        });
        if let (Some(object), Value::Object(more)) = (value.as_object_mut(), more(action)) {
            object.extend(more);
        }
        value
    };
    json!({
        "actions": page.actions.iter().map(action).collect::<Vec<_>>(),
        "more": page.more,
        "next_after": page.actions.last().filter(|_| page.more).map(|last| last.id.0),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn r10_every_label_stands_for_its_state_and_steps() {
        let open: Vec<Step> = UNKNOWN.iter().flat_map(|(_, steps)| steps.iter().copied()).collect();
        assert!(Step::ALL.iter().all(|step| open.contains(step)), "every step of an unknown outcome has its label");
        for label in labels() {
            let (state, steps) = meaning(label);
            assert_eq!(steps.is_some(), state == Some(State::OutcomeUnknown), "{label}");
        }
        assert_eq!(meaning("outcome_unknown"), (Some(State::OutcomeUnknown), None));
    }
}
