//! How long a destination wants to be left alone.

use std::time::{Duration, SystemTime};

use hyper::header::{DATE, RETRY_AFTER};

use super::super::answer::Answer;
use super::places::value_at;
use crate::core::contract::{WaitAt, WaitFormat};

/// The wait that an answer asks for, measured from the answer: the first of the places that says something, and the
/// header `Retry-After` where the contract names none. A date is compared with the answer's own `Date`, so that the
/// two clocks need not agree; with `wall` where it has none. What is malformed or negative says nothing.
pub(super) fn retry_after(places: &[WaitAt], answer: &Answer, wall: SystemTime) -> Option<Duration> {
    let now = || {
        let date = answer.headers.get(DATE).and_then(|date| httpdate::parse_http_date(date.to_str().ok()?).ok());
        date.unwrap_or(wall)
    };
    if places.is_empty() {
        return rfc9110(answer.headers.get(RETRY_AFTER)?.to_str().ok()?.trim(), now);
    }
    places.iter().find_map(|place| {
        let text = value_at(answer, &place.at)?;
        let text = text.trim();
        match place.format {
            WaitFormat::Rfc9110 => rfc9110(text, now),
            WaitFormat::Seconds => seconds(text),
            WaitFormat::SecondsFloat => seconds_float(text),
            WaitFormat::Epoch => {
                let since_epoch = now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or(Duration::ZERO);
                seconds_float(text).map(|until| until.saturating_sub(since_epoch))
            }
        }
    })
}

/// RFC 9110 section 10.2.3: seconds, or a date in any of its three forms.
fn rfc9110(text: &str, now: impl Fn() -> SystemTime) -> Option<Duration> {
    seconds(text).or_else(|| {
        let until = httpdate::parse_http_date(text).ok()?;
        Some(until.duration_since(now()).unwrap_or(Duration::ZERO))
    })
}

fn seconds(text: &str) -> Option<Duration> {
    let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    // All digits, so the one error is overflow.
    digits.then(|| Duration::from_secs(text.parse().unwrap_or(u64::MAX)))
}

/// Saturates. Texts that Rust also takes for numbers (`inf`, `+1`, `.5`) are none.
fn seconds_float(text: &str) -> Option<Duration> {
    let numeric = text.starts_with(|c: char| c.is_ascii_digit())
        && text.bytes().all(|b| b.is_ascii_digit() || b"+-.eE".contains(&b));
    let value: f64 = numeric.then(|| text.parse().ok()).flatten()?;
    Some(Duration::try_from_secs_f64(value).unwrap_or(Duration::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::contract::Source;
    use crate::destination::answer::End;
    use crate::destination::testing;
    use proptest::prelude::*;

    /// Sun, 06 Nov 1994 08:49:31 GMT
    const WALL: u64 = 784_111_771;

    fn answer(headers: &[(&str, &str)], json: Option<&str>) -> Answer {
        testing::answer(429, headers, json.unwrap_or_default(), End::Complete)
    }

    fn wall() -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(WALL)
    }

    fn asked(value: &str, date: Option<&str>) -> Option<Duration> {
        let headers: Vec<_> = [("retry-after", value)].into_iter().chain(date.map(|date| ("date", date))).collect();
        retry_after(&[], &answer(&headers, None), wall())
    }

    fn at(at: Source, format: WaitFormat) -> WaitAt {
        WaitAt { at, format }
    }

    #[test]
    fn b12_the_first_place_that_says_something_counts() {
        let places = [
            at(Source::Json("/retry_after".into()), WaitFormat::SecondsFloat),
            at(Source::Header("retry-after".into()), WaitFormat::Seconds),
        ];
        let of = |json: &str| retry_after(&places, &answer(&[("retry-after", "7")], Some(json)), wall());
        assert_eq!(of("{\"retry_after\": 0.65}"), Some(Duration::from_millis(650)));
        assert_eq!(of("{\"retry_after\": 1e400}"), Some(Duration::MAX));
        for silent in ["{}", "{\"retry_after\": -1}", "{\"retry_after\": \"inf\"}", "{\"retry_after\": null}", "[]"] {
            assert_eq!(of(silent), Some(Duration::from_secs(7)), "{silent}");
        }
        let none = retry_after(&places[..1], &answer(&[("retry-after", "7")], None), wall());
        assert_eq!(none, None, "the contract names another place");
    }

    #[test]
    fn b12_every_format_reads_its_own() {
        let of = |format, value: &str| {
            let place = at(Source::Header("x".into()), format);
            let date = ("date", "Sun, 06 Nov 1994 08:49:17 GMT");
            retry_after(&[place], &answer(&[("x", value), date], None), wall())
        };
        let secs = |n| Some(Duration::from_secs(n));
        assert_eq!(of(WaitFormat::Rfc9110, "Sun, 06 Nov 1994 08:49:37 GMT"), secs(20));
        assert_eq!((of(WaitFormat::Seconds, "20"), of(WaitFormat::Seconds, "1.5")), (secs(20), None));
        assert_eq!(of(WaitFormat::Seconds, &"9".repeat(40)), secs(u64::MAX));
        assert_eq!(of(WaitFormat::SecondsFloat, "1.5"), Some(Duration::from_millis(1500)));
        assert_eq!((of(WaitFormat::Epoch, "784111777"), of(WaitFormat::Epoch, "1")), (secs(20), secs(0)));
        for malformed in ["", "-5", "+5", "soon", "nan", "1e", "1.2.3"] {
            for (format, _) in WaitFormat::ALL {
                assert_eq!(of(format, malformed), None, "{format:?} {malformed}");
            }
        }
    }

    #[test]
    fn b12_all_three_date_forms_and_seconds_are_understood() {
        let six = Some(Duration::from_secs(6));
        assert_eq!(asked("6", None), six);
        for form in ["Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994"] {
            assert_eq!(asked(form, None), six, "{form}");
            assert_eq!(asked(form, Some("Sun, 06 Nov 1994 08:49:17 GMT")), Some(Duration::from_secs(20)), "{form}");
            assert_eq!(asked(form, Some("not a date")), six, "{form}");
        }
    }

    #[test]
    fn b12_what_is_past_is_now_and_what_is_malformed_is_nothing() {
        assert_eq!(asked("Sun, 06 Nov 1994 08:49:30 GMT", None), Some(Duration::ZERO));
        for malformed in ["", "-5", "+5", "1.5", "5s", "soon", "Sun, 99 Nov 1994 08:49:37 GMT"] {
            assert_eq!(asked(malformed, None), None, "{malformed}");
        }
    }

    proptest! {
        #[test]
        fn b12_seconds_saturate(digits in "[0-9]{1,40}") {
            let expected = digits.parse::<u64>().unwrap_or(u64::MAX);
            prop_assert_eq!(asked(&digits, None), Some(Duration::from_secs(expected)));
        }

        #[test]
        fn b12_no_text_makes_it_panic(text in "[ -~]{0,40}") {
            let _ = asked(&text, None);
            for (format, _) in WaitFormat::ALL {
                let place = at(Source::Header("x".into()), format);
                let _ = retry_after(&[place], &answer(&[("x", &text)], None), wall());
            }
        }
    }
}
