//! The events about Actions and what they change, and the metrics of those that end.

use std::collections::BTreeSet;

use plimsoll_api::olm::action::{
    ActionApproval, ActionState, ApprovalDecision, ChangeOperation, ChangeState, PlannedChange,
    PolicyDecision,
};
use plimsoll_api::{
    ACTION, CLUSTER_VERSION, CLUSTER_VERSION_NAME, EVENT_ACTION, OPERATOR, ObjectKey, Reason,
};
use plimsoll_operators::actions::attributes::NamedClass;
use plimsoll_operators::actions::report::ActionObject;
use plimsoll_plan::reconciler::events::{EventDraft, Severity};
use serde_json::Value;

use super::ControlLoop;
use super::known::{known_reason, reason_of};
use crate::actions::generators::ActionGenerator;

impl ControlLoop {
    /// Emits events about what has changed of an Action since it was last observed, and counts it
    /// if it has ended.
    pub(super) fn announce_change(&self, before: &ActionObject, after: &ActionObject) {
        let (from, to) = (before.status.state, after.status.state);
        let ends = !from.is_final() && to.is_final();
        let class = NamedClass::find(&*self.classes, &after.spec.action_class);
        // The controllers of other classes have events of their own.
        if class.is_none_or(NamedClass::is_ours) {
            let reason = |it: &ActionObject| it.condition().map(|it| it.reason.clone());
            if from != to || reason(before) != reason(after) {
                self.announce_state(after);
            }
            self.announce_approvals(before, after);
            if class.is_some() {
                self.announce_decisions(before, after);
            }
            if ends {
                for change in &after.status.plan {
                    self.announce_end(after, change);
                }
            }
        }
        if ends {
            // What clients write must not become the names of many metrics.
            let class = class.map_or("", |it| &it.name).to_owned();
            let reason = reason_of(after).map_or("", Reason::as_str);
            let since = after.status.start_time.unwrap_or(after.created);
            // Alerts are about this time, not about what the controller of another class writes.
            let now = self.clock.now();
            let duration = after.status.completion_time.unwrap_or(now).duration_since(since);
            self.view.send_modify(|view| view.action_ended(class, to, reason, duration, now));
        }
    }

    /// Emits events about what users decided on the plan of an Action since it was last observed.
    fn announce_approvals(&self, before: &ActionObject, after: &ActionObject) {
        let is_new = |it: &&ActionApproval| !before.spec.approvals.contains(it);
        for ActionApproval { approver, plan, decision, reason, .. } in
            after.spec.approvals.iter().filter(is_new)
        {
            let (what, event) = match decision {
                ApprovalDecision::Approved => ("approved", Reason::PlanApproved),
                ApprovalDecision::Rejected => ("rejected", Reason::PlanRejected),
            };
            let why = if reason.is_empty() { String::new() } else { format!(": {reason}") };
            let note = format!("{approver} {what} plan {plan}{why}");
            self.announce_on_action(after, Severity::Normal, event, note);
        }
    }

    /// Counts what policies decided on an Action since it was last observed, and emits events about those that
    /// hold nothing up and would deny it.
    fn announce_decisions(&self, before: &ActionObject, after: &ActionObject) {
        let what =
            |it: &PolicyDecision| (it.policy.clone(), it.mode.clone(), it.allowed, it.rule.clone());
        let known: BTreeSet<_> = before.status.policies.iter().map(what).collect();
        let is_policy =
            |name: &str| name.is_empty() || self.policies.iter().any(|it| it.name == name);
        let is_new = |it: &&PolicyDecision| !known.contains(&what(it)) && is_policy(&it.policy);
        for decision in after.status.policies.iter().filter(is_new) {
            self.view.send_modify(|view| view.policy_decided(decision));
            let PolicyDecision { policy, mode, allowed, message, .. } = decision;
            if !allowed && mode != "Enforce" {
                let note = format!("{mode}: ActionPolicy {policy} would deny it: {message}");
                self.announce_on_action(after, Severity::Warning, Reason::PolicyDenied, note);
            }
        }
    }

    /// Emits an event about the state of an Action.
    fn announce_state(&self, action: &ActionObject) {
        let Some(condition) = action.condition() else { return };
        let state = action.status.state;
        let severity = match state {
            ActionState::Failed => Severity::Warning,
            _ => Severity::Normal,
        };
        let reason = known_reason(&condition.reason).unwrap_or(Reason::InvalidAction);
        let note = format!("{}: {}", state.as_str(), condition.message);
        self.announce_on_action(action, severity, reason, note);
    }

