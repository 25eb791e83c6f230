//! Next steps of an Operator: its revision is prepared, rolled out, maintained, or deleted.

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::SignedDuration;
use plimsoll_api::Effect;
use plimsoll_api::olm::{BundleReference, RollbackPolicy};
use plimsoll_plan::plan::GroupVersionKind;
use plimsoll_plan::progress::Scope;
use plimsoll_plan::reconciler::execution::PlanExecution;
use plimsoll_plan::reconciler::removals::Removals;

use super::deletion;
use super::events::OperatorEffect;
use super::handler::OperatorHandler;
use super::prepare::PreparedRevision;
use super::revision::KeptRevision;
use super::track::{OperatorRollout, RevisionInputs};
use crate::OperatorAction;
use crate::rollout::rollout;

/// The revision that an Operator is to have.
enum TargetRevision {
    /// A kept revision, by number.
    Kept(u32),
    /// A revision that has to be made of a bundle.
    New(Box<RevisionInputs>),
    /// The current one.
    Unchanged,
}

impl OperatorHandler<'_> {
    /// Determines the next step of the Operator.
    pub(super) fn reconcile(&mut self) {
        let operator = &mut *self.operator;
        (operator.waiting, operator.set_block) = (None, None);
        let Some(decision) = &operator.decision else { return };
        if decision.action == OperatorAction::Delete || operator.object.deleted.is_some() {
            self.remove();
            return;
        }
        let is_paused = decision.action == OperatorAction::Paused;
        let is_held = is_paused || !operator.is_rollout_recorded();
        if let Some(rollout) = &mut operator.rollout {
            match is_held {
                true => rollout.execution.hold(),
                false => rollout.execution.release(),
            }
        }
        if is_paused {
            operator.forget_preparation();
            return;
        }
        self.start();
        let operator = &mut *self.operator;
        let is_requested = operator.is_finalizer_write_pending || operator.finalizer_at.is_some();
        if !operator.object.has_finalizer() && !is_requested {
            operator.is_finalizer_write_pending = true;
            self.output.effects.push(OperatorEffect::SetFinalizer {
                operator: self.name.to_owned(),
                before: operator.object.finalizers.clone(),
                is_added: true,
            });
        }
        self.check_rollout();
        let target = self.target();
        if let TargetRevision::Kept(number) = target {
            self.roll_out(number, &[]);
        }
        match target {
            TargetRevision::New(wanted) => {
                let prepared = self.prepare(*wanted);
                if let Some(PreparedRevision { number, risks }) = self.with_change_set(prepared) {
                    self.roll_out(number, &risks);
                }
            }
            TargetRevision::Kept(_) | TargetRevision::Unchanged => self.prepare_ahead(),
        }
        // The installed revision is maintained until another one is rolled out.
        self.maintain_installed();
        self.delete_leftovers();
    }

    /// Returns the revision that the Operator is to have, by the last decision.
    fn target(&self) -> TargetRevision {
        let operator = &*self.operator;
        let Some(decision) = &operator.decision else { return TargetRevision::Unchanged };
        let spec = &operator.object.spec;
        if let Some(number) = self.begun() {
            return TargetRevision::Kept(number);
        }
        let wanted = |bundle: &BundleReference, risks: &[String]| {
            TargetRevision::New(Box::new(operator.wanted(bundle, risks)))
        };
        let is_up_to_date = |it: &KeptRevision| it.is_made_for(spec.config.as_ref(), self.facts);
        let installed = operator.installed_revision();
        match &decision.action {
            OperatorAction::Install(chosen) | OperatorAction::Upgrade(chosen) => {
                let is_chosen = |it: &KeptRevision| {
                    it.bundle.name == chosen.reference.name && is_up_to_date(it)
                };
                match installed.filter(|(_, it)| is_chosen(it)) {
                    // The decision was made before the revision was complete; the next one is different.
                    Some((number, _)) => TargetRevision::Kept(number),
                    None => wanted(&chosen.reference, &chosen.accepted_risks),
                }
            }
            OperatorAction::RollBack { revision } => TargetRevision::Kept(*revision),
            OperatorAction::Keep | OperatorAction::Blocked(_) => match installed {
                Some((number, it)) if spec.revision.is_some() || is_up_to_date(it) => {
                    TargetRevision::Kept(number)
                }
                Some((_, it)) => wanted(&it.bundle, &[]),
                None => TargetRevision::Unchanged,
            },
            OperatorAction::Paused | OperatorAction::Delete => TargetRevision::Unchanged,
        }
    }

    /// Returns the revision whose rollout has begun and is to be completed; `None` if there is none, the
    /// rollout failed, or the spec changed.
    fn begun(&self) -> Option<u32> {
        let operator = &*self.operator;
        let Some(rollout) = &operator.rollout else {
            // A previous process may have begun one.
            let requested = operator.object.spec.revision;
            return operator
                .begun()
                .filter(|it| requested.is_none_or(|requested| requested == *it));
        };
        let fails = || {
            let problems = rollout.execution.progress().problems(self.moment.steady);
            problems.iter().any(|it| it.effect == Some(Effect::Fail))
        };
        let is_continued = !rollout.is_complete
            && rollout.generation == operator.object.generation
            && rollout.overdue.is_none()
            && !fails();
        is_continued.then_some(rollout.number)
    }

    /// Begins the rollout of a revision unless it is in progress or complete.
    pub(super) fn roll_out(&mut self, number: u32, risks: &[String]) {
        let run = self.output.ticket();
        let operator = &mut *self.operator;
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
        let kinds: BTreeSet<GroupVersionKind> = kinds.chain(deletion::always_watched()).collect();
        // All served kinds would be too many for each rollout.
        let served = &self.cluster.served;
        let served = kinds.iter().filter_map(|kind| Some((kind.clone(), *served.get(kind)?)));
        let served: Vec<(GroupVersionKind, Scope)> = served.collect();
        let steady = self.moment.steady;
        let (mut execution, began) = PlanExecution::new(plan, served, Removals::default(), steady);
        if is_installed {
            // The watches show whether the objects are still applied.
            let done: Vec<usize> = (0..count).collect();
            execution.resume(&done, steady);
        } else {
            operator.record_begin(number, risks, self.moment.time);
            // Another process has to find what this one began, so that it is recorded first.
            execution.hold();
            operator.status_at = None;
        }
        operator.rollout = Some(OperatorRollout {
            run,
            number,
            generation: operator.object.generation,
            execution,
            namespaces,
            kinds,
            began: steady,
            is_complete: is_installed,
            overdue: None,
            is_cleaned_up: false,
        });
        self.is_request_outdated = true;
        self.carry_out(began);
        self.start();
    }

    /// Maintains the installed revision while no other one is rolled out.
    fn maintain_installed(&mut self) {
        if self.operator.rollout.is_none()
            && let Some((number, _)) = self.operator.installed_revision()
        {
            self.roll_out(number, &[]);
        }
    }

    /// Marks a rollout as complete, or as overdue and rolls it back if the policy says so.
    fn check_rollout(&mut self) {
        let Some(rollout) = self.operator.rollout.as_mut().filter(|it| !it.is_complete) else {
            return;
        };
        if rollout.execution.progress().passes() > 0 {
            rollout.is_complete = true;
            let number = rollout.number;
            self.operator.record_completion(number, self.moment.time);
            self.operator.forget_preparation();
            self.forget_old_revisions();
            self.is_request_outdated = true;
            self.output.undecided.insert(self.name.to_owned());
            return;
        }
        let elapsed = self.moment.steady.duration_since(rollout.began);
        let limit = self.operator.object.deadline.and_then(|it| SignedDuration::try_from(it).ok());
        if rollout.overdue.is_none() && limit.is_some_and(|limit| elapsed >= limit) {
            self.rollout_overdue();
        }
    }

    /// Marks the rollout as overdue, and rolls it back if the policy says so.
    fn rollout_overdue(&mut self) {
        let operator = &mut *self.operator;
        let Some(rollout) = &mut operator.rollout else { return };
        let limit = &operator.object.spec.progress_deadline;
        let problems = rollout.execution.progress().problems(self.moment.steady);
        let waits = problems.first().map(|it| format!(": {}", it.message)).unwrap_or_default();
        rollout.overdue = Some(format!("it is not complete after {limit}{waits}"));
        let failed = rollout.number;
        let is_automatic = operator.object.spec.rollback == RollbackPolicy::Automatic;
        let last_good = operator.installed.filter(|it| *it != failed);
        if let Some(number) = last_good.filter(|_| is_automatic) {
            operator.record_return(number, self.moment.time);
            // The decision is blocked now, so that its bundle is not rolled out again.
            if let Some(decision) = operator.decision.take() {
                operator.decided(self.name, decision);
            }
            self.roll_out(number, &[]);
        }
    }

    /// Deletes the OperatorRevisions that are no longer kept.
    fn forget_old_revisions(&mut self) {
        let operator = &*self.operator;
        let rollout = operator.rollout.as_ref().map(|it| it.number);
        let kept = [operator.installed, rollout, operator.object.spec.revision];
        let newest = operator.revisions.keys().rev().take(super::REVISIONS_KEPT);
        let kept: BTreeSet<u32> = newest.copied().chain(kept.into_iter().flatten()).collect();
        let old = operator.revisions.iter().filter(|(number, _)| !kept.contains(number));
        let names = old.flat_map(|(_, revision)| revision.names().map(str::to_owned));
        self.output.effects.extend(names.map(OperatorEffect::DeleteRevision));
    }
}
