//! Ranges as Go's Masterminds/semver reads them: the `version` that people ask for.
//!
//! Terms separated by blanks or commas must all hold, groups of them are separated by `||`. A
//! pre-release is only in a group of which some term names a pre-release. Build metadata does not
//! count, but in a version that is written out with it: several builds of one version are different
//! bundles, and such a pin is about one of them.

use std::cmp::Ordering;

use semver::{BuildMetadata, Prerelease, Version};

use super::{Comparison, RangeError};

/// A range.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Range {
    groups: Vec<Group>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Group {
    terms: Vec<Term>,
    /// Pre-releases may match.
    previews: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Term {
    operator: Operator,
    bound: Version,
    precision: Precision,
}

/// How much of a version was written out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Precision {
    Nothing,
    Major,
    Minor,
    All,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Operator {
    Compare(Comparison),
    Tilde,
    Caret,
}

/// Longest first, so that none is taken for the beginning of another.
const OPERATORS: [(&str, Operator); 11] = [
    ("!=", Operator::Compare(Comparison::NotEqual)),
    (">=", Operator::Compare(Comparison::GreaterOrEqual)),
    ("=>", Operator::Compare(Comparison::GreaterOrEqual)),
    ("<=", Operator::Compare(Comparison::LessOrEqual)),
    ("=<", Operator::Compare(Comparison::LessOrEqual)),
    ("~>", Operator::Tilde),
    ("~", Operator::Tilde),
    ("^", Operator::Caret),
    (">", Operator::Compare(Comparison::Greater)),
    ("<", Operator::Compare(Comparison::Less)),
    ("=", Operator::Compare(Comparison::Equal)),
];

impl Range {
    /// Reads a range.
    ///
    /// # Errors
    /// [`RangeError`] for every text that Masterminds/semver's `NewConstraint` refuses.
    pub fn parse(text: &str) -> Result<Self, RangeError> {
        let mut groups = Vec::new();
        for part in text.split("||") {
            let terms = RangeParser { rest: part }.terms().map_err(|at| {
                let at = if at.trim().is_empty() { "its end" } else { at.trim() };
                RangeError::new(
                    text,
                    format!("expected a version with or without a comparison at `{at}`"),
                )
            })?;
            let previews = terms.iter().any(|term| !term.bound.pre.is_empty());
            groups.push(Group { terms, previews });
        }
        Ok(Self { groups })
    }

    /// Returns whether a version is in the range; of a version that is pinned or excluded with build metadata,
    /// that build alone is pinned or excluded.
    pub fn matches(&self, version: &Version) -> bool {
        self.holds(version, &|term| {
            let build = &term.bound.build;
            match term.operator {
                Operator::Compare(Comparison::Equal) if !build.is_empty() => {
                    term.holds(version) && *build == version.build
                }
                Operator::Compare(Comparison::NotEqual) if !build.is_empty() => {
                    term.holds(version) || *build != version.build
                }
                _ => term.holds(version),
            }
        })
    }

    /// Returns whether a version is in the range as Masterminds/semver has it, for which builds of a version
    /// are all the same.
    pub fn matches_any_build(&self, version: &Version) -> bool {
        self.holds(version, &|term| term.holds(version))
    }

    fn holds(&self, version: &Version, term_holds: &dyn Fn(&Term) -> bool) -> bool {
        self.groups.iter().any(|group| {
            (group.previews || version.pre.is_empty()) && group.terms.iter().all(term_holds)
        })
    }
}

impl Term {
    fn holds(&self, version: &Version) -> bool {
        let bound = &self.bound;
        let major = version.major.cmp(&bound.major);
        let minor = version.minor.cmp(&bound.minor);
        let partly = self.precision != Precision::All;
        match self.operator {
            Operator::Compare(Comparison::Equal) if partly => self.tilde(version),
            Operator::Compare(Comparison::NotEqual) if partly => match self.precision {
                Precision::Major => major.is_ne(),
                Precision::Minor => major.is_ne() || minor.is_ne() || version.pre != bound.pre,
                Precision::Nothing | Precision::All => {
                    major.is_ne() || minor.is_ne() || version.patch != bound.patch
                }
            },
            Operator::Compare(Comparison::Greater) if partly => match (major, self.precision) {
                (Ordering::Greater, _) => true,
                (Ordering::Less, _) | (Ordering::Equal, Precision::Major) => false,
                (Ordering::Equal, Precision::Minor) => minor.is_gt(),
                (Ordering::Equal, Precision::Nothing | Precision::All) => {
                    version.cmp_precedence(bound).is_gt()
                }
            },
            Operator::Compare(Comparison::LessOrEqual) if partly => match major {
                Ordering::Greater => false,
                Ordering::Equal => self.precision == Precision::Major || minor.is_le(),
                Ordering::Less => true,
            },
            Operator::Compare(comparison) => comparison.holds(version, bound),
            Operator::Tilde => self.tilde(version),
            Operator::Caret => self.caret(version),
        }
    }

    fn tilde(&self, version: &Version) -> bool {
        let bound = &self.bound;
        if version.cmp_precedence(bound).is_lt() {
            return false;
        }
        let zero = (bound.major, bound.minor, bound.patch) == (0, 0, 0);
        if zero && matches!(self.precision, Precision::Nothing | Precision::All) {
            return true;
        }
        version.major == bound.major
            && (self.precision == Precision::Major || version.minor == bound.minor)
    }

    fn caret(&self, version: &Version) -> bool {
        let bound = &self.bound;
        if version.cmp_precedence(bound).is_lt() || version.major != bound.major {
            return false;
        }
        if bound.major > 0 || self.precision == Precision::Major {
            return true;
        }
        if bound.minor > 0 || self.precision == Precision::Minor {
            return version.minor == bound.minor;
        }
        version.minor == 0 && version.patch == bound.patch
    }
}

/// What is left of a group.
struct RangeParser<'a> {
    rest: &'a str,
}

