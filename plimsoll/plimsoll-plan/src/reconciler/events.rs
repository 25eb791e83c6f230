//! Which events are emitted: each thing once, even across restarts.

use std::collections::BTreeSet;

use jiff::Timestamp;
use plimsoll_api::progress::{OverrideProgress, OverrideState};
use plimsoll_api::{Condition, ConditionStatus, ObjectKey, Reason};

use super::execution::Drift;
use crate::capabilities::Implied;
use crate::plan::Action;
use crate::plan::mode::Mode;
use crate::progress::Progress;
use crate::removal::DeletionEvent;
use crate::spec::overrides::{self, Overrides};
use crate::status::transitions::transitions;
use crate::update::acceptance::{LoadStatus, LoadStep};

/// Whether an event calls for attention.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// It goes as it should.
    Normal,
    /// An administrator may have to intervene.
    Warning,
}

/// An event to emit about the ClusterVersion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventDraft {
    /// Whether it calls for attention.
    pub severity: Severity,
    /// Its reason.
    pub reason: Reason,
    /// What was done or tried, in CamelCase: `Update`, `EnableCapability`.
    pub action: &'static str,
    /// What happened, to what, why.
    pub note: String,
    /// The object that it was done to; `None` if that is the ClusterVersion.
    pub related: Option<ObjectKey>,
}

impl EventDraft {
    fn normal(reason: Reason, note: String) -> Self {
        Self { severity: Severity::Normal, reason, action: "Update", note, related: None }
    }

    fn warning(reason: Reason, note: String) -> Self {
        Self { severity: Severity::Warning, ..Self::normal(reason, note) }
    }

    fn action(self, action: &'static str) -> Self {
        Self { action, ..self }
    }

    fn related(self, object: &ObjectKey) -> Self {
        Self { related: Some(object.clone()), ..self }
    }
}

/// This process became the leader.
pub fn leader_elected(identity: &str) -> EventDraft {
    EventDraft::normal(Reason::LeaderElected, format!("{identity} became leader")).action("Lead")
}

/// A definition of ours is left as a newer version of this program installed it.
pub fn definition_newer(name: &str) -> EventDraft {
    let note = format!(
        "CustomResourceDefinition {name} was installed by a newer version of Plimsoll and is left as it \
         is"
    );
    EventDraft::warning(Reason::DefinitionNewer, note).action("InstallDefinition")
}

/// An update to a release starts; `accepted_risks` is empty if there were none.
pub fn update_started(from: &str, to: &str, accepted_risks: &str) -> EventDraft {
    let mut note = format!("Working towards {to}, from {from}");
    if !accepted_risks.is_empty() {
        note.push_str("; accepted risks: ");
        note.push_str(accepted_risks);
    }
    EventDraft::normal(Reason::UpdateStarted, note)
}

/// The features of the cluster changed what is included.
pub fn features_changed(change: &str) -> EventDraft {
    let note = format!("{change}; what is included is decided anew");
    EventDraft::normal(Reason::FeaturesChanged, note)
}

/// A capability became enabled because the ClusterVersion requests it.
pub fn capability_enabled(name: &str) -> EventDraft {
    let note = format!("Capability {name} is enabled, as the ClusterVersion requests");
    EventDraft::normal(Reason::CapabilityEnabled, note)
}

/// A capability becomes enabled because a release makes it necessary.
pub fn capability_implied(implied: &Implied) -> EventDraft {
    EventDraft::normal(Reason::CapabilityImplied, implied.to_string())
        .action("EnableCapability")
        .related(&implied.object)
}

/// An object was repaired after another client had changed it.
pub fn drift_repaired(Drift { key, is_deleted }: &Drift) -> EventDraft {
    let what = if *is_deleted { "deleted" } else { "changed" };
    let note = format!("{key} was {what} by another client and is reverted");
    EventDraft::normal(Reason::DriftRepaired, note).action("Repair").related(key)
}

/// A workload of an Operator is deleted and created again.
pub fn workload_replaced(note: String) -> EventDraft {
    EventDraft::normal(Reason::WorkloadReplaced, note).action("Replace")
}

/// Something about a deletion.
pub fn removal(event: DeletionEvent) -> EventDraft {
    let DeletionEvent { key, reason, is_warning, message } = event;
    let draft = EventDraft::normal(reason, message).action("Delete").related(&key);
    let severity = if is_warning { Severity::Warning } else { Severity::Normal };
    EventDraft { severity, ..draft }
}

/// What events have been emitted about.
#[derive(Debug, Clone)]
pub struct ReportedEvents {
    conditions: Vec<Condition>,
    /// The ClusterOperators of the release that have reached it.
    operators: BTreeSet<String>,
    overrides: Vec<OverrideProgress>,
    override_problems: Vec<String>,
    /// How far the requested release was, and whether that had failed; `None` before the first
    /// look.
    load: Option<(LoadStep, bool)>,
    /// Whether the plan was complete.
    is_completed: bool,
    /// The run level that the update was paused before; `None` while it is not paused.
    paused_before: Option<u32>,
}

impl ReportedEvents {
    /// Starts with what the cluster's statuses say: events about it have been emitted.
    pub fn recorded(conditions: &[Condition], overrides: &[OverrideProgress]) -> Self {
        Self {
            conditions: conditions.to_vec(),
            operators: BTreeSet::new(),
            overrides: overrides.to_vec(),
            override_problems: Vec::new(),
            load: None,
            is_completed: false,
            paused_before: None,
        }
    }

