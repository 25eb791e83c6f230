//! What is gathered about a cluster, and what is said about what is missing.

use std::collections::BTreeSet;
use std::path::Path;

use kube::api::{Patch, PatchParams, PostParams};
use kube::core::{ApiResource, DynamicObject, GroupVersionKind};
use kube::discovery::Discovery;
use kube::{Api, ResourceExt};
use plimsoll_api::{ApiKind, CLUSTER_OPERATOR};
use plimsoll_cli::commands::inspect::{InspectTarget, inspect};
use serde_json::{Value, json};

use crate::harness::{
    DEFINITION, Harness, on_any_cluster, on_each_cluster, sample_payloads, until,
};

fn read(directory: &Path, path: &str) -> Value {
    let text = std::fs::read_to_string(directory.join(path)).expect(path);
    serde_saphyr::from_str(&text).expect("it is YAML")
}

/// The paths of the files in an archive.
fn archived(path: &Path) -> Vec<String> {
    let file = std::fs::File::open(path).expect("a file");
    let mut archive = tar::Archive::new(flate2::read::GzDecoder::new(file));
    let entries = archive.entries().expect("an archive");
    let path = |entry: std::io::Result<tar::Entry<'_, _>>| {
        entry.expect("an entry").path().expect("a path").display().to_string()
    };
    entries.map(path).collect()
}

/// A definition of a namespaced kind of `lights.example.com`.
fn definition(plural: &str, kind: &str, version: &str) -> Value {
    let schema = json!({"openAPIV3Schema": {"type": "object"}});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.lights.example.com")},
        "spec": {
            "group": "lights.example.com",
            "scope": "Namespaced",
            "names": {"plural": plural, "kind": kind},
            "versions": [{"name": version, "served": true, "storage": true, "schema": schema}],
        },
    })
}

#[test]
fn kinds_that_the_preferred_version_of_their_group_lacks_are_gathered() {
    on_each_cluster(|kind| async move {
        let cluster = kind.start().await.expect("the cluster starts");
        let create = |kind: ApiKind, namespace: &'static str, object: Value| {
            let version = GroupVersionKind::gvk(kind.group, kind.version, kind.kind);
            let resource = ApiResource::from_gvk_with_plural(&version, kind.plural);
            let api: Api<DynamicObject> = match namespace {
                "" => Api::all_with(cluster.client(), &resource),
                namespace => Api::namespaced_with(cluster.client(), namespace, &resource),
            };
            let object: DynamicObject = serde_json::from_value(object).expect("an object");
            async move {
                // A kind is not served at once, and a namespace not at once complete.
                let create = || async { api.create(&PostParams::default(), &object).await };
                until("it is created", create, Result::is_ok).await.expect("it is created");
                api
            }
        };
        create(DEFINITION, "", definition("lamps", "Lamp", "v1")).await;
        create(DEFINITION, "", definition("flares", "Flare", "v1alpha1")).await;
        let flare = ApiKind {
            group: "lights.example.com",
            version: "v1alpha1",
            kind: "Flare",
            plural: "flares",
        };
        let flares = create(flare, "default", json!({
            "apiVersion": "lights.example.com/v1alpha1", "kind": "Flare", "metadata": {"name": "red"},
        })).await;
        // A kind can be created before it can be listed, and that before discovery names it.
        let listed = || async { flares.list(&Default::default()).await.is_ok() };
        until("flares can be listed", listed, |it| *it).await;
        let discovered = || async {
            let found = Discovery::new(cluster.client()).run_aggregated().await.ok();
            found.is_some_and(|found| {
                found.get("lights.example.com").is_some_and(|group| {
                    let kinds = group.versioned_resources("v1alpha1");
                    kinds.iter().any(|(resource, _)| resource.kind == "Flare")
                })
            })
        };
        until("flares are discovered", discovered, |it| *it).await;

        let place = tempfile::tempdir().expect("a directory");
        let to = place.path().join("all");
        let targets = [InspectTarget::parse("ns/default").expect("a target")];
        inspect(cluster.client(), &targets, None, &to, &mut Vec::new()).await.expect("gathered");
        let flares = read(&to, "namespaces/default/lights.example.com/flares.yaml");
        assert_eq!(flares["items"][0]["metadata"]["name"], "red", "{kind}");
        assert_eq!(flares["items"][0]["apiVersion"], "lights.example.com/v1alpha1", "{kind}");
    });
}