impl<'a> RangeParser<'a> {
    /// All terms; the error is where reading failed.
    fn terms(mut self) -> Result<Vec<Term>, &'a str> {
        let mut terms = Vec::new();
        self.blanks();
        loop {
            let at = self.rest;
            terms.push(self.term().ok_or(at)?);
            let after = self.rest;
            self.blanks();
            if self.rest.is_empty() {
                return Ok(terms);
            }
            let separated = self.rest.len() < after.len();
            if self.take(",") {
                self.blanks();
            } else if !separated {
                return Err(after);
            }
            if let Some(last) = terms.last_mut()
                && self.hyphen()
            {
                let at = self.rest;
                let end = self.term().ok_or(at)?;
                if last.operator != OPERATORS[10].1 || end.operator != OPERATORS[10].1 {
                    return Err(at);
                }
                last.operator = Operator::Compare(Comparison::GreaterOrEqual);
                let operator = Operator::Compare(Comparison::LessOrEqual);
                terms.push(Term { operator, ..end });
                self.blanks();
                if self.rest.is_empty() {
                    return Ok(terms);
                }
            }
        }
    }

    /// A ` - ` between two versions.
    fn hyphen(&mut self) -> bool {
        let Some(rest) = self.rest.strip_prefix('-').filter(|rest| rest.starts_with(blank)) else {
            return false;
        };
        self.rest = rest.trim_start_matches(blank);
        true
    }

    fn blanks(&mut self) {
        self.rest = self.rest.trim_start_matches(blank);
    }

    fn take(&mut self, text: &str) -> bool {
        let rest = self.rest.strip_prefix(text);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    fn term(&mut self) -> Option<Term> {
        let found = OPERATORS.iter().find(|(text, _)| self.rest.starts_with(text));
        let (text, operator) = *found.unwrap_or(&("", OPERATORS[10].1));
        self.take(text);
        self.blanks();
        self.take("v");
        let major = self.number()?;
        let minor = if self.rest.starts_with('.') { self.after_dot() } else { None };
        let patch = if minor.is_some() { self.after_dot() } else { None };
        let pre = self.tail('-')?;
        let build = self.tail('+')?;
        let (bound, precision) = match (major, minor.flatten(), patch.flatten()) {
            (None, _, _) => ((0, 0, 0), Precision::Nothing),
            (Some(major), None, _) => ((major, 0, 0), Precision::Major),
            (Some(major), Some(minor), None) => ((major, minor, 0), Precision::Minor),
            (Some(major), Some(minor), Some(patch)) => ((major, minor, patch), Precision::All),
        };
        let mut bound = Version::new(bound.0, bound.1, bound.2);
        bound.pre = Prerelease::new(pre).ok()?;
        bound.build = match precision {
            Precision::All => BuildMetadata::new(build).ok()?,
            _ => BuildMetadata::EMPTY,
        };
        Some(Term { operator, bound, precision })
    }

    /// A dot and the number or wildcard after it; outer `None` when there is none.
    fn after_dot(&mut self) -> Option<Option<u64>> {
        let mut ahead = RangeParser { rest: self.rest.strip_prefix('.')? };
        let number = ahead.number()?;
        self.rest = ahead.rest;
        Some(number)
    }

    /// A number, or `None` for a wildcard; outer `None` when there is neither.
    fn number(&mut self) -> Option<Option<u64>> {
        let end = self
            .rest
            .find(|letter: char| !letter.is_ascii_digit() && !matches!(letter, 'x' | 'X' | '*'))
            .unwrap_or(self.rest.len());
        let (text, rest) = self.rest.split_at(end);
        self.rest = rest;
        match text {
            "x" | "X" | "*" => Some(None),
            _ => text.parse().ok().map(Some),
        }
    }

    /// Returns what follows a sign: dotted identifiers; the empty text when the sign is not there.
    fn tail(&mut self, sign: char) -> Option<&'a str> {
        let Some(rest) = self.rest.strip_prefix(sign) else {
            return Some("");
        };
        let end = rest
            .find(|letter: char| !letter.is_ascii_alphanumeric() && !matches!(letter, '-' | '.'))
            .unwrap_or(rest.len());
        let (text, rest) = rest.split_at(end);
        self.rest = rest;
        (!text.is_empty()).then_some(text)
    }
}

fn blank(letter: char) -> bool {
    matches!(letter, ' ' | '\t' | '\n' | '\r' | '\u{c}')
}
