//! A class of Actions that a package of a catalog brings, and that somebody else serves, with `kubectl` alone.

use std::process::Command;

use plimsoll_controller::actions::ActionSettings;
use serde_json::{Value, json};

use super::{AddOns, Fixture, Named};
use crate::harness::{on_each_cluster, until};

#[test]
fn a_class_of_somebody_else_is_served_by_them_alone() {
    on_each_cluster(|kind| async move {
        let mut add_ons = AddOns::start_with(kind, "[]", Some(ActionSettings::default())).await;
        let examples = std::path::absolute("../../examples/actions").expect("a working directory");
        let classes = std::fs::read_to_string(examples.join("class.yaml")).expect("an example");
        let documents = plimsoll_content::yaml::parse(&classes);
        let mut objects = documents.into_iter().map(|it| it.value.expect("it is YAML"));
        let policy = objects.find(|it| it["kind"] == "ActionPolicy").expect("the class is guarded");
        // The policy is the administrator's, and the class that of the package.
        add_ons.apply(policy).await;
        Fixture::publish(add_ons.catalog.path(), "seal", "1.0.0");
        add_ons.request("seal", json!({ "version": "1.0.0" })).await;
        add_ons.present("olm.io/v1 ActionClass configmap-seal").await;
        // Classes and Actions are watched each by itself. One that begins now knows the class first.
        add_ons.stop().await;
        add_ons.control();
        let namespace = json!({ "name": "team-a" });
        add_ons
            .apply(json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": namespace }))
            .await;
        let metadata = json!({ "name": "settings", "namespace": "team-a" });
        add_ons
            .apply(json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata }))
            .await;
        for name in ["settings", "missing"] {
            add_ons
                .apply(json!({
                    "apiVersion": "olm.io/v1",
                    "kind": "Action",
                    "metadata": { "name": name, "namespace": "team-a" },
                    "spec": {
                        "actionClass": "configmap-seal",
                        "parameters": { "name": name },
                        "requester": { "username": "alice", "groups": ["dev"] },
                    },
                }))
                .await;
        }
        // One of ours that comes later is done: the others were looked at and left alone.
        add_ons
            .apply(json!({
                "apiVersion": "olm.io/v1",
                "kind": "Action",
                "metadata": { "name": "ours", "namespace": "team-a" },
                "spec": {
                    "actionClass": "autoremove",
                    "requester": { "username": "admin", "groups": ["system:masters"] },
                },
            }))
            .await;
        let action = |name: &str| Named::parse(&format!("olm.io/v1 Action team-a/{name}"));
        let ours = || async { add_ons.object(&action("ours")).await["status"]["state"].clone() };
        until("our Action ends", ours, |it| it == "SUCCEEDED").await;
        for name in ["settings", "missing"] {
            assert_eq!(add_ons.object(&action(name)).await["status"], Value::Null);
        }
        // The script needs a server that listens.
        if let Some(kubeconfig) = add_ons.harness.cluster.kubeconfig() {
            let mut command = Command::new("sh");
            command.arg(examples.join("controller.sh")).arg("once").env("KUBECONFIG", kubeconfig);
            if let Some(assets) = std::env::var_os("KUBEBUILDER_ASSETS") {
                let path = std::env::var("PATH").unwrap_or_default();
                command.env("PATH", format!("{}:{path}", assets.to_string_lossy()));
            }
            let ran = command.output().expect("the script runs");
            assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
            for (name, state, reason) in
                [("settings", "SUCCEEDED", "ActionSucceeded"), ("missing", "FAILED", "PatchFailed")]
            {
                let status = add_ons.object(&action(name)).await["status"].clone();
                assert_eq!(status["state"], state, "{status:#}");
                assert_eq!(status["conditions"][0]["reason"], reason, "{status:#}");
            }
            let sealed = Named::parse("v1 ConfigMap team-a/settings");
            assert_eq!(add_ons.object(&sealed).await["immutable"], true);
        }
        // The class goes with its package, and what is requested of it waits until it is back.
        add_ons.delete("olm.io/v1 Operator seal").await;
        add_ons.absent("olm.io/v1 ActionClass configmap-seal").await;
        add_ons
            .apply(json!({
                "apiVersion": "olm.io/v1",
                "kind": "Action",
                "metadata": { "name": "late", "namespace": "team-a" },
                "spec": {
                    "actionClass": "configmap-seal",
                    "parameters": { "name": "settings" },
                    "requester": { "username": "alice", "groups": ["dev"] },
                },
            }))
            .await;
        let late = || async {
            add_ons.object(&action("late")).await["status"]["conditions"][0]["reason"].clone()
        };
        until("it waits for its class", late, |it| it == "ActionClassNotFound").await;
        add_ons.stop().await;
    });
}
