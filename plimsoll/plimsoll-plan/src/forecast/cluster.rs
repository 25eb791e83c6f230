//! From a cluster: what its API server answered when the steps were tried without effect.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use plimsoll_api::config::Release;
use plimsoll_api::{GroupKind, ObjectKey};
use serde_json::Value;

use super::files::orphans;
use super::provided::{Places, ProvidedKinds};
use super::{Forecast, StepChange, decided, gates};
use crate::apply::takeover::earlier_managers;
use crate::health::gate;
use crate::plan::{Action, GroupVersionKind, Plan, Step};
use crate::progress::{StepBlocker, TryError};

/// How a step was found, and what its API server answered.
#[derive(Debug, Clone, PartialEq)]
pub struct ObservedObject {
    /// The object as it is; `None` when it is not there.
    pub before: Option<Value>,
    /// What became of it in the dry run.
    pub answer: DryRunOutcome,
}

/// The answer of an API server to a step that was tried without effect.
#[derive(Debug, Clone, PartialEq)]
pub enum DryRunOutcome {
    /// This is how the object would be.
    Would(Value),
    /// An update is refused: the object would be deleted and created again.
    Replaces {
        /// The fields that no update changes.
        fields: Vec<String>,
        /// How the object would be.
        with: Value,
    },
    /// There is nothing to try: the object is deleted, kept, or refused beforehand.
    NotTried,
    /// Something that it needs is not there.
    Blocked(StepBlocker),
    /// It is refused.
    Refused(TryError),
}

/// Forecasts a plan on a cluster: `observed_objects` has one entry for each step, `ours` are the objects
/// of the cluster that are ours. `cluster_kinds` are the kinds known to have no namespace.
pub fn of_cluster(
    from: Option<Release>,
    plan: Arc<Plan>,
    observed_objects: &[ObservedObject],
    ours: &BTreeSet<ObjectKey>,
    cluster_kinds: &BTreeSet<GroupKind>,
) -> Forecast {
    let provided = ProvidedKinds::by(&plan);
    let tried = || plan.steps.iter().zip(observed_objects);
    let mut changes: Vec<StepChange> =
        tried().map(|(step, observed)| change(step, observed, &provided)).collect();
    let redefined = redefined(&plan, &changes);
    for ((step, observed), change) in tried().zip(&mut changes) {
        if redefined.contains(&step.kind()) {
            *change = later(step, observed, std::mem::replace(change, StepChange::Unchanged));
        }
    }
    let mut gates = gates(&plan);
    for gate in &mut gates {
        let manifest = plan.steps[gate.step].manifest.object();
        let live = observed_objects.get(gate.step).and_then(|observed| observed.before.as_ref());
        gate.now = Some(gate::cluster_operator(&manifest, live, plan.mode));
    }
    let orphans = orphans(ours.iter(), &plan, cluster_kinds);
    let places = Places::of(&plan);
    let mut deferred = BTreeMap::new();
    for (step, observed) in observed_objects.iter().enumerate() {
        let DryRunOutcome::Blocked(blocker) = &observed.answer else { continue };
        let remover = provided.remover(blocker).filter(|&it| !places.precedes(it, step));
        deferred.extend(remover.map(|remover| (step, remover)));
    }
    let taken_over = observed_objects.iter().map(taken_over).enumerate();
    let taken_over = taken_over.filter(|(_, managers)| !managers.is_empty()).collect();
    Forecast {
        from,
        changes,
        deferred,
        taken_over,
        gates,
        orphans,
        capabilities: Vec::new(),
        preconditions: Vec::new(),
        plan,
    }
}

/// The managers whose fields are taken over with an object.
fn taken_over(observed: &ObservedObject) -> BTreeSet<String> {
    match (&observed.before, &observed.answer) {
        (Some(before), DryRunOutcome::Would(after)) => {
            let (before, after) = (earlier_managers(before), earlier_managers(after));
            before.difference(&after).cloned().collect()
        }
        // Nothing of the object is left that a manager could own.
        (Some(before), DryRunOutcome::Replaces { .. }) => earlier_managers(before),
        _ => BTreeSet::new(),
    }
}

/// The kinds whose definition changes before their objects are applied.
fn redefined(plan: &Plan, changes: &[StepChange]) -> BTreeSet<GroupVersionKind> {
    let changed = plan.steps.iter().zip(changes);
    let changed = changed.filter(|(_, change)| matches!(change, StepChange::Changed(_)));
    changed.flat_map(|(step, _)| step.serves.iter().cloned()).collect()
}

/// What becomes of an object once its kind is defined anew: by then the server will know the
/// fields that it dropped in the dry run.
fn later(step: &Step, observed: &ObservedObject, change: StepChange) -> StepChange {
    let (Some(before), DryRunOutcome::Would(after)) = (&observed.before, &observed.answer) else {
        return change;
    };
    if !matches!(change, StepChange::Changed(_) | StepChange::Unchanged) {
        return change;
    }
    let mut after = after.clone();
    add_missing(&mut after, &step.manifest.object());
    StepChange::between(&step.manifest, before, &after)
}

/// Adds the fields that only `more` has.
fn add_missing(object: &mut Value, more: &Value) {
    let (Value::Object(object), Value::Object(more)) = (object, more) else {
        return;
    };
    for (name, value) in more.iter().filter(|(_, value)| !value.is_null()) {
        match object.get_mut(name) {
            Some(there) => add_missing(there, value),
            None => {
                object.insert(name.clone(), value.clone());
            }
        }
    }
}

fn change(step: &Step, observed: &ObservedObject, provided: &ProvidedKinds<'_>) -> StepChange {
    if let Some(change) = decided(step) {
        return change;
    }
    match (&step.action, &observed.before) {
        (Action::Delete, Some(_)) => return StepChange::Deleted,
        (Action::Delete, None) => return StepChange::Absent,
        // A new definition has no objects.
        (Action::Migrate, None) => return StepChange::Unchanged,
        (Action::CreateOnly, Some(_)) => return StepChange::Kept,
        _ => {}
    }
    match (&observed.answer, &observed.before) {
        (DryRunOutcome::Would(after), Some(before)) => {
            StepChange::between(&step.manifest, before, after)
        }
        (DryRunOutcome::Replaces { fields, with }, Some(before)) => {
            StepChange::replaced(&step.manifest, before, with, fields.clone())
        }
        (
            DryRunOutcome::Would(_) | DryRunOutcome::Replaces { .. } | DryRunOutcome::NotTried,
            None,
        ) => StepChange::Created,
        (DryRunOutcome::NotTried, Some(_)) => StepChange::Unchanged,
        (DryRunOutcome::Blocked(blocker), _) if provided.remover(blocker).is_some() => {
            StepChange::Created
        }
        (DryRunOutcome::Blocked(blocker), _) => {
            StepChange::Waiting { reason: blocker.reason(), message: blocker.message() }
        }
        (DryRunOutcome::Refused(error), _) => {
            StepChange::Refused { reason: error.reason, message: error.cause.clone() }
        }
    }
}
