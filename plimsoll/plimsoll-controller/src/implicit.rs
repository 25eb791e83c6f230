//! Capabilities that a release makes necessary in a cluster that an earlier process brought to
//! another release: found from the objects that carry our field manager.

use std::collections::BTreeSet;

use futures::FutureExt;
use futures::stream::{self, StreamExt};
use kube::core::DynamicObject;
use kube::{Api, Client};
use plimsoll_api::ObjectKey;
use plimsoll_content::inclusion::{Context, Decision, capability_names, decide};
use plimsoll_content::{Manifest, Payload};
use plimsoll_plan::apply::fingerprint::FIELD_MANAGER;
use plimsoll_plan::capabilities::{Implied, implied_within};
use plimsoll_plan::plan::GroupVersionKind;
use plimsoll_plan::progress::Scope;

use crate::ownership::operator_of;
use crate::resources::Resources;

/// How many objects are looked for at a time.
const LOOKUPS: usize = 16;

/// The capabilities that a payload makes necessary in a cluster to which an earlier process applied
/// another one: that payload is not at hand, but its objects carry our field manager. `context` is
/// that of the payload with the overrides in force; its capabilities are not considered.
///
/// # Errors
///
/// When the server does not answer or rejects a read.
pub(crate) async fn by_what_is_there(
    client: &Client,
    resources: &Resources,
    payload: &Payload,
    context: &Context,
    enabled: &BTreeSet<String>,
) -> Result<Vec<Implied>, kube::Error> {
    let disabled = |manifest: &&Manifest| {
        capability_names(&manifest.annotations).iter().any(|name| !enabled.contains(*name))
            && decide(manifest, context) == Decision::Included
    };
    let candidates = payload.manifests.iter().filter(disabled);
    let lookup = |manifest| is_ours(client, resources, manifest).boxed();
    let lookups: Vec<_> = candidates.map(lookup).collect();
    let found: Vec<Result<Option<ObjectKey>, kube::Error>> =
        stream::iter(lookups).buffered(LOOKUPS).collect().await;
    let applied: Result<BTreeSet<ObjectKey>, kube::Error> =
        found.into_iter().filter_map(Result::transpose).collect();
    Ok(implied_within(&applied?, payload, context, enabled))
}

/// The object of a manifest, if it is there and we have applied it.
async fn is_ours(
    client: &Client,
    resources: &Resources,
    manifest: &Manifest,
) -> Result<Option<ObjectKey>, kube::Error> {
    let key = &manifest.key;
    let kind = GroupVersionKind {
        group: key.group.clone(),
        version: manifest.version.clone(),
        kind: key.kind.clone(),
    };
    let Some(served) = resources.get(&kind) else { return Ok(None) };
    let api: Api<DynamicObject> = match served.scope {
        Scope::Namespaced => Api::namespaced_with(client.clone(), &key.namespace, &served.resource),
        Scope::Cluster => Api::all_with(client.clone(), &served.resource),
    };
    let found = api.get_metadata_opt(&key.name).await?;
    // An Operator's object says nothing of the release.
    let found = found.filter(|object| operator_of(&object.metadata).is_empty());
    let managers = found.and_then(|object| object.metadata.managed_fields).unwrap_or_default();
    let ours = managers.iter().any(|entry| entry.manager.as_deref() == Some(FIELD_MANAGER));
    Ok(ours.then(|| key.clone()))
}
