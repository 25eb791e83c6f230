//! Durations as command lines, specs and files write them.

use std::time::Duration;

use jiff::{Span, SpanRelativeTo};

/// Parses a duration such as `90s`, `40m`, `1h30m` or `2d`; a day has 24 hours.
///
/// # Errors
///
/// When the text is not a duration, or a negative one.
pub fn parse(text: &str) -> Result<Duration, String> {
    let unknown =
        |_| format!("`{text}` is not a duration; use units, such as 90s, 40m, 1h30m or 2d");
    let span: Span = text.parse().map_err(unknown)?;
    // Months and years have no length of their own.
    let duration = span.to_duration(SpanRelativeTo::days_are_24_hours()).map_err(unknown)?;
    Duration::try_from(duration).map_err(|_| format!("the duration `{text}` is negative"))
}

/// Returns what is wrong with a duration of hours, minutes and seconds, as the end of a sentence; `None` if
/// nothing is, or if it is empty.
pub fn problem(text: &str) -> Option<String> {
    let is_allowed = |it: char| it.is_ascii_digit() || matches!(it, 'h' | 'm' | 's');
    let is_read = text.is_empty() || (text.chars().all(is_allowed) && parse(text).is_ok());
    (!is_read).then(|| {
        format!("is {text:?}: write hours, minutes and seconds, such as 90s, 40m or 1h30m")
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::parse;

    #[test]
    fn units_are_those_of_friendly_durations() {
        let cases = [
            ("0s", 0),
            ("90s", 90),
            ("40m", 40 * 60),
            ("1h30m", 90 * 60),
            ("72h", 72 * 3600),
            ("2d", 48 * 3600),
            ("1d12h", 36 * 3600),
        ];
        for (text, seconds) in cases {
            assert_eq!(parse(text), Ok(Duration::from_secs(seconds)), "{text}");
        }
        assert_eq!(parse("100ms"), Ok(Duration::from_millis(100)));
    }

    #[test]
    fn other_texts_are_rejected_with_the_reason() {
        for (text, expected) in [
            ("soon", "not a duration"),
            ("30", "not a duration"),
            ("1y", "not a duration"),
            ("", "not a duration"),
            ("-5s", "negative"),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }
}
