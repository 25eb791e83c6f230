//! Answers, and what of them has to be the same on both servers.
use serde_json::{Map, Value, json};

/// An answer as it came.
#[derive(Clone, Debug)]
pub(super) struct Answer {
    pub(super) code: u16,
    pub(super) warnings: Vec<String>,
    pub(super) body: Value,
}

/// What is remembered of an object between two requests.
#[derive(Clone, Debug, Default)]
pub(super) struct Memory {
    /// The object as it was last told.
    pub(super) live: Value,
}

impl Answer {
    /// Whether the answer is an object, rather than a status.
    pub(super) fn is_object(&self) -> bool {
        self.code < 300 && self.body["kind"] != "Status" && self.body["kind"] != "Scale"
    }

    /// Whether the answer refuses an object as invalid.
    pub(super) fn is_defect(&self) -> bool {
        self.code == 422 && self.body["reason"] == "Invalid"
    }

    /// The answer without what differs from one server to another: ids, revisions, times of now.
    pub(super) fn normalized(&self, memory: &Memory) -> Value {
        let mut body = self.body.clone();
        let revision = memory.live["metadata"]["resourceVersion"].clone();
        let uid = body["metadata"]["uid"].as_str().map(str::to_owned);
        let known = memory.live["metadata"]["uid"].as_str().map(str::to_owned);
        if let Some(metadata) = body["metadata"].as_object_mut() {
            if let Some(found) = metadata.get_mut("resourceVersion") {
                *found = if *found == revision { json!("SAME") } else { json!("NEW") };
            }
            if let Some(entries) = metadata.get_mut("managedFields").and_then(Value::as_array_mut) {
                entries.sort_by_cached_key(|entry| {
                    let text = |key: &str| entry[key].as_str().unwrap_or_default().to_owned();
                    (text("manager"), text("operation"), text("subresource"), text("apiVersion"))
                });
            }
        }
        if let Some(causes) = body.pointer_mut("/details/causes").and_then(Value::as_array_mut) {
            // A real server tells conflicts, and defects of different fields, in the order of a hash.
            causes.sort_by_cached_key(ToString::to_string);
        }
        if let Some(Value::String(message)) = body.get_mut("message")
            && let Some((before, _)) = message.split_once(" is invalid: [")
        {
            *message = format!("{before} is invalid: [as the causes say]");
        }
        if let Some(Value::String(message)) = body.get_mut("message")
            && let Some((before, list)) = message.split_once(" conflicts: ")
        {
            let mut lines: Vec<&str> = list.lines().collect();
            lines.sort_unstable();
            *message = format!("{before} conflicts: {}", lines.join("\n"));
        }
        let ids: Vec<String> = uid.into_iter().chain(known).filter(|id| !id.is_empty()).collect();
        replace(&mut body, &ids);
        let mut out = Map::new();
        out.insert("code".to_owned(), self.code.into());
        out.insert("warnings".to_owned(), json!(self.warnings));
        out.insert("body".to_owned(), body);
        Value::Object(out)
    }
}

fn replace(value: &mut Value, ids: &[String]) {
    match value {
        Value::String(text) => {
            // Times that a test writes itself are long past.
            let is_time = text.len() == 20 && text.ends_with('Z') && text.as_bytes()[10] == b'T';
            if is_time && !text.starts_with("2020-") {
                *text = "NOW".to_owned();
            }
            // Which addresses and revisions are next is each server's own business.
            if text.starts_with("10.") && text.split('.').count() == 4 {
                *text = "ADDRESS".to_owned();
            }
            if let Some((before, after)) = text.split_once(" in record (")
                && let Some((_, rest)) = after.split_once(')')
            {
                *text = format!("{before} in record (NEW){rest}");
            }
            // The fields of an object in a message are in the order of Go's structs.
            for undecodable in [" \"\" is invalid: patch: Invalid value: ", "Invalid value: \"{"] {
                if text.starts_with(undecodable) {
                    text.truncate(undecodable.len());
                }
            }
            for id in ids {
                if text.contains(id.as_str()) {
                    *text = text.replace(id.as_str(), "UID");
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| replace(item, ids)),
        Value::Object(entries) => entries.values_mut().for_each(|value| replace(value, ids)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// The places where two answers differ.
pub(super) fn differences(left: &Value, right: &Value) -> Vec<String> {
    let mut out = Vec::new();
    compare(left, right, &mut String::new(), &mut out);
    out
}

fn compare(left: &Value, right: &Value, path: &mut String, out: &mut Vec<String>) {
    let length = path.len();
    match (left, right) {
        (Value::Object(left), Value::Object(right)) => {
            let others = right.keys().filter(|key| !left.contains_key(*key));
            for key in left.keys().chain(others) {
                path.push('/');
                path.push_str(key);
                match (left.get(key), right.get(key)) {
                    (Some(left), Some(right)) => compare(left, right, path, out),
                    (Some(left), None) => out.push(format!("{path}: embedded alone has {left}")),
                    (None, Some(right)) => out.push(format!("{path}: real alone has {right}")),
                    (None, None) => {}
                }
                path.truncate(length);
            }
        }
        (Value::Array(one), Value::Array(other)) if one.len() == other.len() => {
            for (index, (left, right)) in one.iter().zip(other).enumerate() {
                path.push_str(&format!("/{index}"));
                compare(left, right, path, out);
                path.truncate(length);
            }
        }
        (left, right) if left == right => {}
        (left, right) => {
            out.push(format!("{path}:\n      embedded {left}\n      real     {right}"));
        }
    }
}
