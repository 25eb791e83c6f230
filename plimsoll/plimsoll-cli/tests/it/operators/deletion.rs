//! Deletions that are aborted, or stuck.

use std::sync::atomic::Ordering;

use plimsoll_api::OPERATOR;
use plimsoll_api::olm::DELETION_FINALIZER;
use serde_json::{Value, json};

use super::commands::RunCommand;
use super::{AddOns, Fixture, Named};
use crate::events::reported;
use crate::harness::{condition, on_each_cluster, until};

#[test]
fn an_aborted_deletion_keeps_what_there_is_and_resumes_management() {
    on_each_cluster(|kind| async move {
        let faults = "- {package: bar, fault: KeepsFinalizers}";
        let mut add_ons = AddOns::start(kind, faults).await;
        Fixture::publish(add_ons.catalog.path(), "bar", "1.2.1");
        add_ons.request("bar", json!({ "version": "1.2.1" })).await;
        add_ons.expect("bar", &[("Installed", "True"), ("Progressing", "False")]).await;
        let bar = "bar.example.com/v1 Bar default/one";
        let metadata = json!({ "name": "one", "namespace": "default" });
        let version = "bar.example.com/v1";
        add_ons.apply(json!({ "apiVersion": version, "kind": "Bar", "metadata": metadata })).await;
        add_ons.has_finalizer(bar).await;
        // The finalizers of other clients are theirs.
        let finalizers = [DELETION_FINALIZER, "example.com/other"];
        let others = json!({ "metadata": { "finalizers": finalizers } });
        add_ons.change("olm.io/v1 Operator bar", others).await;
        let before = add_ons.harness.get(OPERATOR, "bar").await;
        let run = RunCommand::new;
        run("delete bar --no-wait --yes", "bar is being deleted").play(&add_ons).await;
        let deletion =
            || async { add_ons.harness.get(OPERATOR, "bar").await["status"]["deletion"].clone() };
        until("it waits for the object", deletion, |it| it["phase"] == "Operands").await;
        run("describe bar", "Deletion:\n  phase Operands\n  1 Bar.bar.example.com in default\n")
            .play(&add_ons)
            .await;
        let error = "Operator `bar` has finalizers of other clients: example.com/other; its deletion can be \
                     aborted once they are removed by whoever added them";
        RunCommand::failing("abort bar", &[], error).play(&add_ons).await;
        let ours = json!({ "metadata": { "finalizers": [DELETION_FINALIZER] } });
        add_ons.change("olm.io/v1 Operator bar", ours).await;
        // As `kubectl delete --cascade=foreground` does; it stays until the Operator goes.
        add_ons.delete("olm.io/v1 OperatorRevision bar-1").await;
        run("abort bar", "deletion of bar aborted\n").play(&add_ons).await;
        add_ons.expect("bar", &[("Installed", "True"), ("Progressing", "False AsExpected")]).await;
        let after = add_ons.harness.get(OPERATOR, "bar").await;
        assert_ne!(after["metadata"]["uid"], before["metadata"]["uid"]);
        assert_eq!(after["spec"], before["spec"]);
        let history = |it: &Value| it["status"]["history"].as_array().cloned().unwrap_or_default();
        assert_eq!(history(&after), history(&before), "{after:#}");
        assert_eq!(after["status"]["revision"], 1, "{after:#}");
        let predecessors = json!([before["metadata"]["uid"]]);
        assert_eq!(after["status"]["predecessors"], predecessors, "{after:#}");
        add_ons.present("olm.io/v1 OperatorRevision bar-1").await;
        add_ons.present("apps/v1 Deployment bar/bar-operator").await;
        let object = add_ons.object(&Named::parse(bar)).await;
        assert!(object["metadata"]["uid"].is_string(), "{object}");
        add_ons.stop().await;
    });
}

/// Creates a part of the record of an abort that was interrupted.
async fn record(add_ons: &AddOns, name: &str, config: Value) {
    let spec = json!({
        "operator": "bar.aborting", "revision": 1, "part": { "number": 1, "of": 1 },
        "digest": "", "bundle": { "name": "", "version": "" }, "namespace": "",
        "config": config, "objects": [],
    });
    let (version, kind) = ("olm.io/v1", "OperatorRevision");
    let metadata = json!({ "name": name });
    let object = json!({ "apiVersion": version, "kind": kind, "metadata": metadata, "spec": spec });
    add_ons.apply(object).await;
}

