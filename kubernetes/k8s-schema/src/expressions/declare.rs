//! Schemas to declared types, with what is known of sizes.
//!
//! Upstream: k8s.io/apiserver/pkg/cel/common/schemas.go: SchemaDeclType
use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_cel::{SizeEstimate, SizeEstimator, Type};
use serde_json::{Map, Value};

use k8s_cel::escape_field_name;

/// The largest request.
const REQUEST_SIZE_MAX: u64 = 3 * 1024 * 1024;
const TIME_SIZE_MAX: u64 = 32;
const DATE_SIZE: u64 = 12;

/// The declared type of a schema.
#[derive(Clone, Debug)]
pub(super) struct Declared {
    pub(super) of: Type,
    /// Most elements, or characters, or octets.
    most: u64,
    /// The least that it takes in JSON.
    pub(super) least_size: u64,
    /// The declared fields by the names that expressions use.
    pub(super) fields: BTreeMap<String, Field>,
    /// The items of a list, the values of a map.
    pub(super) element: Option<Arc<Declared>>,
    pub(super) shape: Shape,
}

/// A declared field.
#[derive(Clone, Debug)]
pub(super) struct Field {
    /// Its name in JSON.
    pub(super) name: String,
    pub(super) declared: Arc<Declared>,
}

/// How JSON becomes a value of the type.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Shape {
    /// Whatever it is: numbers and text alike.
    Any,
    Object,
    Map,
    /// A list, with the keys of its items if they have any.
    List(ListType),
    Text,
    Bytes,
    Duration,
    Date,
    DateTime,
    Boolean,
    Integer,
    Number,
}

/// `x-kubernetes-list-type`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ListType {
    Atomic,
    Set,
    Map(Arc<[String]>),
}

/// Whether there is any rule in a schema.
pub(super) fn has_rules(schema: &Value) -> bool {
    let Some(schema) = schema.as_object() else { return false };
    let children = |key: &str| schema.get(key).and_then(Value::as_object).into_iter().flatten();
    schema.get("x-kubernetes-validations").is_some_and(|rules| rules != &Value::Array(Vec::new()))
        || children("properties").any(|(_, property)| has_rules(property))
        || ["items", "additionalProperties"]
            .iter()
            .any(|key| schema.get(*key).is_some_and(has_rules))
        || schema
            .get("allOf")
            .and_then(Value::as_array)
            .is_some_and(|all| all.iter().any(has_rules))
}

pub(super) fn flag(schema: &Map<String, Value>, key: &str) -> bool {
    schema.get(key).and_then(Value::as_bool).unwrap_or(false)
}

pub(super) fn text<'a>(schema: &'a Map<String, Value>, key: &str) -> &'a str {
    schema.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// A number that bounds something; negative ones are zero.
pub(super) fn bound(schema: &Map<String, Value>, key: &str) -> Option<u64> {
    let value = schema.get(key)?;
    value.as_u64().or_else(|| value.as_f64().map(|value| value.max(0.0) as u64))
}

pub(super) fn list_type(schema: &Map<String, Value>) -> ListType {
    match text(schema, "x-kubernetes-list-type") {
        "set" => ListType::Set,
        "map" => {
            let keys = schema.get("x-kubernetes-list-map-keys").and_then(Value::as_array);
            let keys = keys.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned);
            ListType::Map(keys.collect())
        }
        _ => ListType::Atomic,
    }
}

/// The declared type of a schema; nothing if expressions cannot see it. `name` is what messages
/// call an object type.
pub(super) fn declare(schema: &Value, is_root: bool, name: &str) -> Option<Arc<Declared>> {
    let schema = schema.as_object()?;
    if flag(schema, "x-kubernetes-int-or-string") {
        let most = text_size(schema);
        return Some(simple(Type::Dyn, Shape::Any, most, 1));
    }
    match text(schema, "type") {
        "array" => {
            let items = schema.get("items")?;
            let element = declare(items, is_embedded(items), &format!("{name}.@idx"))?;
            let most = bound(schema, "maxItems")
                .unwrap_or((REQUEST_SIZE_MAX - 2) / (element.least_size + 1));
            Some(Arc::new(Declared {
                of: Type::list(element.of.clone()),
                most,
                least_size: 2,
                fields: BTreeMap::new(),
                element: Some(element),
                shape: Shape::List(list_type(schema)),
            }))
        }
        "object" => object(schema, is_root, name),
        "string" => Some(string(schema)),
        "boolean" => Some(simple(Type::Bool, Shape::Boolean, 0, 4)),
        "number" => Some(simple(Type::Double, Shape::Number, 0, 1)),
        "integer" => Some(simple(Type::Int, Shape::Integer, 0, 1)),
        _ => None,
    }
}

pub(super) fn is_embedded(schema: &Value) -> bool {
    schema.as_object().is_some_and(|schema| flag(schema, "x-kubernetes-embedded-resource"))
}

