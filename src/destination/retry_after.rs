//! `Retry-After` (RFC 9110 section 10.2.3): how long a destination wants to be left alone.

use std::time::{Duration, SystemTime};

use hyper::header::{DATE, HeaderMap, RETRY_AFTER};

/// The wait that an answer asks for, measured from the answer. A date is compared with the answer's own `Date`, so
/// that the two clocks need not agree; with `wall` where it has none. Malformed and negative values are ignored.
pub(super) fn retry_after(headers: &HeaderMap, wall: SystemTime) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    if !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit()) {
        // All digits, so the one error is overflow.
        return Some(Duration::from_secs(text.parse().unwrap_or(u64::MAX)));
    }
    let until = httpdate::parse_http_date(text).ok()?;
    let sent = headers.get(DATE).and_then(|date| httpdate::parse_http_date(date.to_str().ok()?).ok());
    Some(until.duration_since(sent.unwrap_or(wall)).unwrap_or(Duration::ZERO))
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyper::header::HeaderValue;
    use proptest::prelude::*;

    /// Sun, 06 Nov 1994 08:49:31 GMT
    const WALL: u64 = 784_111_771;

    fn asked(value: &str, date: Option<&str>) -> Option<Duration> {
        let mut headers = HeaderMap::new();
        headers.insert(RETRY_AFTER, HeaderValue::from_str(value).expect("a value"));
        if let Some(date) = date {
            headers.insert(DATE, HeaderValue::from_str(date).expect("a value"));
        }
        retry_after(&headers, SystemTime::UNIX_EPOCH + Duration::from_secs(WALL))
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
        }
    }
}
