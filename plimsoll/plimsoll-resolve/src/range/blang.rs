//! Ranges as Go's blang/semver reads them: `olm.package.required`, `skipRange`, `olm.constraint`.
//!
//! Terms separated by blanks must all hold, groups of them are separated by `||`. Pre-releases are
//! versions like any other, build metadata does not count.
//!
//! The grammar is read exactly as it is implemented, its peculiarities included: tokens of one
//! character vanish, `^1.x` only matches 1.0.0, `!=1.x` nothing. [`Range::misreading`]
//! explains texts that surely mean something else than their authors thought.

use semver::Version;

use super::{Comparison, RangeError};
use crate::version::parse_strict;

/// A range.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Range {
    groups: Vec<Vec<(Comparison, Version)>>,
}

impl Range {
    /// Reads a range.
    ///
    /// # Errors
    /// [`RangeError`] for every text that blang/semver's `ParseRange` refuses.
    pub fn parse(text: &str) -> Result<Self, RangeError> {
        let tokens = tokens(text);
        let mut groups = Vec::new();
        for (index, group) in tokens.split(|token| token == "||").enumerate() {
            if group.is_empty() && index == 0 && tokens.len() > 1 {
                return Err(RangeError::new(text, "it begins with `||`"));
            }
            if group.is_empty() {
                return Err(RangeError::new(text, "nothing follows the last `||`"));
            }
            let mut terms = Vec::new();
            for token in group {
                term(token, &mut terms).map_err(|cause| RangeError::new(text, cause))?;
            }
            groups.push(terms);
        }
        Ok(Self { groups })
    }

    /// Returns whether a version is in the range.
    pub fn matches(&self, version: &Version) -> bool {
        let holds = |(comparison, bound): &(Comparison, Version)| comparison.holds(version, bound);
        self.groups.iter().any(|terms| terms.iter().all(holds))
    }

    /// Returns the versions that the terms compare with.
    pub fn bounds(&self) -> impl Iterator<Item = &Version> {
        self.groups.iter().flatten().map(|(_, bound)| bound)
    }

    /// Returns the parts of a list, in order of precedence, that versions of the range are in. What `!=` excludes
    /// is in them, too.
    pub(crate) fn spans<T>(
        &self,
        sorted: &[T],
        version: impl Fn(&T) -> &Version,
    ) -> Vec<std::ops::Range<usize>> {
        let spans = self.groups.iter().map(|terms| {
            terms.iter().fold(0..sorted.len(), |span, (comparison, bound)| {
                let before = sorted.partition_point(|it| version(it).cmp_precedence(bound).is_lt());
                let through =
                    sorted.partition_point(|it| version(it).cmp_precedence(bound).is_le());
                match comparison {
                    Comparison::Equal => span.start.max(before)..span.end.min(through),
                    Comparison::NotEqual => span,
                    Comparison::Less => span.start..span.end.min(before),
                    Comparison::LessOrEqual => span.start..span.end.min(through),
                    Comparison::Greater => span.start.max(through)..span.end,
                    Comparison::GreaterOrEqual => span.start.max(before)..span.end,
                }
            })
        });
        spans.filter(|span| span.start < span.end).collect()
    }

    /// Returns what of a text that [`Range::parse`] accepts cannot be what its author meant.
    pub fn misreading(text: &str) -> Option<&'static str> {
        let words: Vec<&str> = text.split(' ').filter(|word| !word.is_empty()).collect();
        let alone = |word: &&&str| matches!(**word, "!" | "," | "-" | "x" | "*");
        if words.iter().find(alone).is_some_and(|word| *word == "-") {
            return Some("` - ` is not a range here: both versions would have to match at once");
        }
        if words.iter().any(|word| alone(&word)) {
            return Some("a single character between blanks is ignored");
        }
        if words.iter().any(|word| word.starts_with(['^', '~'])) {
            return Some("`^` and `~` before a wildcard only match its lowest version");
        }
        let negated = |word: &&&str| word.starts_with('!') && word.contains('x');
        if words.iter().any(|word| negated(&word)) {
            return Some("`!` before a wildcard matches nothing");
        }
        if words.iter().any(|word| word.contains(".x.x")) {
            return Some("`1.x.x` means 1.0.x; write 1.x");
        }
        None
    }
}

/// Splits at blanks, but not after a comparison; what is one character long is lost.
fn tokens(text: &str) -> Vec<String> {
    let bytes = text.as_bytes();
    let mut found = Vec::new();
    let mut push = |from: usize, to: usize| {
        if to > from + 1 {
            found.push(text[from..to].replace(' ', ""));
        }
    };
    let (mut from, mut last) = (0, b'\0');
    for (at, byte) in bytes.iter().enumerate() {
        if *byte != b' ' {
            last = *byte;
        } else if !matches!(last, b'>' | b'<' | b'=') {
            push(from, at);
            from = at + 1;
        }
    }
    push(from, bytes.len());
    found
}

/// Reads one token into the terms that it stands for: a wildcard is up to two.
fn term(token: &str, terms: &mut Vec<(Comparison, Version)>) -> Result<(), String> {
    let (comparison, version) = split(token)?;
    if !token.contains('x') {
        return push(comparison, version, terms);
    }
    let (low, next) = wildcard(version);
    match comparison {
        ">" => push(">=", &next, terms),
        ">=" => push(">=", &low, terms),
        "<" => push("<", &low, terms),
        "<=" => push("<", &next, terms),
        "" | "=" | "==" => {
            push(">=", &low, terms)?;
            push("<", &next, terms)
        }
        "!" | "!=" => {
            push("<", &low, terms)?;
            push(">=", &next, terms)
        }
        // What stands there is lost, and with it the width of the wildcard.
        _ => push("", &low, terms),
    }
}

/// The comparison and the rest, which begins with the first digit.
fn split(token: &str) -> Result<(&str, &str), String> {
    let at = token
        .find(|letter: char| letter.is_ascii_digit())
        .ok_or_else(|| format!("`{token}` has no version"))?;
    Ok((token[..at].trim(), &token[at..]))
}

fn push(
    comparison: &str,
    version: &str,
    terms: &mut Vec<(Comparison, Version)>,
) -> Result<(), String> {
    let comparison = match comparison {
        "" | "=" | "==" => Comparison::Equal,
        "!" | "!=" => Comparison::NotEqual,
        ">" => Comparison::Greater,
        ">=" => Comparison::GreaterOrEqual,
        "<" => Comparison::Less,
        "<=" => Comparison::LessOrEqual,
        other => return Err(format!("`{other}` is not a comparison")),
    };
    let version = parse_strict(version).map_err(|error| error.to_string())?;
    terms.push((comparison, version));
    Ok(())
}

/// The lowest version of a wildcard, and the lowest one above it; both as texts that may not be
/// versions, for a wildcard that is none.
fn wildcard(text: &str) -> (String, String) {
    let parts: Vec<&str> = text.split('.').collect();
    let width = match (parts.last(), parts.len()) {
        (Some(&"x"), 2) => Some(0),
        (Some(&"x"), 3) => Some(1),
        _ => None,
    };
    let mut low = text.replacen(".x.x", ".x", 1).replacen(".x", ".0", 1);
    if low.split('.').count() == 2 {
        low.push_str(".0");
    }
    let next = match (width, parse_strict(&low)) {
        (Some(0), Ok(version)) => format!("{}.0.0", version.major.saturating_add(1)),
        (Some(_), Ok(version)) => {
            format!("{}.{}.0", version.major, version.minor.saturating_add(1))
        }
        _ => String::new(),
    };
    (low, next)
}
