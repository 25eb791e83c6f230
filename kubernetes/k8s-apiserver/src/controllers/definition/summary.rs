//! Summaries of definitions, without their schemas.
//!
//! Each write of a definition needs the names of all definitions. Decoding only these avoids
//! reading the schemas, which can be hundreds of kilobytes.
use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::Value;

use crate::storage::{ObjectKey, StorageId, Store, Stored};

/// The group, the versions and the accepted names of a definition.
#[derive(Debug, Default)]
pub(crate) struct DefinitionSummary {
    /// The group of its kinds.
    pub(crate) group: String,
    /// The names of its versions.
    pub(crate) versions: Vec<String>,
    /// `status.acceptedNames`, or null.
    pub(crate) accepted_names: Value,
}

/// The fields of an encoded definition that a summary consists of.
#[derive(Default, Deserialize)]
struct Encoded {
    spec: Option<EncodedSpec>,
    status: Option<EncodedStatus>,
}

#[derive(Default, Deserialize)]
struct EncodedSpec {
    group: Option<String>,
    versions: Option<Vec<EncodedVersion>>,
}

#[derive(Deserialize)]
struct EncodedVersion {
    name: Option<String>,
}

#[derive(Default, Deserialize)]
struct EncodedStatus {
    #[serde(default, rename = "acceptedNames")]
    accepted_names: Value,
}

impl DefinitionSummary {
    /// Reads a stored definition; missing fields are empty.
    pub(crate) fn read(definition: &Stored) -> Self {
        let Encoded { spec, status } =
            serde_json::from_slice(definition.bytes()).unwrap_or_default();
        let spec = spec.unwrap_or_default();
        let versions = spec.versions.unwrap_or_default();
        Self {
            group: spec.group.unwrap_or_default(),
            versions: versions.into_iter().map(|one| one.name.unwrap_or_default()).collect(),
            accepted_names: status.unwrap_or_default().accepted_names,
        }
    }
}

/// Summaries of all definitions, each read once for each revision.
#[derive(Debug, Default)]
pub(crate) struct DefinitionSummaries {
    known: BTreeMap<ObjectKey, Known>,
}

#[derive(Debug)]
struct Known {
    revision: u64,
    summary: Arc<DefinitionSummary>,
    /// Whether the controller wrote this revision itself.
    is_settled: bool,
}

impl DefinitionSummaries {
    /// The summaries of all definitions in the order of their names.
    pub(crate) fn all(&mut self, store: &Store) -> Vec<Arc<DefinitionSummary>> {
        let definitions = StorageId::new("apiextensions.k8s.io", "customresourcedefinitions");
        if self.known.len() > store.count(&definitions) {
            self.known.retain(|key, _| store.find(&definitions, key).is_some());
        }
        let all = store.list(&definitions, None);
        all.map(|stored| Arc::clone(&self.of(stored).summary)).collect()
    }

    fn of(&mut self, stored: &Stored) -> &mut Known {
        let read = || Known {
            revision: stored.revision,
            summary: Arc::new(DefinitionSummary::read(stored)),
            is_settled: false,
        };
        let known = self.known.entry(stored.key.clone()).or_insert_with(read);
        if known.revision != stored.revision {
            *known = read();
        }
        known
    }

    /// Records that the controller wrote this revision of a definition.
    pub(crate) fn settle(&mut self, stored: &Stored) {
        self.of(stored).is_settled = true;
    }

    /// Whether the controller wrote this revision of a definition.
    pub(crate) fn is_settled(&self, stored: &Stored) -> bool {
        let known = self.known.get(&stored.key);
        known.is_some_and(|known| known.is_settled && known.revision == stored.revision)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn definition(group: &str) -> Value {
        json!({
            "metadata": {"name": "things.example.com", "uid": "u"},
            "spec": {"group": group, "versions": [
                {"name": "v1", "schema": {"openAPIV3Schema": {"type": "object"}}},
                {"name": "v2"},
            ]},
            "status": {"acceptedNames": {"plural": "things"}, "conditions": null},
        })
    }

    #[test]
    fn an_outline_is_read_again_when_the_definition_changes() {
        let storage = StorageId::new("apiextensions.k8s.io", "customresourcedefinitions");
        let key = ObjectKey::new("", "things.example.com");
        let (mut store, mut summaries) = (Store::default(), DefinitionSummaries::default());
        for group in ["example.com", "example.org"] {
            let stored = store.put(&storage, &key, definition(group), 0);
            assert!(!summaries.is_settled(&stored));
            summaries.settle(&stored);
            assert!(summaries.is_settled(&stored));
            let all = summaries.all(&store);
            assert_eq!(all.len(), 1);
            assert_eq!((all[0].group.as_str(), all[0].versions.len()), (group, 2));
            assert_eq!(all[0].accepted_names["plural"], "things");
        }
        store.remove(&storage, &key);
        assert!(summaries.all(&store).is_empty() && summaries.known.is_empty());
    }

    #[test]
    fn what_is_missing_is_empty() {
        for value in [json!({}), json!({"spec": null, "status": null}), json!({"spec": 1})] {
            let stored = Stored::new(ObjectKey::new("", "a"), &mut value.clone(), 1, 0);
            let summary = DefinitionSummary::read(&stored);
            assert!(summary.group.is_empty() && summary.versions.is_empty(), "{value}");
            assert!(summary.accepted_names.is_null());
        }
    }
}
