//! Whether everything that value validations speak of is declared outside of them.
//!
//! Upstream: k8s.io/apiextensions-apiserver/pkg/apiserver/schema/complete.go: validateStructuralCompleteness
use serde_json::Value;

use super::{child, choices, properties, property};
use crate::{FieldError, FieldErrorKind};

/// The path of a value validation, and the path at which the structure must declare its subject.
struct RequiredPaths {
    declared: String,
    validated: String,
}

pub(super) fn check(schema: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let places = RequiredPaths { declared: path.to_owned(), validated: path.to_owned() };
    alternatives(schema, schema, &places, errors);
}

fn alternatives(
    validation: &Value,
    schema: &Value,
    places: &RequiredPaths,
    errors: &mut Vec<FieldError>,
) {
    let Some(fields) = validation.as_object() else { return };
    let mut nest = |nested: &Value, name: &str| {
        let validated = child(&places.validated, name);
        let places = RequiredPaths { declared: places.declared.clone(), validated };
        check_nested(nested, Some(schema), &places, errors);
    };
    if let Some(not) = fields.get("not") {
        nest(not, "not");
    }
    for key in ["allOf", "anyOf", "oneOf"] {
        for (index, nested) in choices(fields, key) {
            nest(nested, &format!("{key}[{index}]"));
        }
    }
}

fn check_nested(
    nested: &Value,
    schema: Option<&Value>,
    places: &RequiredPaths,
    errors: &mut Vec<FieldError>,
) {
    let Some(fields) = nested.as_object() else { return };
    let Some(schema) = schema else {
        let detail = format!("because it is defined in {}", places.validated);
        errors.push(FieldError::new(&places.declared, FieldErrorKind::Required, detail));
        return;
    };
    alternatives(nested, schema, places, errors);
    if let Some(items) = fields.get("items") {
        let places = RequiredPaths {
            declared: child(&places.declared, "items"),
            validated: child(&places.validated, "items"),
        };
        check_nested(items, schema.get("items"), &places, errors);
    }
    for (name, validation) in properties(fields) {
        let declared = schema.get("properties").and_then(|declared| declared.get(name));
        let places = RequiredPaths {
            declared: property(&places.declared, name),
            validated: property(&places.validated, name),
        };
        check_nested(validation, declared, &places, errors);
    }
}
