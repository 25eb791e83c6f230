//! What others change is put right, what is not ours is left alone, and rest costs nothing.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::{ApiResource, DeleteParams, DynamicObject, Patch, PatchParams};
use kube::core::GroupVersionKind;
use plimsoll_content::Payload;
use plimsoll_controller::View;
use serde_json::{Value, json};

use crate::harness::{
    Harness, OperatorSetup, on_each_cluster, sample_payloads, sample_with,
    sample_without_definitions, until,
};

/// A ConfigMap of the sample with data, that is applied and not create-only.
fn config_map(payload: &Payload) -> (String, String, String, String) {
    let found = payload.manifests.iter().find_map(|manifest| {
        let object = manifest.object();
        let (key, value) = object["data"].as_object()?.iter().next()?;
        let plain = manifest.key.kind == "ConfigMap"
            && !manifest.annotations.keys().any(|key| key.contains("create-only"))
            && manifest
                .is_annotated_true("include.release.openshift.io/self-managed-high-availability")
            && !manifest.annotations.contains_key("release.openshift.io/feature-set")
            && !manifest.annotations.contains_key("capability.openshift.io/name");
        plain.then(|| {
            let (namespace, name) = (manifest.key.namespace.clone(), manifest.key.name.clone());
            (namespace, name, key.clone(), value.as_str().unwrap_or_default().to_owned())
        })
    });
    found.expect("the sample has such a ConfigMap")
}

async fn put_right(api: &Api<ConfigMap>, name: &str, wanted: impl Fn(&ConfigMap) -> bool) {
    let map = || async { api.get_opt(name).await.expect("the server answers") };
    until("it is put right", map, |found| found.as_ref().is_some_and(&wanted)).await;
}

fn value(map: &ConfigMap, key: &str) -> Option<String> {
    map.data.as_ref().and_then(|data| data.get(key)).cloned()
}

#[test]
fn changes_and_deletions_are_put_right_and_additions_of_others_stay() {
    assert_put_right(&sample_payloads().0);
}

#[test]
fn they_are_put_right_in_a_release_that_brings_no_kinds_too() {
    assert_put_right(&sample_without_definitions());
}

fn assert_put_right(first: &Arc<Payload>) {
    on_each_cluster(|kind| {
        let first = Arc::clone(first);
        async move {
            let mut harness = Harness::installed(kind, &[Arc::clone(&first)]).await;
            let (namespace, name, key, wanted) = config_map(&first);
            let api: Api<ConfigMap> = Api::namespaced(harness.client.clone(), &namespace);
            let change = |data: Value| Patch::Merge(json!({ "data": data }));
            let other =
                PatchParams { field_manager: Some("another-client".into()), ..Default::default() };

            let patch = change(json!({ (key.as_str()): "changed", "added": "theirs" }));
            api.patch(&name, &other, &patch).await.expect("a change");
            put_right(&api, &name, |map| value(map, &key).as_ref() == Some(&wanted)).await;
            let map = api.get(&name).await.expect("it is there");
            assert_eq!(value(&map, "added").as_deref(), Some("theirs"));

            let patch = change(json!({ (key.as_str()): null }));
            api.patch(&name, &other, &patch).await.expect("a removal");
            put_right(&api, &name, |map| value(map, &key).as_ref() == Some(&wanted)).await;

            let uid = api.get(&name).await.expect("it is there").metadata.uid;
            api.delete(&name, &DeleteParams::default()).await.expect("a deletion");
            put_right(&api, &name, |map| map.metadata.uid != uid).await;
            harness.stop().await;
        }
    });
}

