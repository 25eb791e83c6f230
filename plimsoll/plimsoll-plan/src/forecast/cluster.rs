//! From a cluster: what its API server answered when the steps were tried without effect.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use plimsoll_api::config::Release;
use plimsoll_api::{GroupKind, ObjectKey};
use serde_json::Value;

use super::brought::{Brought, Places};
use super::files::orphans;
use super::{Change, Forecast, decided, gates};
use crate::apply::diff;
use crate::health::gate;
use crate::plan::{Action, GroupVersionKind, Plan, Step};
use crate::progress::{Obstacle, TryError};

/// How a step was found, and what its API server answered.
#[derive(Debug, Clone, PartialEq)]
pub struct Sighting {
    /// The object as it is; `None` when it is not there.
    pub before: Option<Value>,
    /// What became of it in the dry run.
    pub answer: Answer,
}

/// The answer of an API server to a step that was tried without effect.
#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    /// This is how the object would be.
    Would(Value),
    /// There is nothing to try: the object is deleted, kept, or refused beforehand.
    NotTried,
    /// Something that it needs is not there.
    Obstacle(Obstacle),
    /// It is refused.
    Refused(TryError),
}

/// Forecasts a plan on a cluster: `sightings` has one entry for each step, `ours` are the objects
/// of the cluster that are ours. `cluster_kinds` are the kinds known to have no namespace.
pub fn of_cluster(
    from: Option<Release>,
    plan: Arc<Plan>,
    sightings: &[Sighting],
    ours: &BTreeSet<ObjectKey>,
    cluster_kinds: &BTreeSet<GroupKind>,
) -> Forecast {
    let brought = Brought::by(&plan);
    let tried = || plan.steps.iter().zip(sightings);
    let mut changes: Vec<Change> =
        tried().map(|(step, sighting)| change(step, sighting, &brought)).collect();
    let redefined = redefined(&plan, &changes);
    for ((step, sighting), change) in tried().zip(&mut changes) {
        if redefined.contains(&step.kind()) {
            *change = later(step, sighting, std::mem::replace(change, Change::Unchanged));
        }
    }
    let mut gates = gates(&plan);
    for gate in &mut gates {
        let manifest = plan.steps[gate.step].manifest.object();
        let live = sightings.get(gate.step).and_then(|sighting| sighting.before.as_ref());
        gate.now = Some(gate::cluster_operator(&manifest, live, plan.mode));
    }
    let orphans = orphans(ours.iter(), &plan, cluster_kinds);
    let places = Places::of(&plan);
    let mut set_aside = BTreeMap::new();
    for (step, sighting) in sightings.iter().enumerate() {
        let Answer::Obstacle(obstacle) = &sighting.answer else { continue };
        let remover = brought.remover(obstacle).filter(|&it| !places.precedes(it, step));
        set_aside.extend(remover.map(|remover| (step, remover)));
    }
    let (capabilities, preconditions) = (Vec::new(), Vec::new());
    Forecast { from, changes, set_aside, gates, orphans, capabilities, preconditions, plan }
}

/// The kinds whose definition changes before their objects are applied.
fn redefined(plan: &Plan, changes: &[Change]) -> BTreeSet<GroupVersionKind> {
    let changed = plan.steps.iter().zip(changes);
    let changed = changed.filter(|(_, change)| matches!(change, Change::Changed(_)));
    changed.flat_map(|(step, _)| step.serves.iter().cloned()).collect()
}

/// What becomes of an object once its kind is defined anew: by then the server will know the
/// fields that it dropped in the dry run.
fn later(step: &Step, sighting: &Sighting, change: Change) -> Change {
    let (Some(before), Answer::Would(after)) = (&sighting.before, &sighting.answer) else {
        return change;
    };
    if !matches!(change, Change::Changed(_) | Change::Unchanged) {
        return change;
    }
    let mut after = diff::without_bookkeeping(after.clone());
    add_missing(&mut after, &diff::without_bookkeeping(step.manifest.object()));
    let fields = diff::fields(&diff::without_bookkeeping(before.clone()), &after);
    if fields.is_empty() { Change::Unchanged } else { Change::Changed(fields) }
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

fn change(step: &Step, sighting: &Sighting, brought: &Brought<'_>) -> Change {
    if let Some(change) = decided(step) {
        return change;
    }
    match (&step.action, &sighting.before) {
        (Action::Delete, Some(_)) => return Change::Deleted,
        (Action::Delete, None) => return Change::Absent,
        (Action::CreateOnly, Some(_)) => return Change::Kept,
        _ => {}
    }
    match (&sighting.answer, &sighting.before) {
        (Answer::Would(after), Some(before)) => {
            let before = diff::without_bookkeeping(before.clone());
            let fields = diff::fields(&before, &diff::without_bookkeeping(after.clone()));
            if fields.is_empty() { Change::Unchanged } else { Change::Changed(fields) }
        }
        (Answer::Would(_) | Answer::NotTried, None) => Change::Created,
        (Answer::NotTried, Some(_)) => Change::Unchanged,
        (Answer::Obstacle(obstacle), _) if brought.remover(obstacle).is_some() => Change::Created,
        (Answer::Obstacle(obstacle), _) => {
            Change::Waiting { reason: obstacle.reason(), message: obstacle.message() }
        }
        (Answer::Refused(error), _) => {
            Change::Refused { reason: error.reason, message: error.cause.clone() }
        }
    }
}
