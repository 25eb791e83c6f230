//! One request of a sequence, before it is known what it meets.
use std::fmt;

use serde_json::{Map, Value, json};

/// A request. Its path and body are the same for both servers but for what an update takes from
/// the object as it is.
#[derive(Clone, Debug)]
pub(super) struct Request {
    pub(super) method: &'static str,
    /// Path and query; `{name}` stands for the object.
    pub(super) target: String,
    /// The type of the body; none for a request without one.
    pub(super) content_type: &'static str,
    pub(super) body: Body,
}

/// What is sent.
#[derive(Clone, Debug)]
pub(super) enum Body {
    Nothing,
    Document(Value),
    /// The object as the server last told it, with other fields at its top.
    Edited {
        changes: Map<String, Value>,
        /// Labels in place of those it has.
        labels: Option<Value>,
        /// `metadata.managedFields` in place of those it has.
        managed: Option<Value>,
        keeps_version: bool,
    },
}

impl Request {
    /// The document to send to a server whose object is `live`.
    pub(super) fn document(&self, live: &Value, name: &str) -> Option<Value> {
        match &self.body {
            Body::Nothing => None,
            Body::Document(document) => Some(named(document, name)),
            Body::Edited { changes, labels, managed, keeps_version } => {
                let mut object = live.clone();
                if !object.is_object() {
                    object = json!({});
                }
                if !object["metadata"].is_object() {
                    object["metadata"] = json!({"name": name});
                }
                for (key, value) in changes {
                    object[key] = value.clone();
                }
                if let Some(labels) = labels {
                    object["metadata"]["labels"] = labels.clone();
                }
                if let Some(managed) = managed {
                    object["metadata"]["managedFields"] = managed.clone();
                }
                if let (false, Some(metadata)) = (keeps_version, object["metadata"].as_object_mut())
                {
                    metadata.remove("resourceVersion");
                }
                Some(object)
            }
        }
    }
}

/// The document with the object's name in it.
fn named(document: &Value, name: &str) -> Value {
    match document {
        Value::String(text) if text == "{name}" => name.into(),
        Value::Array(items) => items.iter().map(|item| named(item, name)).collect(),
        Value::Object(map) => {
            map.iter().map(|(key, value)| (key.clone(), named(value, name))).collect()
        }
        other => other.clone(),
    }
}

impl fmt::Display for Request {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} {}", self.method, self.target)?;
        if !self.content_type.is_empty() {
            write!(out, " [{}]", self.content_type)?;
        }
        match &self.body {
            Body::Nothing => Ok(()),
            Body::Document(document) => write!(out, " {document}"),
            Body::Edited { changes, labels, managed, keeps_version } => {
                write!(out, " live object with {}", Value::Object(changes.clone()))?;
                if let Some(labels) = labels {
                    write!(out, ", labels {labels}")?;
                }
                if let Some(managed) = managed {
                    write!(out, ", managedFields {managed}")?;
                }
                let kept = if *keeps_version { "kept" } else { "dropped" };
                write!(out, ", resourceVersion {kept}")
            }
        }
    }
}
