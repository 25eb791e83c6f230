//! Executions of rollouts: the events of a plan under way, and the effects that follow from them.

use std::sync::Arc;

use plimsoll_api::GroupKind;
use plimsoll_plan::progress::StepOutcome;
use plimsoll_plan::reconciler::events::drift_repaired;
use plimsoll_plan::reconciler::execution::{ExecutionEffect, ExecutionEvent, Observation};

use super::events::OperatorEffect;
use super::handler::OperatorHandler;
use super::observed::ObservedObject;

impl OperatorHandler<'_> {
    /// Handles the end of the execution of a step.
    pub(super) fn executed(&mut self, run: u64, step: usize, outcome: StepOutcome) {
        self.operator.executing.remove(&(run, step));
        if self.operator.removal.is_some() {
            self.mark_pending();
        }
        // The watches show the effects of an execution that was abandoned.
        let Some(rollout) = self.operator.rollout.as_ref().filter(|it| it.run == run) else {
            return;
        };
        let plan = rollout.execution.progress().plan();
        let (action, version) = (&plan.steps[step].action, &plan.release.version);
        self.output.counters.executed(action, version, &outcome);
        self.execute(ExecutionEvent::Executed(step, outcome));
    }

    /// Passes an event to the rollout.
    pub(super) fn execute(&mut self, event: ExecutionEvent) {
        let Some(rollout) = &mut self.operator.rollout else { return };
        let effects = rollout.execution.handle(event, self.moment.steady, self.moment.uptime);
        for drift in rollout.execution.take_drifted() {
            self.output.drift_repairs += 1;
            self.emit(drift_repaired(&drift));
        }
        self.mark_pending();
        self.carry_out(effects);
    }

    /// Starts the steps of the rollout that are due.
    pub(super) fn start(&mut self) {
        let Some(rollout) = &mut self.operator.rollout else { return };
        let effects = rollout.execution.start_due(self.moment.steady);
        self.carry_out(effects);
    }

    /// Continues with what is due.
    pub(super) fn timed_out(&mut self) {
        self.start();
        self.operator.clear_due_times(self.moment.uptime);
    }

    /// Converts the effects of the rollout. A watch that exists already is answered from what it has shown.
    pub(super) fn carry_out(&mut self, effects: Vec<ExecutionEffect>) {
        let Some(rollout) = &self.operator.rollout else { return };
        let mut watches = Vec::new();
        for effect in effects {
            match effect {
                ExecutionEffect::Execute { step, fills_related_objects } => {
                    self.operator.executing.insert((rollout.run, step));
                    self.output.effects.push(OperatorEffect::Execute {
                        operator: self.name.to_owned(),
                        run: rollout.run,
                        plan: Arc::clone(rollout.execution.progress().plan()),
                        step,
                        fills_related_objects,
                    });
                }
                ExecutionEffect::Watch(watch) => watches.push((watch.kind, watch.scope)),
            }
        }
        for (kind, scope) in watches {
            let group_kind = GroupKind::new(&kind.group, &kind.kind);
            self.watch(kind, scope);
            self.replay(&group_kind);
        }
    }

    /// Passes to the rollout what a watch has shown before the rollout began.
    fn replay(&mut self, kind: &GroupKind) {
        let observed = &self.cluster.objects;
        let of_kind = observed.labelled(self.name).filter(|it| it.key.group_kind() == *kind);
        let mut shown: Vec<Observation> = of_kind.flat_map(ObservedObject::observations).collect();
        if kind.group.is_empty()
            && kind.kind == "Namespace"
            && let Some(rollout) = &self.operator.rollout
        {
            shown.extend(rollout.namespaces.iter().filter_map(|name| {
                let state = Some(*observed.namespaces.get(name)?);
                Some(Observation::Namespace { name: name.clone(), state })
            }));
        }
        if observed.kinds.get(kind).is_some_and(|known| known.is_listed) {
            shown.push(Observation::Listed(kind.clone()));
        }
        for observation in shown {
            self.execute(ExecutionEvent::Observed(observation));
        }
    }
}
