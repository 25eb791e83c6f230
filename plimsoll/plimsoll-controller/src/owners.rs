//! Takes back the ownership that earlier versions of the program gave the ClusterVersion.
//!
//! They applied every object with an owner reference to it, so that the garbage collector of a
//! cluster would have deleted all of them with the one object. Nothing is applied like that any
//! more. What is there already is released once, before anything else is done: all objects of all
//! kinds, also those that no plan mentions, such as orphans and unmanaged ones.
//!
//! ReleaseProgress, which was owned itself, is released last: while it is owned, or while there is
//! none in a cluster that has a history, the rest may not be done.

use futures::{FutureExt, StreamExt};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Client;
use kube::core::DynamicObject;
use plimsoll_api::config::ClusterVersionStatus;
use plimsoll_api::{ObjectKey, RELEASE_PROGRESS};
use plimsoll_plan::apply::prepare::is_cluster_version;

use crate::dry_run::all_objects;
use crate::resources::{Resources, Served};
use crate::write::{Writer, chain};

/// Objects that are released at the same time.
const REQUESTS_MAX: usize = 16;

/// An object that a ClusterVersion owns.
struct OwnedObject {
    key: ObjectKey,
    served: Served,
    /// Position and uid of the owner reference.
    owner: (usize, String),
}

/// Releases what a ClusterVersion owns, unless that has been done. `progress` is the ReleaseProgress,
/// if there is one, and `status` that of the ClusterVersion. What cannot be released is logged, and
/// tried again at the next start.
pub(crate) async fn release(
    client: &Client,
    writer: &Writer,
    resources: &Resources,
    progress: Option<&DynamicObject>,
    status: &ClusterVersionStatus,
) {
    let is_due = match progress {
        Some(progress) => owner(&progress.metadata).is_some(),
        None => !status.history.is_empty(),
    };
    if !is_due {
        return;
    }
    let owned = |key: ObjectKey, served: &Served, metadata: &ObjectMeta| {
        Some(OwnedObject { key, served: served.clone(), owner: owner(metadata)? })
    };
    let found = match all_objects(client, resources, owned).await {
        Ok(found) => found,
        Err(error) => {
            let error = chain(&error);
            tracing::warn!(error, "the objects that the ClusterVersion owns cannot be listed");
            return;
        }
    };
    let is_progress = |object: &OwnedObject| object.key.kind == RELEASE_PROGRESS.kind;
    let (last, first): (Vec<OwnedObject>, Vec<OwnedObject>) =
        found.into_iter().partition(is_progress);
    let total = first.len();
    let releases: Vec<_> = first.iter().map(|object| release_one(writer, object).boxed()).collect();
    let released = futures::stream::iter(releases)
        .buffer_unordered(REQUESTS_MAX)
        .filter(|is_released| std::future::ready(*is_released))
        .count()
        .await;
    tracing::info!(released, total, "released objects that the ClusterVersion owned");
    if released == total {
        for object in &last {
            release_one(writer, object).await;
        }
    }
}

/// Returns whether an object could be released.
async fn release_one(writer: &Writer, object: &OwnedObject) -> bool {
    let OwnedObject { key, served, owner: (position, uid) } = object;
    match writer.remove_owner(served, key, *position, uid).await {
        Ok(()) => true,
        Err(error) => {
            let error = chain(&error);
            tracing::warn!(
                object = %key,
                error,
                "the object is still owned by the ClusterVersion, and would be deleted with it"
            );
            false
        }
    }
}

/// Position and uid of an owner reference to a ClusterVersion.
fn owner(metadata: &ObjectMeta) -> Option<(usize, String)> {
    let owners = metadata.owner_references.iter().flatten().enumerate();
    let mut of_cluster_version =
        owners.filter(|(_, owner)| is_cluster_version(&owner.api_version, &owner.kind));
    of_cluster_version.next().map(|(position, owner)| (position, owner.uid.clone()))
}
