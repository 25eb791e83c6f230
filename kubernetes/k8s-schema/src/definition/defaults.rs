//! Whether the defaults in a schema fit the schema.
//!
//! Upstream: k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting/validation.go: ValidateDefaults
use serde_json::{Map, Value, json};

use crate::schema::structural::{child, flag, properties, property};
use crate::{FieldError, FieldErrorKind, Schema, prune, validate};

/// Where a default stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum DefaultContext {
    Field,
    /// Inside of `apiVersion`, `kind` or `metadata`.
    Metadata,
}

/// Everything wrong with the defaults of a structural schema.
pub(super) fn check(schema: &Value, path: &str, keeps_unknown: bool) -> Vec<FieldError> {
    let mut errors = Vec::new();
    check_node(schema, path, DefaultContext::Field, true, keeps_unknown, &mut errors);
    errors
}

/// Whether some default has fields that its schema does not know.
pub(super) fn has_unpruned(schema: &Value) -> bool {
    check(schema, "", false).iter().any(|error| error.detail == "must not have unknown fields")
}

fn check_node(
    schema: &Value,
    path: &str,
    place: DefaultContext,
    is_root: bool,
    keeps_unknown: bool,
    errors: &mut Vec<FieldError>,
) {
    let Some(fields) = schema.as_object() else { return };
    let embedded = flag(fields, "x-kubernetes-embedded-resource");
    let place = if embedded { DefaultContext::Field } else { place };
    if let Some(default) = fields.get("default").filter(|default| !default.is_null()) {
        check_default(fields, default, &child(path, "default"), place, keeps_unknown, errors);
    }
    if let Some(items) = fields.get("items") {
        check_node(items, &child(path, "items"), place, false, keeps_unknown, errors);
    }
    for (name, nested) in properties(fields) {
        let is_metadata = matches!(name.as_str(), "metadata" | "apiVersion" | "kind");
        let place =
            if (embedded || is_root) && is_metadata { DefaultContext::Metadata } else { place };
        check_node(nested, &property(path, name), place, false, keeps_unknown, errors);
    }
}

fn check_default(
    schema: &Map<String, Value>,
    default: &Value,
    path: &str,
    place: DefaultContext,
    keeps_unknown: bool,
    errors: &mut Vec<FieldError>,
) {
    // The default as the one field of an object.
    let whole = json!({"type": "object", "properties": {"x": schema}});
    let Ok(known) = Schema::from_crd(&whole, false) else { return };
    let object = json!({"x": default});
    if place == DefaultContext::Field && !keeps_unknown {
        let mut pruned = object.clone();
        prune(&known, &mut pruned);
        if pruned != object {
            let detail = "must not have unknown fields";
            let error = FieldError::new(path, FieldErrorKind::Invalid, detail);
            errors.push(error.with_value(default.clone()));
        }
    }
    // Messages and paths are those of an object that consists of the default alone.
    errors.extend(validate(&known, &object).into_iter().map(|mut error| {
        let inner = error.path.strip_prefix('x').unwrap_or(&error.path).to_owned();
        error.path = match inner.as_str() {
            "<nil>" => path.to_owned(),
            inner if inner.starts_with('[') => format!("{path}.{inner}"),
            inner => format!("{path}{inner}"),
        };
        error.detail = match error.detail.strip_prefix('x') {
            Some(detail) => detail.trim_start_matches('.').to_owned(),
            None => error.detail.replacen("\"x", "\"", 1),
        };
        error
    }));
}
