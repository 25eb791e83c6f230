//! Copies of clusters: the objects that concern a release or Operators, in the snapshot format of the
//! embedded API server.
//!
//! Copied are the objects that the release names and those that are ours already, all definitions,
//! namespaces, ClusterOperators, Operators and admission policies without parameters, and what decides
//! about updates. For Operators these are also their Catalogs, OperatorRevisions and operands, the objects of
//! others that they report to be in their way, and nodes.
//! Admission webhooks and aggregated API servers that the release does not name are not copied,
//! and neither are objects of kinds that the embedded server neither has nor gets by a definition. No webhook
//! is called in a rehearsal, and no request is forwarded to another server.

mod selection;

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, BufRead, Write as _};
use std::path::Path;

use futures::{StreamExt, TryStreamExt};
use jiff::Timestamp;
use k8s_apiserver::{ApiServer, Options};
use kube::api::ListParams;
use kube::core::{ApiResource, DynamicObject, GroupVersionKind};
use kube::discovery::{Discovery, Scope, verbs};
use kube::{Api, Client};
use plimsoll_api::olm::OPERATOR_LABEL;
use plimsoll_api::{CATALOG, OPERATOR, OPERATOR_REVISION, ObjectKey};
use plimsoll_content::Payload;
use plimsoll_controller::operators::revision_key_secret;
use serde_json::{Value, json};
use thiserror::Error;

use self::selection::{Selection, conflicts};
use crate::cluster_state::api;
use crate::snapshot::{self, SnapshotError};

/// Why a cluster was not copied.
#[derive(Debug, Error)]
pub enum CopyError {
    /// What a server serves is not known.
    #[error("failed to discover the API of the cluster")]
    Discover {
        /// The error of the client.
        source: kube::Error,
    },
    /// Objects cannot be read.
    #[error("failed to copy the cluster's {resource}")]
    Copy {
        /// Plural name of the resource.
        resource: String,
        /// The error of the client.
        source: kube::Error,
    },
    /// The key that OperatorRevisions are signed with cannot be read.
    #[error(
        "failed to copy {key}, by which the controller knows its OperatorRevisions: without it, no Operator of the \
         copy would be as it is; grant list and get on Secrets"
    )]
    UnreadKey {
        /// The Secret of the key.
        key: ObjectKey,
    },
    /// The objects cannot be brought into the format of snapshots.
    #[error("failed to write the copy of the cluster")]
    Merge {
        /// The error of the encoding.
        source: io::Error,
    },
}

/// Requests at the same time: a live cluster has other things to do.
const REQUESTS_MAX: usize = 8;

/// Where the addresses of copied services begin, in the embedded server's `10.96.0.0/16`.
const FIRST_SUBNET: usize = 100;

/// Kinds of which everything is copied, by group.
const COPIED_KINDS: [(&str, &str); 12] = [
    ("", "Namespace"),
    ("apiextensions.k8s.io", DEFINITION),
    ("config.openshift.io", "ClusterVersion"),
    ("config.openshift.io", "ClusterOperator"),
    ("config.openshift.io", "FeatureGate"),
    ("olm.io", "MaintenanceWindow"),
    ("olm.io", "Operator"),
    ("plimsoll.io", "ReleaseProgress"),
    ("admissionregistration.k8s.io", "ValidatingAdmissionPolicy"),
    ("admissionregistration.k8s.io", "ValidatingAdmissionPolicyBinding"),
    ("admissionregistration.k8s.io", "MutatingAdmissionPolicy"),
    ("admissionregistration.k8s.io", "MutatingAdmissionPolicyBinding"),
];

/// The resource of the nodes, whose architectures decide about bundles. Without permission none is copied.
const NODES: &str = "nodes";

/// The resource of Secrets.
const SECRETS: &str = "secrets";

/// The kind of definitions.
const DEFINITION: &str = "CustomResourceDefinition";

/// Kinds of which nothing is copied, although it may be ours: they only report what happened.
const EXCLUDED_KINDS: [(&str, &str); 2] = [("", "Event"), ("events.k8s.io", "Event")];

