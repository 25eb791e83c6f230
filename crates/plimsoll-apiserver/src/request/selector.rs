//! Label and field selectors.
use std::collections::BTreeMap;

use serde_json::Value;

use crate::status::{ApiError, Result};

/// A label selector: all of its requirements must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct LabelSelector {
    requirements: Vec<Requirement>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Requirement {
    key: String,
    operator: Operator,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Operator {
    In(Vec<String>),
    NotIn(Vec<String>),
    Exists,
    Missing,
    Greater(i64),
    Less(i64),
}

impl LabelSelector {
    /// Reads a selector such as `a=b,c!=d,e in (f,g),!h`.
    ///
    /// # Errors
    /// When the text does not follow the grammar.
    pub(crate) fn parse(text: &str) -> Result<Self> {
        let mut requirements = Vec::new();
        for part in split_outside_parentheses(text) {
            let part = part.trim();
            if part.is_empty() {
                if text.trim().is_empty() {
                    break;
                }
                return Err(unreadable(text, "found an empty requirement"));
            }
            requirements.push(parse_requirement(text, part)?);
        }
        Ok(Self { requirements })
    }

    /// Whether it holds for everything.
    pub(crate) fn is_empty(&self) -> bool {
        self.requirements.is_empty()
    }

    /// Whether an object with these labels is selected.
    pub(crate) fn matches<'a>(&self, find: impl Fn(&str) -> Option<&'a str>) -> bool {
        self.requirements.iter().all(|requirement| {
            let value = find(&requirement.key);
            match &requirement.operator {
                Operator::In(values) => {
                    value.is_some_and(|value| values.iter().any(|one| one == value))
                }
                Operator::NotIn(values) => {
                    value.is_none_or(|value| values.iter().all(|one| one != value))
                }
                Operator::Exists => value.is_some(),
                Operator::Missing => value.is_none(),
                Operator::Greater(bound) => parsed(value).is_some_and(|value| value > *bound),
                Operator::Less(bound) => parsed(value).is_some_and(|value| value < *bound),
            }
        })
    }
}

fn parsed(value: Option<&str>) -> Option<i64> {
    value.and_then(|value| value.parse().ok())
}

