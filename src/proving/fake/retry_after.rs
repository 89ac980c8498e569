//! The forms in which a destination may say when to come back (RFC 9110 sections 10.2.3 and 5.6.7).

use std::time::{Duration, SystemTime};

/// A `Retry-After` to be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RetryAfter {
    /// Whole seconds.
    Seconds(u64),
    /// A date that far from now, in the form that servers must use: `Sun, 06 Nov 1994 08:49:37 GMT`.
    ImfFixdate(Duration),
    /// The obsolete form with a weekday in full: `Sunday, 06-Nov-94 08:49:37 GMT`.
    Rfc850(Duration),
    /// The obsolete form of C's asctime: `Sun Nov  6 08:49:37 1994`.
    Asctime(Duration),
    /// Whatever this says.
    Verbatim(String),
}

impl RetryAfter {
    /// The header's value when it is sent at `now`. HTTP dates have whole seconds, cut off.
    pub fn value(&self, now: SystemTime) -> String {
        match self {
            Self::Seconds(seconds) => seconds.to_string(),
            Self::ImfFixdate(from_now) => httpdate::fmt_http_date(now + *from_now),
            Self::Rfc850(from_now) => {
                let [weekday, day, month, year, time] = fields(now + *from_now);
                format!("{}, {day}-{month}-{} {time} GMT", in_full(&weekday), &year[2..])
            }
            Self::Asctime(from_now) => {
                let [weekday, day, month, year, time] = fields(now + *from_now);
                format!("{weekday} {month} {:>2} {time} {year}", day.trim_start_matches('0'))
            }
            Self::Verbatim(value) => value.clone(),
        }
    }
}

/// Weekday, day, month, year and time. IMF-fixdate has a fixed width.
fn fields(at: SystemTime) -> [String; 5] {
    let date = httpdate::fmt_http_date(at);
    [0..3, 5..7, 8..11, 12..16, 17..25].map(|range| date[range].to_owned())
}

fn in_full(weekday: &str) -> &'static str {
    let days = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];
    days.into_iter().find(|day| day.starts_with(weekday)).unwrap_or("Someday")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_reads_as_the_rfc_writes_it() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_000);
        let later = Duration::from_secs(777);
        assert_eq!(RetryAfter::Seconds(7).value(now), "7");
        assert_eq!(RetryAfter::ImfFixdate(later).value(now), "Sun, 06 Nov 1994 08:49:37 GMT");
        assert_eq!(RetryAfter::Rfc850(later).value(now), "Sunday, 06-Nov-94 08:49:37 GMT");
        assert_eq!(RetryAfter::Asctime(later).value(now), "Sun Nov  6 08:49:37 1994");
        assert_eq!(RetryAfter::Verbatim("-1".to_owned()).value(now), "-1");
    }
}
