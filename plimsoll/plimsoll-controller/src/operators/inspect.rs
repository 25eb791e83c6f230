//! Inspection of objects before they are taken over, and of the content of namespaces.

use std::collections::BTreeMap;

use futures::{StreamExt as _, TryStreamExt as _, stream};
use jiff::Timestamp;
use kube::api::ListParams;
use kube::core::{ApiResource, DynamicObject};
use kube::{Api, Client, ResourceExt as _};
use plimsoll_api::olm::{CrdUpgradeSafety, OPERATOR_LABEL};
use plimsoll_api::{OPERATOR, ObjectKey};
use plimsoll_bundle::crd_safety::{self, UpgradeRule};
use plimsoll_operators::deletion::definition::DefinitionTimes;
use plimsoll_operators::reconciler::{ContainedObject, Findings, FoundObject};
use plimsoll_plan::plan::GroupVersionKind;
use plimsoll_plan::progress::Scope;
use serde_json::Value;

use crate::clock::{SharedClock, run_beside};
use crate::found::found_object;
use crate::resources::{
    Discovered, Resources, Served, UnknownVersion, defined_resource, definitions,
};
use crate::write::chain;

/// The number of requests in flight while objects are inspected.
const CONCURRENCY: usize = 16;
/// The number of custom resources per page. Each may be large, and only one page is in memory at a
/// time.
const PAGE_SIZE: u32 = 100;
/// The number of invalidated objects that are named; the others are counted.
const INVALIDATED_NAMED_MAX: usize = 3;

/// The words that introduce the objects that a new definition makes invalid, in messages about it.
pub const INVALIDATED: &str = "objects would be invalid";

/// The cluster that is inspected.
pub(super) struct Cluster {
    pub(super) client: Client,
    pub(super) clock: SharedClock,
    /// The kinds that the cluster serves.
    pub(super) resources: Resources,
}

/// Inspects existing objects, each in the version of its manifest, and compares new definitions
/// with the existing ones.
///
/// # Errors
///
/// When the server does not answer or rejects a request; the text names what was requested.
pub(super) async fn inspect_objects(
    cluster: Cluster,
    objects: Vec<(ObjectKey, String)>,
    definitions: Vec<Value>,
    safety: CrdUpgradeSafety,
) -> Result<Findings, String> {
    let requests = objects.into_iter().filter_map(|(key, version)| {
        let kind = GroupVersionKind { group: key.group.clone(), version, kind: key.kind.clone() };
        // A kind that is not served has no objects.
        let served = cluster.resources.get(&kind)?.clone();
        let client = cluster.client.clone();
        Some(async move { found(client, &served, key).await })
    });
    let found = stream::iter(requests).buffer_unordered(CONCURRENCY);
    let mut objects: Vec<FoundObject> =
        found.try_filter_map(|found| async move { Ok(found) }).try_collect().await?;
    objects.sort_by(|one, two| one.key.cmp(&two.key));
    let mut findings = Findings { objects, ..Findings::default() };
    for definition in definitions {
        inspect_definition(&cluster, &definition, safety, &mut findings).await?;
    }
    Ok(findings)
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
    let live = match api.get_metadata_opt(&key.name).await {
        // The kind is not served any more, so it has no objects.
        Err(kube::Error::Api(status)) if status.code == 404 => None,
        live => live.map_err(|error| format!("failed to read {key}: {}", chain(&error)))?,
    };
    Ok(live.map(|live| found_object(key, &live.metadata)))
}

