//! Bundles with objects of kinds that are not served.

use serde_json::json;

use super::{AddOns, Fixture};
use crate::harness::{on_any_cluster, until};

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

        // Versions that came since are named.
        define(&add_ons, false).await;
        let progressing =
            || async { add_ons.reported("urn").await.remove("Progressing").unwrap_or_default() };
        let advice = "it is served as v1alpha2: choose another version";
        until("the other version is named", progressing, |it| it.contains(advice)).await;
        add_ons.absent("v1 Namespace urn").await;

        define(&add_ons, true).await;
        // Nothing issues certificates here, so that the rollout goes no further than the Services.
        add_ons.present("v1 Service urn/urn-operator-service").await;
        add_ons.stop().await;
    });
}

/// Defines kinds of cert-manager as `v1alpha2`, and as `v1` if that `is_served`.
async fn define(add_ons: &AddOns, is_served: bool) {
    for (plural, kind) in [("issuers", "Issuer"), ("certificates", "Certificate")] {
        let schema = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
        let version = |name: &str, is_served: bool| {
            json!({
                "name": name, "served": is_served, "storage": name == "v1alpha2",
                "schema": { "openAPIV3Schema": schema },
            })
        };
        add_ons
            .apply(json!({
                "apiVersion": "apiextensions.k8s.io/v1",
                "kind": "CustomResourceDefinition",
                "metadata": { "name": format!("{plural}.cert-manager.io") },
                "spec": {
                    "group": "cert-manager.io",
                    "names": { "kind": kind, "plural": plural },
                    "scope": "Namespaced",
                    "versions": [version("v1alpha2", true), version("v1", is_served)],
                },
            }))
            .await;
    }
}
