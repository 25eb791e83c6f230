//! One document of a payload: what it is, where it stands, and its JSON.

use std::collections::BTreeMap;
use std::sync::Arc;

use plimsoll_model::ObjectKey;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::Packed;

/// One document of a payload file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Manifest {
    /// Name of its file, without the directory.
    pub file: Arc<str>,
    /// Its number in the file, from 0; empty documents are not counted.
    pub document: usize,
    /// What it is a manifest of; the namespace is the one written in it, even where the kind has
    /// none.
    pub key: ObjectKey,
    /// API version without the group, such as `v1`.
    pub version: String,
    /// Its annotations; values that are not strings are left out.
    pub annotations: BTreeMap<String, String>,
    /// The document as compact JSON with sorted keys.
    pub raw: Packed,
}

impl Manifest {
    /// The document as a value.
    pub fn object(&self) -> Value {
        serde_json::from_slice(&self.raw.unpack()).expect("raw was written by serde_json")
    }

    /// What of the document a type asks for; the rest is passed over. `None` if it does not fit.
    pub fn part<T: DeserializeOwned>(&self) -> Option<T> {
        serde_json::from_slice(&self.raw.unpack()).ok()
    }

    /// Whether an annotation is exactly `true`.
    pub fn is_annotated_true(&self, key: &str) -> bool {
        self.annotations.get(key).is_some_and(|value| value == "true")
    }
}
