//! Names of objects on the command line.

/// Longest name of a namespace.
const LABEL_MAX: usize = 63;

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
