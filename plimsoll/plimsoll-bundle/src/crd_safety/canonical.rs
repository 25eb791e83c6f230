//! Schemas in a form in which equal ones are equal.
//!
//! What says nothing is left out (an empty list, `false`, an empty text), as are fields that no
//! schema has; numbers that are equal are written alike.
//!
//! Upstream: k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1/types_jsonschema.go: JSONSchemaProps

use serde_json::{Map, Number, Value};

/// How much of a schema is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Detail {
    /// Everything.
    All,
    /// What affects objects: no texts for people.
    Meaning,
}

/// What is the value of a field of a schema.
#[derive(Clone, Copy)]
enum FieldForm {
    /// Of no effect on objects.
    Documentation,
    Text,
    Flag,
    /// A value that is kept unless it is null.
    Plain,
    /// A list of values.
    List,
    /// The rules of CEL.
    Rules,
    /// A schema, or a list of them, or a boolean.
    Schema,
    Schemas,
    /// Schemas by name.
    SchemaMap,
}

/// The fields of a schema.
const FIELDS: &[(&str, FieldForm)] = &[
    ("$ref", FieldForm::Plain),
    ("$schema", FieldForm::Documentation),
    ("additionalItems", FieldForm::Schema),
    ("additionalProperties", FieldForm::Schema),
    ("allOf", FieldForm::Schemas),
    ("anyOf", FieldForm::Schemas),
    ("default", FieldForm::Plain),
    ("definitions", FieldForm::SchemaMap),
    ("dependencies", FieldForm::SchemaMap),
    ("description", FieldForm::Documentation),
    ("enum", FieldForm::List),
    ("example", FieldForm::Documentation),
    ("exclusiveMaximum", FieldForm::Flag),
    ("exclusiveMinimum", FieldForm::Flag),
    ("externalDocs", FieldForm::Documentation),
    ("format", FieldForm::Text),
    ("id", FieldForm::Documentation),
    ("items", FieldForm::Schema),
    ("maxItems", FieldForm::Plain),
    ("maxLength", FieldForm::Plain),
    ("maxProperties", FieldForm::Plain),
    ("maximum", FieldForm::Plain),
    ("minItems", FieldForm::Plain),
    ("minLength", FieldForm::Plain),
    ("minProperties", FieldForm::Plain),
    ("minimum", FieldForm::Plain),
    ("multipleOf", FieldForm::Plain),
    ("not", FieldForm::Schema),
    ("nullable", FieldForm::Flag),
    ("oneOf", FieldForm::Schemas),
    ("pattern", FieldForm::Text),
    ("patternProperties", FieldForm::SchemaMap),
    ("properties", FieldForm::SchemaMap),
    ("required", FieldForm::List),
    ("title", FieldForm::Documentation),
    ("type", FieldForm::Text),
    ("uniqueItems", FieldForm::Flag),
    ("x-kubernetes-embedded-resource", FieldForm::Flag),
    ("x-kubernetes-int-or-string", FieldForm::Flag),
    ("x-kubernetes-list-map-keys", FieldForm::List),
    ("x-kubernetes-list-type", FieldForm::Plain),
    ("x-kubernetes-map-type", FieldForm::Plain),
    ("x-kubernetes-preserve-unknown-fields", FieldForm::Plain),
    ("x-kubernetes-validations", FieldForm::Rules),
];
/// Fields of a rule that say what is wrong with an object, not whether anything is.
const RULE_TEXTS: [&str; 4] = ["fieldPath", "message", "messageExpression", "reason"];

/// Whether a field of a schema is of no effect on objects.
pub(super) fn is_documentation(field: &str) -> bool {
    FIELDS.iter().any(|(name, form)| *name == field && matches!(form, FieldForm::Documentation))
}

/// A schema in canonical form; one that is no mapping says nothing.
pub(super) fn canonical(schema: &Value, detail: Detail) -> Map<String, Value> {
    let mut out = Map::new();
    let Some(fields) = schema.as_object() else { return out };
    for (name, form) in FIELDS {
        if let Some(value) = fields.get(*name).and_then(|value| field(value, *form, detail)) {
            out.insert((*name).to_owned(), value);
        }
    }
    out
}

fn field(value: &Value, form: FieldForm, detail: Detail) -> Option<Value> {
    let schema = |value: &Value| match value {
        Value::Object(_) => Value::Object(canonical(value, detail)),
        other => plain(other),
    };
    let schemas = |list: &[Value]| Value::Array(list.iter().map(schema).collect());
    match form {
        FieldForm::Documentation if detail == Detail::Meaning => None,
        FieldForm::Documentation => {
            (!value.is_null() && value.as_str() != Some("")).then(|| plain(value))
        }
        FieldForm::Plain => (!value.is_null()).then(|| plain(value)),
        FieldForm::Text => value.as_str().filter(|text| !text.is_empty()).map(Value::from),
        FieldForm::Flag => (*value == true).then_some(Value::Bool(true)),
        FieldForm::List => {
            let list = value.as_array().filter(|list| !list.is_empty())?;
            Some(Value::Array(list.iter().map(plain).collect()))
        }
        FieldForm::Rules => {
            let list = value.as_array().filter(|list| !list.is_empty())?;
            Some(Value::Array(list.iter().map(|it| rule(it, detail)).collect()))
        }
        FieldForm::Schema => match value {
            Value::Array(list) => Some(schemas(list)),
            Value::Null => None,
            other => Some(schema(other)),
        },
        FieldForm::Schemas => {
            let list = value.as_array().filter(|list| !list.is_empty())?;
            Some(schemas(list))
        }
        FieldForm::SchemaMap => {
            let map = value.as_object().filter(|map| !map.is_empty())?;
            Some(Value::Object(map.iter().map(|(name, it)| (name.clone(), schema(it))).collect()))
        }
    }
}

fn rule(rule: &Value, detail: Detail) -> Value {
    let mut rule = plain(rule);
    if let Value::Object(fields) = &mut rule {
        fields.retain(|name, value| {
            let kept = detail == Detail::All || !RULE_TEXTS.contains(&name.as_str());
            kept && !value.is_null() && value.as_str() != Some("")
        });
    }
    rule
}

/// A value in which equal numbers are written alike.
fn plain(value: &Value) -> Value {
    match value {
        Value::Number(number) => whole(number).map_or_else(|| value.clone(), Value::from),
        Value::Array(list) => Value::Array(list.iter().map(plain).collect()),
        Value::Object(map) => {
            Value::Object(map.iter().map(|(name, it)| (name.clone(), plain(it))).collect())
        }
        Value::Null | Value::Bool(_) | Value::String(_) => value.clone(),
    }
}

/// The integer that a number is equal to.
fn whole(number: &Number) -> Option<i64> {
    /// Floating point numbers up to here are exact.
    const EXACT_MAX: f64 = 9_007_199_254_740_992.0;
    let float = number.as_f64().filter(|_| number.is_f64())?;
    if float.fract() != 0.0 || float.abs() > EXACT_MAX {
        return None;
    }
    format!("{float:.0}").parse().ok()
}
