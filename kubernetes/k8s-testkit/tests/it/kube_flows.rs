//! What controllers written with `kube` ordinarily do, on each kind of cluster.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::{StreamExt, TryStreamExt};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Secret};
use k8s_openapi::api::events::v1::Event as ClusterEvent;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use k8s_testkit::{ClusterKind, clusters, poll};
use kube::api::{
    ApiResource, DeleteParams, DynamicObject, ListParams, ObjectMeta, Patch, PatchParams,
    PostParams, WatchEvent, WatchParams,
};
use kube::core::GroupVersionKind;
use kube::discovery::Discovery;
use kube::runtime::controller::{Action, Controller};
use kube::runtime::events::{Event, EventType, Recorder, Reporter};
use kube::runtime::finalizer::{Event as Finalizer, finalizer};
use kube::runtime::reflector::ObjectRef;
use kube::runtime::wait::{await_condition, conditions};
use kube::runtime::{WatchStreamExt, reflector, watcher};
use kube::{Api, Client, Resource, ResourceExt};
use serde_json::json;

/// How long anything may take before a test gives up.
const PATIENCE: Duration = Duration::from_secs(300);

/// How long to wait before looking again.
const PAUSE: Duration = Duration::from_millis(20);

const FINALIZER: &str = "flows.example.com/cleanup";

fn config_map(name: &str, key: &str, value: &str) -> ConfigMap {
    ConfigMap {
        metadata: ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() },
        data: Some(BTreeMap::from([(key.to_owned(), value.to_owned())])),
        ..ConfigMap::default()
    }
}

async fn namespace(client: &Client, name: &str) {
    let namespace = Namespace {
        metadata: ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() },
        ..Namespace::default()
    };
    let namespaces: Api<Namespace> = Api::all(client.clone());
    namespaces.create(&PostParams::default(), &namespace).await.expect("a namespace is made");
}

/// Looks until something is there.
async fn eventually<T, F: Future<Output = Option<T>>>(what: &str, look: impl Fn() -> F) -> T {
    poll(what, look).await.expect("it comes in time")
}

/// What the controller of this test works with.
struct Context {
    client: Client,
    recorder: Recorder,
}

/// Copies a config map into a secret that it owns, and tells of it.
async fn reconcile(
    map: Arc<ConfigMap>,
    ctx: Arc<Context>,
) -> Result<Action, kube::runtime::finalizer::Error<kube::Error>> {
    let ns = map.namespace().unwrap_or_default();
    let maps: Api<ConfigMap> = Api::namespaced(ctx.client.clone(), &ns);
    finalizer(&maps, FINALIZER, map, |event| async {
        match event {
            Finalizer::Apply(map) => copy(&map, &ctx).await?,
            Finalizer::Cleanup(map) => publish(&map, &ctx, "Removed").await?,
        }
        Ok(Action::await_change())
    })
    .await
}

async fn copy(map: &ConfigMap, ctx: &Context) -> kube::Result<()> {
    let ns = map.namespace().unwrap_or_default();
    let secrets: Api<Secret> = Api::namespaced(ctx.client.clone(), &ns);
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret",
        "metadata": {"name": map.name_any(), "ownerReferences": [map.controller_owner_ref(&())]},
        "stringData": map.data,
    });
    let params = PatchParams::apply("flows").force();
    secrets.patch(&map.name_any(), &params, &Patch::Apply(&secret)).await?;
    publish(map, ctx, "Copied").await
}

async fn publish(map: &ConfigMap, ctx: &Context, reason: &str) -> kube::Result<()> {
    let event = Event {
        type_: EventType::Normal,
        reason: reason.to_owned(),
        note: Some("by the controller of a test".to_owned()),
        action: "Copy".to_owned(),
        secondary: None,
    };
    ctx.recorder.publish(&event, &map.object_ref(&())).await
}

