//! Durations: a number and a unit, read by humantime. A bare number is never guessed at (B76).

use std::time::Duration;

/// Reads a duration. The error completes a sentence that begins with the key.
pub(super) fn parse(text: &str) -> Result<Duration, String> {
    let trimmed = text.trim();
    if trimmed.starts_with('-') {
        return Err(format!("must not be negative, found {text:?}; write a duration like \"30s\""));
    }
    if !trimmed.is_empty() && trimmed.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.' || byte == b'_') {
        return Err(needs_unit(trimmed));
    }
    humantime::parse_duration(trimmed).map_err(|_| {
        format!("must be a number and a unit, like \"500ms\", \"30s\" or \"1h 30m\"; cannot read {text:?}")
    })
}

/// What to say of a number without a unit, whether quoted or not.
pub(super) fn needs_unit(number: &str) -> String {
    match number {
        "0" => "needs a unit and must be longer than 0s; write a duration like \"30s\"".to_owned(),
        number => format!("needs a unit: write \"{number}s\" for seconds"),
    }
}

/// The canonical form, which reads back: days as the largest unit, because months are not all alike.
pub fn show(duration: Duration) -> String {
    const UNITS: [(u128, &str); 7] = [
        (86_400_000_000_000, "d"),
        (3_600_000_000_000, "h"),
        (60_000_000_000, "m"),
        (1_000_000_000, "s"),
        (1_000_000, "ms"),
        (1_000, "us"),
        (1, "ns"),
    ];
    let mut rest = duration.as_nanos();
    let mut words = Vec::new();
    for (size, unit) in UNITS {
        if rest >= size {
            words.push(format!("{}{unit}", rest / size));
            rest %= size;
        }
    }
    if words.is_empty() { "0s".to_owned() } else { words.join(" ") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn b76_a_unit_is_required() {
        assert_eq!(parse("1h30m"), Ok(Duration::from_secs(5400)));
        assert_eq!(parse("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(parse("30"), Err("needs a unit: write \"30s\" for seconds".into()));
        assert_eq!(parse("-5s"), Err("must not be negative, found \"-5s\"; write a duration like \"30s\"".into()));
        for wrong in ["", " ", "s", "30 parsecs", "1h 30", "99999999999999999999d", "∞"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn b76_the_canonical_form_is_what_people_say() {
        let shown = |text: &str| show(parse(text).expect("valid"));
        assert_eq!(shown("90m"), "1h 30m");
        assert_eq!(shown("400d"), "400d");
        assert_eq!(shown("24h"), "1d");
        assert_eq!(shown("1500ms"), "1s 500ms");
        assert_eq!(show(Duration::ZERO), "0s");
    }

    proptest! {
        #[test]
        fn the_canonical_form_reads_back(seconds in 0u64..4_000_000_000, nanos in 0u32..1_000_000_000) {
            let duration = Duration::new(seconds, nanos);
            prop_assert_eq!(parse(&show(duration)), Ok(duration));
        }
    }
}
