//! Bundles with objects of kinds that are not served.

use serde_json::json;

use super::{AddOns, Fixture};
use crate::harness::on_any_cluster;

#[test]
fn certificates_are_not_begun_with_where_cert_manager_is_missing() {
    on_any_cluster(|kind| async move {
        let mut add_ons = AddOns::start(kind, "[]").await;
        Fixture::publish(add_ons.catalog.path(), "bar", "1.2.1");
        Fixture::publish(add_ons.catalog.path(), "urn", "1.1.0");
        add_ons.request("bar", json!({ "version": "1.2.1" })).await;
        add_ons.expect("bar", &[("Installed", "True"), ("Progressing", "False")]).await;
        let wanted = json!({ "version": "1.1.0", "certificates": "CertManager" });
        add_ons.request("urn", wanted).await;
        add_ons.expect("urn", &[("Progressing", "False ClusterIncompatible")]).await;
        let reported = add_ons.reported("urn").await;
        let message = &reported["Progressing"];
        let advice = "install cert-manager, or set spec.certificates to another provider";
        assert!(message.contains(advice), "{message}");
        add_ons.absent("v1 Namespace urn").await;

        for (plural, kind) in [("issuers", "Issuer"), ("certificates", "Certificate")] {
            let schema = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
            let version = json!({
                "name": "v1", "served": true, "storage": true,
                "schema": { "openAPIV3Schema": schema },
            });
            add_ons
                .apply(json!({
                    "apiVersion": "apiextensions.k8s.io/v1",
                    "kind": "CustomResourceDefinition",
                    "metadata": { "name": format!("{plural}.cert-manager.io") },
                    "spec": {
                        "group": "cert-manager.io",
                        "names": { "kind": kind, "plural": plural },
                        "scope": "Namespaced",
                        "versions": [version],
                    },
                }))
                .await;
        }
        // Nothing issues certificates here, so that the rollout goes no further than the Services.
        add_ons.present("v1 Service urn/urn-operator-service").await;
        add_ons.stop().await;
    });
}
