//! The namespace controllers: the initial content of a namespace, and its deletion.
//!
//! Upstream: k8s.io/kubernetes/pkg/controller/namespace/deletion/namespaced_resources_deleter.go: Delete
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::{Value, json};

use crate::semantics::cluster::{Cluster, ObjectChange, is_finished};
use crate::semantics::conditions::set_condition;
use crate::semantics::context::RequestContext;
use crate::semantics::registry::{ApiResource, Scope};
use crate::storage::{ObjectKey, StorageId, Stored};
use crate::verbs::create::{CreateSource, create};
use crate::verbs::delete::{DeleteOptions, delete};

/// The storage of namespaces.
pub(crate) const STORAGE: &str = "namespaces";

/// The field manager of writes that kube-controller-manager makes in a real cluster.
const MANAGER: &str = "kube-controller-manager";

/// Reacts to a write of a namespace.
pub(crate) fn observe(authority: &str, cluster: &mut Cluster, now: &str, change: &ObjectChange) {
    if !super::is_current(cluster, change) {
        return;
    }
    match (&change.previous, &change.current) {
        (None, Some(current)) if !current.deleting => {
            fill(authority, cluster, now, &current.key.name)
        }
        (_, Some(current)) if current.deleting => empty(cluster, now, &current.key.name),
        _ => {}
    }
}

/// Reacts to the removal of any object, which may be the last one of a terminating namespace.
pub(crate) fn observe_removal(
    authority: &str,
    cluster: &mut Cluster,
    now: &str,
    change: &ObjectChange,
) {
    if change.key.namespace.is_empty() {
        return;
    }
    let namespace = ObjectKey::new("", &change.key.namespace);
    let found = cluster.store.find(&StorageId::new("", STORAGE), &namespace);
    let is_content = matches!(
        (change.storage.as_str(), &*change.key.name),
        ("serviceaccounts", "default") | ("configmaps", "kube-root-ca.crt")
    );
    match found.map(|found| found.deleting) {
        Some(true) => finish(cluster, now, &namespace.name),
        Some(false) if is_content => fill(authority, cluster, now, &namespace.name),
        Some(false) | None => {}
    }
}

/// Creates the objects that every namespace contains, unless the cluster's settings say otherwise.
///
/// Upstream: k8s.io/kubernetes/pkg/controller/serviceaccount/serviceaccounts_controller.go: syncNamespace
fn fill(authority: &str, cluster: &mut Cluster, now: &str, namespace: &str) {
    if cluster.settings.empty_namespaces {
        return;
    }
    let contents = [
        (
            "serviceaccounts",
            json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}}),
        ),
        (
            "configmaps",
            json!({
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {
                    "name": "kube-root-ca.crt",
                    "annotations": {
                        "kubernetes.io/description":
                            "The certificate authority of this cluster's API server.",
                    },
                },
                "data": {"ca.crt": authority},
            }),
        ),
    ];
    for (plural, object) in contents {
        let Some(resource) = cluster.registry.find("", "v1", plural).cloned() else {
            continue;
        };
        let key =
            ObjectKey::new(namespace, object["metadata"]["name"].as_str().unwrap_or_default());
        if cluster.store.find(&resource.storage, &key).is_some() {
            continue;
        }
        let mut context = RequestContext {
            manager: MANAGER.to_owned(),
            now: now.to_owned(),
            ..RequestContext::default()
        };
        let created =
            create(cluster, &mut context, &resource, Some(namespace), object, CreateSource::Create);
        if let Err(error) = created {
            tracing::warn!(%error, namespace, plural, "could not fill a new namespace");
        }
    }
}

/// The namespaced resources, each storage once.
fn namespaced(cluster: &Cluster) -> Vec<Arc<ApiResource>> {
    let mut seen = BTreeSet::new();
    cluster
        .registry
        .all()
        .filter(|resource| resource.scope == Scope::Namespaced && resource.serves("delete"))
        .filter(|resource| seen.insert(resource.storage.clone()))
        .cloned()
        .collect()
}

/// Deletes the content of a terminating namespace, and the namespace once it is empty.
///
/// Upstream: k8s.io/kubernetes/pkg/controller/namespace/deletion/namespaced_resources_deleter.go: deleteAllContent
fn empty(cluster: &mut Cluster, now: &str, namespace: &str) {
    for resource in namespaced(cluster) {
        let keys: Vec<ObjectKey> = cluster
            .store
            .list(&resource.storage, Some(namespace))
            .filter(|stored| !stored.deleting)
            .map(|stored| stored.key.clone())
            .collect();
        for key in keys {
            let options = DeleteOptions {
                // There is no kubelet that would terminate pods.
                grace_period_seconds: Some(0),
                propagation: Some(crate::request::parameters::Propagation::Background),
                ..DeleteOptions::default()
            };
            if let Err(error) = delete(cluster, now, &resource, &key, &options) {
                tracing::debug!(%error, namespace, name = %key.name, "content of a namespace stays");
            }
        }
    }
    finish(cluster, now, namespace);
}