#[test]
fn an_operator_that_an_abort_created_again_is_not_lost_when_it_is_deleted_before_the_end() {
    on_each_cluster(|kind| async move {
        let mut add_ons = AddOns::start(kind, "[]").await;
        let installed = [("Installed", "True"), ("Progressing", "False AsExpected")];
        Fixture::publish(add_ons.catalog.path(), "bar", "1.2.1");
        add_ons.request("bar", json!({ "version": "1.2.1" })).await;
        add_ons.expect("bar", &installed).await;
        let before = add_ons.harness.get(OPERATOR, "bar").await;
        add_ons.kill().await;
        let (bar, revision) = ("olm.io/v1 Operator bar", "olm.io/v1 OperatorRevision bar-1");
        add_ons.change(revision, json!({ "metadata": { "ownerReferences": [] } })).await;
        add_ons.change(bar, json!({ "metadata": { "finalizers": [] } })).await;
        add_ons.delete(bar).await;
        add_ons.absent(bar).await;
        record(&add_ons, "bar.aborting", json!({ "operator": before, "revisions": ["bar-1"] }))
            .await;
        // It has neither its revision nor its history yet.
        let metadata = json!({
            "name": "bar",
            "annotations": { "olm.io/abort-of": before["metadata"]["uid"] },
            "finalizers": [DELETION_FINALIZER],
        });
        let (version, mut spec) = ("olm.io/v1", before["spec"].clone());
        spec["paused"] = json!(true);
        let again = json!({
            "apiVersion": version, "kind": "Operator", "metadata": metadata, "spec": spec,
        });
        add_ons.apply(again).await;
        add_ons.delete(bar).await;
        add_ons.control();
        RunCommand::new("abort bar", "deletion of bar aborted\n").play(&add_ons).await;
        add_ons.expect("bar", &installed).await;
        let after = add_ons.harness.get(OPERATOR, "bar").await;
        assert_eq!(after["spec"], before["spec"]);
        assert!(after["metadata"]["annotations"]["olm.io/abort-of"].is_null(), "{after:#}");
        assert_eq!(after["status"]["history"], before["status"]["history"], "{after:#}");
        assert_eq!(after["status"]["revision"], 1, "{after:#}");
        add_ons.present(revision).await;
        add_ons.absent("olm.io/v1 OperatorRevision bar.aborting").await;
        add_ons.stop().await;
    });
}

#[test]
fn the_record_of_another_abort_is_not_mixed_with_that_of_an_operator() {
    on_each_cluster(|kind| async move {
        let mut add_ons = AddOns::start(kind, "[]").await;
        Fixture::publish(add_ons.catalog.path(), "bar", "1.2.1");
        add_ons.request("bar", json!({ "version": "1.2.1" })).await;
        add_ons.expect("bar", &[("Installed", "True"), ("Progressing", "False AsExpected")]).await;
        let revision = add_ons.present("olm.io/v1 OperatorRevision bar-1").await;
        // An earlier Operator of the name has left the record of an abort that was interrupted.
        let mut earlier = add_ons.harness.get(OPERATOR, "bar").await;
        earlier["metadata"]["uid"] = json!("another");
        let mut copy = revision.clone();
        copy["metadata"]["annotations"] = json!({ "olm.io/signature": "another/code" });
        record(&add_ons, "bar.aborting", json!({ "operator": earlier, "revisions": [] })).await;
        record(&add_ons, "bar-1.aborting", json!({ "revision": copy })).await;
        // A paused deletion waits.
        let bar = "olm.io/v1 Operator bar";
        add_ons.change(bar, json!({ "spec": { "paused": true } })).await;
        add_ons.delete("olm.io/v1 OperatorRevision bar-1").await;
        add_ons.delete(bar).await;
        RunCommand::new("abort bar", "deletion of bar aborted\n").play(&add_ons).await;
        let after = add_ons.present("olm.io/v1 OperatorRevision bar-1").await;
        let annotations = |it: &Value| it["metadata"]["annotations"].clone();
        assert_eq!(annotations(&after), annotations(&revision), "{after:#}");
        add_ons.absent("olm.io/v1 OperatorRevision bar.aborting").await;
        add_ons.absent("olm.io/v1 OperatorRevision bar-1.aborting").await;
        add_ons.stop().await;
    });
}

