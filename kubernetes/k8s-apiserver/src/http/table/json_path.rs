//! The simple JSON paths of printer columns.
//!
//! Fields, quoted fields, escaped dots, indices, `[*]` and filters such as
//! `[?(@.type=="Ready")]`.
use serde_json::Value;

#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    Field(String),
    Index(i64),
    Every,
    Filter { path: String, value: String },
}

/// The first value at a path.
///
/// Upstream: k8s.io/client-go/util/jsonpath/jsonpath.go: FindResults
pub(crate) fn first<'a>(object: &'a Value, path: &str) -> Option<&'a Value> {
    let steps = parse(path)?;
    let mut found = vec![object];
    for step in &steps {
        found = found.into_iter().flat_map(|value| take(value, step)).collect();
    }
    found.into_iter().find(|value| !value.is_null())
}

fn take<'a>(value: &'a Value, step: &Step) -> Vec<&'a Value> {
    match step {
        Step::Field(name) => value.get(name).into_iter().collect(),
        Step::Index(index) => {
            let Some(items) = value.as_array() else {
                return Vec::new();
            };
            let from_start = if *index < 0 {
                items.len().checked_sub(index.unsigned_abs() as usize)
            } else {
                usize::try_from(*index).ok()
            };
            from_start.and_then(|index| items.get(index)).into_iter().collect()
        }
        Step::Every => match value {
            Value::Array(items) => items.iter().collect(),
            Value::Object(fields) => fields.values().collect(),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Vec::new(),
        },
        Step::Filter { path, value: wanted } => value
            .as_array()
            .into_iter()
            .flatten()
            .filter(|item| {
                first(item, path).is_some_and(|found| match found {
                    Value::String(text) => text == wanted,
                    Value::Bool(flag) => wanted.parse() == Ok(*flag),
                    Value::Number(number) => number.as_f64() == wanted.parse().ok(),
                    Value::Null | Value::Array(_) | Value::Object(_) => false,
                })
            })
            .collect(),
    }
}

/// Upstream: k8s.io/client-go/util/jsonpath/parser.go: Parse
fn parse(path: &str) -> Option<Vec<Step>> {
    let mut steps = Vec::new();
    let mut rest = path.trim().trim_start_matches('{').trim_end_matches('}');
    while !rest.is_empty() {
        if let Some(inside) = rest.strip_prefix('[') {
            let end = closing_bracket(inside)?;
            steps.push(parse_bracket(&inside[..end])?);
            rest = &inside[end + 1..];
        } else {
            let (name, after) = parse_name(rest.strip_prefix('.').unwrap_or(rest));
            match name.as_str() {
                "" if after.is_empty() => {}
                "" if after.starts_with('[') => {}
                "" => return None,
                "*" => steps.push(Step::Every),
                _ => steps.push(Step::Field(name)),
            }
            rest = after;
        }
    }
    Some(steps)
}

/// A field name up to the next dot or bracket; a backslash takes the next character as it is.
fn parse_name(text: &str) -> (String, &str) {
    let mut name = String::new();
    let mut characters = text.char_indices();
    while let Some((index, character)) = characters.next() {
        match character {
            '\\' => {
                if let Some((_, escaped)) = characters.next() {
                    name.push(escaped);
                }
            }
            '.' | '[' => return (name, &text[index..]),
            _ => name.push(character),
        }
    }
    (name, "")
}

/// Where the bracket closes, brackets in quotes aside.
fn closing_bracket(text: &str) -> Option<usize> {
    let mut quote = None;
    for (index, character) in text.char_indices() {
        match (quote, character) {
            (None, ']') => return Some(index),
            (None, '\'' | '"') => quote = Some(character),
            (Some(open), _) if open == character => quote = None,
            _ => {}
        }
    }
    None
}

fn unquoted(text: &str) -> Option<&str> {
    let text = text.trim();
    ['\'', '"'].into_iter().find_map(|quote| text.strip_prefix(quote)?.strip_suffix(quote))
}

fn parse_bracket(inside: &str) -> Option<Step> {
    let inside = inside.trim();
    if inside == "*" {
        return Some(Step::Every);
    }
    if let Some(filter) = inside.strip_prefix("?(").and_then(|text| text.strip_suffix(')')) {
        let (path, value) = filter.split_once("==")?;
        return Some(Step::Filter {
            path: path.trim().strip_prefix('@')?.to_owned(),
            value: unquoted(value).unwrap_or(value.trim()).to_owned(),
        });
    }
    match unquoted(inside) {
        Some(name) => Some(Step::Field(name.replace("\\.", "."))),
        None => inside.parse().ok().map(Step::Index),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(path: &str, expected: Option<&str>) {
        let object = serde_json::json!({
            "metadata": {"labels": {"a.b/c": "label"}},
            "status": {
                "conditions": [
                    {"type": "Available", "status": "True"},
                    {"type": "Ready", "status": "False"},
                ],
                "versions": [{"name": "x"}, {"name": "y"}],
            },
        });
        assert_eq!(first(&object, path).and_then(Value::as_str), expected, "{path}");
    }

    #[test]
    fn paths_of_printer_columns_find_values() {
        check(".status.conditions[?(@.type==\"Ready\")].status", Some("False"));
        check(".status.conditions[?(@.type=='Ready')].status", Some("False"));
        check(".status.versions[0].name", Some("x"));
        check(".status.versions[-1].name", Some("y"));
        check(".status.versions[*].name", Some("x"));
        check(".metadata.labels.a\\.b/c", Some("label"));
        check(".metadata.labels['a.b/c']", Some("label"));
        check(".metadata.labels[\"a\\.b/c\"]", Some("label"));
        check("{.status.versions[1].name}", Some("y"));
        check(".status.missing.deep", None);
        check(".status.versions[9].name", None);
        check(".status[", None);
    }
}
