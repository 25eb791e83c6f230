//! JSON to values, by declared type.
//!
//! Upstream: k8s.io/apiserver/pkg/cel/common/valuesunstructured.go: UnstructuredToVal
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use k8s_cel::{ListKind, Value};
use serde_json::Value as Json;

use super::declare::{Declared, ListType, Shape};

/// The value of JSON. What does not fit its type stays what it is: the schema's own validation has
/// reported it.
pub(super) fn value(json: &Json, declared: &Declared) -> Value {
    match (&declared.shape, json) {
        (Shape::Object, Json::Object(entries)) => {
            let fields = declared.fields.iter().filter_map(|(escaped, field)| {
                let json = entries.get(&field.name)?;
                Some((escaped.clone(), value(json, &field.declared)))
            });
            Value::object(&declared.of.to_string(), fields)
        }
        (Shape::Map, Json::Object(entries)) => Value::map(entries.iter().map(|(key, json)| {
            let converted = match &declared.element {
                Some(element) => value(json, element),
                None => Value::from_json(json),
            };
            (key.clone(), converted)
        })),
        (Shape::List(kind), Json::Array(items)) => {
            let items = items
                .iter()
                .map(|item| match &declared.element {
                    Some(element) => value(item, element),
                    None => Value::from_json(item),
                })
                .collect();
            let kind = match kind {
                ListType::Atomic => ListKind::Atomic,
                ListType::Set => ListKind::Set,
                ListType::Map(keys) => {
                    let escaped = keys.iter().filter_map(|key| k8s_cel::escape_field_name(key));
                    ListKind::Map(escaped.collect())
                }
            };
            Value::list_of_kind(items, kind)
        }
        (Shape::Number, Json::Number(number)) => Value::Double(number.as_f64().unwrap_or_default()),
        (Shape::Integer, Json::Number(number)) => match (number.as_i64(), number.as_f64()) {
            (Some(number), _) => Value::Int(number),
            (None, number) => Value::Int(number.unwrap_or_default() as i64),
        },
        (Shape::Bytes, Json::String(text)) => match STANDARD.decode(text) {
            Ok(bytes) => Value::Bytes(bytes.into()),
            Err(_) => Value::from(text.as_str()),
        },
        (Shape::Duration, Json::String(text)) => {
            Value::duration_from(text).unwrap_or_else(|| Value::from(text.as_str()))
        }
        (Shape::Date, Json::String(text)) => {
            let moment = Value::timestamp_from(&format!("{text}T00:00:00Z"));
            moment.unwrap_or_else(|| Value::from(text.as_str()))
        }
        (Shape::DateTime, Json::String(text)) => {
            let moment = Value::timestamp_from(&text.to_uppercase());
            moment.unwrap_or_else(|| Value::from(text.as_str()))
        }
        (_, other) => Value::from_json(other),
    }
}