/// Finds the changes of an existing definition that no API server accepts and, unless these do not matter, those
/// that its clients cannot follow, and the objects that would become invalid.
pub(super) async fn inspect_definition(
    cluster: &Cluster,
    definition: &Value,
    safety: CrdUpgradeSafety,
    findings: &mut Findings,
) -> Result<(), String> {
    let name = definition["metadata"]["name"].as_str().unwrap_or_default();
    let api: Api<DynamicObject> = Api::all_with(cluster.client.clone(), &definitions());
    let live = api.get_opt(name).await;
    let live =
        live.map_err(|error| format!("failed to read definition {name}: {}", chain(&error)))?;
    let Some(live) = live else { return Ok(()) };
    let live = serde_json::to_value(live).map_err(|error| error.to_string())?;
    if definition["spec"]["conversion"]["strategy"] == "Webhook" {
        findings.definitions.push(live.clone());
    }
    let is_off = safety == CrdUpgradeSafety::Off;
    let verdict = match crd_safety::check(&live, definition) {
        Ok(verdict) => verdict,
        Err(_) if is_off => return Ok(()),
        Err(error) => return Err(format!("definition {name}: {error}")),
    };
    let problem = |it: crd_safety::UpgradeProblem| {
        let version = it.version.map(|it| format!(" {it}")).unwrap_or_default();
        let property = it.property.map(|it| format!(" {it}")).unwrap_or_default();
        format!("{name}{version}{property}: {}", it.message)
    };
    let (refused, followed): (Vec<_>, Vec<_>) = verdict
        .problems
        .into_iter()
        .partition(|it| matches!(it.rule, UpgradeRule::Scope | UpgradeRule::StoredVersionRemoval));
    findings.refused_definitions.extend(refused.into_iter().map(problem));
    if is_off {
        return Ok(());
    }
    findings.unsafe_definitions.extend(followed.into_iter().map(problem));
    // Valid objects stay valid if the schemas are unchanged.
    if live["spec"]["versions"] != definition["spec"]["versions"] {
        let invalid = invalidated(cluster, name, &live, definition).await?;
        findings.unsafe_definitions.extend(invalid);
    }
    Ok(())
}

/// Returns a sentence with the custom resources that are valid by the existing definition and
/// invalid by the new one; `None` if there are none.
async fn invalidated(
    cluster: &Cluster,
    name: &str,
    live: &Value,
    definition: &Value,
) -> Result<Option<String>, String> {
    let Some(resource) = readable(live, definition) else { return Ok(None) };
    let api: Api<DynamicObject> = Api::all_with(cluster.client.clone(), &resource);
    let mut parameters = ListParams::default().limit(PAGE_SIZE);
    let (mut named, mut count) = (Vec::new(), 0);
    loop {
        let page = match api.list(&parameters).await {
            Ok(page) => page,
            // The kind is not served any more, so it has no objects.
            Err(kube::Error::Api(status)) if status.code == 404 => return Ok(None),
            Err(error) => {
                return Err(format!("failed to list the objects of {name}: {}", chain(&error)));
            }
        };
        let next = page.metadata.continue_.clone().filter(|token| !token.is_empty());
        let (live, definition) = (live.clone(), definition.clone());
        // Validating many objects takes a while. Other tasks continue in the meantime.
        let found = run_beside(&*cluster.clock, move || {
            let objects = page.items.into_iter().map(serde_json::to_value);
            let objects: Vec<Value> =
                objects.collect::<Result<_, _>>().map_err(|it| it.to_string())?;
            crd_safety::invalidated(&live, &definition, &objects).map_err(|it| it.to_string())
        });
        let found = found.await.unwrap_or_else(|error| Err(error.to_string()));
        let found = found.map_err(|error| format!("definition {name}: {error}"))?;
        count += found.len();
        let room = INVALIDATED_NAMED_MAX - named.len();
        named.extend(found.into_iter().take(room).map(|it| described(&it)));
        match next {
            Some(token) => parameters = parameters.continue_token(&token),
            None => break,
        }
    }
    let more = match count - named.len() {
        0 => String::new(),
        more => format!(", and {more} more"),
    };
    let named = named.join(", ");
    Ok((count > 0).then(|| format!("{name}: {INVALIDATED}: {named}{more}")))
}

/// Describes an object and the first of its errors.
fn described(object: &crd_safety::InvalidatedObject) -> String {
    let crd_safety::InvalidatedObject { kind, namespace, name, errors, .. } = object;
    let namespace = namespace.as_ref().map(|it| format!("{it}/")).unwrap_or_default();
    let error = errors.first().map(ToString::to_string).unwrap_or_default();
    format!("{kind} {namespace}{name} ({error})")
}

