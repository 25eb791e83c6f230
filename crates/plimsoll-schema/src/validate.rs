//! Structural and value validation.
//!
//! For custom resources the rules, their order and their words are those of apiextensions; for
//! built-in kinds only types and required fields are looked at.

mod formats;
mod lists;
mod rules;
#[cfg(test)]
mod tests;

use serde_json::Value;

use crate::schema::node::{DeclaredType, Node, NodeId};
use crate::{FieldError, FieldErrorKind, Schema};

/// Everything that is wrong with `value`.
pub fn validate(schema: &Schema, value: &Value) -> Vec<FieldError> {
    if schema.is_untyped() {
        return Vec::new();
    }
    let mut outcome = Outcome::default();
    let walker = Walker { schema };
    walker.node(schema.root, value, "", &mut outcome);
    if let (Some(rules), Some(metadata)) = (schema.metadata_rules, value.get("metadata")) {
        walker.node(rules, metadata, "metadata", &mut outcome);
    }
    let mut errors = outcome.errors;
    if !schema.is_builtin() {
        lists::check_embedded(schema, value, &mut errors);
        lists::check_keys(schema, value, &mut errors);
        let blocks = errors.iter().any(|error| blocks_further_rules(error.kind));
        if schema.arena.has_expression_rules && blocks {
            let detail = "some validation rules were not checked because the object was invalid; \
                          correct the existing errors to complete validation";
            let error = FieldError::new("<nil>", FieldErrorKind::Invalid, detail);
            errors.push(error.with_value(Value::Null));
        }
    }
    errors
}

/// Whether expressions cannot be evaluated on an object with such an error.
fn blocks_further_rules(kind: FieldErrorKind) -> bool {
    matches!(
        kind,
        FieldErrorKind::NotSupported
            | FieldErrorKind::Required
            | FieldErrorKind::TooLong
            | FieldErrorKind::TooMany
            | FieldErrorKind::TypeInvalid
    )
}

/// What a check found, and how many checks it made: of failed alternatives the one that got
/// furthest is reported.
#[derive(Default)]
struct Outcome {
    errors: Vec<FieldError>,
    checks: usize,
}

impl Outcome {
    fn push(&mut self, error: FieldError) {
        self.errors.push(error);
    }

    fn merge(&mut self, other: Self) {
        self.errors.extend(other.errors);
        self.checks += other.checks;
    }

    /// An error that belongs to no field, such as a choice with no valid alternative.
    fn push_general(&mut self, message: String) {
        let error = FieldError::new("<nil>", FieldErrorKind::Invalid, message);
        self.push(error.with_value(Value::String(String::new())));
    }
}

struct Walker<'a> {
    schema: &'a Schema,
}

impl Walker<'_> {
    fn node(&self, id: NodeId, value: &Value, path: &str, out: &mut Outcome) {
        let node = self.schema.node(id);
        out.checks += 1;
        // A null is no value in Go.
        if value.is_null() && self.schema.is_builtin() {
            return;
        }
        check_type(node, value, path, out);
        if value.is_null() {
            if let Some(rules) = &node.rules {
                rules::allowed(rules, value, path, out);
            }
            return;
        }
        self.alternatives(node, value, path, out);
        if let Some(rules) = &node.rules {
            rules::scalar(rules, value, path, out);
        }
        if let (Value::String(text), Some(format), false) =
            (value, &node.format, self.schema.is_builtin())
        {
            formats::check(format, text, path, out);
        }
        if let Value::Array(items) = value {
            self.items(node, items, path, out);
        }
        if let Some(rules) = &node.rules {
            rules::allowed(rules, value, path, out);
        }
        if let Value::Object(entries) = value {
            self.entries(node, entries, path, out);
        }
    }

    fn items(&self, node: &Node, items: &[Value], path: &str, out: &mut Outcome) {
        if let Some(list) = node.list.as_ref() {
            for (index, item) in items.iter().enumerate() {
                self.node(list.items.node, item, &format!("{path}[{index}]"), out);
            }
        }
        if let Some(rules) = &node.rules {
            rules::items(rules, items, path, out);
        }
    }

    fn entries(
        &self,
        node: &Node,
        entries: &serde_json::Map<String, Value>,
        path: &str,
        out: &mut Outcome,
    ) {
        if let Some(rules) = &node.rules {
            rules::properties(rules, entries, path, out);
        }
        if let Some(map) = &node.map {
            for (key, value) in entries {
                if let Some(edge) = map.fields.get(key).or(map.additional.as_ref()) {
                    self.node(edge.node, value, &below(path, key), out);
                }
            }
        }
        if let Some(rules) = &node.rules {
            let null_is_missing = self.schema.is_builtin();
            rules::required(rules, entries, null_is_missing, path, out);
        }
    }

    fn alternatives(&self, node: &Node, value: &Value, path: &str, out: &mut Outcome) {
        let Some(rules) = &node.rules else { return };
        let attempt = |id: &NodeId| {
            let mut outcome = Outcome::default();
            self.node(*id, value, path, &mut outcome);
            outcome
        };
        if !rules.any_of.is_empty() {
            let tried: Vec<Outcome> = rules.any_of.iter().map(attempt).collect();
            if tried.iter().all(|outcome| !outcome.errors.is_empty()) {
                out.push_general(format!("{path:?} must validate at least one schema (anyOf)"));
                out.merge(furthest(tried));
            }
        }
        if !rules.one_of.is_empty() {
            let tried: Vec<Outcome> = rules.one_of.iter().map(attempt).collect();
            let valid = tried.iter().filter(|outcome| outcome.errors.is_empty()).count();
            let prefix = format!("{path:?} must validate one and only one schema (oneOf).");
            match valid {
                1 => {}
                0 => {
                    out.push_general(format!("{prefix} Found none valid"));
                    out.merge(furthest(tried));
                }
                count => {
                    out.push_general(format!("{prefix} Found {count} valid alternatives"));
                }
            }
        }
        if !rules.all_of.is_empty() {
            let tried: Vec<Outcome> = rules.all_of.iter().map(attempt).collect();
            let valid = tried.iter().filter(|outcome| outcome.errors.is_empty()).count();
            let all = tried.len();
            tried.into_iter().for_each(|outcome| out.merge(outcome));
            if valid < all {
                let none = if valid == 0 { ". None validated" } else { "" };
                let message = format!("{path:?} must validate all the schemas (allOf){none}");
                out.push_general(message);
            }
        }
        if let Some(not) = &rules.not
            && attempt(not).errors.is_empty()
        {
            out.push_general(format!("{path:?} must not validate the schema (not)"));
        }
    }
}

