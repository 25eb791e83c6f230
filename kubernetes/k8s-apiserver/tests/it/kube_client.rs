//! Rust's `kube` on the service: no port, and over a socket.
use futures::TryStreamExt as _;
use k8s_apiserver::{ApiServer, Options, serve};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::runtime::{WatchStreamExt as _, watcher};
use kube::{Client, Config};
use serde_json::json;

async fn exercise(client: Client) {
    let api: Api<ConfigMap> = Api::default_namespaced(client.clone());
    let config_map: ConfigMap =
        serde_json::from_value(json!({"metadata": {"name": "a"}, "data": {"x": "1"}})).unwrap();
    api.create(&PostParams::default(), &config_map).await.unwrap();
    assert!(api.get_opt("none").await.unwrap().is_none());
    let applied = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"y": "2"},
    });
    let patched =
        api.patch("a", &PatchParams::apply("me").force(), &Patch::Apply(&applied)).await.unwrap();
    assert_eq!(patched.data.unwrap().len(), 2);
    let list = api.list(&ListParams::default().limit(1)).await.unwrap();
    assert_eq!(list.items.len(), 1);
    assert!(list.metadata.continue_.is_some());
    let namespaces: Api<Namespace> = Api::all(client.clone());
    assert_eq!(namespaces.list_metadata(&ListParams::default()).await.unwrap().items.len(), 4);
    let conflict = api
        .patch(
            "a",
            &PatchParams::apply("other"),
            &Patch::Apply(&json!({
                "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"y": "3"},
            })),
        )
        .await
        .unwrap_err();
    assert!(matches!(conflict, kube::Error::Api(status) if status.is_conflict()));
    for config in [watcher::Config::default(), watcher::Config::default().streaming_lists()] {
        let mut events = std::pin::pin!(watcher(api.clone(), config).applied_objects());
        assert!(events.try_next().await.unwrap().is_some());
    }
    let discovery = kube::Discovery::new(client.clone()).run_aggregated().await.unwrap();
    assert!(discovery.has_group("apps"));
    let discovery = kube::Discovery::new(client).run().await.unwrap();
    assert!(discovery.has_group("apps"));
    api.delete("a", &DeleteParams::default()).await.unwrap();
}

#[tokio::test]
async fn a_client_runs_on_the_service_in_process() {
    exercise(Client::new(ApiServer::new(Options::default()), "default")).await;
}

#[tokio::test]
async fn a_client_runs_over_a_socket() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let server = tokio::spawn(serve(ApiServer::new(Options::default()), listener, async {
        let _ = stopped.await;
    }));
    let config = Config::new(url.parse().unwrap());
    exercise(Client::try_from(config).unwrap()).await;
    stop.send(()).unwrap();
    server.await.unwrap().unwrap();
}
