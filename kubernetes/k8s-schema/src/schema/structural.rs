//! Whether a CRD's schema is structural: apiextensions' rules, without which no field has one type.
//!
//! Upstream: k8s.io/apiextensions-apiserver/pkg/apiserver/schema/validation.go: ValidateStructural
use serde_json::{Map, Value, json};

use crate::{FieldError, FieldErrorKind};
use k8s_cel::go::regexp;

mod completeness;

/// Where in the schema a type stands; the messages differ.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Level {
    Root,
    Item,
    Field,
}

/// Everything that keeps `schema`, which stands at `path`, from being structural; sorted.
pub(crate) fn check(schema: &Value, path: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    check_node(schema, Level::Root, path, &mut errors);
    completeness::check(schema, path, &mut errors);
    errors.sort_by_cached_key(ToString::to_string);
    errors
}

pub(crate) fn child(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

pub(crate) fn property(path: &str, name: &str) -> String {
    child(path, &format!("properties[{name}]"))
}

pub(crate) fn flag(schema: &Map<String, Value>, key: &str) -> bool {
    schema.get(key).and_then(Value::as_bool).unwrap_or(false)
}

pub(crate) fn text<'a>(schema: &'a Map<String, Value>, key: &str) -> &'a str {
    schema.get(key).and_then(Value::as_str).unwrap_or_default()
}

pub(crate) fn properties(schema: &Map<String, Value>) -> impl Iterator<Item = (&String, &Value)> {
    schema.get("properties").and_then(Value::as_object).into_iter().flatten()
}

pub(crate) fn choices<'a>(
    schema: &'a Map<String, Value>,
    key: &str,
) -> impl Iterator<Item = (usize, &'a Value)> {
    schema.get(key).and_then(Value::as_array).into_iter().flatten().enumerate()
}

fn invalid(path: String, value: Value, detail: &str) -> FieldError {
    FieldError::new(path, FieldErrorKind::Invalid, detail).with_value(value)
}

fn check_node(schema: &Value, level: Level, path: &str, errors: &mut Vec<FieldError>) {
    let Some(schema) = schema.as_object() else { return };
    let declared = text(schema, "type");
    match schema.get("items") {
        Some(items) => check_node(items, Level::Item, &child(path, "items"), errors),
        None if declared == "array" => errors.push(FieldError::new(
            child(path, "items"),
            FieldErrorKind::Required,
            "must be specified",
        )),
        None => {}
    }
    for (name, property_schema) in properties(schema) {
        check_node(property_schema, Level::Field, &property(path, name), errors);
    }
    if let Some(additional) = schema.get("additionalProperties") {
        check_additional(schema, additional, level, path, errors);
    }
    check_extensions(schema, path, errors);
    let int_or_string = is_choice(schema.get("anyOf"));
    let first_of_all = schema
        .get("allOf")
        .and_then(|all| all.get(0))
        .is_some_and(|first| is_choice(first.get("anyOf")));
    check_validations(schema, int_or_string, first_of_all, path, errors);
    check_type(schema, declared, level, path, errors);
    check_type_metadata(schema, level, path, errors);
}

fn check_additional(
    schema: &Map<String, Value>,
    additional: &Value,
    level: Level,
    path: &str,
    errors: &mut Vec<FieldError>,
) {
    let at = child(path, "additionalProperties");
    if level == Level::Root {
        let detail = "must not be used at the root";
        errors.push(FieldError::new(&at, FieldErrorKind::Forbidden, detail));
    }
    if flag(schema, "x-kubernetes-embedded-resource") {
        let detail = "must not be used if x-kubernetes-embedded-resource is set";
        errors.push(FieldError::new(&at, FieldErrorKind::Forbidden, detail));
    }
    check_node(additional, Level::Field, &at, errors);
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
            FieldError::new(&at, FieldErrorKind::Required, detail)
        } else {
            invalid(at.clone(), declared.into(), detail)
        });
    } else if declared.is_empty() && !untyped_is_fine {
        let detail = match level {
            Level::Root => "must not be empty at the root",
            Level::Item => "must not be empty for specified array items",
            Level::Field => "must not be empty for specified object fields",
        };
        errors.push(FieldError::new(&at, FieldErrorKind::Required, detail));
    }
    if level == Level::Root && !declared.is_empty() && declared != "object" {
        errors.push(invalid(at, declared.into(), "must be object at the root"));
    }
}

/// `apiVersion`, `kind` and `metadata` of an object have the types that they have everywhere.
fn check_type_metadata(
    schema: &Map<String, Value>,
    level: Level,
    path: &str,
    errors: &mut Vec<FieldError>,
) {
    let is_object = level == Level::Root || flag(schema, "x-kubernetes-embedded-resource");
    let declared = |name: &str| {
        let property = schema.get("properties")?.get(name)?.as_object()?;
        Some((property, text(property, "type")))
    };
    for name in ["kind", "apiVersion"] {
        if let Some((_, declared)) = declared(name)
            && is_object
            && declared != "string"
        {
            let at = child(&property(path, name), "type");
            errors.push(invalid(at, declared.into(), "must be string"));
        }
    }
    let Some((metadata, declared)) = declared("metadata") else { return };
    let at = property(path, "metadata");
    if is_object && declared != "object" {
        errors.push(invalid(child(&at, "type"), declared.into(), "must be object"));
    }
    if level == Level::Root && !restricts_names_only(metadata) {
        let detail = "must not specify anything other than name and generateName, but metadata \
                      is implicitly specified";
        errors.push(FieldError::new(at, FieldErrorKind::Forbidden, detail));
    }
}

