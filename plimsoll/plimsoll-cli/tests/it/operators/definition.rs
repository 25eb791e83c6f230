//! Deletion of the definitions of the add-on layer while a controller runs.

use plimsoll_api::{ApiKind, CATALOG, OPERATOR, OPERATOR_REVISION};
use serde_json::{Value, json};

use super::{AddOns, Fixture, Named};
use crate::events::reported;
use crate::harness::{on_each_cluster, until};

/// Objects of the Operator that is installed, and an object of a user.
const KEPT: [&str; 5] = [
    "v1 Namespace bar",
    "v1 ConfigMap bar/bar-config",
    "apps/v1 Deployment bar/bar-operator",
    "apiextensions.k8s.io/v1 CustomResourceDefinition bars.bar.example.com",
    "bar.example.com/v1 Bar default/one",
];

impl AddOns {
    /// Returns the uids of the objects that are kept.
    async fn kept(&self) -> Vec<Value> {
        let mut uids = Vec::new();
        for named in KEPT {
            uids.push(self.present(named).await["metadata"]["uid"].clone());
        }
        uids
    }

    /// Deletes a definition, and waits until it was created again.
    async fn definition_comes_back(&self, named: &str) {
        let before = self.present(named).await["metadata"]["uid"].clone();
        self.delete(named).await;
        let uid = || async { self.object(&Named::parse(named)).await["metadata"]["uid"].clone() };
        let is_another = |it: &Value| it.is_string() && *it != before;
        until(&format!("{named} comes back"), uid, is_another).await;
    }
}

#[test]
fn definitions_that_are_deleted_come_back_and_take_nothing_along() {
    on_each_cluster(|kind| async move {
        let mut add_ons = AddOns::start(kind, "[]").await;
        Fixture::publish(add_ons.catalog.path(), "bar", "1.2.1");
        let installed = [("Installed", "True"), ("Progressing", "False AsExpected")];
        add_ons.request("bar", json!({ "version": "1.2.1" })).await;
        add_ons.expect("bar", &installed).await;
        let metadata = json!({ "name": "one", "namespace": "default" });
        let version = "bar.example.com/v1";
        add_ons.apply(json!({ "apiVersion": version, "kind": "Bar", "metadata": metadata })).await;
        add_ons.has_finalizer(KEPT[4]).await;
        let before = add_ons.kept().await;

        let definition = |kind: ApiKind| {
            let name = format!("{}.{}", kind.plural, kind.group);
            format!("apiextensions.k8s.io/v1 CustomResourceDefinition {name}")
        };
        add_ons.definition_comes_back(&definition(OPERATOR)).await;
        assert_eq!(add_ons.kept().await, before, "nothing goes with Operators");
        let events = || reported(&add_ons.harness);
        until("it is reported", events, |it| it.contains_key("DefinitionDeleted")).await;
        // What is there is managed again.
        add_ons.request("bar", json!({ "version": "1.2.1" })).await;
        add_ons.expect("bar", &installed).await;
        assert_eq!(add_ons.kept().await, before);

        add_ons.definition_comes_back(&definition(CATALOG)).await;
        let path = add_ons.catalog.path().to_owned();
        add_ons.add_catalog("fixture", &path).await;
        add_ons.definition_comes_back(&definition(OPERATOR_REVISION)).await;
        add_ons.expect("bar", &installed).await;
        assert_eq!(add_ons.kept().await, before, "nothing goes with Catalogs and revisions");

        // A deletion that a user requests deletes everything.
        add_ons.delete("olm.io/v1 Operator bar").await;
        add_ons.absent("olm.io/v1 Operator bar").await;
        for named in KEPT {
            add_ons.absent(named).await;
        }
        add_ons.stop().await;
    });
}
