//! Actions that wait: at rest they cost no request, and what happens wakes those alone that wait
//! for it.

use std::collections::BTreeSet;

use futures::future::join_all;
use k8s_testkit::{ClusterKind, RequestLog};
use plimsoll_controller::actions::ActionSettings;
use serde_json::{Value, json};

use super::interrupted::requester;
use super::{AddOns, Fixture, Named};
use crate::harness::{on_any_cluster, until};

/// How many Actions wait for each thing.
const COUNT: usize = 100;

/// What Actions wait for: the beginning of their names, their spec, and the reason that they
/// report.
fn groups() -> [(&'static str, Value, &'static str); 3] {
    let carol = json!({ "username": "carol" });
    let install = |package: &str, requester: Value| {
        let class = "operator-install";
        json!({ "actionClass": class, "package": package, "requester": requester })
    };
    let unserved = json!({ "actionClass": "nowhere", "requester": requester() });
    [
        ("approval", install("fiz", carol), "ApprovalRequired"),
        ("class", unserved, "ActionClassNotFound"),
        ("behind", install("bar", requester()), "WaitingForAction"),
    ]
}

impl AddOns {
    /// Requests Actions of one kind, all at once.
    async fn request_many(&self, group: &str, spec: &Value) {
        let names = (0..COUNT).map(|index| format!("{group}-{index}"));
        let requests = names.map(|name| async move {
            self.request_action(&name, spec.clone()).await;
        });
        join_all(requests).await;
    }

    /// Waits until the catalog is read with so many bundles.
    async fn until_bundles(&self, count: usize) {
        let catalog = Named::parse("olm.io/v1 Catalog fixture");
        let bundles = || async { self.object(&catalog).await["status"]["bundles"].clone() };
        until("the catalog is read", bundles, |it| *it == count).await;
    }

    /// Waits until so many Actions whose names begin so report something.
    async fn until_many(&self, group: &str, count: usize, is_so: impl Fn(&Value) -> bool) {
        let actions = Named::new("olm.io/v1", "Action", "default", "").api(&self.harness.client);
        let reporting = || async {
            let listed = actions.list(&Default::default()).await;
            let listed = listed.map(|it| it.items).unwrap_or_default().into_iter();
            let of_group = listed
                .filter(|it| it.metadata.name.as_deref().is_some_and(|it| it.starts_with(group)));
            of_group.filter(|it| is_so(&it.data["status"])).count()
        };
        until(&format!("{count} Actions {group} report it"), reporting, |it| *it == count).await;
    }
}

/// Returns the Actions that requests are about, and other requests on behalf of Actions as they
/// are.
fn concerned(log: &RequestLog) -> BTreeSet<String> {
    let requests = log.requests().into_iter().filter(|it| !it.contains("watch=true"));
    let concerned = requests.filter_map(|it| {
        let path = it.split('?').next().unwrap_or_default();
        match path.split_once("/actions/") {
            Some((_, name)) => Some(name.split('/').next().unwrap_or_default().to_owned()),
            None => path.contains("subjectaccessreviews").then(|| path.to_owned()),
        }
    });
    concerned.collect()
}

/// Starts a cluster where Operator bar never becomes available, and plans of carol are approved
/// first; returns the log of its controller.
async fn start(kind: ClusterKind) -> (AddOns, RequestLog) {
    let mut add_ons =
        AddOns::without_catalog(kind, "- {package: bar, fault: NeverAvailable}").await;
    add_ons.actions = Some(ActionSettings::default());
    let path = add_ons.catalog.path().to_owned();
    Fixture::publish(&path, "bar", "1.2.5");
    Fixture::publish(&path, "fiz", "2.9.2");
    let (client, log) = add_ons.harness.cluster.client_with_log();
    add_ons.control_with(client);
    add_ons.add_catalog("fixture", &path).await;
    add_ons.until_bundles(3).await;
    let rules = json!({
        "subjects": [{ "kind": "User", "name": "carol" }],
        "classes": ["operator-install"],
        "enforce": { "requiresApproval": true },
    });
    add_ons
        .apply(json!({
            "apiVersion": "olm.io/v1", "kind": "ActionPolicy",
            "metadata": { "name": "approved" }, "spec": rules,
        }))
        .await;
    (add_ons, log)
}

#[test]
fn actions_that_wait_cost_no_request_and_wake_for_what_they_wait_for() {
    on_any_cluster(|kind| async move {
        let (mut add_ons, log) = start(kind).await;
        let [approval, class, behind] = groups();
        let first = add_ons.request_action("first", behind.1.clone()).await;
        let written = |it: &Value| it["status"]["plan"][0]["state"] == "Written";
        let status = || async { add_ons.object(&first).await };
        until("the first one runs", status, written).await;
        for (group, spec, reason) in [&approval, &class, &behind] {
            add_ons.request_many(group, spec).await;
            let waits = |it: &Value| it["conditions"][0]["reason"] == *reason;
            add_ons.until_many(group, COUNT, waits).await;
        }

        // While nothing happens to them, their controller reads a catalog again and reports it.
        log.clear();
        Fixture::publish(add_ons.catalog.path(), "buz", "0.2.4");
        add_ons.until_bundles(4).await;
        // The one that runs may learn how far its Operator is.
        let mut found = concerned(&log);
        found.remove("first");
        assert!(found.is_empty(), "{:#?}", log.requests());

        // One that comes concerns no other.
        log.clear();
        add_ons.request_action("late", class.1.clone()).await;
        let is_reported = |it: &Value| it["conditions"][0]["reason"] == class.2;
        add_ons.until_many("late", 1, is_reported).await;
        let mut found = concerned(&log);
        found.remove("first");
        assert_eq!(found, BTreeSet::from(["late".to_owned()]));

        // The end of the one that runs wakes those behind it.
        log.clear();
        let cancelled = json!({ "spec": { "cancelled": true } });
        add_ons.change("olm.io/v1 Action default/first", cancelled).await;
        add_ons.until_many("behind", COUNT, |it| it["state"] == "Running").await;
        let found = concerned(&log);
        let others = [approval.0, class.0, "late"];
        let is_other = |it: &&String| others.iter().any(|other| it.starts_with(other));
        assert_eq!(found.iter().find(is_other), None);
        add_ons.stop().await;
    });
}
