//! Each invariant of Actions can fail: recordings of an executor that is broken on purpose, each
//! made from a good one by a small change.

use std::time::Duration;

use plimsoll_api::olm::action::{CREATED_BY_ANNOTATION, OWNER_LABEL, TRIGGERED_BY_ANNOTATION};
use serde_json::{Value, json};

use super::events::EVENT_ACTIONS;
use super::history::reported;
use super::invariants::violations;
use super::requests::{APPROVERS, Request, TENANT};
use super::schedule::WINDOW_MINUTES;
use super::{ACTIONS, ActionsResult, CLEAN, DecisionOnPlan, play};
use crate::broken::scenario;
use crate::record::{INSTALLED, Write};

/// The requests: lantern with its dependency ledger, then ledger by its name, both deleted again,
/// and ledger for a tenant, with an approval.
fn good() -> ActionsResult {
    let action = |class, package, by_policy| Request::Action { class, package, by_policy };
    let requests = [
        (5, action("operator-install", "lantern", false)),
        (6, action("operator-install", "ledger", false)),
        (60, action("operator-delete", "lantern", false)),
        (120, action("operator-delete", "ledger", false)),
        (180, action("operator-install", "ledger", true)),
        // It has no policy, and fails.
        (185, action("operator-install", "lantern", true)),
        // The last one is beyond the limit.
        (200, Request::Touch),
        (210, Request::Touch),
        (220, Request::Touch),
        // It begins the circle, which installs lantern.
        (260, action("operator-update", "tide", false)),
    ];
    play(&scenario(Vec::new()), &requests)
}

fn is_creation_of(write: &Write, name: &str) -> bool {
    write.method == "POST"
        && write.path == INSTALLED
        && write.status == 201
        && write.sent["metadata"]["name"] == name
}

fn is_deletion(write: &Write) -> bool {
    write.method == "DELETE" && write.path.starts_with(INSTALLED)
}

/// Returns whether a write is an update of an Operator by an Action.
fn is_update(write: &Write) -> bool {
    let is_mark = |it: &Value| it["path"] == "/metadata/annotations/olm.io~1changed-by-action";
    write.path.starts_with(INSTALLED)
        && write.method == "PATCH"
        && write.sent.as_array().into_iter().flatten().any(is_mark)
}

/// Returns whether a write makes an Action of an owner.
fn is_made(write: &Write, owner: &str) -> bool {
    write.path == ACTIONS
        && write.status == 201
        && write.sent["metadata"]["labels"][OWNER_LABEL] == owner
}

/// Returns whether a write makes an Action of the CronAction.
fn is_scheduled(write: &Write) -> bool {
    is_made(write, "clean")
}

/// Returns the first status of an EventAction that is selected.
fn status_of<'a>(
    result: &'a mut ActionsResult,
    name: &str,
    which: impl Fn(&Value) -> bool,
) -> &'a mut Value {
    let path = format!("{EVENT_ACTIONS}/{name}/status");
    let at = place(result, |it| it.path == path && which(&it.reported["status"]));
    &mut result.writes[at].reported["status"]
}

/// Returns the place of the first write that is selected.
fn place(result: &ActionsResult, which: impl Fn(&Write) -> bool) -> usize {
    result.writes.iter().position(which).expect("it is written")
}

/// Returns the place of the last one.
fn last(result: &ActionsResult, which: impl Fn(&Write) -> bool) -> usize {
    result.writes.iter().rposition(which).expect("it is written")
}

/// Returns whether a write is a report of an Action in a state.
fn is_report(write: &Write, name: &str, state: &str) -> bool {
    reported(write)
        .is_some_and(|it| it["metadata"]["name"] == name && it["status"]["state"] == state)
}

/// Adds a write again, at the end.
fn repeat(result: &mut ActionsResult, at: usize) {
    let again = result.writes[at].clone();
    result.writes.push(again);
}

