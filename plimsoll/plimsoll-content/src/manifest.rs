//! One document of a payload: what it is, where it stands, and its JSON.

use std::collections::BTreeMap;
use std::sync::Arc;

use plimsoll_api::ObjectKey;
use serde_json::{Map, Value};

use crate::Packed;
use crate::built_in::built_in_cluster_kinds;
use crate::definition::Definition;

/// Annotation: values of the object are sent to the API server alone, as those of a Secret.
pub const SENSITIVE: &str = "plimsoll.io/sensitive";

/// Most bytes of JSON in a document: an API server refuses larger requests.
pub(crate) const JSON_SIZE_MAX: usize = 3 << 20;

/// One document of a payload file; a copy shares what is large.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Manifest {
    /// Name of its file, without the directory.
    pub file: Arc<str>,
    /// Its number in the file, from 0; empty documents are not counted.
    pub document: usize,
    /// What it is a manifest of. The namespace is the one written in it, unless the kind is known to
    /// have none: built-in kinds are from the start, those that the payload defines once all of it is
    /// read, others when an API server serves them.
    pub key: ObjectKey,
    /// API version without the group, such as `v1`.
    pub version: String,
    /// Its annotations; values that are not strings are left out.
    pub annotations: Arc<BTreeMap<String, String>>,
    /// Whether it is for clusters of any profile if its annotations name none, as its payload says.
    pub any_profile: bool,
    /// The kind that it defines, if it is a CustomResourceDefinition.
    pub definition: Option<Arc<Definition>>,
    /// The document as compact JSON with sorted keys.
    pub raw: Packed,
}

/// Why a document is no manifest.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ManifestError {
    /// It is a list or a scalar: which.
    #[error("the document is {0}, a manifest must be a mapping")]
    NotAnObject(&'static str),
    /// `kind` is missing or not a string.
    #[error("the document has no kind")]
    MissingKind,
    /// `metadata.name` is missing or not a string, of an object of this kind.
    #[error("the {0} has no name: metadata.name must be a non-empty string")]
    MissingName(String),
    /// `metadata.namespace` is not a string, of an object of this kind.
    #[error("metadata.namespace of the {0} is not a string")]
    Namespace(String),
    /// It is a list of objects, of this kind, which is not taken apart.
    #[error("lists such as {0} are not taken apart, give each object a document of its own")]
    List(String),
    /// It is larger than any API server takes: bytes of JSON.
    #[error("the document is {0} bytes of JSON, at most {max} can be applied", max = JSON_SIZE_MAX)]
    Size(usize),
}

impl Manifest {
    /// Takes a document, the `document`th of `file`, as a manifest (CV-2.2).
    ///
    /// # Errors
    /// When the document is no manifest: not an object, without kind or name, a list, too large.
    pub fn read(file: Arc<str>, document: usize, value: &Value) -> Result<Self, ManifestError> {
        let object =
            value.as_object().ok_or_else(|| ManifestError::NotAnObject(type_name(value)))?;
        let text = |key: &str| object.get(key).and_then(Value::as_str).unwrap_or_default();
        let kind = text("kind");
        if kind.is_empty() {
            return Err(ManifestError::MissingKind);
        }
        let api_version = text("apiVersion");
        let (group, version) = api_version.rsplit_once('/').unwrap_or(("", api_version));
        let metadata = object.get("metadata").and_then(Value::as_object);
        let name = metadata.and_then(|metadata| metadata.get("name")?.as_str()).unwrap_or_default();
        if name.is_empty() {
            let is_list =
                kind.ends_with("List") && object.get("items").is_some_and(Value::is_array);
            let kind = kind.to_owned();
            return Err(if is_list {
                ManifestError::List(kind)
            } else {
                ManifestError::MissingName(kind)
            });
        }
        let namespace = match metadata.and_then(|metadata| metadata.get("namespace")) {
            None | Some(Value::Null) => "",
            Some(Value::String(namespace)) => namespace,
            Some(_) => return Err(ManifestError::Namespace(kind.to_owned())),
        };
        let raw = serde_json::to_vec(value).expect("a JSON value can always be written");
        if raw.len() > JSON_SIZE_MAX {
            return Err(ManifestError::Size(raw.len()));
        }
        let mut key = ObjectKey {
            group: group.to_owned(),
            kind: kind.to_owned(),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        };
        key.normalize(built_in_cluster_kinds());
        Ok(Self {
            file,
            document,
            key,
            version: version.to_owned(),
            annotations: Arc::new(metadata.map(annotations).unwrap_or_default()),
            any_profile: false,
            definition: Definition::of(value).map(Arc::new),
            raw: raw.into(),
        })
    }

    /// The document as a value, without a namespace that means nothing.
    pub fn object(&self) -> Value {
        let mut object = self.written();
        if self.key.namespace.is_empty()
            && let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut)
        {
            metadata.remove("namespace");
        }
        object
    }

    /// The document as it is written.
    pub(crate) fn written(&self) -> Value {
        serde_json::from_slice(&self.raw.unpack()).expect("raw was written by serde_json")
    }

    /// Whether values of the object must be sent to API servers alone: those of Secrets, and
    /// of what a payload annotates with [`SENSITIVE`].
    pub fn is_sensitive(&self) -> bool {
        self.key.group.is_empty() && self.key.kind == "Secret" || self.is_annotated_true(SENSITIVE)
    }

    /// Whether some cluster may include it: none does without annotations, unless the payload is for clusters
    /// of any profile.
    pub(crate) fn may_be_included(&self) -> bool {
        self.any_profile || !self.annotations.is_empty()
    }

    /// Whether an annotation is exactly `true`.
    pub fn is_annotated_true(&self, key: &str) -> bool {
        self.annotations.get(key).is_some_and(|value| value == "true")
    }
}

fn annotations(metadata: &Map<String, Value>) -> BTreeMap<String, String> {
    let annotations = metadata.get("annotations").and_then(Value::as_object);
    annotations
        .into_iter()
        .flatten()
        .filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned())))
        .collect()
}

fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "a mapping",
    }
}
