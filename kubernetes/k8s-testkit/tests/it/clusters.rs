//! Test clusters as tests use them; with a real control plane if there is one.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use futures::StreamExt;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use k8s_testkit::{ClusterKind, Fault, Faults, TestCluster, clusters, poll};
use kube::api::{
    DeleteParams, ListParams, ObjectMeta, Patch, PatchParams, PostParams, WatchEvent, WatchParams,
};
use kube::{Api, Client, ResourceExt};

/// How long anything may take before a test gives up.
const PATIENCE: Duration = Duration::from_secs(60);

fn config_map(name: &str) -> ConfigMap {
    ConfigMap {
        metadata: ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() },
        data: Some(BTreeMap::from([("key".to_owned(), "value".to_owned())])),
        ..ConfigMap::default()
    }
}

async fn until_gone<K>(api: &Api<K>, name: &str)
where
    K: Clone + serde::de::DeserializeOwned + std::fmt::Debug,
{
    let is_gone =
        async || api.get_opt(name).await.expect("the server answers").is_none().then_some(());
    poll("the end of the object", is_gone).await.expect("it goes");
}

async fn garbage_is_collected(client: &Client) {
    let api: Api<ConfigMap> = Api::default_namespaced(client.clone());
    let parameters = PostParams::default();
    let owner = api.create(&parameters, &config_map("owner")).await.expect("the owner is made");
    let mut owned = config_map("owned");
    let reference = serde_json::json!([{
        "apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner.uid(),
    }]);
    owned.metadata.owner_references =
        Some(serde_json::from_value(reference).expect("it is an owner reference"));
    api.create(&parameters, &owned).await.expect("the owned object is made");
    api.delete("owner", &DeleteParams::default()).await.expect("the owner can be deleted");
    until_gone(&api, "owned").await;
}

async fn namespaces_end(client: &Client) {
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let parameters = PostParams::default();
    let namespace = Namespace {
        metadata: ObjectMeta { name: Some("brief".to_owned()), ..ObjectMeta::default() },
        ..Namespace::default()
    };
    namespaces.create(&parameters, &namespace).await.expect("the namespace is made");
    let inside: Api<ConfigMap> = Api::namespaced(client.clone(), "brief");
    inside.create(&parameters, &config_map("inside")).await.expect("an object is made in it");
    namespaces.delete("brief", &DeleteParams::default()).await.expect("it can be deleted");
    until_gone(&namespaces, "brief").await;
    assert!(inside.get_opt("inside").await.expect("the server answers").is_none());
}

async fn a_watch_ends_as_scripted(cluster: &TestCluster) {
    let faults = Faults::none();
    faults.add("watch=true", Fault::WatchClosed(Duration::from_millis(100)));
    faults.add("watch=true", Fault::WatchBroken(Duration::from_millis(100)));
    let (client, log) = cluster.client_with_faults_and_log(faults);
    let api: Api<ConfigMap> = Api::default_namespaced(client);
    let version = api.list(&ListParams::default()).await.expect("a list").metadata.resource_version;
    let version = version.expect("a list has a version");
    for cleanly in [true, false] {
        let watch = api.watch(&WatchParams::default(), &version).await.expect("a watch opens");
        let events: Vec<kube::Result<WatchEvent<ConfigMap>>> =
            tokio::time::timeout(PATIENCE, watch.collect()).await.expect("the watch ends");
        assert_eq!(events.iter().all(Result::is_ok), cleanly, "{events:?}");
    }
    assert_eq!((log.count(), log.count_watches()), (3, 2));
}

async fn requests_fail_as_scripted(cluster: &TestCluster) {
    let faults = Faults::none();
    faults.add("PATCH /api/v1/namespaces/default/configmaps/a", Fault::refused(409));
    faults.add("PATCH /api/v1/namespaces/default/configmaps/a", Fault::ConnectionLost);
    let (client, log) = cluster.client_with_faults_and_log(faults.clone());
    let api: Api<ConfigMap> = Api::default_namespaced(client);
    let patch = Patch::Merge(serde_json::json!({"data": {}}));
    let parameters = PatchParams::default();

    let first = api.patch("a", &parameters, &patch).await.expect_err("it was refused");
    let is_conflict =
        |status: &kube::core::Status| (status.code, &*status.reason) == (409, "Conflict");
    assert!(matches!(&first, kube::Error::Api(status) if is_conflict(status)), "{first:?}");
    let second = api.patch("a", &parameters, &patch).await.expect_err("nothing came back");
    assert!(!matches!(second, kube::Error::Api(_)), "{second:?}");
    assert_eq!(faults.fired().len(), 2);
    api.list(&ListParams::default()).await.expect("nothing else goes wrong");
    assert_eq!(faults.fired().len(), 2);

    assert_eq!((log.count(), log.count_writes(), log.count_watches()), (3, 2, 0));
    let key = ("PATCH".to_owned(), "/api/v1/namespaces/default/configmaps/a".to_owned());
    assert_eq!(log.counts()[&key], 2);
    log.clear();
    assert!(log.requests().is_empty());
}

async fn behaves(kind: ClusterKind) {
    let cluster = kind.start().await.expect("the cluster starts");
    assert_eq!(cluster.kind(), kind);
    assert_eq!(cluster.kubeconfig().is_some(), kind == ClusterKind::ControlPlane);
    let client = cluster.client();
    tokio::join!(
        garbage_is_collected(&client),
        namespaces_end(&client),
        a_watch_ends_as_scripted(&cluster),
        requests_fail_as_scripted(&cluster),
    );
    let directory = cluster.kubeconfig().and_then(Path::parent).map(Path::to_owned);
    drop(cluster);
    assert!(directory.is_none_or(|directory| !directory.exists()), "nothing is left behind");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_embedded_cluster_collects_garbage_ends_namespaces_and_has_bad_days() {
    behaves(ClusterKind::Embedded).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_real_control_plane_collects_garbage_ends_namespaces_and_has_bad_days() {
    if clusters().contains(&ClusterKind::ControlPlane) {
        behaves(ClusterKind::ControlPlane).await;
    }
}