/// An ImageStream and its kind, with what the published API says of tags: they are identified by
/// their names, and a tag without an import mode has `Legacy`.
const IMAGE_STREAMS: [(&str, &str); 2] = [
    (
        "0000_05_tally_01.crd.yaml",
        r#"
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: imagestreams.image.openshift.io
  annotations:
    include.release.openshift.io/self-managed-high-availability: "true"
spec:
  group: image.openshift.io
  scope: Namespaced
  names: {kind: ImageStream, listKind: ImageStreamList, plural: imagestreams, singular: imagestream}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              tags:
                type: array
                x-kubernetes-list-type: map
                x-kubernetes-list-map-keys: [name]
                items:
                  type: object
                  required: [name]
                  properties:
                    name: {type: string}
                    from: {type: object, x-kubernetes-preserve-unknown-fields: true}
                    importPolicy:
                      type: object
                      default: {}
                      properties:
                        importMode: {type: string, default: Legacy}
"#,
    ),
    (
        "0000_30_tally_01.yaml",
        r#"
apiVersion: image.openshift.io/v1
kind: ImageStream
metadata:
  name: tally
  namespace: default
  annotations:
    include.release.openshift.io/self-managed-high-availability: "true"
spec:
  tags:
  - name: latest
    from: {kind: DockerImage, name: registry.example.com/tally@sha256:1}
"#,
    ),
];

#[test]
fn tags_that_others_add_to_an_image_stream_stay_and_a_default_is_no_drift() {
    on_each_cluster(|kind| async move {
        let manifests = IMAGE_STREAMS.map(|(name, text)| (name.to_owned(), text.to_owned()));
        let mut harness = Harness::installed(kind, &[sample_with(&manifests)]).await;
        let gvk = GroupVersionKind::gvk("image.openshift.io", "v1", "ImageStream");
        let api: Api<DynamicObject> =
            Api::namespaced_with(harness.client.clone(), "default", &ApiResource::from_gvk(&gvk));
        let tags =
            || async { api.get("tally").await.expect("it is there").data["spec"]["tags"].clone() };
        let tag = |name: &str, image: &str| {
            json!({
                "name": name,
                "from": {"kind": "DockerImage", "name": format!("registry.example.com/tally@{image}")},
                "importPolicy": {"importMode": "Legacy"},
            })
        };
        let ours = tag("latest", "sha256:1");
        assert_eq!(tags().await, json!([ours]));
        let theirs = tag("theirs", "sha256:2");
        let change = async |tags: Value| {
            let other =
                PatchParams { field_manager: Some("another-client".into()), ..Default::default() };
            let patch = Patch::Merge(json!({ "spec": { "tags": tags } }));
            api.patch("tally", &other, &patch).await.expect("a change");
        };
        // As one change: after one that is not to what is ours, the controller applies the object once
        // more, and that may put right what is changed meanwhile before a watch shows it.
        change(json!([tag("latest", "sha256:3"), theirs])).await;
        until("ours is put right, theirs stays", tags, |it| *it == json!([ours, theirs])).await;
        let repairs = |view: &View| view.metrics.as_ref().map_or(0, |it| it.drift_repairs);
        let view = harness.until(|view| repairs(view) > 0).await;
        assert_eq!(repairs(&view), 1, "the default and the tag of others are no drift");
        harness.stop().await;
    });
}

#[test]
fn a_cluster_at_rest_costs_no_requests_but_watches() {
    let (first, _) = sample_payloads();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build()
        .expect("a runtime");
    runtime.block_on(async {
        let operators = OperatorSetup::default();
        let kind = k8s_testkit::ClusterKind::Embedded;
        let mut harness = Harness::start(kind, &[Arc::clone(&first)], operators).await;
        let (client, log) = harness.cluster.client_with_log();
        harness.control_with(client);
        harness.completed(&first.release.version).await;
        // What was begun before the rest may end.
        tokio::time::sleep(Duration::from_secs(30)).await;
        log.clear();
        tokio::time::sleep(Duration::from_secs(300)).await;
        let busy: Vec<String> =
            log.requests().into_iter().filter(|request| !request.contains("watch=true")).collect();
        assert!(busy.is_empty(), "{busy:#?}");
        harness.stop().await;
    });
}
