//! Next steps of an Operator: its revision is prepared, rolled out, maintained, or deleted.

use std::collections::BTreeSet;
use std::sync::Arc;

use plimsoll_api::config::UpdateState;
use plimsoll_api::olm::{BundleReference, RollbackPolicy};
use plimsoll_api::{Effect, GroupKind};
use plimsoll_plan::plan::GroupVersionKind;
use plimsoll_plan::progress::{Mark, NamespaceState, Scope, StepOutcome, Trace};
use plimsoll_plan::reconciler::discovery::GroupVersion;
use plimsoll_plan::reconciler::execution::{
    ExecutionEffect, ExecutionEvent, Observation, PlanExecution,
};
use plimsoll_plan::reconciler::removals::Removals;
use plimsoll_plan::reconciler::watches::WatchScope;

use super::observed::{ObservedObject, WatchedChange};
use super::prepare::Step;
use super::removal;
use super::revision::KeptRevision;
use super::track::{OperatorRollout, RevisionInputs};
use super::{Moment, OperatorEffect, OperatorReconciler};
use crate::OperatorAction;
use crate::rollout::rollout;

/// The revision that an Operator is to have.
enum Target {
    /// A kept revision, by number.
    Revision(u32),
    /// A revision that has to be made of a bundle.
    Bundle(Box<RevisionInputs>),
    /// The current one.
    Unchanged,
}

impl OperatorReconciler {
    /// Determines the next step of an Operator.
    pub(super) fn act(&mut self, name: &str, moment: Moment) {
        let Some(operator) = self.operators.get_mut(name) else { return };
        let Some(decision) = &operator.decision else { return };
        if decision.action == OperatorAction::Delete || operator.object.deleted.is_some() {
            self.remove(name, moment);
            return;
        }
        let is_paused = decision.action == OperatorAction::Paused;
        if let Some(rollout) = &mut operator.rollout {
            match is_paused {
                true => rollout.execution.hold(),
                false => rollout.execution.release(),
            }
        }
        if is_paused {
            operator.forget_preparation();
            return;
        }
        let is_requested = operator.is_finalizer_write_pending || operator.finalizer_at.is_some();
        if !operator.object.has_finalizer() && !is_requested {
            operator.is_finalizer_write_pending = true;
            self.effects.push(OperatorEffect::SetFinalizer {
                operator: name.to_owned(),
                before: operator.object.finalizers.clone(),
                is_added: true,
            });
        }
        self.check_rollout(name, moment);
        match self.target(name, moment) {
            Target::Unchanged => {
                if let Some(operator) = self.operators.get_mut(name) {
                    operator.forget_preparation();
                }
            }
            Target::Revision(number) => {
                if let Some(operator) = self.operators.get_mut(name) {
                    operator.forget_preparation();
                }
                self.roll_out(name, number, &[], moment);
            }
            Target::Bundle(wanted) => match self.prepare(name, *wanted, moment) {
                Step::Ready { number, risks } => {
                    self.roll_out(name, number, &risks, moment);
                }
                Step::Waits => {}
            },
        }
        // The installed revision is maintained until another one is rolled out.
        self.maintain_installed(name, moment);
        self.tidy(name, moment);
    }

