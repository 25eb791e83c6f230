//! Names of objects on the command line.

use plimsoll_content::capability::most_similar;

/// Longest name of a namespace.
const LABEL_MAX: usize = 63;

/// Most names that a hint lists.
const NAMES_LISTED: usize = 5;

/// What to write instead of a name that does not exist, as the end of a message: the name that may be
/// meant, those that contain it, or some of all.
pub(crate) fn hint<'n>(wanted: &str, known: impl Iterator<Item = &'n str> + Clone) -> String {
    if let Some(similar) = most_similar(wanted, known.clone()) {
        return format!(", did you mean `{similar}`?");
    }
    let near = known.clone().filter(|it| it.contains(wanted) || wanted.contains(*it));
    let mut near: Vec<&str> = near.take(NAMES_LISTED).collect();
    if near.is_empty() {
        near = known.clone().take(NAMES_LISTED).collect();
    }
    match (near.as_slice(), known.count() > near.len()) {
        ([], _) => "; there are none".to_owned(),
        (near, true) => format!("; there are {}, …", near.join(", ")),
        (near, false) => format!("; there are {}", near.join(", ")),
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
