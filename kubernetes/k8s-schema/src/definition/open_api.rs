//! Keywords of a schema, one by one: unsupported ones, and those that do not go together.
//!
//! Upstream: k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation/validation.go: specStandardValidatorV3
//! Upstream: k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation/validation.go: validateMapListKeysMapSet
use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::Tolerance;
use crate::schema::structural::{child, choices, flag, properties, property, text};
use crate::validate::formats;
use crate::{FieldError, FieldErrorKind};

const TYPES: [&str; 6] = ["array", "boolean", "integer", "number", "object", "string"];

/// What surrounds a schema.
#[derive(Clone, Default)]
struct SchemaContext {
    tolerance: Tolerance,
    /// Why there may be no default here.
    no_defaults: Option<String>,
    /// Inside of `apiVersion`, `kind` or `metadata`.
    in_metadata: bool,
}

pub(super) fn check(schema: &Value, path: &str, tolerance: Tolerance) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let context = SchemaContext { tolerance, ..SchemaContext::default() };
    check_node(schema, path, &context, true, &mut errors);
    errors
}

fn forbidden(path: String, detail: impl Into<String>) -> FieldError {
    FieldError::new(path, FieldErrorKind::Forbidden, detail)
}

fn required(path: String, detail: &str) -> FieldError {
    FieldError::new(path, FieldErrorKind::Required, detail)
}

fn invalid(path: String, value: Value, detail: &str) -> FieldError {
    FieldError::new(path, FieldErrorKind::Invalid, detail).with_value(value)
}

fn not_supported(path: String, value: &str, supported: &[&str]) -> FieldError {
    let listed: Vec<String> = supported.iter().map(|value| format!("{value:?}")).collect();
    let detail = format!("supported values: {}", listed.join(", "));
    FieldError::new(path, FieldErrorKind::NotSupported, detail).with_value(value.into())
}

fn check_node(
    schema: &Value,
    path: &str,
    context: &SchemaContext,
    is_root: bool,
    errors: &mut Vec<FieldError>,
) {
    let Some(fields) = schema.as_object() else { return };
    check_standard(fields, path, context, errors);
    if flag(fields, "uniqueItems") {
        let detail =
            "uniqueItems cannot be set to true since the runtime complexity becomes quadratic";
        errors.push(forbidden(child(path, "uniqueItems"), detail));
    }
    check_maps(fields, path, context, is_root, errors);
    let mut nest = |nested: &Value, name: &str| {
        check_node(nested, &child(path, name), context, false, errors);
    };
    if let Some(not) = fields.get("not") {
        nest(not, "not");
    }
    for key in ["allOf", "oneOf", "anyOf"] {
        for (index, nested) in choices(fields, key) {
            nest(nested, &format!("{key}[{index}]"));
        }
    }
    for (name, nested) in fields.get("definitions").and_then(Value::as_object).into_iter().flatten()
    {
        nest(nested, &format!("definitions[{name}]"));
    }
    match fields.get("items") {
        Some(Value::Array(list)) => {
            for (index, nested) in list.iter().enumerate() {
                nest(nested, &format!("items[{index}]"));
            }
        }
        Some(items) => nest(items, "items"),
        None => {}
    }
    check_extensions(fields, path, errors);
    check_list_type(fields, path, context, errors);
    if !context.tolerance.loose_map_keys {
        check_map_keys(fields, path, errors);
    }
    check_rules(fields, path, errors);
}

/// What no CRD may use.
fn check_standard(
    schema: &Map<String, Value>,
    path: &str,
    context: &SchemaContext,
    errors: &mut Vec<FieldError>,
) {
    let declared = text(schema, "type");
    if !context.tolerance.unknown_types && !declared.is_empty() && !TYPES.contains(&declared) {
        errors.push(not_supported(child(path, "type"), declared, &TYPES));
    }
    if let (Some(_), Some(reason)) = (schema.get("default"), &context.no_defaults) {
        let detail = format!("must not be set {reason}");
        errors.push(forbidden(child(path, "default"), detail));
    }
    let is_empty = |value: &Value| match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Object(map) => map.is_empty(),
        _ => false,
    };
    for key in ["id", "additionalItems", "patternProperties", "definitions", "dependencies", "$ref"]
    {
        if schema.get(key).is_some_and(|value| !is_empty(value)) {
            errors.push(forbidden(child(path, key), format!("{key} is not supported")));
        }
    }
    if declared == "null" {
        let detail = "type cannot be set to null, use nullable as an alternative";
        errors.push(forbidden(child(path, "type"), detail));
    }
    if schema.get("items").is_some_and(Value::is_array) {
        let detail = "items must be a schema object and not an array";
        errors.push(forbidden(child(path, "items"), detail));
    }
    if context.in_metadata && flag(schema, "x-kubernetes-embedded-resource") {
        let detail = "must not be used inside of resource meta";
        errors.push(forbidden(child(path, "x-kubernetes-embedded-resource"), detail));
    }
}

