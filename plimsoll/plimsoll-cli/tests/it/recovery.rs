//! The controller's own objects come back when they are deleted, nothing goes with them, and
//! releases that seem to be mistakes are refused.

use std::sync::Arc;

use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::api::{DeleteParams, ListParams, Patch, PatchParams};
use kube::{Api, ResourceExt as _};
use plimsoll_api::{ApiKind, CLUSTER_OPERATOR, CLUSTER_VERSION, RELEASE_PROGRESS};
use plimsoll_content::payload::SourceFile;
use plimsoll_controller::Error;
use plimsoll_simulation::sample;
use serde_json::{Value, json};

use crate::harness::{
    DEFINITION, Harness, on_any_cluster, on_each_cluster, sample_payload, sample_payloads, until,
};

async fn delete(harness: &Harness, kind: ApiKind) {
    let deleted = harness.api(kind).delete("version", &DeleteParams::default()).await;
    deleted.expect("it can be deleted");
}

/// The namespaces of a cluster with their uids.
async fn namespaces(harness: &Harness) -> Vec<(String, Option<String>)> {
    let api: Api<Namespace> = Api::all(harness.client.clone());
    let list = api.list(&ListParams::default()).await.expect("a list");
    list.items.into_iter().map(|it| (it.name_any(), it.metadata.uid)).collect()
}

/// The history of a ClusterVersion's status, without its times.
fn versions(object: &Value) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let history = object["status"]["history"].as_array().cloned().unwrap_or_default();
    history.iter().map(|entry| (text(&entry["version"]), text(&entry["state"]))).collect()
}

/// Waits until the end of the work is recorded, and returns the record: it comes after the status.
async fn at_rest(harness: &Harness) -> Value {
    until("it is at rest", || harness.progress(), |it| it["mode"] == "Reconciling").await
}

#[test]
fn a_deleted_release_progress_comes_back_and_work_goes_on() {
    on_each_cluster(|kind| async move {
        let (first, second) = sample_payloads();
        let payloads = [Arc::clone(&first), Arc::clone(&second)];
        let mut harness = Harness::installed(kind, &payloads).await;
        let before = at_rest(&harness).await;
        delete(&harness, RELEASE_PROGRESS).await;
        let progress = || harness.progress();
        until("it comes back as it was", progress, |progress| *progress == before).await;

        // One that is missed for a moment does not hold up what is written next.
        delete(&harness, RELEASE_PROGRESS).await;
        harness.release(&second);
        harness.completed(&second.release.version).await;
        assert_eq!(harness.progress().await["version"], json!(second.release.version));
        harness.stop().await;
    });
}

#[test]
fn a_deleted_definition_of_release_progress_comes_back() {
    on_each_cluster(|kind| async move {
        let (first, second) = sample_payloads();
        let payloads = [Arc::clone(&first), Arc::clone(&second)];
        let mut harness = Harness::installed(kind, &payloads).await;
        let before = at_rest(&harness).await;
        let name = format!("{}.{}", RELEASE_PROGRESS.plural, RELEASE_PROGRESS.group);
        let uid = async || harness.get(DEFINITION, &name).await["metadata"]["uid"].clone();
        let definition = uid().await;
        let deleted = harness.api(DEFINITION).delete(&name, &DeleteParams::default()).await;
        deleted.expect("it can be deleted");
        let is_another = |uid: &Value| uid.is_string() && *uid != definition;
        until("the definition comes back", &uid, is_another).await;
        let progress = || harness.progress();
        until("the progress comes back as it was", progress, |progress| *progress == before).await;
        harness.release(&second);
        harness.completed(&second.release.version).await;
        assert_eq!(harness.progress().await["version"], json!(second.release.version));
        harness.stop().await;
    });
}

#[test]
fn definitions_of_a_release_come_back_while_the_controller_runs() {
    on_each_cluster(|kind| async move {
        let (first, _) = sample_payloads();
        let mut harness = Harness::installed(kind, &[first]).await;
        at_rest(&harness).await;
        let existing = namespaces(&harness).await;
        let before = harness.get(CLUSTER_VERSION, "version").await;
        for defined in [CLUSTER_VERSION, CLUSTER_OPERATOR] {
            let name = format!("{}.{}", defined.plural, defined.group);
            let uid = async || harness.get(DEFINITION, &name).await["metadata"]["uid"].clone();
            let definition = uid().await;
            let deleted = harness.api(DEFINITION).delete(&name, &DeleteParams::default()).await;
            deleted.expect("it can be deleted");
            let is_another = |uid: &Value| uid.is_string() && *uid != definition;
            until(&format!("{name} comes back"), &uid, is_another).await;
            let cluster_version = || harness.get(CLUSTER_VERSION, "version");
            let is_continued = |it: &Value| versions(it) == versions(&before);
            until("the ClusterVersion continues", cluster_version, is_continued).await;
        }
        assert_eq!(namespaces(&harness).await, existing);
        harness.stop().await;
    });
}

#[test]
fn a_changed_definition_of_the_controller_is_put_right() {
    on_each_cluster(|kind| async move {
        let (first, _) = sample_payloads();
        let mut harness = Harness::installed(kind, &[first]).await;
        at_rest(&harness).await;
        for defined in [CLUSTER_VERSION, RELEASE_PROGRESS] {
            let name = format!("{}.{}", defined.plural, defined.group);
            let columns = async || {
                let definition = harness.get(DEFINITION, &name).await;
                definition["spec"]["versions"][0]["additionalPrinterColumns"].clone()
            };
            let was = columns().await;
            let path = "/spec/versions/0/additionalPrinterColumns";
            let column = json!([{ "name": "other", "type": "string", "jsonPath": ".kind" }]);
            let patch: json_patch::Patch =
                serde_json::from_value(json!([{ "op": "add", "path": path, "value": column }]))
                    .expect("a patch");
            let changed = harness
                .api(DEFINITION)
                .patch(&name, &PatchParams::default(), &Patch::Json::<()>(patch))
                .await;
            changed.expect("it can be changed");
            until(&format!("{name} is as it was"), &columns, |it| *it == was).await;
        }
        harness.stop().await;
    });
}

