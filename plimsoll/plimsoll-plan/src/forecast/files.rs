//! From files alone: one plan compared with another.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use plimsoll_api::config::{UpdateHistory, UpdateState};
use plimsoll_api::progress::Deletion;
use plimsoll_api::{GroupKind, ObjectKey, Reason};
use plimsoll_content::immutable;
use plimsoll_content::inclusion::ExclusionReason;
use serde_json::Value;

use super::provided::{Places, ProvidedKinds};
use super::{Forecast, Orphan, OrphanCause, StepChange, decided, gates};
use crate::apply::prepare;
use crate::plan::{Action, Plan, Readiness, Step};
use crate::progress::Scope;
use crate::update::preconditions::{self, Facts, FailedPrecondition};

/// Forecasts `plan` on a cluster that is exactly as the `outgoing` plan left it; without one, on
/// an empty cluster. `cluster_kinds` are the kinds known to have no namespace.
pub fn between(
    outgoing: Option<&Plan>,
    plan: Arc<Plan>,
    cluster_kinds: &BTreeSet<GroupKind>,
) -> Forecast {
    let before = outgoing.map(|plan| present(plan, cluster_kinds)).unwrap_or_default();
    let changes = plan.steps.iter().map(|step| change(step, &before, cluster_kinds)).collect();
    let orphans = orphans(before.keys(), &plan, cluster_kinds);
    let (places, provided) = (Places::of(&plan), ProvidedKinds::by(&plan));
    let left = outgoing.map(ProvidedKinds::by).unwrap_or_default();
    let deferred = (0..plan.steps.len())
        .filter_map(|step| {
            let mut removers = provided.removers(&plan, step, &left).into_iter();
            Some((step, removers.find(|&it| !places.precedes(it, step))?))
        })
        .collect();
    Forecast {
        deferred,
        taken_over: BTreeMap::new(),
        from: outgoing.map(|plan| plan.release.clone()),
        changes,
        gates: gates(&plan),
        orphans,
        capabilities: Vec::new(),
        preconditions: outgoing
            .map(|outgoing| failed_preconditions(outgoing, &plan, cluster_kinds))
            .unwrap_or_default(),
        plan,
    }
}

/// The preconditions that do not hold on a cluster that has been updated to the outgoing release, as
/// far as files tell.
fn failed_preconditions(
    outgoing: &Plan,
    plan: &Plan,
    cluster_kinds: &BTreeSet<GroupKind>,
) -> Vec<FailedPrecondition> {
    let current = &outgoing.release;
    if *current == plan.release {
        return Vec::new();
    }
    let deletions = |plan: &Plan| -> BTreeMap<ObjectKey, Arc<str>> {
        let steps = plan.steps.iter().filter(|step| step.action == Action::Delete);
        let key = |step: &Step| identity(&step.manifest.key, cluster_kinds);
        steps.map(|step| (key(step), step.manifest.file.clone())).collect()
    };
    let (before, now) = (deletions(outgoing), deletions(plan));
    let repeated = before.iter().filter(|(key, _)| now.contains_key(*key));
    let repeated: Vec<Deletion> = repeated
        .map(|(key, file)| Deletion::new(key, file, &current.version, Timestamp::UNIX_EPOCH))
        .collect();
    let completed = UpdateHistory {
        state: UpdateState::Completed,
        started_time: Timestamp::UNIX_EPOCH,
        completion_time: None,
        version: current.version.clone(),
        image: current.image.clone(),
        verified: false,
        accepted_risks: String::new(),
    };
    let facts = Facts { history: &[completed], repeated: &repeated, ..Facts::of(current) };
    preconditions::check(&facts, &plan.release)
}

/// The steps whose objects are there once a plan is carried out; several where an object has
/// several manifests.
fn present<'a>(
    plan: &'a Plan,
    cluster_kinds: &BTreeSet<GroupKind>,
) -> BTreeMap<ObjectKey, Vec<&'a Step>> {
    let mut present: BTreeMap<ObjectKey, Vec<&Step>> = BTreeMap::new();
    for step in &plan.steps {
        if matches!(step.action, Action::Apply | Action::CreateOnly | Action::Gate) {
            present.entry(identity(&step.manifest.key, cluster_kinds)).or_default().push(step);
        }
    }
    present
}

