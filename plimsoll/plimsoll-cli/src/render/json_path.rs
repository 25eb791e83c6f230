//! Templates of `-o jsonpath=`, as kubectl reads them: text with expressions in braces.

use std::fmt;

use jsonpath_rust::parser::model::JpQuery;
use jsonpath_rust::parser::parse_json_path;
use jsonpath_rust::query::js_path_process;
use serde_json::Value;

/// A template.
#[derive(Debug, Clone, PartialEq)]
pub struct JsonPath {
    source: String,
    parts: Vec<Part>,
}

/// A part of a template.
#[derive(Debug, Clone, PartialEq)]
enum Part {
    /// As it is.
    Text(String),
    /// All that a path finds, with spaces between.
    Path(JpQuery),
    /// The parts, once for each value that a path finds.
    Range(JpQuery, Vec<Part>),
}

impl JsonPath {
    /// Reads a template; one without braces is a path.
    ///
    /// Upstream: k8s.io/client-go/util/jsonpath/parser.go: Parse
    ///
    /// # Errors
    ///
    /// When braces, ranges or a path are malformed.
    pub fn parse(source: &str) -> Result<Self, String> {
        let template =
            if source.contains('{') { source.to_owned() } else { format!("{{{source}}}") };
        let mut open: Vec<(JpQuery, Vec<Part>)> = Vec::new();
        let mut parts = Vec::new();
        let mut rest = template.as_str();
        while let Some(at) = rest.find('{') {
            let (text, expression) = rest.split_at(at);
            if !text.is_empty() {
                parts.push(Part::Text(text.to_owned()));
            }
            let end = closing(expression, '{', '}')
                .ok_or_else(|| format!("`{expression}` has no closing brace"))?;
            rest = &expression[end + 1..];
            let expression = expression[1..end].trim();
            if expression == "end" {
                let (path, before) = open.pop().ok_or("{end} without {range PATH}")?;
                let inner = std::mem::replace(&mut parts, before);
                parts.push(Part::Range(path, inner));
            } else if let Some(path) = expression.strip_prefix("range ") {
                let path = checked(path.trim())?;
                open.push((path, std::mem::take(&mut parts)));
            } else if let Some(text) = quoted(expression) {
                parts.push(Part::Text(text));
            } else {
                parts.push(Part::Path(checked(expression)?));
            }
        }
        if !rest.is_empty() {
            parts.push(Part::Text(rest.to_owned()));
        }
        match open.pop() {
            Some(_) => Err("{range PATH} without {end}".to_owned()),
            None => Ok(Self { source: source.to_owned(), parts }),
        }
    }

    /// What the template makes of a value.
    pub fn render(&self, value: &Value) -> String {
        let mut text = String::new();
        render(&self.parts, value, &mut text);
        text
    }
}

impl fmt::Display for JsonPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.source)
    }
}

/// A path that can be read; `$` and `@` mean the value itself.
fn checked(path: &str) -> Result<JpQuery, String> {
    let steps = path.strip_prefix(['$', '@']).unwrap_or(path);
    parse_json_path(&in_brackets(steps)).map_err(|_| {
        format!(
            "`{path}` is not a path, such as .items[*].name or .items[?(@.name==\"a\")].version"
        )
    })
}

/// A path with all names in brackets and quotes: RFC 9535 allows fewer characters after a dot than
/// kubectl, and no backslash before a dot that belongs to a name.
fn in_brackets(path: &str) -> String {
    let mut whole = "$".to_owned();
    let mut rest = path;
    while let Some(first) = rest.chars().next() {
        if first == '[' {
            let end = closing(rest, '[', ']').map_or(rest.len(), |end| end + 1);
            whole.push_str(&rest[..end]);
            rest = &rest[end..];
            continue;
        }
        rest = rest.strip_prefix('.').unwrap_or(rest);
        if let Some(after) = rest.strip_prefix('.') {
            whole.push_str("..");
            rest = after;
        }
        let (name, after) = name(rest);
        match name.as_str() {
            "" => {}
            "*" => whole.push_str("[*]"),
            name => whole.push_str(&format!("['{}']", name.replace('\'', "\\'"))),
        }
        rest = after;
    }
    whole
}

/// A name up to the next dot or bracket; a backslash takes the next character as it is.
fn name(text: &str) -> (String, &str) {
    let mut name = String::new();
    let mut characters = text.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '\\' => name.extend(characters.next().map(|(_, escaped)| escaped)),
            '.' | '[' => return (name, &text[at..]),
            other => name.push(other),
        }
    }
    (name, "")
}

fn found<'a>(path: &JpQuery, value: &'a Value) -> Vec<&'a Value> {
    let found = js_path_process(path, value).unwrap_or_default();
    found.into_iter().map(|found| found.val()).collect()
}

/// Where a bracket closes that is open at the beginning, brackets in quotes aside.
fn closing(text: &str, opening: char, closing: char) -> Option<usize> {
    let mut quote = None;
    let mut depth = 0_usize;
    for (at, character) in text.char_indices() {
        match (quote, character) {
            (None, it) if it == opening => depth += 1,
            (None, it) if it == closing => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return Some(at);
                }
            }
            (None, '"' | '\'') => quote = Some(character),
            (Some(open), _) if open == character => quote = None,
            (None | Some(_), _) => {}
        }
    }
    None
}

/// The text of an expression in quotes.
fn quoted(expression: &str) -> Option<String> {
    let text = expression.strip_prefix('"')?.strip_suffix('"')?;
    Some(text.replace("\\n", "\n").replace("\\t", "\t").replace("\\\"", "\""))
}

fn render(parts: &[Part], value: &Value, text: &mut String) {
    for part in parts {
        match part {
            Part::Text(literal) => text.push_str(literal),
            Part::Path(path) => {
                let found: Vec<String> = found(path, value).into_iter().map(shown).collect();
                text.push_str(&found.join(" "));
            }
            Part::Range(path, inner) => {
                for item in found(path, value) {
                    render(inner, item, text);
                }
            }
        }
    }
}

fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::JsonPath;

    #[test]
    fn templates_are_read_as_kubectl_does() {
        let value = json!({
            "version": "1.0.0",
            "labels": {"a.b/c-d": "label"},
            "items": [{"name": "a", "size": 1}, {"name": "b", "size": 2}],
        });
        let check = |template: &str, expected: &str| {
            let rendered = JsonPath::parse(template).map(|it| it.render(&value));
            assert_eq!(rendered.unwrap_or_else(|error| format!("error: {error}")), expected);
        };
        check("{.version}", "1.0.0");
        check(".version", "1.0.0");
        check("{$.items[*].name}", "a b");
        check("{.items[0]}", r#"{"name":"a","size":1}"#);
        check("{.items[?(@.name==\"b\")].size}", "2");
        check("v{.version}!", "v1.0.0!");
        check(r#"{range .items[*]}{.name}{"\t"}{@.size}{"\n"}{end}"#, "a\t1\nb\t2\n");
        check("{.none}", "");
        check("{.labels.a\\.b/c-d}", "label");
        check("{..name}", "a b");
        check("{.version", "error: `{.version` has no closing brace");
        check("{range .items[*]}{.name}", "error: {range PATH} without {end}");
        check("{end}", "error: {end} without {range PATH}");
        check(
            "{.items[}",
            "error: `.items[` is not a path, such as .items[*].name or \
             .items[?(@.name==\"a\")].version",
        );
    }
}
