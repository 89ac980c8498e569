//! Durations and times in words. Ages as `outbox.ago` has them; times in UTC, which are the database's.

use std::time::{Duration, UNIX_EPOCH};

use crate::core::time::Timestamp;

/// An age, rounded down: "0.8 s", "12 s", "12 min", "5 h", "2 days".
pub fn age(age: Duration) -> String {
    match age.as_secs() {
        0 if age.as_millis() >= 100 => format!("0.{} s", age.as_millis() / 100),
        seconds @ 0..60 => format!("{seconds} s"),
        seconds @ 60..3600 => format!("{} min", seconds / 60),
        seconds @ 3600..172_800 => format!("{} h", seconds / 3600),
        seconds => format!("{} days", seconds / 86_400),
    }
}

/// The same, or a dash where there is none.
pub fn age_or_dash(of: Option<Duration>) -> String {
    of.map_or_else(|| "–".to_owned(), age)
}

/// A duration that somebody has chosen, exactly: "24 h", "1 min 30 s", "500 ms", "30 days".
pub fn span(span: Duration) -> String {
    let seconds = span.as_secs();
    let mut parts = Vec::new();
    let mut part = |n: u64, unit: &str| {
        if n > 0 {
            parts.push(format!("{n} {unit}"));
        }
    };
    if seconds >= 172_800 {
        part(seconds / 86_400, "days");
        part(seconds % 86_400 / 3600, "h");
    } else {
        part(seconds / 3600, "h");
    }
    part(seconds % 3600 / 60, "min");
    part(seconds % 60, "s");
    part(u64::from(span.subsec_millis()), "ms");
    if parts.is_empty() { "0 s".to_owned() } else { parts.join(" ") }
}

/// "in 3 s", or "3 s ago".
pub fn relative(to: Timestamp, now: Timestamp) -> String {
    if to > now { format!("in {}", age(to.since(now))) } else { format!("{} ago", age(now.since(to))) }
}

/// "2026-11-29T10:31:02.114023Z", for JSON.
pub fn rfc3339(at: Timestamp) -> String {
    // What PostgreSQL calls infinity is the end of the year 9999, and nothing is before 1970.
    const LAST: u64 = 253_402_300_799_999_999;
    let micros = u64::try_from(at.micros()).unwrap_or(0).min(LAST);
    humantime::format_rfc3339_micros(UNIX_EPOCH + Duration::from_micros(micros)).to_string()
}

/// "2026-11-29"
pub fn day(at: Timestamp) -> String {
    rfc3339(at)[..10].to_owned()
}

/// "10:31:02.114"
pub fn clock_ms(at: Timestamp) -> String {
    rfc3339(at)[11..23].to_owned()
}

/// "10:31:02" of the same UTC day as `now`, "2026-11-28 10:31:02" otherwise.
pub fn clock(at: Timestamp, now: Timestamp) -> String {
    let text = rfc3339(at);
    if text[..10] == rfc3339(now)[..10] { text[11..19].to_owned() } else { text[..19].replace('T', " ") }
}

/// "once", "twice", "3 times"
pub fn times(n: usize) -> String {
    match n {
        1 => "once".to_owned(),
        2 => "twice".to_owned(),
        n => format!("{n} times"),
    }
}

/// "1,204"
pub fn grouped(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn r10_ages_are_rounded_down_to_what_a_person_says() {
        for (ms, text) in [
            (0, "0 s"),
            (99, "0 s"),
            (800, "0.8 s"),
            (59_999, "59 s"),
            (61_000, "1 min"),
            (3_601_000, "1 h"),
            (172_799_000, "47 h"),
            (180_000_000, "2 days"),
        ] {
            assert_eq!(age(Duration::from_millis(ms)), text);
        }
    }

    #[test]
    fn a_chosen_duration_is_said_exactly() {
        for (ms, text) in [
            (0, "0 s"),
            (500, "500 ms"),
            (90_000, "1 min 30 s"),
            (86_400_000, "24 h"),
            (2_592_000_000, "30 days"),
            (176_400_000, "2 days 1 h"),
        ] {
            assert_eq!(span(Duration::from_millis(ms)), text);
        }
    }

    #[test]
    fn times_are_utc_and_name_the_day_only_where_it_is_another() {
        let at = Timestamp::from_micros(1_700_000_000_123_456);
        assert_eq!(rfc3339(at), "2023-11-14T22:13:20.123456Z");
        assert_eq!((day(at).as_str(), clock_ms(at).as_str()), ("2023-11-14", "22:13:20.123"));
        assert_eq!(clock(at, at.plus(Duration::from_secs(60))), "22:13:20");
        assert_eq!(clock(at, at.plus(Duration::from_secs(7200))), "2023-11-14 22:13:20");
        assert_eq!(day(Timestamp::from_micros(i64::MIN)), "1970-01-01");
        assert_eq!(day(Timestamp::from_micros(i64::MAX)), "9999-12-31");
    }

    #[test]
    fn numbers_are_grouped() {
        for (n, text) in [(0, "0"), (999, "999"), (1204, "1,204"), (1_000_000, "1,000,000")] {
            assert_eq!(grouped(n), text);
        }
    }
}
