//! The objects of Operators: their rollout, their drift, and what is recorded of them.

use kube::api::ListParams;
use plimsoll_api::{CATALOG, OPERATOR, OPERATOR_REVISION};
use serde_json::{Value, json};

use super::{AddOns, Fixture, Named};
use crate::harness::{condition, on_any_cluster, on_each_cluster, until};

#[test]
fn changes_of_others_are_reverted_and_additions_survive_an_upgrade() {
    on_each_cluster(|kind| async move {
        let mut add_ons = AddOns::start(kind, "[]").await;
        for version in ["1.2.1", "1.2.5"] {
            Fixture::publish(add_ons.catalog.path(), "bar", version);
        }
        add_ons.request("bar", json!({ "version": "1.2.1" })).await;
        add_ons.expect("bar", &[("Installed", "True"), ("Progressing", "False")]).await;
        let (config, deployment) =
            ("v1 ConfigMap bar/bar-config", "apps/v1 Deployment bar/bar-operator");
        add_ons.change(config, json!({ "data": { "version": "theirs", "more": "theirs" } })).await;
        let data = || async { add_ons.object(&Named::parse(config)).await["data"].clone() };
        let wanted = json!({ "version": "1.2.1", "more": "theirs" });
        until("the change is reverted", data, |it| *it == wanted).await;
        let before = add_ons.present(config).await["metadata"]["uid"].clone();
        add_ons.delete(config).await;
        let uid =
            || async { add_ons.object(&Named::parse(config)).await["metadata"]["uid"].clone() };
        until("it is made again", uid, |it| it.is_string() && *it != before).await;

        let restarted = json!({ "kubectl.kubernetes.io/restartedAt": "2026-01-01T00:00:00Z" });
        add_ons
            .change(
                deployment,
                json!({
                    "metadata": { "labels": { "team": "harbour" } },
                    "spec": {
                        "replicas": 3,
                        "template": { "metadata": { "annotations": restarted } },
                    },
                }),
            )
            .await;
        add_ons.request("bar", json!({ "version": "1.2.5" })).await;
        let version = ("version", "1.2.5 (@v1.2.5)");
        add_ons.expect("bar", &[version, ("Progressing", "False AsExpected")]).await;
        let object = add_ons.present(deployment).await;
        assert_eq!(object["metadata"]["labels"]["team"], "harbour");
        assert_eq!(object["spec"]["replicas"], 3);
        let template = &object["spec"]["template"];
        let annotations = &template["metadata"]["annotations"];
        let restarted_at = "kubectl.kubernetes.io/restartedAt";
        assert_eq!(annotations[restarted_at], restarted[restarted_at]);
        let image = &template["spec"]["containers"][0]["image"];
        assert_eq!(image, "registry.example.com/bar-operator:1.2.5");
        add_ons.stop().await;
    });
}

#[test]
fn a_rollout_stops_when_its_operator_does_not_start_and_keeps_the_old_one() {
    on_any_cluster(|kind| async move {
        let faults = "- {package: bar, fault: NeverAvailable, version: 1.2.5}";
        let mut add_ons = AddOns::start(kind, faults).await;
        for version in ["1.2.1", "1.2.5"] {
            Fixture::publish(add_ons.catalog.path(), "bar", version);
        }
        add_ons.request("bar", json!({ "version": "1.2.1" })).await;
        add_ons.expect("bar", &[("Installed", "True"), ("Progressing", "False")]).await;
        add_ons.request("bar", json!({ "version": "1.2.5" })).await;
        let waits = "True RollingOut: Rolling out v1.2.5";
        add_ons.expect("bar", &[("Progressing", waits), ("version", "1.2.5 (@v1.2.1)")]).await;
        // Of the old revision nothing is deleted before the new one is complete.
        add_ons.present("v1 ConfigMap bar/bar-of-1.2.1").await;
        let back = json!({ "version": "1.2.1", "upgradePolicy": "Any" });
        add_ons.request("bar", back).await;
        let version = ("version", "1.2.1 (@v1.2.1)");
        add_ons.expect("bar", &[version, ("Progressing", "False AsExpected")]).await;
        add_ons.stop().await;
    });
}

