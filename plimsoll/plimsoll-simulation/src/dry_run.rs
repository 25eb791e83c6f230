//! Forecast of an update by a dry run on the cluster.

use std::sync::Arc;

use jiff::Timestamp;
use kube::Client;
use plimsoll_content::Payload;
use plimsoll_controller::DryRun;
use plimsoll_plan::forecast::{Forecast, of_cluster};
use plimsoll_plan::update::target::Target;

use crate::cluster_state::ClusterState;

/// Forecasts the update of a cluster to a payload at a time by dry-run requests, for a requested target.
///
/// # Errors
///
/// When an object cannot be read, or the server rejects dry runs for lack of permissions.
pub async fn forecast(
    client: &Client,
    cluster: &ClusterState,
    payload: &Payload,
    requested: &Target,
    now: Timestamp,
) -> Result<(Forecast, DryRun), plimsoll_controller::Error> {
    let mode = cluster.mode(&payload.named());
    let mut plan = Arc::new(requested.plan(payload, mode));
    let mut dry_run = plimsoll_controller::dry_run(client, &plan).await?;
    let (target, capabilities) = requested.towards(payload, &dry_run.ours);
    if target != *requested {
        // What is enabled only because of what is there was not in the plan that was tried.
        plan = Arc::new(target.plan(payload, mode));
        dry_run = plimsoll_controller::dry_run(client, &plan).await?;
    }
    let mut cluster_kinds = dry_run.cluster_kinds.clone();
    cluster_kinds.extend(payload.cluster_kinds());
    let from = cluster.installed();
    let forecast = of_cluster(from, plan, &dry_run.observed_objects, &dry_run.ours, &cluster_kinds);
    let preconditions = cluster.findings(payload, &target, now);
    let forecast = Forecast { capabilities, preconditions, ..forecast };
    Ok((forecast, dry_run))
}
