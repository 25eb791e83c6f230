//! Whether a CRD's schema is structural: apiextensions' rules, without which no field has one type.
use serde_json::{Map, Value};

use crate::{FieldError, FieldErrorKind};

/// Where in the schema a type stands; the messages differ.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Level {
    Root,
    Item,
    Field,
}

/// Everything that keeps `schema` from being structural, with paths below `openAPIV3Schema`.
pub(super) fn check(schema: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    check_node(schema, Level::Root, "", &mut errors);
    errors
}

fn child(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

fn flag(schema: &Map<String, Value>, key: &str) -> bool {
    schema.get(key).and_then(Value::as_bool).unwrap_or(false)
}

fn check_node(schema: &Value, level: Level, path: &str, errors: &mut Vec<FieldError>) {
    let Some(schema) = schema.as_object() else { return };
    let declared = schema.get("type").and_then(Value::as_str).unwrap_or("");
    match schema.get("items") {
        Some(items) => check_node(items, Level::Item, &child(path, "items"), errors),
        None if declared == "array" => errors.push(FieldError::new(
            child(path, "items"),
            FieldErrorKind::Required,
            "must be specified",
        )),
        None => {}
    }
    if let Some(properties) = schema.get("properties").and_then(Value::as_object) {
        for (name, property) in properties {
            let below = child(path, &format!("properties[{name}]"));
            check_node(property, Level::Field, &below, errors);
        }
    }
    if let Some(additional) = schema.get("additionalProperties") {
        let below = child(path, "additionalProperties");
        if level == Level::Root {
            errors.push(FieldError::new(
                &below,
                FieldErrorKind::Forbidden,
                "must not be used at the root",
            ));
        }
        check_node(additional, Level::Field, &below, errors);
    }
    check_type(schema, declared, level, path, errors);
    check_extensions(schema, path, errors);
    check_validations(schema, path, errors);
}

fn check_type(
    schema: &Map<String, Value>,
    declared: &str,
    level: Level,
    path: &str,
    errors: &mut Vec<FieldError>,
) {
    let at = child(path, "type");
    let untyped_is_fine = flag(schema, "x-kubernetes-int-or-string")
        || flag(schema, "x-kubernetes-preserve-unknown-fields");
    if flag(schema, "x-kubernetes-embedded-resource") && declared != "object" {
        let detail = "must be object if x-kubernetes-embedded-resource is true";
        errors.push(if declared.is_empty() {
            FieldError::new(at, FieldErrorKind::Required, detail)
        } else {
            FieldError::new(at, FieldErrorKind::Invalid, detail).with_value(declared.into())
        });
        return;
    }
    if declared.is_empty() && !untyped_is_fine {
        let detail = match level {
            Level::Root => "must not be empty at the root",
            Level::Item => "must not be empty for specified array items",
            Level::Field => "must not be empty for specified object fields",
        };
        errors.push(FieldError::new(at, FieldErrorKind::Required, detail));
    } else if level == Level::Root && !declared.is_empty() && declared != "object" {
        errors.push(
            FieldError::new(at, FieldErrorKind::Invalid, "must be object at the root")
                .with_value(declared.into()),
        );
    }
}

fn check_extensions(schema: &Map<String, Value>, path: &str, errors: &mut Vec<FieldError>) {
    let detail = "must be false if x-kubernetes-int-or-string is true";
    for name in ["x-kubernetes-preserve-unknown-fields", "x-kubernetes-embedded-resource"] {
        if flag(schema, "x-kubernetes-int-or-string") && flag(schema, name) {
            errors.push(
                FieldError::new(child(path, name), FieldErrorKind::Invalid, detail)
                    .with_value(true.into()),
            );
        }
    }
    let no_properties =
        schema.get("properties").and_then(Value::as_object).is_none_or(Map::is_empty);
    if flag(schema, "x-kubernetes-embedded-resource")
        && !flag(schema, "x-kubernetes-preserve-unknown-fields")
        && no_properties
    {
        errors.push(FieldError::new(
            child(path, "properties"),
            FieldErrorKind::Required,
            "must not be empty if x-kubernetes-embedded-resource is true without \
             x-kubernetes-preserve-unknown-fields",
        ));
    }
}

/// Value validations may narrow types, not declare them: the two int-or-string patterns excepted.
fn check_validations(schema: &Map<String, Value>, path: &str, errors: &mut Vec<FieldError>) {
    let int_or_string = flag(schema, "x-kubernetes-int-or-string");
    let is_choice = |value: Option<&Value>| {
        value.is_some_and(|value| {
            let types: Vec<&str> = value
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(|item| item.get("type")?.as_str())
                .collect();
            types == ["integer", "string"]
        })
    };
    for key in ["allOf", "anyOf", "oneOf"] {
        let Some(list) = schema.get(key).and_then(Value::as_array) else { continue };
        if key == "anyOf" && int_or_string && is_choice(schema.get(key)) {
            continue;
        }
        for (index, nested) in list.iter().enumerate() {
            let at = child(path, &format!("{key}[{index}]"));
            let first_choice = key == "allOf" && index == 0 && is_choice(nested.get("anyOf"));
            if !(int_or_string && first_choice) {
                check_nested(nested, &at, errors);
            }
        }
    }
    if let Some(not) = schema.get("not") {
        check_nested(not, &child(path, "not"), errors);
    }
}

fn check_nested(nested: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let Some(nested) = nested.as_object() else { return };
    const FORBIDDEN: [(&str, &str); 11] = [
        ("additionalProperties", "must be undefined to be structural"),
        ("type", "must be empty to be structural"),
        ("default", "must be undefined to be structural"),
        ("title", "must be empty to be structural"),
        ("description", "must be empty to be structural"),
        ("nullable", "must be false to be structural"),
        ("x-kubernetes-preserve-unknown-fields", "must be false to be structural"),
        ("x-kubernetes-embedded-resource", "must be false to be structural"),
        ("x-kubernetes-int-or-string", "must be false to be structural"),
        ("x-kubernetes-list-map-keys", "must be empty to be structural"),
        ("x-kubernetes-list-type", "must be undefined to be structural"),
    ];
    for (key, detail) in FORBIDDEN {
        let says_nothing = |value: &Value| match value {
            Value::Bool(value) => !value,
            Value::String(value) => value.is_empty(),
            Value::Array(value) => value.is_empty(),
            Value::Null | Value::Number(_) | Value::Object(_) => false,
        };
        if nested.get(key).is_some_and(|value| !says_nothing(value)) {
            errors.push(FieldError::new(child(path, key), FieldErrorKind::Forbidden, detail));
        }
    }
    if let Some(items) = nested.get("items") {
        check_nested(items, &child(path, "items"), errors);
    }
    for (name, property) in
        nested.get("properties").and_then(Value::as_object).into_iter().flatten()
    {
        check_nested(property, &child(path, &format!("properties[{name}]")), errors);
    }
    for key in ["allOf", "anyOf", "oneOf"] {
        for (index, inner) in
            nested.get(key).and_then(Value::as_array).into_iter().flatten().enumerate()
        {
            check_nested(inner, &child(path, &format!("{key}[{index}]")), errors);
        }
    }
    if let Some(not) = nested.get("not") {
        check_nested(not, &child(path, "not"), errors);
    }
}
