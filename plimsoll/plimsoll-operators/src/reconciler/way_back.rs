//! Rollouts of kept revisions. A way back is judged as a way forward is: objects of users may depend on the
//! definitions that the Operator has now.

use std::collections::BTreeSet;

use plimsoll_api::olm::RollbackPolicy;

use super::handler::OperatorHandler;
use super::track::{RevisionInputs, TrackedOperator};

impl TrackedOperator {
    /// Returns the number of the revision that the Operator has: the one that is rolled out, else the installed
    /// one; `None` before the first.
    pub(super) fn current(&self) -> Option<u32> {
        let rollout = self.rollout.as_ref().map(|it| it.number);
        rollout.or_else(|| self.begun()).or(self.installed)
    }

    /// Returns whether the definitions in the cluster are known that the phases of a revision depend on, or it is
    /// rolled out already.
    pub(super) fn knows_definitions(&self, number: u32) -> bool {
        let is_rolled_out = self.rollout.as_ref().is_some_and(|it| it.number == number);
        let revision = self.revisions.get(&number);
        is_rolled_out
            || self.installed == Some(number)
            || revision.is_none_or(|it| it.live.is_some() || !it.has_conversions())
    }

    /// Returns whether the rollout of a bundle is given up for the installed revision, since it is overdue and
    /// the policy says so.
    pub(super) fn is_given_up(&self, bundle: &str) -> bool {
        let overdue = self.overdue().and_then(|number| self.revisions.get(&number));
        self.object.spec.rollback == RollbackPolicy::Automatic
            && overdue.is_some_and(|it| it.bundle.name == bundle)
    }

    /// Returns whether a change of the spec that keeps the bundle is given up for the installed revision, since its
    /// rollout is overdue or was rolled back, and the policy says so.
    pub(super) fn is_change_given_up(&self) -> bool {
        let is_given_up = |it: u32| self.overdue() == Some(it) || self.was_returned_from(it);
        self.changed_revision().is_some_and(is_given_up)
    }

    /// Returns the number of the revision of the installed bundle that was rolled back and has what the spec has
    /// now; `None` if there is none, or the policy is to try it again.
    pub(super) fn rolled_back_change(&self) -> Option<u32> {
        self.changed_revision().filter(|it| self.was_returned_from(*it))
    }

    /// Returns the number of the revision of the installed bundle that was made for the spec as it is; `None` if
    /// there is none, the installed one is for that spec, or nothing is rolled back automatically.
    fn changed_revision(&self) -> Option<u32> {
        let spec = &self.object.spec;
        let (_, installed) = self.installed_revision()?;
        let (config, ready_when) = (spec.config.as_ref(), &spec.ready_when);
        if spec.rollback != RollbackPolicy::Automatic
            || spec.revision.is_some()
            || installed.is_made_for(config, spec.certificates, ready_when, None)
        {
            return None;
        }
        let made = self.made(&self.wanted(&installed.bundle, &[]), None);
        made.map(|(number, _)| number)
    }

    /// Returns the number of the revision whose rollout is overdue; `None` if none is, or no other revision is
    /// installed.
    fn overdue(&self) -> Option<u32> {
        let rollout = self.rollout.as_ref().filter(|it| !it.is_complete && it.overdue.is_some())?;
        self.installed.filter(|it| *it != rollout.number).map(|_| rollout.number)
    }
}

impl OperatorHandler<'_> {
    /// Rolls out a kept revision once its objects are inspected. `risks` are those of the decision.
    pub(super) fn roll_out_kept(&mut self, number: u32, risks: &[String]) {
        let operator = &mut *self.operator;
        // Nothing is applied without the finalizer.
        if operator.installed != Some(number) && !operator.object.has_finalizer() {
            return;
        }
        if !self.is_inspected(number, risks) {
            return;
        }
        let operator = &mut *self.operator;
        operator.forget_preparation();
        let is_automatic = operator.object.spec.rollback == RollbackPolicy::Automatic;
        if is_automatic && operator.overdue().is_some() && operator.installed == Some(number) {
            operator.record_return(number, self.moment.time);
            // The decision is blocked now, so that its bundle is not rolled out again.
            if let Some(decision) = operator.decision.take() {
                operator.decided(self.name, decision);
            }
        }
        let found = operator.revisions.get(&number).into_iter().flat_map(|it| &it.risks);
        let risks: BTreeSet<&String> = risks.iter().chain(found).collect();
        let risks: Vec<String> = risks.into_iter().cloned().collect();
        self.roll_out(number, &risks);
    }

    /// Returns whether a kept revision may be rolled out: its objects were inspected, as those of a new revision
    /// are, or it is the current one. Otherwise they are inspected. `risks` are those of the decision.
    pub(super) fn is_inspected(&mut self, number: u32, risks: &[String]) -> bool {
        let operator = &*self.operator;
        let is_judged = operator.current() == Some(number) || operator.inspected == Some(number);
        if is_judged && operator.knows_definitions(number) {
            return true;
        }
        self.inspect_kept(number, risks);
        false
    }

    /// Continues the rollout of the current revision, and prepares what comes after it. The definitions in the
    /// cluster are inspected first if another process began it.
    pub(super) fn continue_with(&mut self, number: u32) {
        if !self.operator.knows_definitions(number) {
            self.inspect_kept(number, &[]);
            return;
        }
        self.roll_out(number, &[]);
        self.prepare_ahead();
    }

    /// Requests the inspection of the objects of a kept revision unless that was done.
    fn inspect_kept(&mut self, number: u32, risks: &[String]) {
        let operator = &mut *self.operator;
        let revision = operator.revisions.get(&number).filter(|it| it.is_complete());
        let Some(revision) = revision else { return };
        let wanted = RevisionInputs {
            bundle: revision.bundle.clone(),
            config: revision.config.clone(),
            certificates: revision.certificates,
            ready_when: revision.ready_when.clone(),
            namespace: revision.namespace.clone(),
            inspected: None,
            risks: risks.to_vec(),
            generation: operator.object.generation,
        };
        let now = self.moment.uptime;
        if operator.preparation.as_ref().is_some_and(|it| it.is_awaited(&wanted, now)) {
            return;
        }
        let draft = Box::new(revision.draft());
        operator.begin_preparation();
        self.inspect(wanted, draft, Some(number));
    }
}
