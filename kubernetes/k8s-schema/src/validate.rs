//! Structural and value validation.
//!
//! For custom resources the rules, their order and their messages are those of apiextensions; for
//! built-in kinds only types and required fields are looked at. An update is held against the live
//! object: what was wrong before and did not change stays as it is ("ratcheting").
//!
//! Upstream: k8s.io/kube-openapi/pkg/validation/validate/schema.go: SchemaValidator
//! Upstream: k8s.io/apiextensions-apiserver/pkg/apiserver/validation/validation.go: ValidateCustomResource

mod alternatives;
pub(crate) mod formats;
mod lists;
mod ratchet;
mod rules;
#[cfg(test)]
mod tests;

use serde_json::Value;

use crate::schema::node::{DeclaredType, Node, NodeId};
use crate::{FieldError, FieldErrorKind, Schema};
use ratchet::OldValue;

/// Everything that is wrong with `value`.
pub fn validate(schema: &Schema, value: &Value) -> Vec<FieldError> {
    check(schema, value, None)
}

/// Everything that is wrong with `value` in place of `live`. Faults that `live` has too are let
/// pass where the value around them is the same.
pub fn validate_update(schema: &Schema, value: &Value, live: &Value) -> Vec<FieldError> {
    check(schema, value, Some(live))
}

/// Everything that is wrong with the status of a custom resource, which is a document of its own
/// for its endpoint.
pub fn validate_status(schema: &Schema, value: &Value, live: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let node = schema.node(schema.root);
    let status = node.map.as_ref().and_then(|map| map.value("status"));
    if let (Some(edge), Some(status)) = (status, value.get("status")) {
        let mut result = ValidationResult::default();
        let old = live.get("status").map(|value| OldValue { value, node: edge.node });
        SchemaValidator { schema }.node(edge.node, status, "", old, &mut result);
        errors.extend(result.errors.into_iter().map(|mut error| {
            error.path = match error.path.trim_start_matches('.') {
                "" | "<nil>" => "status".to_owned(),
                path => format!("status.{path}"),
            };
            error
        }));
    }
    errors.extend(lists::check_keys(schema, value, Some(live)));
    errors
}

fn check(schema: &Schema, value: &Value, live: Option<&Value>) -> Vec<FieldError> {
    if schema.is_untyped() {
        return Vec::new();
    }
    let mut result = ValidationResult::default();
    let validator = SchemaValidator { schema };
    let old = live.map(|value| OldValue { value, node: schema.root });
    validator.node(schema.root, value, "", old, &mut result);
    if let (Some(rules), Some(metadata)) = (schema.metadata_rules, value.get("metadata")) {
        let old = live.and_then(|live| live.get("metadata"));
        let old = old.map(|value| OldValue { value, node: rules });
        validator.node(rules, metadata, "metadata", old, &mut result);
    }
    result.errors.iter_mut().for_each(|error| {
        if let Some(path) = error.path.strip_prefix('.') {
            error.path = path.to_owned();
        }
    });
    result.errors
}

/// Validation beyond the schema proper: embedded objects of a custom resource, repeated items of
/// its sets and maps.
pub fn validate_lists(schema: &Schema, value: &Value, live: Option<&Value>) -> Vec<FieldError> {
    if schema.is_untyped() {
        return Vec::new();
    }
    let mut errors = Vec::new();
    lists::check_embedded(schema, value, &mut errors);
    errors.extend(lists::check_keys(schema, value, live));
    errors
}

/// Why the metadata of a custom object, or of an object inside of it, cannot even be read.
///
/// Upstream: k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta/algorithm.go: Coerce
pub fn malformed_metadata(schema: &Schema, value: &Value) -> Option<String> {
    lists::malformed(schema, &schema.root_edge(), value, "")
}

