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
    StringValueParser::new().try_map(|text: String| without_kind(&text).map(str::to_owned))
}

/// Returns the name of an Operator, or of its package, without its kind, and the range that may follow it.
///
/// # Errors
///
/// When the kind is another one, or no name follows it.
pub(crate) fn without_kind(text: &str) -> Result<&str, String> {
    let mut kinds = OPERATOR_KINDS.iter();
    let named = kinds.find_map(|kind| text.strip_prefix(*kind));
    let name = named.unwrap_or(text);
    let is_empty = name.is_empty() || name.starts_with('@');
    let is_of_kind = name.split('@').next().is_some_and(|it| it.contains('/'));
    match is_of_kind || (named.is_some() && is_empty) {
        true => Err(format!("`{text}` is no Operator: write NAME, or {}NAME", OPERATOR_KINDS[0])),
        false => Ok(name),
    }
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

#[cfg(test)]
mod tests {
    use super::without_kind;

    #[test]
    fn the_name_of_an_operator_may_follow_its_kind() {
        for (text, name) in [
            ("foo", "foo"),
            ("operator.olm.io/foo", "foo"),
            ("operators.olm.io/foo@~1.2", "foo@~1.2"),
            ("operator/foo", "foo"),
            ("operators/foo@1.2.3", "foo@1.2.3"),
            ("", ""),
            ("@1.2", "@1.2"),
            ("foo@1/2", "foo@1/2"),
        ] {
            assert_eq!(without_kind(text).as_deref(), Ok(name), "{text}");
        }
        for text in
            ["deployment/foo", "package/foo@1.2.3", "operator/a/foo", "operator/", "operator/@1"]
        {
            let message = format!("`{text}` is no Operator: write NAME, or operator.olm.io/NAME");
            assert_eq!(without_kind(text), Err(message));
        }
    }
}
