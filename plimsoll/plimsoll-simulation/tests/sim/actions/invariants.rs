//! Invariants of Actions, whatever the seed.

use std::collections::BTreeSet;
use std::time::Duration;

use plimsoll_api::olm::action::{CREATED_BY_ANNOTATION, OWNER_LABEL};
use serde_json::Value;

use super::events::{self, unmarked};
use super::history::{contradictions, plan, reported};
use super::requests::{ADMINISTRATOR, APPROVERS, TENANT};
use super::schedule::unexplained;
use super::{
    ACTIONS, ActionsResult, CONVERGENCE_TIME, DecisionOnPlan, WINDOWS, is_ended, unseeing,
};
use crate::record::{ADD_ONS, Write};

/// The time within which a write may follow the question whether it is allowed: requests time out by then.
const ON_ITS_WAY: Duration = Duration::from_secs(90);

/// The number of approvals that a plan of the tenant for ledger needs.
const APPROVALS: usize = 2;

const OPERATORS: &str = "/apis/olm.io/v1/operators";

/// Returns what does not hold, in sentences.
pub(super) fn violations(result: &ActionsResult) -> Vec<String> {
    let mut found = Vec::new();
    let done: Vec<&Write> =
        result.writes.iter().filter(|it| matches!(it.status, 200..=202)).collect();
    for (name, action) in &result.actions {
        found.extend(of_action(name, action, &done, result));
    }
    // Those that were deleted meanwhile are there as they were reported.
    let known = result.writes.iter().filter_map(reported);
    let known: Vec<&Value> = known.chain(result.actions.values()).collect();
    for write in &done {
        found.extend(unrequested(write, &known, result));
        found.extend(unmarked(write, &known));
    }
    found.extend(contradictions(result));
    found.extend(of_generators(&done, result));
    found.extend(unexplained(&done));
    found.extend(events::unexplained(&done, result.is_clock_set));
    match result.ended {
        None => {
            let open = result.actions.iter().filter(|(_, it)| !is_ended(it));
            let open = open.map(|(name, it)| format!("{name}: {}", it["status"]));
            let open: Vec<String> = open.collect();
            found.push(format!(
                "not everything has ended: {} {}",
                result.retry["status"],
                open.join("\n  ")
            ));
        }
        Some(ended) => {
            let about_actions = format!("{ADD_ONS}/namespaces/");
            let is_late = |it: &&&Write| {
                // The window goes on opening and closing.
                it.path.starts_with(&about_actions) && it.at > ended
                    || it.path.starts_with(ADD_ONS)
                        && !it.path.starts_with(WINDOWS)
                        && it.at > ended + CONVERGENCE_TIME
            };
            found.extend(done.iter().filter(is_late).map(|it| {
                format!("{} {} at {:?}; all had ended at {ended:?}", it.method, it.path, it.at)
            }));
        }
    }
    found
}

/// Returns the contradictions between the status of an Action and the writes for it.
fn of_action(name: &str, action: &Value, done: &[&Write], result: &ActionsResult) -> Vec<String> {
    let mut found = Vec::new();
    let status = &action["status"];
    let state = status["state"].as_str().unwrap_or_default();
    let condition = &status["conditions"][0];
    let uid = action["metadata"]["uid"].as_str().unwrap_or_default();
    if !matches!(state, "Succeeded" | "Failed" | "Cancelled") {
        found.push(format!("{name} is {state}: {}", condition["message"]));
    }
    if condition["reason"].as_str().is_none_or(str::is_empty) {
        found.push(format!("{name} is {state} without a reason"));
    }
    for change in plan(status) {
        let operator = change["operator"].as_str().unwrap_or_default();
        let is_done = matches!(change["state"].as_str(), Some("Written" | "Completed"));
        let path = format!("{OPERATORS}/{operator}");
        let is_creation = |it: &&Write| {
            it.method == "POST"
                && it.path == OPERATORS
                && it.sent["metadata"]["annotations"][CREATED_BY_ANNOTATION] == *uid
                && it.sent["metadata"]["name"] == *operator
        };
        let is_deletion =
            |it: &&Write| it.method == "DELETE" && it.sent["preconditions"]["uid"] == change["uid"];
        let was_deleted = || result.deleted.iter().any(|(_, it)| *it == path);
        if change["operation"] == "Create" && is_done && !done.iter().any(is_creation) {
            found.push(format!("{name} did not create {operator}"));
        }
        if change["operation"] == "Delete"
            && is_done
            && !done.iter().any(is_deletion)
            && !was_deleted()
        {
            found.push(format!("{name} did not delete {operator}"));
        }
        if state == "Succeeded"
            && change["state"] != "Completed"
            && action["spec"]["dryRun"] != true
        {
            found.push(format!("{name} succeeded without {change}"));
        }
    }
    found
}