/// A controller with owned objects, a finalizer and events.
async fn a_controller_reconciles(client: &Client) {
    let ns = "flows-controller";
    namespace(client, ns).await;
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), ns);
    let secrets: Api<Secret> = Api::namespaced(client.clone(), ns);
    let events: Api<ClusterEvent> = Api::namespaced(client.clone(), ns);
    let reporter = Reporter { controller: "flows.example.com/c".into(), instance: None };
    let ctx = Arc::new(Context {
        client: client.clone(),
        recorder: Recorder::new(client.clone(), reporter),
    });
    let selected = watcher::Config::default().labels("copy=true");
    let controller = Controller::new(maps.clone(), selected)
        .owns(secrets.clone(), watcher::Config::default())
        .run(reconcile, |_, _, _| Action::requeue(PAUSE), ctx)
        .for_each(|_| std::future::ready(()));
    let running = tokio::spawn(controller);

    let mut map = config_map("a", "key", "one");
    map.metadata.labels = Some(BTreeMap::from([("copy".to_owned(), "true".to_owned())]));
    maps.create(&PostParams::default(), &map).await.expect("the map is made");
    let key_is = async |wanted: &str| {
        let secret = secrets.get_opt("a").await.expect("the server answers")?;
        let value = secret.data.as_ref()?.get("key")?;
        (value.0 == wanted.as_bytes()).then(|| secret.uid())
    };
    let first = eventually("the copy", || key_is("one")).await;
    let change = json!({"data": {"key": "two"}});
    maps.patch("a", &PatchParams::default(), &Patch::Merge(&change)).await.expect("it changes");
    eventually("the changed copy", || key_is("two")).await;
    secrets.delete("a", &DeleteParams::default()).await.expect("the copy can be deleted");
    let made_again = || async { key_is("two").await.filter(|uid| *uid != first) };
    eventually("the copy made again", made_again).await;

    maps.delete("a", &DeleteParams::default()).await.expect("the map can be deleted");
    let reason_is = async |wanted: &str| {
        let events = events.list(&ListParams::default()).await.expect("the server answers");
        events.items.into_iter().find(|event| event.reason.as_deref() == Some(wanted))
    };
    eventually("the last event", || reason_is("Removed")).await;
    eventually("the first event", || reason_is("Copied")).await;
    let is_gone = || async {
        secrets.get_opt("a").await.expect("the server answers").is_none().then_some(())
    };
    eventually("the end of the copy", is_gone).await;
    running.abort();
}

/// A reflector's store follows the cluster, with lists that are watches too.
async fn a_store_follows(client: &Client, config: watcher::Config, ns: &str) {
    namespace(client, ns).await;
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), ns);
    maps.create(&PostParams::default(), &config_map("a", "k", "1")).await.expect("it is made");
    let (store, writer) = reflector::store();
    let stream = watcher(maps.clone(), config).default_backoff().reflect(writer);
    let running = tokio::spawn(stream.for_each(|_| std::future::ready(())));
    let ready = tokio::time::timeout(PATIENCE, store.wait_until_ready());
    ready.await.expect("it becomes ready").expect("its writer lives");
    let value = |name: &str| {
        store.get(&ObjectRef::new(name).within(ns)).and_then(|map| map.data.clone()?.remove("k"))
    };
    // The first list may come from a cache of the server that has not seen the object yet.
    eventually("the first object", || async { (value("a")? == "1").then_some(()) }).await;
    maps.create(&PostParams::default(), &config_map("b", "k", "2")).await.expect("it is made");
    let change = json!({"data": {"k": "3"}});
    maps.patch("a", &PatchParams::default(), &Patch::Merge(&change)).await.expect("it changes");
    let both = || async { (value("a")? == "3" && value("b")? == "2").then_some(()) };
    eventually("both in the store", both).await;
    maps.delete("a", &DeleteParams::default()).await.expect("it goes");
    eventually("the end in the store", || async { value("a").is_none().then_some(()) }).await;
    running.abort();
}