#[test]
fn a_rollout_waits_until_the_rules_of_its_operator_hold() {
    on_any_cluster(|kind| async move {
        let mut add_ons = AddOns::start(kind, "[]").await;
        for version in ["1.2.1", "1.2.5"] {
            Fixture::publish(add_ons.catalog.path(), "bar", version);
        }
        // At first, metadata of ConfigMaps is enough.
        add_ons.request("bar", json!({ "version": "1.2.1" })).await;
        add_ons.expect("bar", &[("Installed", "True"), ("Progressing", "False")]).await;
        let rule = "self.data.version == '1.2.1' || 'lit' in self.metadata.annotations";
        let rules = json!([{ "kind": "ConfigMap", "name": "bar-config", "rule": rule }]);
        add_ons.request("bar", json!({ "version": "1.2.5", "readyWhen": rules })).await;
        let waits = format!("ConfigMap \"bar/bar-config\" is not ready: {rule} is false");
        let progressing = || async {
            let operator = add_ons.harness.get(OPERATOR, "bar").await;
            let message = &condition(&operator["status"], "Progressing")["message"];
            message.as_str().unwrap_or_default().to_owned()
        };
        until("it waits for the rule", progressing, |it| it.contains(&waits)).await;
        add_ons.expect("bar", &[("version", "1.2.5 (@v1.2.1)")]).await;
        let lit = json!({ "metadata": { "annotations": { "lit": "true" } } });
        add_ons.change("v1 ConfigMap bar/bar-config", lit).await;
        let version = ("version", "1.2.5 (@v1.2.5)");
        add_ons.expect("bar", &[version, ("Progressing", "False AsExpected")]).await;
        // A watch of whole objects has missed nothing.
        add_ons.absent("v1 ConfigMap bar/bar-of-1.2.1").await;
        add_ons.delete("v1 ConfigMap bar/bar-of-1.2.5").await;
        add_ons.present("v1 ConfigMap bar/bar-of-1.2.5").await;
        add_ons.stop().await;
    });
}

#[test]
fn an_upgrade_that_is_late_is_rolled_back_if_that_is_wanted() {
    on_any_cluster(|kind| async move {
        let faults = "- {package: bar, fault: NeverAvailable, version: 1.2.5}";
        let mut add_ons = AddOns::start(kind, faults).await;
        for version in ["1.2.1", "1.2.5"] {
            Fixture::publish(add_ons.catalog.path(), "bar", version);
        }
        add_ons.request("bar", json!({ "version": "1.2.1" })).await;
        add_ons.expect("bar", &[("Installed", "True"), ("Progressing", "False")]).await;
        let spec = json!({ "version": "1.2.5", "rollback": "Automatic", "progressDeadline": "2s" });
        add_ons.request("bar", spec).await;
        let history = || async {
            let operator = add_ons.harness.get(OPERATOR, "bar").await;
            let history = operator["status"]["history"].as_array().cloned().unwrap_or_default();
            let text = |it: &Value, field: &str| it[field].as_str().unwrap_or_default().to_owned();
            let entries = history.iter().map(|it| (text(it, "version"), text(it, "state")));
            entries.collect::<Vec<_>>()
        };
        let entry = |version: &str, state: &str| (version.to_owned(), state.to_owned());
        let expected =
            [entry("1.2.1", "Completed"), entry("1.2.5", "Partial"), entry("1.2.1", "Completed")];
        until("it is rolled back", history, |it| *it == expected).await;
        let version = ("version", "1.2.5 (@v1.2.1)");
        add_ons.expect("bar", &[version, ("Available", "True"), ("Installed", "True")]).await;
        add_ons.present("v1 ConfigMap bar/bar-of-1.2.1").await;
        add_ons.absent("v1 ConfigMap bar/bar-of-1.2.5").await;
        add_ons.stop().await;
    });
}

