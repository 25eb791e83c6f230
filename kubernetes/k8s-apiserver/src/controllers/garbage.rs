//! Garbage collection along owner references.
//!
//! An object is deleted when its last owner is gone. Foreground deletion and orphaning are
//! finalizers of the owner, which are removed once its dependents are gone or orphaned.
//!
//! Upstream: k8s.io/kubernetes/pkg/controller/garbagecollector/garbagecollector.go: attemptToDeleteItem
use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::Value;

use crate::request::parameters::Propagation;
use crate::semantics::cluster::{Cluster, ObjectChange};
use crate::semantics::metadata;
use crate::semantics::registry::ApiResource;
use crate::storage::stored::OwnerReference;
use crate::storage::{ObjectKey, StorageId, Stored};
use crate::verbs::delete::{DeleteOptions, FOREGROUND, ORPHAN, delete};

/// Reacts to a write of any object.
pub(crate) fn observe(cluster: &mut Cluster, now: &str, change: &ObjectChange) {
    match &change.current {
        Some(current) => {
            if !super::is_current(cluster, change) {
                return;
            }
            if current.deleting {
                finalize(cluster, now, &change.storage, current);
            } else if !current.owners.is_empty() {
                collect_if_unowned(cluster, now, &change.storage, &change.key);
            }
        }
        None => {
            let Some(previous) = &change.previous else {
                return;
            };
            for (storage, key) in cluster.store.dependents(&previous.uid) {
                collect_if_unowned(cluster, now, &storage, &key);
            }
            for owner in &previous.owners {
                let place = cluster.store.find_uid(&owner.uid).cloned();
                if let Some((storage, key)) = place
                    && let Some(found) = cluster.store.find(&storage, &key).cloned()
                    && found.deleting
                {
                    finalize(cluster, now, &storage, &found);
                }
            }
        }
    }
}

/// Whether the owner of an object exists, or may exist.
fn exists(cluster: &Cluster, key: &ObjectKey, owner: &OwnerReference) -> bool {
    if let Some((_, owner_key)) = cluster.store.find_uid(&owner.uid) {
        // An owner in another namespace is treated as absent.
        return owner_key.namespace.is_empty() || owner_key.namespace == key.namespace;
    }
    // Objects of kinds that are not served may exist elsewhere.
    cluster.registry.find_kind(&owner.api_version, &owner.kind).is_none()
}

/// Upstream: k8s.io/kubernetes/pkg/controller/garbagecollector/garbagecollector.go: classifyReferences
fn collect_if_unowned(cluster: &mut Cluster, now: &str, storage: &StorageId, key: &ObjectKey) {
    let Some(stored) = cluster.store.find(storage, key).cloned() else {
        return;
    };
    let missing: Vec<&OwnerReference> =
        stored.owners.iter().filter(|owner| !exists(cluster, key, owner)).collect();
    if missing.is_empty() {
        return;
    }
    let Some(resource) = cluster.registry.find_storage(storage).cloned() else {
        return;
    };
    if missing.len() < stored.owners.len() {
        let gone: Vec<Box<str>> = missing.iter().map(|owner| owner.uid.clone()).collect();
        disown(cluster, &resource, &stored, &gone);
    } else if !stored.deleting {
        let options =
            DeleteOptions { propagation: kept_policy(&stored), ..DeleteOptions::default() };
        // This only fails for objects that cannot be deleted at all.
        if let Err(error) = delete(cluster, now, &resource, key, &options) {
            tracing::debug!(%error, ?storage, name = %key.name, "an object without owners stays");
        }
    }
}

/// The propagation policy that the finalizers of an object stand for.
fn kept_policy(stored: &Stored) -> Option<Propagation> {
    let object = stored.decode();
    let has = |name: &str| {
        object["metadata"]["finalizers"]
            .as_array()
            .into_iter()
            .flatten()
            .any(|finalizer| finalizer == name)
    };
    if has(ORPHAN) {
        Some(Propagation::Orphan)
    } else if has(FOREGROUND) {
        Some(Propagation::Foreground)
    } else {
        Some(Propagation::Background)
    }
}

/// Removes the references to some owners from an object.
///
/// Upstream: k8s.io/kubernetes/pkg/controller/garbagecollector/garbagecollector.go: orphanDependents
fn disown(
    cluster: &mut Cluster,
    resource: &Arc<ApiResource>,
    stored: &Arc<Stored>,
    owners: &[Box<str>],
) {
    let owners: BTreeSet<&str> = owners.iter().map(|uid| &**uid).collect();
    let mut object = stored.decode();
    let metadata = metadata::of(&mut object);
    if let Some(references) = metadata.get_mut("ownerReferences").and_then(Value::as_array_mut) {
        references.retain(|reference| {
            let uid = reference["uid"].as_str().unwrap_or_default();
            !owners.contains(uid)
        });
        if references.is_empty() {
            metadata.remove("ownerReferences");
        }
    }
    cluster.put(&resource.storage, &stored.key, object, stored.schema_id);
}

