//! `fieldPath`: which field a rule's error is about.
//!
//! Upstream: k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/validation.go: ValidFieldPath
use serde_json::Value;

/// The path without its leading dot, keys of maps in brackets; nothing if the schema has no such
/// field.
pub(super) fn normalize(path: &str, schema: &Value) -> Option<String> {
    let mut out = String::new();
    let mut at = schema;
    let mut rest = path;
    while !rest.is_empty() {
        let name;
        if let Some(after) = rest.strip_prefix("['") {
            let end = closing_quote(after)?;
            name = unescape(&after[..end])?;
            rest = after[end + 1..].strip_prefix(']')?;
        } else {
            let after = rest.strip_prefix('.')?;
            let end = after.find(['.', '[', ']']).unwrap_or(after.len());
            name = after[..end].to_owned();
            rest = &after[end..];
        }
        if name.is_empty() {
            return None;
        }
        if let Some(properties) = at.get("properties").and_then(Value::as_object) {
            at = properties.get(&name)?;
            if !out.is_empty() {
                out.push('.');
            }
            out.push_str(&name);
        } else {
            at = at.get("additionalProperties").filter(|values| values.is_object())?;
            out.push_str(&format!("[{name}]"));
        }
    }
    (!out.is_empty()).then_some(out)
}

fn closing_quote(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    (0..bytes.len()).find(|at| bytes[*at] == b'\'' && (*at == 0 || bytes[*at - 1] != b'\\'))
}

fn unescape(text: &str) -> Option<String> {
    let mut out = String::new();
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        if character != '\\' {
            out.push(character);
            continue;
        }
        out.push(match characters.next()? {
            'a' => '\u{7}',
            'b' => '\u{8}',
            'f' => '\u{c}',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'v' => '\u{b}',
            '\'' => '\'',
            '\\' => '\\',
            _ => return None,
        });
    }
    Some(out)
}