#[test]
fn a_way_back_that_loses_a_field_waits_until_that_is_accepted() {
    on_any_cluster(|kind| async move {
        let mut add_ons = AddOns::start(kind, "[]").await;
        for version in ["1.0.0", "1.1.0"] {
            Fixture::publish(add_ons.catalog.path(), "pot", version);
            add_ons.request("pot", json!({ "version": version })).await;
            let there = format!("{version} (@v{version})");
            add_ons
                .expect("pot", &[("version", &there), ("Progressing", "False AsExpected")])
                .await;
        }
        let pot = "pot.example.com/v1 Pot pot/one";
        let object = json!({
            "apiVersion": "pot.example.com/v1", "kind": "Pot",
            "metadata": { "name": "one", "namespace": "pot" }, "spec": { "color": "red" },
        });
        add_ons.apply(object).await;
        let back = json!({ "version": "1.1.0", "revision": 1 });
        add_ons.request("pot", back).await;
        let stays = ("version", "1.1.0 (@v1.1.0)");
        let waits = "False UpgradeBlocked: Revision 1 is not applied again: pot.v1.0.0 changes \
                     definitions in ways that break their users: pots.pot.example.com: v1: \
                     ^.spec.color is removed, and lost in objects that have it";
        add_ons.expect("pot", &[("Progressing", waits), stays]).await;
        // Another process refuses it, too.
        add_ons.kill().await;
        add_ons.control();
        add_ons.expect("pot", &[("Progressing", waits), stays]).await;
        add_ons.change(pot, json!({ "metadata": { "labels": { "team": "galley" } } })).await;
        assert_eq!(add_ons.present(pot).await["spec"]["color"], "red");

        let accepted = json!({ "version": "1.1.0", "revision": 1, "crdUpgradeSafety": "Warn" });
        add_ons.request("pot", accepted).await;
        let version = ("version", "1.1.0 (@v1.0.0)");
        add_ons.expect("pot", &[version, ("Progressing", "False AsExpected")]).await;
        let operator = add_ons.harness.get(OPERATOR, "pot").await;
        let risks = operator["status"]["history"][0]["acceptedRisks"].as_str().unwrap_or_default();
        assert!(risks.contains("^.spec.color is removed"), "{risks}");
        add_ons.stop().await;
    });
}

#[test]
fn what_is_recorded_is_what_there_is() {
    on_each_cluster(|kind| async move {
        let mut add_ons = AddOns::without_catalog(kind, "[]").await;
        add_ons.control();
        let examples = std::path::absolute("../../examples/catalog").expect("a working directory");
        add_ons.add_catalog("examples", &examples).await;
        for (name, version) in [("ledger", "2.0.0"), ("tide", "~0.4"), ("lantern", "2.0.0")] {
            add_ons.request(name, json!({ "version": version })).await;
        }
        for name in ["ledger", "tide", "lantern"] {
            let satisfied = ("ConstraintsSatisfied", "True");
            add_ons.expect(name, &[satisfied, ("Progressing", "False AsExpected")]).await;
        }
        let catalog = || async { add_ons.harness.get(CATALOG, "examples").await["status"].clone() };
        let is_served = |it: &Value| condition(it, "Serving")["status"] == "True";
        let is_read = |it: &Value| it["packages"] == 3 && is_served(it);
        until("the Catalog is read", catalog, is_read).await;
        let revisions = add_ons.harness.api(OPERATOR_REVISION);
        let revisions = revisions.list(&ListParams::default()).await.expect("a list");
        let mut recorded = 0;
        for revision in revisions {
            let objects = revision.data["spec"]["objects"].as_array().cloned().unwrap_or_default();
            for object in objects {
                let named = Named::of(&object["object"]);
                let live = add_ons.object(&named).await;
                let operator = &live["metadata"]["labels"]["olm.io/operator"];
                assert_eq!(*operator, revision.data["spec"]["operator"], "{object:#}\n{live:#}");
                recorded += 1;
            }
        }
        assert!(recorded > 20, "{recorded}");
        add_ons.stop().await;
    });
}

