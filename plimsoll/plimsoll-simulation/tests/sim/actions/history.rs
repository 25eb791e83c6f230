//! The histories of Actions in a recording: what each one reported and what was written for it, in
//! order, and how one contradicts the other.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use plimsoll_api::olm::action::CREATED_BY_ANNOTATION;
use serde_json::Value;

use super::invariants::forbidden;
use super::{ACTIONS, ActionsResult};
use crate::record::{INSTALLED, Write};

/// The path of the mark that an update leaves, in a patch.
const CHANGED_BY: &str = "/metadata/annotations/olm.io~1changed-by-action";

/// What a write makes of a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Change<'a> {
    /// The Operator of a name is created.
    Create(&'a str),
    /// The update at a position of the plan.
    Update(usize),
    /// The Operator with a uid is deleted.
    Delete(&'a str),
}

impl Change<'_> {
    /// Returns whether it is the one at a position of a plan.
    fn is(self, position: usize, planned: &Value) -> bool {
        match self {
            Self::Create(name) => planned["operation"] == "Create" && planned["operator"] == name,
            Self::Update(at) => planned["operation"] == "Update" && position == at,
            Self::Delete(uid) => planned["operation"] == "Delete" && planned["uid"] == uid,
        }
    }

    /// Returns it as it is in a plan; `None` if the plan does not have it.
    fn in_plan(self, status: &Value) -> Option<&Value> {
        let found = plan(status).iter().enumerate().find(|(at, it)| self.is(*at, it));
        found.map(|(_, planned)| planned)
    }
}

/// Returns the change that a successful write makes, with the uid of its Action, which a deletion
/// does not name; `None` if it makes none.
pub(super) fn made(write: &Write) -> Option<(&str, Change<'_>)> {
    if !matches!(write.status, 200..=202) {
        return None;
    }
    if write.path == INSTALLED && write.method == "POST" {
        let metadata = &write.sent["metadata"];
        let action = metadata["annotations"][CREATED_BY_ANNOTATION].as_str()?;
        return Some((action, Change::Create(metadata["name"].as_str()?)));
    }
    let name = write.path.strip_prefix(INSTALLED)?.strip_prefix('/')?;
    if name.contains('/') {
        return None;
    }
    if write.method == "DELETE" {
        return Some(("", Change::Delete(write.sent["preconditions"]["uid"].as_str()?)));
    }
    let mut operations = write.sent.as_array()?.iter();
    let mark = operations.find(|it| it["path"] == CHANGED_BY && it["op"] == "add")?;
    let (action, at) = mark["value"].as_str()?.rsplit_once('/')?;
    Some((action, Change::Update(at.parse().ok()?)))
}

/// Returns the Action after a write of its status that succeeded; `None` for all else.
pub(super) fn reported(write: &Write) -> Option<&Value> {
    let is_status = write.path.starts_with(ACTIONS) && write.path.ends_with("/status");
    let is_there = write.reported["metadata"]["uid"].is_string();
    (is_status && write.status == 200 && is_there).then_some(&write.reported)
}

pub(super) fn plan(status: &Value) -> &[Value] {
    status["plan"].as_array().map(Vec::as_slice).unwrap_or_default()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn is_final(status: &Value) -> bool {
    matches!(text(&status["state"]), "Succeeded" | "Failed" | "Cancelled")
}

/// Returns the Operators that a plan writes.
fn written_operators(status: &Value) -> BTreeSet<&str> {
    let changes = plan(status).iter().filter(|it| it["operation"] != "Await");
    changes.map(|it| text(&it["operator"])).collect()
}

/// What is known of an Action at a point of a recording.
struct History<'a> {
    /// The object as it was reported last.
    action: &'a Value,
    /// The write of that report.
    write: &'a Write,
    /// What was made for it since the server last went back to an earlier state.
    made: Vec<(Change<'a>, &'a Write)>,
}

impl<'a> History<'a> {
    fn name(&self) -> &'a str {
        text(&self.action["metadata"]["name"])
    }

    fn status(&self) -> &'a Value {
        &self.action["status"]
    }
}

