//! The workloads of Operators: objects of the kinds that they define.

use std::collections::BTreeMap;

use kube::api::{ListParams, ObjectMeta};
use kube::core::{ApiResource, DynamicObject};
use kube::{Api, Client, Error, ResourceExt as _};
use plimsoll_api::olm::{OPERATOR_LABEL, OperatorRevisionSpec, OperatorStatus, RemainingObjects};
use plimsoll_api::{OPERATOR_REVISION, ObjectKey};
use plimsoll_operators::deletion_plan::{self, RemovedConversion};
use serde::Deserialize as _;

use crate::resources::{api_resource, defined_resource, definitions};

/// Objects of one answer of the API server.
const PAGE: u32 = 500;
/// The maximum number of workloads of an Operator that are named.
const NAMES_MAX: usize = 20;

/// The workloads of an Operator could not be counted.
#[derive(Debug, thiserror::Error)]
pub enum WorkloadError {
    /// A definition could not be read.
    #[error("failed to read definition {name}")]
    Definition {
        /// Its name.
        name: String,
        /// The error of the client.
        source: Error,
    },
    /// The objects of a kind could not be listed.
    #[error("failed to list {kind}")]
    List {
        /// The kind, as people write it.
        kind: String,
        /// The error of the client.
        source: Error,
    },
}

/// An object of a kind that an Operator defines.
#[derive(Debug, Clone)]
pub struct Workload {
    /// How its kind is served.
    pub resource: ApiResource,
    /// Its metadata.
    pub metadata: ObjectMeta,
}

impl Workload {
    /// Which object it is.
    pub fn key(&self) -> ObjectKey {
        let (resource, metadata) = (&self.resource, self.metadata.clone());
        ObjectKey {
            group: resource.group.clone(),
            kind: resource.kind.clone(),
            namespace: metadata.namespace.unwrap_or_default(),
            name: metadata.name.unwrap_or_default(),
        }
    }
}

/// Adds the objects of its rollouts that are not complete to the inventory of an Operator, of which that has the
/// installed ones alone: a deletion deletes them, too. `operator` and `uid` identify it.
///
/// # Errors
///
/// When the API server does not answer.
pub async fn include_rollouts(
    client: &Client,
    operator: &str,
    uid: &str,
    status: &mut OperatorStatus,
) -> Result<(), Error> {
    if !deletion_plan::has_rollout(status) {
        return Ok(());
    }
    deletion_plan::include_rollouts(status, &revision_parts(client, operator, uid).await?);
    Ok(())
}

/// Returns the parts of the revisions of an Operator; `operator` and `uid` identify it.
///
/// # Errors
///
/// When the API server does not answer.
pub(crate) async fn revision_parts(
    client: &Client,
    operator: &str,
    uid: &str,
) -> Result<Vec<OperatorRevisionSpec>, Error> {
    let api: Api<DynamicObject> = Api::all_with(client.clone(), &api_resource(OPERATOR_REVISION));
    let selector = format!("{OPERATOR_LABEL}={operator}");
    let revisions = api.list(&ListParams::default().labels(&selector)).await?;
    let is_its_own =
        |it: &&DynamicObject| it.owner_references().iter().any(|owner| owner.uid == uid);
    let parts = revisions.items.iter().filter(is_its_own);
    let parts = parts.filter_map(|it| OperatorRevisionSpec::deserialize(&it.data["spec"]).ok());
    Ok(parts.collect())
}

