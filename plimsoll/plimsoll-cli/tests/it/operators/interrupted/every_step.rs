//! One Action whose controller is killed twice at each step: before the write arrives, and after
//! it. Every other controller repeats the step that was lost, and goes on from the one that was
//! not.

use std::collections::BTreeMap;

use k8s_testkit::ClusterKind;
use plimsoll_controller::actions::ActionSettings;
use serde_json::{Value, json};

use super::{AddOns, Interrupted, Named, Record, requester, start};
use crate::harness::{on_any_cluster, until};

/// What another client does while no controller runs, once the first change of a plan is written.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Meanwhile {
    Nothing,
    CancelAction,
    DeleteAction,
    DeleteOperator,
}

impl AddOns {
    /// Requests an Action and kills the controller twice at each of its steps until it has ended.
    /// Checks that what it says is what was done, and returns its last status.
    async fn kill_at_each_step(
        &mut self,
        client: &Interrupted,
        name: &str,
        spec: &Value,
        meanwhile: Meanwhile,
    ) -> Value {
        *client.record() = Record { steps: Some(BTreeMap::new()), ..Record::default() };
        let mut spec = spec.clone();
        spec["requester"] = requester();
        let named = self.request_action(name, spec).await;
        let uid = self.object(&named).await["metadata"]["uid"].clone();
        let uid = uid.as_str().expect("it was created").to_owned();
        let what = format!("Action {name} ends and is released");
        let mut is_done = meanwhile == Meanwhile::Nothing;
        loop {
            let action = || async { self.object(&named).await };
            tokio::select! {
                () = client.killed.notified() => {}
                _ = until(&what, action, is_over) => {
                    if !client.record().is_ending {
                        break;
                    }
                    // The last step is done, and the controller does not learn of it.
                    client.killed.notified().await;
                }
            }
            self.kill().await;
            if !is_done {
                is_done = self.interfere(&named, meanwhile).await;
            }
            client.record().is_ending = false;
            self.control_with(client.client());
        }
        assert!(is_done, "{name}: no change was written while no controller ran");
        let status = client.record().status.clone();
        let done = client.record().done.clone();
        check_truth(&status, &uid, &done);
        status
    }

    /// Does something to an Action whose first change is written; returns whether it is.
    async fn interfere(&self, named: &Named, meanwhile: Meanwhile) -> bool {
        let status = self.object(named).await["status"].clone();
        if status["plan"][0]["state"] != "Written" {
            return false;
        }
        let action = format!("olm.io/v1 Action {}/{}", named.namespace, named.name);
        let operator = status["plan"][0]["operator"].as_str().unwrap_or_default();
        match meanwhile {
            Meanwhile::Nothing => {}
            Meanwhile::CancelAction => {
                self.change(&action, json!({ "spec": { "cancelled": true } })).await;
            }
            Meanwhile::DeleteAction => self.delete(&action).await,
            Meanwhile::DeleteOperator => {
                self.delete(&format!("olm.io/v1 Operator {operator}")).await;
            }
        }
        true
    }
}

/// Returns whether nothing remains to be done for an Action: it has ended and has no finalizer, or
/// is gone.
fn is_over(action: &Value) -> bool {
    let has_ended = action["status"]["completionTime"].is_string();
    action.is_null() || (has_ended && action["metadata"]["finalizers"].is_null())
}

/// Checks that a status says of each change what was done, that nothing was done twice, and nothing
/// that the plan does not have.
fn check_truth(status: &Value, uid: &str, done: &BTreeMap<String, usize>) {
    let plan = status["plan"].as_array().expect("it has a plan");
    let mut planned = 0;
    for (at, change) in plan.iter().enumerate() {
        let text = |field: &str| change[field].as_str().unwrap_or_default();
        let key = match text("operation") {
            "Create" => format!("create {} for {uid}", text("operator")),
            "Delete" => format!("delete {}", text("uid")),
            "Await" => continue,
            _ => format!("update {uid}/{at}"),
        };
        let expected = match text("state") {
            "Written" | "Completed" => 1,
            "Failed" if change["unwritten"] != true => 1,
            "Planned" | "Failed" => 0,
            // Nothing is being written any more.
            _ => usize::MAX,
        };
        let count = done.get(&key).copied().unwrap_or_default();
        assert_eq!(count, expected, "{key}: {status:#}\n{done:#?}");
        planned += expected;
    }
    assert_eq!(done.values().sum::<usize>(), planned, "{status:#}\n{done:#?}");
    let is_complete = plan.iter().all(|it| it["state"] == "Completed");
    assert_eq!(status["state"] == "Succeeded", is_complete, "{status:#}");
}

/// Returns the states of the changes of a plan.
fn states(status: &Value) -> Vec<&str> {
    let plan = status["plan"].as_array().into_iter().flatten();
    plan.filter_map(|it| it["state"].as_str()).collect()
}

/// A package that requires another one, which requires a third one.
const CHAIN: [(&str, &str); 3] = [
    ("cluster-user/foo-operator", "1.2.5"),
    ("cluster-user/bar-operator", "1.2.5"),
    ("cluster-user/baz-operator", "1.2.2"),
];

fn install_chain() -> Value {
    json!({
        "actionClass": "operator-install", "package": "foo-operator", "installDependencies": true,
    })
}

