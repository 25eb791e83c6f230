//! An object as it is stored.
use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use serde_json::Value;

use crate::json::to_bytes;

/// Identifies the storage of a resource, which all of its versions share: `configmaps` or
/// `deployments.apps`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct StorageId(Arc<str>);

impl StorageId {
    /// The storage of the resource `plural` in `group`.
    pub(crate) fn new(group: &str, plural: &str) -> Self {
        // Core events and those of events.k8s.io are the same objects.
        if group.is_empty() || (group == "events.k8s.io" && plural == "events") {
            Self(plural.into())
        } else {
            Self(format!("{plural}.{group}").into())
        }
    }

    /// The storage with this text form.
    pub(crate) fn of_text(text: &str) -> Self {
        Self(text.into())
    }

    /// The text form.
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for StorageId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, out)
    }
}

/// The namespace and name of an object.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ObjectKey {
    /// The namespace; empty for cluster-scoped objects.
    pub(crate) namespace: Box<str>,
    /// The name.
    pub(crate) name: Box<str>,
}

impl ObjectKey {
    /// The key of `name` in `namespace`.
    pub(crate) fn new(namespace: &str, name: &str) -> Self {
        Self { namespace: namespace.into(), name: name.into() }
    }

    /// Whether the object is in `namespace`.
    pub(crate) fn is_in(&self, namespace: &str) -> bool {
        &*self.namespace == namespace
    }
}

/// The fields of an entry of `metadata.ownerReferences` that garbage collection needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OwnerReference {
    /// The owner's uid.
    pub(crate) uid: Box<str>,
    /// The owner's `apiVersion`.
    pub(crate) api_version: Box<str>,
    /// The owner's kind.
    pub(crate) kind: Box<str>,
    /// Whether a foreground deletion of the owner waits for this object.
    pub(crate) blocks_owner: bool,
}

/// A stored object: its encoding, and the fields that are needed of every object.
#[derive(Clone, Debug)]
pub(crate) struct Stored {
    /// Namespace and name.
    pub(crate) key: ObjectKey,
    /// The uid.
    pub(crate) uid: Box<str>,
    /// The revision of the write that stored it.
    pub(crate) revision: u64,
    /// The id of the schema that it was validated against; see `ApiResource::schema_id`.
    pub(crate) schema_id: u64,
    /// Labels in the order of their keys.
    pub(crate) labels: Box<[(Box<str>, Box<str>)]>,
    /// The owner references.
    pub(crate) owners: Box<[OwnerReference]>,
    /// Whether it has a deletion timestamp.
    pub(crate) deleting: bool,
    /// JSON without `apiVersion` and `kind`.
    bytes: Bytes,
}

impl Stored {
    /// Encodes `value`, which loses its `apiVersion` and `kind`.
    pub(crate) fn new(key: ObjectKey, value: &mut Value, revision: u64, schema_id: u64) -> Self {
        if let Some(object) = value.as_object_mut() {
            object.remove("apiVersion");
            object.remove("kind");
        }
        let bytes = to_bytes(value);
        Self::of_parts(key, &value["metadata"], bytes, revision, schema_id)
    }

    /// An object that is encoded already, without its `apiVersion` and `kind`.
    pub(crate) fn of_parts(
        key: ObjectKey,
        metadata: &Value,
        bytes: Bytes,
        revision: u64,
        schema_id: u64,
    ) -> Self {
        let text = |value: &Value| -> Box<str> { value.as_str().unwrap_or_default().into() };
        Self {
            key,
            uid: text(&metadata["uid"]),
            revision,
            schema_id,
            labels: metadata["labels"]
                .as_object()
                .into_iter()
                .flatten()
                .map(|(key, value)| (key.as_str().into(), text(value)))
                .collect(),
            owners: metadata["ownerReferences"]
                .as_array()
                .into_iter()
                .flatten()
                .map(|owner| OwnerReference {
                    uid: text(&owner["uid"]),
                    api_version: text(&owner["apiVersion"]),
                    kind: text(&owner["kind"]),
                    blocks_owner: owner["blockOwnerDeletion"] == true,
                })
                .collect(),
            deleting: metadata.get("deletionTimestamp").is_some(),
            bytes,
        }
    }

    /// The same object under another revision.
    pub(crate) fn at_revision(&self, revision: u64) -> Self {
        let mut value = self.decode();
        value["metadata"]["resourceVersion"] = revision.to_string().into();
        Self::new(self.key.clone(), &mut value, revision, self.schema_id)
    }

    /// The same object with another uid and encoding.
    pub(crate) fn with(&self, uid: &str, bytes: impl Into<Bytes>) -> Self {
        Self { uid: uid.into(), bytes: bytes.into(), ..self.clone() }
    }

    /// The object without `apiVersion` and `kind`.
    pub(crate) fn decode(&self) -> Value {
        serde_json::from_slice(&self.bytes).expect("objects at rest are JSON that we encoded")
    }

    /// The object with `apiVersion` and `kind`.
    pub(crate) fn decode_as(&self, api_version: &str, kind: &str) -> Value {
        let mut value = self.decode();
        value["apiVersion"] = api_version.into();
        value["kind"] = kind.into();
        value
    }

    /// The encoding without `apiVersion` and `kind`.
    pub(crate) fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// The value of a label.
    pub(crate) fn label(&self, key: &str) -> Option<&str> {
        self.labels
            .binary_search_by(|(name, _)| (**name).cmp(key))
            .ok()
            .map(|index| &*self.labels[index].1)
    }
}