/// A cluster, or a copy of a part of it, in the embedded API server's format.
#[derive(Debug, Clone)]
pub struct ClusterSnapshot {
    bytes: Vec<u8>,
    newest: Timestamp,
    /// Resources (`plural.group`) with objects that could not be copied.
    pub not_copied: Vec<String>,
    /// Resources (`plural.group`) of which nothing was copied, since they could not be listed.
    pub unread_kinds: Vec<String>,
}

impl ClusterSnapshot {
    /// Reads a file that `plimsoll sandbox serve --snapshot` or `rehearse --save` wrote.
    ///
    /// # Errors
    ///
    /// When it cannot be read.
    pub fn read(path: &Path) -> Result<Self, SnapshotError> {
        let bytes = std::fs::read(path)
            .map_err(|source| SnapshotError::Read { path: path.to_owned(), source })?;
        Ok(Self::of_bytes(bytes))
    }

    fn of_bytes(bytes: Vec<u8>) -> Self {
        let objects = objects(&bytes).map(|(_, object)| object);
        let newest = objects.filter_map(|object| newest(&object)).max();
        let newest = newest.unwrap_or_else(crate::clock::start_time);
        Self { bytes, newest, not_copied: Vec::new(), unread_kinds: Vec::new() }
    }

    /// Writes it to a file that only its owner can read.
    ///
    /// # Errors
    ///
    /// When it cannot be written; what was there stays.
    pub fn save(&self, path: &Path) -> Result<(), SnapshotError> {
        snapshot::write(path, |mut file| file.write_all(&self.bytes))
    }

    /// The bytes of the file.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The latest timestamp of any object: the rehearsal begins there.
    pub fn newest(&self) -> Timestamp {
        self.newest
    }

    /// The objects in it, with the names of their resources.
    pub(super) fn objects(&self) -> impl Iterator<Item = (String, Value)> {
        objects(&self.bytes)
    }

    /// Copies the objects that concern a release.
    ///
    /// # Errors
    ///
    /// When discovery fails, or a kind cannot be listed for another reason than permissions.
    pub async fn of_cluster(client: &Client, payload: &Payload) -> Result<Self, CopyError> {
        let named = payload.manifests.iter().map(|manifest| manifest.key.clone()).collect();
        Self::of_selected(client, &Selection { named, ..Selection::default() }).await
    }

    /// Copies the objects that concern Operators.
    ///
    /// # Errors
    ///
    /// When discovery fails, a kind cannot be listed for another reason than permissions, or there are
    /// OperatorRevisions and the key that they are signed with cannot be read.
    pub async fn of_operators(client: &Client) -> Result<Self, CopyError> {
        let definitions = GroupVersionKind::gvk("apiextensions.k8s.io", "v1", DEFINITION);
        let definitions = ApiResource::from_gvk(&definitions);
        let api: Api<DynamicObject> = Api::all_with(client.clone(), &definitions);
        let defined = api.list(&ListParams::default().labels(OPERATOR_LABEL)).await;
        let failed = |source| CopyError::Copy { resource: definitions.plural.clone(), source };
        let defined = defined.map_err(failed)?.items.into_iter();
        let stored = defined.filter_map(|it| Some((it.metadata.name?, stored_version(&it.data)?)));
        let stored: BTreeMap<String, String> = stored.collect();
        let kinds = [CATALOG, OPERATOR_REVISION];
        let kinds = kinds.iter().map(|it| format!("{}.{}", it.plural, it.group));
        let named = BTreeSet::from([revision_key_secret()]);
        let resources = stored.keys().cloned().chain(kinds).chain([NODES.to_owned()]).collect();
        let conflicts = reported_conflicts(client).await?;
        let selection = Selection { named, resources, stored, conflicts };
        let copy = Self::of_selected(client, &selection).await?;
        let revisions = format!("{}.{}", OPERATOR_REVISION.plural, OPERATOR_REVISION.group);
        let is_key_unread = copy.unread_kinds.iter().any(|it| it == SECRETS);
        if is_key_unread && copy.objects().any(|(resource, _)| resource == revisions) {
            return Err(CopyError::UnreadKey { key: revision_key_secret() });
        }
        Ok(copy)
    }

