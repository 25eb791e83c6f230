//! The controllers of CustomResourceDefinitions: accepting names, serving, and cleaning up.
use std::collections::BTreeSet;
use std::sync::Arc;

use k8s_schema::{Schema, versions};
use serde_json::{Value, json};

use crate::json::texts;
use crate::semantics::cluster::{Cluster, ObjectChange};
use crate::semantics::conditions::set_condition;
use crate::semantics::definition::{self, CLEANUP, approval};
use crate::semantics::registry::ApiResource;
use crate::semantics::registry::custom::{resource_of, schema_of};
use crate::storage::{ObjectKey, StorageId, Stored};
use crate::verbs::delete::{DeleteOptions, delete};

pub(crate) mod summary;

use summary::DefinitionSummaries;

pub(crate) use crate::semantics::definition::STORAGE;

/// The manager that writes the status of definitions.
const MANAGER: &str = "kube-apiserver";

/// Reacts to a write of a definition.
pub(crate) fn observe(
    summaries: &mut DefinitionSummaries,
    cluster: &mut Cluster,
    now: &str,
    change: &ObjectChange,
) {
    let name = change.key.name.to_string();
    let Some(current) = &change.current else {
        let storages: Vec<StorageId> = cluster
            .registry
            .custom_of(&name)
            .iter()
            .map(|resource| resource.storage.clone())
            .collect();
        cluster.registry.withdraw(&name);
        for storage in storages {
            cluster.store.end_watches(&storage);
        }
        resettle_names(summaries, cluster, now, &name);
        return;
    };
    if !super::is_current(cluster, change) || summaries.is_settled(current) {
        return;
    }
    if current.deleting {
        clean_up(cluster, now, current);
    } else {
        establish(summaries, cluster, now, current);
    }
}

/// Reacts to the removal of any object, which may be the last one of a deleted definition.
pub(crate) fn observe_removal(cluster: &mut Cluster, now: &str, change: &ObjectChange) {
    let Some(resource) = cluster.registry.find_storage(&change.storage) else {
        return;
    };
    let definition = definition::of_resource(cluster, resource).cloned();
    if let Some(definition) = definition.filter(|definition| definition.deleting) {
        clean_up(cluster, now, &definition);
    }
}

fn definitions(cluster: &Cluster) -> Option<Arc<ApiResource>> {
    cluster.registry.find("apiextensions.k8s.io", "v1", "customresourcedefinitions").cloned()
}

/// Accepts the names of other definitions that conflicted with those of a removed one.
fn resettle_names(
    summaries: &mut DefinitionSummaries,
    cluster: &mut Cluster,
    now: &str,
    gone: &str,
) {
    let Some(resource) = definitions(cluster) else {
        return;
    };
    let waiting: Vec<Arc<Stored>> = cluster
        .store
        .list(&resource.storage, None)
        .filter(|stored| &*stored.key.name != gone && !stored.deleting)
        .filter(|stored| cluster.registry.custom_of(&stored.key.name).is_empty())
        .cloned()
        .collect();
    for stored in waiting {
        establish(summaries, cluster, now, &stored);
    }
}