#[test]
fn a_conversion_webhook_waits_for_the_workload_that_answers_it() {
    on_any_cluster(|kind| async move {
        let faults = "- {package: urn, fault: NeverAvailable, version: 1.1.0}";
        let mut add_ons = AddOns::start(kind, faults).await;
        for version in ["1.0.0", "1.1.0", "1.2.0"] {
            Fixture::publish(add_ons.catalog.path(), "urn", version);
        }
        add_ons.request("urn", json!({ "version": "1.0.0" })).await;
        add_ons.expect("urn", &[("Installed", "True"), ("Progressing", "False")]).await;
        add_ons.request("urn", json!({ "version": "1.1.0" })).await;
        let deployment = Named::parse("apps/v1 Deployment urn/urn-operator");
        let image = || async {
            let object = add_ons.object(&deployment).await;
            object["spec"]["template"]["spec"]["containers"][0]["image"].clone()
        };
        let wanted = "registry.example.com/urn-operator:1.1.0";
        until("the Deployment is applied", image, |it| *it == wanted).await;
        let definition =
            Named::parse("apiextensions.k8s.io/v1 CustomResourceDefinition urns.urn.example.com");
        let strategy = || async {
            add_ons.object(&definition).await["spec"]["conversion"]["strategy"].clone()
        };
        assert_ne!(strategy().await, "Webhook");
        add_ons.request("urn", json!({ "version": "1.2.0", "upgradePolicy": "Any" })).await;
        let version = ("version", "1.2.0 (@v1.2.0)");
        add_ons.expect("urn", &[version, ("Progressing", "False AsExpected")]).await;
        assert_eq!(strategy().await, "Webhook");
        add_ons.stop().await;
    });
}

#[test]
fn a_definition_that_was_kept_waits_for_its_conversion_webhook_too() {
    on_any_cluster(|kind| async move {
        let faults = "- {package: vat, fault: NeverAvailable, version: 1.1.0}";
        let mut add_ons = AddOns::start(kind, faults).await;
        for version in ["1.0.0", "1.1.0"] {
            Fixture::publish(add_ons.catalog.path(), "vat", version);
        }
        let kept = json!({ "version": "1.0.0", "deletion": { "crds": "Orphan" } });
        add_ons.request("vat", kept).await;
        add_ons.expect("vat", &[("Installed", "True"), ("Progressing", "False AsExpected")]).await;
        add_ons.delete("olm.io/v1 Operator vat").await;
        add_ons.absent("olm.io/v1 Operator vat").await;
        let definition = "apiextensions.k8s.io/v1 CustomResourceDefinition vats.vat.example.com";
        add_ons.present(definition).await;

        let taken = json!({ "version": "1.1.0", "collisionProtection": "IfNoController" });
        add_ons.request("vat", taken).await;
        add_ons.present("apps/v1 Deployment vat/vat-operator").await;
        let versions = add_ons.present(definition).await["spec"]["versions"].clone();
        assert_eq!(versions.as_array().map(Vec::len), Some(1), "{versions:#}");
        add_ons.kill().await;
        add_ons.delete("apps/v1 Deployment vat/vat-operator").await;
        add_ons.control();
        add_ons.present("apps/v1 Deployment vat/vat-operator").await;
        let versions = add_ons.present(definition).await["spec"]["versions"].clone();
        assert_eq!(versions.as_array().map(Vec::len), Some(1), "{versions:#}");
        add_ons.stop().await;
    });
}