fn split_outside_parentheses(text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let (mut depth, mut start) = (0_usize, 0);
    for (index, character) in text.char_indices() {
        match character {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                parts.push(&text[start..index]);
                start = index + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts
}

fn parse_requirement(whole: &str, part: &str) -> Result<Requirement> {
    if let Some(key) = part.strip_prefix('!') {
        return requirement(whole, key, Operator::Missing);
    }
    for (symbol, negated) in [("!=", true), ("==", false), ("=", false)] {
        if let Some((key, value)) = part.split_once(symbol) {
            let values = vec![label_value(whole, value)?];
            let operator = if negated { Operator::NotIn(values) } else { Operator::In(values) };
            return requirement(whole, key, operator);
        }
    }
    for (symbol, build) in [(">", Operator::Greater as fn(i64) -> Operator), ("<", Operator::Less)]
    {
        if let Some((key, value)) = part.split_once(symbol) {
            let bound = value.trim().parse().map_err(|_| {
                unreadable(whole, "for 'Gt', 'Lt' operators, the value must be an integer")
            })?;
            return requirement(whole, key, build(bound));
        }
    }
    if let Some((key, set)) = part.split_once('(') {
        let values: Vec<String> = set
            .strip_suffix(')')
            .ok_or_else(|| unreadable(whole, "a set of values has no closing parenthesis"))?
            .split(',')
            .map(|value| label_value(whole, value))
            .collect::<Result<_>>()?;
        let words: Vec<&str> = key.split_whitespace().collect();
        return match words.as_slice() {
            [key, "in"] => requirement(whole, key, Operator::In(values)),
            [key, "notin"] => requirement(whole, key, Operator::NotIn(values)),
            _ => Err(unreadable(whole, "a set of values needs 'in' or 'notin' before it")),
        };
    }
    if let Some(second) = part.split_whitespace().nth(1) {
        return Err(ApiError::bad_request(format!(
            "unable to parse requirement: found '{second}', expected: in, notin, =, ==, !=, gt, lt"
        )));
    }
    requirement(whole, part, Operator::Exists)
}

fn requirement(whole: &str, key: &str, operator: Operator) -> Result<Requirement> {
    let key = key.trim();
    if let Some(problem) = crate::names::qualified_name_problem(key) {
        return Err(unreadable(whole, &format!("key: Invalid value: {key:?}: {problem}")));
    }
    Ok(Requirement { key: key.to_owned(), operator })
}

fn label_value(whole: &str, value: &str) -> Result<String> {
    let value = value.trim();
    match crate::names::label_value_problem(value) {
        Some(problem) => {
            Err(unreadable(whole, &format!("values[0][key]: Invalid value: {value:?}: {problem}")))
        }
        None => Ok(value.to_owned()),
    }
}

fn unreadable(text: &str, why: &str) -> ApiError {
    ApiError::bad_request(format!("unable to parse requirement: {why} (selector {text:?})"))
}

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
    pub(crate) fn parse(text: &str) -> Result<Self> {
        let mut terms = Vec::new();
        for part in text.split(',').filter(|part| !part.is_empty()) {
            let (path, value, negated) = if let Some((path, value)) = part.split_once("!=") {
                (path, value, true)
            } else if let Some((path, value)) = part.split_once("==") {
                (path, value, false)
            } else if let Some((path, value)) = part.split_once('=') {
                (path, value, false)
            } else {
                return Err(ApiError::bad_request(format!(
                    "invalid selector: '{text}'; can't understand '{part}'"
                )));
            };
            terms.push(FieldTerm {
                path: path.trim().to_owned(),
                value: value.trim().to_owned(),
                negated,
            });
        }
        Ok(Self { terms })
    }

    /// Whether it holds for everything.
    pub(crate) fn is_empty(&self) -> bool {
        self.terms.is_empty()
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

/// The value of a plain dotted path, as field selectors compare it.
pub(crate) fn field_text(object: &Value, path: &str) -> String {
    let mut at = object;
    for segment in path.split('.') {
        match at.get(segment) {
            Some(below) => at = below,
            None => return String::new(),
        }
    }
    match at {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        Value::Bool(_) | Value::Number(_) => at.to_string(),
        Value::Array(_) | Value::Object(_) => String::new(),
    }
}

/// A selector that holds for objects with all of these labels.
pub(crate) fn format_labels(labels: &BTreeMap<String, String>) -> String {
    labels.iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(selector: &str, labels: &[(&str, &str)], expected: bool) {
        let parsed = LabelSelector::parse(selector).unwrap();
        let found = parsed
            .matches(|key| labels.iter().find(|(name, _)| *name == key).map(|(_, value)| *value));
        assert_eq!(found, expected, "{selector} {labels:?}");
    }

    #[test]
    fn label_selectors_select() {
        let labels = [("app", "web"), ("tier", "3")];
        check("", &labels, true);
        check("app=web", &labels, true);
        check("app == web , tier", &labels, true);
        check("app!=web", &labels, false);
        check("other!=web", &labels, true);
        check("app in (db, web)", &labels, true);
        check("app notin (db,web)", &labels, false);
        check("!other", &labels, true);
        check("!app", &labels, false);
        check("tier>2", &labels, true);
        check("tier<2", &labels, false);
        check("missing in ()", &labels, false);
    }

    #[test]
    fn malformed_label_selectors_are_refused() {
        for selector in ["a=b,,c", "a in (b", "a b (c)", "=b", "a=b c", "a>x", "-"] {
            assert!(LabelSelector::parse(selector).is_err(), "{selector}");
        }
    }

    #[test]
    fn field_selectors_compare_text() {
        let object = serde_json::json!({"spec": {"nodeName": "n", "count": 3}});
        for (selector, expected) in [
            ("spec.nodeName=n", true),
            ("spec.nodeName!=n", false),
            ("spec.count==3", true),
            ("spec.missing=", true),
        ] {
            let parsed = FieldSelector::parse(selector).unwrap();
            assert_eq!(parsed.matches(|path| field_text(&object, path)), expected, "{selector}");
        }
        assert!(FieldSelector::parse("spec").is_err());
    }
}