/// Accepts the names of a definition as far as they are free, and serves it.
///
/// Upstream: k8s.io/apiextensions-apiserver/pkg/controller/establish/establishing_controller.go: sync
fn establish(
    summaries: &mut DefinitionSummaries,
    cluster: &mut Cluster,
    now: &str,
    stored: &Arc<Stored>,
) {
    let Some(resource) = definitions(cluster) else {
        return;
    };
    let name = stored.key.name.to_string();
    let mut object = stored.decode_as(&resource.api_version(), &resource.kind);
    let was_established = condition_is(&object, "Established", "True");
    let taken =
        Names::of_group(summaries, cluster, object["spec"]["group"].as_str().unwrap_or_default());
    let conflict = accept_names(&taken, &mut object);
    let conditions = &mut object["status"]["conditions"];
    let mut set = |condition: &str, status: &str, reason: &str, message: &str| {
        set_condition(conditions, condition, status, reason, message, now);
    };
    match &conflict {
        None => {
            set("NamesAccepted", "True", "NoConflicts", "no conflicts found");
            let message = "the initial names have been accepted";
            set("Established", "True", "InitialNamesAccepted", message);
        }
        Some((reason, message)) => {
            set("NamesAccepted", "False", reason, message);
            if !was_established {
                set("Established", "False", "NotAccepted", "not all names are accepted");
            }
        }
    }
    if let Some((status, reason, message)) = approval::condition(&object) {
        set_condition(
            &mut object["status"]["conditions"],
            "KubernetesAPIApprovalPolicyConformant",
            status,
            reason,
            &message,
            now,
        );
    }
    if conflict.is_none() || was_established {
        let accepted = object["status"]["acceptedNames"].clone();
        let wanted = std::mem::replace(&mut object["spec"]["names"], accepted);
        serve(cluster, &name, &object);
        object["spec"]["names"] = wanted;
    }
    let written = super::write_as(cluster, now, MANAGER, &resource, stored, object);
    summaries.settle(&written);
}

fn condition_is(object: &Value, condition_type: &str, status: &str) -> bool {
    object["status"]["conditions"]
        .as_array()
        .into_iter()
        .flatten()
        .any(|condition| condition["type"] == condition_type && condition["status"] == status)
}

/// The accepted names of all definitions of a group.
#[derive(Default)]
struct Names {
    resources: BTreeSet<String>,
    kinds: BTreeSet<String>,
}

impl Names {
    fn of_group(summaries: &mut DefinitionSummaries, cluster: &Cluster, group: &str) -> Self {
        let mut found = Self::default();
        for summary in summaries.all(&cluster.store) {
            if summary.group != group {
                continue;
            }
            let names = &summary.accepted_names;
            let text = |name: &str| names[name].as_str().map(str::to_owned);
            found.resources.extend(["plural", "singular"].iter().filter_map(|name| text(name)));
            found.resources.extend(texts(&names["shortNames"]).map(str::to_owned));
            found.kinds.extend(["kind", "listKind"].iter().filter_map(|name| text(name)));
        }
        found
    }
}

/// Accepts each name that is free or the definition's own; returns the reason and the message of
/// the last conflict.
///
/// Upstream: k8s.io/apiextensions-apiserver/pkg/controller/status/naming_controller.go: calculateNamesAndConditions
fn accept_names(taken: &Names, object: &mut Value) -> Option<(&'static str, String)> {
    let wanted = object["spec"]["names"].clone();
    let accepted = &mut object["status"]["acceptedNames"];
    let in_use = |name: &str| format!("{name:?} is already in use");
    let mut conflict = None;
    for (field, reason, others) in [
        ("plural", "PluralConflict", &taken.resources),
        ("singular", "SingularConflict", &taken.resources),
        ("shortNames", "ShortNamesConflict", &taken.resources),
        ("kind", "KindConflict", &taken.kinds),
        ("listKind", "ListKindConflict", &taken.kinds),
    ] {
        if wanted[field] == accepted[field] {
            continue;
        }
        let own: Vec<String> = match &accepted[field] {
            Value::String(name) => vec![name.clone()],
            list => texts(list).map(str::to_owned).collect(),
        };
        let asked: Vec<&str> = match &wanted[field] {
            Value::String(name) => vec![name.as_str()],
            list => texts(list).collect(),
        };
        let problems: Vec<String> = asked
            .into_iter()
            .filter(|name| {
                let is_own = own.iter().any(|own| own == name);
                !name.is_empty() && !is_own && others.contains(*name)
            })
            .map(in_use)
            .collect();
        match problems.as_slice() {
            [] => copy_name(&wanted, accepted, field),
            [one] => conflict = Some((reason, one.clone())),
            several => conflict = Some((reason, format!("[{}]", several.join(", ")))),
        }
    }
    copy_name(&wanted, accepted, "categories");
    conflict
}

