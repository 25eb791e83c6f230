//! Records the roles and bindings that a new cluster has: `cargo xtask codegen policy --from FILE`.
//!
//! FILE is the kubeconfig of a real control plane of the wanted version in which nothing was
//! changed, with its controller manager running; `kubectl` is taken from the path. What comes
//! out is `kubernetes/k8s-apiserver/data/policy.bin`: a compressed JSON list of `[plural, object]`
//! in the order of writing, without what differs from cluster to cluster.
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

const OUTPUT: &str = "kubernetes/k8s-apiserver/data/policy.bin";

/// Clusters write cluster roles first; among themselves objects keep their order.
const PLURALS: [&str; 4] = ["clusterroles", "clusterrolebindings", "roles", "rolebindings"];

/// Records the policy of the cluster that `kubeconfig` leads to.
pub(crate) fn record(kubeconfig: &Path) -> Result<()> {
    let mut found: Vec<(u64, Value)> = Vec::new();
    for plural in PLURALS {
        let list = get(kubeconfig, &format!("/apis/rbac.authorization.k8s.io/v1/{plural}"))?;
        for item in list["items"].as_array().into_iter().flatten() {
            let revision = item["metadata"]["resourceVersion"].as_str().unwrap_or_default();
            let revision = revision.parse().context("an object without a revision")?;
            found.push((revision, json!([plural, portable(item.clone())])));
        }
    }
    found.sort_by_key(|(revision, _)| *revision);
    let objects: Vec<Value> = found.into_iter().map(|(_, object)| object).collect();
    let target = crate::workspace_root()?.join(OUTPUT);
    fs::write(&target, crate::codegen::pack(&objects.into())?)
        .with_context(|| format!("cannot write {}", target.display()))
}

/// The object without what only one cluster has.
fn portable(mut object: Value) -> Value {
    if let Some(metadata) = object["metadata"].as_object_mut() {
        for field in ["uid", "resourceVersion", "creationTimestamp"] {
            metadata.remove(field);
        }
        for entry in
            metadata.get_mut("managedFields").and_then(Value::as_array_mut).into_iter().flatten()
        {
            entry["time"].take();
        }
    }
    object
}

fn get(kubeconfig: &Path, path: &str) -> Result<Value> {
    let output = Command::new("kubectl")
        .arg("--kubeconfig")
        .arg(kubeconfig)
        .args(["get", "--raw", path])
        .output()
        .context("cannot run kubectl")?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr).trim());
    serde_json::from_slice(&output.stdout).with_context(|| format!("{path} is not JSON"))
}