/// Creates a Secret in the namespace of operator beacon.
async fn create_secret(harness: &Harness) {
    let secret = json!({
        "metadata": {"name": "keys"}, "stringData": {"password": "tides"},
    });
    let secrets: Api<DynamicObject> = Api::namespaced_with(
        harness.client.clone(),
        "harbour-beacon",
        &ApiResource::from_gvk(&GroupVersionKind::gvk("", "v1", "Secret")),
    );
    let secret = serde_json::from_value(secret).expect("an object");
    secrets.create(&PostParams::default(), &secret).await.expect("it is created");
}

/// Reports related objects of operator beacon, two of which are not there.
async fn report_related_objects(harness: &Harness) {
    let related = json!({"status": {"relatedObjects": [
        {"group": "", "resource": "namespaces", "name": "harbour-beacon"},
        {"group": "example.com", "resource": "lanterns", "name": "red"},
        {"group": "", "resource": "configmaps", "namespace": "harbour-beacon", "name": "none"},
    ]}});
    let parameters = PatchParams::default();
    harness
        .api(CLUSTER_OPERATOR)
        .patch_status("beacon", &parameters, &Patch::Merge(&related))
        .await
        .expect("the status can be changed");
}

#[test]
fn what_is_related_to_the_operators_is_gathered_without_secrets() {
    on_any_cluster(|kind| async move {
        let harness = Harness::installed(kind, &[sample_payloads().0]).await.without_operators();
        create_secret(&harness).await;
        report_related_objects(&harness).await;

        let place = tempfile::tempdir().expect("a directory");
        let to = place.path().join("all");
        let mut out = Vec::new();
        inspect(harness.client.clone(), &[], None, &to, &mut out).await.expect("it is gathered");
        let said = String::from_utf8(out).expect("it is text");
        for expected in [
            "clusteroperator beacon: relatedObjects: the API server does not serve \
             lanterns.example.com\n",
            "configmaps \"none\" is a related object and does not exist\n",
        ] {
            assert!(said.contains(expected), "{said}");
        }
        let operators = harness.operators().await;
        for operator in &operators {
            let name = operator.name_any();
            let path = format!(
                "cluster-scoped-resources/config.openshift.io/clusteroperators/{name}.yaml"
            );
            assert_eq!(read(&to, &path)["metadata"]["name"], name);
        }
        let version =
            read(&to, "cluster-scoped-resources/config.openshift.io/clusterversions/version.yaml");
        assert_eq!(version["status"]["history"][0]["version"], "1.0.0");
        let namespace = read(&to, "namespaces/harbour-beacon/harbour-beacon.yaml");
        assert_eq!(namespace["kind"], "Namespace");
        let deployments = read(&to, "namespaces/harbour-beacon/apps/deployments.yaml");
        assert_eq!(deployments["items"][0]["kind"], "Deployment");
        let secrets = read(&to, "namespaces/harbour-beacon/core/secrets.yaml");
        let keys = secrets["items"].as_array().expect("a list").iter();
        let keys = keys.map(|it| &it["data"]["password"]).find(|it| it.is_string());
        assert_eq!(*keys.expect("the secret"), "***");

        // The same as an archive, of one operator.
        let to = place.path().join("one.tar.gz");
        let target = |text: &str| InspectTarget::parse(text).expect("a target");
        // The namespace is related to the operator, too: each file is written once.
        let targets = [target("co/beacon"), target("ns/harbour-beacon")];
        inspect(harness.client.clone(), &targets, None, &to, &mut Vec::new())
            .await
            .expect("it is gathered");
        let paths = archived(&to);
        let unique: BTreeSet<&String> = paths.iter().collect();
        assert_eq!(unique.len(), paths.len(), "{kind}: {paths:?}");
        assert!(paths.iter().any(|it| it.ends_with("apps/deployments.yaml")), "{paths:?}");
        let unknown = [target("lantern")];
        let to = place.path().join("none");
        let error = inspect(harness.client.clone(), &unknown, None, &to, &mut Vec::new()).await;
        assert_eq!(
            error.expect_err("there is none").to_string(),
            "there is no ClusterOperator \"lantern\""
        );
    });
}
