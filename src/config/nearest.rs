//! "did you mean": the nearest known name.

/// The nearest of `known`, if it is near enough to be what was meant. Swapped words count as near: `max_attempts` is
/// `attempts_max`.
pub fn nearest<'n>(wrong: &str, known: impl IntoIterator<Item = &'n str>) -> Option<&'n str> {
    let limit = wrong.chars().count().div_ceil(3).min(4);
    let turned = sorted_words(wrong);
    known
        .into_iter()
        .map(|name| {
            let plain = strsim::osa_distance(wrong, name);
            (plain.min(strsim::osa_distance(&turned, &sorted_words(name))), name)
        })
        .filter(|(distance, _)| *distance <= limit)
        .min()
        .map(|(_, name)| name)
}

/// `; did you mean `x`?`, or nothing.
pub(super) fn did_you_mean<'n>(wrong: &str, known: impl IntoIterator<Item = &'n str>) -> String {
    nearest(wrong, known).map(|name| format!("; did you mean `{name}`?")).unwrap_or_default()
}

fn sorted_words(name: &str) -> String {
    let mut words: Vec<&str> = name.split(['_', '-', '.']).collect();
    words.sort_unstable();
    words.join("_")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn b75_the_nearest_name_is_found_and_a_far_one_is_not() {
        let known = ["timeout", "attempts_max", "poll_interval"];
        assert_eq!(nearest("poll_intervall", known), Some("poll_interval"));
        assert_eq!(nearest("max_atempts", known), Some("attempts_max"));
        assert_eq!(nearest("tiemout", known), Some("timeout"));
        assert_eq!(nearest("colour", known), None);
        assert_eq!(nearest("", known), None);
    }
}
