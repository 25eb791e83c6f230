//! The sample release is applied, in any order, and updated; the simulated operators report it.

use std::sync::Arc;
use std::time::Duration;

use k8s_testkit::clusters;
use kube::api::{DeleteParams, Patch, PatchParams};
use kube::core::{ApiResource, DynamicObject, GroupVersionKind};
use kube::runtime::wait::await_condition;
use kube::{Api, Client};
use plimsoll_content::Payload;
use plimsoll_content::inclusion::{DEFAULT_FEATURE_SET, DEFAULT_PROFILE, Decision, decide};
use plimsoll_content::payload::{TemplateContext, parse};
use serde_json::{Value, json};
use tokio::task::yield_now;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::{SimulationOptions, run};
use crate::sample;

/// Long enough for a slow machine, short enough to be noticed.
const PATIENCE: Duration = Duration::from_secs(60);

/// The API for an object as it stands in a manifest.
fn api_of(client: &Client, object: &Value) -> Api<DynamicObject> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let api_version = text(&object["apiVersion"]);
    let (group, version) = api_version.rsplit_once('/').unwrap_or(("", &api_version));
    let gvk = GroupVersionKind::gvk(group, version, &text(&object["kind"]));
    let resource = ApiResource::from_gvk(&gvk);
    match object["metadata"]["namespace"].as_str() {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
        None => Api::all_with(client.clone(), &resource),
    }
}

/// Applies objects, those that fail again and again; what is needed may not be there yet.
async fn apply(client: &Client, mut objects: Vec<Value>) {
    let params = PatchParams::apply("test").force();
    while !objects.is_empty() {
        let mut failed = Vec::new();
        for object in objects {
            let name = object["metadata"]["name"].as_str().unwrap().to_owned();
            if api_of(client, &object).patch(&name, &params, &Patch::Apply(&object)).await.is_err()
            {
                failed.push(object);
            }
        }
        objects = failed;
        yield_now().await;
    }
}

/// Applies a release but its ClusterOperators: their operators create those.
async fn install(client: &Client, payload: &Payload) {
    let context = payload.context(DEFAULT_PROFILE, DEFAULT_FEATURE_SET);
    let included = payload.manifests.iter().filter(|it| {
        decide(it, &context) == Decision::Included && it.key.kind != "ClusterOperator"
    });
    apply(client, included.map(|manifest| manifest.object()).collect()).await;
    let operators = payload.manifests.iter().filter(|it| it.key.kind == "ClusterOperator");
    for manifest in operators {
        let object = manifest.object();
        let expected = object["status"]["versions"].clone();
        let healthy = |operator: Option<&DynamicObject>| {
            let status = operator.map(|it| &it.data["status"]).unwrap_or(&Value::Null);
            let conditions = status["conditions"].as_array().cloned().unwrap_or_default();
            status["versions"] == expected
                && conditions.iter().any(|it| it["type"] == "Available" && it["status"] == "True")
                && conditions.iter().any(|it| it["type"] == "Degraded" && it["status"] == "False")
        };
        await_condition(api_of(client, &object), &manifest.key.name, healthy).await.unwrap();
    }
}

#[tokio::test]
async fn operators_report_the_release_that_is_applied() {
    let template = TemplateContext::default();
    let payloads: Vec<Arc<Payload>> = [sample::v1(), sample::v2()]
        .iter()
        .map(|files| Arc::new(parse(files, &template).unwrap()))
        .collect();
    for kind in clusters() {
        let cluster = kind.start().await.unwrap();
        let client = cluster.client();
        let stop = CancellationToken::new();
        let options = SimulationOptions {
            payloads: payloads.clone(),
            delay: Duration::from_millis(100),
            ..SimulationOptions::default()
        };
        let simulation = tokio::spawn(run(client.clone(), options, stop.clone()));
        let work = async {
            apply(&client, plimsoll_api::crd::manifests()).await;
            for payload in &payloads {
                install(&client, payload).await;
            }
        };
        let done = timeout(PATIENCE, work).await;
        assert!(done.is_ok(), "{kind}: not all operators became healthy");
        stop.cancel();
        simulation.await.unwrap().unwrap();
    }
}

#[tokio::test]
async fn the_operator_of_a_bundle_runs_and_reconciles_its_objects() {
    let schema = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
    let version = json!({
        "name": "v1", "served": true, "storage": true, "schema": { "openAPIV3Schema": schema },
    });
    let labels = json!({ "olm.io/operator": "lantern" });
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": { "name": "beacons.lantern.example.com", "labels": labels },
        "spec": {
            "group": "lantern.example.com",
            "names": { "kind": "Beacon", "plural": "beacons" },
            "scope": "Namespaced",
            "versions": [version],
        },
    });
    let selected = json!({ "app": "lantern" });
    let container = json!({ "name": "operator", "image": "registry.example.com/lantern:1.0.0" });
    let deployment = json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": { "name": "lantern", "namespace": "default", "labels": labels },
        "spec": {
            "selector": { "matchLabels": selected },
            "template": {
                "metadata": { "labels": selected }, "spec": { "containers": [container] },
            },
        },
    });
    let beacon = json!({
        "apiVersion": "lantern.example.com/v1",
        "kind": "Beacon",
        "metadata": { "name": "north", "namespace": "default" },
    });
    for kind in clusters() {
        let cluster = kind.start().await.unwrap();
        let client = cluster.client();
        let stop = CancellationToken::new();
        let options =
            SimulationOptions { delay: Duration::from_millis(20), ..SimulationOptions::default() };
        let simulation = tokio::spawn(run(client.clone(), options, stop.clone()));
        let work = async {
            apply(&client, vec![definition.clone(), beacon.clone(), deployment.clone()]).await;
            let is_available = |object: Option<&DynamicObject>| {
                object.is_some_and(|it| it.data["status"]["availableReplicas"] == 1)
            };
            await_condition(api_of(&client, &deployment), "lantern", is_available).await.unwrap();
            let has_finalizer = |object: Option<&DynamicObject>| {
                object.is_some_and(|it| it.metadata.finalizers.is_some())
            };
            let beacons = api_of(&client, &beacon);
            await_condition(beacons.clone(), "north", has_finalizer).await.unwrap();
            beacons.delete("north", &DeleteParams::default()).await.unwrap();
            await_condition(beacons, "north", |it: Option<&DynamicObject>| it.is_none())
                .await
                .unwrap();
        };
        let done = timeout(PATIENCE, work).await;
        assert!(done.is_ok(), "{kind}: the operator does not reconcile its objects");
        stop.cancel();
        simulation.await.unwrap().unwrap();
    }
}
