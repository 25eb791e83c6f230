//! Changes of the ClusterVersion that a person asks for.

use anyhow::Context as _;
use kube::Client;
use kube::api::{Patch, PatchParams};
use plimsoll_api::{CLUSTER_VERSION, CLUSTER_VERSION_NAME};
use plimsoll_simulation::cluster_state::api;
use serde_json::Value;

/// What most patches of this program are called in `managedFields`.
const FIELD_MANAGER: &str = "plimsoll-update";

/// Changes the ClusterVersion.
pub(crate) async fn patch(client: &Client, patch: &Value) -> Result<(), anyhow::Error> {
    patch_as(FIELD_MANAGER, client, patch).await
}

/// Changes the ClusterVersion under another name in `managedFields`.
pub(crate) async fn patch_as(
    field_manager: &str,
    client: &Client,
    patch: &Value,
) -> Result<(), anyhow::Error> {
    let parameters =
        PatchParams { field_manager: Some(field_manager.to_owned()), ..PatchParams::default() };
    api(client, CLUSTER_VERSION)
        .patch(CLUSTER_VERSION_NAME, &parameters, &Patch::Merge(patch))
        .await
        .context("failed to change ClusterVersion \"version\"")?;
    Ok(())
}
