//! A controller of `kube` that looks at each of its objects every ten minutes for a day.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures::StreamExt as _;
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_testkit::TestCluster;
use kube::api::{ObjectMeta, Patch, PatchParams, PostParams};
use kube::runtime::controller::{Action, Controller};
use kube::runtime::watcher;
use kube::{Api, Client, ResourceExt as _};

/// How long it goes on.
pub(crate) const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// How often each object is looked at.
pub(crate) const REQUEUE: Duration = Duration::from_secs(10 * 60);

struct Context {
    client: Client,
    reconciliations: AtomicU64,
}

async fn reconcile(object: Arc<ConfigMap>, context: Arc<Context>) -> Result<Action, kube::Error> {
    context.reconciliations.fetch_add(1, Ordering::Relaxed);
    let api: Api<ConfigMap> = Api::default_namespaced(context.client.clone());
    let wanted = serde_json::json!({
        "apiVersion": "v1", "kind": "ConfigMap", "data": { "seen": "yes" },
    });
    api.patch(&object.name_any(), &PatchParams::apply("day"), &Patch::Apply(wanted)).await?;
    Ok(Action::requeue(REQUEUE))
}

/// Lets a controller work for a day; returns how often it looked at something.
pub(crate) async fn day() -> u64 {
    let cluster = TestCluster::embedded();
    let client = cluster.client();
    let api: Api<ConfigMap> = Api::default_namespaced(client.clone());
    for index in 0..10 {
        let metadata = ObjectMeta { name: Some(format!("object-{index}")), ..Default::default() };
        let object = ConfigMap { metadata, ..Default::default() };
        api.create(&PostParams::default(), &object).await.expect("the object is made");
    }
    let context = Arc::new(Context { client, reconciliations: AtomicU64::new(0) });
    let objects = watcher::Config::default().fields("metadata.name!=kube-root-ca.crt");
    let controller = Controller::new(api, objects)
        .run(reconcile, |_, _, _| Action::requeue(REQUEUE), Arc::clone(&context))
        .for_each(|_| futures::future::ready(()));
    // It ends by the end of the day only.
    let _ = tokio::time::timeout(DAY, controller).await;
    context.reconciliations.load(Ordering::Relaxed)
}
