//! Versions: strict as catalogs have to write them, tolerant as people do.

use std::fmt;

use semver::{BuildMetadata, Prerelease, Version};

/// Why a text is not a version.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum VersionError {
    /// There is nothing.
    #[error("the version is empty")]
    Empty,
    /// It does not have three numbers.
    #[error("`{0}` is not of the form MAJOR.MINOR.PATCH")]
    NotThreeNumbers(String),
    /// Something in it is not as semantic versioning wants it.
    #[error("`{part}` in version `{version}` is not a {what}")]
    Part {
        /// The whole version, as it is written.
        version: String,
        /// The part of it that is wrong.
        part: String,
        /// What it should be.
        what: &'static str,
    },
}

/// Says that a number was written where text is meant, in a clause whose subject is the field.
pub fn number_for_text(number: impl fmt::Display) -> String {
    format!(
        "is the number {number}, not text: write it in quotes, since 4.20 is the same number as 4.2"
    )
}

/// Reads a version as blang/semver's `Parse` does: all of `MAJOR.MINOR.PATCH[-pre][+build]`, no
/// leading zeros, no `v` (`olm.package` properties, ranges of dependencies).
///
/// # Errors
/// [`VersionError`] when the text is empty, has not three numbers, or a part is malformed.
pub fn parse_strict(text: &str) -> Result<Version, VersionError> {
    if text.is_empty() {
        return Err(VersionError::Empty);
    }
    let mut parts = text.splitn(3, '.');
    let (Some(major), Some(minor), Some(rest)) = (parts.next(), parts.next(), parts.next()) else {
        return Err(VersionError::NotThreeNumbers(text.to_owned()));
    };
    let (rest, build) = match rest.split_once('+') {
        Some((rest, build)) => (rest, Some(build)),
        None => (rest, None),
    };
    let (patch, pre) = match rest.split_once('-') {
        Some((patch, pre)) => (patch, Some(pre)),
        None => (rest, None),
    };
    let wrong = |part: &str, what| VersionError::Part {
        version: text.to_owned(),
        part: part.to_owned(),
        what,
    };
    let number = |part: &str| {
        let leading_zero = part.len() > 1 && part.starts_with('0');
        let digits = !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        let value = part.parse::<u64>().ok().filter(|_| digits && !leading_zero);
        value.ok_or_else(|| wrong(part, "number without leading zeros"))
    };
    Ok(Version {
        major: number(major)?,
        minor: number(minor)?,
        patch: number(patch)?,
        pre: match pre {
            Some(pre) => Prerelease::new(pre)
                .ok()
                .filter(|parsed| !parsed.is_empty())
                .ok_or_else(|| wrong(pre, "pre-release"))?,
            None => Prerelease::EMPTY,
        },
        build: match build {
            Some(build) => BuildMetadata::new(build)
                .ok()
                .filter(|parsed| !parsed.is_empty())
                .ok_or_else(|| wrong(build, "build metadata"))?,
            None => BuildMetadata::EMPTY,
        },
    })
}

/// Reads a version as blang/semver's `ParseTolerant` does: blanks around it, a `v` before it,
/// leading zeros, and a missing minor or patch number are fine (versions of CSVs).
///
/// # Errors
/// [`VersionError`] when the text is empty, a part is malformed, or a short version has a
/// pre-release.
pub fn parse_tolerant(text: &str) -> Result<Version, VersionError> {
    let trimmed = text.trim();
    let bare = trimmed.strip_prefix('v').unwrap_or(trimmed);
    let mut parts: Vec<String> = bare
        .splitn(3, '.')
        .map(|part| {
            let without = part.trim_start_matches('0');
            match without.bytes().next() {
                Some(byte) if byte.is_ascii_digit() => without.to_owned(),
                _ if part.len() == without.len() => part.to_owned(),
                _ => format!("0{without}"),
            }
        })
        .collect();
    if let Some(last) = parts.last()
        && parts.len() < 3
    {
        if last.contains(['+', '-']) {
            return Err(VersionError::NotThreeNumbers(text.to_owned()));
        }
        parts.resize(3, "0".to_owned());
    }
    parse_strict(&parts.join("."))
}

#[cfg(test)]
mod tests {
    //! Both ways to read the same texts.

    use super::*;

    fn check(text: &str, strict: Option<&str>, tolerant: Option<&str>) {
        let catalog_package =
            |parsed: Result<Version, VersionError>| parsed.ok().map(|it| it.to_string());
        assert_eq!(catalog_package(parse_strict(text)).as_deref(), strict, "strictly: {text:?}");
        assert_eq!(
            catalog_package(parse_tolerant(text)).as_deref(),
            tolerant,
            "tolerantly: {text:?}"
        );
    }

    #[test]
    fn versions_are_read_strictly_or_tolerantly() {
        check("1.2.3", Some("1.2.3"), Some("1.2.3"));
        check("1.2.3-rc.1+build.5", Some("1.2.3-rc.1+build.5"), Some("1.2.3-rc.1+build.5"));
        check("v1.2.3", None, Some("1.2.3"));
        check(" 1.2", None, Some("1.2.0"));
        check("1", None, Some("1.0.0"));
        check("01.02.03", None, Some("1.2.3"));
        check("00.0.0", None, Some("0.0.0"));
        check("1.2-rc.1", None, None);
        check("", None, None);
        check("1.2.3-", None, None);
        check("1.2.3-01", None, None);
        check("1.2.x", None, None);
        check("1.2.99999999999999999999", None, None);
    }
}
