//! Custom objects whose storage version changes.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use http::{Method, Request};
use kube::Client;
use kube::client::Body;
use serde_json::json;
use tower::service_fn;

use super::{AddOns, Fixture};
use crate::harness::on_each_cluster;

/// A client that counts the writes of objects of the new version.
fn counting(client: &Client, writes: &Arc<AtomicUsize>) -> Client {
    let (client, writes) = (client.clone(), Arc::clone(writes));
    let service = service_fn(move |request: Request<Body>| {
        let is_object = request.uri().path().starts_with("/apis/kiln.example.com/v1/namespaces/");
        if is_object && *request.method() == Method::PATCH {
            writes.fetch_add(1, Ordering::SeqCst);
        }
        let client = client.clone();
        async move { client.send(request).await.map_err(tower::BoxError::from) }
    });
    Client::new(service, "default")
}

#[test]
fn objects_are_stored_in_the_new_version_so_that_a_later_bundle_drops_the_old_one() {
    on_each_cluster(|kind| async move {
        let mut add_ons = AddOns::without_catalog(kind, "[]").await;
        for version in ["1.0.0", "1.1.0", "1.2.0"] {
            Fixture::publish(add_ons.catalog.path(), "kiln", version);
        }
        let writes = Arc::new(AtomicUsize::new(0));
        add_ons.control_with(counting(&add_ons.harness.client, &writes));
        add_ons.add_catalog("fixture", add_ons.catalog.path()).await;
        let definition = "apiextensions.k8s.io/v1 CustomResourceDefinition kilns.kiln.example.com";
        add_ons.request("kiln", json!({ "version": "1.0.0" })).await;
        add_ons.expect("kiln", &[("Installed", "True"), ("Progressing", "False AsExpected")]).await;
        for name in ["one", "two"] {
            let metadata = json!({ "name": name, "namespace": "kiln" });
            let object = json!({
                "apiVersion": "kiln.example.com/v1alpha1", "kind": "Kiln", "metadata": metadata,
                "spec": { "heat": "high" },
            });
            add_ons.apply(object).await;
        }
        let stored = add_ons.present(definition).await["status"]["storedVersions"].clone();
        assert_eq!(stored, json!(["v1alpha1"]));

        add_ons.request("kiln", json!({ "version": "1.1.0" })).await;
        let version = ("version", "1.1.0 (@v1.1.0)");
        add_ons.expect("kiln", &[version, ("Progressing", "False AsExpected")]).await;
        let stored = add_ons.present(definition).await["status"]["storedVersions"].clone();
        assert_eq!(stored, json!(["v1"]));
        assert_eq!(writes.load(Ordering::SeqCst), 2, "each object is written once");

        // No API server accepts that while `status.storedVersions` names the version.
        add_ons.request("kiln", json!({ "version": "1.2.0" })).await;
        let version = ("version", "1.2.0 (@v1.2.0)");
        add_ons.expect("kiln", &[version, ("Progressing", "False AsExpected")]).await;
        let versions = add_ons.present(definition).await["spec"]["versions"].clone();
        assert_eq!(versions.as_array().map(Vec::len), Some(1));
        for name in ["one", "two"] {
            let object = add_ons.present(&format!("kiln.example.com/v1 Kiln kiln/{name}")).await;
            assert_eq!(object["spec"]["heat"], "high");
        }
        assert_eq!(writes.load(Ordering::SeqCst), 2, "nothing is left to write");
        add_ons.stop().await;
    });
}