/// The state of a pass over a recording.
struct Pass<'a> {
    result: &'a ActionsResult,
    /// What is known of each Action, by uid.
    actions: BTreeMap<&'a str, History<'a>>,
    /// The writes of changes, by what identifies each.
    made: BTreeMap<(usize, &'a str, Change<'a>), &'a Write>,
    found: Vec<String>,
}

/// Returns how writes and reports contradict each other, in sentences.
///
/// A server that goes back to an earlier state has reports and Operators of then: what came before
/// and after that is compared separately.
pub(super) fn contradictions(result: &ActionsResult) -> Vec<String> {
    let (actions, made_before) = (BTreeMap::new(), BTreeMap::new());
    let mut pass = Pass { result, actions, made: made_before, found: Vec::new() };
    for write in &result.writes {
        if let Some(action) = reported(write) {
            pass.report(action, write);
        } else if let Some((uid, change)) = made(write) {
            pass.make(uid, change, write);
        }
    }
    pass.end();
    pass.found
}

impl<'a> Pass<'a> {
    /// Follows a report.
    fn report(&mut self, action: &'a Value, write: &'a Write) {
        let uid = text(&action["metadata"]["uid"]);
        let before = self.actions.remove(uid);
        let before = before.filter(|it| it.write.rollbacks == write.rollbacks);
        if let Some(before) = &before {
            self.compare(before, action, write);
        }
        self.judge(action);
        self.check_locks(uid, action, write);
        let made = before.map(|it| it.made).unwrap_or_default();
        self.actions.insert(uid, History { action, write, made });
    }

    /// Compares a report with the one before, and with what was written.
    fn compare(&mut self, before: &History<'_>, action: &Value, write: &Write) {
        let (name, then, now) = (before.name(), before.status(), &action["status"]);
        let is_same = |field: &str| then[field] == now[field];
        if is_final(then) && !(is_same("state") && is_same("completionTime")) {
            let (then, now) = (&then["state"], &now["state"]);
            self.found.push(format!("{name} had ended as {then} and is {now}"));
        }
        for (change, by) in &before.made {
            let planned = change.in_plan(now);
            let is_said = planned.is_some_and(|it| {
                let state = text(&it["state"]);
                matches!(state, "Writing" | "Written" | "Completed")
                    || state == "Failed" && it["unwritten"] != true
            });
            let operator = match planned {
                Some(planned) => text(&planned["operator"]),
                None => by.path.rsplit('/').next().unwrap_or_default(),
            };
            // Of an Operator that was created and deleted since nothing is left to be found.
            if !is_said && !self.is_deleted(&operator_path(operator), by.at, write.at) {
                let state = planned.map_or(&Value::Null, |it| &it["state"]);
                self.found.push(format!("{name} forgets its {change:?}, which is {state}"));
            }
        }
    }

    /// Checks that a report agrees with itself.
    fn judge(&mut self, action: &Value) {
        let (name, status) = (text(&action["metadata"]["name"]), &action["status"]);
        let (reported, given) = (&status["requester"], &action["spec"]["requester"]);
        if reported["username"] != given["username"] {
            self.found.push(format!("{name} names another requester: {reported}"));
        }
        if is_final(status) && !status["completionTime"].is_string() {
            self.found.push(format!("{name} has ended, and not when"));
        }
        if !matches!(text(&status["state"]), "Failed" | "Cancelled") {
            return;
        }
        let changes = || plan(status).iter().filter(|it| it["operation"] != "Await");
        let listed = |list: &str| status["failure"][list].as_array().map_or(0, Vec::len);
        // What was made and is not there any more is one that failed.
        let is_gone = |it: &Value| {
            it["state"] == "Failed" && it["reason"] == "OutcomeUnknown" && it["unwritten"] != true
        };
        let unknown = changes().filter(|it| it["state"] == "Writing" || is_gone(it)).count();
        if listed("unknown") != unknown {
            let listed = listed("unknown");
            self.found.push(format!("{name} lists {listed} of {unknown} unknown changes"));
        }
        let all = listed("done") + listed("left") + listed("unknown");
        if all != changes().count() {
            self.found.push(format!("{name} lists {all} of {} changes", changes().count()));
        }
        let is_left = |it: &&Value| {
            it["state"] == "Planned" || it["state"] == "Failed" && it["unwritten"] == true
        };
        if listed("left") < changes().filter(is_left).count() {
            self.found.push(format!("{name} does not list what is left: {}", status["failure"]));
        }
    }

