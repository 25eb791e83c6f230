//! Unknown fields: finding and dropping them.
//!
//! Upstream: k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning/algorithm.go: PruneWithOptions
#[cfg(test)]
mod tests;

use serde_json::Value;

use crate::Schema;
use crate::schema::node::{Edge, Node};

/// Drops the fields that `schema` does not know and returns their paths (`spec.foo[0].bar`). A list that
/// keeps unknown fields keeps those of its items; what is declared in them is pruned inside.
pub fn prune(schema: &Schema, value: &mut Value) -> Vec<String> {
    let mut found = Vec::new();
    drop_unknown(schema, &schema.root_edge(), value, false, &mut String::new(), &mut found);
    found
}

/// The paths of the fields that [`prune`] would drop.
pub fn unknown_fields(schema: &Schema, value: &Value) -> Vec<String> {
    let mut found = Vec::new();
    find_unknown(schema, &schema.root_edge(), value, false, &mut String::new(), &mut found);
    found
}

fn drop_unknown(
    schema: &Schema,
    edge: &Edge,
    value: &mut Value,
    in_keeping_list: bool,
    path: &mut String,
    found: &mut Vec<String>,
) {
    let node = schema.node(edge.node);
    let keeps_unknown = node.keeps_unknown || in_keeping_list;
    if let (Some(id), true) = (node.decodes_to, value.is_object()) {
        return drop_unknown(schema, &Edge::plain(id), value, false, path, &mut Vec::new());
    }
    if keeps_all(schema, node) {
        return;
    }
    let length = path.len();
    match value {
        Value::Object(entries) => {
            entries.retain(|key, value| {
                push_key(path, key);
                let known = field(node, key);
                match known {
                    Some(edge) => drop_unknown(schema, edge, value, false, path, found),
                    None if keeps_unknown => {}
                    None => found.push(path.clone()),
                }
                path.truncate(length);
                known.is_some() || keeps_unknown
            });
        }
        Value::Array(items) => {
            let Some(list) = &node.list else { return };
            for (index, item) in items.iter_mut().enumerate() {
                path.push_str(&format!("[{index}]"));
                drop_unknown(schema, &list.items, item, keeps_unknown, path, found);
                path.truncate(length);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn find_unknown(
    schema: &Schema,
    edge: &Edge,
    value: &Value,
    in_keeping_list: bool,
    path: &mut String,
    found: &mut Vec<String>,
) {
    let node = schema.node(edge.node);
    let keeps_unknown = node.keeps_unknown || in_keeping_list;
    if keeps_all(schema, node) {
        return;
    }
    let length = path.len();
    match value {
        Value::Object(entries) => {
            for (key, value) in entries {
                push_key(path, key);
                match field(node, key) {
                    Some(edge) => find_unknown(schema, edge, value, false, path, found),
                    None if keeps_unknown => {}
                    None => found.push(path.clone()),
                }
                path.truncate(length);
            }
        }
        Value::Array(items) => {
            let Some(list) = &node.list else { return };
            for (index, item) in items.iter().enumerate() {
                path.push_str(&format!("[{index}]"));
                find_unknown(schema, &list.items, item, keeps_unknown, path, found);
                path.truncate(length);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Go's raw values are kept whole; a custom resource that keeps unknown fields may still declare
/// some, which are pruned inside.
fn keeps_all(schema: &Schema, node: &Node) -> bool {
    node.keeps_unknown && schema.is_builtin()
}

fn field<'a>(node: &'a Node, key: &str) -> Option<&'a Edge> {
    let map = node.map.as_ref()?;
    map.fields.get(key).or(map.additional.as_ref())
}

fn push_key(path: &mut String, key: &str) {
    if !path.is_empty() {
        path.push('.');
    }
    path.push_str(key);
}