fn copy_name(wanted: &Value, accepted: &mut Value, field: &str) {
    if !accepted.is_object() {
        *accepted = json!({"plural": "", "kind": ""});
    }
    let Some(accepted) = accepted.as_object_mut() else { return };
    match wanted.get(field) {
        Some(value) => drop(accepted.insert(field.to_owned(), value.clone())),
        None => drop(accepted.remove(field)),
    }
}

/// Serves a definition of a snapshot, if it is established.
pub(crate) fn resume(cluster: &mut Cluster, stored: &Stored) {
    let object = stored.decode();
    if condition_is(&object, "Established", "True") {
        serve(cluster, &stored.key.name, &object);
    }
}

/// Serves the versions of a definition, unless they are served already.
fn serve(cluster: &mut Cluster, name: &str, object: &Value) {
    let group = object["spec"]["group"].as_str().unwrap_or_default();
    let plural = object["spec"]["names"]["plural"].as_str().unwrap_or_default();
    if cluster.registry.is_built_in(group, plural) {
        return;
    }
    let source = object["spec"].to_string();
    if cluster.registry.is_served_from(name, &source) {
        return;
    }
    let mut resources = Vec::new();
    let mut served: Vec<&Value> = object["spec"]["versions"]
        .as_array()
        .into_iter()
        .flatten()
        .filter(|version| version["served"] == true || version["storage"] == true)
        .collect();
    let mut storage_form = None;
    served.sort_by(|left, right| {
        let name = |version: &'_ Value| version["name"].as_str().unwrap_or_default().to_owned();
        versions::compare(&name(left), &name(right))
    });
    let stored = served.iter().find(|version| version["storage"] == true);
    let stored_schema = match stored.map(|version| schema_of(object, version)) {
        Some(Ok(schema)) => schema,
        Some(Err(_)) | None => Schema::untyped(),
    };
    for version in served {
        let schema_id = cluster.registry.next_schema_id();
        match resource_of(object, version, &stored_schema, schema_id) {
            Ok(resource) => {
                let resource = Arc::new(resource);
                if version["storage"] == true {
                    storage_form = Some(Arc::clone(&resource));
                }
                if version["served"] == true {
                    resources.push(resource);
                }
            }
            // Validation rejects such definitions, so this one was not validated.
            Err(errors) => tracing::warn!(?errors, name, "a stored schema is not structural"),
        }
    }
    // Watches of the resource need its storage.
    for resource in &resources {
        drop(cluster.store.subscribe(&resource.storage));
    }
    cluster.registry.serve(name, &source, resources);
    if let Some(resource) = storage_form {
        cluster.registry.set_storage_form(name, &resource);
    }
}

/// Deletes the objects of a deleted definition, and drops its finalizer once they are gone.
///
/// Upstream: k8s.io/apiextensions-apiserver/pkg/controller/finalizer/crd_finalizer.go: sync
fn clean_up(cluster: &mut Cluster, now: &str, stored: &Arc<Stored>) {
    let Some(definitions) = definitions(cluster) else {
        return;
    };
    let name = stored.key.name.to_string();
    let resource = cluster.registry.custom_of(&name).first().cloned();
    let mut left = 0;
    if let Some(resource) = resource {
        let keys: Vec<ObjectKey> = cluster
            .store
            .list(&resource.storage, None)
            .filter(|object| !object.deleting)
            .map(|object| object.key.clone())
            .collect();
        for key in keys {
            let options = DeleteOptions::default();
            if let Err(error) = delete(cluster, now, &resource, &key, &options) {
                tracing::debug!(%error, name, "an object of a deleted definition stays");
            }
        }
        left = cluster.store.count(&resource.storage);
    }
    if left == 0 {
        super::garbage::drop_finalizer(cluster, &definitions, &stored.key, CLEANUP);
        return;
    }
    let mut object = stored.decode_as(&definitions.api_version(), &definitions.kind);
    set_condition(
        &mut object["status"]["conditions"],
        "Terminating",
        "True",
        "InstanceDeletionInProgress",
        "CustomResource deletion is in progress",
        now,
    );
    super::write_as(cluster, now, MANAGER, &definitions, stored, object);
}