/// Changes an Action in all its reports, and at the end.
fn edit(result: &mut ActionsResult, name: &str, change: impl Fn(&mut Value)) {
    for write in &mut result.writes {
        if reported(write).is_some_and(|it| it["metadata"]["name"] == name) {
            change(&mut write.reported);
        }
    }
    change(result.actions.get_mut(name).expect("it is there"));
}

/// Changes an Action at its end, in its last report too.
fn edit_end(result: &mut ActionsResult, name: &str, change: impl Fn(&mut Value)) {
    let at = last(result, |it| reported(it).is_some_and(|it| it["metadata"]["name"] == name));
    change(&mut result.writes[at].reported);
    change(result.actions.get_mut(name).expect("it is there"));
}

/// Returns the name of the attempt that created tide.
fn attempt(result: &ActionsResult) -> String {
    let at = place(result, |it| is_creation_of(it, "tide"));
    let uid = &result.writes[at].sent["metadata"]["annotations"][CREATED_BY_ANNOTATION];
    let found = result.actions.iter().find(|(_, it)| it["metadata"]["uid"] == *uid);
    found.expect("it is there").0.clone()
}

/// How a recording is broken.
type Mutation = fn(&mut ActionsResult);

/// Writes of changes that must not have been.
const WRITES: &[(&str, Mutation)] = &[
    ("is written twice", |it| {
        let at = place(it, |it| is_creation_of(it, "lantern"));
        it.writes.insert(at + 1, it.writes[at].clone());
    }),
    ("is written twice", |it| {
        let at = place(it, is_update);
        let again = Write { is_late: true, ..it.writes[at].clone() };
        it.writes.insert(at + 1, again);
    }),
    ("is written twice", |it| {
        let at = place(it, is_deletion);
        it.writes.insert(at + 1, it.writes[at].clone());
    }),
    ("has ended and goes on", |it| {
        let at = place(it, |it| is_creation_of(it, "lantern"));
        let late = it.writes.remove(at);
        let end = place(it, |it| is_report(it, "action-0", "Succeeded"));
        it.writes.insert(end + 1, late);
    }),
    ("did not record", |it| {
        let at = place(it, |it| is_creation_of(it, "lantern"));
        let early = it.writes.remove(at);
        let begin = place(it, |it| is_report(it, "action-0", "Running"));
        it.writes.insert(begin + 1, early);
    }),
    ("which no Action reports", |it| {
        let at = place(it, |it| is_creation_of(it, "lantern"));
        it.writes[at].sent["metadata"]["annotations"][CREATED_BY_ANNOTATION] = json!("no Action");
    }),
    ("was deleted, which no Action requested", |it| {
        let at = place(it, is_deletion);
        it.writes[at].sent["preconditions"]["uid"] = json!("another");
    }),
    ("which no Action requested", |it| {
        let at = place(it, is_update);
        it.writes[at].sent = json!([{ "op": "add", "path": "/spec/version", "value": "9.9.9" }]);
    }),
    ("all had ended at", |it| {
        let ended = it.ended.expect("all have ended");
        let at = last(it, |it| reported(it).is_some());
        repeat(it, at);
        it.writes.last_mut().expect("there is one").at = ended + Duration::from_secs(30);
    }),
];

/// Executions that no policy allowed.
const PERMISSIONS: &[(&str, Mutation)] = &[
    ("was executed with 0 approvals", |it| it.decided.clear()),
    ("was executed with 0 approvals", |it| {
        it.decided.iter_mut().for_each(|it| "another".clone_into(&mut it.plan));
    }),
    ("was executed with 0 approvals", |it| {
        it.decided.iter_mut().for_each(|it| TENANT.clone_into(&mut it.by));
    }),
    ("was executed with 1 approvals", |it| {
        it.decided.iter_mut().for_each(|it| APPROVERS[0].clone_into(&mut it.by));
    }),
    ("although it was rejected", |it| {
        let at = place(it, |it| is_creation_of(it, "ledger") && it.at > Duration::from_secs(180));
        let late = it.decided.iter().map(|it| it.at).max().expect("it was approved");
        it.writes[at].at = late + Duration::from_secs(120);
        let by = APPROVERS[2].to_owned();
        let first = it.decided[0].clone();
        it.decided.push(DecisionOnPlan { at: late, by, is_approval: false, ..first });
    }),
    ("was executed without a policy", |it| {
        let name = attempt(it);
        edit(it, &name, |it| it["spec"]["requester"]["username"] = json!(TENANT));
        it.allowed.clear();
    }),
    ("which no policy ever allowed", |it| {
        edit(it, "action-0", |it| it["spec"]["requester"]["username"] = json!(TENANT));
    }),
    ("names another requester", |it| {
        edit(it, "action-0", |it| it["status"]["requester"]["username"] = json!(TENANT));
    }),
];