#[test]
fn an_installation_and_a_deletion_that_are_killed_at_each_step_are_done_once() {
    on_any_cluster(|kind| async move {
        let (mut add_ons, client) = start(kind, &CHAIN).await;
        let delete = json!({
            "actionClass": "operator-delete", "package": "foo-operator",
            "parameters": { "cascade": true },
        });
        for (name, spec) in [("install", &install_chain()), ("delete", &delete)] {
            let status = add_ons.kill_at_each_step(&client, name, spec, Meanwhile::Nothing).await;
            assert_eq!(states(&status), ["Completed"; 3], "{status:#}");
        }
        add_ons.absent("olm.io/v1 Operator baz-operator").await;
        add_ons.stop().await;
    });
}

#[test]
fn an_update_that_is_killed_at_each_step_is_written_once() {
    on_any_cluster(|kind| async move {
        let (mut add_ons, client) = start(kind, &[("fiz", "2.9.2"), ("fiz", "2.9.6")]).await;
        add_ons.request("fiz", json!({ "version": "2.9.2" })).await;
        add_ons.expect("fiz", &[("Installed", "True"), ("Progressing", "False")]).await;
        let update =
            json!({ "actionClass": "operator-update", "package": "fiz", "version": "2.9.6" });
        let status =
            add_ons.kill_at_each_step(&client, "update", &update, Meanwhile::Nothing).await;
        assert_eq!(states(&status), ["Completed"], "{status:#}");
        let version = ("version", "2.9.6 (@v2.9.6)");
        add_ons.expect("fiz", &[version, ("Progressing", "False AsExpected")]).await;
        add_ons.stop().await;
    });
}

#[test]
fn an_update_of_the_release_that_is_killed_at_each_step_is_requested_once() {
    on_any_cluster(|kind| async move {
        let mut add_ons = AddOns::without_catalog(kind, "[]").await;
        add_ons.actions = Some(ActionSettings::default());
        add_ons.install_release().await;
        let available = |status: &Value| status["availableUpdates"][0]["version"] == "1.1.0";
        add_ons.harness.cluster_version_until(available).await;
        let version = "config.openshift.io/v1 ClusterVersion version";
        add_ons.change(version, json!({ "spec": { "overrides": null } })).await;
        let is_upgradeable = |status: &Value| {
            let mut conditions = status["conditions"].as_array().into_iter().flatten();
            conditions.all(|it| it["type"] != "Upgradeable" || it["status"] == "True")
        };
        add_ons.harness.cluster_version_until(is_upgradeable).await;
        let client = Interrupted::new(&add_ons.harness.client);
        add_ons.control_with(client.client());
        let update = json!({ "actionClass": "release-update", "version": "1.1.0" });
        let status =
            add_ons.kill_at_each_step(&client, "release", &update, Meanwhile::Nothing).await;
        assert_eq!(states(&status), ["Completed"], "{status:#}");
        add_ons.harness.completed("1.1.0").await;
        add_ons.stop().await;
        add_ons.harness.stop().await;
    });
}

/// Plays an installation of three Operators during which another client does something; returns the
/// cluster and the last status.
async fn play(kind: ClusterKind, meanwhile: Meanwhile) -> (AddOns, Value) {
    let (mut add_ons, client) = start(kind, &CHAIN).await;
    let status = add_ons.kill_at_each_step(&client, "install", &install_chain(), meanwhile).await;
    (add_ons, status)
}

#[test]
fn an_action_that_is_stopped_between_two_controllers_ends_as_it_was_left() {
    on_any_cluster(|kind| async move {
        let cases = [
            (Meanwhile::CancelAction, "ActionCancelled"),
            (Meanwhile::DeleteAction, "ActionDeleted"),
        ];
        for (meanwhile, reason) in cases {
            let (mut add_ons, status) = play(kind, meanwhile).await;
            assert_eq!(status["state"], "Cancelled", "{meanwhile:?}: {status:#}");
            assert_eq!(status["conditions"][0]["reason"], reason, "{meanwhile:?}: {status:#}");
            assert_eq!(states(&status)[1..], ["Planned"; 2], "{meanwhile:?}: {status:#}");
            add_ons.present("olm.io/v1 Operator baz-operator").await;
            for left in ["bar-operator", "foo-operator"] {
                add_ons.absent(&format!("olm.io/v1 Operator {left}")).await;
            }
            let named = Named::parse("olm.io/v1 Action default/install");
            let is_gone = add_ons.object(&named).await.is_null();
            assert_eq!(is_gone, meanwhile == Meanwhile::DeleteAction);
            add_ons.stop().await;
        }
    });
}

#[test]
fn an_action_whose_operator_is_deleted_between_two_controllers_fails() {
    on_any_cluster(|kind| async move {
        let (mut add_ons, status) = play(kind, Meanwhile::DeleteOperator).await;
        assert_eq!(status["state"], "Failed", "{status:#}");
        assert_eq!(states(&status), ["Failed", "Planned", "Planned"], "{status:#}");
        for name in ["baz-operator", "bar-operator", "foo-operator"] {
            add_ons.absent(&format!("olm.io/v1 Operator {name}")).await;
        }
        add_ons.stop().await;
    });
}
