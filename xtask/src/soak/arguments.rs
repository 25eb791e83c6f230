//! Arguments of an exploration: how long, and which seeds.

use std::ops::Range;

const USAGE: &str = "usage: cargo xtask soak [--minutes N] [--seeds A..B]";

/// What a command line asks for.
#[derive(Debug, PartialEq)]
pub(super) struct Arguments {
    pub(super) minutes: Option<u64>,
    pub(super) seeds: Option<Range<u64>>,
}

impl Arguments {
    /// Reads the words after `soak`.
    ///
    /// # Errors
    ///
    /// When a word is unknown, stands twice, or has a value that is none of its kind.
    pub(super) fn parse(words: &[&str]) -> Result<Self, String> {
        let mut arguments = Self { minutes: None, seeds: None };
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let (flag, value) = match word.split_once('=') {
                Some((flag, value)) => (flag, Some(value)),
                None => (*word, None),
            };
            if !["--minutes", "--seeds"].contains(&flag) {
                return Err(format!("unknown argument `{word}`; {USAGE}"));
            }
            let value = value.or_else(|| words.next().copied());
            let value = value.ok_or_else(|| format!("`{flag}` wants a value; {USAGE}"))?;
            let is_again = if flag == "--minutes" {
                arguments.minutes.replace(minutes(value)?).is_some()
            } else {
                arguments.seeds.replace(seeds(value)?).is_some()
            };
            if is_again {
                return Err(format!("`{flag}` is there twice; {USAGE}"));
            }
        }
        Ok(arguments)
    }
}

fn minutes(value: &str) -> Result<u64, String> {
    /// A year: more would be a mistake, and the end of time is not reached.
    const MINUTES_MAX: u64 = 366 * 24 * 60;
    let minutes = value.parse().ok().filter(|minutes| (1..=MINUTES_MAX).contains(minutes));
    minutes.ok_or_else(|| format!("`--minutes {value}` is no number of minutes; {USAGE}"))
}

fn seeds(value: &str) -> Result<Range<u64>, String> {
    let range = value
        .split_once("..")
        .and_then(|(first, end)| Some(first.parse::<u64>().ok()?..end.parse::<u64>().ok()?));
    let range = range.ok_or_else(|| format!("`--seeds {value}` is no range A..B; {USAGE}"))?;
    if range.is_empty() {
        return Err(format!("`--seeds {value}` names no seed: the second is not played; {USAGE}"));
    }
    Ok(range)
}

/// A range in parts of at most that many.
pub(super) fn parts(range: Range<u64>, size: u64) -> impl Iterator<Item = Range<u64>> {
    let mut rest = range;
    std::iter::from_fn(move || {
        let end = rest.start.saturating_add(size).min(rest.end);
        let part = rest.start..end;
        rest.start = end;
        (!part.is_empty()).then_some(part)
    })
}
