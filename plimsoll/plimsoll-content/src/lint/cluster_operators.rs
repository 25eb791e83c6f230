//! ClusterOperators that gate nothing, or too early.

use std::collections::BTreeMap;

use serde_json::Value;

use super::FindingCollector;
use crate::Manifest;
use crate::annotations::DELETE;
use crate::diagnostic::FindingCode;
use crate::position::Position;

pub(super) fn check(manifests: &[Manifest], report: &mut FindingCollector<'_>) {
    // The last Deployment of each component, as its location in the payload.
    let mut deployments: BTreeMap<Position<'_>, usize> = BTreeMap::new();
    for (index, manifest) in manifests.iter().enumerate() {
        if let Some(position) = Position::of(&manifest.file).filter(|_| is_deployment(manifest)) {
            deployments.insert(position, index);
        }
    }
    for (index, manifest) in manifests.iter().enumerate() {
        if !is_operator(manifest) || !is_included_anywhere(manifest) {
            continue;
        }
        contents(manifest, report);
        let last = Position::of(&manifest.file).and_then(|position| deployments.get(&position));
        if let Some(last) = last.filter(|last| **last > index) {
            let message = format!(
                "the ClusterOperator {} comes before {} of its own component, which waits for it",
                manifest.key.name,
                manifests[*last].key.reference()
            );
            report.add(manifest, "kind", FindingCode::OperatorOrder, message);
        }
    }
}

fn contents(manifest: &Manifest, report: &mut FindingCollector<'_>) {
    let object = manifest.object();
    let is_empty =
        |pointer: &str| object.pointer(pointer).and_then(Value::as_array).is_none_or(Vec::is_empty);
    let name = &manifest.key.name;
    if is_empty("/status/versions") {
        let message = format!("the ClusterOperator {name} names no versions: its gate cannot pass");
        report.add(manifest, "status", FindingCode::OperatorVersions, message);
    }
    if let Some(lack) = related_objects(&object) {
        let message = format!("the related objects of ClusterOperator {name}: {lack}");
        report.add(manifest, "status", FindingCode::OperatorRelated, message);
    }
}

/// What the related objects of a ClusterOperator, or of its manifest, lack: support tools gather
/// them, and need a namespace at least and something in it or beside it (CO-5).
pub fn related_objects(cluster_operator: &Value) -> Option<String> {
    let objects = cluster_operator.pointer("/status/relatedObjects").and_then(Value::as_array);
    let objects = objects.map(Vec::as_slice).unwrap_or_default();
    let is_namespace = |object: &&Value| {
        object["resource"] == "namespaces" && object["group"].as_str().unwrap_or("").is_empty()
    };
    let namespaces = objects.iter().filter(is_namespace).count();
    if objects.is_empty() {
        Some("there are none; name a namespace and at least one other object".to_owned())
    } else if namespaces == 0 {
        Some("there is no namespace among them; name the component's".to_owned())
    } else if namespaces == objects.len() {
        Some("there are only namespaces; name at least one other object".to_owned())
    } else {
        None
    }
}

/// Whether the manifest is neither to be deleted nor left out of every cluster.
fn is_included_anywhere(manifest: &Manifest) -> bool {
    manifest.may_be_included() && !manifest.annotations.contains_key(DELETE)
}

fn is_operator(manifest: &Manifest) -> bool {
    manifest.key.group == "config.openshift.io" && manifest.key.kind == "ClusterOperator"
}

fn is_deployment(manifest: &Manifest) -> bool {
    manifest.key.group == "apps" && manifest.key.kind == "Deployment"
}
