//! Changes of the release, planned and followed by what the ClusterVersion reports.

use std::collections::BTreeMap;

use plimsoll_api::olm::action::{ActionSpec, ChangeOperation, ChangeState, PlannedChange};
use serde_json::{Value, json};

use super::ObservedRelease;
use crate::actions::attributes::NamedClass;
use crate::actions::check::effective;
use crate::actions::execution::observe;
use crate::actions::files::built_in_classes;
use crate::actions::release;

/// Returns a ClusterVersion at release 1.0.0 with two updates, one capability enabled and one known.
fn cluster_version(changed: &[(&str, Value)]) -> ObservedRelease {
    let mut object = json!({
        "metadata": { "uid": "u1", "generation": 2 },
        "spec": { "clusterID": "c" },
        "status": {
            "observedGeneration": 2,
            "desired": { "version": "1.0.0", "image": "a" },
            "versionHash": "",
            "history": [{
                "state": "Completed", "version": "1.0.0", "image": "a", "verified": false,
                "startedTime": "2026-01-01T00:00:00Z", "completionTime": "2026-01-01T00:00:00Z",
            }],
            "availableUpdates": [
                { "version": "1.9.0", "image": "b" }, { "version": "1.10.0", "image": "c" },
            ],
            "conditionalUpdates": [{
                "release": { "version": "1.11.0", "image": "d" }, "risks": [],
                "conditions": [{
                    "type": "Recommended", "status": "False", "reason": "Slow", "message": "it is slow",
                    "lastTransitionTime": "2026-01-01T00:00:00Z",
                }],
            }],
            "capabilities": {
                "enabledCapabilities": ["Build"], "knownCapabilities": ["Build", "Console"],
            },
            "conditions": [],
        },
    });
    for (pointer, value) in changed {
        let (parent, name) = pointer.rsplit_once('/').unwrap();
        object.pointer_mut(parent).unwrap()[name] = value.clone();
    }
    ObservedRelease::read(&object)
}

fn history(state: &str, version: &str) -> Value {
    json!([{
        "state": state, "version": version, "image": "b", "verified": false,
        "startedTime": "2026-01-02T00:00:00Z", "completionTime": null,
    }])
}

#[test]
fn the_release_is_planned_by_what_its_cluster_version_reports() {
    let check = |spec: Value, changed: &[(&str, Value)], expected: &str| {
        let spec: ActionSpec = serde_json::from_value(spec).unwrap();
        let classes = built_in_classes();
        let class = NamedClass::find(&classes, &spec.action_class).unwrap();
        let action = effective(&spec, class, None).unwrap();
        let there = cluster_version(changed);
        let release = Some(&there).filter(|_| spec.deadline.is_empty());
        let planned = match spec.action_class.as_str() {
            "release-update" => release::update(&action, release),
            _ => release::enable(&action, release),
        };
        let text = match planned {
            Ok(plan) => {
                let changes = plan.changes.iter().map(|it| {
                    let PlannedChange { operation, requested_before, requested, .. } = it;
                    format!("{operation:?} {} {requested_before}>{requested}", it.subject())
                });
                changes.chain(plan.explanation.clone()).collect::<Vec<_>>().join("; ")
            }
            Err(failure) => format!("{}: {}", failure.reason, failure.message),
        };
        assert_eq!(text, expected);
    };
    let update = |version: &str| json!({ "actionClass": "release-update", "version": version });
    // The newest recommended one, by semantic versions.
    let newest = "UpdateRelease release >1.10.0; the release is updated from 1.0.0 to 1.10.0";
    check(json!({ "actionClass": "release-update" }), &[], newest);
    let older = "UpdateRelease release 1.0.0>1.9.0; the release is updated from 1.0.0 to 1.9.0";
    let requested = ("/spec/desiredUpdate", json!({ "version": "1.0.0" }));
    check(update("1.9.0"), &[requested], older);
    check(update("1.0.0"), &[], "the cluster is at release 1.0.0");
    let none = ("/status/availableUpdates", Value::Null);
    let nothing = "no update of release 1.0.0 is recommended";
    check(json!({ "actionClass": "release-update" }), std::slice::from_ref(&none), nothing);
    let risky = "VersionNotFound: release 1.11.0 is not recommended for this cluster: it is slow";
    check(update("1.11.0"), &[], risky);
    let unknown = "VersionNotFound: release 2.0.0 is not among the available updates; these are: \
                   1.9.0 and 1.10.0";
    check(update("2.0.0"), &[], unknown);
    let unknown = "VersionNotFound: release 2.0.0 is not among the available updates; none is";
    check(update("2.0.0"), &[none], unknown);
    let busy = ("/status/history", history("Partial", "1.9.0"));
    let other = "UpdateInProgress: the cluster is being updated to 1.9.0: wait until it is";
    check(update("1.10.0"), std::slice::from_ref(&busy), other);
    let same = "Await release >1.9.0; the update to 1.9.0 is in progress";
    check(update("1.9.0"), &[busy], same);
    let absent =
        "InvalidAction: this cluster has no ClusterVersion: class release-update is about that";
    check(json!({ "actionClass": "release-update", "deadline": "1h" }), &[], absent);
    let channel = || ("/spec/channel", json!(4));
    let unreadable = "InvalidAction: the ClusterVersion cannot be read: spec.channel: invalid type: \
                      integer `4`, expected a string; correct that first";
    check(update("1.9.0"), &[channel()], unreadable);

    let enable = |names: &[&str]| json!({ "actionClass": "capability-enable", "parameters": { "capabilities": names } });
    let one = "EnableCapability Console >; capability Build is enabled";
    check(enable(&["Build", "Console"]), &[], one);
    let requested = json!({ "additionalEnabledCapabilities": ["Console"] });
    check(enable(&["Console"]), &[("/spec/capabilities", requested)], "Await Console >");
    let unknown = "InvalidAction: this release has no capability Storage; it has Build and Console";
    check(enable(&["Console", "Storage"]), &[], unknown);
    let none = ("/status/capabilities", json!({}));
    let unknown = "InvalidAction: this release has no capability Storage; it has none";
    check(enable(&["Storage"]), &[none], unknown);
}

