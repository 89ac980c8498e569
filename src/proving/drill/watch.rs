//! What one sees while it runs: a bar on a terminal, a line now and then elsewhere.

use std::io::IsTerminal;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

use super::ledger::Standing;
use crate::clock::Uptime;
use crate::proving::session;

/// How far apart lines are where no bar can be drawn.
const LINE_EVERY: Duration = Duration::from_secs(10);
/// How often the database is asked.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// Where progress is shown.
#[derive(Clone)]
pub enum Show {
    /// A terminal.
    Bar(ProgressBar),
    /// Lines on standard error.
    Lines,
}

impl Show {
    /// A bar for so many actions, where standard error is a terminal.
    pub fn new(actions: u64) -> Self {
        if !std::io::stderr().is_terminal() {
            return Self::Lines;
        }
        let bar = ProgressBar::new(actions);
        // The template is fixed; if it could not be read, the default bar does as well.
        if let Ok(style) = ProgressStyle::with_template("{wide_bar} {pos}/{len} at rest, {elapsed}\n{msg}") {
            bar.set_style(style);
        }
        Self::Bar(bar)
    }

    /// The same, for a task of its own.
    pub fn watch(&self) -> Self {
        self.clone()
    }

    /// Says what is being done.
    pub fn say(&self, what: &str) {
        match self {
            Self::Bar(bar) => bar.set_message(what.to_owned()),
            Self::Lines => eprintln!("{what}"),
        }
    }

    /// Shows how things stand until it is aborted. A database that is away is shown as such.
    pub async fn keep(self, url: &str) {
        let begun = Uptime::now();
        let mut next = begun.plus(LINE_EVERY);
        let mut client = None;
        loop {
            tokio::time::sleep(LOOK_EVERY).await;
            if client.is_none() {
                client = session::connect(url).await.ok();
            }
            let standing = match &client {
                Some(client) => Standing::read(client).await.ok(),
                None => None,
            };
            let text = match standing {
                Some(standing) => format!(
                    "committed {} · closed {} · unknown now {} · held {} · behind others {}",
                    standing.all, standing.closed, standing.unknown, standing.held, standing.queued
                ),
                None => {
                    client = None;
                    "the database is away".to_owned()
                }
            };
            match &self {
                Self::Bar(bar) => {
                    bar.set_message(text);
                    bar.set_position(standing.map_or(bar.position(), |s| s.closed + s.held));
                }
                Self::Lines if next.is_over() => {
                    next = next.plus(LINE_EVERY);
                    eprintln!("{:>3} s: {text}", Uptime::now().since(begun).as_secs());
                }
                Self::Lines => {}
            }
        }
    }

    /// Takes the bar away.
    pub fn finish(&self) {
        match self {
            Self::Bar(bar) => bar.finish_and_clear(),
            Self::Lines => {}
        }
    }
}