/// Returns the resource of a definition in a served version, preferably one that the new definition
/// has as well; `None` if no version is served.
fn readable(live: &Value, new: &Value) -> Option<ApiResource> {
    let stays = new["spec"]["versions"].as_array();
    defined_resource(live, |it| {
        let is_in_new = stays.into_iter().flatten().any(|new| new["name"] == it["name"]);
        (!is_in_new, it["storage"] != true)
    })
}

/// Returns the objects of a namespace, without those that the cluster itself creates in each
/// namespace. The kinds are discovered anew: some may have been defined since the process began.
///
/// # Errors
///
/// When the server does not answer or rejects a request, when the kinds of a group are not known, or
/// when no object was found and some kinds may not be listed; the text names the permission that is
/// missing.
pub(super) async fn namespace_content(
    client: Client,
    namespace: &str,
) -> Result<Vec<ContainedObject>, String> {
    let kinds = kinds(&client).await?.into_values().filter(|it| it.scope == Scope::Namespaced);
    let requests = kinds.map(|served| {
        let api: Api<DynamicObject> =
            Api::namespaced_with(client.clone(), namespace, &served.resource);
        async move {
            let listed = match api.list_metadata(&ListParams::default()).await {
                // A resource that cannot be listed has no objects.
                Err(kube::Error::Api(status)) if matches!(status.code, 404 | 405) => {
                    return Ok((Vec::new(), None));
                }
                Err(kube::Error::Api(status)) if status.code == 403 => {
                    return Ok((Vec::new(), Some(permission(&served.resource))));
                }
                listed => listed.map_err(|error| not_listed(&served.resource, &error))?,
            };
            let objects = listed.items.into_iter().map(|object| ContainedObject {
                key: ObjectKey {
                    group: served.resource.group.clone(),
                    kind: served.resource.kind.clone(),
                    namespace: namespace.to_owned(),
                    name: object.name_any(),
                },
                is_terminating: object.metadata.deletion_timestamp.is_some(),
            });
            let objects: Vec<ContainedObject> =
                objects.filter(|it| !is_of_cluster(&it.key)).collect();
            Ok::<_, String>((objects, None))
        }
    });
    let listed = stream::iter(requests).buffer_unordered(CONCURRENCY);
    let listed: Vec<(Vec<ContainedObject>, Option<String>)> = listed.try_collect().await?;
    let (objects, forbidden): (Vec<_>, Vec<_>) = listed.into_iter().unzip();
    contained(objects.concat(), forbidden.into_iter().flatten().collect())
}

/// Returns the times of the definition of Operators, as the server has it now; `None` if there is none.
///
/// # Errors
///
/// When the server does not answer or rejects the request.
pub(super) async fn operator_definition(client: Client) -> Result<Option<DefinitionTimes>, String> {
    let name = format!("{}.{}", OPERATOR.plural, OPERATOR.group);
    let api: Api<DynamicObject> = Api::all_with(client, &definitions());
    let found = api.get_metadata_opt(&name).await;
    let found =
        found.map_err(|error| format!("failed to read definition {name}: {}", chain(&error)))?;
    Ok(found.map(|it| DefinitionTimes {
        created: it.metadata.creation_timestamp.map_or(Timestamp::UNIX_EPOCH, |time| time.0),
        deleted: it.metadata.deletion_timestamp.map(|time| time.0),
    }))
}

