//! Paths to a field of a schema: `.spec.name`, `.spec['na.me']`.
//!
//! Upstream: k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation/validation.go: ValidateCustomResourceSelectableFields
//! Upstream: k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/validation.go: ValidFieldPath
use serde_json::Value;

use crate::schema::structural::{child, text};

/// Finds the schema at `path`, and how field errors spell the path.
///
/// # Errors
/// With why there is nothing at it.
pub(super) fn find<'a>(
    path: &str,
    schema: &'a Value,
    brackets: bool,
) -> Result<(String, &'a Value), String> {
    let (mut schema, mut found) = (schema, String::new());
    let mut rest = path;
    while let Some(token) = next(&mut rest) {
        let name = match token {
            "." => next(&mut rest).ok_or("unexpected end of JSON path")?.to_owned(),
            "[" if !brackets => return Err("array notation is not allowed".to_owned()),
            "[" => bracketed(&mut rest)?,
            other => return Err(format!("expected [ or . but got: {other}")),
        };
        let missing = || "does not refer to a valid field".to_owned();
        match (schema.get("properties"), schema.get("additionalProperties")) {
            (Some(properties), _) => {
                schema = properties.get(&name).ok_or_else(missing)?;
                found = child(&found, &name);
            }
            (None, Some(additional)) => {
                schema = additional;
                found = format!("{found}[{name}]");
            }
            (None, None) => return Err(missing()),
        }
    }
    Ok((found, schema))
}

fn bracketed(rest: &mut &str) -> Result<String, String> {
    let end = || "unexpected end of JSON path".to_owned();
    let token = next(rest).ok_or_else(end)?;
    let inner = token
        .strip_prefix('\'')
        .and_then(|inner| inner.strip_suffix('\''))
        .ok_or_else(|| format!("expected single quoted string but got {token}"))?;
    match next(rest).ok_or_else(end)? {
        "]" => Ok(inner.replace("\\'", "'")),
        other => Err(format!("expected ] but got {other}")),
    }
}

/// The next delimiter, quoted text or name.
fn next<'a>(rest: &mut &'a str) -> Option<&'a str> {
    let length = match rest.chars().next()? {
        '.' | '[' | ']' => 1,
        '\'' => {
            let closing = rest
                .char_indices()
                .skip(1)
                .find(|(index, c)| *c == '\'' && !rest[..*index].ends_with('\\'));
            closing.map_or(rest.len(), |(index, _)| index + 1)
        }
        _ => rest.find(['.', '[', ']']).unwrap_or(rest.len()),
    };
    let (token, after) = rest.split_at(length);
    *rest = after;
    Some(token)
}

/// How field errors spell the path of a selectable field.
///
/// # Errors
/// With everything that keeps the field from being selectable.
pub fn selectable_field(path: &str, schema: &Value) -> Result<String, Vec<String>> {
    let (found, field) =
        find(path, schema, false).map_err(|error| vec![format!("is an invalid path: {error}")])?;
    let mut problems = Vec::new();
    if found.split(['.', '[']).next() == Some("metadata") {
        problems.push("must not point to fields in metadata".to_owned());
    }
    let declared = field.as_object().map(|field| text(field, "type"));
    if !matches!(declared, Some("string" | "boolean" | "integer")) {
        let detail = "must point to a field of type string, boolean or integer. Enum string \
                      fields and strings with formats are allowed.";
        problems.push(detail.to_owned());
    }
    if problems.is_empty() { Ok(found) } else { Err(problems) }
}
