//! Values of options that are checked while the command line is read.

use plimsoll_resolve::range::masterminds::Range;

/// Reads a version or a range of versions, and keeps it as it is written.
///
/// # Errors
///
/// When it is neither.
pub(crate) fn range(text: &str) -> Result<String, String> {
    match Range::parse(text) {
        Ok(_) => Ok(text.to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

/// Reads what is excluded: a package, or one bundle of it.
///
/// # Errors
///
/// When a name is missing.
pub(crate) fn exclusion(text: &str) -> Result<String, String> {
    match text.split('/').any(str::is_empty) {
        false => Ok(text.to_owned()),
        true => Err("write PACKAGE or PACKAGE/BUNDLE".to_owned()),
    }
}

/// Reads the choice of a provider: a package or an API, and the package that is to provide it.
///
/// # Errors
///
/// When one of both is missing.
pub(crate) fn provider(text: &str) -> Result<String, String> {
    match text.split_once('=') {
        Some((provided, package)) if !provided.is_empty() && !package.is_empty() => {
            Ok(text.to_owned())
        }
        Some(_) | None => Err(format!(
            "`{text}` is not of the form PACKAGE=PACKAGE or GROUP/VERSION/KIND=PACKAGE"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_without_a_name_are_refused() {
        for text in ["bar", "bar/bar.v1.2.3"] {
            assert_eq!(exclusion(text).as_deref(), Ok(text));
        }
        for text in ["", "/", "bar/", "/bar.v1.2.3"] {
            assert!(exclusion(text).is_err(), "{text}");
        }
        for text in ["bar=baz", "example.com/v1/Bar=baz"] {
            assert_eq!(provider(text).as_deref(), Ok(text));
        }
        for text in ["", "bar", "=", "bar=", "=baz"] {
            assert!(provider(text).is_err(), "{text}");
        }
        for text in ["1.2.3", "~1.2", ">=1.2, <2"] {
            assert_eq!(range(text).as_deref(), Ok(text));
        }
        for text in ["", "abc", "1.2||"] {
            assert!(range(text).is_err(), "{text}");
        }
    }
}
