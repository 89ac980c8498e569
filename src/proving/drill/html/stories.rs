//! What happened to a few actions: one column for each side, time from top to bottom.

use super::super::report::{Report, Story};
use super::super::story::{Event, Side};
use super::escaped;

const SIDES: [Side; 5] = [Side::Application, Side::Ledger, Side::Worker, Side::Destination, Side::Fault];

/// All of them.
pub fn section(report: &Report) -> String {
    let stories: String = report.stories.iter().enumerate().map(|(place, told)| story(place, told)).collect();
    format!("<h2>What happened to a few of them</h2>\n{stories}")
}

fn story(place: usize, story: &Story) -> String {
    let open = if place == 0 { " open" } else { "" };
    let heads: String = SIDES.map(|side| format!("<th>{}</th>", side.name())).concat();
    let rows: String = story.events.iter().map(row).collect();
    format!(
        "<details{open} class=\"story\"><summary><b>{}</b> {}, {} <code>{}</code></summary>\n<table class=\"timeline\">\n\
         <tr><th>UTC</th>{heads}</tr>\n{rows}</table></details>\n",
        escaped(story.kind),
        escaped(&story.state.replace('_', " ")),
        match story.effects {
            0 => "no effect".to_owned(),
            1 => "1 effect".to_owned(),
            more => format!("{more} effects"),
        },
        story.action
    )
}

fn row(event: &Event) -> String {
    let cell = |side: Side| match side == event.side {
        true => format!("<td class=\"{}\"><span>{}</span></td>", side.name(), escaped(&event.text)),
        false => "<td></td>".to_owned(),
    };
    format!("<tr><td class=\"time\">{}</td>{}</tr>\n", escaped(&event.time), SIDES.map(cell).concat())
}
