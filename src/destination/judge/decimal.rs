//! Numbers as exact decimal values: no rounding, whatever their size.

/// A number in its one normal form: sign, digits without zeros at either end, and the power of ten behind them.
#[derive(PartialEq, Eq, Debug)]
pub(super) struct Decimal {
    negative: bool,
    digits: String,
    exponent: i64,
}

impl Decimal {
    /// Reads `-12.50e3`. `None` where it is not a number, or its exponent is beyond counting.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (negative, rest) = text.strip_prefix('-').map_or((false, text), |rest| (true, rest));
        let (mantissa, exponent) = match rest.split_once(['e', 'E']) {
            Some((mantissa, exponent)) => (mantissa, exponent.parse::<i64>().ok()?),
            None => (rest, 0),
        };
        let (whole, fraction) = match mantissa.split_once('.') {
            Some((_, "")) => return None,
            Some(parts) => parts,
            None => (mantissa, ""),
        };
        if whole.is_empty() || !whole.bytes().chain(fraction.bytes()).all(|b| b.is_ascii_digit()) {
            return None;
        }
        let all = format!("{whole}{fraction}");
        let digits = all.trim_end_matches('0');
        let trailing = i64::try_from(all.len() - digits.len()).ok()?;
        let digits = digits.trim_start_matches('0').to_owned();
        if digits.is_empty() {
            return Some(Self { negative: false, digits, exponent: 0 });
        }
        let exponent = exponent.checked_sub(i64::try_from(fraction.len()).ok()?)?.checked_add(trailing)?;
        Some(Self { negative, digits, exponent })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn one_value_has_one_form() {
        for (a, b) in [
            ("1.10", "1.1"),
            ("100", "1e2"),
            ("100", "0100"),
            ("-0", "0.00"),
            ("0e5", "0"),
            ("1e400", "10E+399"),
            ("12345678901234567890123.0", "12345678901234567890123"),
            ("0.001", "1e-3"),
        ] {
            assert_eq!(Decimal::parse(a), Decimal::parse(b), "{a} {b}");
            assert!(Decimal::parse(a).is_some(), "{a}");
        }
        for (a, b) in
            [("1", "-1"), ("0.1", "0.10000000000000000000001"), ("1", "10"), ("9007199254740993", "9007199254740992")]
        {
            assert_ne!(Decimal::parse(a), Decimal::parse(b), "{a} {b}");
        }
    }

    #[test]
    fn what_is_no_number_has_no_value() {
        for text in
            ["", "-", "+1", ".5", "5.", "1e", "1e99999999999999999999", "0x10", "1 ", "NaN", "inf", "1_000", "٣"]
        {
            assert_eq!(Decimal::parse(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn every_json_number_has_a_value(number in any::<i64>(), float in any::<f64>()) {
            prop_assert!(Decimal::parse(&number.to_string()).is_some());
            prop_assume!(float.is_finite());
            prop_assert!(Decimal::parse(&serde_json::json!(float).to_string()).is_some());
            prop_assert_eq!(Decimal::parse(&number.to_string()), Decimal::parse(&format!("{number}.000")));
        }

        #[test]
        fn no_text_makes_it_panic(text in "[-+.eE0-9]{0,30}") {
            let _ = Decimal::parse(&text);
        }
    }
}
