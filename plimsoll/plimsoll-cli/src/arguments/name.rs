//! Names of objects on the command line.

use clap::builder::{StringValueParser, TypedValueParser};
pub(crate) use plimsoll_content::capability::hint;

/// Longest name of a namespace.
const LABEL_MAX: usize = 63;

/// The kinds before the name of an Operator, as kubectl prints and takes them.
const OPERATOR_KINDS: [&str; 4] =
    ["operator.olm.io/", "operators.olm.io/", "operator/", "operators/"];

/// Returns the parser of the name of an Operator, which may follow its kind as `-o name` prints it.
pub(crate) fn operator() -> impl TypedValueParser<Value = String> {
    StringValueParser::new().map(|text: String| without_kind(&text).to_owned())
}

/// Returns the name of an Operator without its kind.
pub(crate) fn without_kind(text: &str) -> &str {
    let mut kinds = OPERATOR_KINDS.iter();
    kinds.find_map(|kind| text.strip_prefix(*kind)).unwrap_or(text)
}

/// Reads the name of a namespace.
///
/// # Errors
///
/// When no namespace can have it.
///
/// Upstream: k8s.io/apimachinery/pkg/util/validation/validation.go: IsDNS1123Label
pub(crate) fn namespace(text: &str) -> Result<String, String> {
    let is_inside = |it: char| it.is_ascii_lowercase() || it.is_ascii_digit() || it == '-';
    let is_label = !text.is_empty()
        && text.len() <= LABEL_MAX
        && text.chars().all(is_inside)
        && !text.starts_with('-')
        && !text.ends_with('-');
    if is_label {
        return Ok(text.to_owned());
    }
    Err(format!(
        "no namespace can be named `{text}`: use at most {LABEL_MAX} lower-case letters, digits \
         and `-`, with a letter or digit at both ends"
    ))
}