    /// Checks that no two Actions that change the same Operator are executed at once.
    fn check_locks(&mut self, uid: &str, action: &Value, write: &Write) {
        if action["status"]["state"] != "Running" {
            return;
        }
        let name = text(&action["metadata"]["name"]);
        let written = written_operators(&action["status"]);
        let mut found = Vec::new();
        for (_, other) in self.actions.iter().filter(|(it, _)| **it != uid) {
            let is_executed = other.status()["state"] == "Running"
                && other.write.rollbacks == write.rollbacks
                && !self.is_deleted(
                    &format!("{ACTIONS}/{}", other.name()),
                    other.write.at,
                    write.at,
                );
            let both = written_operators(other.status());
            if let Some(operator) = both.intersection(&written).next().filter(|_| is_executed) {
                found.push(format!("{name} and {} change {operator} at once", other.name()));
            }
        }
        self.found.extend(found);
    }

    /// Follows the write of a change.
    fn make(&mut self, uid: &'a str, change: Change<'a>, write: &'a Write) {
        if let Some(first) = self.made.insert((write.rollbacks, uid, change), write) {
            self.check_repetition(change, first, write);
        }
        // What a process sent before it ended cannot be held back by anybody.
        if write.is_late {
            return;
        }
        let is_planned = |it: &History<'_>| {
            change.in_plan(it.status()).is_some_and(|it| it["state"] == "Writing")
        };
        let owner = match change {
            Change::Delete(_) => self.actions.values_mut().find(|it| is_planned(it)),
            Change::Create(_) | Change::Update(_) => self.actions.get_mut(uid),
        };
        let Some(history) = owner else {
            self.found
                .push(format!("{} is changed, which no Action reports: {change:?}", write.path));
            return;
        };
        let name = history.name();
        if is_final(history.status()) && history.write.rollbacks == write.rollbacks {
            self.found.push(format!("{name} has ended and goes on at {:?}: {change:?}", write.at));
        } else if !is_planned(history) {
            self.found.push(format!("{name} did not record {change:?} before it was written"));
        }
        if matches!(change, Change::Create(_)) {
            self.found.extend(forbidden(history.action, write, self.result));
        }
        if history.write.rollbacks == write.rollbacks {
            history.made.push((change, write));
        }
    }

    /// Checks whether a change may be written again.
    fn check_repetition(&mut self, change: Change<'_>, first: &Write, again: &Write) {
        let is_allowed = match change {
            // An Operator that is created and then deleted by another client leaves no trace for the
            // next process, and none that holds back what arrives late.
            Change::Create(name) => {
                let is_gone = self.is_deleted(&operator_path(name), first.at, again.at);
                again.is_late || is_gone && first.process != again.process
            }
            // It changes nothing while the Operator is being deleted.
            Change::Delete(_) => again.is_late,
            Change::Update(_) => false,
        };
        if !is_allowed {
            let (then, now) = (first.at, again.at);
            let path = &again.path;
            self.found
                .push(format!("{path}: {change:?} is written twice, at {then:?} and {now:?}"));
        }
    }

    /// Compares the end with the last reports.
    fn end(&mut self) {
        let last = self.result.rollbacks();
        for (uid, history) in &self.actions {
            let name = history.name();
            if history.write.rollbacks != last {
                continue;
            }
            let there = self.result.actions.get(name);
            let there = there.filter(|it| it["metadata"]["uid"] == **uid);
            match there {
                Some(there) if there["status"] != *history.status() => {
                    self.found.push(format!("{name} is not as it reported: {}", there["status"]));
                }
                None if !history.made.is_empty() && !is_final(history.status()) => {
                    self.found.push(format!("{name} is gone, and does not say how it ended"));
                }
                Some(_) | None => {}
            }
        }
    }

    /// Returns whether a client deleted what is at a path between two times.
    fn is_deleted(&self, path: &str, from: Duration, to: Duration) -> bool {
        let mut deleted = self.result.deleted.iter();
        deleted.any(|(at, it)| it == path && *at >= from && *at <= to)
    }
}

fn operator_path(name: &str) -> String {
    format!("{INSTALLED}/{name}")
}