fn check_maps(
    schema: &Map<String, Value>,
    path: &str,
    context: &SchemaContext,
    is_root: bool,
    errors: &mut Vec<FieldError>,
) {
    let at = child(path, "additionalProperties");
    if let Some(additional) = schema.get("additionalProperties") {
        if properties(schema).next().is_some() && *additional != true {
            let detail = "additionalProperties and properties are mutual exclusive";
            errors.push(forbidden(at.clone(), detail));
        }
        let mut inner = context.clone();
        if context.in_metadata {
            let reason = "inside additionalProperties applying to object metadata";
            inner.no_defaults = Some(reason.to_owned());
        }
        check_node(additional, &at, &inner, false, errors);
    }
    let is_object = is_root || flag(schema, "x-kubernetes-embedded-resource");
    for (name, nested) in properties(schema) {
        let mut inner = context.clone();
        if is_object && matches!(name.as_str(), "metadata" | "kind" | "apiVersion") {
            inner.in_metadata = true;
            if is_root {
                inner.no_defaults = Some(format!("in top-level {name}"));
            }
        }
        check_node(nested, &property(path, name), &inner, false, errors);
    }
}

fn check_extensions(schema: &Map<String, Value>, path: &str, errors: &mut Vec<FieldError>) {
    const PRESERVE: &str = "x-kubernetes-preserve-unknown-fields";
    let declared = text(schema, "type");
    if schema.get(PRESERVE) == Some(&Value::Bool(false)) {
        errors.push(invalid(child(path, PRESERVE), false.into(), "must be true or undefined"));
    }
    if let Some(map_type) = schema.get("x-kubernetes-map-type").and_then(Value::as_str) {
        let detail = "must be object if x-kubernetes-map-type is specified";
        check_declared(declared, "object", path, detail, errors);
        if !matches!(map_type, "atomic" | "granular") {
            let at = child(path, "x-kubernetes-map-type");
            errors.push(not_supported(at, map_type, &["atomic", "granular"]));
        }
    }
}

fn check_declared(
    declared: &str,
    wanted: &str,
    path: &str,
    detail: &str,
    errors: &mut Vec<FieldError>,
) {
    let at = child(path, "type");
    if declared.is_empty() {
        errors.push(required(at, detail));
    } else if declared != wanted {
        errors.push(invalid(at, declared.into(), detail));
    }
}

fn items_of(schema: &Map<String, Value>) -> Option<&Map<String, Value>> {
    schema.get("items")?.as_object()
}

/// The keyword that keeps the items of a set from being atomic.
fn non_atomic(items: &Map<String, Value>) -> Option<&'static str> {
    let list_type = items.get("x-kubernetes-list-type").and_then(Value::as_str);
    match text(items, "type") {
        "array" if list_type.is_some_and(|kind| kind != "atomic") => Some("x-kubernetes-list-type"),
        "object" if text(items, "x-kubernetes-map-type") != "atomic" => {
            Some("x-kubernetes-map-type")
        }
        _ => None,
    }
}

fn check_list_type(
    schema: &Map<String, Value>,
    path: &str,
    context: &SchemaContext,
    errors: &mut Vec<FieldError>,
) {
    let at = child(path, "x-kubernetes-list-type");
    let list_type = schema.get("x-kubernetes-list-type").and_then(Value::as_str);
    if let Some(kind) = list_type {
        let detail = "must be array if x-kubernetes-list-type is specified";
        let declared = text(schema, "type");
        check_declared(declared, "array", path, detail, errors);
        let items = items_of(schema)
            .filter(|_| declared == "array" && kind == "set" && !context.tolerance.non_atomic_sets);
        if let Some((items, keyword)) = items.and_then(|items| Some((items, non_atomic(items)?))) {
            let detail = "must be atomic as item of a list with x-kubernetes-list-type=set";
            let shown = items.get("x-kubernetes-list-type").cloned().unwrap_or_default();
            errors.push(invalid(child(path, &format!("items.{keyword}")), shown, detail));
        }
        if !matches!(kind, "atomic" | "set" | "map") {
            errors.push(not_supported(at.clone(), kind, &["atomic", "set", "map"]));
        }
    }
    let keys = schema.get("x-kubernetes-list-map-keys").and_then(Value::as_array);
    if keys.is_some_and(|keys| !keys.is_empty()) {
        let detail = "must be map if x-kubernetes-list-map-keys is non-empty";
        match list_type {
            None => errors.push(required(at, detail)),
            Some("map") => {}
            Some(other) => errors.push(invalid(at, other.into(), detail)),
        }
    }
    if list_type == Some("map") {
        check_list_map(schema, path, errors);
    }
}

