//! Packages as a person or an Action names them.

use std::fmt;
use std::str::FromStr;

use plimsoll_resolve::range::masterminds::Range;

/// A package by its name, with the versions that it may have: `foo`, `foo@1.2.3` or `foo@~1.2`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct RequestedPackage {
    /// The name of the package.
    pub name: String,
    /// The version or range of versions; `None` for the one of the whole request, if that has one.
    pub range: Option<String>,
}

impl RequestedPackage {
    /// Returns a package without a range of its own.
    pub fn named(name: &str) -> Self {
        Self { name: name.to_owned(), range: None }
    }
}

impl FromStr for RequestedPackage {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, range) = match text.split_once('@') {
            Some((name, range)) => (name, Some(range.trim().to_owned())),
            None => (text, None),
        };
        if name.is_empty() {
            return Err(format!("`{text}` has no name of a package: write NAME or NAME@RANGE"));
        }
        if let Some(range) = &range {
            Range::parse(range).map_err(|error| format!("the range of `{text}`: {error}"))?;
        }
        Ok(Self { name: name.to_owned(), range })
    }
}

impl fmt::Display for RequestedPackage {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.range {
            Some(range) => write!(to, "{}@{range}", self.name),
            None => to.write_str(&self.name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::RequestedPackage;

    #[test]
    fn a_package_is_a_name_with_or_without_a_range() {
        for (text, name, range) in [
            ("foo", "foo", None),
            ("foo@1.2.3", "foo", Some("1.2.3")),
            ("foo@~1.2", "foo", Some("~1.2")),
            ("foo@ >=1.2, <2", "foo", Some(">=1.2, <2")),
        ] {
            let package: RequestedPackage = text.parse().unwrap();
            assert_eq!((package.name.as_str(), package.range.as_deref()), (name, range), "{text}");
        }
        for (text, message) in [
            ("@1.2", "`@1.2` has no name of a package: write NAME or NAME@RANGE"),
            ("foo@", "the range of `foo@`: `` is not a range"),
            ("foo@newest", "the range of `foo@newest`: `newest` is not a range"),
        ] {
            let error = text.parse::<RequestedPackage>().unwrap_err();
            assert!(error.starts_with(message), "{error}");
        }
    }
}