    /// Returns the revision that an Operator is to have, by the last decision.
    fn target(&self, name: &str, moment: Moment) -> Target {
        let Some(operator) = self.operators.get(name) else { return Target::Unchanged };
        let Some(decision) = &operator.decision else { return Target::Unchanged };
        let under_way = operator.rollout.as_ref().filter(|it| !it.is_complete);
        // A rollout that has begun is completed, unless it failed or the spec changed.
        if let Some(rollout) = under_way
            && rollout.generation == operator.object.generation
            && rollout.overdue.is_none()
            && !self.is_failing(name, moment)
        {
            return Target::Revision(rollout.number);
        }
        if operator.rollout.is_none()
            && let Some(number) = operator.begun()
            && operator.object.spec.revision.is_none_or(|it| it == number)
        {
            // A previous process began the rollout.
            return Target::Revision(number);
        }
        let spec = &operator.object.spec;
        let wanted = |bundle: &BundleReference, risks: &[String]| {
            Box::new(RevisionInputs {
                bundle: bundle.clone(),
                config: spec.config.clone(),
                namespace: spec.namespace.clone(),
                risks: risks.to_vec(),
                generation: operator.object.generation,
            })
        };
        match &decision.action {
            OperatorAction::Install(chosen) | OperatorAction::Upgrade(chosen) => {
                let is_chosen = |it: &KeptRevision| {
                    it.bundle.name == chosen.reference.name
                        && it.is_made_for(spec.config.as_ref(), self.facts.as_ref())
                };
                match operator.installed_revision().filter(|(_, it)| is_chosen(it)) {
                    // The decision was made before the revision was complete; the next one is different.
                    Some((number, _)) => Target::Revision(number),
                    None => Target::Bundle(wanted(&chosen.reference, &chosen.accepted_risks)),
                }
            }
            OperatorAction::RollBack { revision } => Target::Revision(*revision),
            OperatorAction::Keep | OperatorAction::Blocked(_) => {
                match operator.installed_revision() {
                    Some((number, installed)) => {
                        let is_as_configured = spec.revision.is_some()
                            || installed.is_made_for(spec.config.as_ref(), self.facts.as_ref());
                        match is_as_configured {
                            true => Target::Revision(number),
                            false => Target::Bundle(wanted(&installed.bundle, &[])),
                        }
                    }
                    None => Target::Unchanged,
                }
            }
            OperatorAction::Paused | OperatorAction::Delete => Target::Unchanged,
        }
    }

    /// Returns whether a rollout has a failure that does not resolve by itself.
    fn is_failing(&self, name: &str, moment: Moment) -> bool {
        let rollout = self.operators.get(name).and_then(|it| it.rollout.as_ref());
        rollout.is_some_and(|rollout| {
            let problems = rollout.execution.progress().problems(moment.steady);
            problems.iter().any(|it| it.effect == Some(Effect::Fail))
        })
    }

    /// Begins the rollout of a revision unless it is in progress or complete.
    fn roll_out(&mut self, name: &str, number: u32, risks: &[String], moment: Moment) {
        let run = self.ticket();
        let Some(operator) = self.operators.get_mut(name) else { return };
        if operator.rollout.as_ref().is_some_and(|it| it.number == number) {
            return;
        }
        let is_installed = operator.installed == Some(number);
        // Nothing is applied without the finalizer, so that a deletion can follow its order.
        if !is_installed && !operator.object.has_finalizer() {
            return;
        }
        let Some(revision) = operator.revisions.get(&number).filter(|it| it.is_complete()) else {
            return;
        };
        let plan = Arc::new(rollout(&revision.bundle, revision.manifests().cloned()));
        let namespaces = plan.steps.iter().map(|it| it.manifest.key.namespace.clone());
        let namespaces: BTreeSet<String> = namespaces.filter(|it| !it.is_empty()).collect();
        let count = plan.steps.len();
        let kinds = plan.steps.iter().flat_map(|it| it.serves.iter().cloned().chain([it.kind()]));
        // Namespaces and definitions are watched for the objects that wait for them.
        let kinds: BTreeSet<GroupVersionKind> = kinds.chain(removal::always_watched()).collect();
        // All served kinds would be too many for each rollout.
        let served = kinds.iter().filter_map(|kind| Some((kind.clone(), *self.served.get(kind)?)));
        let served: Vec<(GroupVersionKind, Scope)> = served.collect();
        let (mut execution, began) =
            PlanExecution::new(plan, served, Removals::default(), moment.steady);
        if is_installed {
            // The watches show whether the objects are still applied.
            let done: Vec<usize> = (0..count).collect();
            execution.resume(&done, moment.steady);
        } else {
            operator.record_begin(number, risks, moment.time);
        }
        operator.rollout = Some(OperatorRollout {
            run,
            number,
            generation: operator.object.generation,
            execution,
            namespaces,
            kinds,
            began: moment.steady,
            is_complete: is_installed,
            overdue: None,
            is_tidy: false,
        });
        self.refresh_request(name);
        self.carry_out(name, began, moment);
        self.start(name, moment);
    }

