//! What a Go program writes of an object of a built-in kind that it has read.
//!
//! Upstream: k8s.io/apimachinery/pkg/runtime/converter.go: FromUnstructured
//! Upstream: encoding/json/encode.go: Marshal
#[cfg(test)]
mod tests;

use serde_json::{Map, Value, json};

use crate::schema::node::{DeclaredType, Edge, MapType, Scalar};
use crate::{Schema, canonicalize, decoding_error, prune};

/// Gives an object of a built-in kind the form that reading it into Go's types and writing it again
/// gives it.
///
/// Fields that the type does not have are gone, quantities and times are canonical, numbers of the
/// schema of a CustomResourceDefinition have the precision of a float; what Go leaves out at its
/// zero value is left out, and what it writes always is there: structs, and required fields, null
/// where there is no value. Nothing is defaulted, unlike [`crate::apply_defaults`].
///
/// # Errors
/// The decoder's message when a value does not fit its type.
pub fn go_round_trip(schema: &Schema, value: &mut Value) -> Result<(), String> {
    if let Some(error) = decoding_error(schema, value) {
        return Err(error);
    }
    prune(schema, value);
    canonicalize(schema, value)?;
    GoWriter { schema }.rewrite(&schema.root_edge(), value);
    Ok(())
}

struct GoWriter<'a> {
    schema: &'a Schema,
}

impl GoWriter<'_> {
    fn rewrite(&self, edge: &Edge, value: &mut Value) {
        let node = self.schema.node(edge.node);
        if let (Some(id), true) = (node.decodes_to, value.is_object()) {
            return self.rewrite(&Edge::plain(id), value);
        }
        if node.keeps_unknown {
            return;
        }
        match value {
            Value::Object(entries) => {
                if let Some(map) = &node.map {
                    self.entries(map, entries);
                }
            }
            Value::Array(items) => {
                let Some(list) = &node.list else { return };
                for item in items {
                    if let (true, Some(default)) = (item.is_null(), &list.items.default) {
                        *item = default.clone();
                    }
                    self.rewrite(&list.items, item);
                }
            }
            Value::Number(number) if node.declared == Some(DeclaredType::Number) => {
                if let Some(float) = as_float(number) {
                    *value = float;
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    fn entries(&self, map: &MapType, entries: &mut Map<String, Value>) {
        if let Some(values) = &map.additional {
            let node = self.schema.node(values.node);
            let is_struct = node.map.as_ref().is_some_and(|map| map.additional.is_none());
            for value in entries.values_mut() {
                if value.is_null() && node.scalar == Some(Scalar::String) {
                    *value = json!("");
                } else if value.is_null() && is_struct && !node.keeps_unknown {
                    *value = json!({});
                }
                self.rewrite(values, value);
            }
            return;
        }
        entries.retain(|key, value| {
            !value.is_null()
                && map.fields.get(key).is_some_and(|edge| !self.is_left_out(edge, value))
        });
        for (key, edge) in &map.fields {
            let is_struct = edge.default.as_ref().is_some_and(|default| *default == json!({}));
            if (edge.written || is_struct) && !entries.contains_key(key) {
                entries.insert(key.clone(), edge.default.clone().unwrap_or_default());
            }
            if let Some(value) = entries.get_mut(key) {
                self.rewrite(edge, value);
            }
        }
    }

    /// Zero values where Go has no pointer, and lists and maps that it leaves out when they are
    /// empty.
    fn is_left_out(&self, edge: &Edge, value: &Value) -> bool {
        if edge.written {
            return false;
        }
        let node = self.schema.node(edge.node);
        match value {
            Value::Array(items) => items.is_empty() && !node.keeps_unknown,
            Value::Object(entries) => {
                let is_plain = node.map.as_ref().is_some_and(|map| map.additional.is_some());
                entries.is_empty() && is_plain && !node.keeps_unknown
            }
            Value::Null => true,
            Value::Bool(truth) => edge.left_out_at_zero && !truth,
            Value::Number(number) => edge.left_out_at_zero && number.as_f64() == Some(0.0),
            Value::String(text) => edge.left_out_at_zero && text.is_empty(),
        }
    }
}

/// An integer beyond what a float holds exactly, as the float that Go keeps of it.
fn as_float(number: &serde_json::Number) -> Option<Value> {
    const EXACT_MAX: f64 = 9_007_199_254_740_992.0;
    let float = number.as_f64()?;
    if number.is_f64() || float.abs() <= EXACT_MAX {
        return None;
    }
    let text = format!("{float:.0}");
    match text.parse::<u64>() {
        Ok(whole) => Some(whole.into()),
        Err(_) => text.parse::<i64>().ok().map(Value::from).or_else(|| Some(float.into())),
    }
}
