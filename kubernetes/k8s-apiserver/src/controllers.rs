//! The controllers of a control plane that clients rely on.
//!
//! They run inside the write that they react to, before its response is sent: nothing happens in
//! the background, so the same requests always give the same history. Each change is still a write of
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

use definition::outline::Outlines;
use role_aggregation::Aggregators;

/// The controllers of a cluster and what they remember between writes.
#[derive(Debug, Default)]
pub(crate) struct Controllers {
    /// The certificate of the cluster's authority, in PEM; each namespace gets a copy.
    authority: String,
    outlines: Outlines,
    aggregators: Aggregators,
}

impl Controllers {
    /// Controllers of a cluster whose authority has this certificate, in PEM.
    pub(crate) fn new(authority: &str) -> Self {
        Self { authority: authority.to_owned(), ..Self::default() }
    }

    /// Runs the controllers for all queued changes, and for those that they make themselves.
    pub(crate) fn settle(&mut self, cluster: &mut Cluster, now: &str) {
        while let Some(notice) = cluster.notices.pop_front() {
            match notice.storage.as_str() {
                definition::STORAGE => {
                    definition::observe(&mut self.outlines, cluster, now, &notice);
                    services::observe(cluster, now, &notice);
                }
                namespace::STORAGE => namespace::observe(&self.authority, cluster, now, &notice),
                role_aggregation::STORAGE => {
                    role_aggregation::observe(&mut self.aggregators, cluster, now, &notice);
                }
                _ => {}
            }
            garbage::observe(cluster, now, &notice);
            if notice.current.is_none() {
                namespace::observe_removal(&self.authority, cluster, now, &notice);
                definition::observe_removal(cluster, now, &notice);
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

/// Whether an object was not written again since a change.
fn is_current(cluster: &Cluster, notice: &Notice) -> bool {
    match (&notice.current, cluster.store.find(&notice.storage, &notice.key)) {
        (Some(told), Some(found)) => told.revision == found.revision,
        (None, None) => true,
        _ => false,
    }
}