    /// Maintains the installed revision while no other one is rolled out.
    fn maintain_installed(&mut self, name: &str, moment: Moment) {
        let Some(operator) = self.operators.get(name) else { return };
        if operator.rollout.is_some() {
            return;
        }
        if let Some((number, _)) = operator.installed_revision() {
            self.roll_out(name, number, &[], moment);
        }
    }

    /// Marks a rollout as complete, or as overdue and rolls it back if the policy says so.
    fn check_rollout(&mut self, name: &str, moment: Moment) {
        let Some(operator) = self.operators.get_mut(name) else { return };
        let deadline = operator.object.deadline;
        let Some(rollout) = operator.rollout.as_mut().filter(|it| !it.is_complete) else { return };
        if rollout.execution.progress().passes() > 0 {
            rollout.is_complete = true;
            let number = rollout.number;
            operator.installed = Some(number);
            if let Some(entry) = operator.history.iter_mut().find(|it| it.revision == number) {
                entry.state = UpdateState::Completed;
                entry.completion_time = Some(moment.time);
            }
            operator.forget_preparation();
            self.forget_old_revisions(name);
            self.refresh_request(name);
            self.undecided.insert(name.to_owned());
            return;
        }
        let elapsed = moment.steady.duration_since(rollout.began);
        let limit = deadline.and_then(|it| jiff::SignedDuration::try_from(it).ok());
        if rollout.overdue.is_none() && limit.is_some_and(|limit| elapsed >= limit) {
            let limit = &operator.object.spec.progress_deadline;
            let problems = rollout.execution.progress().problems(moment.steady);
            let waits = problems.first().map(|it| format!(": {}", it.message)).unwrap_or_default();
            rollout.overdue = Some(format!("it is not complete after {limit}{waits}"));
            let failed = rollout.number;
            let is_automatic = operator.object.spec.rollback == RollbackPolicy::Automatic;
            let last_good = operator.installed.filter(|it| *it != failed);
            if let Some(number) = last_good.filter(|_| is_automatic) {
                operator.record_return(number, moment.time);
                // The decision is blocked now, so that its bundle is not rolled out again.
                if let Some(decision) = operator.decision.take() {
                    operator.decided(name, decision);
                }
                self.roll_out(name, number, &[], moment);
            }
        }
    }

    /// Deletes the OperatorRevisions that are no longer kept.
    fn forget_old_revisions(&mut self, name: &str) {
        let Some(operator) = self.operators.get(name) else { return };
        let rollout = operator.rollout.as_ref().map(|it| it.number);
        let kept = [operator.installed, rollout, operator.object.spec.revision];
        let newest = operator.revisions.keys().rev().take(super::REVISIONS_KEPT);
        let kept: BTreeSet<u32> = newest.copied().chain(kept.into_iter().flatten()).collect();
        let old = operator.revisions.iter().filter(|(number, _)| !kept.contains(number));
        let names = old.flat_map(|(_, revision)| revision.names().map(str::to_owned));
        self.effects.extend(names.map(OperatorEffect::DeleteRevision));
    }

    /// Handles the end of the execution of a step.
    pub(super) fn executed(
        &mut self,
        name: &str,
        run: u64,
        step: usize,
        outcome: StepOutcome,
        moment: Moment,
    ) {
        // The watches show the effects of an execution that was abandoned.
        if self.is_running(name, run) {
            self.execute(name, ExecutionEvent::Executed(step, outcome), moment);
        }
    }

    fn is_running(&self, name: &str, run: u64) -> bool {
        let rollout = self.operators.get(name).and_then(|it| it.rollout.as_ref());
        rollout.is_some_and(|it| it.run == run)
    }