/// Histories that are not true.
const HISTORIES: &[(&str, Mutation)] = &[
    ("did not create lantern", |it| {
        let at = place(it, |it| is_creation_of(it, "lantern"));
        it.writes.remove(at);
    }),
    ("did not delete", |it| it.writes.retain(|it| !is_deletion(it))),
    ("forgets its Create", |it| {
        edit_end(it, "action-0", |it| {
            it["status"]["plan"][0]["state"] = json!("Failed");
            it["status"]["plan"][0]["unwritten"] = json!(true);
        });
    }),
    ("forgets its Create", |it| {
        edit_end(it, "action-0", |it| it["status"]["plan"] = json!([]));
    }),
    ("succeeded without", |it| {
        edit_end(it, "action-0", |it| it["status"]["plan"][0]["state"] = json!("Written"));
    }),
    ("unknown changes", |it| {
        edit_end(it, "action-0", |it| {
            it["status"]["state"] = json!("Failed");
            it["status"]["plan"][0]["state"] = json!("Writing");
        });
    }),
    ("had ended as", |it| {
        let at = place(it, |it| is_report(it, "action-0", "Succeeded"));
        let mut again = it.writes[at].clone();
        again.reported["status"]["state"] = json!("Running");
        it.writes.insert(at + 1, again);
    }),
    ("is not as it reported", |it| {
        let action = it.actions.get_mut("action-0").expect("it is there");
        action["status"]["explanation"] = json!(["something else"]);
    }),
    ("has ended, and not when", |it| {
        edit_end(it, "action-0", |it| it["status"]["completionTime"] = Value::Null);
    }),
    ("without a reason", |it| {
        edit_end(it, "action-0", |it| it["status"]["conditions"][0]["reason"] = json!(""));
    }),
    ("is gone, and does not say how it ended", |it| {
        let end = place(it, |it| is_report(it, "action-0", "Succeeded"));
        it.writes.remove(end);
        it.actions.remove("action-0");
    }),
];

/// Actions that do not wait for each other, or for ever, and those that are made too often.
const ORDER: &[(&str, Mutation)] = &[
    ("at once", |it| {
        // The second one begins while the first one is executed.
        let at = place(it, |it| is_report(it, "action-1", "Running"));
        let begins = it.writes.remove(at);
        let end = place(it, |it| is_report(it, "action-0", "Succeeded"));
        it.writes.insert(end, begins);
    }),
    ("not everything has ended", |it| it.ended = None),
    ("action-0 is Running", |it| {
        edit_end(it, "action-0", |it| it["status"]["state"] = json!("Running"));
    }),
    ("a RetryAction with 2 retries made", |it| {
        let is_made = |it: &Write| it.path == ACTIONS && it.method == "POST";
        let at =
            place(it, |it| is_made(it) && it.sent["metadata"]["labels"][OWNER_LABEL] == "again");
        (0..3).for_each(|_| repeat(it, at));
    }),
    ("is made twice", |it| {
        let at = place(it, is_scheduled);
        repeat(it, at);
    }),
    ("is made while the window is closed", |it| {
        let at = place(it, is_scheduled);
        it.writes[at].sent["metadata"]["name"] = json!(format!("clean-{WINDOW_MINUTES}"));
    }),
    ("nothing was made at", |it| {
        let at = place(it, is_scheduled);
        it.writes.remove(at);
    }),
    ("counts as missed", |it| {
        let is_status = |it: &Write| it.path.starts_with(CLEAN) && it.path.ends_with("/status");
        let is_acted_on = |status: &Value| {
            let time = &status["lastScheduleTime"];
            time.is_string() && status["missed"]["lastTime"] != *time
        };
        let at = place(it, |it| is_status(it) && is_acted_on(&it.reported["status"]));
        let status = &mut it.writes[at].reported["status"];
        let time = status["lastScheduleTime"].clone();
        status["missed"] = json!({ "count": 1, "firstTime": time, "lastTime": time });
    }),
    ("are missed", |it| {
        let at = last(it, |it| it.path.starts_with(CLEAN) && it.path.ends_with("/status"));
        it.writes[at].reported["status"]["lastScheduleTime"] = json!("2099-01-01T00:00:00Z");
    }),
    ("not what the attempts came to", |it| it.retry["status"]["succeeded"] = json!(2)),
];

