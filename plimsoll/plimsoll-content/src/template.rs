//! The templates of a payload's own manifests: the part of Go's template language that they use.
//!
//! `{{.ReleaseImage}}`, `{{.ClusterProfile}}`, `{{index .Images "tag"}}`, quoted and raw strings,
//! comments, and `{{-`/`-}}` that trim the space around them. A file that asks for more is made
//! for another version of the program; its caller leaves the file out.

use std::borrow::Cow;
use std::collections::BTreeMap;

/// What a template may ask for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TemplateValues {
    /// `.ReleaseImage`: pull specification of the release image.
    pub release_image: String,
    /// `.ClusterProfile`: the cluster profile.
    pub cluster_profile: String,
    /// `.Images`: pull specifications by image tag.
    pub images: BTreeMap<String, String>,
}

/// Why a template cannot be filled in.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{problem} in {{{{{action}}}}}")]
pub struct TemplateError {
    /// Line of the action, from 1.
    pub line: usize,
    /// What stands between the braces, shortened.
    pub action: String,
    /// What is wrong with it.
    pub problem: TemplateErrorKind,
}

/// What can be wrong with an action of a template.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TemplateErrorKind {
    /// The braces are never closed.
    #[error("unclosed action")]
    Unclosed,
    /// A string is never closed, or holds an escape that does not exist.
    #[error("malformed string")]
    String,
    /// A field that this program does not provide.
    #[error("unknown field {0}")]
    Field(String),
    /// An image tag that `image-references` does not have.
    #[error("unknown image {0:?}")]
    Image(String),
    /// Anything else of the template language.
    #[error("unsupported action")]
    Action,
}

/// Fills in a template.
///
/// # Errors
/// [`TemplateError`] for the first action that is malformed, unsupported or names an unknown field
/// or image.
pub fn render<'text>(
    text: &'text str,
    values: &TemplateValues,
) -> Result<Cow<'text, str>, TemplateError> {
    if !text.contains("{{") {
        return Ok(Cow::Borrowed(text));
    }
    let mut output = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(open) = rest.find("{{") {
        let (before, after) = rest.split_at(open);
        let fail = |problem| {
            let shortened = after[2..].chars().take_while(|char| *char != '}').take(60).collect();
            let line = 1 + count_lines(text, text.len() - after.len());
            TemplateError { line, action: shortened, problem }
        };
        let action = &after[2..];
        let trim_before = action.starts_with("- ") || action.starts_with("-\n");
        let action = if trim_before { &action[1..] } else { action };
        let end = find_end(action).map_err(fail)?;
        let (inner, trim_after) = match action[..end].strip_suffix('-') {
            Some(inner) if inner.ends_with(char::is_whitespace) => (inner, true),
            Some(_) | None => (&action[..end], false),
        };
        output.push_str(if trim_before { before.trim_end() } else { before });
        output.push_str(&evaluate(inner.trim(), values).map_err(fail)?);
        rest = &action[end + 2..];
        if trim_after {
            rest = rest.trim_start();
        }
    }
    output.push_str(rest);
    Ok(Cow::Owned(output))
}

fn count_lines(text: &str, end: usize) -> usize {
    text.as_bytes()[..end].iter().filter(|byte| **byte == b'\n').count()
}

/// Where the `}}` of an action stands; braces in strings and comments do not count.
fn find_end(action: &str) -> Result<usize, TemplateErrorKind> {
    let body = action.trim_start();
    if body.starts_with("/*") {
        let begin = action.len() - body.len();
        let close = body.find("*/").ok_or(TemplateErrorKind::Unclosed)? + begin + 2;
        return action[close..].find("}}").map(|at| close + at).ok_or(TemplateErrorKind::Unclosed);
    }
    let bytes = action.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        match bytes[at] {
            b'}' if bytes.get(at + 1) == Some(&b'}') => return Ok(at),
            b'"' | b'`' => at += string_length(&action[at..])?,
            _ => at += 1,
        }
    }
    Err(TemplateErrorKind::Unclosed)
}

/// Length of the string that a text begins with, quotes included.
fn string_length(text: &str) -> Result<usize, TemplateErrorKind> {
    let bytes = text.as_bytes();
    let quote = bytes[0];
    let mut at = 1;
    while at < bytes.len() {
        match bytes[at] {
            byte if byte == quote => return Ok(at + 1),
            b'\\' if quote == b'"' => at += 2,
            b'\n' if quote == b'"' => return Err(TemplateErrorKind::String),
            _ => at += 1,
        }
    }
    Err(TemplateErrorKind::String)
}