/// Of failed alternatives the first of those that made most checks.
fn furthest(tried: Vec<Outcome>) -> Outcome {
    tried
        .into_iter()
        .reduce(|best, next| if next.checks > best.checks { next } else { best })
        .unwrap_or_default()
}

fn below(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}

fn type_name(declared: DeclaredType) -> &'static str {
    match declared {
        DeclaredType::Object => "object",
        DeclaredType::Array => "array",
        DeclaredType::String => "string",
        DeclaredType::Integer => "integer",
        DeclaredType::Number => "number",
        DeclaredType::Boolean => "boolean",
    }
}

/// The type of a JSON value, and the format that Go's decoder gives it.
fn actual_type(value: &Value) -> (&'static str, &'static str) {
    match value {
        Value::Null => ("null", ""),
        Value::Bool(_) => ("boolean", ""),
        Value::Number(number) if number.is_f64() => ("number", "float64"),
        Value::Number(_) => ("integer", "int64"),
        Value::String(_) => ("string", ""),
        Value::Array(_) => ("array", ""),
        Value::Object(_) => ("object", ""),
    }
}

fn check_type(node: &Node, value: &Value, path: &str, out: &mut Outcome) {
    let wanted = match node.declared {
        _ if node.int_or_string => "integer,string",
        Some(declared) => type_name(declared),
        None => return,
    };
    let (actual, actual_format) = actual_type(value);
    if value.is_null() {
        if !node.nullable {
            out.push(wrong_type(path, wanted, "null"));
        }
        return;
    }
    let wants = |name: &str| wanted.split(',').any(|wanted| wanted == name);
    let is_whole = value.as_f64().is_some_and(|number| number.fract() == 0.0);
    let fits = wants(actual)
        || (actual == "number" && is_whole && wants("integer"))
        || (actual == "integer" && wants("number"));
    let is_text = matches!(value, Value::String(_) | Value::Array(_));
    if let Some(format) = &node.format {
        let numeric = wants("integer") || wants("number");
        if !is_text && !fits && format != actual_format {
            return out.push(wrong_type(path, format, actual_format));
        }
        if !numeric && is_text {
            return;
        }
    }
    if !fits {
        out.push(wrong_type(path, wanted, actual));
    }
}

/// The error for a value that is not of the type called `wanted`.
fn wrong_type(path: &str, wanted: &str, actual: &str) -> FieldError {
    let shown_path = if path.is_empty() { "" } else { path };
    let detail = if actual.is_empty() {
        format!("{shown_path} in body must be of type {wanted}: \"\"")
    } else {
        format!("{shown_path} in body must be of type {wanted}: {actual:?}")
    };
    let path = if path.is_empty() { "<nil>" } else { path };
    FieldError::new(path, FieldErrorKind::TypeInvalid, detail).with_value(actual.into())
}
