//! Names of objects on the command line.

use clap::builder::{StringValueParser, TypedValueParser};
use plimsoll_api::{ACTION, ApiKind, OPERATOR, RETRY_ACTION};
pub(crate) use plimsoll_content::capability::{hint, suggestion};

/// Longest name of a namespace.
const LABEL_MAX: usize = 63;

/// Returns the parser of the name of an Operator, which may follow its kind as `-o name` prints it.
pub(crate) fn operator() -> impl TypedValueParser<Value = String> {
    object(OPERATOR)
}

/// Returns the parser of the name of an Action, which may follow its kind as `-o name` prints it.
pub(crate) fn action() -> impl TypedValueParser<Value = String> {
    object(ACTION)
}

/// The name of an Action or a RetryAction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RequestName {
    /// The kind.
    pub(crate) kind: ApiKind,
    /// The name.
    pub(crate) name: String,
}

/// Returns the parser of the name of an Action, or of a RetryAction, which follows its kind.
pub(crate) fn request() -> impl TypedValueParser<Value = RequestName> {
    StringValueParser::new().try_map(|text: String| request_name(&text))
}

/// Reads the name of an Action, or of a RetryAction after its kind.
fn request_name(text: &str) -> Result<RequestName, String> {
    let kind = match text.split_once('/') {
        Some((kind, _)) if kind.starts_with("retryaction") => RETRY_ACTION,
        Some(_) | None => ACTION,
    };
    let name = without_kind_of(kind, text).map_err(|_| {
        format!("`{text}` is no Action: write NAME, action.olm.io/NAME or retryaction.olm.io/NAME")
    })?;
    Ok(RequestName { kind, name: name.to_owned() })
}

/// Returns the parser of the name of an object of a kind.
fn object(kind: ApiKind) -> impl TypedValueParser<Value = String> {
    StringValueParser::new()
        .try_map(move |text: String| without_kind_of(kind, &text).map(str::to_owned))
}

/// Returns the name of an Operator, or of its package, without its kind, and the range that may follow it.
///
/// # Errors
///
/// When the kind is another one, or no name follows it.
pub(crate) fn without_kind(text: &str) -> Result<&str, String> {
    without_kind_of(OPERATOR, text)
}

/// Returns the name of an object of a kind without that before it, in the forms that kubectl prints and takes, and
/// what may follow the name after `@`.
fn without_kind_of(kind: ApiKind, text: &str) -> Result<&str, String> {
    let ApiKind { group, plural, .. } = kind;
    let singular = kind.kind.to_lowercase();
    let printed = format!("{singular}.{group}/");
    let kinds =
        [&printed, &format!("{plural}.{group}/"), &format!("{singular}/"), &format!("{plural}/")];
    let named = kinds.into_iter().find_map(|it| text.strip_prefix(it.as_str()));
    let name = named.unwrap_or(text);
    let is_empty = name.is_empty() || name.starts_with('@');
    let is_of_kind = name.split('@').next().is_some_and(|it| it.contains('/'));
    match is_of_kind || (named.is_some() && is_empty) {
        true => Err(format!("`{text}` is no {}: write NAME, or {printed}NAME", kind.kind)),
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
    use super::*;

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

    #[test]
    fn the_name_of_an_action_may_follow_its_kind() {
        for text in ["foo", "action.olm.io/foo", "actions.olm.io/foo", "action/foo", "actions/foo"]
        {
            assert_eq!(without_kind_of(ACTION, text), Ok("foo"), "{text}");
        }
        for text in ["operator.olm.io/foo", "retryaction.olm.io/foo", "action/"] {
            let message = format!("`{text}` is no Action: write NAME, or action.olm.io/NAME");
            assert_eq!(without_kind_of(ACTION, text), Err(message));
        }
    }

    #[test]
    fn the_name_of_a_retry_action_follows_its_kind() {
        for (text, kind) in [
            ("foo", ACTION),
            ("action/foo", ACTION),
            ("retryaction/foo", RETRY_ACTION),
            ("retryactions/foo", RETRY_ACTION),
            ("retryaction.olm.io/foo", RETRY_ACTION),
            ("retryactions.olm.io/foo", RETRY_ACTION),
        ] {
            let expected = RequestName { kind, name: "foo".to_owned() };
            assert_eq!(request_name(text), Ok(expected), "{text}");
        }
        for text in ["operator/foo", "retryaction/", "retryactionset/foo", "action/a/foo"] {
            let message = format!(
                "`{text}` is no Action: write NAME, action.olm.io/NAME or retryaction.olm.io/NAME"
            );
            assert_eq!(request_name(text), Err(message));
        }
    }
}