/// Removes a terminating namespace if it is empty; otherwise reports the remaining content in its
/// status.
///
/// Upstream: k8s.io/kubernetes/pkg/controller/namespace/deletion/namespaced_resources_deleter.go: finalizeNamespace
fn finish(cluster: &mut Cluster, now: &str, namespace: &str) {
    let Some(resource) = cluster.registry.find("", "v1", STORAGE).cloned() else {
        return;
    };
    let key = ObjectKey::new("", namespace);
    let Some(stored) = cluster.store.find(&resource.storage, &key).cloned() else {
        return;
    };
    let mut object = stored.decode_as("v1", "Namespace");
    let remaining = remaining(cluster, namespace);
    if remaining.is_empty() {
        if let Some(spec) = object["spec"].as_object_mut()
            && let Some(finalizers) = spec.get_mut("finalizers").and_then(Value::as_array_mut)
        {
            finalizers.retain(|finalizer| finalizer != "kubernetes");
            if finalizers.is_empty() {
                spec.remove("finalizers");
            }
        }
        if is_finished(&resource, &object) {
            cluster.remove(&resource.storage, &key);
            return;
        }
    }
    report(&mut object, &remaining, now);
    super::write_as(cluster, now, MANAGER, &resource, &stored, object);
}

/// The remaining content of a terminating namespace.
struct RemainingContent {
    /// Plural and group of a resource, and its number of objects.
    resources: Vec<(String, usize)>,
    /// Finalizers and the number of objects that have them.
    finalizers: BTreeMap<String, usize>,
}

impl RemainingContent {
    fn is_empty(&self) -> bool {
        self.resources.is_empty()
    }
}

fn remaining(cluster: &Cluster, namespace: &str) -> RemainingContent {
    let mut remaining = RemainingContent { resources: Vec::new(), finalizers: BTreeMap::new() };
    for resource in namespaced(cluster) {
        let objects: Vec<&Arc<Stored>> =
            cluster.store.list(&resource.storage, Some(namespace)).collect();
        if objects.is_empty() {
            continue;
        }
        let name = format!("{}.{}", resource.plural, resource.group);
        remaining.resources.push((name, objects.len()));
        for object in objects {
            for finalizer in object.decode()["metadata"]["finalizers"]
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(Value::as_str)
            {
                *remaining.finalizers.entry(finalizer.to_owned()).or_default() += 1;
            }
        }
    }
    remaining.resources.sort();
    remaining
}

/// Upstream: k8s.io/kubernetes/pkg/controller/namespace/deletion/status_condition_utils.go: Update
fn report(object: &mut Value, remaining: &RemainingContent, now: &str) {
    let resources: Vec<String> = remaining
        .resources
        .iter()
        .map(|(name, count)| format!("{name} has {count} resource instances"))
        .collect();
    let finalizers: Vec<String> = remaining
        .finalizers
        .iter()
        .map(|(name, count)| format!("{name} in {count} resource instances"))
        .collect();
    let content = if resources.is_empty() {
        ("False", "ContentRemoved", "All content successfully removed".to_owned())
    } else {
        (
            "True",
            "SomeResourcesRemain",
            format!("Some resources are remaining: {}", resources.join(", ")),
        )
    };
    let waiting = if finalizers.is_empty() {
        ("False", "ContentHasNoFinalizers", "All content-preserving finalizers finished".to_owned())
    } else {
        (
            "True",
            "SomeFinalizersRemain",
            format!(
                "Some content in the namespace has finalizers remaining: {}",
                finalizers.join(", ")
            ),
        )
    };
    let conditions = &mut object["status"]["conditions"];
    for (condition_type, (status, reason, message)) in [
        (
            "NamespaceDeletionDiscoveryFailure",
            ("False", "ResourcesDiscovered", "All resources successfully discovered".to_owned()),
        ),
        (
            "NamespaceDeletionGroupVersionParsingFailure",
            (
                "False",
                "ParsedGroupVersions",
                "All legacy kube types successfully parsed".to_owned(),
            ),
        ),
        (
            "NamespaceDeletionContentFailure",
            (
                "False",
                "ContentDeleted",
                "All content successfully deleted, may be waiting on finalization".to_owned(),
            ),
        ),
        ("NamespaceContentRemaining", content),
        ("NamespaceFinalizersRemaining", waiting),
    ] {
        set_condition(conditions, condition_type, status, reason, &message, now);
    }
}
