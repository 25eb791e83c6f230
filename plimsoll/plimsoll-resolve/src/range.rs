//! Ranges of versions, in the two grammars that operators are written with.
//!
//! The same text may mean something else in the other: [`blang`] is what dependencies and
//! `skipRange` are written in, [`masterminds`] what people request.

pub mod blang;
pub mod masterminds;

use semver::Version;

/// Why a text is not a range.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{range}` is not a range: {cause}")]
pub struct RangeError {
    /// The range, as it is written.
    pub range: String,
    /// What keeps it from being a range, in a clause.
    pub cause: String,
}

impl RangeError {
    fn new(range: &str, cause: impl Into<String>) -> Self {
        Self { range: range.to_owned(), cause: cause.into() }
    }
}

/// A comparison with a version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

impl Comparison {
    /// Returns whether `version` compares so with `bound`; build metadata does not count.
    fn holds(self, version: &Version, bound: &Version) -> bool {
        let order = version.cmp_precedence(bound);
        match self {
            Self::Equal => order.is_eq(),
            Self::NotEqual => order.is_ne(),
            Self::Less => order.is_lt(),
            Self::LessOrEqual => order.is_le(),
            Self::Greater => order.is_gt(),
            Self::GreaterOrEqual => order.is_ge(),
        }
    }
}

#[cfg(test)]
mod tests;
