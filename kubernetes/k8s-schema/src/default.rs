//! Defaults that a schema declares, and nulls.
//!
//! Upstream: k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting/algorithm.go: Default
#[cfg(test)]
mod tests;

use serde_json::{Map, Value, json};

use crate::Schema;
use crate::schema::node::{Edge, MapType, Node, Scalar};

/// Fills in what the schema declares as defaults.
///
/// Nulls are settled on the way, as decoding and defaulting do in kube-apiserver: in built-in kinds
/// they vanish, as do empty
/// lists and maps that Go leaves out; in custom resources they are replaced by the default, vanish where there is none,
/// and stay where the schema calls the field nullable. What Go writes always (structs, and required
/// fields at their zero value) appears in built-in kinds.
pub fn apply_defaults(schema: &Schema, value: &mut Value) {
    let built_in = schema.is_builtin();
    fill(&Defaulter { schema, built_in, keeps_nulls: false }, value);
}

/// Like [`apply_defaults`], but nulls in a custom resource stay: it was not decoded, but merged from
/// objects that were.
pub(crate) fn apply_defaults_after_merge(schema: &Schema, value: &mut Value) {
    let built_in = schema.is_builtin();
    fill(&Defaulter { schema, built_in, keeps_nulls: !built_in }, value);
}

fn fill(defaulter: &Defaulter<'_>, value: &mut Value) {
    if defaulter.schema.is_untyped() {
        return;
    }
    if let (false, Some(Value::Object(metadata))) = (defaulter.built_in, value.get_mut("metadata"))
    {
        for name in ["labels", "annotations"] {
            let texts = metadata.get_mut(name).and_then(Value::as_object_mut);
            texts
                .into_iter()
                .flat_map(Map::values_mut)
                .filter(|text| text.is_null())
                .for_each(|text| *text = json!(""));
        }
    }
    defaulter.walk(&defaulter.schema.root_edge(), value);
    if let (false, Some(Value::Object(metadata))) = (defaulter.built_in, value.get_mut("metadata"))
    {
        metadata.retain(|_, value| !is_nothing(value));
    }
}

/// What Go's metadata leaves out.
fn is_nothing(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(entries) => entries.is_empty(),
        Value::String(text) => text.is_empty(),
        Value::Bool(_) | Value::Number(_) => false,
    }
}

struct Defaulter<'a> {
    schema: &'a Schema,
    built_in: bool,
    /// Nulls without a default stay.
    keeps_nulls: bool,
}

impl Defaulter<'_> {
    fn walk(&self, edge: &Edge, value: &mut Value) {
        let node = self.schema.node(edge.node);
        match value {
            Value::Object(_) if let Some(id) = node.decodes_to => {
                self.walk(&Edge::plain(id), value);
            }
            Value::Object(entries) => {
                if let Some(map) = &node.map {
                    self.entries(node, map, entries);
                }
            }
            Value::Array(items) => {
                let Some(list) = &node.list else { return };
                for item in items {
                    if let (true, Some(default)) = (item.is_null(), &list.items.default) {
                        *item = default.clone();
                    }
                    self.walk(&list.items, item);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    fn entries(&self, node: &Node, map: &MapType, entries: &mut Map<String, Value>) {
        if self.built_in {
            self.drop_nulls(node, map, entries);
        } else if !self.keeps_nulls {
            entries.retain(|key, value| {
                !value.is_null() || map.value(key).is_none_or(|edge| self.keeps_null(edge))
            });
        }
        for (key, edge) in &map.fields {
            let applies = |default: &&Value| !self.built_in || edge.written || !is_zero(default);
            let Some(default) = edge.default.as_ref().filter(applies) else { continue };
            let nullable = self.schema.node(edge.node).nullable;
            match entries.get_mut(key) {
                None => {
                    entries.insert(key.clone(), default.clone());
                }
                Some(value) if value.is_null() && !nullable => *value = default.clone(),
                Some(_) => {}
            }
        }
        for (key, value) in entries.iter_mut() {
            let Some(edge) = map.value(key) else { continue };
            if let (true, Some(default)) = (value.is_null(), &edge.default)
                && !self.schema.node(edge.node).nullable
            {
                *value = default.clone();
            }
            self.walk(edge, value);
        }
    }

    /// Nulls with a default wait for it; nullable ones are meant.
    fn keeps_null(&self, edge: &Edge) -> bool {
        edge.default.is_some() || self.schema.node(edge.node).nullable
    }

    /// A null is the zero value in Go: no pointer, no entry, an empty text in a map of texts.
    fn drop_nulls(&self, node: &Node, map: &MapType, entries: &mut Map<String, Value>) {
        if node.keeps_unknown {
            return;
        }
        let of_texts = map
            .additional
            .as_ref()
            .is_some_and(|edge| self.schema.node(edge.node).scalar == Some(Scalar::String));
        if of_texts {
            entries
                .values_mut()
                .filter(|value| value.is_null())
                .for_each(|value| *value = json!(""));
        } else {
            entries.retain(|key, value| {
                let left_out = |edge: &Edge| self.is_left_out(edge, value);
                !value.is_null() && !map.fields.get(key).is_some_and(left_out)
            });
        }
    }

    /// Lists and maps that Go leaves out when they are empty, or writes as null; zero values where
    /// Go has no pointer.
    fn is_left_out(&self, edge: &Edge, value: &Value) -> bool {
        if edge.left_out_at_zero && is_zero(value) {
            return true;
        }
        let node = self.schema.node(edge.node);
        let plain_map =
            node.map.as_ref().is_some_and(|map| map.fields.is_empty() && map.additional.is_some());
        let empty = match value {
            Value::Array(items) => items.is_empty(),
            Value::Object(entries) => entries.is_empty() && plain_map,
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
        };
        let null_instead = edge.default == Some(Value::Null);
        empty && (!edge.written || null_instead) && !node.keeps_unknown
    }
}

/// OpenAPI gives zero values as defaults also where Go leaves the field out.
fn is_zero(default: &Value) -> bool {
    match default {
        Value::String(text) => text.is_empty(),
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::Bool(truth) => !truth,
        Value::Null => true,
        Value::Array(_) | Value::Object(_) => false,
    }
}