/// Returns the kinds of which objects with the label of an Operator exist. Those that may not be listed are
/// left out: nothing of them was applied.
///
/// # Errors
///
/// When the server does not answer or rejects a request, or when the kinds of a group are not known.
pub(super) async fn kinds_of_operator(client: Client, operator: &str) -> Result<Resources, String> {
    let parameters = ListParams::default().labels(&format!("{OPERATOR_LABEL}={operator}")).limit(1);
    let requests = kinds(&client).await?.into_iter().map(|(kind, served)| {
        let api: Api<DynamicObject> = Api::all_with(client.clone(), &served.resource);
        let parameters = parameters.clone();
        async move {
            match api.list_metadata(&parameters).await {
                Ok(listed) => Ok((!listed.items.is_empty()).then_some((kind, served))),
                Err(kube::Error::Api(status)) if matches!(status.code, 403..=405) => Ok(None),
                Err(error) => Err(not_listed(&served.resource, &error)),
            }
        }
    });
    let found = stream::iter(requests).buffer_unordered(CONCURRENCY);
    let found: Vec<Option<(GroupVersionKind, Served)>> = found.try_collect().await?;
    Ok(found.into_iter().flatten().collect())
}

/// Discovers the kinds whose objects last, each in one served version.
///
/// # Errors
///
/// When the server does not answer or rejects discovery, or when the kinds of a group are not known.
async fn kinds(client: &Client) -> Result<BTreeMap<GroupVersionKind, Served>, String> {
    let discovered = Discovered::read(client).await;
    let Discovered { resources, unknown } =
        discovered.map_err(|error| format!("failed to discover all kinds: {}", chain(&error)))?;
    let unknown = unknown.iter().filter(|it| !has_only_views(&it.group));
    let unknown: Vec<String> = unknown.map(not_known).collect();
    if !unknown.is_empty() {
        return Err(unknown.join("; "));
    }
    let mut kinds: BTreeMap<GroupVersionKind, Served> = BTreeMap::new();
    for (kind, served) in resources.iter().filter(|(_, it)| !is_transient(&it.resource)) {
        if !kinds.keys().any(|it| it.group == kind.group && it.kind == kind.kind) {
            kinds.insert(kind.clone(), served.clone());
        }
    }
    Ok(kinds)
}

/// Returns the reason that the kinds of a group version are not known, and what to do.
fn not_known(unknown: &UnknownVersion) -> String {
    let UnknownVersion { group, version, error } = unknown;
    format!(
        "the kinds of {group}/{version} are not known ({}): restore what serves them, or delete \
         APIService {version}.{group}",
        chain(error)
    )
}

fn not_listed(resource: &ApiResource, error: &kube::Error) -> String {
    format!("failed to list {}: {}", permission(resource), chain(error))
}

/// Returns a resource in the form that `kubectl create role --resource` takes.
fn permission(resource: &ApiResource) -> String {
    match resource.group.as_str() {
        "" => resource.plural.clone(),
        group => format!("{}.{group}", resource.plural),
    }
}

/// Returns the objects of a namespace. Kinds that may not be listed are ignored if an object was
/// found: one is enough to know that the namespace is not empty.
fn contained(
    objects: Vec<ContainedObject>,
    forbidden: Vec<String>,
) -> Result<Vec<ContainedObject>, String> {
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

/// Returns whether the objects of a kind are views, or are created and deleted along with other
/// objects.
fn is_transient(resource: &ApiResource) -> bool {
    has_only_views(&resource.group)
        || matches!(
            (resource.group.as_str(), resource.kind.as_str()),
            ("", "Event" | "Endpoints" | "Binding")
                | ("events.k8s.io", "Event")
                | ("discovery.k8s.io", "EndpointSlice")
                | ("coordination.k8s.io", "Lease")
        )
}

/// Returns whether a group has no objects of its own, but views of others and of measurements.
fn has_only_views(group: &str) -> bool {
    matches!(group, "metrics.k8s.io" | "authentication.k8s.io" | "authorization.k8s.io")
        || group.ends_with(".metrics.k8s.io")
}

/// Returns whether an object exists in every namespace.
fn is_of_cluster(key: &ObjectKey) -> bool {
    matches!(
        (key.group.as_str(), key.kind.as_str(), key.name.as_str()),
        ("", "ConfigMap", "kube-root-ca.crt" | "openshift-service-ca.crt")
            | ("", "ServiceAccount", "default")
    )
}

#[cfg(test)]
mod tests;
