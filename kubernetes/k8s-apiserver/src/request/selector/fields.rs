//! Field selectors: terms of paths and values, with a backslash before what would end a value.
use crate::status::{ApiError, Result};

/// A field selector: all of its terms must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct FieldSelector {
    terms: Vec<FieldTerm>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct FieldTerm {
    path: String,
    value: String,
    negated: bool,
}

impl FieldSelector {
    /// Reads a selector such as `metadata.name=a,status.phase!=b`.
    ///
    /// # Errors
    /// When the text does not follow the grammar.
    ///
    /// Upstream: k8s.io/apimachinery/pkg/fields/selector.go: ParseSelector
    pub(crate) fn parse(text: &str) -> Result<Self> {
        let mut terms = Vec::new();
        for part in split_terms(text).into_iter().filter(|part| !part.is_empty()) {
            let (path, negated, value) = split_term(part).ok_or_else(|| {
                ApiError::bad_request(format!(
                    "invalid selector: '{text}'; can't understand '{part}'"
                ))
            })?;
            // What says nothing at all selects everything.
            if !(path.is_empty() && value.is_empty()) {
                terms.push(FieldTerm { path: path.to_owned(), value: unescape(value)?, negated });
            }
        }
        Ok(Self { terms })
    }

    /// The selector of one object.
    pub(crate) fn of_name(name: &str) -> Self {
        let term =
            FieldTerm { path: "metadata.name".to_owned(), value: name.to_owned(), negated: false };
        Self { terms: vec![term] }
    }

    /// Whether it holds for everything.
    pub(crate) fn is_empty(&self) -> bool {
        self.terms.is_empty()
    }

    /// The value that a field must have; none if it may have several.
    ///
    /// Upstream: k8s.io/apimachinery/pkg/fields/selector.go: RequiresExactMatch
    pub(crate) fn exact(&self, path: &str) -> Option<&str> {
        let mut terms = self.terms.iter();
        terms.find(|term| term.path == path && !term.negated).map(|term| term.value.as_str())
    }

    /// The fields it looks at.
    pub(crate) fn paths(&self) -> impl Iterator<Item = &str> {
        self.terms.iter().map(|term| term.path.as_str())
    }

    /// Whether it only looks at names and namespaces.
    pub(crate) fn is_of_keys(&self) -> bool {
        self.paths().all(|path| matches!(path, "metadata.name" | "metadata.namespace"))
    }

    /// Whether it holds where `find` gives the value of a field.
    pub(crate) fn matches(&self, find: impl Fn(&str) -> String) -> bool {
        self.terms.iter().all(|term| (find(&term.path) == term.value) != term.negated)
    }
}

/// The parts between commas that no backslash precedes.
///
/// Upstream: k8s.io/apimachinery/pkg/fields/selector.go: splitTerms
fn split_terms(text: &str) -> Vec<&str> {
    let mut terms = Vec::new();
    let (mut start, mut escaped) = (0, false);
    for (index, character) in text.char_indices() {
        match character {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            ',' => {
                terms.push(&text[start..index]);
                start = index + 1;
            }
            _ => {}
        }
    }
    terms.push(&text[start..]);
    terms
}

/// The path, whether the value is excluded, and the value.
///
/// Upstream: k8s.io/apimachinery/pkg/fields/selector.go: splitTerm
fn split_term(term: &str) -> Option<(&str, bool, &str)> {
    term.char_indices().find_map(|(index, _)| {
        let rest = &term[index..];
        let operators = [("!=", true), ("==", false), ("=", false)];
        let (sign, negated) = operators.into_iter().find(|(sign, _)| rest.starts_with(sign))?;
        Some((&term[..index], negated, &rest[sign.len()..]))
    })
}

/// Upstream: k8s.io/apimachinery/pkg/fields/selector.go: UnescapeValue
fn unescape(value: &str) -> Result<String> {
    let invalid =
        |why: String| Err(ApiError::bad_request(format!("invalid field selector: {why}")));
    let mut text = String::with_capacity(value.len());
    let mut characters = value.chars();
    while let Some(character) = characters.next() {
        match character {
            '\\' => match characters.next() {
                Some(escaped @ ('\\' | ',' | '=')) => text.push(escaped),
                other => {
                    let other = other.map(String::from).unwrap_or_default();
                    return invalid(format!("invalid escape sequence: \\{other}"));
                }
            },
            ',' | '=' => {
                return invalid(format!("unescaped character in value: {}", u32::from(character)));
            }
            plain => text.push(plain),
        }
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::super::field_text;
    use super::*;

    #[test]
    fn field_selectors_compare_text() {
        let object = serde_json::json!({"spec": {"nodeName": "n", "count": 3, "odd": "a,b"}});
        for (selector, expected) in [
            ("spec.nodeName=n", true),
            ("spec.nodeName!=n", false),
            ("spec.count==3", true),
            ("spec.missing=", true),
            ("spec.odd=a\\,b", true),
            (",spec.count=3,", true),
        ] {
            let parsed = FieldSelector::parse(selector).unwrap();
            assert_eq!(parsed.matches(|path| field_text(&object, path)), expected, "{selector}");
        }
    }

    #[test]
    fn malformed_field_selectors_are_refused() {
        for selector in ["spec", "a=b=c", "a=\\b", "a=b\\"] {
            assert!(FieldSelector::parse(selector).is_err(), "{selector}");
        }
    }
}
