//! How often, and of whom patience is asked: `rate` of a destination, `pace` of a contract.

#![allow(clippy::wildcard_enum_match_arm, reason = "TOML's values are not our enum: what is not expected is refused")]

use std::time::Duration;

use super::place::{show_source, source};
use super::problem::Reported;
use super::read::one_of;
use super::table::{Table, type_of};
use crate::core::contract::{Pace, PauseScope, Scope};
use crate::core::target::Rate;

const UNITS: [(&str, u64); 3] = [("s", 1), ("min", 60), ("h", 3600)];
const MOST: u32 = 1_000_000;
/// What may leave at once after a rest, where that is not said: what so long a time brings.
const REST: Duration = Duration::from_millis(100);

/// `rate` of a destination.
pub(super) fn rate(table: &Table<'_>) -> Result<Option<Rate>, Reported> {
    let text = table.text_if("rate")?;
    text.map(|text| parse(&text).map_err(|complaint| table.wrong("rate", complaint))).transpose()
}

/// As in `50/s`, `600/min burst 10`.
fn parse(text: &str) -> Result<Rate, String> {
    let complaint = || {
        format!(
            "must be a number of requests, `/` and s, min or h, like \"50/s\" or \"600/min burst 20\", found {text:?}"
        )
    };
    let number = |digits: &str| match digits.parse::<u32>() {
        Ok(number @ 1..=MOST) if digits.bytes().all(|byte| byte.is_ascii_digit()) => Ok(number),
        Ok(_) | Err(_) => Err(complaint()),
    };
    let words: Vec<&str> = text.split_whitespace().collect();
    let (rate, burst) = match words.as_slice() {
        [rate] => (*rate, None),
        [rate, "burst", burst] => (*rate, Some(number(burst)?)),
        _ => return Err(complaint()),
    };
    let (count, unit) = rate.split_once('/').ok_or_else(complaint)?;
    let (_, seconds) = UNITS.into_iter().find(|(name, _)| *name == unit).ok_or_else(complaint)?;
    let count = number(count)?;
    let every = Duration::from_secs(seconds) / count;
    let rested = u32::try_from(REST.as_nanos() / every.as_nanos().max(1)).unwrap_or(MOST);
    Ok(Rate { count, per: Duration::from_secs(seconds), burst: burst.unwrap_or(rested.max(1)) })
}

/// As it is written.
pub(super) fn show_rate(rate: Rate) -> String {
    let unit = UNITS.iter().find(|(_, seconds)| rate.per.as_secs() == *seconds).map_or("s", |(name, _)| name);
    format!("{}/{unit} burst {}", rate.count, rate.burst)
}

/// `pace` of a contract, but for `retry_after`.
pub(super) fn pace(contract: &Table<'_>) -> Result<Pace, Reported> {
    let Some(table) = contract.sub("pace")? else { return Ok(Pace::default()) };
    let (min_gap, scope) = (table.duration_if("min_gap"), scope(&table));
    Ok(Pace { min_gap: min_gap?, scope: scope? })
}

fn scope(table: &Table<'_>) -> Result<Option<PauseScope>, Reported> {
    let words = table.each("pause_scopes", |word, value| {
        let scope = value.as_str().ok_or_else(|| {
            format!(
                "has `{word}`, which must be \"action\", \"operation\" or \"destination\", found {}",
                type_of(value)
            )
        })?;
        let scope = one_of(scope, &Scope::ALL).map_err(|complaint| format!("has `{word}`, which {complaint}"))?;
        Ok((word.to_owned(), scope))
    });
    let text = table.text_if("pause_scope")?;
    let words = words?;
    match text {
        None if words.is_empty() => Ok(None),
        None => Err(table.missing("pause_scope")),
        Some(text) if text.contains(':') => match source(&text) {
            Ok(_) if words.is_empty() => Err(table.missing("pause_scopes")),
            Ok(at) => Ok(Some(PauseScope::Said { at, words })),
            Err(complaint) => Err(table.wrong("pause_scope", complaint)),
        },
        Some(text) => match one_of(&text, &Scope::ALL) {
            Ok(_) if !words.is_empty() => {
                Err(table.wrong("pause_scopes", "has a meaning only where `pause_scope` is a place in the answer"))
            }
            Ok(scope) => Ok(Some(PauseScope::Always(scope))),
            Err(complaint) => Err(table.wrong("pause_scope", format!("{complaint}, or a place like \"header:Name\""))),
        },
    }
}

/// The lines of `pace`, as they are written.
pub(super) fn show_pace(pace: &Pace) -> Vec<String> {
    let quoted = |text: &str| serde_json::Value::from(text).to_string();
    let mut lines = Vec::new();
    if let Some(gap) = pace.min_gap {
        lines.push(format!("min_gap = {}", quoted(&super::show(gap))));
    }
    match &pace.scope {
        None => {}
        Some(PauseScope::Always(scope)) => lines.push(format!("pause_scope = {}", quoted(scope.as_str()))),
        Some(PauseScope::Said { at, words }) => {
            let words: Vec<String> =
                words.iter().map(|(word, scope)| format!("{} = {}", quoted(word), quoted(scope.as_str()))).collect();
            lines.push(format!("pause_scope = {}", quoted(&show_source(at))));
            lines.push(format!("pause_scopes = {{ {} }}", words.join(", ")));
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn b76_a_rate_has_a_number_a_unit_and_a_burst_that_is_small_unless_it_is_said() {
        let read = |text: &str| parse(text).map(|rate| (rate.every(), rate.burst));
        assert_eq!(read("50/s"), Ok((Duration::from_millis(20), 5)));
        assert_eq!(read("600/min burst 20"), Ok((Duration::from_millis(100), 20)));
        assert_eq!(read("1/h"), Ok((Duration::from_secs(3600), 1)));
        for wrong in
            ["", "50", "50/m", "0/s", "-1/s", "+5/s", "1.5/s", "50 / s", "50/s burst", "50/s burst 0", "5/s x 1"]
        {
            assert!(read(wrong).is_err(), "{wrong}");
        }
        for text in ["50/s burst 5", "600/min burst 20", "1/h burst 1"] {
            assert_eq!(parse(text).map(show_rate), Ok(text.to_owned()));
        }
    }
}
