//! The path elements of list items.
//!
//! Upstream: sigs.k8s.io/structured-merge-diff/v6/typed/helpers.go: listItemToPathElement
use serde_json::Value;

use crate::Schema;
use crate::fields::{PathElement, PathValue};
use crate::schema::node::{ListType, Relationship};

/// The element that stands for `item` in its list; the error says why there is none.
pub(super) fn item_element(
    schema: &Schema,
    list: &ListType,
    item: &Value,
) -> Result<PathElement, String> {
    match &list.relationship {
        Relationship::Atomic => Err("invalid indexing of non-associative list".to_owned()),
        Relationship::Set => match item {
            Value::Object(_) => {
                Err("associative list without keys has an element that's a map type".to_owned())
            }
            Value::Array(_) => {
                Err("not supported: associative list with lists as elements".to_owned())
            }
            Value::Null => Err("associative list without keys has an element that's an explicit \
                                null"
                .to_owned()),
            Value::Bool(_) | Value::Number(_) | Value::String(_) => {
                Ok(PathElement::Value(PathValue(item.clone())))
            }
        },
        Relationship::Map(keys) => keyed_element(schema, list, keys, item),
    }
}

fn keyed_element(
    schema: &Schema,
    list: &ListType,
    keys: &[String],
    item: &Value,
) -> Result<PathElement, String> {
    let map = match item {
        Value::Object(map) => map,
        Value::Null => {
            return Err("associative list with keys may not have a null element".to_owned());
        }
        Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            return Err("associative list with keys may not have non-map elements".to_owned());
        }
    };
    let declared = schema.node(list.items.node).map.as_ref();
    let mut found: Vec<(String, PathValue)> = Vec::with_capacity(keys.len());
    for key in keys {
        let default = || declared?.fields.get(key)?.default.as_ref();
        if let Some(value) = map.get(key).or_else(default) {
            found.push((key.clone(), PathValue(value.clone())));
        }
    }
    if found.is_empty() && !keys.is_empty() {
        let quoted: Vec<String> = keys.iter().map(|key| format!("{key:?}")).collect();
        return Err(format!(
            "associative list with keys has an element that omits all key fields [{}] (and doesn't \
             have default values for any key fields)",
            quoted.join(" ")
        ));
    }
    found.sort();
    Ok(PathElement::Key(found))
}

/// The items of a list with their elements, in order; items without one are left out.
pub(super) fn list_elements<'a>(
    schema: &Schema,
    list: &ListType,
    value: Option<&'a Value>,
) -> Vec<(PathElement, &'a Value)> {
    let items = value.and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    items
        .iter()
        .filter_map(|item| item_element(schema, list, item).ok().map(|element| (element, item)))
        .collect()
}