/// Counts the objects of the kinds of an Operator, by kind and namespace, and names the first ones of the namespace
/// `named_in`; `None` for no names. Only metadata is read, a page at a
/// time.
///
/// # Errors
///
/// When a request fails.
pub async fn workloads(
    client: &Client,
    status: &OperatorStatus,
    named_in: Option<&str>,
) -> Result<Vec<RemainingObjects>, WorkloadError> {
    let mut found: BTreeMap<(String, String), RemainingObjects> = BTreeMap::new();
    let mut listed = 0;
    let count = |it: Workload| {
        let kind = format!("{}.{}", it.resource.kind, it.resource.group);
        let namespace = it.metadata.namespace.unwrap_or_default();
        let is_named = listed < NAMES_MAX && named_in == Some(namespace.as_str());
        let of_kind = found
            .entry((kind.clone(), namespace.clone()))
            .or_insert_with(|| RemainingObjects { kind, namespace, ..RemainingObjects::default() });
        of_kind.count += 1;
        if is_named {
            listed += 1;
            of_kind.names.extend(it.metadata.name);
        }
    };
    read_workloads(client, status, count).await?;
    Ok(found.into_values().collect())
}

/// Returns the conversion webhooks that the definitions of an Operator lose if it is deleted and they are kept.
///
/// # Errors
///
/// When a request fails.
pub async fn removed_conversions(
    client: &Client,
    status: &OperatorStatus,
) -> Result<Vec<RemovedConversion>, WorkloadError> {
    let mut removed = Vec::new();
    let api: Api<DynamicObject> = Api::all_with(client.clone(), &definitions());
    for name in deletion_plan::definitions(status) {
        let definition = api.get_opt(&name).await;
        let definition = definition
            .map_err(|source| WorkloadError::Definition { name: name.clone(), source })?;
        let definition = definition.and_then(|it| serde_json::to_value(it).ok());
        removed.extend(definition.and_then(|it| RemovedConversion::of(&it, status)));
    }
    Ok(removed)
}

/// The objects of the kinds of an Operator that its status calls stuck and that still have finalizers.
///
/// # Errors
///
/// When a request fails.
pub async fn stuck_workloads(
    client: &Client,
    status: &OperatorStatus,
) -> Result<Vec<Workload>, WorkloadError> {
    let mut stuck = Vec::new();
    let add = |it: Workload| {
        let begin = format!("{}: ", it.key());
        let mut named = status.deletion.iter().flat_map(|it| &it.stuck);
        let has_finalizers = it.metadata.finalizers.as_ref().is_some_and(|it| !it.is_empty());
        let is_terminating = it.metadata.deletion_timestamp.is_some();
        if is_terminating && has_finalizers && named.any(|it| it.starts_with(&begin)) {
            stuck.push(it);
        }
    };
    read_workloads(client, status, add).await?;
    Ok(stuck)
}

/// Reads the metadata of the objects of the kinds of an Operator, a page at a time.
async fn read_workloads(
    client: &Client,
    status: &OperatorStatus,
    mut read: impl FnMut(Workload),
) -> Result<(), WorkloadError> {
    for name in deletion_plan::definitions(status) {
        let api: Api<DynamicObject> = Api::all_with(client.clone(), &definitions());
        let definition = api.get_opt(&name).await;
        let definition = definition
            .map_err(|source| WorkloadError::Definition { name: name.clone(), source })?;
        let Some(resource) = definition.and_then(|it| defined_resource(&it.data, |_| ())) else {
            continue;
        };
        let objects: Api<DynamicObject> = Api::all_with(client.clone(), &resource);
        let mut parameters = ListParams::default().limit(PAGE);
        loop {
            let page = match objects.list_metadata(&parameters).await {
                Ok(page) => page,
                // Nothing is there of a kind that is not served yet, or any more.
                Err(Error::Api(status)) if status.code == 404 => break,
                Err(source) => {
                    let kind = format!("{}.{}", resource.kind, resource.group);
                    return Err(WorkloadError::List { kind, source });
                }
            };
            for object in page.items {
                read(Workload { resource: resource.clone(), metadata: object.metadata });
            }
            match page.metadata.continue_.filter(|it| !it.is_empty()) {
                Some(token) => parameters.continue_token = Some(token),
                None => break,
            }
        }
    }
    Ok(())
}
