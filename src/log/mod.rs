//! Logs: how they are written. What is written stands in [`events`].

pub mod events;

use tracing_subscriber::Layer as _;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

/// How lines look.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Format {
    /// One JSON object a line.
    Json,
    /// For people.
    Text,
}

/// Starts logging to standard error. Only the first call has an effect.
pub fn start(format: Format, level: LevelFilter) {
    start_to(format, level, std::io::stderr);
}

fn start_to<W>(format: Format, level: LevelFilter, writer: W)
where
    W: for<'w> MakeWriter<'w> + Send + Sync + 'static,
{
    // Only our own events: what the libraries say has not been cleaned, and stands in no table.
    let ours = Targets::new().with_target(env!("CARGO_PKG_NAME"), level);
    let lines = tracing_subscriber::fmt::layer().with_target(false).with_writer(writer);
    let registry = tracing_subscriber::registry();
    // A second start (in tests of the library) keeps the first.
    let _ = match format {
        Format::Json => {
            let lines = lines.json().flatten_event(true).with_current_span(false).with_span_list(false);
            registry.with(lines.with_filter(ours)).try_init()
        }
        Format::Text => {
            let colour = std::io::IsTerminal::is_terminal(&std::io::stderr());
            registry.with(lines.with_ansi(colour).with_filter(ours)).try_init()
        }
    };
}