fn change(
    step: &Step,
    before: &BTreeMap<ObjectKey, Vec<&Step>>,
    cluster_kinds: &BTreeSet<GroupKind>,
) -> StepChange {
    if let Some(change) = decided(step) {
        return change;
    }
    let key = identity(&step.manifest.key, cluster_kinds);
    let there = before.get(&key).map(Vec::as_slice).unwrap_or_default();
    let Some(last) = there.last() else {
        return if step.action == Action::Delete {
            StepChange::Absent
        } else {
            StepChange::Created
        };
    };
    match step.action {
        Action::Delete => StepChange::Deleted,
        Action::CreateOnly => StepChange::Kept,
        // Files do not tell in which versions objects are stored.
        Action::Migrate => StepChange::Unchanged,
        Action::Apply | Action::Gate | Action::Refuse(_) => {
            if there.iter().any(|other| other.manifest.raw == step.manifest.raw) {
                return StepChange::Unchanged;
            }
            if let Some(version) = dropped(there, step) {
                let reason = Reason::UpdatePayloadResourceInvalid;
                let message = format!(
                    "objects are stored in version {version:?}, which this definition drops: an \
                     API server refuses that until a storage migration has removed the version \
                     from status.storedVersions; keep it in spec.versions, not served if it is not \
                     to be used"
                );
                return StepChange::Refused { reason, message };
            }
            let fields = immutable::changed_fields(&last.manifest, &step.manifest);
            let refused = immutable::refused(&last.manifest, &step.manifest, &fields);
            if let Some(message) = refused {
                let reason = Reason::UpdatePayloadResourceInvalid;
                return StepChange::Refused { reason, message };
            }
            let (before, after) = (applied(last, cluster_kinds), applied(step, cluster_kinds));
            if fields.is_empty() {
                StepChange::between(&step.manifest, &before, &after)
            } else {
                StepChange::replaced(&step.manifest, &before, &after, fields)
            }
        }
    }
}

/// The storage version of one of the definitions that are there, if the definition that a step
/// applies does not have it any more.
fn dropped<'a>(there: &[&'a Step], step: &'a Step) -> Option<&'a str> {
    if step.readiness != Readiness::Served {
        return None;
    }
    let versions = |step: &'a Step| {
        let definition = step.manifest.definition.as_ref();
        definition.into_iter().flat_map(|definition| &definition.versions)
    };
    let mut stored = there.iter().flat_map(|other| versions(other)).filter(|it| it.storage);
    let dropped = stored.find(|it| !versions(step).any(|kept| kept.name == it.name));
    dropped.map(|version| version.name.as_str())
}

/// The object that a step applies.
fn applied(step: &Step, cluster_kinds: &BTreeSet<GroupKind>) -> Value {
    let cluster = cluster_kinds.contains(&step.manifest.key.group_kind());
    let scope = if cluster { Scope::Cluster } else { Scope::Namespaced };
    prepare::object(step, scope)
}

/// The objects of `present` that a plan does not name, in the order of their keys. What is deleted
/// with its namespace or with the definition of its kind is not left behind.
pub(crate) fn orphans<'a>(
    present: impl Iterator<Item = &'a ObjectKey>,
    plan: &Plan,
    cluster_kinds: &BTreeSet<GroupKind>,
) -> Vec<Orphan> {
    let named: BTreeSet<ObjectKey> =
        plan.steps.iter().map(|step| identity(&step.manifest.key, cluster_kinds)).collect();
    // A key may have a namespace that means nothing where the scope of its kind is not known. Rather
    // an object too few is listed than one that the plan applies.
    let anywhere: BTreeSet<ObjectKey> = named.iter().map(ObjectKey::without_namespace).collect();
    let is_named = |key: &ObjectKey| match key.namespace.as_str() {
        "" => anywhere.contains(key),
        _ => named.contains(key) || named.contains(&key.without_namespace()),
    };
    let excluded: BTreeMap<ObjectKey, _> = plan
        .excluded
        .iter()
        .map(|excluded| (identity(&excluded.key, cluster_kinds), &excluded.reason))
        .collect();
    let deleted = || plan.steps.iter().filter(|step| step.action == Action::Delete);
    let namespaces: BTreeSet<&str> = deleted()
        .map(|step| &step.manifest.key)
        .filter(|key| key.group.is_empty() && key.kind == "Namespace")
        .map(|key| key.name.as_str())
        .collect();
    let kinds: BTreeSet<&GroupKind> = deleted()
        .filter_map(|step| step.manifest.definition.as_ref().map(|definition| &definition.kind))
        .collect();
    // What an override takes out of management is managed by others.
    let is_left = |key: &&ObjectKey| {
        !is_named(key)
            && !matches!(excluded.get(*key), Some(ExclusionReason::Overridden))
            && !namespaces.contains(key.namespace.as_str())
            && !kinds.contains(&key.group_kind())
    };
    present
        .filter(is_left)
        .map(|key| Orphan {
            key: key.clone(),
            cause: match excluded.get(key) {
                Some(reason) => OrphanCause::Excluded((*reason).clone()),
                None => OrphanCause::Vanished,
            },
        })
        .collect()
}

/// The key of the object: without a namespace where its kind has none.
pub(super) fn identity(key: &ObjectKey, cluster_kinds: &BTreeSet<GroupKind>) -> ObjectKey {
    let mut key = key.clone();
    key.normalize(cluster_kinds);
    key
}