fn check_list_map(schema: &Map<String, Value>, path: &str, errors: &mut Vec<FieldError>) {
    let at = child(path, "x-kubernetes-list-map-keys");
    let keys = schema.get("x-kubernetes-list-map-keys");
    let names: Vec<&str> =
        keys.and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect();
    if names.is_empty() {
        let detail = "must not be empty if x-kubernetes-list-type is map";
        errors.push(required(at.clone(), detail));
    }
    let items = match schema.get("items") {
        None => {
            let detail = "must have a schema if x-kubernetes-list-type is map";
            return errors.push(required(child(path, "items"), detail));
        }
        Some(Value::Object(items)) => items,
        Some(other) => {
            let detail = "must only have a single schema if x-kubernetes-list-type is map";
            return errors.push(invalid(child(path, "items"), other.clone(), detail));
        }
    };
    let declared = text(items, "type");
    if declared != "object" {
        let detail = "must be object if parent array's x-kubernetes-list-type is map";
        return errors.push(invalid(child(path, "items.type"), declared.into(), detail));
    }
    let mut seen = BTreeSet::new();
    for name in names {
        let shown = || keys.cloned().unwrap_or_default();
        let field = items.get("properties").and_then(|fields| fields.get(name)?.as_object());
        match field.map(|field| text(field, "type")) {
            Some("array" | "object") => {
                let at = child(&property(&child(path, "items"), name), "type");
                let detail =
                    "must be a scalar type if parent array's x-kubernetes-list-type is map";
                errors.push(invalid(at, declared.into(), detail));
            }
            Some(_) => {}
            None => {
                let detail = "entries must all be names of item properties";
                errors.push(invalid(at.clone(), shown(), detail));
            }
        }
        if !seen.insert(name) {
            errors.push(invalid(at.clone(), shown(), "must not contain duplicate entries"));
        }
    }
}

/// Items of sets and maps are there, and so are the keys of maps.
fn check_map_keys(schema: &Map<String, Value>, path: &str, errors: &mut Vec<FieldError>) {
    let Some(items) = items_of(schema) else { return };
    let kind = text(schema, "x-kubernetes-list-type");
    if !matches!(kind, "set" | "map") {
        return;
    }
    if flag(items, "nullable") {
        let detail = format!("cannot be nullable when x-kubernetes-list-type is {kind}");
        errors.push(forbidden(child(path, "items.nullable"), detail));
    }
    if kind != "map" {
        return;
    }
    let is_required = |name: &str| choices(items, "required").any(|(_, required)| required == name);
    for (_, name) in choices(schema, "x-kubernetes-list-map-keys") {
        let Some(name) = name.as_str() else { continue };
        let field = items.get("properties").and_then(|fields| fields.get(name)?.as_object());
        let Some(field) = field else { continue };
        let at = property(&child(path, "items"), name);
        if !is_required(name) && field.get("default").is_none_or(Value::is_null) {
            let detail = "this property is in x-kubernetes-list-map-keys, so it must have a \
                          default or be a required property";
            errors.push(required(child(&at, "default"), detail));
        }
        if flag(field, "nullable") {
            let detail = "this property is in x-kubernetes-list-map-keys, so it cannot be nullable";
            errors.push(forbidden(child(&at, "nullable"), detail));
        }
    }
}