/// Entries are read, changed and committed; a conflict shows.
async fn entries_are_committed(client: &Client) {
    let ns = "flows-entry";
    namespace(client, ns).await;
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), ns);
    let mut entry =
        maps.entry("a").await.expect("an entry").or_insert(|| config_map("a", "k", "1"));
    entry.commit(&PostParams::default()).await.expect("it is created");
    entry.get_mut().data.get_or_insert_default().insert("l".to_owned(), "2".to_owned());
    let mut late = maps.entry("a").await.expect("an entry").or_insert(ConfigMap::default);
    entry.commit(&PostParams::default()).await.expect("it is replaced");
    late.get_mut().data.get_or_insert_default().insert("m".to_owned(), "3".to_owned());
    late.commit(&PostParams::default()).await.expect_err("it is too late");
    let map = maps.get("a").await.expect("it is there");
    assert_eq!(map.data.map(|data| data.len()), Some(2));
}

/// Scale and status are written at their subresources.
async fn subresources_are_written(client: &Client) {
    let ns = "flows-subresources";
    namespace(client, ns).await;
    let deployments: Api<Deployment> = Api::namespaced(client.clone(), ns);
    let deployment = serde_json::from_value(json!({
        "metadata": {"name": "web"},
        "spec": {
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{"name": "web", "image": "registry.example/web:1"}]},
            },
        },
    }));
    let deployment: Deployment = deployment.expect("it is a deployment");
    deployments.create(&PostParams::default(), &deployment).await.expect("it is made");
    let scale = json!({"spec": {"replicas": 3}});
    let params = PatchParams::default();
    let scale = deployments.patch_scale("web", &params, &Patch::Merge(&scale)).await;
    assert_eq!(scale.expect("it is scaled").spec.and_then(|spec| spec.replicas), Some(3));
    let conditions = json!([
        {"type": "Available", "status": "True"},
        {"type": "Progressing", "status": "True", "reason": "NewReplicaSetAvailable"},
    ]);
    let status = json!({"status": {
        "observedGeneration": 2, "replicas": 3, "updatedReplicas": 3, "availableReplicas": 3,
        "readyReplicas": 3, "conditions": conditions,
    }});
    let waiting =
        await_condition(deployments.clone(), "web", conditions::is_deployment_completed());
    let status = Patch::Merge(&status);
    let (waited, written) = tokio::join!(
        tokio::time::timeout(PATIENCE, waiting),
        deployments.patch_status("web", &params, &status),
    );
    written.expect("status is written");
    let deployment = waited.expect("it completes").expect("the wait works");
    assert_eq!(deployment.and_then(|found| found.spec.replicas), Some(3));
}

/// One lease, two who want it; each takes it at the version that it saw.
async fn a_lease_has_one_holder(client: &Client) {
    let ns = "flows-lease";
    namespace(client, ns).await;
    let leases: Api<Lease> = Api::namespaced(client.clone(), ns);
    let lease = json!({"metadata": {"name": "l"}, "spec": {"leaseDurationSeconds": 15}});
    let lease: Lease = serde_json::from_value(lease).expect("it is a lease");
    let lease = leases.create(&PostParams::default(), &lease).await.expect("it is made");
    let take = async |holder: &str| {
        let mut lease = lease.clone();
        lease.spec.get_or_insert_default().holder_identity = Some(holder.to_owned());
        leases.replace("l", &PostParams::default(), &lease).await
    };
    let attempts = tokio::join!(take("one"), take("two"));
    let attempts = [attempts.0, attempts.1];
    assert_eq!(attempts.iter().filter(|attempt| attempt.is_ok()).count(), 1);
    let refused = attempts.into_iter().find_map(Result::err).expect("one is refused");
    assert!(matches!(&refused, kube::Error::Api(status) if status.code == 409), "{refused}");
}

/// Waits until a watch tells of an object: a new kind can be written before it can be watched.
async fn until_watched(api: &Api<DynamicObject>) {
    let params = WatchParams::default();
    let tells = || async {
        let mut events = api.watch(&params, "0").await.ok()?.boxed();
        matches!(events.next().await, Some(Ok(WatchEvent::Added(_)))).then_some(())
    };
    eventually("a watch of the kind", tells).await;
}

