//! A leader that loses its lease in the midst of an update writes nothing more, and the one that
//! follows it completes the update.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use k8s_openapi::api::coordination::v1::Lease;
use kube::client::Body;
use kube::{Api, Client};
use plimsoll_api::CLUSTER_VERSION;
use plimsoll_controller::{Error, Leadership};
use serde_json::{Value, json};
use tower::BoxError;

use crate::harness::{
    Harness, OperatorSetup, PATIENCE, condition, on_each_cluster, sample_payloads, until,
};

/// A client that is cut off from the lease as soon as that is asked for, and from nothing else.
fn severable(client: Client, is_cut: Arc<AtomicBool>) -> Client {
    let service = tower::service_fn(move |request: http::Request<Body>| {
        let (client, is_cut) = (client.clone(), Arc::clone(&is_cut));
        async move {
            if is_cut.load(Ordering::SeqCst) && request.uri().path().contains("/leases") {
                return Err(BoxError::from("the network is gone"));
            }
            client.send(request).await.map_err(BoxError::from)
        }
    });
    Client::new(service, "default")
}

/// Returns the holder of the lease; empty if it has none.
pub(crate) async fn holder(harness: &Harness) -> String {
    let leases: Api<Lease> = Api::namespaced(harness.client.clone(), "kube-system");
    let lease = leases.get_opt("plimsoll").await.expect("the server answers");
    lease.and_then(|lease| lease.spec?.holder_identity).unwrap_or_default()
}

fn is_held(status: &Value) -> bool {
    condition(status, "Progressing")["reason"] == "UpdatePaused"
}

#[test]
fn a_deposed_leader_stops_writing_and_the_next_completes_the_update() {
    on_each_cluster(|kind| async move {
        let (first, second) = sample_payloads();
        let payloads = [Arc::clone(&first), Arc::clone(&second)];
        let mut harness = Harness::start(kind, &payloads, OperatorSetup::default()).await;
        let (client, log) = harness.cluster.client_with_log();
        let is_cut = Arc::new(AtomicBool::new(false));
        harness.settings.leadership = Leadership::Lease("first".to_owned());
        let client = severable(client, Arc::clone(&is_cut));
        harness.control_with(client.clone());
        harness.completed(&first.release.version).await;
        // The pause is to be seen before the release.
        harness.stop().await;
        harness.pause(json!("30")).await;
        harness.release(&second);
        harness.control_with(client);
        harness.cluster_version_until(is_held).await;
        let halfway = harness.progress().await;
        assert!(halfway["done"].as_u64() > Some(0), "{halfway:#}");

        is_cut.store(true, Ordering::SeqCst);
        let deposed = harness.detach();
        harness.settings.leadership = Leadership::Lease("second".to_owned());
        harness.replaces_deposed = true;
        harness.control();
        until("there is a leader again", || holder(&harness), |holder| holder == "second").await;
        let written = log.count_writes();
        let ended = tokio::time::timeout(PATIENCE, deposed).await.expect("it ends");
        let ended = ended.expect("it does not panic");
        assert!(matches!(ended, Err(Error::LeaseLost)), "{ended:?}");

        // The one that follows goes on where the first one was.
        harness.until(|view| view.version == second.release.version).await;
        harness.cluster_version_until(is_held).await;
        // The first one may have recorded more after it was read.
        let resumed = harness.progress().await;
        assert!(resumed["done"].as_u64() >= halfway["done"].as_u64(), "{halfway:#} {resumed:#}");
        harness.pause(Value::Null).await;
        harness.completed(&second.release.version).await;
        let status = harness.get(CLUSTER_VERSION, "version").await["status"].clone();
        let history = status["history"].as_array().expect("a history");
        let versions: Vec<&Value> = history.iter().map(|entry| &entry["version"]).collect();
        assert_eq!(versions, ["1.1.0", "1.0.0"], "{status:#}");
        assert_eq!(log.count_writes(), written, "a deposed leader writes nothing");
        harness.stop().await;
    });
}

#[test]
fn a_leader_goes_on_when_its_lease_is_deleted() {
    on_each_cluster(|kind| async move {
        let (first, second) = sample_payloads();
        let payloads = [Arc::clone(&first), Arc::clone(&second)];
        let mut harness = Harness::start(kind, &payloads, OperatorSetup::default()).await;
        harness.settings.leadership = Leadership::Lease("first".to_owned());
        harness.control();
        harness.completed(&first.release.version).await;
        let leases: Api<Lease> = Api::namespaced(harness.client.clone(), "kube-system");
        leases.delete("plimsoll", &Default::default()).await.expect("it is deleted");
        until("the lease is made again", || holder(&harness), |holder| holder == "first").await;
        harness.release(&second);
        harness.completed(&second.release.version).await;
        harness.stop().await;
        assert_eq!(holder(&harness).await, "", "it is given back");
    });
}
