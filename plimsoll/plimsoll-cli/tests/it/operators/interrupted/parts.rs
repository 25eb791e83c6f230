//! Plans and answers that are too large for the status of an Action: they are in ActionParts, and a
//! controller that follows another one goes on with them.

use std::collections::BTreeMap;

use kube::api::ListParams;
use plimsoll_content::hash::text_sha256;
use plimsoll_simulation::cluster_state;
use serde_json::{Value, json};

use super::super::commands::RunCommand;
use super::{AddOns, Fixture, Interrupted, LastWrite, Named, Record, requester, start};
use crate::harness::{on_any_cluster, until};

/// How many packages are installed at once: the plan is larger than 256 KiB.
const MEMBERS: usize = 480;
/// The write at which the controller is killed: some Operators are created by then.
const LAST_WRITE: usize = 12;

impl AddOns {
    /// Publishes the large package, and waits until its catalog is read.
    async fn publish_fleet(&self, count: usize) {
        Fixture::publish_fleet(self.catalog.path(), count);
        let catalog = Named::parse("olm.io/v1 Catalog fixture");
        let bundles = || async { self.object(&catalog).await["status"]["bundles"].clone() };
        // The fixture has one bundle itself.
        until("the catalog is read", bundles, |it| *it == count + 2).await;
    }

    /// Returns the specs of the parts of an Action, in their order.
    async fn parts(&self, uid: &str) -> Vec<Value> {
        let api = cluster_state::api(&self.harness.client, plimsoll_api::ACTION_PART);
        let of_action = ListParams::default().labels(&format!("olm.io/action-uid={uid}"));
        let listed = api.list(&of_action).await.expect("they may be listed").items;
        let mut parts: Vec<Value> =
            listed.into_iter().map(|mut it| it.data["spec"].take()).collect();
        parts.sort_by_key(|it| it["index"].as_u64());
        parts
    }

    /// Returns the text that the parts of an Action have, which is the one that its status refers
    /// to.
    async fn text_of_parts(&self, action: &Value) -> String {
        let uid = action["metadata"]["uid"].as_str().expect("it is there");
        let parts = self.parts(uid).await;
        let reference = &action["status"]["parts"];
        assert_eq!(reference["count"], parts.len(), "{reference:#}");
        let text: String = parts.iter().filter_map(|it| it["data"].as_str()).collect();
        assert_eq!(reference["bytes"], text.len(), "{reference:#}");
        assert_eq!(reference["digest"], text_sha256(&text), "{reference:#}");
        text
    }
}

#[test]
fn an_answer_that_is_too_large_for_a_status_is_what_the_command_prints() {
    on_any_cluster(|kind| async move {
        let (mut add_ons, _) = start(kind, &[]).await;
        add_ons.publish_fleet(MEMBERS).await;
        let spec = json!({
            "actionClass": "resolution", "package": "fleet", "requester": requester(),
            "parameters": { "output": "plan-json" },
        });
        let named = add_ons.request_action("answer", spec).await;
        let action = || async { add_ons.object(&named).await };
        let has_ended = |it: &Value| it["status"]["completionTime"].is_string();
        let action = until("it is answered", action, has_ended).await;
        let status = &action["status"];
        assert_eq!(status["state"], "Succeeded", "{:#}", status["conditions"]);
        let text = add_ons.text_of_parts(&action).await;
        assert!(text.len() > 64 * 1024, "{}", text.len());
        assert_eq!(status["resultDigest"], status["parts"]["digest"]);
        assert_eq!(status["parts"]["content"], "Result");
        let line = "resolve fleet --catalog fixture=CATALOG --dry-run -o plan-json";
        RunCommand::printing(line, text).play(&add_ons).await;
        add_ons.stop().await;
    });
}

#[test]
fn a_plan_that_is_too_large_for_a_status_is_executed_by_the_next_controller() {
    on_any_cluster(|kind| async move {
        let (mut add_ons, client) = start(kind, &[]).await;
        add_ons.publish_fleet(MEMBERS).await;
        let kill = Some((LAST_WRITE, LastWrite::Applied));
        *client.record() = Record { kill, ..Record::default() };
        let spec = json!({
            "actionClass": "operator-install", "package": "fleet", "installDependencies": true,
            "requester": requester(),
        });
        let named = add_ons.request_action("fleet", spec).await;
        client.killed.notified().await;
        add_ons.kill().await;
        let action = add_ons.object(&named).await;
        let text = add_ons.text_of_parts(&action).await;
        let planned: Vec<Value> = serde_json::from_str(&text).expect("it is a plan");
        assert_eq!(planned.len(), MEMBERS + 1);
        // The status has what was begun.
        let begun = length_of_plan(&action);
        assert!((1..=LAST_WRITE).contains(&begun), "{begun}");
        add_ons.control_with(client.client());
        let continued = || async { add_ons.object(&named).await };
        until("the next one goes on", continued, |it| length_of_plan(it) > begun + 3).await;
        let cancelled = json!({ "spec": { "cancelled": true } });
        add_ons.change("olm.io/v1 Action default/fleet", cancelled).await;
        let ended = until("it ends", continued, |it| {
            it["status"]["completionTime"].is_string() && it["metadata"]["finalizers"].is_null()
        })
        .await;
        check_progress(&ended, &client);
        assert_eq!(add_ons.text_of_parts(&ended).await, text, "the plan is another one");
        add_ons.delete("olm.io/v1 Action default/fleet").await;
        add_ons.absent("olm.io/v1 Action default/fleet").await;
        let uid = ended["metadata"]["uid"].as_str().expect("it was there");
        until("its parts go with it", || add_ons.parts(uid), Vec::is_empty).await;
        add_ons.stop().await;
    });
}

/// Returns how many changes the status of an Action has.
fn length_of_plan(action: &Value) -> usize {
    action["status"]["plan"].as_array().map_or(0, Vec::len)
}

/// Checks that an Action that was cancelled says what was done, once each.
fn check_progress(action: &Value, client: &Interrupted) {
    let status = &action["status"];
    let uid = action["metadata"]["uid"].as_str().unwrap_or_default();
    assert_eq!(status["state"], "Cancelled", "{status:#}");
    let plan = status["plan"].as_array().into_iter().flatten();
    let made = plan.filter(|it| it["state"] == "Written" || it["state"] == "Completed");
    let made: BTreeMap<String, usize> = made
        .map(|it| (format!("create {} for {uid}", it["operator"].as_str().unwrap_or_default()), 1))
        .collect();
    assert_eq!(client.record().done, made, "{status:#}");
}