fn evaluate<'a>(
    action: &str,
    values: &'a TemplateValues,
) -> Result<Cow<'a, str>, TemplateErrorKind> {
    if action.starts_with("/*") && action.ends_with("*/") {
        return Ok(Cow::Borrowed(""));
    }
    match action {
        ".ReleaseImage" => return Ok(Cow::Borrowed(&values.release_image)),
        ".ClusterProfile" => return Ok(Cow::Borrowed(&values.cluster_profile)),
        _ => {}
    }
    if let Some(arguments) = action.strip_prefix("index") {
        let tag =
            arguments.trim_start().strip_prefix(".Images").ok_or(TemplateErrorKind::Action)?;
        if arguments.trim_start() == arguments || tag.trim_start() == tag {
            return Err(TemplateErrorKind::Action);
        }
        let tag = string(tag.trim())?;
        let image = values.images.get(&tag).ok_or(TemplateErrorKind::Image(tag))?;
        return Ok(Cow::Borrowed(image));
    }
    if action.starts_with(['"', '`']) {
        return string(action).map(Cow::Owned);
    }
    let is_field = action.strip_prefix('.').is_some_and(|name| {
        !name.is_empty() && name.chars().all(|char| char.is_alphanumeric() || "_.".contains(char))
    });
    Err(if is_field {
        TemplateErrorKind::Field(action.to_owned())
    } else {
        TemplateErrorKind::Action
    })
}

/// The value of a string literal that is the whole text.
fn string(text: &str) -> Result<String, TemplateErrorKind> {
    if !text.starts_with(['"', '`']) || string_length(text)? != text.len() {
        return Err(TemplateErrorKind::Action);
    }
    let inner = &text[1..text.len() - 1];
    if text.starts_with('`') { Ok(inner.to_owned()) } else { unescape(inner) }
}

fn unescape(text: &str) -> Result<String, TemplateErrorKind> {
    let mut output = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(char) = chars.next() {
        if char != '\\' {
            output.push(char);
            continue;
        }
        let escaped = match chars.next().ok_or(TemplateErrorKind::String)? {
            'n' => '\n',
            't' => '\t',
            'r' => '\r',
            same @ ('"' | '\\') => same,
            'u' => {
                let digits: String = chars.by_ref().take(4).collect();
                let code =
                    u32::from_str_radix(&digits, 16).map_err(|_| TemplateErrorKind::String)?;
                char::from_u32(code).ok_or(TemplateErrorKind::String)?
            }
            _ => return Err(TemplateErrorKind::String),
        };
        output.push(escaped);
    }
    Ok(output)
}

#[cfg(test)]
mod tests {
    //! What each template becomes.

    use super::{TemplateValues, render};

    fn check(text: &str, expected: &str) {
        let values = TemplateValues {
            release_image: "quay.io/r@sha256:1".to_owned(),
            cluster_profile: "p".to_owned(),
            images: [("x".to_owned(), "quay.io/x".to_owned())].into(),
        };
        let rendered = match render(text, &values) {
            Ok(text) => text.into_owned(),
            Err(error) => format!("{}: {error}", error.line),
        };
        assert_eq!(rendered, expected, "template: {text:?}");
    }

    #[test]
    fn fields_images_and_strings_are_filled_in() {
        check("no braces {}", "no braces {}");
        check("a: '{{.ReleaseImage}}', {{ .ClusterProfile }}", "a: 'quay.io/r@sha256:1', p");
        check(r#"{{index .Images "x"}} {{ index  .Images `x` }}"#, "quay.io/x quay.io/x");
        check(r#"{{ "{{ $labels.name }}" }}!"#, "{{ $labels.name }}!");
        check(r#"{{ "a \"b\" \\ \n \u0041" }}"#, "a \"b\" \\ \n A");
        check("a{{/* }} comment */}}b", "ab");
        check("}} alone", "}} alone");
    }

    #[test]
    fn dashes_trim_the_space_around_an_action() {
        check("a \n{{- .ClusterProfile -}}\n b", "apb");
        check("a {{- .ClusterProfile }} b", "ap b");
        check("a {{ .ClusterProfile -}} b", "a pb");
    }

    #[test]
    fn what_is_not_provided_is_an_error_with_its_line() {
        check("\n\n{{ .Foo }}", "3: unknown field .Foo in {{ .Foo }}");
        check(r#"{{index .Images "y"}}"#, r#"1: unknown image "y" in {{index .Images "y"}}"#);
        check("{{ if true }}", "1: unsupported action in {{ if true }}");
        check(
            "{{ .ReleaseImage | quote }}",
            "1: unsupported action in {{ .ReleaseImage | quote }}",
        );
        check("a {{ .ReleaseImage", "1: unclosed action in {{ .ReleaseImage}}");
        check("{{ \"a\n\" }}", "1: malformed string in {{ \"a\n\" }}");
        check(r#"{{ "\q" }}"#, r#"1: malformed string in {{ "\q" }}"#);
        check("{{}}", "1: unsupported action in {{}}");
        check("{{indexed}}", "1: unsupported action in {{indexed}}");
    }
}