#[test]
fn a_plan_of_the_release_is_followed_by_what_its_cluster_version_reports() {
    use ChangeState::{Completed, Failed, Written};
    let check = |capability: &str, changed: &[(&str, Value)], expected: (ChangeState, &str)| {
        let mut plan = vec![PlannedChange {
            operation: ChangeOperation::UpdateRelease,
            uid: "u1".into(),
            requested: "1.9.0".into(),
            version: "1.9.0".into(),
            capability: capability.into(),
            state: Written,
            ..PlannedChange::default()
        }];
        observe(&mut plan, &BTreeMap::new(), Some(&cluster_version(changed)));
        assert_eq!((plan[0].state, plan[0].reason.as_str()), expected, "{}", plan[0].message);
    };
    let condition = |type_: &str, status: &str, reason: &str| {
        let conditions = json!([{
            "type": type_, "status": status, "reason": reason, "message": "",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        }]);
        ("/status/conditions", conditions)
    };
    let requested = || ("/spec/desiredUpdate", json!({ "version": "1.9.0" }));
    // A watch shows the request later than the response to it.
    check("", &[], (Written, ""));
    let progressing = condition("Progressing", "True", "ClusterOperatorUpdating");
    let busy = ("/status/history", history("Partial", "1.9.0"));
    check("", &[requested(), busy, progressing], (Written, "ClusterOperatorUpdating"));
    let done = ("/status/history", history("Completed", "1.9.0"));
    check("", &[requested(), done], (Completed, "UpdateCompleted"));
    let refused = || condition("ReleaseAccepted", "False", "RetrievePayload");
    check("", &[requested(), refused()], (Failed, "RetrievePayload"));
    // The condition is about an earlier request.
    let earlier = ("/status/observedGeneration", json!(1));
    check("", &[requested(), refused(), earlier], (Written, ""));
    let other = ("/spec/desiredUpdate", json!({ "version": "1.10.0" }));
    check("", &[other], (Failed, "PlanChanged"));
    check("", &[("/metadata/uid", json!("u2"))], (Failed, "Deleting"));

    check("Console", &[], (Written, ""));
    let enabled = || ("/status/capabilities/enabledCapabilities", json!(["Build", "Console"]));
    check("Console", &[enabled()], (Completed, "CapabilityEnabled"));
    let progressing = condition("Progressing", "True", "WorkloadProgressing");
    check("Console", &[enabled(), progressing], (Written, "WorkloadProgressing"));
}
