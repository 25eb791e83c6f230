//! The controllers without which a cluster makes no sense.
//!
//! They run inside the write that concerns them, before its answer is sent: nothing happens in the
//! background, so the same requests always give the same history. Each change is still a write of
//! its own with its own revision, so watches see the steps that a real cluster goes through.
use std::sync::Arc;

use k8s_schema::managed::{self, Actor};
use serde_json::Value;

use crate::semantics::cluster::{Cluster, Notice};
use crate::semantics::registry::ApiResource;
use crate::storage::Stored;

pub(crate) mod bootstrap;
pub(crate) mod definition;
pub(crate) mod garbage;
pub(crate) mod namespace;
pub(crate) mod role_aggregation;
pub(crate) mod services;

/// Lets the controllers see all writes that they have not seen, and those that they make of them.
pub(crate) fn settle(cluster: &mut Cluster, now: &str) {
    while let Some(notice) = cluster.notices.pop_front() {
        match notice.storage.as_str() {
            definition::STORAGE => {
                definition::observe(cluster, now, &notice);
                services::observe(cluster, now, &notice);
            }
            namespace::STORAGE => namespace::observe(cluster, now, &notice),
            role_aggregation::STORAGE => role_aggregation::observe(cluster, now, &notice),
            _ => {}
        }
        garbage::observe(cluster, now, &notice);
        if notice.current.is_none() {
            namespace::observe_removal(cluster, now, &notice);
            definition::observe_removal(cluster, now, &notice);
        }
    }
}

/// Writes an object that a controller changed, recording the controller as the owner of what it
/// changed. Nothing is written if nothing changed.
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
        &Actor {
            manager,
            api_version: &api_version,
            subresource: "status",
            now,
            reset_fields: &[],
        },
    );
    cluster.put(&resource.storage, &live.key, tracked, live.stamp)
}

/// Whether a notice is of an object that is still as the notice says.
fn is_current(cluster: &Cluster, notice: &Notice) -> bool {
    match (&notice.current, cluster.store.find(&notice.storage, &notice.key)) {
        (Some(told), Some(found)) => told.revision == found.revision,
        (None, None) => true,
        _ => false,
    }
}
