//! The objects that are copied of a cluster, beside those of the kinds of which everything is.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use plimsoll_api::{ObjectKey, Reason};
use plimsoll_plan::apply::fingerprint::FIELD_MANAGER;
use serde_json::Value;

/// Single objects that decide about updates: kind, namespace, name.
const COPIED_OBJECTS: [(&str, &str, &str); 2] = [
    ("ConfigMap", "openshift-config-managed", "admin-gates"),
    ("ConfigMap", "openshift-config", "admin-acks"),
];

/// The objects that are copied, beside those that always are.
#[derive(Default)]
pub(super) struct Selection {
    /// Objects by their names.
    pub(super) named: BTreeSet<ObjectKey>,
    /// Resources (`plural.group`) of which everything is copied.
    pub(super) resources: BTreeSet<String>,
    /// The versions in which the objects of definitions are stored, as far as they are known, by resource.
    pub(super) stored: BTreeMap<String, String>,
    /// What Operators report about objects of others that are in their way, in lower case.
    pub(super) conflicts: Vec<String>,
}

impl Selection {
    /// Returns whether an object is copied: it is ours or named, or an Operator reports that it is in its way.
    pub(super) fn has(&self, key: &ObjectKey, metadata: &ObjectMeta) -> bool {
        let managers = metadata.managed_fields.as_deref().unwrap_or_default();
        let ours = managers.iter().any(|entry| {
            entry.manager.as_deref() == Some(FIELD_MANAGER)
                && entry.subresource.as_deref().unwrap_or_default().is_empty()
        });
        let names = (key.kind.as_str(), key.namespace.as_str(), key.name.as_str());
        let single = key.group.is_empty() && COPIED_OBJECTS.contains(&names);
        // A manifest may write a namespace for an object that has none.
        let of_that_name = |named: &ObjectKey| {
            named.group == key.group && named.kind == key.kind && named.name == key.name
        };
        ours || single
            || self.named.contains(key)
            || (key.namespace.is_empty() && self.named.iter().any(of_that_name))
            || self.is_in_the_way(key)
    }

    fn is_in_the_way(&self, key: &ObjectKey) -> bool {
        if self.conflicts.is_empty() {
            return false;
        }
        let key = key.to_string().to_lowercase();
        self.conflicts.iter().any(|it| it.contains(&key))
    }
}

/// Returns what an Operator reports about objects that are in its way, in lower case: conditions begin with a
/// capital letter.
pub(super) fn conflicts(operator: &Value) -> impl Iterator<Item = String> {
    let conditions = operator["status"]["conditions"].as_array().into_iter().flatten();
    let conflicts = conditions.filter(|it| it["reason"] == Reason::Conflict.as_str());
    conflicts.filter_map(|it| Some(it["message"].as_str()?.to_lowercase()))
}

#[cfg(test)]
mod tests {
    //! Objects, and whether they are copied.

    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_in_the_way_of_an_operator_is_copied() {
        let operator = json!({ "status": { "conditions": [
            {
                "type": "Progressing", "reason": "Conflict",
                "message": "Serviceaccount \"tide/tide-operator\" exists and does not belong to the Operator",
            },
            { "type": "Available", "reason": "AsExpected", "message": "configmap \"tide/other\"" },
        ] } });
        let selection =
            Selection { conflicts: conflicts(&operator).collect(), ..Selection::default() };
        let has = |group: &str, kind: &str, name: &str| {
            let key = ObjectKey {
                group: group.to_owned(),
                kind: kind.to_owned(),
                namespace: "tide".to_owned(),
                name: name.to_owned(),
            };
            selection.has(&key, &ObjectMeta::default())
        };
        assert!(has("", "ServiceAccount", "tide-operator"));
        assert!(!has("", "ServiceAccount", "tide"));
        assert!(!has("example.com", "ServiceAccount", "tide-operator"));
        assert!(!has("", "ConfigMap", "other"));
    }
}