fn simple(of: Type, shape: Shape, most: u64, least_size: u64) -> Arc<Declared> {
    Arc::new(Declared { of, most, least_size, fields: BTreeMap::new(), element: None, shape })
}

/// The size of text: four octets for each character that is allowed.
fn text_size(schema: &Map<String, Value>) -> u64 {
    bound(schema, "maxLength").map_or(REQUEST_SIZE_MAX - 2, |length| length.saturating_mul(4))
}

fn string(schema: &Map<String, Value>) -> Arc<Declared> {
    match text(schema, "format") {
        "byte" => {
            let most = bound(schema, "maxLength").unwrap_or(REQUEST_SIZE_MAX - 2);
            simple(Type::Bytes, Shape::Bytes, most, 2)
        }
        "duration" => simple(Type::Duration, Shape::Duration, TIME_SIZE_MAX, 3),
        "date" => simple(Type::Timestamp, Shape::Date, DATE_SIZE, DATE_SIZE),
        "date-time" => simple(Type::Timestamp, Shape::DateTime, TIME_SIZE_MAX, 21),
        _ => {
            let choices = schema.get("enum").and_then(Value::as_array);
            let choices = choices.filter(|choices| !choices.is_empty());
            let most = match (bound(schema, "maxLength"), choices) {
                (None, Some(choices)) => choices
                    .iter()
                    .filter_map(|choice| choice.as_str().map(|choice| choice.len() as u64))
                    .max()
                    .unwrap_or(0),
                _ => text_size(schema),
            };
            simple(Type::String, Shape::Text, most, 2)
        }
    }
}

fn object(schema: &Map<String, Value>, is_root: bool, name: &str) -> Option<Arc<Declared>> {
    if let Some(values) = schema.get("additionalProperties").filter(|values| values.is_object()) {
        let element = declare(values, is_embedded(values), &format!("{name}.@elem"))?;
        let most = bound(schema, "maxProperties")
            .unwrap_or((REQUEST_SIZE_MAX - 2) / (element.least_size + 6));
        return Some(Arc::new(Declared {
            of: Type::map(Type::String, element.of.clone()),
            most,
            least_size: 2,
            fields: BTreeMap::new(),
            element: Some(element),
            shape: Shape::Map,
        }));
    }
    let own = schema.get("properties").and_then(Value::as_object);
    let added = if is_root { metadata(own) } else { Map::new() };
    let own = own.into_iter().flatten().filter(|(field, _)| !added.contains_key(*field));
    let required: Vec<&str> = schema
        .get("required")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let mut fields = BTreeMap::new();
    let mut least_size = 2;
    for (field, property) in own.chain(&added) {
        let below = format!("{name}.{field}");
        let Some(declared) = declare(property, is_embedded(property), &below) else { continue };
        let has_default = property.get("default").is_some_and(|default| !default.is_null());
        if required.contains(&field.as_str()) && !has_default {
            least_size += field.len() as u64 + declared.least_size + 4;
        }
        if let Some(escaped) = escape_field_name(field) {
            fields.insert(escaped, Field { name: field.clone(), declared });
        }
    }
    let types = fields.iter().map(|(name, field)| (name.clone(), field.declared.of.clone()));
    Some(Arc::new(Declared {
        of: Type::object(name, types),
        most: 0,
        least_size,
        fields,
        element: None,
        shape: Shape::Object,
    }))
}

/// What every resource has, whether its schema says so or not, unless it says it well.
fn metadata(properties: Option<&Map<String, Value>>) -> Map<String, Value> {
    let text = serde_json::json!({"type": "string"});
    let mut added = Map::new();
    added.insert("kind".to_owned(), text.clone());
    added.insert("apiVersion".to_owned(), text.clone());
    let own = properties.and_then(|own| own.get("metadata")?.get("properties"));
    let is_text =
        |key: &str| own.and_then(|own| own.get(key)).is_some_and(|of| of["type"] == "string");
    if !(is_text("name") && is_text("generateName")) {
        let metadata = serde_json::json!({
            "type": "object",
            "properties": {"name": text, "generateName": text},
        });
        added.insert("metadata".to_owned(), metadata);
    }
    added
}

/// The sizes of what `self` leads to.
pub(super) struct DeclaredSizes<'a>(pub(super) &'a Declared);

impl SizeEstimator for DeclaredSizes<'_> {
    fn size(&self, path: &[String], _of: &Type) -> Option<SizeEstimate> {
        let mut at = self.0;
        for step in path.get(1..)? {
            at = match step.as_str() {
                "@items" | "@values" => at.element.as_deref()?,
                // Keys are text of no declared size.
                "@keys" if at.shape == Shape::Map => {
                    return Some(SizeEstimate { min: 0, max: 0 });
                }
                name => &at.fields.get(name)?.declared,
            };
        }
        Some(SizeEstimate { min: 0, max: at.most })
    }
}

/// How often data of this least size fits into a request.
pub(super) fn cardinality(declared: &Declared) -> u64 {
    REQUEST_SIZE_MAX / (declared.least_size + 1)
}