    /// Passes an event to a rollout.
    fn execute(&mut self, name: &str, event: ExecutionEvent, moment: Moment) {
        let Some(operator) = self.operators.get_mut(name) else { return };
        let Some(rollout) = &mut operator.rollout else { return };
        let what = rollout.execution.handle(event, moment.steady, moment.uptime);
        for drift in rollout.execution.take_drifted() {
            self.effects.push(OperatorEffect::Emit {
                operator: name.to_owned(),
                uid: operator.object.uid.clone(),
                draft: plimsoll_plan::reconciler::events::drift_repaired(&drift),
            });
        }
        self.unsettled.insert(name.to_owned());
        self.carry_out(name, what, moment);
    }

    /// Starts the steps of a rollout that are due.
    pub(super) fn start(&mut self, name: &str, moment: Moment) {
        let Some(operator) = self.operators.get_mut(name) else { return };
        let Some(rollout) = &mut operator.rollout else { return };
        let what = rollout.execution.start_due(moment.steady);
        self.carry_out(name, what, moment);
    }

    /// Converts the effects of a rollout. A watch that exists already is answered from what it has shown.
    fn carry_out(&mut self, name: &str, what: Vec<ExecutionEffect>, moment: Moment) {
        let mut watches = Vec::new();
        if let Some(rollout) = self.operators.get(name).and_then(|it| it.rollout.as_ref()) {
            for effect in what {
                match effect {
                    ExecutionEffect::Execute { step, fills_related_objects: _ } => {
                        self.effects.push(OperatorEffect::Execute {
                            operator: name.to_owned(),
                            run: rollout.run,
                            plan: Arc::clone(rollout.execution.progress().plan()),
                            step,
                        });
                    }
                    ExecutionEffect::Watch(watch) => watches.push(watch.kind),
                }
            }
        }
        for kind in watches {
            let group_kind = GroupKind::new(&kind.group, &kind.kind);
            self.watch(kind);
            self.replay(name, &group_kind, moment);
        }
    }

    /// Starts the watch of a kind unless it exists.
    pub(super) fn watch(&mut self, kind: GroupVersionKind) {
        let group_kind = GroupKind::new(&kind.group, &kind.kind);
        let scope = WatchScope::of(&group_kind);
        if self.watched.insert(group_kind) {
            self.effects.push(OperatorEffect::Watch(kind, scope));
        }
    }

    /// Passes to a rollout what a watch has shown before the rollout began.
    fn replay(&mut self, name: &str, kind: &GroupKind, moment: Moment) {
        let of_operator = self.observed.labelled(name).filter(|it| it.key.group_kind() == *kind);
        let mut shown: Vec<Observation> = of_operator.flat_map(observations).collect();
        if kind.group.is_empty()
            && kind.kind == "Namespace"
            && let Some(rollout) = self.operators.get(name).and_then(|it| it.rollout.as_ref())
        {
            let namespaces = rollout.namespaces.iter();
            shown.extend(namespaces.filter_map(|name| {
                let state = Some(*self.observed.namespaces.get(name)?);
                Some(Observation::Namespace { name: name.clone(), state })
            }));
        }
        if self.observed.kinds.get(kind).is_some_and(|known| known.is_listed) {
            shown.push(Observation::Listed(kind.clone()));
        }
        for observation in shown {
            self.execute(name, ExecutionEvent::Observed(observation), moment);
        }
    }

