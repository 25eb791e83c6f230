//! The roles and bindings that every cluster begins with.
//!
//! They were recorded from a real kube-apiserver (`cargo xtask codegen policy`), with
//! aggregated rules, in the order in which it wrote them.
use std::io::Read as _;

use flate2::read::DeflateDecoder;
use serde_json::Value;

use crate::semantics::cluster::Cluster;
use crate::semantics::registry::RBAC_GROUP;
use crate::storage::{ObjectKey, StorageId};

/// A compressed JSON list of `[plural, object]`.
static RECORDED: &[u8] = include_bytes!("../../../data/policy.bin");

/// Writes the recorded roles and bindings as if they had been created now.
///
/// Upstream: k8s.io/kubernetes/pkg/registry/rbac/rest/storage_rbac.go: EnsureRBACPolicy
pub(crate) fn install(cluster: &mut Cluster, now: &str) {
    for (plural, mut object) in recorded() {
        let uid = cluster.ids.next_uid();
        let metadata = &mut object["metadata"];
        metadata["uid"] = uid.into();
        metadata["creationTimestamp"] = now.into();
        for entry in metadata["managedFields"].as_array_mut().into_iter().flatten() {
            entry["time"] = now.into();
        }
        let text = |field: &str| metadata[field].as_str().unwrap_or_default();
        let key = ObjectKey::new(text("namespace"), text("name"));
        cluster.store.put(&StorageId::new(RBAC_GROUP, &plural), &key, object, 0);
    }
}

fn recorded() -> Vec<(String, Value)> {
    let mut text = Vec::new();
    DeflateDecoder::new(RECORDED)
        .read_to_end(&mut text)
        .ok()
        .and_then(|_| serde_json::from_slice(&text).ok())
        .expect("the recorded policy was written by our own generator")
}