/// Returns why a creation was not allowed when it was written; `None` if it was. The Action is as it was reported
/// before.
pub(super) fn forbidden(action: &Value, write: &Write, result: &ActionsResult) -> Option<String> {
    let name = action["metadata"]["name"].as_str().unwrap_or_default();
    if action["spec"]["requester"]["username"] != TENANT || write.is_late {
        return None;
    }
    let begin = write.at.saturating_sub(ON_ITS_WAY);
    match action["spec"]["package"].as_str() {
        Some("tide") => {
            let before = result.allowed.iter().rev().find(|(at, _)| *at <= begin);
            let since = result.allowed.iter().any(|(at, is)| *at > begin && *at <= write.at && *is);
            let was = before.is_some_and(|(_, is_allowed)| *is_allowed) || since;
            (!was).then(|| format!("{name} was executed without a policy at {:?}", write.at))
        }
        Some("ledger") => {
            let digest = action["status"]["planDigest"].as_str().unwrap_or_default();
            let decisions = || {
                let of_action = result.decided.iter().filter(|it| it.action == name);
                of_action.filter(|it| APPROVERS.contains(&it.by.as_str()) && it.at <= write.at)
            };
            let is_known = |it: &&DecisionOnPlan| it.forgotten.is_none_or(|at| begin <= at);
            let approving = decisions().filter(|it| it.is_approval && it.plan == digest);
            let approving = approving.filter(is_known);
            let approving: BTreeSet<&str> = approving.map(|it| it.by.as_str()).collect();
            // The last word of each of them, unless it was said while the write was on its way.
            let is_rejected = APPROVERS.iter().any(|by| {
                let mut said = decisions().filter(|it| it.by == *by && it.forgotten.is_none());
                let said = said.next_back();
                said.is_some_and(|it| !it.is_approval && it.plan == digest && it.at < begin)
            });
            let at = write.at;
            if approving.len() < APPROVALS {
                return Some(format!(
                    "{name} was executed with {} approvals at {at:?}",
                    approving.len()
                ));
            }
            is_rejected.then(|| format!("{name} was executed at {at:?} although it was rejected"))
        }
        _ => Some(format!("{name} of {TENANT} was executed, which no policy ever allowed")),
    }
}

/// Returns a write of an Operator that no Action of the administrator has planned, and that does not keep a dependency
/// for itself, for which it is installed by name; `None` if it is neither.
fn unrequested(write: &Write, known: &[&Value], result: &ActionsResult) -> Option<String> {
    let operator = write.path.strip_prefix(OPERATORS)?.strip_prefix('/')?;
    let is_planned = |operation: &str, about: &dyn Fn(&Value) -> bool| {
        let by_administrator =
            known.iter().filter(|it| it["spec"]["requester"]["username"] == ADMINISTRATOR);
        by_administrator
            .flat_map(|it| it["status"]["plan"].as_array().into_iter().flatten())
            .any(|it| it["operation"] == operation && it["operator"] == operator && about(it))
    };
    if write.method == "DELETE" {
        let uid = &write.sent["preconditions"]["uid"];
        let is_planned = is_planned("Delete", &|it| it["uid"] == *uid);
        return (!is_planned).then(|| format!("{operator} was deleted, which no Action requested"));
    }
    let version = write.sent.as_array().into_iter().flatten().find_map(|it| {
        let is_version = it["path"] == "/spec/version" && it["op"] != "test";
        is_version.then(|| it["value"].clone())
    })?;
    let is_planned = is_planned("Update", &|it| it["requested"] == version || version.is_null());
    let is_kept_for_itself = known.iter().any(|action| {
        let plan = action["status"]["plan"].as_array().into_iter().flatten();
        let mut of_operator = plan.filter(|it| it["operator"] == operator);
        action["spec"]["package"] == operator
            && forbidden(action, write, result).is_none()
            && of_operator.any(|it| {
                it["becomesRequested"] == true
                    && it["requested"] == version
                    && it["requestedBefore"] == version
            })
    });
    (!is_planned && !is_kept_for_itself)
        .then(|| format!("{operator} was updated to {version}, which no Action requested"))
}

/// Returns what does not hold of the Actions that were generated.
fn of_generators(done: &[&Write], result: &ActionsResult) -> Vec<String> {
    let mut found = Vec::new();
    let made = |owner: &str| {
        let is_made = |it: &&&Write| {
            it.path == ACTIONS
                && it.method == "POST"
                && it.sent["metadata"]["labels"][OWNER_LABEL] == owner
        };
        done.iter().filter(is_made).count()
    };
    let (object, touched) = &result.followed;
    // What was seen or made when the server went back is seen and made again.
    let again = result.rollbacks();
    if made("follow") > *touched + 2 * again {
        found.push(format!("{touched} changes made {} Actions", made("follow")));
    }
    let unseeing = unseeing(object, &result.actions, &result.event_actions);
    found.extend(unseeing.iter().map(|it| format!("{} is not seen by {it}", object["metadata"])));
    if made("again") > 3 * (1 + again) {
        found.push(format!("a RetryAction with 2 retries made {} attempts", made("again")));
    }
    let succeeded = result.retry["status"]["succeeded"].as_u64().unwrap_or_default();
    let attempts = result.actions.iter().filter(|(_, it)| {
        it["metadata"]["labels"][OWNER_LABEL] == "again" && it["status"]["state"] == "Succeeded"
    });
    if attempts.count() as u64 != succeeded {
        found.push(format!("not what the attempts came to: {}", result.retry["status"]));
    }
    let of_cron = result.actions.values();
    let of_cron = of_cron.filter(|it| it["metadata"]["labels"][OWNER_LABEL] == "clean").count();
    if of_cron > 4 {
        found.push(format!("a CronAction keeps {of_cron} Actions"));
    }
    found
}