/// The form of `x-kubernetes-validations`, without its expressions.
fn check_rules(schema: &Map<String, Value>, path: &str, errors: &mut Vec<FieldError>) {
    const REASONS: [&str; 4] =
        ["FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"];
    let has_break = |text: &str| text.contains(['\n', '\r']);
    for (index, rule) in choices(schema, "x-kubernetes-validations") {
        let Some(fields) = rule.as_object() else { continue };
        let at = |name: &str| child(path, &format!("x-kubernetes-validations[{index}].{name}"));
        let (expression, message) = (text(fields, "rule").trim(), text(fields, "message"));
        let trimmed = message.trim();
        if expression.is_empty() {
            errors.push(required(at("rule"), "rule is not specified"));
        } else if !message.is_empty() && trimmed.is_empty() {
            let detail = "must be non-empty if specified";
            errors.push(invalid(at("message"), message.into(), detail));
        } else if has_break(trimmed) {
            errors.push(invalid(at("message"), message.into(), "must not contain line breaks"));
        } else if has_break(expression) && trimmed.is_empty() {
            let detail = "message must be specified if rule contains line breaks";
            errors.push(required(at("message"), detail));
        }
        let dynamic = text(fields, "messageExpression");
        if !dynamic.is_empty() && dynamic.trim().is_empty() {
            let detail = "messageExpression must be non-empty if specified";
            errors.push(required(at("messageExpression"), detail));
        }
        if let Some(reason) = fields.get("reason").and_then(Value::as_str)
            && !REASONS.contains(&reason)
        {
            errors.push(not_supported(at("reason"), reason, &REASONS));
        }
        let field_path = text(fields, "fieldPath");
        let mut wrong = |detail: &str| {
            errors.push(invalid(at("fieldPath"), field_path.into(), detail));
        };
        if !field_path.is_empty() && field_path.trim().is_empty() {
            wrong("must be non-empty if specified");
        }
        if has_break(field_path) {
            wrong("must not contain line breaks");
        }
        let node = Value::Object(schema.clone());
        if !field_path.is_empty() && super::field_path::find(field_path, &node, true).is_err() {
            wrong("must be a valid path");
        }
    }
}

/// Calls `act` with a schema and all schemas in it.
fn visit<'a>(schema: &'a Value, act: &mut dyn FnMut(&'a Map<String, Value>)) {
    let Some(fields) = schema.as_object() else { return };
    act(fields);
    match fields.get("items") {
        Some(Value::Array(list)) => list.iter().for_each(|nested| visit(nested, act)),
        Some(items) => visit(items, act),
        None => {}
    }
    for key in ["allOf", "anyOf", "oneOf"] {
        choices(fields, key).for_each(|(_, nested)| visit(nested, act));
    }
    for key in ["not", "additionalProperties"] {
        if let Some(nested) = fields.get(key) {
            visit(nested, act);
        }
    }
    properties(fields).for_each(|(_, nested)| visit(nested, act));
}

/// Why a schema cannot even be read as a structural one.
pub(super) fn unsupported(schema: &Value) -> Option<String> {
    let mut found = None;
    visit(schema, &mut |fields| {
        let problem = ["id", "$schema", "$ref", "patternProperties", "dependencies"]
            .into_iter()
            .chain(["additionalItems", "definitions"])
            .find(|key| fields.get(*key).is_some_and(|value| !value.is_null() && value != ""))
            .map(|key| {
                let name = if key == "$schema" { "schema" } else { key };
                format!("OpenAPIV3Schema '{name}' is not supported")
            });
        let listed = fields
            .get("items")
            .is_some_and(Value::is_array)
            .then(|| "OpenAPIV3Schema 'items' must be a schema, but is an array".to_owned());
        let not_preserved = (fields.get("x-kubernetes-preserve-unknown-fields")
            == Some(&Value::Bool(false)))
        .then(|| {
            "internal error: 'x-kubernetes-preserve-unknown-fields' must be true or undefined"
                .to_owned()
        });
        found = found.take().or(problem).or(listed).or(not_preserved);
    });
    found
}

/// The errors that an update may leave as they are.
pub(super) fn faults(schema: &Value) -> Tolerance {
    let mut found = Tolerance::default();
    visit(schema, &mut |fields| {
        let declared = text(fields, "type");
        found.unknown_types |= !declared.is_empty() && !TYPES.contains(&declared);
        found.non_atomic_sets |= text(fields, "x-kubernetes-list-type") == "set"
            && items_of(fields).and_then(non_atomic).is_some();
        let mut errors = Vec::new();
        check_map_keys(fields, "", &mut errors);
        found.loose_map_keys |= !errors.is_empty();
    });
    found
}

pub(super) fn unrecognized_formats(schema: &Value) -> Vec<String> {
    let mut found = Vec::new();
    visit(schema, &mut |fields| {
        let format = text(fields, "format");
        let known = match text(fields, "type") {
            "" | "string" => formats::is_known(format),
            "integer" => matches!(format, "int32" | "int64"),
            "number" => matches!(format, "float" | "double"),
            _ => false,
        };
        if !format.is_empty() && !known {
            found.push(format.to_owned());
        }
    });
    found
}

pub(super) fn compound_set_items(schema: &Value) -> Vec<&'static str> {
    let mut found = BTreeSet::new();
    visit(schema, &mut |fields| {
        if text(fields, "x-kubernetes-list-type") == "set" {
            match items_of(fields).map(|items| text(items, "type")) {
                Some("object") => drop(found.insert("object")),
                Some("array") => drop(found.insert("array")),
                _ => {}
            }
        }
    });
    found.into_iter().collect()
}
