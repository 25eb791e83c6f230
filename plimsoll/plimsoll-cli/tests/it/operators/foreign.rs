//! A class of Actions that a package of a catalog brings, and that another controller serves, with `kubectl`
//! alone.

use std::path::Path;
use std::process::Command;

use plimsoll_controller::actions::ActionSettings;
use serde_json::{Value, json};

use super::{AddOns, Fixture, Named};
use crate::harness::{on_each_cluster, until};

/// Returns an Action in namespace `team-a`.
fn action(name: &str, spec: &Value) -> Value {
    let metadata = json!({ "name": name, "namespace": "team-a" });
    json!({ "apiVersion": "olm.io/v1", "kind": "Action", "metadata": metadata, "spec": spec })
}

/// Returns an Action of the class that seals a ConfigMap.
fn seal(name: &str, config_map: &str) -> Value {
    let spec = json!({
        "actionClass": "configmap-seal",
        "parameters": { "name": config_map },
        "requester": { "username": "alice", "groups": ["dev"] },
    });
    action(name, &spec)
}

/// Runs the script of the other controller once.
fn run_controller(examples: &Path, kubeconfig: &Path) {
    let mut command = Command::new("sh");
    command.arg(examples.join("controller.sh")).arg("once").env("KUBECONFIG", kubeconfig);
    if let Some(assets) = std::env::var_os("KUBEBUILDER_ASSETS") {
        let path = std::env::var("PATH").unwrap_or_default();
        command.env("PATH", format!("{}:{path}", assets.to_string_lossy()));
    }
    let ran = command.output().expect("the script runs");
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
}

#[test]
fn a_class_of_another_controller_is_served_by_that_one_alone() {
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
            add_ons.apply(seal(name, name)).await;
        }
        // An Action of this controller that comes later is executed: the others were observed and ignored.
        let requester = json!({ "username": "admin", "groups": ["system:masters"] });
        let ours = json!({ "actionClass": "autoremove", "requester": requester });
        add_ons.apply(action("ours", &ours)).await;
        let status = async |name: &str| {
            let named = Named::parse(&format!("olm.io/v1 Action team-a/{name}"));
            add_ons.object(&named).await["status"].clone()
        };
        let state = || async { status("ours").await["state"].clone() };
        until("our Action ends", state, |it| it == "Succeeded").await;
        for name in ["settings", "missing"] {
            assert_eq!(status(name).await, Value::Null);
        }
        // The script needs a server that listens.
        if let Some(kubeconfig) = add_ons.harness.cluster.kubeconfig() {
            run_controller(&examples, kubeconfig);
            for (name, state, reason) in
                [("settings", "Succeeded", "ActionSucceeded"), ("missing", "Failed", "PatchFailed")]
            {
                let status = status(name).await;
                assert_eq!(status["state"], state, "{status:#}");
                assert_eq!(status["conditions"][0]["reason"], reason, "{status:#}");
            }
            let sealed = Named::parse("v1 ConfigMap team-a/settings");
            assert_eq!(add_ons.object(&sealed).await["immutable"], true);
        }
        // The class goes with its package, and what is requested of it waits until it is back.
        add_ons.delete("olm.io/v1 Operator seal").await;
        add_ons.absent("olm.io/v1 ActionClass configmap-seal").await;
        add_ons.apply(seal("late", "settings")).await;
        let late = || async { status("late").await["conditions"][0]["reason"].clone() };
        until("it waits for its class", late, |it| it == "ActionClassNotFound").await;
        add_ons.stop().await;
    });
}
