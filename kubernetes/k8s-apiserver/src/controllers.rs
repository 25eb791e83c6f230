//! The controllers of a control plane that clients rely on.
//!
//! They run inside the write that they react to, before its response is sent: nothing happens in
//! the background, so the same requests always give the same history. Each change is still a write
//! of its own with its own revision, so watches see the steps that a real cluster goes through.
use std::sync::Arc;

use k8s_schema::managed::{self, ManagerInfo};
use serde_json::Value;

use crate::semantics::cluster::{Cluster, ObjectChange};
use crate::semantics::registry::ApiResource;
use crate::storage::Stored;

pub(crate) mod bootstrap;
pub(crate) mod definition;
pub(crate) mod garbage;
pub(crate) mod namespace;
pub(crate) mod role_aggregation;
pub(crate) mod services;

use definition::summary::DefinitionSummaries;
use role_aggregation::AggregatedRoles;

/// The controllers of a cluster and what they remember between writes.
#[derive(Debug, Default)]
pub(crate) struct Controllers {
    /// The certificate of the cluster's authority, in PEM; each namespace gets a copy.
    authority: String,
    summaries: DefinitionSummaries,
    aggregated: AggregatedRoles,
}

impl Controllers {
    /// Controllers of a cluster whose authority has this certificate, in PEM.
    pub(crate) fn new(authority: &str) -> Self {
        Self { authority: authority.to_owned(), ..Self::default() }
    }

    /// Runs the controllers for all queued changes, and for those that they make themselves.
    pub(crate) fn settle(&mut self, cluster: &mut Cluster, now: &str) {
        while let Some(change) = cluster.unsettled.pop_front() {
            match change.storage.as_str() {
                definition::STORAGE => {
                    definition::observe(&mut self.summaries, cluster, now, &change);
                    services::observe(cluster, now, &change);
                }
                namespace::STORAGE => namespace::observe(&self.authority, cluster, now, &change),
                role_aggregation::STORAGE => {
                    role_aggregation::observe(&mut self.aggregated, cluster, now, &change);
                }
                _ => {}
            }
            garbage::observe(cluster, now, &change);
            if change.current.is_none() {
                namespace::observe_removal(&self.authority, cluster, now, &change);
                definition::observe_removal(cluster, now, &change);
            }
        }
    }
}

/// Writes an object that a controller changed, with the controller as the manager of the changed
/// fields. Nothing is written if nothing changed.
pub(crate) fn write_as(
    cluster: &mut Cluster,
    now: &str,
    manager: &str,
    resource: &ApiResource,
    live: &Arc<Stored>,
    object: Value,
) -> Arc<Stored> {
    let api_version = resource.api_version();
    let before = live.decode_as(&api_version, &resource.kind);
    if before == object {
        return Arc::clone(live);
    }
    let tracked = managed::track_update(
        resource.schema(),
        Some(&before),
        object,
        &ManagerInfo {
            manager,
            api_version: &api_version,
            subresource: "status",
            now,
            reset_fields: &[],
        },
    );
    cluster.put(&resource.storage, &live.key, tracked, live.schema_id)
}

/// Whether an object was not written again since a change.
fn is_current(cluster: &Cluster, change: &ObjectChange) -> bool {
    match (&change.current, cluster.store.find(&change.storage, &change.key)) {
        (Some(changed), Some(found)) => changed.revision == found.revision,
        (None, None) => true,
        _ => false,
    }
}
