//! Objects that another program applied before an Operator adopts them.

use kube::api::{DynamicObject, PostParams};
use serde_json::{Value, json};

use super::{AddOns, Fixture, Named};
use crate::harness::{on_each_cluster, until};

#[test]
fn what_helm_applied_and_a_bundle_lacks_goes_when_it_is_adopted() {
    on_each_cluster(|kind| async move {
        let mut add_ons = AddOns::start(kind, "[]").await;
        Fixture::publish(add_ons.catalog.path(), "bar", "1.2.1");
        let namespace = json!({ "name": "bar" });
        add_ons
            .apply(json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": namespace }))
            .await;
        let named = Named::parse("v1 ConfigMap bar/bar-config");
        let object: DynamicObject = serde_json::from_value(json!({
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": { "name": "bar-config", "namespace": "bar" },
            "data": { "dropped": "theirs" },
        }))
        .expect("an object");
        let parameters =
            PostParams { field_manager: Some("helm".to_owned()), ..PostParams::default() };
        let api = named.api(&add_ons.harness.client);
        api.create(&parameters, &object).await.expect("it is created");
        let added = json!({ "data": { "added": "another" } });
        add_ons.change("v1 ConfigMap bar/bar-config", added).await;

        add_ons.request("bar", json!({ "version": "1.2.1" })).await;
        let conflict = || async {
            let reported = add_ons.reported("bar").await;
            reported.into_values().collect::<Vec<String>>().join("\n")
        };
        let is_named = |it: &String| it.contains("together with the fields of helm");
        until("the fields are named", conflict, is_named).await;
        let spec = json!({ "version": "1.2.1", "collisionProtection": "IfNoController" });
        add_ons.request("bar", spec).await;
        add_ons.expect("bar", &[("Installed", "True"), ("Progressing", "False")]).await;
        let data = || async { add_ons.object(&named).await["data"].clone() };
        let wanted = json!({ "version": "1.2.1", "added": "another" });
        until("what helm applied is gone", data, |it: &Value| *it == wanted).await;
        add_ons.stop().await;
    });
}
