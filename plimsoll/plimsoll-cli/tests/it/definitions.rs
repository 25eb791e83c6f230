//! Our definition of ClusterVersion refuses what the published one refuses.

use k8s_testkit::{ClusterKind, TestCluster};
use kube::api::{DynamicObject, PostParams};
use plimsoll_api::crd::{self, CapabilityNames};
use plimsoll_api::{CLUSTER_VERSION, ObjectKey};
use plimsoll_content::capability::CapabilityRegistry;
use plimsoll_content::inclusion::{DEFAULT_FEATURE_SET, DEFAULT_PROFILE, Decision, decide};
use plimsoll_simulation::cluster_state::api;
use serde_json::{Value, json};

use crate::harness::{DEFINITION, on_each_cluster, outside_payload, until};

/// The id of a cluster.
const ID: &str = "9e5b9d2c-6b7e-4f0a-9d56-3c0a4f9b7a11";

/// Specs of ClusterVersions, each with whether both definitions accept it.
fn specs() -> Vec<(Value, bool)> {
    let capabilities =
        |capabilities: Value| json!({ "clusterID": ID, "capabilities": capabilities });
    let update = |update: Value| json!({ "clusterID": ID, "desiredUpdate": update });
    let overridden = json!({
        "kind": "Deployment", "group": "apps", "namespace": "harbour", "name": "crane",
        "unmanaged": true,
    });
    let mut grouped = overridden.clone();
    grouped["unmanaged"] = false.into();
    vec![
        (json!({}), false),
        (json!({ "clusterID": 7 }), false),
        (json!({ "clusterID": ID }), true),
        (json!({ "clusterID": ID, "channel": "stable", "upstream": "https://example.com" }), true),
        (json!({ "clusterID": ID, "channel": ["stable"] }), false),
        (capabilities(json!({})), true),
        (capabilities(json!({ "baselineCapabilitySet": "None" })), true),
        (capabilities(json!({ "baselineCapabilitySet": "vCurrent" })), true),
        (capabilities(json!({ "baselineCapabilitySet": "v4.11" })), true),
        (capabilities(json!({ "baselineCapabilitySet": "" })), false),
        (capabilities(json!({ "baselineCapabilitySet": "none" })), false),
        (capabilities(json!({ "baselineCapabilitySet": "v9" })), false),
        (capabilities(json!({ "additionalEnabledCapabilities": [] })), true),
        (capabilities(json!({ "additionalEnabledCapabilities": ["Console"] })), true),
        (capabilities(json!({ "additionalEnabledCapabilities": ["Console", "Console"] })), true),
        (capabilities(json!({ "additionalEnabledCapabilities": ["Consol"] })), false),
        (capabilities(json!({ "additionalEnabledCapabilities": "Console" })), false),
        (
            capabilities(json!({
                "baselineCapabilitySet": "None", "additionalEnabledCapabilities": ["marketplace"],
            })),
            false,
        ),
        (
            capabilities(json!({
                "baselineCapabilitySet": "None",
                "additionalEnabledCapabilities": ["marketplace", "OperatorLifecycleManager"],
            })),
            true,
        ),
        (
            capabilities(json!({
                "baselineCapabilitySet": "v4.11", "additionalEnabledCapabilities": ["marketplace"],
            })),
            true,
        ),
        (update(json!({ "version": "4.23.0" })), true),
        (update(json!({ "version": 4 })), false),
        (update(json!({ "image": "quay.io/a@sha256:0", "force": true })), true),
        (update(json!({ "force": "true" })), false),
        (update(json!({ "architecture": "Multi" })), false),
        (update(json!({ "architecture": "Multi", "version": "" })), false),
        (update(json!({ "architecture": "Multi", "version": "4.23.0" })), true),
        (update(json!({ "architecture": "amd64", "version": "4.23.0" })), false),
        (update(json!({ "architecture": "", "image": "quay.io/a@sha256:0" })), true),
        (
            update(json!({ "architecture": "Multi", "version": "4.23.0", "image": "quay.io/a" })),
            false,
        ),
        (json!({ "clusterID": ID, "overrides": [overridden] }), true),
        (json!({ "clusterID": ID, "overrides": [overridden, grouped] }), false),
        (
            json!({ "clusterID": ID, "overrides": [{ "kind": "Deployment", "name": "crane" }] }),
            false,
        ),
    ]
}

/// A cluster with a definition of ClusterVersion that is served.
async fn with(kind: ClusterKind, definition: &Value) -> TestCluster {
    let cluster = kind.start().await.expect("the cluster starts");
    let object: DynamicObject = serde_json::from_value(definition.clone()).expect("an object");
    let definitions = api(&cluster.client(), DEFINITION);
    definitions.create(&PostParams::default(), &object).await.expect("it is accepted");
    let versions = api(&cluster.client(), CLUSTER_VERSION);
    let served = || async { versions.list(&Default::default()).await.is_ok() };
    until("ClusterVersions are served", served, |served| *served).await;
    cluster
}

/// The specs whose answer is another one than expected.
async fn surprises(cluster: &TestCluster) -> Vec<String> {
    let versions = api(&cluster.client(), CLUSTER_VERSION);
    let options = PostParams { dry_run: true, ..PostParams::default() };
    let mut found = Vec::new();
    for (spec, is_accepted) in specs() {
        let object = json!({
            "apiVersion": "config.openshift.io/v1",
            "kind": CLUSTER_VERSION.kind,
            "metadata": { "name": "version" },
            "spec": spec,
        });
        let object: DynamicObject = serde_json::from_value(object).expect("an object");
        let answer = versions.create(&options, &object).await;
        // Another error than that it is invalid answers nothing.
        let is_expected = match &answer {
            Ok(_) => is_accepted,
            Err(kube::Error::Api(status)) => !is_accepted && status.code == 422,
            Err(_) => false,
        };
        if !is_expected {
            found.push(format!("{spec}: {:?}", answer.err().map(|error| error.to_string())));
        }
    }
    found
}

#[test]
fn our_definition_refuses_what_the_published_one_refuses() {
    on_each_cluster(|kind| async move {
        let registry = CapabilityRegistry::built_in();
        let none = Default::default();
        let capabilities = registry.capabilities().filter(|it| it.is_allowed(&none));
        let names = CapabilityNames {
            sets: registry.sets().iter().map(|set| set.name.clone()).collect(),
            capabilities: capabilities.map(|capability| capability.name.clone()).collect(),
        };
        let ours = with(kind, &crd::cluster_versions(Some(&names))).await;
        assert_eq!(surprises(&ours).await, Vec::<String>::new(), "our definition, {kind}");

        let Some(payload) = outside_payload("PLIMSOLL_PAYLOAD") else { return };
        let name = format!("{}.{}", CLUSTER_VERSION.plural, CLUSTER_VERSION.group);
        let is_meant = |key: &ObjectKey| key.kind == "CustomResourceDefinition" && key.name == name;
        let context = payload.context(DEFAULT_PROFILE, DEFAULT_FEATURE_SET);
        let published = payload
            .manifests
            .iter()
            .filter(|it| is_meant(&it.key))
            .find(|it| decide(it, &context) == Decision::Included)
            .expect("the payload has the definition");
        let published = with(kind, &published.object()).await;
        assert_eq!(surprises(&published).await, Vec::<String>::new(), "the published one, {kind}");
    });
}