    async fn of_selected(client: &Client, selection: &Selection) -> Result<Self, CopyError> {
        let live = Discovery::new(client.clone()).run_aggregated().await;
        let live = match live {
            Ok(live) => live,
            Err(_) => Discovery::new(client.clone())
                .run()
                .await
                .map_err(|source| CopyError::Discover { source })?,
        };
        let base = ApiServer::new(Options::default());
        let embedded = embedded_kinds(&base).await;
        let embedded = embedded.map_err(|source| CopyError::Discover { source })?;
        let kinds = kinds(&live, &embedded, &selection.stored);
        let found: Vec<Option<CopiedObjects>> = futures::stream::iter(&kinds)
            .map(|kind| copy_kind(client, kind, selection))
            .buffered(REQUESTS_MAX)
            .try_collect()
            .await?;
        let mut copied = BTreeMap::new();
        let (mut not_copied, mut unread_kinds) = (BTreeSet::new(), BTreeSet::new());
        for (kind, found) in kinds.iter().zip(found) {
            let Some(found) = found else {
                unread_kinds.insert(storage(&kind.resource));
                continue;
            };
            if kind.support == EmbeddedSupport::None && !found.is_empty() {
                not_copied.insert(format!("{}.{}", kind.resource.plural, kind.resource.group));
            } else {
                copied.extend(found);
            }
        }
        let definitions = defined(&copied);
        copied.retain(|(resource, ..), _| {
            let known = kinds.iter().any(|kind| {
                kind.support == EmbeddedSupport::BuiltIn && storage(&kind.resource) == *resource
            });
            known || definitions.contains(resource) || {
                not_copied.insert(resource.clone());
                false
            }
        });
        let bytes = merged(&base, copied).map_err(|source| CopyError::Merge { source })?;
        Ok(Self {
            not_copied: not_copied.into_iter().collect(),
            unread_kinds: unread_kinds.into_iter().collect(),
            ..Self::of_bytes(bytes)
        })
    }
}

/// Objects by resource, namespace and name.
type CopiedObjects = BTreeMap<(String, String, String), Value>;

/// How the embedded server can serve a kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum EmbeddedSupport {
    BuiltIn,
    Definition,
    None,
}

/// A kind of the live cluster, in the version in which it is copied.
#[derive(Debug)]
struct LiveKind {
    resource: ApiResource,
    namespaced: bool,
    support: EmbeddedSupport,
}

/// The kinds that the embedded server has by itself: group and kind to version.
async fn embedded_kinds(
    base: &ApiServer,
) -> Result<BTreeMap<(String, String), String>, kube::Error> {
    let client = Client::new(base.clone(), "default");
    let discovery = Discovery::new(client).run_aggregated().await?;
    let mut kinds = BTreeMap::new();
    for group in discovery.groups() {
        for (resource, _) in group.recommended_resources() {
            kinds.insert((resource.group, resource.kind), resource.version);
        }
    }
    Ok(kinds)
}

/// The kinds of the live cluster whose objects can be listed, once each.
fn kinds(
    live: &Discovery,
    embedded: &BTreeMap<(String, String), String>,
    stored: &BTreeMap<String, String>,
) -> Vec<LiveKind> {
    let mut kinds: BTreeMap<(String, String), LiveKind> = BTreeMap::new();
    for group in live.groups() {
        for version in group.versions() {
            for (resource, capabilities) in group.versioned_resources(version) {
                let names = (resource.group.clone(), resource.kind.clone());
                let never = EXCLUDED_KINDS.contains(&(&names.0, &names.1));
                if never || !capabilities.supports_operation(verbs::LIST) {
                    continue;
                }
                let support = match embedded.get(&names) {
                    Some(kept) if *kept == resource.version => EmbeddedSupport::BuiltIn,
                    Some(_) => EmbeddedSupport::None,
                    None => EmbeddedSupport::Definition,
                };
                let is_stored = stored.get(&storage(&resource)) == Some(&resource.version);
                let namespaced = capabilities.scope == Scope::Namespaced;
                let kind = LiveKind { resource, namespaced, support };
                // The version that objects are stored in, or else the one listed first.
                match kinds.get(&names) {
                    Some(before) if before.support != EmbeddedSupport::None && !is_stored => {}
                    _ => {
                        kinds.insert(names, kind);
                    }
                }
            }
        }
    }
    kinds.into_values().collect()
}

