//! Which ended Actions are kept, and for how long. The test is the controller of their class: it
//! says when each of them ends.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;

use jiff::{SignedDuration, Timestamp};
use k8s_testkit::ClusterKind;
use kube::api::{ListParams, Patch, PatchParams};
use plimsoll_api::olm::action::OWNER_LABEL;
use plimsoll_controller::actions::ActionSettings;
use serde_json::{Value, json};

use super::interrupted::requester;
use super::{AddOns, Named};
use crate::harness::{on_any_cluster, until};

/// Seconds of an hour.
const HOUR: i64 = 60 * 60;

/// Returns the spec of an Action of the class.
fn spec() -> Value {
    json!({ "actionClass": "logbook", "requester": requester() })
}

impl AddOns {
    /// Creates the class that the test serves, or changes it.
    async fn apply_class(&self, fields: Value) {
        let mut spec = fields;
        spec["controller"] = "example.com/logbook".into();
        let metadata = json!({ "name": "logbook" });
        let kind = "ActionClass";
        self.apply(json!({
            "apiVersion": "olm.io/v1", "kind": kind, "metadata": metadata, "spec": spec,
        }))
        .await;
    }

    /// Reports the end of an Action, so many seconds from now.
    async fn end(&self, name: &str, state: &str, after: i64) {
        let time = Timestamp::now() + SignedDuration::from_secs(after);
        let time = plimsoll_api::whole_seconds(time).to_string();
        let succeeded = if state == "Succeeded" { "True" } else { "False" };
        let condition = json!({
            "type": "ActionSucceeded", "status": succeeded,
            "reason": "Ended", "message": "it ended", "lastTransitionTime": time,
        });
        let status = json!({ "state": state, "completionTime": time, "conditions": [condition] });
        let named = Named::parse(&format!("olm.io/v1 Action default/{name}"));
        let patch = Patch::Merge(json!({ "status": status }));
        let actions = named.api(&self.harness.client);
        let patched = actions.patch_status(name, &PatchParams::default(), &patch).await;
        patched.expect("its status may be written");
    }

    /// Returns the names of the Actions that are there, or of those that an object made.
    async fn action_names(&self, owner: Option<&str>) -> BTreeSet<String> {
        let parameters = owner.map_or_else(ListParams::default, |owner| {
            ListParams::default().labels(&format!("{OWNER_LABEL}={owner}"))
        });
        let actions = Named::new("olm.io/v1", "Action", "default", "").api(&self.harness.client);
        let listed = actions.list(&parameters).await.map(|it| it.items).unwrap_or_default();
        listed.into_iter().filter_map(|it| it.metadata.name).collect()
    }

    /// Waits until these Actions are there and no others.
    async fn until_kept(&self, names: &[&str]) {
        let expected: BTreeSet<String> = names.iter().map(|it| (*it).to_owned()).collect();
        let found = || self.action_names(None);
        until(&format!("{names:?} are kept"), found, |it| *it == expected).await;
    }

    /// Sets the clock of the controller forward, and has it look at the clock: an Action is
    /// requested.
    async fn later(&self, seconds: i64, request: &str) {
        self.clock.0.fetch_add(seconds, Ordering::SeqCst);
        self.request_action(request, spec()).await;
    }
}

async fn start(kind: ClusterKind) -> AddOns {
    let mut add_ons = AddOns::without_catalog(kind, "[]").await;
    add_ons.actions = Some(ActionSettings::default());
    add_ons
}

#[test]
fn those_that_ended_first_are_deleted_first_and_attempts_are_left_to_their_owner() {
    on_any_cluster(|kind| async move {
        let mut add_ons = start(kind).await;
        let (client, log) = add_ons.harness.cluster.client_with_log();
        add_ons.control_with(client);
        add_ons.apply_class(json!({ "historyLimit": 4 })).await;
        add_ons
            .apply(json!({
                "apiVersion": "olm.io/v1",
                "kind": "RetryAction",
                "metadata": { "name": "again", "namespace": "default" },
                "spec": {
                    "backoffLimit": 0,
                    "template": { "actionClass": "logbook" },
                    "requester": requester(),
                },
            }))
            .await;
        let made = || add_ons.action_names(Some("again"));
        let made = until("an attempt is made", made, |it| !it.is_empty()).await;
        let attempt = made.first().expect("there is one").clone();
        add_ons.end(&attempt, "Failed", -100).await;
        let again = Named::parse("olm.io/v1 RetryAction default/again");
        let status = || async { add_ons.object(&again).await["status"].clone() };
        until("the attempt has failed", status, |it| it["failed"] == 1).await;

        let names = ["a", "b", "c", "d"];
        for name in names {
            add_ons.request_action(name, spec()).await;
        }
        // They end in another order than they were created.
        for (after, name) in (-50..).zip(["d", "a", "c", "b"]) {
            add_ons.end(name, "Succeeded", after).await;
        }
        add_ons.until_kept(&["a", "b", "c", "d", &attempt]).await;
        add_ons.apply_class(json!({ "historyLimit": 2 })).await;
        add_ons.until_kept(&["b", "c", &attempt]).await;
        add_ons.request_action("e", spec()).await;
        add_ons.end("e", "Cancelled", 0).await;
        add_ons.until_kept(&["b", "e", &attempt]).await;
        let requests = log.requests();
        let deleted = requests.iter().filter_map(|it| it.strip_prefix("DELETE "));
        let deleted = deleted.filter_map(|it| it.split_once("/namespaces/default/actions/"));
        let deleted: Vec<&str> =
            deleted.map(|(_, it)| it.split('?').next().unwrap_or_default()).collect();
        assert_eq!(deleted, ["d", "a", "c"]);
        add_ons.stop().await;
    });
}

#[test]
fn an_action_is_kept_as_long_as_it_says_or_else_as_its_class_says() {
    on_any_cluster(|kind| async move {
        let mut add_ons = start(kind).await;
        add_ons.control();
        add_ons.apply_class(json!({ "ttlAfterFinished": "2h" })).await;
        for (name, ttl) in [("short", "1h"), ("default", ""), ("long", "5h")] {
            let mut spec = spec();
            if !ttl.is_empty() {
                spec["ttlAfterFinished"] = ttl.into();
            }
            add_ons.request_action(name, spec).await;
            add_ons.end(name, "Succeeded", 0).await;
        }
        add_ons.until_kept(&["default", "long", "short"]).await;
        add_ons.later(HOUR + 60, "x1").await;
        add_ons.until_kept(&["default", "long", "x1"]).await;
        add_ons.later(HOUR, "x2").await;
        add_ons.until_kept(&["long", "x1", "x2"]).await;
        // What a class says later holds for those that have ended before.
        add_ons.request_action("last", spec()).await;
        add_ons.end("last", "Failed", HOUR).await;
        add_ons.until_kept(&["last", "long", "x1", "x2"]).await;
        add_ons.apply_class(json!({ "ttlAfterFinished": "1m" })).await;
        add_ons.until_kept(&["long", "x1", "x2"]).await;
        add_ons.later(3 * HOUR, "x3").await;
        add_ons.until_kept(&["x1", "x2", "x3"]).await;
        add_ons.stop().await;
    });
}