    /// Emits events about what an Action changes.
    pub(super) fn announce(&self, action: &ActionObject, at: usize) {
        let change = &action.status.plan[at];
        let (what, on_action) = match change.operation {
            ChangeOperation::Create => ("creates it".to_owned(), "creates Operator"),
            ChangeOperation::Update if change.requested == change.requested_before => (
                "changes what is requested of it".to_owned(),
                "changes what is requested of Operator",
            ),
            ChangeOperation::Update => (
                "requests another version of it".to_owned(),
                "requests another version of Operator",
            ),
            ChangeOperation::Delete => ("deletes it".to_owned(), "deletes Operator"),
            ChangeOperation::UpdateRelease => {
                (format!("requests release {}", change.requested), "")
            }
            ChangeOperation::EnableCapability => {
                (format!("requests capability {}", change.capability), "")
            }
            ChangeOperation::Await => return,
        };
        let (normal, reason) = (Severity::Normal, Reason::ActionRunning);
        self.announce_on_subject(action, change, normal, reason, &what);
        let note = match on_action {
            "" => what,
            on_action => format!("{on_action} {}", change.operator),
        };
        self.announce_on_action(action, normal, reason, format!("Running: {note}"));
    }

    /// Emits an event about what became of a change of an Action that has ended.
    fn announce_end(&self, action: &ActionObject, change: &PlannedChange) {
        if change.operation == ChangeOperation::Await {
            return;
        }
        let (operator, version) = (&change.operator, &change.version);
        let what = match (change.state, change.operation) {
            (ChangeState::Planned, _) => return,
            (ChangeState::Completed, ChangeOperation::Delete) => format!("deleted {operator}"),
            (ChangeState::Completed, ChangeOperation::UpdateRelease) => {
                format!("completed release {}", change.requested)
            }
            (ChangeState::Completed, ChangeOperation::EnableCapability) => {
                format!("enabled capability {}", change.capability)
            }
            (ChangeState::Completed, _) if version.is_empty() => format!("installed {operator}"),
            (ChangeState::Completed, _) => format!("installed {operator}@{version}"),
            (ChangeState::Failed, _) => format!("failed: {}", change.message),
            (ChangeState::Writing | ChangeState::Written, _) => {
                "ended before its change was complete".to_owned()
            }
        };
        let severity = match change.state {
            ChangeState::Completed => Severity::Normal,
            _ => Severity::Warning,
        };
        let reason = known_reason(&change.reason).or_else(|| reason_of(action));
        let reason = reason.unwrap_or(Reason::InvalidAction);
        self.announce_on_subject(action, change, severity, reason, &what);
    }

    /// Emits events about the times of a schedule, or of changes, for which no Action was made, if the status that was
    /// written has others than the one before.
    pub(super) fn announce_missed(&self, generator: &ActionGenerator, status: &Value) {
        let ActionGenerator { kind, namespace, name, uid, .. } = generator;
        let (action, field) = match *kind {
            EVENT_ACTION => ("Trigger", "skipped"),
            _ => ("Schedule", "missed"),
        };
        for missed in generator.newly_missed(status) {
            let Some(reason) = known_reason(&missed.reason) else { continue };
            // The same each time, so that many of them are one event.
            let note = format!("{}; see status.{field}", missed.message);
            let severity = match reason {
                // It is what the CronAction asks for.
                Reason::MaintenanceWindowClosed => Severity::Normal,
                _ => Severity::Warning,
            };
            let draft = EventDraft { severity, reason, action, note, related: None };
            self.recorder.emit_about_in(namespace, *kind, name, uid, draft);
        }
    }

    fn announce_on_action(
        &self,
        action: &ActionObject,
        severity: Severity,
        reason: Reason,
        note: String,
    ) {
        let draft = EventDraft { severity, reason, action: "Execute", note, related: None };
        let ActionObject { namespace, name, uid, .. } = action;
        self.recorder.emit_about_in(namespace, ACTION, name, uid, draft);
    }

    /// Emits an event about the Operator or the ClusterVersion that a change is of.
    fn announce_on_subject(
        &self,
        action: &ActionObject,
        change: &PlannedChange,
        severity: Severity,
        reason: Reason,
        what: &str,
    ) {
        let there = self.operators.get(&change.operator).map(|it| it.uid.as_str());
        let requester = action.spec.requester.as_ref().map_or("", |it| it.username.as_str());
        let ActionObject { namespace, name, .. } = action;
        let draft = EventDraft {
            severity,
            reason,
            action: "Execute",
            note: format!("Action {namespace}/{name} of {requester} {what}"),
            related: Some(ObjectKey {
                group: ACTION.group.to_owned(),
                kind: ACTION.kind.to_owned(),
                namespace: namespace.clone(),
                name: name.clone(),
            }),
        };
        let (kind, name, uid) = match change.is_release() {
            true => (CLUSTER_VERSION, CLUSTER_VERSION_NAME, change.uid.as_str()),
            // One that is deleted is not there any more.
            false => (OPERATOR, change.operator.as_str(), there.unwrap_or(&change.uid)),
        };
        self.recorder.emit_about(kind, name, uid, draft);
    }
}