#[test]
fn deleting_the_cluster_version_deletes_nothing_else_and_loses_nothing() {
    on_each_cluster(|kind| async move {
        let (first, second) = sample_payloads();
        let payloads = [Arc::clone(&first), Arc::clone(&second)];
        let mut harness = Harness::installed(kind, &payloads).await;
        harness.release(&second);
        harness.completed(&second.release.version).await;
        harness.set_spec(json!({ "channel": "stable" })).await;
        until(
            "the channel is recorded",
            || harness.progress(),
            |progress| progress["clusterVersion"]["spec"]["channel"] == "stable",
        )
        .await;
        let existing = namespaces(&harness).await;
        let before = harness.get(CLUSTER_VERSION, "version").await;

        delete(&harness, CLUSTER_VERSION).await;
        let cluster_version = || harness.get(CLUSTER_VERSION, "version");
        let after = until("it is made again", cluster_version, |after| {
            after["metadata"]["uid"].is_string()
                && after["metadata"]["uid"] != before["metadata"]["uid"]
                && versions(after) == versions(&before)
        })
        .await;
        assert_eq!(after["spec"], before["spec"]);
        assert_eq!(after["status"]["capabilities"], before["status"]["capabilities"]);
        assert_eq!(namespaces(&harness).await, existing);
        harness.completed(&second.release.version).await;
        harness.stop().await;

        // Without --create it is waited for; one that a user creates continues as well.
        harness.settings.create = None;
        harness.control();
        harness.completed(&second.release.version).await;
        delete(&harness, CLUSTER_VERSION).await;
        harness.until(|view| view.is_status_unwritable).await;
        assert_eq!(harness.get(CLUSTER_VERSION, "version").await, Value::Null);
        let another = json!({
            "apiVersion": "config.openshift.io/v1",
            "kind": "ClusterVersion",
            "metadata": { "name": "version" },
            "spec": { "clusterID": "9e5b9d2c-6b7e-4f0a-9d56-3c0a4f9b7a11" },
        });
        let another = serde_json::from_value(another).expect("a ClusterVersion");
        let api = harness.api(CLUSTER_VERSION);
        api.create(&Default::default(), &another).await.expect("it is created");
        let cluster_version = || harness.get(CLUSTER_VERSION, "version");
        until("it continues", cluster_version, |it| versions(it) == versions(&before)).await;
        harness.until(|view| !view.is_status_unwritable).await;
        assert_eq!(namespaces(&harness).await, existing);
        harness.stop().await;
    });
}

#[test]
fn what_an_earlier_version_gave_to_the_cluster_version_is_taken_back() {
    on_each_cluster(|kind| async move {
        let (first, _) = sample_payloads();
        let mut harness = Harness::installed(kind, &[first]).await;
        harness.stop().await;
        // Neither the plan nor a watch knows this one.
        let maps: Api<ConfigMap> = Api::namespaced(harness.client.clone(), "default");
        let map = serde_json::from_value(json!({ "metadata": { "name": "forgotten" } }));
        maps.create(&Default::default(), &map.expect("a ConfigMap")).await.expect("it is created");
        let uid = harness.get(CLUSTER_VERSION, "version").await["metadata"]["uid"].clone();
        let owned = Patch::Merge(json!({ "metadata": { "ownerReferences": [{
            "apiVersion": "config.openshift.io/v1", "kind": "ClusterVersion", "name": "version",
            "uid": uid, "controller": true,
        }] } }));
        let parameters = PatchParams::default();
        maps.patch("forgotten", &parameters, &owned).await.expect("it is owned");
        let progress = harness.api(RELEASE_PROGRESS);
        progress.patch("version", &parameters, &owned).await.expect("it is owned");

        harness.control();
        harness.until(|view| view.completed).await;
        let map = maps.get("forgotten").await.expect("it is there");
        assert_eq!(map.metadata.owner_references, None);
        let progress = harness.get(RELEASE_PROGRESS, "version").await;
        assert_eq!(progress["metadata"]["ownerReferences"], Value::Null);
        harness.stop().await;
    });
}

#[test]
fn a_release_of_another_product_and_a_lower_version_are_refused() {
    on_any_cluster(|kind| async move {
        let (first, second) = sample_payloads();
        let payloads = [Arc::clone(&second), Arc::clone(&first)];
        let mut harness = Harness::installed(kind, &payloads).await;
        harness.stop().await;
        let before = harness.get(CLUSTER_VERSION, "version").await["status"].clone();
        let other: Vec<SourceFile> = sample::v2().into_iter().map(|file| renamed(&file)).collect();
        for payload in [first, sample_payload(&other)] {
            harness.release(&payload);
            harness.control();
            let ended = harness.detach().await.expect("it does not panic");
            assert!(matches!(ended, Err(Error::Refused(_))), "{ended:?}");
        }
        let after = harness.get(CLUSTER_VERSION, "version").await["status"].clone();
        assert_eq!(after, before);
    });
}

/// A file of another product: its objects have other names.
fn renamed(file: &SourceFile) -> SourceFile {
    if !file.holds_manifests() {
        return file.clone();
    }
    let text = String::from_utf8(file.bytes.to_vec()).expect("text");
    let text = text.replace("\n  name: ", "\n  name: other-");
    SourceFile { bytes: text.into(), ..file.clone() }
}
