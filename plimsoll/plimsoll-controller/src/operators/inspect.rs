//! Looks at objects before they are taken over, and at what a namespace holds.

use futures::{StreamExt as _, TryStreamExt as _, stream};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::ListParams;
use kube::core::{ApiResource, DynamicObject};
use kube::{Api, Client, ResourceExt as _};
use plimsoll_api::ObjectKey;
use plimsoll_api::olm::OPERATOR_LABEL;
use plimsoll_bundle::crd_safety;
use plimsoll_plan::operators::reconciler::{Findings, FoundObject};
use plimsoll_plan::plan::GroupVersionKind;
use plimsoll_plan::progress::{Scope, Trace};
use serde_json::Value;

use crate::definition::definitions;
use crate::observe::trace;
use crate::resources::{Resources, Served};
use crate::write::chain;

/// Requests in flight while objects are looked at.
const CONCURRENCY: usize = 16;

/// Looks at objects, each with the version of its manifest, and holds definitions against those that
/// exist.
///
/// # Errors
///
/// When the server does not answer or rejects a request; the text says what it was about.
pub(super) async fn look(
    client: Client,
    resources: Resources,
    objects: Vec<(ObjectKey, String)>,
    definitions: Vec<Value>,
) -> Result<Findings, String> {
    let requests = objects.into_iter().filter_map(|(key, version)| {
        let kind = GroupVersionKind { group: key.group.clone(), version, kind: key.kind.clone() };
        // Of a kind that is not served there are no objects.
        let served = resources.get(&kind)?.clone();
        let client = client.clone();
        Some(async move { found(client, &served, key).await })
    });
    let looked = stream::iter(requests).buffer_unordered(CONCURRENCY);
    let mut objects: Vec<FoundObject> =
        looked.try_filter_map(|found| async move { Ok(found) }).try_collect().await?;
    objects.sort_by(|one, two| one.key.cmp(&two.key));
    let mut unsafe_definitions = Vec::new();
    for definition in definitions {
        unsafe_definitions.extend(problems(&client, &definition).await?);
    }
    Ok(Findings { objects, unsafe_definitions })
}

async fn found(
    client: Client,
    served: &Served,
    key: ObjectKey,
) -> Result<Option<FoundObject>, String> {
    let api: Api<DynamicObject> = match served.scope {
        Scope::Cluster => Api::all_with(client, &served.resource),
        Scope::Namespaced => Api::namespaced_with(client, &key.namespace, &served.resource),
    };
    let live = api.get_metadata_opt(&key.name).await;
    let live = live.map_err(|error| format!("failed to look at {key}: {}", chain(&error)))?;
    Ok(live.map(|live| {
        let controller = live.metadata.owner_references.iter().flatten();
        let mut controller = controller.filter(|owner| owner.controller == Some(true));
        FoundObject {
            operator: operator(&live.metadata),
            is_ours: matches!(trace(&live.metadata), Trace::Ours(_)),
            controller: controller.next().map(|it| format!("{} \"{}\"", it.kind, it.name)),
            is_terminating: live.metadata.deletion_timestamp.is_some(),
            key,
        }
    }))
}

/// The Operator that the label of an object names; empty without one.
pub(super) fn operator(metadata: &ObjectMeta) -> String {
    let labels = metadata.labels.as_ref();
    labels.and_then(|it| it.get(OPERATOR_LABEL)).cloned().unwrap_or_default()
}

/// What a definition changes of the one that exists that its users cannot follow.
async fn problems(client: &Client, definition: &Value) -> Result<Vec<String>, String> {
    let name = definition["metadata"]["name"].as_str().unwrap_or_default();
    let api: Api<DynamicObject> = Api::all_with(client.clone(), &definitions());
    let live = api.get_opt(name).await;
    let live =
        live.map_err(|error| format!("failed to read definition {name}: {}", chain(&error)))?;
    let Some(live) = live else { return Ok(Vec::new()) };
    let live = serde_json::to_value(live).map_err(|error| error.to_string())?;
    let verdict = crd_safety::check(&live, definition)
        .map_err(|error| format!("definition {name}: {error}"))?;
    let problem = |it: crd_safety::UpgradeProblem| {
        let version = it.version.map(|it| format!(" {it}")).unwrap_or_default();
        let property = it.property.map(|it| format!(" {it}")).unwrap_or_default();
        format!("{name}{version}{property}: {}", it.message)
    };
    match verdict.allowed {
        true => Ok(Vec::new()),
        false => Ok(verdict.problems.into_iter().map(problem).collect()),
    }
}

