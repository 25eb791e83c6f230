//! What people should hear of the work, as events: each thing once, even through restarts.

use std::collections::BTreeSet;

use jiff::Timestamp;
use plimsoll_api::{Condition, ObjectKey, Reason};
use plimsoll_plan::capabilities::Capabilities;
use plimsoll_plan::plan::Action;
use plimsoll_plan::plan::mode::Mode;
use plimsoll_plan::reconciler::execution::Drift;
use plimsoll_plan::removal::Notice;
use plimsoll_plan::status::transitions::transitions;

use super::Work;
use crate::events::{self, Occurrence, Severity};

/// What has been told.
pub(super) struct ReportedEvents {
    /// The conditions as they were when they were last told of.
    conditions: Vec<Condition>,
    /// The ClusterOperators of the release that have reached it.
    gates: BTreeSet<String>,
}

impl ReportedEvents {
    /// What is on record in the cluster has been told.
    pub(super) fn recorded(conditions: &[Condition]) -> Self {
        Self { conditions: conditions.to_vec(), gates: BTreeSet::new() }
    }
}

impl Work {
    /// Tells that a controller works from now on.
    pub(super) fn emit_leader_elected(&self, identity: &str) {
        let note = format!("{identity} keeps the cluster from now on");
        self.emit_about(Severity::Normal, Reason::LeaderElected, "Lead", note, None);
    }

    /// Tells of conditions that came to hold, or do not hold any more.
    pub(super) fn emit_conditions(&mut self, conditions: &[Condition]) {
        for transition in transitions(&self.reported.conditions, conditions) {
            let severity = if transition.is_warning { Severity::Warning } else { Severity::Normal };
            self.emit(severity, transition.reason, transition.message);
        }
        self.reported.conditions = conditions.to_vec();
    }

    /// Takes the gates that are passed for told: what an earlier process saw is no news.
    pub(super) fn mark_gates_reported(&mut self) {
        let is_completed = self.session.progress().mode() == Mode::Reconciling;
        let passed = self.gates().filter(|(_, is_passed)| *is_passed || is_completed);
        let names = passed.map(|(key, _)| key.name.clone()).collect();
        self.reported.gates = names;
    }

    /// Another release is applied: its gates are ahead.
    pub(super) fn reset_gates(&mut self) {
        self.reported.gates.clear();
    }

    /// Tells of ClusterOperators that have reached the release.
    pub(super) fn emit_gates(&mut self) {
        let is_news = |(key, is_passed): &(&ObjectKey, bool)| {
            *is_passed && !self.reported.gates.contains(&key.name)
        };
        let news: Vec<ObjectKey> =
            self.gates().filter(is_news).map(|(key, _)| key.clone()).collect();
        for key in news {
            // Two manifests may be about one ClusterOperator.
            if self.reported.gates.insert(key.name.clone()) {
                let note = format!("ClusterOperator {} is at {}", key.name, self.release.version);
                let reason = Reason::ClusterOperatorUpdated;
                self.emit_about(Severity::Normal, reason, "Update", note, Some(&key));
            }
        }
    }

    /// Tells of objects that somebody changed or deleted, and that are put right.
    pub(super) fn emit_drift(&mut self) {
        for Drift { key, is_deleted } in self.session.execution.take_drifted() {
            let what = if is_deleted { "deleted" } else { "changed" };
            let note = format!("{key} was {what} by somebody else and is put right");
            self.emit_about(Severity::Normal, Reason::DriftRepaired, "Repair", note, Some(&key));
        }
    }

    /// Tells what people should hear of deletions.
    pub(super) fn emit_removals(&mut self, now: Timestamp) {
        for notice in self.session.execution.removals_mut().notices(now) {
            let Notice { key, reason, is_warning, message } = notice;
            let severity = if is_warning { Severity::Warning } else { Severity::Normal };
            self.reporter.touch();
            self.emit_about(severity, reason, "Delete", message, Some(&key));
        }
    }

    /// Tells of capabilities that are enabled because they are asked for.
    pub(super) fn emit_capabilities(&self, before: &Capabilities) {
        let is_implied = |name: &String| {
            before.implicit.contains(name) || self.capabilities.implicit.contains(name)
        };
        let new = self.capabilities.enabled.difference(&before.enabled);
        for name in new.filter(|name| !is_implied(name)) {
            let note = format!("Capability {name} is enabled, as the ClusterVersion asks");
            self.emit(Severity::Normal, Reason::CapabilityEnabled, note);
        }
    }

    /// The ClusterOperators of the release, and whether their gates are passed.
    fn gates(&self) -> impl Iterator<Item = (&ObjectKey, bool)> {
        let progress = self.session.progress();
        let steps = progress.plan().steps.iter().enumerate();
        steps
            .filter(|(_, step)| step.action == Action::Gate)
            .map(|(index, step)| (&step.manifest.key, progress.is_done(index)))
    }

    /// Tells of something about the ClusterVersion.
    pub(super) fn emit(&self, severity: Severity, reason: Reason, note: String) {
        self.emit_about(severity, reason, "Update", note, None);
    }

    /// Tells of something that was done, and of the object that it was done to.
    pub(super) fn emit_about(
        &self,
        severity: Severity,
        reason: Reason,
        action: &'static str,
        note: String,
        related: Option<&ObjectKey>,
    ) {
        self.recorder.record(Occurrence {
            severity,
            reason,
            action,
            note,
            regarding: events::cluster_version(&self.owner),
            related: related.map(events::object),
        });
    }
}