    /// Handles a change that a watch showed.
    pub(super) fn watched_changed(
        &mut self,
        kind: &GroupKind,
        change: &WatchedChange,
        moment: Moment,
    ) {
        let before = self.observed.change(kind, change);
        let previous = before.map(|it| it.operator).unwrap_or_default();
        match change {
            WatchedChange::Present(object) => {
                let revision = object.mark.revision;
                if previous != object.operator {
                    // Without the label, the object does not belong to the Operator until it is applied
                    // again.
                    self.observe_gone(&previous, object.key.clone(), revision, moment);
                }
                for observation in observations(object) {
                    let event = ExecutionEvent::Observed(observation);
                    self.execute(&object.operator, event, moment);
                }
                if object.whole.is_some() {
                    self.refresh_request(&object.operator);
                    self.undecided.insert(object.operator.clone());
                }
                self.unsettled.insert(object.operator.clone());
            }
            WatchedChange::Gone { key, revision } => {
                self.observe_gone(&previous, key.clone(), *revision, moment);
                self.unsettled.insert(previous);
                if kind.group.is_empty() && kind.kind == "Namespace" {
                    // The deletion of a shared namespace may be for another Operator than the one in its
                    // label.
                    self.unsettle_deleting();
                }
            }
            WatchedChange::Listed => {
                let names: Vec<String> = self.operators.keys().cloned().collect();
                for name in names {
                    let has_kind = self.operators.get(&name).and_then(|it| it.rollout.as_ref());
                    let has_kind = has_kind.is_some_and(|it| {
                        let steps = &it.execution.progress().plan().steps;
                        kind.kind == "Namespace"
                            || steps.iter().any(|step| step.manifest.key.group_kind() == *kind)
                    });
                    if has_kind {
                        let event = ExecutionEvent::Observed(Observation::Listed(kind.clone()));
                        self.execute(&name, event, moment);
                    }
                }
                self.unsettle_deleting();
            }
        }
    }

    fn observe_gone(
        &mut self,
        name: &str,
        key: plimsoll_api::ObjectKey,
        revision: u64,
        moment: Moment,
    ) {
        let mark = Mark::new(revision, Trace::Gone);
        let gone = Observation::Object { key, mark, health: None, terminating: None };
        self.execute(name, ExecutionEvent::Observed(gone), moment);
    }

    /// Handles a change of a namespace.
    pub(super) fn namespace_changed(
        &mut self,
        namespace: &str,
        state: Option<NamespaceState>,
        moment: Moment,
    ) {
        match state {
            Some(state) => self.observed.namespaces.insert(namespace.to_owned(), state),
            None => self.observed.namespaces.remove(namespace),
        };
        for name in self.rolling_out_in(namespace) {
            let observation = Observation::Namespace { name: namespace.to_owned(), state };
            self.execute(&name, ExecutionEvent::Observed(observation), moment);
        }
    }

    /// Handles a change of a definition: rollouts that wait for its kind request discovery soon.
    pub(super) fn definition_changed(&mut self, group: &str, plural: &str, moment: Moment) {
        let waiting = self.rolling_out_group(group, |it| it.execution.discover_at().is_some());
        for name in waiting {
            let (group, plural) = (group.to_owned(), plural.to_owned());
            let observation = Observation::Definition { group, plural };
            self.execute(&name, ExecutionEvent::Observed(observation), moment);
        }
    }

    /// Handles the result of discovery.
    pub(super) fn discovered(
        &mut self,
        version: &GroupVersion,
        kinds: &[(GroupVersionKind, Scope)],
        moment: Moment,
    ) {
        self.served.extend(kinds.iter().cloned());
        let is_of =
            |kind: &GroupVersionKind| (&kind.group, &kind.version) == (&version.0, &version.1);
        let concerned = self.rolling_out_group(&version.0, |it| it.kinds.iter().any(is_of));
        for name in concerned {
            let event = ExecutionEvent::Discovered(version.clone(), kinds.to_vec());
            self.execute(&name, event, moment);
        }
    }
}

/// Returns what a rollout observes of an object.
fn observations(object: &ObservedObject) -> Vec<Observation> {
    let mut shown = Vec::new();
    if let Some(whole) = &object.whole {
        shown.push(Observation::Operator {
            name: object.key.name.clone(),
            revision: object.mark.revision,
            object: Some(whole.clone()),
        });
    }
    shown.push(Observation::Object {
        key: object.key.clone(),
        mark: object.mark,
        health: object.health.clone(),
        terminating: object.terminating.clone(),
    });
    shown
}