/// What a namespace holds that is not of the cluster's own making.
///
/// # Errors
///
/// When the server does not answer or rejects a request. What may not be listed matters only if
/// nothing is found: the text names the permission that is missing.
pub(super) async fn namespace_content(
    client: Client,
    resources: Resources,
    namespace: &str,
) -> Result<Vec<ObjectKey>, String> {
    let mut kinds: Vec<Served> = Vec::new();
    for (_, served) in resources.iter().filter(|(_, it)| it.scope == Scope::Namespaced) {
        let is_known = kinds.iter().any(|it| {
            it.resource.group == served.resource.group && it.resource.kind == served.resource.kind
        });
        if !is_known && !is_transient(&served.resource) {
            kinds.push(served.clone());
        }
    }
    let requests = kinds.into_iter().map(|served| {
        let api: Api<DynamicObject> =
            Api::namespaced_with(client.clone(), namespace, &served.resource);
        async move {
            let listed = match api.list_metadata(&ListParams::default()).await {
                // What cannot be listed holds nothing.
                Err(kube::Error::Api(status)) if matches!(status.code, 404 | 405) => {
                    return Ok((Vec::new(), None));
                }
                Err(kube::Error::Api(status)) if status.code == 403 => {
                    return Ok((Vec::new(), Some(permission(&served.resource))));
                }
                listed => listed.map_err(|error| chain(&error))?,
            };
            let objects = listed.items.into_iter().map(|object| ObjectKey {
                group: served.resource.group.clone(),
                kind: served.resource.kind.clone(),
                namespace: namespace.to_owned(),
                name: object.name_any(),
            });
            let objects: Vec<ObjectKey> = objects.filter(|key| !is_of_cluster(key)).collect();
            Ok::<_, String>((objects, None))
        }
    });
    let listed = stream::iter(requests).buffer_unordered(CONCURRENCY);
    let listed: Vec<(Vec<ObjectKey>, Option<String>)> = listed.try_collect().await?;
    let (objects, forbidden): (Vec<_>, Vec<_>) = listed.into_iter().unzip();
    contained(objects.concat(), forbidden.into_iter().flatten().collect())
}

/// How a permission to list is granted.
fn permission(resource: &ApiResource) -> String {
    match resource.group.as_str() {
        "" => resource.plural.clone(),
        group => format!("{}.{group}", resource.plural),
    }
}

/// What a namespace holds, if some kinds may not be listed: one object is enough to know that it is
/// not empty.
fn contained(objects: Vec<ObjectKey>, forbidden: Vec<String>) -> Result<Vec<ObjectKey>, String> {
    let (mut objects, mut forbidden) = (objects, forbidden);
    objects.sort();
    forbidden.sort();
    if !objects.is_empty() || forbidden.is_empty() {
        return Ok(objects);
    }
    Err(format!(
        "the controller may not list {}: grant it list on them, or delete the namespace yourself",
        forbidden.join(", ")
    ))
}

/// Kinds whose objects come and go with others, or are only views.
fn is_transient(resource: &ApiResource) -> bool {
    matches!(
        (resource.group.as_str(), resource.kind.as_str()),
        ("", "Event" | "Endpoints" | "Binding")
            | ("events.k8s.io", "Event")
            | ("discovery.k8s.io", "EndpointSlice")
            | ("coordination.k8s.io", "Lease")
            | ("metrics.k8s.io" | "authorization.k8s.io", _)
    )
}

/// What every namespace has.
fn is_of_cluster(key: &ObjectKey) -> bool {
    matches!(
        (key.group.as_str(), key.kind.as_str(), key.name.as_str()),
        ("", "ConfigMap", "kube-root-ca.crt" | "openshift-service-ca.crt")
            | ("", "ServiceAccount", "default")
    )
}

#[cfg(test)]
mod tests;
