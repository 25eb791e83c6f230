//! Next steps of an Operator: its revision is prepared, rolled out, maintained, or deleted.

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::SignedDuration;
use plimsoll_api::Effect;
use plimsoll_api::olm::BundleReference;
use plimsoll_plan::plan::GroupVersionKind;
use plimsoll_plan::progress::Scope;
use plimsoll_plan::reconciler::execution::PlanExecution;
use plimsoll_plan::reconciler::removals::Removals;

use super::deletion;
use super::events::OperatorEffect;
use super::handler::OperatorHandler;
use super::parse::progress_deadline;
use super::prepare::PreparedRevision;
use super::revision::KeptRevision;
use super::track::{OperatorRollout, RevisionInputs};
use crate::OperatorAction;

/// The revision that an Operator is to have.
enum TargetRevision {
    /// A revision whose rollout has begun, by number.
    Begun(u32),
    /// A kept revision.
    Kept {
        /// The number of the revision.
        number: u32,
        /// The accepted risks of applying it, as sentences.
        risks: Vec<String>,
    },
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
        self.continue_inspection();
        match self.target() {
            TargetRevision::Unchanged => self.prepare_ahead(),
            TargetRevision::Begun(number) => self.continue_with(number),
            TargetRevision::Kept { number, .. } if self.operator.current() == Some(number) => {
                self.continue_with(number);
            }
            TargetRevision::Kept { number, risks } => self.roll_out_kept(number, &risks),
            TargetRevision::New(wanted) => {
                let prepared = self.prepare(*wanted);
                if let Some(PreparedRevision { number, risks }) = self.with_change_set(prepared) {
                    self.roll_out_kept(number, &risks);
                }
            }
        }
        // The current revision is maintained until another one is rolled out.
        self.maintain_current();
        self.delete_leftovers();
    }

    /// Returns the revision that the Operator is to have, by the last decision.
    fn target(&self) -> TargetRevision {
        let operator = &*self.operator;
        let Some(decision) = &operator.decision else { return TargetRevision::Unchanged };
        let spec = &operator.object.spec;
        if let Some(number) = self.begun() {
            return TargetRevision::Begun(number);
        }
        let kept = |number: u32| TargetRevision::Kept { number, risks: Vec::new() };
        let wanted = |bundle: &BundleReference, risks: &[String]| {
            TargetRevision::New(Box::new(operator.wanted(bundle, risks)))
        };
        let is_up_to_date = |it: &KeptRevision| {
            it.is_made_for(spec.config.as_ref(), spec.certificates, &spec.ready_when, self.facts)
        };
        let installed = operator.installed_revision();
        match &decision.action {
            OperatorAction::Install(chosen) | OperatorAction::Upgrade(chosen) => {
                let is_chosen = |it: &KeptRevision| {
                    it.bundle.name == chosen.reference.name && is_up_to_date(it)
                };
                let is_given_up = operator.is_given_up(&chosen.reference.name);
                match installed.filter(|(_, it)| is_given_up || is_chosen(it)) {
                    // Either the rollout of the bundle is given up for the installed revision, or the decision
                    // was made before the revision was complete; the next one is different.
                    Some((number, _)) => kept(number),
                    None => wanted(&chosen.reference, &chosen.accepted_risks),
                }
            }
            OperatorAction::RollBack { revision, accepted_risks } => {
                TargetRevision::Kept { number: *revision, risks: accepted_risks.clone() }
            }
            OperatorAction::Keep | OperatorAction::Blocked(_) => match installed {
                Some((number, it))
                    if spec.revision.is_some()
                        || is_up_to_date(it)
                        || operator.is_change_given_up() =>
                {
                    kept(number)
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
        let requested = operator.object.spec.revision;
        let is_requested = |it: &u32| requested.is_none_or(|requested| requested == *it);
        let Some(rollout) = &operator.rollout else {
            // A previous process may have begun one.
            return operator.begun().filter(is_requested);
        };
        let fails = || {
            let problems = rollout.execution.progress().problems(self.moment.steady);
            problems.iter().any(|it| it.effect == Some(Effect::Fail))
        };
        let is_continued = !rollout.is_complete
            && rollout.generation == operator.object.generation
            && rollout.overdue.is_none()
            && !fails();
        is_continued.then_some(rollout.number).filter(is_requested)
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
        if !operator.knows_definitions(number) {
            return;
        }
        let revision = operator.revisions.get_mut(&number).filter(|it| it.is_complete());
        let Some(revision) = revision else { return };
        // The next rollout of the revision may find others.
        let live = revision.live.take().filter(|_| !is_installed);
        let plan = Arc::new(revision.plan(live.as_deref()));
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
        operator.inspected = None;
        operator.rollout = Some(OperatorRollout {
            run,
            number,
            generation: operator.object.generation,
            execution,
            namespaces,
            kinds,
            began: steady,
            has_met_deadline: false,
            is_complete: is_installed,
            overdue: None,
            is_cleaned_up: false,
        });
        self.is_request_outdated = true;
        self.carry_out(began);
        self.start();
    }

    /// Maintains the current revision while no other one is rolled out.
    fn maintain_current(&mut self) {
        if self.operator.rollout.is_none()
            && let Some(number) = self.operator.current()
        {
            self.roll_out(number, &[]);
        }
    }

    /// Marks a rollout as complete, or as overdue.
    fn check_rollout(&mut self) {
        let Some(rollout) = self.operator.rollout.as_mut().filter(|it| !it.is_complete) else {
            return;
        };
        if rollout.execution.progress().passes() > 0 {
            rollout.is_complete = true;
            let number = rollout.number;
            self.operator.record_completion(number, self.moment.time);
            self.operator.forget_preparation();
            self.is_request_outdated = true;
            self.output.undecided.insert(self.name.to_owned());
            return;
        }
        rollout.note_readiness();
        let is_limited = rollout.overdue.is_none() && !rollout.has_met_deadline;
        let elapsed = self.moment.steady.duration_since(rollout.began);
        let limit = self.operator.object.deadline.and_then(|it| SignedDuration::try_from(it).ok());
        if is_limited && limit.is_some_and(|limit| elapsed >= limit) {
            self.rollout_overdue();
        }
    }

    /// Marks the rollout as overdue.
    fn rollout_overdue(&mut self) {
        let operator = &mut *self.operator;
        let Some(rollout) = &mut operator.rollout else { return };
        let limit = progress_deadline(&operator.object.spec);
        let problems = rollout.execution.progress().problems(self.moment.steady);
        let waits = problems.first().map(|it| format!(": {}", it.message)).unwrap_or_default();
        rollout.overdue = Some(format!("it is not complete after {limit}{waits}"));
    }

    /// Deletes the OperatorRevisions that are no longer kept. What only they record has to be deleted before.
    pub(super) fn forget_old_revisions(&mut self) {
        let operator = &*self.operator;
        let rollout = operator.rollout.as_ref().map(|it| it.number);
        let kept = [operator.installed, rollout, operator.object.spec.revision];
        let newest = operator.revisions.keys().rev().take(super::REVISIONS_KEPT);
        let kept: BTreeSet<u32> = newest.copied().chain(kept.into_iter().flatten()).collect();
        let old = operator.revisions.iter().filter(|(number, _)| !kept.contains(number));
        let written = self.written_revisions;
        let names = old.flat_map(|(_, revision)| revision.names());
        self.output.effects.extend(names.filter_map(|name| {
            let uid = written.get(name)?.uid.clone();
            Some(OperatorEffect::DeleteRevision { name: name.to_owned(), uid })
        }));
    }
}
