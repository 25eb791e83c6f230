//! OperatorRevisions that other clients create or delete.

use serde_json::{Value, json};

use super::{AddOns, Fixture, Named};
use crate::harness::{on_each_cluster, until};

#[test]
fn revisions_of_other_clients_are_not_used_and_those_of_the_controller_stay_until_the_end() {
    on_each_cluster(|kind| async move {
        let mut add_ons = AddOns::start(kind, "[]").await;
        Fixture::publish(add_ons.catalog.path(), "bar", "1.2.1");
        let installed = [("Installed", "True"), ("Progressing", "False AsExpected")];
        add_ons.request("bar", json!({ "version": "1.2.1" })).await;
        add_ons.expect("bar", &installed).await;
        // The objects of a real one, under the next number and the name of the next bundle.
        let made = add_ons.present("olm.io/v1 OperatorRevision bar-1").await;
        let mut spec = made["spec"].clone();
        spec["revision"] = json!(2);
        spec["bundle"]["name"] = json!("bar.v1.2.5");
        spec["bundle"]["version"] = json!("1.2.5");
        let metadata = json!({
            "name": "bar-2",
            "labels": made["metadata"]["labels"],
            "annotations": made["metadata"]["annotations"],
            "ownerReferences": made["metadata"]["ownerReferences"],
        });
        let (version, kind) = ("olm.io/v1", "OperatorRevision");
        let forged =
            json!({ "apiVersion": version, "kind": kind, "metadata": metadata, "spec": spec });
        add_ons.apply(forged).await;
        let named = "True InvalidSpec: OperatorRevisions are not used: bar-2: it does not have the \
                     controller's signature";
        add_ons.expect("bar", &[("Invalid", named)]).await;
        Fixture::publish(add_ons.catalog.path(), "bar", "1.2.5");
        add_ons.request("bar", json!({ "version": "1.2.5" })).await;
        add_ons.expect("bar", &[("version", "1.2.5 (@v1.2.5)"), installed[1]]).await;
        let third = add_ons.present("olm.io/v1 OperatorRevision bar-3").await;
        assert_ne!(third["spec"]["digest"], made["spec"]["digest"]);
        add_ons.present("v1 ConfigMap bar/bar-of-1.2.5").await;

        // A deleted record stays while the controller is away, and until the deletion of the Operator has ended.
        add_ons.kill().await;
        for name in ["bar-1", "bar-2", "bar-3"] {
            add_ons.delete(&format!("olm.io/v1 OperatorRevision {name}")).await;
        }
        add_ons.absent("olm.io/v1 OperatorRevision bar-2").await;
        add_ons.delete("olm.io/v1 Operator bar").await;
        let third = Named::parse("olm.io/v1 OperatorRevision bar-3");
        let object = || async { add_ons.object(&third).await };
        let is_held = |it: &Value| it["metadata"]["deletionTimestamp"].is_string();
        until("bar-3 is held", object, is_held).await;
        add_ons.control();
        for named in [
            "olm.io/v1 Operator bar",
            "apps/v1 Deployment bar/bar-operator",
            "apiextensions.k8s.io/v1 CustomResourceDefinition bars.bar.example.com",
            "v1 Namespace bar",
            "olm.io/v1 OperatorRevision bar-1",
            "olm.io/v1 OperatorRevision bar-3",
        ] {
            add_ons.absent(named).await;
        }
        add_ons.stop().await;
    });
}
