//! The errors of Go's JSON decoder for a document that does not fit a built-in type.
//!
//! Upstream: sigs.k8s.io/json/internal/golang/encoding/json/decode.go: UnmarshalTypeError
#[cfg(test)]
mod tests;

use serde_json::Value;

use crate::schema::node::{DeclaredType, Edge, Node};
use crate::{FieldError, FieldErrorKind, Schema};

/// The message for the first value that does not fit its type; nothing if all fit.
pub fn decoding_error(schema: &Schema, value: &Value) -> Option<String> {
    undecodable(schema, value).map(|error| error.detail)
}

/// The first value that does not fit its type, with that message as its detail; nothing if all fit.
pub fn undecodable(schema: &Schema, value: &Value) -> Option<FieldError> {
    let position = DecodePosition { schema, structure: String::new(), fields: Vec::new() };
    position.check(&schema.root_edge(), value)
}

/// Where the decoder is: the innermost struct, and the fields that lead to it.
struct DecodePosition<'a> {
    schema: &'a Schema,
    structure: String,
    fields: Vec<String>,
}

impl DecodePosition<'_> {
    fn check(&self, edge: &Edge, value: &Value) -> Option<FieldError> {
        let node = self.schema.node(edge.node);
        if value.is_null() || node.keeps_unknown {
            return None;
        }
        let fits = match (value, node.declared) {
            _ if node.int_or_string => value.is_string() || value.is_number(),
            (_, None) => true,
            (Value::Object(_), Some(DeclaredType::Object)) => true,
            (Value::Array(_), Some(DeclaredType::Array)) => true,
            (Value::String(_), Some(DeclaredType::String)) => true,
            (Value::Bool(_), Some(DeclaredType::Boolean)) => true,
            (Value::Number(_), Some(DeclaredType::Number)) => true,
            (Value::Number(number), Some(DeclaredType::Integer)) => match node.format.as_deref() {
                Some("int32") => number.as_i64().is_some_and(|n| i32::try_from(n).is_ok()),
                _ => number.as_i64().is_some(),
            },
            _ => false,
        };
        if !fits {
            let message = self.type_error(node, value);
            return Some(FieldError::new("", FieldErrorKind::TypeInvalid, message));
        }
        match value {
            Value::Object(entries) => self.entries(node, entries),
            Value::Array(items) => {
                let list = node.list.as_ref()?;
                items.iter().enumerate().find_map(|(index, item)| {
                    let error = self.check(&list.items, item)?;
                    Some(error.within(&format!("[{index}]")))
                })
            }
            _ => None,
        }
    }

    fn entries(&self, node: &Node, entries: &serde_json::Map<String, Value>) -> Option<FieldError> {
        let map = node.map.as_ref()?;
        let structure = node.go_name.as_deref().and_then(|name| name.split('.').nth(1));
        entries.iter().find_map(|(key, value)| {
            let error = if let Some(edge) = map.fields.get(key) {
                let structure = structure.unwrap_or(&self.structure).to_owned();
                let mut fields = self.fields.clone();
                fields.push(key.clone());
                DecodePosition { schema: self.schema, structure, fields }.check(edge, value)?
            } else {
                self.check(map.additional.as_ref()?, value)?
            };
            Some(error.within(key))
        })
    }

    fn type_error(&self, node: &Node, value: &Value) -> String {
        let kind = match value {
            Value::Object(_) => "object".to_owned(),
            Value::Array(_) => "array".to_owned(),
            Value::String(_) => "string".to_owned(),
            Value::Bool(_) => "bool".to_owned(),
            Value::Number(number) if node.declared == Some(DeclaredType::Integer) => {
                format!("number {number}")
            }
            Value::Number(_) => "number".to_owned(),
            Value::Null => "null".to_owned(),
        };
        let wanted = self.go_type(node);
        if self.fields.is_empty() {
            return format!("json: cannot unmarshal {kind} into Go value of type {wanted}");
        }
        format!(
            "json: cannot unmarshal {kind} into Go struct field {}.{} of type {wanted}",
            self.structure,
            self.fields.join(".")
        )
    }

    fn go_type(&self, node: &Node) -> String {
        let of = |edge: &Edge| self.go_type(self.schema.node(edge.node));
        let is_struct = node.map.as_ref().is_some_and(|map| map.additional.is_none());
        match (&node.go_name, node.declared) {
            (Some(name), Some(DeclaredType::Object)) if is_struct => name.clone(),
            (_, Some(DeclaredType::Object)) => match node.map.as_ref().map(|map| &map.additional) {
                Some(Some(edge)) => format!("map[string]{}", of(edge)),
                _ => "map[string]interface {}".to_owned(),
            },
            (_, Some(DeclaredType::Array)) => match &node.list {
                Some(list) => format!("[]{}", of(&list.items)),
                None => "[]interface {}".to_owned(),
            },
            (_, Some(DeclaredType::String)) if node.format.as_deref() == Some("byte") => {
                "[]uint8".to_owned()
            }
            (_, Some(DeclaredType::String)) => "string".to_owned(),
            (_, Some(DeclaredType::Boolean)) => "bool".to_owned(),
            (_, Some(DeclaredType::Integer)) => {
                if node.format.as_deref() == Some("int32") { "int32" } else { "int64" }.to_owned()
            }
            (_, Some(DeclaredType::Number)) => "float64".to_owned(),
            (name, None) => name.clone().unwrap_or_else(|| "interface {}".to_owned()),
        }
    }
}
