//! `outboxd review`

use clap::Args;
use serde_json::json;

use super::list::{Narrow, json_of};
use super::print::promise;
use super::print::screen::Screen;
use super::print::table::{Side, Table};
use super::print::text::name;
use super::print::words::age;
use super::{Exit, print, set_up, show};
use crate::config::Config;
use crate::ledger::{Listed, Page};

/// Which of them.
#[derive(Args)]
pub struct Options {
    #[command(flatten)]
    narrow: Narrow,
}

/// Prints the queue.
pub async fn run(options: Options) -> Exit {
    list(&options.narrow).await
}

/// The same as `outboxd list --review`.
pub async fn list(narrow: &Narrow) -> Exit {
    let (config, ledger) = match set_up::open(&narrow.file.config).await {
        Ok(open) => open,
        Err(exit) => return exit,
    };
    let filter = narrow.filter(true, None);
    let page = match set_up::patiently(ledger.list(&filter, narrow.limit())).await {
        Ok(page) => page,
        Err(error) => return set_up::failed("list what needs a person", &error),
    };
    if narrow.json {
        let more = |action: &Listed| {
            let operation = config.operations.get(&action.operation);
            json!({
                "owner": operation.map(|operation| &operation.owner),
                "promises": operation.map(promise::short),
            })
        };
        return print::out(&format!("{}\n", json_of(&page, more)));
    }
    let Some(first) = page.actions.first() else {
        return print::out("nothing needs a person\n");
    };
    let given = show::given(&narrow.file.config);
    let next = format!("\nwhat is known, and what may be decided: outboxd show {} {given}", first.id);
    let more = narrow.more("review", &page).map(|line| format!("\n{line}")).unwrap_or_default();
    print::out(&format!("{}{}{more}\n", table(&page, &config, Screen::of_stdout()), next.trim_end()))
}

fn table(page: &Page, config: &Config, screen: Screen) -> String {
    let columns = ["action", "operation", "owner", "tenant", "retry key"].map(|name| (name, Side::Left));
    let rest = [("unknown for", Side::Right), ("reason", Side::Left), ("promised", Side::Left)];
    let mut table = Table::new(&[&columns[..], &rest].concat());
    for action in &page.actions {
        let operation = config.operations.get(&action.operation);
        table.row([
            action.id.to_string(),
            name(&action.operation),
            operation.map_or("not configured".to_owned(), |operation| name(&operation.owner)),
            name(&action.tenant),
            name(&action.retry_key),
            action.doubt_since.map_or("–".to_owned(), |since| age(action.now.since(since))),
            action.reason.as_deref().map_or("–".to_owned(), name),
            operation.map_or("–".to_owned(), promise::short),
        ]);
    }
    table.show(screen)
}