    /// The conditions of the ClusterVersion are these now.
    pub fn conditions(&mut self, conditions: &[Condition]) -> Vec<EventDraft> {
        let drafts = transitions(&self.conditions, conditions).into_iter().map(|transition| {
            let draft = match transition.is_warning {
                true => EventDraft::warning,
                false => EventDraft::normal,
            };
            draft(transition.reason, transition.message)
        });
        let drafts = drafts.collect();
        self.conditions = conditions.to_vec();
        drafts
    }

    /// The operators that have reached the release when the process starts: events about them were
    /// emitted by an earlier one.
    pub fn operators_recorded(&mut self, progress: &Progress) {
        let is_completed = progress.mode() == Mode::Reconciling;
        let reached = gates(progress).filter(|(_, is_passed)| *is_passed || is_completed);
        self.operators = reached.map(|(key, _)| key.name.clone()).collect();
    }

    /// ClusterOperators that have reached the release since the last call.
    pub fn operators(&mut self, progress: &Progress) -> Vec<EventDraft> {
        let version = &progress.plan().release.version;
        let mut drafts = Vec::new();
        for (key, _) in gates(progress).filter(|(_, is_passed)| *is_passed) {
            // Two manifests may be about one ClusterOperator.
            if !self.operators.contains(&key.name) {
                self.operators.insert(key.name.clone());
                let note = format!("ClusterOperator {} is at {version}", key.name);
                let draft = EventDraft::normal(Reason::ClusterOperatorUpdated, note);
                drafts.push(draft.related(key));
            }
        }
        drafts
    }

    /// Another release is applied: its operators have not reached it.
    pub fn release_changed(&mut self) {
        self.operators.clear();
    }

    /// Another plan is under way: it is not complete.
    pub fn plan_changed(&mut self) {
        self.is_completed = false;
    }

    /// Overrides that came into force, expired or were removed since the last call; `None` if
    /// nothing about them changed.
    pub fn overrides(&mut self, overrides: &Overrides, now: Timestamp) -> Option<Vec<EventDraft>> {
        let current = overrides.progress(now);
        if current == self.overrides {
            return None;
        }
        let before = std::mem::replace(&mut self.overrides, current);
        let drafts = overrides::changes(&before, &self.overrides).into_iter().map(|change| {
            let reason = match change.state {
                Some(OverrideState::InForce) => Reason::OverrideInForce,
                Some(OverrideState::Expired) => Reason::OverrideExpired,
                None => Reason::OverrideRemoved,
            };
            EventDraft::normal(reason, change.message).action("Override").related(&change.object)
        });
        Some(drafts.collect())
    }

    /// What is wrong with the terms of overrides, if that changed since the last call.
    pub fn override_problems(&mut self, overrides: &Overrides) -> Option<Vec<EventDraft>> {
        if overrides.problems == self.override_problems {
            return None;
        }
        self.override_problems.clone_from(&overrides.problems);
        let problems = overrides.problems.iter().cloned();
        let draft = |problem| EventDraft::warning(Reason::OverrideTermsInvalid, problem);
        Some(problems.map(draft).collect())
    }

    /// How far the requested release has been accepted; `None` if that did not change, or if it is
    /// the first look at a release that is loaded.
    pub fn load(&mut self, load: &LoadStatus) -> Option<EventDraft> {
        let current = (load.step, load.failure.is_some());
        if self.load == Some(current) {
            return None;
        }
        let is_first = self.load.replace(current).is_none();
        if is_first && load.step == LoadStep::Loaded {
            return None;
        }
        let (status, reason, message) = load.condition();
        Some(match status {
            ConditionStatus::False if load.step != LoadStep::Window => {
                EventDraft::warning(reason, message)
            }
            ConditionStatus::False | ConditionStatus::True | ConditionStatus::Unknown => {
                EventDraft::normal(reason, message)
            }
        })
    }

    /// An update that paused since the last call.
    pub fn paused(&mut self, progress: &Progress) -> Option<EventDraft> {
        let level = progress.paused_at()?;
        if self.paused_before.replace(level) == Some(level) {
            return None;
        }
        let version = &progress.plan().release.version;
        let note = format!("The update to {version} is paused before run level {level}");
        Some(EventDraft::normal(Reason::UpdatePaused, note))
    }

    /// Nothing asks for a pause any more: an update that was paused resumes.
    pub fn resumed(&mut self, version: &str) -> Option<EventDraft> {
        self.paused_before.take()?;
        let note = format!("The update to {version} resumes");
        Some(EventDraft::normal(Reason::UpdateResumed, note))
    }

    /// Whether the plan was completed since the last call, and the event about it: there is none
    /// when the plan only reconciled.
    pub fn completed(&mut self, progress: &Progress) -> (bool, Option<EventDraft>) {
        if progress.passes() == 0 || std::mem::replace(&mut self.is_completed, true) {
            return (false, None);
        }
        if progress.plan().mode == Mode::Reconciling {
            return (true, None);
        }
        let note = format!("Done applying {}", progress.plan().release.version);
        (true, Some(EventDraft::normal(Reason::UpdateCompleted, note)))
    }
}

/// The ClusterOperators of the release, and whether each has reached it.
fn gates(progress: &Progress) -> impl Iterator<Item = (&ObjectKey, bool)> {
    let steps = progress.plan().steps.iter().enumerate();
    steps
        .filter(|(_, step)| step.action == Action::Gate)
        .map(|(index, step)| (&step.manifest.key, progress.is_done(index)))
}

#[cfg(test)]
mod tests;
