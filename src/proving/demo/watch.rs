//! What one sees while it runs: a bar on a terminal, a line now and then elsewhere.

use std::io::IsTerminal;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use tokio_postgres::{Client, Error};

use crate::clock::Uptime;

/// How far apart lines are where no bar can be drawn.
const LINE_EVERY: Duration = Duration::from_secs(4);

/// How things stand.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Standing {
    /// Notes in the application's table.
    pub published: u64,
    /// Actions the destination has confirmed.
    pub delivered: u64,
    /// Actions of which nobody knows right now whether they took effect.
    pub unknown: u64,
    /// Actions that are closed either way.
    pub closed: u64,
    /// Actions that are not closed.
    pub open: u64,
}

impl Standing {
    /// Asks the database.
    pub async fn read(client: &Client) -> Result<Self, Error> {
        let row = client
            .query_one(
                "select (select count(*) from desk.note), count(*) filter (where state = 'succeeded'),
                   count(*) filter (where doubt_since is not null), count(*) filter (where closed_at is not null),
                   count(*) filter (where closed_at is null)
                 from outbox.delivery",
                &[],
            )
            .await?;
        let count = |place: usize| row.try_get::<_, i64>(place).map(|count| u64::try_from(count).unwrap_or(0));
        Ok(Self { published: count(0)?, delivered: count(1)?, unknown: count(2)?, closed: count(3)?, open: count(4)? })
    }

    fn told(&self) -> String {
        format!("published {} · delivered {} · unknown now {}", self.published, self.delivered, self.unknown)
    }
}

/// Where progress is shown.
pub enum Show {
    /// A terminal.
    Bar(ProgressBar),
    /// Lines on standard error.
    Lines {
        /// Since when.
        begun: Uptime,
        /// When the next line is due.
        next: Uptime,
    },
}

impl Show {
    /// A bar for so many actions, where standard error is a terminal.
    pub fn new(actions: u64) -> Self {
        let begun = Uptime::now();
        if !std::io::stderr().is_terminal() {
            return Self::Lines { begun, next: begun.plus(LINE_EVERY) };
        }
        let bar = ProgressBar::new(actions);
        // The template is fixed; if it could not be read, the default bar does as well.
        if let Ok(style) = ProgressStyle::with_template("{wide_bar} {pos}/{len} closed\n{msg}") {
            bar.set_style(style);
        }
        Self::Bar(bar)
    }

    /// Says what is being done.
    pub fn say(&self, what: &str) {
        match self {
            Self::Bar(bar) => bar.set_message(what.to_owned()),
            Self::Lines { .. } => eprintln!("{what}"),
        }
    }

    /// Shows how things stand.
    pub fn stand(&mut self, standing: &Standing) {
        match self {
            Self::Bar(bar) => {
                bar.set_message(standing.told());
                bar.set_position(standing.closed);
            }
            Self::Lines { begun, next } => {
                if next.is_over() {
                    *next = next.plus(LINE_EVERY);
                    eprintln!("{:>3} s: {}", Uptime::now().since(*begun).as_secs(), standing.told());
                }
            }
        }
    }

    /// Takes the bar away.
    pub fn finish(&self) {
        match self {
            Self::Bar(bar) => bar.finish_and_clear(),
            Self::Lines { .. } => {}
        }
    }
}
