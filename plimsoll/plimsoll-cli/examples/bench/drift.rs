//! How long it takes to revert what another client changed, with a thousand objects under watch.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use futures::StreamExt;
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_testkit::ClusterKind;
use kube::Api;
use kube::api::{Patch, PatchParams, WatchEvent, WatchParams};
use plimsoll_content::Payload;
use plimsoll_content::payload::{Directory, SourceFile, parse};
use serde_json::json;

use crate::{Figure, stage};

/// Objects under watch.
const OBJECTS: usize = 1000;
/// Changes that are measured.
const CHANGES: usize = 200;

pub(crate) async fn measure(kind: ClusterKind) -> Result<Vec<Figure>, anyhow::Error> {
    let payload = Arc::new(payload()?);
    let cluster = kind.start().await?;
    let client = cluster.client();
    let mut work = stage::work(&client, client.clone(), &[Arc::clone(&payload)], Duration::ZERO);
    work.completed(&payload.release.version).await?;
    let api: Api<ConfigMap> = Api::namespaced(client.clone(), "measured");
    let version = api.list_metadata(&Default::default()).await?.metadata.resource_version;
    let mut events =
        api.watch(&WatchParams::default(), &version.unwrap_or_default()).await?.boxed();
    let other = PatchParams { field_manager: Some("another-client".into()), ..Default::default() };
    let mut times = Vec::new();
    for change in 0..CHANGES {
        let name = format!("map-{}", change * 7 % OBJECTS);
        let patch = Patch::Merge(json!({ "data": { "key": format!("changed {change}") } }));
        let began = Instant::now();
        api.patch(&name, &other, &patch).await?;
        let mut changed = false;
        loop {
            let event = events.next().await.context("the watch ended")??;
            let WatchEvent::Modified(map) = event else { continue };
            if map.metadata.name.as_deref() != Some(&name) {
                continue;
            }
            let right = map.data.and_then(|data| data.get("key").map(|v| v == "value"));
            if right == Some(false) {
                changed = true;
            } else if changed {
                times.push(began.elapsed().as_secs_f64() * 1000.0);
                break;
            }
        }
    }
    work.stop.cancel();
    times.sort_by(f64::total_cmp);
    let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize];
    let (median, last) = (at(0.5), at(0.99));
    let text = format!("p50 {median:.0} ms, p99 {last:.0} ms of {CHANGES} changes");
    let json = json!({ "p50": median, "p99": last, "objects": OBJECTS, "changes": CHANGES });
    Ok(vec![Figure::new(
        "drift repair, 1,000 objects",
        &format!("{kind:?}"),
        text,
        "p99 1 s",
        json,
    )])
}

fn payload() -> Result<Payload, anyhow::Error> {
    let include = json!({ "include.release.openshift.io/self-managed-high-availability": "true" });
    let release = |name: &str, text: String| SourceFile {
        directory: Directory::ReleaseManifests,
        name: name.to_owned(),
        bytes: text.into(),
    };
    let metadata = json!({ "kind": "cincinnati-metadata-v0", "version": "1.0.0" });
    let images = json!({ "kind": "ImageStream", "apiVersion": "image.openshift.io/v1",
        "metadata": { "name": "1.0.0", "creationTimestamp": "2026-01-01T00:00:00Z" } });
    let namespace = json!({ "apiVersion": "v1", "kind": "Namespace",
        "metadata": { "name": "measured", "annotations": include } });
    let mut files = vec![
        release("release-metadata", metadata.to_string()),
        release("image-references", images.to_string()),
        release("0000_10_measured_00_namespace.json", namespace.to_string()),
    ];
    for number in 0..OBJECTS {
        let map = json!({ "apiVersion": "v1", "kind": "ConfigMap", "data": { "key": "value" },
            "metadata": { "name": format!("map-{number}"), "namespace": "measured",
                "annotations": include } });
        let name = format!("0000_20_component-{}_{number:04}.json", number % 20);
        files.push(release(&name, map.to_string()));
    }
    let own = json!({ "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": { "name": "own", "namespace": "measured", "annotations": include } });
    files.push(SourceFile {
        directory: Directory::Manifests,
        name: "0000_10_measured_01_own.json".to_owned(),
        bytes: own.to_string().into(),
    });
    Ok(parse(&files, &stage::template())?)
}