/// Kinds that are only known by discovery are used as dynamic objects.
async fn what_is_discovered_is_used(client: &Client) {
    let ns = "flows-discovery";
    namespace(client, ns).await;
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    let definition = serde_json::from_value(json!({
        "metadata": {"name": "things.flows.example.com"},
        "spec": {
            "group": "flows.example.com", "scope": "Namespaced",
            "names": {"plural": "things", "kind": "Thing"},
            "versions": [{
                "name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {
                    "type": "object", "x-kubernetes-preserve-unknown-fields": true,
                }},
            }],
        },
    }));
    let definition: CustomResourceDefinition = definition.expect("it is a definition");
    definitions.create(&PostParams::default(), &definition).await.expect("it is made");
    let established = await_condition(
        definitions.clone(),
        "things.flows.example.com",
        conditions::is_crd_established(),
    );
    let established = tokio::time::timeout(PATIENCE, established).await;
    established.expect("it is established").expect("the wait works");
    let kind = GroupVersionKind::gvk("flows.example.com", "v1", "Thing");
    for aggregated in [false, true] {
        let (resource, capabilities) = eventually("the kind", || async {
            let discovery = Discovery::new(client.clone());
            let discovery =
                if aggregated { discovery.run_aggregated().await } else { discovery.run().await };
            discovery.ok()?.resolve_gvk(&kind)
        })
        .await;
        assert_eq!((resource.plural.as_str(), capabilities.subresources.len()), ("things", 1));
    }
    let resource = ApiResource::from_gvk(&kind);
    let things: Api<DynamicObject> = Api::namespaced_with(client.clone(), ns, &resource);
    let thing = DynamicObject::new("a", &resource).data(json!({"spec": {"x": 1}}));
    let made = eventually("the thing", || async {
        things.create(&PostParams::default(), &thing).await.ok()
    });
    let uid = made.await.uid().unwrap_or_default();
    until_watched(&things).await;
    let deleted = await_condition(things.clone(), "a", conditions::is_deleted(&uid));
    let params = DeleteParams::default();
    let (waited, deletion) =
        tokio::join!(tokio::time::timeout(PATIENCE, deleted), things.delete("a", &params));
    deletion.expect("it can be deleted");
    waited.expect("it goes").expect("the wait works");
}

/// Long lists come in pages.
async fn lists_come_in_pages(client: &Client) {
    let ns = "flows-pages";
    namespace(client, ns).await;
    let secrets: Api<Secret> = Api::namespaced(client.clone(), ns);
    let secret = |index: usize| Secret {
        metadata: ObjectMeta { name: Some(format!("s-{index}")), ..ObjectMeta::default() },
        ..Secret::default()
    };
    for index in 0..5 {
        secrets.create(&PostParams::default(), &secret(index)).await.expect("it is made");
    }
    let mut params = ListParams::default().limit(2);
    let mut lens = Vec::new();
    loop {
        let page = secrets.list(&params).await.expect("a page");
        lens.push(page.items.len());
        match page.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => params = params.continue_token(&token),
            None => break,
        }
    }
    assert_eq!(lens, [2, 2, 1]);
    let config = watcher::Config::default().page_size(2);
    let seen: Vec<_> = watcher(secrets.clone(), config)
        .applied_objects()
        .take(5)
        .map_ok(|secret| secret.name_any())
        .try_collect()
        .await
        .expect("the watch works");
    assert_eq!(seen, ["s-0", "s-1", "s-2", "s-3", "s-4"]);
}

async fn flows(kind: ClusterKind) {
    let cluster = kind.start().await.expect("the cluster starts");
    let client = cluster.client();
    let streaming = watcher::Config::default().streaming_lists();
    tokio::join!(
        a_controller_reconciles(&client),
        a_store_follows(&client, watcher::Config::default(), "flows-listed"),
        a_store_follows(&client, streaming, "flows-streamed"),
        entries_are_committed(&client),
        subresources_are_written(&client),
        a_lease_has_one_holder(&client),
        what_is_discovered_is_used(&client),
        lists_come_in_pages(&client),
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ordinary_flows_of_kube_work_on_an_embedded_cluster() {
    flows(ClusterKind::Embedded).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ordinary_flows_of_kube_work_on_a_real_control_plane() {
    if clusters().contains(&ClusterKind::ControlPlane) {
        flows(ClusterKind::ControlPlane).await;
    }
}