/// Changes that make too many Actions, or none without a word.
const EVENTS: &[(&str, Mutation)] = &[
    ("is not seen by follow", |it| it.followed.0["metadata"]["resourceVersion"] = json!("0")),
    ("is not seen by forth", |it| {
        let forth = it.event_actions.get_mut("forth").expect("it is there");
        forth["status"]["observed"] = json!([]);
    }),
    ("one too many", |it| {
        let status = status_of(it, "follow", |it| it["skipped"].is_array());
        status["lastEventTime"] = status["lastChangeTime"].clone();
        (status["skipped"], status["pending"]) = (Value::Null, json!("follow-3"));
    }),
    ("are no reason", |it| {
        let status = status_of(it, "follow", |it| it["skipped"].is_array());
        status["lastChangeTime"] = json!("2099-01-01T00:00:00Z");
    }),
    ("changes are skipped", |it| {
        status_of(it, "follow", |it| it["skipped"].is_array())["skipped"] = Value::Null;
    }),
    ("changes are skipped", |it| {
        status_of(it, "forth", |it| it["pending"].is_string())["pending"] = Value::Null;
    }),
    ("acts twice", |it| {
        let is_pending = |it: &Value| it["pending"].is_string();
        let first = status_of(it, "follow", is_pending)["lastChangeTime"].clone();
        status_of(it, "follow", |it| is_pending(it) && it["lastChangeTime"] != first)["lastChangeTime"] =
            first.clone();
    }),
    ("was pending, and is not made", |it| it.writes.retain(|it| !is_made(it, "follow"))),
    ("is made twice for a change", |it| {
        let at = place(it, |it| is_made(it, "follow"));
        repeat(it, at);
    }),
    ("closes a circle:", |it| {
        let at = place(it, |it| is_made(it, "forth"));
        let chain = json!("default/forth,default/back,default/forth");
        it.writes[at].sent["metadata"]["annotations"][TRIGGERED_BY_ANNOTATION] = chain;
    }),
    ("close a circle, not", |it| {
        let status = status_of(it, "forth", |it| it["skipped"].is_array());
        status["skipped"][0]["reason"] = json!("FilterFailed");
    }),
    ("bears the chain", |it| {
        let at = last(it, |it| is_creation_of(it, "lantern"));
        it.writes[at].sent["metadata"]["annotations"][TRIGGERED_BY_ANNOTATION] = Value::Null;
    }),
];

#[test]
fn each_invariant_of_actions_can_fail() {
    let good = good();
    assert_eq!(violations(&good), Vec::<String>::new());
    for (expected, mutate) in [WRITES, PERMISSIONS, HISTORIES, ORDER, EVENTS].concat() {
        let mut result = good.clone();
        mutate(&mut result);
        let found = violations(&result);
        assert!(found.iter().any(|text| text.contains(expected)), "{expected}: {found:#?}");
    }
}
