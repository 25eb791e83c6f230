//! The result of a rehearsal: what became of each object, and when.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use plimsoll_api::{Condition, GroupKind, ObjectKey};
use plimsoll_controller::DryRun;
use plimsoll_plan::forecast::{Forecast, StepChange};
use serde_json::Value;

use super::recorder::{self, KindNames, RecordedWrite};
use super::timeline::Timeline;

/// The result of a rehearsal.
#[derive(Debug)]
pub struct RehearsalResult {
    /// The forecast of the dry run before the update.
    pub forecast: Forecast,
    /// The change of the object of each step, in the order of the plan's steps.
    pub changes: Vec<StepChange>,
    /// When the object of each step was first written; `None` for those that never were.
    pub written: Vec<Option<Duration>>,
    /// Number of writes of the controller, failed ones included.
    pub writes: usize,
    /// Levels, waits and conditions with their times.
    pub timeline: Timeline,
    /// The conditions of the ClusterVersion at the end.
    pub conditions: Vec<Condition>,
    /// Resources (`plural.group`) of a live cluster that could not be copied.
    pub not_copied: Vec<String>,
    /// Resources (`plural.group`) of a live cluster that could not be listed.
    pub unread_kinds: Vec<String>,
    /// Objects of the outgoing release that could not be installed, and are unmanaged.
    pub unmanaged: Vec<UnmanagedObject>,
}

/// An object of the outgoing release that is unmanaged in the rehearsal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnmanagedObject {
    /// The object.
    pub key: ObjectKey,
    /// The message of the failed step.
    pub message: String,
}

/// The change of the object of each step, without what its own controllers report.
pub(super) fn changes(forecast: &Forecast, before: &DryRun, after: &DryRun) -> Vec<StepChange> {
    let states = before.observed_objects.iter().zip(&after.observed_objects);
    let steps = forecast.plan.steps.iter().zip(&forecast.changes);
    let changes = states.zip(steps).map(|((before, after), (step, forecast))| {
        match (forecast, &before.before, &after.before) {
            (StepChange::Refused { .. } | StepChange::Waiting { .. }, None, None)
            | (StepChange::Absent | StepChange::Kept, ..) => forecast.clone(),
            (_, None, None) => StepChange::Unchanged,
            (_, None, Some(_)) => StepChange::Created,
            (_, Some(_), None) => StepChange::Deleted,
            (forecast, Some(before), Some(after)) => {
                let uid = |object: &Value| object["metadata"]["uid"].clone();
                let (old, new) = (manifest_part(before), manifest_part(after));
                match forecast {
                    StepChange::Replaced { because, .. } if uid(before) != uid(after) => {
                        StepChange::replaced(&step.manifest, &old, &new, because.clone())
                    }
                    _ => StepChange::between(&step.manifest, &old, &new),
                }
            }
        }
    });
    changes.collect()
}

/// An object without what a server or an operator writes into it.
fn manifest_part(object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(fields) = object.as_object_mut() {
        fields.remove("status");
    }
    object
}

/// Returns when the object of each step was first written.
pub(super) fn written(
    forecast: &Forecast,
    writes: &[RecordedWrite],
    names: &KindNames,
    cluster_kinds: &BTreeSet<GroupKind>,
) -> Vec<Option<Duration>> {
    let mut first: BTreeMap<ObjectKey, Duration> = BTreeMap::new();
    for write in writes.iter().filter(|write| write.status < 300) {
        if let Some(key) = recorder::object_of_path(&write.path, names) {
            first.entry(key).or_insert(write.at);
        }
    }
    let steps = forecast.plan.steps.iter().map(|step| {
        let mut key = step.manifest.key.clone();
        if cluster_kinds.contains(&key.group_kind()) {
            key.namespace.clear();
        }
        first.get(&key).copied()
    });
    steps.collect()
}
