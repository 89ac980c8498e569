//! Logs: how they are written. What is written stands in [`events`].

pub mod events;

use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::fmt::MakeWriter;

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
    let builder = tracing_subscriber::fmt().with_max_level(level).with_target(false).with_writer(writer);
    // A second start (in tests of the library) keeps the first.
    let _ = match format {
        Format::Json => builder.json().flatten_event(true).with_current_span(false).with_span_list(false).try_init(),
        Format::Text => builder.with_ansi(std::io::IsTerminal::is_terminal(&std::io::stderr())).try_init(),
    }
    .map_err(drop);
}
