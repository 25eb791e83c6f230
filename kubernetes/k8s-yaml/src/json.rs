//! Documents that are JSON: faster to read, and read by JSON's rules.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

use super::{YamlDocument, YamlWarning, YamlWarningKind};

/// Reads a text of JSON objects, one after the other; `None` when it is not that, and may be YAML.
pub(super) fn read(text: &str, line: usize) -> Option<Vec<YamlDocument>> {
    if !text.trim_start().starts_with('{') {
        return None;
    }
    let mut documents = Vec::new();
    let mut stream = serde_json::Deserializer::from_str(text).into_iter::<Node>();
    loop {
        let end = stream.byte_offset();
        let Some(node) = stream.next() else { return Some(documents) };
        // Too deep, not finite or not JSON: YAML's rules find the words for it.
        let Node { value, duplicates } = node.ok()?;
        if !value.is_object() {
            return None;
        }
        let note = |key| YamlWarning { line: None, oddity: YamlWarningKind::DuplicateKey(key) };
        let notes = duplicates.into_iter().map(note).collect();
        documents.push(YamlDocument {
            line: line + lines_before(text, end),
            value: Ok(value),
            notes,
        });
    }
}

/// The line on which the first value after an offset begins, from 0.
fn lines_before(text: &str, offset: usize) -> usize {
    let blank = text[offset..].len() - text[offset..].trim_start().len();
    text[..offset + blank].bytes().filter(|byte| *byte == b'\n').count()
}

/// A value and the keys that occur twice in it.
struct Node {
    value: Value,
    duplicates: Vec<String>,
}

impl Node {
    fn of(value: Value) -> Self {
        Self { value, duplicates: Vec::new() }
    }
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NodeVisitor)
    }
}

struct NodeVisitor;

impl<'de> Visitor<'de> for NodeVisitor {
    type Value = Node;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Node, E> {
        Ok(Node::of(Value::Null))
    }

    fn visit_bool<E>(self, value: bool) -> Result<Node, E> {
        Ok(Node::of(Value::Bool(value)))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Node, E> {
        Ok(Node::of(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Node, E> {
        Ok(Node::of(value.into()))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Node, E> {
        let number = Number::from_f64(value).ok_or_else(|| E::custom("not finite"))?;
        Ok(Node::of(Value::Number(number)))
    }

    fn visit_str<E>(self, value: &str) -> Result<Node, E> {
        Ok(Node::of(value.into()))
    }

    fn visit_string<E>(self, value: String) -> Result<Node, E> {
        Ok(Node::of(value.into()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Node, A::Error> {
        let mut list = Vec::new();
        let mut duplicates = Vec::new();
        while let Some(item) = items.next_element::<Node>()? {
            list.push(item.value);
            duplicates.extend(item.duplicates);
        }
        Ok(Node { value: Value::Array(list), duplicates })
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Node, A::Error> {
        let mut map = Map::new();
        let mut duplicates = Vec::new();
        while let Some((key, node)) = entries.next_entry::<String, Node>()? {
            duplicates.extend(node.duplicates);
            if map.contains_key(&key) {
                duplicates.push(key.clone());
            }
            map.insert(key, node.value);
        }
        Ok(Node { value: Value::Object(map), duplicates })
    }
}
