//! CustomResourceDefinitions: validation, and the fields that the server sets.
use std::sync::Arc;

use serde_json::{Value, json};

use super::cluster::Cluster;
use super::conditions::set_condition;
use super::metadata;
use super::registry::ApiResource;
use super::registry::custom::storage_version;
use crate::storage::{ObjectKey, StorageId, Stored};

pub(crate) use k8s_schema::definition_rules::{approval, validate, validate_status};

/// The finalizer that blocks the removal of a definition until its objects are deleted.
pub(crate) const CLEANUP: &str = "customresourcecleanup.apiextensions.k8s.io";

/// The storage of definitions.
pub(crate) const STORAGE: &str = "customresourcedefinitions.apiextensions.k8s.io";

/// The stored definition of a custom resource; none for built-in ones.
pub(crate) fn of_resource<'a>(
    cluster: &'a Cluster,
    resource: &ApiResource,
) -> Option<&'a Arc<Stored>> {
    resource.custom()?;
    let name = format!("{}.{}", resource.plural, resource.group);
    cluster.store.find(&StorageId::of_text(STORAGE), &ObjectKey::new("", &name))
}

/// Adds the storage version of an updated definition to `status.storedVersions`.
///
/// Upstream: k8s.io/apiextensions-apiserver/pkg/registry/customresourcedefinition/strategy.go: PrepareForUpdate
pub(crate) fn note_storage_version(object: &mut Value) {
    let version = storage_version(object.get("spec"));
    let stored = &mut object["status"]["storedVersions"];
    if !stored.is_array() {
        *stored = json!([]);
    }
    if let Some(stored) = stored.as_array_mut()
        && !version.is_empty()
        && !stored.iter().any(|known| *known == version)
    {
        stored.push(version.into());
    }
}

/// Adds the finalizer and the condition of a definition that is being deleted.
pub(crate) fn mark_terminating(object: &mut Value, now: &str) {
    let metadata = metadata::of(object);
    let finalizers = metadata.entry("finalizers").or_insert_with(|| json!([]));
    if let Some(finalizers) = finalizers.as_array_mut()
        && !finalizers.iter().any(|finalizer| finalizer == CLEANUP)
    {
        finalizers.push(CLEANUP.into());
    }
    set_condition(
        &mut object["status"]["conditions"],
        "Terminating",
        "True",
        "InstanceDeletionPending",
        "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon",
        now,
    );
}