/// Handles the propagation finalizers of an owner that is marked for deletion.
///
/// Upstream: k8s.io/kubernetes/pkg/controller/garbagecollector/garbagecollector.go: processDeletingDependentsItem
fn finalize(cluster: &mut Cluster, now: &str, storage: &StorageId, owner: &Arc<Stored>) {
    let object = owner.decode();
    let finalizers = object["metadata"]["finalizers"].as_array();
    let has = |name: &str| finalizers.into_iter().flatten().any(|finalizer| finalizer == name);
    let Some(resource) = cluster.registry.find_storage(storage).cloned() else {
        return;
    };
    if has(ORPHAN) {
        for (storage, key) in cluster.store.dependents(&owner.uid) {
            let resource = cluster.registry.find_storage(&storage).cloned();
            let stored = cluster.store.find(&storage, &key).cloned();
            if let (Some(resource), Some(stored)) = (resource, stored) {
                disown(cluster, &resource, &stored, std::slice::from_ref(&owner.uid));
            }
        }
        drop_finalizer(cluster, &resource, &owner.key, ORPHAN);
    } else if has(FOREGROUND) {
        delete_dependents(cluster, now, owner);
        let blocked = cluster
            .store
            .dependents(&owner.uid)
            .iter()
            .filter_map(|(storage, key)| cluster.store.find(storage, key))
            .any(|dependent| {
                dependent
                    .owners
                    .iter()
                    .any(|reference| reference.uid == owner.uid && reference.blocks_owner)
            });
        if !blocked {
            drop_finalizer(cluster, &resource, &owner.key, FOREGROUND);
        }
    }
}

fn delete_dependents(cluster: &mut Cluster, now: &str, owner: &Stored) {
    for (storage, key) in cluster.store.dependents(&owner.uid) {
        let resource = cluster.registry.find_storage(&storage).cloned();
        let stored = cluster.store.find(&storage, &key).cloned();
        let (Some(resource), Some(stored)) = (resource, stored) else {
            continue;
        };
        if stored.deleting {
            continue;
        }
        let solid: Vec<Box<str>> = stored
            .owners
            .iter()
            .filter(|reference| reference.uid != owner.uid && exists(cluster, &key, reference))
            .map(|reference| reference.uid.clone())
            .collect();
        if !solid.is_empty() {
            disown(cluster, &resource, &stored, std::slice::from_ref(&owner.uid));
            continue;
        }
        if is_in_circle(cluster, &stored) {
            unblock_owners(cluster, &resource, &stored);
        }
        let options = DeleteOptions {
            propagation: cluster
                .store
                .has_dependents(&stored.uid)
                .then_some(Propagation::Foreground),
            ..DeleteOptions::default()
        };
        if let Err(error) = delete(cluster, now, &resource, &key, &options) {
            tracing::debug!(%error, ?storage, name = %key.name, "a dependent stays");
        }
    }
}

/// Whether an object waits for the deletion of one of its dependents that waits for it in turn.
fn is_in_circle(cluster: &Cluster, stored: &Stored) -> bool {
    let dependents = cluster.store.dependents(&stored.uid);
    let mut found = dependents.iter().filter_map(|(storage, key)| cluster.store.find(storage, key));
    found.any(|dependent| {
        let waits = || kept_policy(dependent) == Some(Propagation::Foreground);
        dependent.deleting && waits()
    })
}

/// Lets the owners of an object be deleted before it.
///
/// Upstream: k8s.io/kubernetes/pkg/controller/garbagecollector/patch.go: unblockOwnerReferencesStrategicMergePatch
fn unblock_owners(cluster: &mut Cluster, resource: &Arc<ApiResource>, stored: &Arc<Stored>) {
    let mut object = stored.decode();
    let references = metadata::of(&mut object).get_mut("ownerReferences");
    for reference in references.and_then(Value::as_array_mut).into_iter().flatten() {
        if reference["blockOwnerDeletion"] == true {
            reference["blockOwnerDeletion"] = false.into();
        }
    }
    cluster.put(&resource.storage, &stored.key, object, stored.schema_id);
}

/// Removes a finalizer from an object, and the object if nothing else blocks its deletion.
///
/// Upstream: k8s.io/kubernetes/pkg/controller/garbagecollector/operations.go: removeFinalizer
pub(crate) fn drop_finalizer(
    cluster: &mut Cluster,
    resource: &Arc<ApiResource>,
    key: &ObjectKey,
    finalizer: &str,
) {
    let Some(stored) = cluster.store.find(&resource.storage, key).cloned() else {
        return;
    };
    let mut object = stored.decode();
    let metadata = metadata::of(&mut object);
    if let Some(list) = metadata.get_mut("finalizers").and_then(Value::as_array_mut) {
        list.retain(|found| found != finalizer);
        if list.is_empty() {
            metadata.remove("finalizers");
        }
    }
    let finished = crate::semantics::cluster::is_finished(resource, &object);
    cluster.put(&resource.storage, key, object, stored.schema_id);
    if finished {
        cluster.remove(&resource.storage, key);
    }
}