fn restricts_names_only(metadata: &Map<String, Value>) -> bool {
    let says_something = |(key, value): (&String, &Value)| match (key.as_str(), value) {
        ("type" | "default", _) | (_, Value::Bool(false) | Value::Null) => false,
        ("properties", Value::Object(fields)) => {
            !fields.keys().all(|name| matches!(name.as_str(), "name" | "generateName"))
        }
        (_, Value::Array(list)) => !list.is_empty(),
        (_, Value::String(text)) => !text.is_empty(),
        _ => true,
    };
    !metadata.iter().any(says_something)
}

fn check_extensions(schema: &Map<String, Value>, path: &str, errors: &mut Vec<FieldError>) {
    let detail = "must be false if x-kubernetes-int-or-string is true";
    for name in ["x-kubernetes-preserve-unknown-fields", "x-kubernetes-embedded-resource"] {
        if flag(schema, "x-kubernetes-int-or-string") && flag(schema, name) {
            errors.push(invalid(child(path, name), true.into(), detail));
        }
    }
    if flag(schema, "x-kubernetes-embedded-resource")
        && !flag(schema, "x-kubernetes-preserve-unknown-fields")
        && properties(schema).next().is_none()
    {
        errors.push(FieldError::new(
            child(path, "properties"),
            FieldErrorKind::Required,
            "must not be empty if x-kubernetes-embedded-resource is true without \
             x-kubernetes-preserve-unknown-fields",
        ));
    }
}

/// Whether alternatives are those of an int-or-string.
fn is_choice(alternatives: Option<&Value>) -> bool {
    alternatives.is_some_and(|found| *found == json!([{"type": "integer"}, {"type": "string"}]))
}

/// Value validations may narrow types, not declare them; the two forms of int-or-string excepted.
fn check_validations(
    schema: &Map<String, Value>,
    skip_any: bool,
    skip_first_all: bool,
    path: &str,
    errors: &mut Vec<FieldError>,
) {
    let at = |key: &str, index: usize| child(path, &format!("{key}[{index}]"));
    if !skip_any {
        for (index, nested) in choices(schema, "anyOf") {
            check_nested(nested, false, &at("anyOf", index), errors);
        }
    }
    for (index, nested) in choices(schema, "allOf") {
        check_nested(nested, skip_first_all && index == 0, &at("allOf", index), errors);
    }
    for (index, nested) in choices(schema, "oneOf") {
        check_nested(nested, false, &at("oneOf", index), errors);
    }
    if let Some(not) = schema.get("not") {
        check_nested(not, false, &child(path, "not"), errors);
    }
    let regex = text(schema, "pattern");
    if !regex.is_empty()
        && let Err(problem) = regexp::check(regex)
    {
        let detail = format!("must be a valid regular expression, but isn't: {problem}");
        errors.push(invalid(child(path, "pattern"), regex.into(), &detail));
    }
}

fn check_nested(nested: &Value, skip_any: bool, path: &str, errors: &mut Vec<FieldError>) {
    let Some(nested) = nested.as_object() else { return };
    const FORBIDDEN: [(&str, &str); 13] = [
        ("type", "must be empty to be structural"),
        ("additionalProperties", "must be undefined to be structural"),
        ("default", "must be undefined to be structural"),
        ("title", "must be empty to be structural"),
        ("description", "must be empty to be structural"),
        ("nullable", "must be false to be structural"),
        ("x-kubernetes-preserve-unknown-fields", "must be false to be structural"),
        ("x-kubernetes-embedded-resource", "must be false to be structural"),
        ("x-kubernetes-int-or-string", "must be false to be structural"),
        ("x-kubernetes-list-map-keys", "must be empty to be structural"),
        ("x-kubernetes-list-type", "must be undefined to be structural"),
        ("x-kubernetes-map-type", "must be undefined to be structural"),
        ("x-kubernetes-validations", "must be empty to be structural"),
    ];
    check_validations(nested, skip_any, false, path, errors);
    if let Some(items) = nested.get("items") {
        check_nested(items, false, &child(path, "items"), errors);
    }
    for (name, property_schema) in properties(nested) {
        check_nested(property_schema, false, &property(path, name), errors);
    }
    for (key, detail) in FORBIDDEN {
        let says_nothing = |value: &Value| match value {
            Value::Bool(value) => !value && key != "default" && key != "additionalProperties",
            Value::String(value) => value.is_empty() && key != "default",
            Value::Array(value) => value.is_empty() && key != "default",
            Value::Null => true,
            Value::Number(_) | Value::Object(_) => false,
        };
        if nested.get(key).is_some_and(|value| !says_nothing(value)) {
            errors.push(FieldError::new(child(path, key), FieldErrorKind::Forbidden, detail));
        }
    }
    if nested.get("properties").is_some_and(|properties| properties.get("metadata").is_some()) {
        let detail = "must not be specified in a nested context";
        let at = property(path, "metadata");
        errors.push(FieldError::new(at, FieldErrorKind::Forbidden, detail));
    }
}