/// The error that says that expressions were not evaluated, if `errors` keep them from it.
///
/// Upstream: k8s.io/apiextensions-apiserver/pkg/registry/customresource/strategy.go: hasBlockingErr
pub fn blocked_expressions(schema: &Schema, errors: &[FieldError]) -> Option<FieldError> {
    let blocks = errors.iter().any(|error| blocks_further_rules(error.kind));
    if !schema.arena.has_expression_rules || !blocks {
        return None;
    }
    let detail = "some validation rules were not checked because the object was invalid; correct \
                  the existing errors to complete validation";
    Some(FieldError::new("<nil>", FieldErrorKind::Invalid, detail).with_value(Value::Null))
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
struct ValidationResult {
    errors: Vec<FieldError>,
    checks: usize,
}

impl ValidationResult {
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

struct SchemaValidator<'a> {
    schema: &'a Schema,
}

impl SchemaValidator<'_> {
    /// Validates a value by a node; `old` is the value that it replaces, if that is known.
    fn node(
        &self,
        id: NodeId,
        value: &Value,
        path: &str,
        old: Option<OldValue<'_>>,
        out: &mut ValidationResult,
    ) {
        let mut found = ValidationResult::default();
        self.plain_node(id, value, path, old, &mut found);
        if old.is_some_and(|old| !found.errors.is_empty() && old.value == value) {
            found.errors.clear();
        }
        out.merge(found);
    }

    /// The same, whatever was there before.
    fn plain_node(
        &self,
        id: NodeId,
        value: &Value,
        path: &str,
        old: Option<OldValue<'_>>,
        out: &mut ValidationResult,
    ) {
        let node = self.schema.node(id);
        // A null is no value in Go.
        if value.is_null() && self.schema.is_builtin() {
            return;
        }
        let typed = node.declared.is_some() || node.int_or_string || node.format.is_some();
        if typed && check_type(node, value, path, out) {
            out.checks += 1;
        }
        if value.is_null() {
            if let Some(rules) = &node.rules {
                rules::allowed(rules, value, path, out);
            }
            return;
        }
        // One for each validator that applies, and one in the end.
        out.checks += 4 + usize::from(typed);
        self.alternatives(node, value, path, old, out);
        if let Some(rules) = &node.rules {
            rules::scalar(rules, value, path, out);
        }
        if let (Value::String(text), Some(format), false) =
            (value, &node.format, self.schema.is_builtin())
            && matches!(node.declared, None | Some(DeclaredType::String))
        {
            formats::check(format, text, path, out);
        }
        if let (Value::Number(number), false) = (value, self.schema.is_builtin()) {
            rules::range(node, number, path, out);
        }
        if let Value::Array(items) = value {
            self.items(node, items, path, old, out);
        }
        if let Some(rules) = &node.rules {
            rules::allowed(rules, value, path, out);
        }
        if let Value::Object(entries) = value {
            self.entries(node, entries, path, old, out);
        }
    }

    fn items(
        &self,
        node: &Node,
        items: &[Value],
        path: &str,
        old: Option<OldValue<'_>>,
        out: &mut ValidationResult,
    ) {
        if let Some(list) = node.list.as_ref() {
            for (index, item) in items.iter().enumerate() {
                let old = old.and_then(|old| old.item(self.schema, item));
                self.node(list.items.node, item, &format!("{path}[{index}]"), old, out);
            }
        }
        if let Some(rules) = &node.rules {
            rules::items(rules, items, path, out);
        }
        out.checks += 1;
    }

    fn entries(
        &self,
        node: &Node,
        entries: &serde_json::Map<String, Value>,
        path: &str,
        old: Option<OldValue<'_>>,
        out: &mut ValidationResult,
    ) {
        if let Some(rules) = &node.rules {
            rules::properties(rules, entries, path, out);
        }
        if let Some(map) = &node.map {
            let field = |key: &str| old.and_then(|old| old.field(self.schema, path, key));
            if let Some(edge) = &map.additional {
                let others = entries.iter().filter(|(key, _)| !map.fields.contains_key(*key));
                for (key, value) in others {
                    self.node(edge.node, value, &format!("{path}.{key}"), field(key), out);
                }
            }
            for (key, edge) in &map.fields {
                if let Some(value) = entries.get(key) {
                    self.node(edge.node, value, &below(path, key), field(key), out);
                }
            }
        }
        if let Some(rules) = &node.rules {
            let null_is_missing = self.schema.is_builtin();
            rules::required(rules, entries, null_is_missing, path, out);
        }
    }
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
        Value::Number(number) if number.as_i64().is_none() => ("number", "float64"),
        Value::Number(_) => ("integer", "int64"),
        Value::String(_) => ("string", ""),
        Value::Array(_) => ("array", ""),
        Value::Object(_) => ("object", ""),
    }
}

/// Up to here every whole number has a floating-point number of its own.
const WHOLE_FLOAT_MAX: f64 = 9_007_199_254_740_991.0;

/// Checks the type of a value; returns whether it fits.
fn check_type(node: &Node, value: &Value, path: &str, out: &mut ValidationResult) -> bool {
    let before = out.errors.len();
    match node.declared {
        _ if node.int_or_string => check_named_type(node, "integer,string", value, path, out),
        Some(declared) => check_named_type(node, type_name(declared), value, path, out),
        None => {}
    }
    out.errors.len() == before
}

fn check_named_type(
    node: &Node,
    wanted: &str,
    value: &Value,
    path: &str,
    out: &mut ValidationResult,
) {
    let (actual, actual_format) = actual_type(value);
    if value.is_null() {
        if !node.nullable {
            out.push(wrong_type(path, wanted, "null"));
        }
        return;
    }
    let wants = |name: &str| wanted.split(',').any(|wanted| wanted == name);
    let is_whole = value
        .as_f64()
        .is_some_and(|number| number.fract() == 0.0 && number.abs() <= WHOLE_FLOAT_MAX);
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
