//! The APIService of each served group-version, as kube-aggregator registers them.
use serde_json::{Value, json};

use super::definition::summary::DefinitionSummary;
use super::write_as;
use crate::semantics::cluster::{Cluster, ObjectChange};
use crate::semantics::conditions::set_condition;
use crate::semantics::context::RequestContext;
use crate::storage::{ObjectKey, StorageId};
use crate::verbs::create::{CreateSource, create};
use crate::verbs::delete::{DeleteOptions, delete};

const MANAGER: &str = "kube-apiserver";
const AUTOMANAGED: &str = "kube-aggregator.kubernetes.io/automanaged";

/// Priorities of the built-in groups in `groupPriorityMinimum`.
const GROUP_PRIORITIES: [(&str, i64); 21] = [
    ("", 18_000),
    ("admissionregistration.k8s.io", 16_700),
    ("apiextensions.k8s.io", 16_700),
    ("apps", 17_800),
    ("authentication.k8s.io", 17_700),
    ("authorization.k8s.io", 17_600),
    ("autoscaling", 17_500),
    ("batch", 17_400),
    ("certificates.k8s.io", 17_300),
    ("coordination.k8s.io", 16_500),
    ("discovery.k8s.io", 16_200),
    ("events.k8s.io", 17_750),
    ("flowcontrol.apiserver.k8s.io", 16_100),
    ("networking.k8s.io", 17_200),
    ("node.k8s.io", 16_300),
    ("policy", 17_100),
    ("rbac.authorization.k8s.io", 17_000),
    ("resource.k8s.io", 16_200),
    ("scheduling.k8s.io", 16_600),
    ("storage.k8s.io", 16_800),
    ("storagemigration.k8s.io", 15_800),
];
const CUSTOM_GROUP_PRIORITY: i64 = 1_000;
const CUSTOM_VERSION_PRIORITY: i64 = 100;

/// The APIService of a group-version.
struct LocalApiService<'a> {
    group: &'a str,
    version: &'a str,
    group_priority: i64,
    version_priority: i64,
    /// The value of the label [`AUTOMANAGED`].
    managed: &'a str,
}

/// Upstream: k8s.io/kubernetes/pkg/controlplane/apiserver/aggregator.go: DefaultGenericAPIServicePriorities
fn version_priority(group: &str, version: &str) -> i64 {
    match (group, version) {
        ("", _) => 1,
        (_, "v2") => 30,
        ("flowcontrol.apiserver.k8s.io" | "resource.k8s.io", _) => 21,
        _ => 15,
    }
}

/// Adds the APIServices of the built-in groups; that of the aggregator itself has none.
pub(crate) fn bootstrap(cluster: &mut Cluster, now: &str) {
    let mut versions: Vec<(String, String)> = cluster
        .registry
        .all()
        .map(|resource| (resource.group.clone(), resource.version.clone()))
        .filter(|(group, _)| group != "apiregistration.k8s.io")
        .collect();
    versions.sort();
    versions.dedup();
    for (group, version) in versions {
        let priority = GROUP_PRIORITIES.iter().find(|(name, _)| *name == group);
        let service = LocalApiService {
            group: &group,
            version: &version,
            group_priority: priority.map_or(CUSTOM_GROUP_PRIORITY, |(_, priority)| *priority),
            version_priority: version_priority(&group, &version),
            managed: "onstart",
        };
        add(cluster, now, &service);
    }
}

/// Adds and removes APIServices for the versions of a written definition.
///
/// Upstream: k8s.io/kubernetes/pkg/controlplane/controller/crdregistration/crdregistration_controller.go: handleVersionUpdate
pub(crate) fn observe(cluster: &mut Cluster, now: &str, change: &ObjectChange) {
    for stored in [&change.previous, &change.current].into_iter().flatten() {
        let DefinitionSummary { group, versions, .. } = &DefinitionSummary::read(stored);
        for version in versions {
            let is_served = cluster.registry.all().any(|resource| {
                resource.custom().is_some()
                    && resource.group == *group
                    && resource.version == *version
            });
            let key = ObjectKey::new("", &name_of(group, version));
            let is_listed = cluster.store.find(&storage(), &key).is_some();
            if is_served && !is_listed {
                let service = LocalApiService {
                    group,
                    version,
                    group_priority: CUSTOM_GROUP_PRIORITY,
                    version_priority: CUSTOM_VERSION_PRIORITY,
                    managed: "true",
                };
                add(cluster, now, &service);
            } else if is_listed && !is_served {
                remove(cluster, now, &key);
            }
        }
    }
}

fn storage() -> StorageId {
    StorageId::new("apiregistration.k8s.io", "apiservices")
}

fn name_of(group: &str, version: &str) -> String {
    format!("{version}.{group}")
}

fn add(cluster: &mut Cluster, now: &str, service: &LocalApiService<'_>) {
    let LocalApiService { group, version, group_priority, version_priority, managed } = *service;
    let Some(resource) =
        cluster.registry.find("apiregistration.k8s.io", "v1", "apiservices").cloned()
    else {
        return;
    };
    let mut spec = json!({
        "version": version,
        "groupPriorityMinimum": group_priority,
        "versionPriority": version_priority,
    });
    if !group.is_empty() {
        spec["group"] = group.into();
    }
    let name = name_of(group, version);
    let object = json!({
        "apiVersion": "apiregistration.k8s.io/v1",
        "kind": "APIService",
        "metadata": {"name": name, "labels": {AUTOMANAGED: managed}},
        "spec": spec,
    });
    let mut context = RequestContext {
        manager: MANAGER.to_owned(),
        now: now.to_owned(),
        ..RequestContext::default()
    };
    if let Err(error) = create(cluster, &mut context, &resource, None, object, CreateSource::Create)
    {
        tracing::warn!(%error, name, "could not list a group-version");
        return;
    }
    let Some(live) = cluster.store.find(&storage(), &ObjectKey::new("", &name)).cloned() else {
        return;
    };
    let mut available = live.decode_as(&resource.api_version(), &resource.kind);
    if !available["status"].is_object() {
        available["status"] = json!({});
    }
    let mut conditions = Value::Null;
    let message = "Local APIServices are always available";
    set_condition(&mut conditions, "Available", "True", "Local", message, now);
    available["status"]["conditions"] = conditions;
    write_as(cluster, now, MANAGER, &resource, &live, available);
}

fn remove(cluster: &mut Cluster, now: &str, key: &ObjectKey) {
    let Some(resource) =
        cluster.registry.find("apiregistration.k8s.io", "v1", "apiservices").cloned()
    else {
        return;
    };
    if let Err(error) = delete(cluster, now, &resource, key, &DeleteOptions::default()) {
        tracing::warn!(%error, "could not remove a group-version from the list");
    }
}
