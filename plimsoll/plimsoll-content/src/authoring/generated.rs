//! What a release has besides the objects of its components: its metadata, its images, its
//! capabilities, and the ClusterOperators that its components are done with.

use std::collections::BTreeSet;

use k8s_schema::builtin;
use plimsoll_api::ObjectKey;
use serde_json::{Value, json};

use super::{NAME_KEY, RENDERED_WITH_KEY, ReleaseSource, SourceImage};
use crate::payload::{ANY_PROFILE, PROFILES_KEY};

/// The ClusterOperator of a component with some objects, without annotations.
pub(super) fn cluster_operator(source: &ReleaseSource, name: &str, keys: &[&ObjectKey]) -> Value {
    let namespaces: BTreeSet<&str> =
        keys.iter().map(|key| key.namespace.as_str()).filter(|name| !name.is_empty()).collect();
    let mut related: Vec<Value> = namespaces
        .iter()
        .map(|name| json!({"group": "", "resource": "namespaces", "name": name}))
        .collect();
    for key in keys.iter().filter(|key| key.group == "apps") {
        let same = |it: &&builtin::Resource| it.group == key.group && it.kind == key.kind;
        let Some(resource) = builtin::resources().iter().find(same) else { continue };
        related.push(json!({
            "group": key.group,
            "resource": resource.plural,
            "namespace": key.namespace,
            "name": key.name,
        }));
    }
    json!({
        "apiVersion": "config.openshift.io/v1",
        "kind": "ClusterOperator",
        "metadata": { "name": name },
        "spec": {},
        "status": {
            "versions": [{ "name": "operator", "version": source.version }],
            "relatedObjects": related,
        },
    })
}

/// The release has the capabilities that it declares and no others.
pub(super) fn capabilities(source: &ReleaseSource) -> Value {
    let declared: Vec<&Value> = source.capabilities.iter().map(|it| &it.declaration).collect();
    let current: Vec<&str> = source
        .capabilities
        .iter()
        .filter(|capability| !capability.opt_in)
        .map(|capability| capability.name.as_str())
        .collect();
    let mut spec = json!({ "omitBuiltIn": true });
    if !declared.is_empty() {
        spec["capabilities"] = json!(declared);
        spec["sets"] = json!([{ "name": "vCurrent", "capabilities": current }]);
    }
    json!({
        "apiVersion": "plimsoll.io/v1alpha1",
        "kind": "ReleaseCapabilities",
        "metadata": { "name": source.name },
        "spec": spec,
    })
}

/// `release-metadata`, with the programs that rendered manifests.
pub(super) fn metadata(source: &ReleaseSource, programs: &BTreeSet<String>) -> Value {
    let mut free = json!({ NAME_KEY: source.name });
    if !source.url.is_empty() {
        free["url"] = source.url.as_str().into();
    }
    if !source.channels.is_empty() {
        free["io.openshift.upgrades.graph.release.channels"] = source.channels.join(",").into();
    }
    if source.profiles.is_empty() {
        free[PROFILES_KEY] = ANY_PROFILE.into();
    }
    if !programs.is_empty() {
        let programs: Vec<&str> = programs.iter().map(String::as_str).collect();
        free[RENDERED_WITH_KEY] = programs.join(", ").into();
    }
    json!({
        "kind": "cincinnati-metadata-v0",
        "version": source.version,
        "previous": source.previous,
        "metadata": free,
    })
}

/// `image-references`.
pub(super) fn image_references(version: &str, images: &[SourceImage]) -> Value {
    let mut sorted: Vec<&SourceImage> = images.iter().collect();
    sorted.sort_by(|one, other| one.name.cmp(&other.name));
    let tag = |image: &&SourceImage| json!({ "name": image.name, "from": { "kind": "DockerImage", "name": image.image } });
    json!({
        "apiVersion": "image.openshift.io/v1",
        "kind": "ImageStream",
        "metadata": { "name": version },
        "spec": { "tags": sorted.iter().map(tag).collect::<Vec<_>>() },
    })
}
