//! Values of options that are checked while the command line is read.

pub(crate) use plimsoll_operators::query::values::{exclusion, provider};
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