#[test]
fn an_abort_that_was_interrupted_goes_on() {
    on_each_cluster(|kind| async move {
        let mut add_ons = AddOns::start(kind, "[]").await;
        let installed = [("Installed", "True"), ("Progressing", "False AsExpected")];
        Fixture::publish(add_ons.catalog.path(), "bar", "1.2.1");
        add_ons.request("bar", json!({ "version": "1.2.1" })).await;
        add_ons.expect("bar", &installed).await;
        let before = add_ons.harness.get(OPERATOR, "bar").await;
        let revision = add_ons.present("olm.io/v1 OperatorRevision bar-1").await;
        // The Operator is gone, and its revision, which was being deleted, with it.
        add_ons.kill().await;
        let released = json!({ "metadata": { "finalizers": [] } });
        for named in ["olm.io/v1 OperatorRevision bar-1", "olm.io/v1 Operator bar"] {
            add_ons.change(named, released.clone()).await;
            add_ons.delete(named).await;
            add_ons.absent(named).await;
        }
        record(&add_ons, "bar.aborting", json!({ "operator": before, "revisions": [] })).await;
        record(&add_ons, "bar-1.aborting", json!({ "revision": revision })).await;
        add_ons.control();
        RunCommand::new("abort bar", "deletion of bar aborted\n").play(&add_ons).await;
        add_ons.expect("bar", &installed).await;
        let after = add_ons.harness.get(OPERATOR, "bar").await;
        assert_eq!(after["spec"], before["spec"]);
        assert!(after["metadata"]["annotations"]["olm.io/abort-of"].is_null(), "{after:#}");
        assert_eq!(after["status"]["history"], before["status"]["history"], "{after:#}");
        assert_eq!(after["status"]["revision"], 1, "{after:#}");
        let again = add_ons.present("olm.io/v1 OperatorRevision bar-1").await;
        assert_eq!(again["spec"], revision["spec"]);
        add_ons.absent("olm.io/v1 OperatorRevision bar.aborting").await;
        add_ons.absent("olm.io/v1 OperatorRevision bar-1.aborting").await;
        let error = "Operator `bar` is not being deleted: there is nothing to abort";
        RunCommand::failing("abort bar", &[], error).play(&add_ons).await;
        add_ons.stop().await;
    });
}

#[test]
fn what_does_not_go_is_named_with_its_finalizer_and_goes_once_it_may() {
    on_each_cluster(|kind| async move {
        let faults = "- {package: bar, fault: KeepsFinalizers}";
        let mut add_ons = AddOns::start(kind, faults).await;
        Fixture::publish(add_ons.catalog.path(), "bar", "1.2.1");
        add_ons.request("bar", json!({ "version": "1.2.1" })).await;
        add_ons.expect("bar", &[("Installed", "True"), ("Progressing", "False")]).await;
        let bar = "bar.example.com/v1 Bar default/one";
        let metadata = json!({ "name": "one", "namespace": "default" });
        let version = "bar.example.com/v1";
        add_ons.apply(json!({ "apiVersion": version, "kind": "Bar", "metadata": metadata })).await;
        add_ons.has_finalizer(bar).await;
        let error = "Operator `bar` is not being deleted: run `operator delete bar` first, which lets \
                     the operator remove its finalizers itself";
        RunCommand::failing("delete bar --force-finalizers", &[], error).play(&add_ons).await;
        add_ons.delete("olm.io/v1 Operator bar").await;
        let deletion =
            || async { add_ons.harness.get(OPERATOR, "bar").await["status"]["deletion"].clone() };
        until("it waits for the object", deletion, |it| it["phase"] == "Operands").await;
        // The operator is there as long as its objects are.
        add_ons.present("apps/v1 Deployment bar/bar-operator").await;
        add_ons.clock.0.store(3600, Ordering::SeqCst);
        let stuck = until("it is named", deletion, |it| it["stuck"].is_array()).await;
        let named = stuck["stuck"][0].as_str().unwrap_or_default();
        assert!(
            named.contains("one") && named.contains("simulation.plimsoll.io/operand"),
            "{stuck}"
        );
        let status = add_ons.harness.get(OPERATOR, "bar").await["status"].clone();
        let progressing = condition(&status, "Progressing");
        let message = progressing["message"].as_str().unwrap_or_default();
        assert!(message.contains("stuck: ") && message.contains(named), "{status:#}");
        assert_eq!(progressing["reason"], "OperandsStuck");
        let object = "bar.bar.example.com \"default/one\"";
        let shown = format!("{object}: simulation.plimsoll.io/operand\n");
        let run = RunCommand::new;
        run("delete bar --force-finalizers --dry-run", &shown).play(&add_ons).await;
        let removed = format!("finalizers of {object} removed\n");
        let watched = run("describe bar --watch", "\noperator.olm.io/bar deleted\n");
        let forced = run("delete bar --force-finalizers --yes", &removed);
        tokio::join!(watched.play(&add_ons), forced.play(&add_ons));
        add_ons.absent("olm.io/v1 Operator bar").await;
        add_ons.absent("apps/v1 Deployment bar/bar-operator").await;
        add_ons.stop().await;
        let reported = reported(&add_ons.harness).await;
        let stuck = reported.get("OperandsStuck").map(Vec::as_slice).unwrap_or_default();
        assert!(stuck.len() == 1 && stuck[0].contains(named), "{reported:#?}");
    });
}