/// The objects of a kind that are to be copied; `None` if it cannot be listed, though without it the rest can be
/// rehearsed.
async fn copy_kind(
    client: &Client,
    kind: &LiveKind,
    selection: &Selection,
) -> Result<Option<CopiedObjects>, CopyError> {
    let LiveKind { resource, namespaced, .. } = kind;
    let all: Api<DynamicObject> = Api::all_with(client.clone(), resource);
    let parameters = ListParams::default();
    let failed = |source| CopyError::Copy { resource: resource.plural.clone(), source };
    let mut found = CopiedObjects::new();
    let is_whole = COPIED_KINDS.contains(&(&resource.group, &resource.kind))
        || selection.resources.contains(&storage(resource));
    if is_whole {
        let list = match all.list(&parameters).await {
            Err(kube::Error::Api(status)) if status.code == 404 => return Ok(Some(found)),
            Err(kube::Error::Api(status)) if status.code == 403 && storage(resource) == NODES => {
                return Ok(None);
            }
            list => list.map_err(failed)?,
        };
        for object in list {
            insert(&mut found, resource, object);
        }
        found.retain(|_, object| object["spec"]["paramKind"].is_null());
        return Ok(Some(found));
    }
    let list = match all.list_metadata(&parameters).await {
        // What is not served any more has no objects, and what has no metadata is a view of others.
        Err(kube::Error::Api(status)) if matches!(status.code, 404..=406) => {
            return Ok(Some(found));
        }
        Err(kube::Error::Api(_)) => return Ok(None),
        list => list.map_err(failed)?,
    };
    for object in list {
        let key = ObjectKey {
            group: resource.group.clone(),
            kind: resource.kind.clone(),
            namespace: object.metadata.namespace.clone().unwrap_or_default(),
            name: object.metadata.name.clone().unwrap_or_default(),
        };
        if !selection.has(&key, &object.metadata) {
            continue;
        }
        let api: Api<DynamicObject> = if *namespaced {
            Api::namespaced_with(client.clone(), &key.namespace, resource)
        } else {
            all.clone()
        };
        if let Some(object) = api.get_opt(&key.name).await.map_err(failed)? {
            insert(&mut found, resource, object);
        }
    }
    Ok(Some(found))
}

/// Returns what the Operators of a cluster report about objects that are in their way.
async fn reported_conflicts(client: &Client) -> Result<Vec<String>, CopyError> {
    let operators = match api(client, OPERATOR).list(&ListParams::default()).await {
        Err(kube::Error::Api(status)) if status.code == 404 => return Ok(Vec::new()),
        listed => listed
            .map_err(|source| CopyError::Copy { resource: OPERATOR.plural.to_owned(), source })?,
    };
    Ok(operators.items.iter().flat_map(|it| conflicts(&it.data)).collect())
}

fn insert(found: &mut CopiedObjects, resource: &ApiResource, object: DynamicObject) {
    let namespace = object.metadata.namespace.clone().unwrap_or_default();
    let name = object.metadata.name.clone().unwrap_or_default();
    let mut object = serde_json::to_value(object).unwrap_or_default();
    if let Some(fields) = object.as_object_mut() {
        fields.remove("apiVersion");
        fields.remove("kind");
    }
    found.insert((storage(resource), namespace, name), object);
}

/// The name of a resource in snapshots of the embedded server.
fn storage(resource: &ApiResource) -> String {
    if resource.group.is_empty() {
        resource.plural.clone()
    } else {
        format!("{}.{}", resource.plural, resource.group)
    }
}

/// Returns the version that the objects of a definition are stored in.
fn stored_version(definition: &Value) -> Option<String> {
    let versions = definition["spec"]["versions"].as_array()?;
    let stored = versions.iter().find(|it| it["storage"] == true)?;
    stored["name"].as_str().map(str::to_owned)
}

/// The resources that copied definitions bring.
fn defined(copied: &CopiedObjects) -> BTreeSet<String> {
    let definitions = copied
        .keys()
        .filter(|(resource, ..)| resource == "customresourcedefinitions.apiextensions.k8s.io");
    definitions.map(|(_, _, name)| name.clone()).collect()
}

/// The snapshot of a new cluster with the copied objects in it, which win. Revisions are given out
/// anew, in the old order: those of two clusters do not fit together.
fn merged(base: &ApiServer, copied: CopiedObjects) -> io::Result<Vec<u8>> {
    let mut fresh = Vec::new();
    base.snapshot(&mut fresh)?;
    let text = String::from_utf8_lossy(&fresh);
    let mut header: Value = serde_json::from_str(text.lines().next().unwrap_or_default())?;
    let mut all: Vec<(u8, u64, String, Value)> = Vec::new();
    for (resource, object) in objects(&fresh) {
        let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default().to_owned();
        if !copied.contains_key(&(resource.clone(), text("namespace"), text("name"))) {
            all.push((0, revision(&object), resource, object));
        }
    }
    for ((resource, ..), object) in copied {
        all.push((1, revision(&object), resource, object));
    }
    move_services(&mut all);
    all.sort_by_key(|(age, revision, ..)| (*age, *revision));
    header["revision"] = json!(all.len().max(1));
    header["objects"] = json!(all.len());
    let mut bytes = serde_json::to_vec(&header)?;
    for ((_, _, resource, mut object), revision) in all.into_iter().zip(1..) {
        object["metadata"]["resourceVersion"] = json!(format!("{revision}"));
        bytes.push(b'\n');
        serde_json::to_writer(&mut bytes, &json!({ "resource": resource, "object": object }))?;
    }
    bytes.push(b'\n');
    Ok(bytes)
}

/// Gives services addresses of the embedded server's range: it refuses those of other clusters when
/// a service is updated.
fn move_services(objects: &mut [(u8, u64, String, Value)]) {
    let services = objects.iter_mut().filter(|(age, _, resource, object)| {
        let address = object["spec"]["clusterIP"].as_str().unwrap_or_default();
        *age == 1 && resource == "services" && !matches!(address, "" | "None")
    });
    for (number, (_, _, _, object)) in (0..).zip(services) {
        let address = format!("10.96.{}.{}", FIRST_SUBNET + number / 250, 1 + number % 250);
        object["spec"]["clusterIPs"] = json!([address]);
        object["spec"]["clusterIP"] = json!(address);
        object["spec"]["ipFamilies"] = json!(["IPv4"]);
        object["spec"]["ipFamilyPolicy"] = json!("SingleStack");
    }
}

fn revision(object: &Value) -> u64 {
    let text = object["metadata"]["resourceVersion"].as_str();
    text.and_then(|text| text.parse().ok()).unwrap_or_default()
}

/// The lines of a snapshot that hold objects.
pub(super) fn objects(bytes: &[u8]) -> impl Iterator<Item = (String, Value)> {
    bytes.lines().skip(1).filter_map(|line| {
        let mut line: Value = serde_json::from_str(&line.ok()?).ok()?;
        let resource = line["resource"].as_str()?.to_owned();
        Some((resource, line["object"].take()))
    })
}

/// The latest timestamp of an object.
fn newest(object: &Value) -> Option<Timestamp> {
    let entries = object["metadata"]["managedFields"].as_array().into_iter().flatten();
    let conditions = object["status"]["conditions"].as_array().into_iter().flatten();
    let times = entries
        .map(|entry| &entry["time"])
        .chain(conditions.map(|condition| &condition["lastTransitionTime"]))
        .chain([&object["metadata"]["creationTimestamp"]]);
    times.filter_map(|time| time.as_str()?.parse().ok()).max()
}

#[cfg(test)]
mod tests;
