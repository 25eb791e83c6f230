//! Server-side apply.
//!
//! Upstream: sigs.k8s.io/structured-merge-diff/v6/merge/update.go: Apply
//! Upstream: k8s.io/apimachinery/pkg/util/managedfields/internal/structuredmerge.go: Apply
use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::conflict::LocatedConflict;
use super::entry::{
    Identity, Managers, Operation, OwnedFields, dotted, keep_times, put_back, unowned_fields,
    write_managers,
};
use super::update::{Changes, blank_object, reconciled, update};
use super::{ApplyError, Conflict, ManagerInfo, VersionedKind, last_applied};
use crate::default::apply_defaults_after_merge;
use crate::fields::{FieldSet, path_text, values_equal};
use crate::typed::{check, check_live, field_set, merge, name_declared, remove};
use crate::{Schema, apply_builtin_defaults, prune as drop_unknown};

/// The owner of what was there before anybody's ownership was tracked.
const BEFORE_FIRST_APPLY: &str = "before-first-apply";

/// What the server alone writes; applying it (often as null, by tools that print whole objects)
/// has no effect on an object that exists.
const SERVER_OWNED: [&str; 7] = [
    "metadata.creationTimestamp",
    "metadata.deletionGracePeriodSeconds",
    "metadata.deletionTimestamp",
    "metadata.generation",
    "metadata.resourceVersion",
    "metadata.selfLink",
    "metadata.uid",
];

/// Merges `applied` into `live` and records what the applier owns.
///
/// Fields that the applier owned, no longer applies and no other manager owns are removed. The result is
/// the whole new object with its defaults and `metadata.managedFields`; when nothing changes it
/// equals `live`.
///
/// # Errors
/// [`ApplyError::Conflicts`] when other managers own fields with other values and `force` is off;
/// [`ApplyError::Typed`] and [`ApplyError::TypedLive`] when the applied or the live object does not
/// fit its schema; [`ApplyError::Version`] when it has fields that the version of another manager
/// does not know; [`ApplyError::ManagedFieldsInApply`].
pub fn server_side_apply<'a>(
    kind: impl Into<VersionedKind<'a>>,
    live: Option<&Value>,
    applied: &Value,
    manager_info: &ManagerInfo<'_>,
    force: bool,
) -> Result<Value, ApplyError> {
    let kind = kind.into();
    let schema = kind.schema;
    if applied.pointer("/metadata/managedFields").is_some_and(|fields| !fields.is_null()) {
        return Err(ApplyError::ManagedFieldsInApply);
    }
    let defects = check(schema, applied);
    if !defects.is_empty() {
        return Err(ApplyError::Typed(defects));
    }
    let defects = live.map(|live| check_live(schema, live)).unwrap_or_default();
    if !defects.is_empty() {
        return Err(ApplyError::TypedLive(defects));
    }
    let empty = json!({});
    let base = live.unwrap_or(&empty);
    let managers = managers_before(&kind, live, manager_info);
    let mut outcome = apply(&kind, base, applied, managers, manager_info, force);
    if let (Err(MergeError::Conflicts(conflicts)), "kubectl") = (&outcome, manager_info.manager) {
        let rest = last_applied::unexplained(schema, base, conflicts, manager_info.api_version);
        outcome = match rest {
            Some(rest) if rest.is_empty() => {
                let managers = managers_before(&kind, live, manager_info);
                apply(&kind, base, applied, managers, manager_info, true)
            }
            Some(rest) => Err(MergeError::Conflicts(rest)),
            None => outcome,
        };
    }
    let (mut object, managers) = outcome.map_err(ApplyError::from)?;
    // What a new object begins with is not for us to say.
    if live.is_some() {
        put_back(live, &mut object, manager_info.reset_fields);
        put_back(live, &mut object, &SERVER_OWNED);
    }
    complete(schema, applied, &mut object);
    if manager_info.manager == "kubectl" {
        last_applied::refresh(&mut object, applied);
    }
    write_managers(&mut object, &managers);
    if let Some(live) = live {
        keep_times(live, &mut object);
    }
    Ok(object)
}

/// Who owns what before the apply. All that an untracked object holds is one owner's.
///
/// Upstream: k8s.io/apimachinery/pkg/util/managedfields/internal/skipnonapplied.go: Apply
fn managers_before(
    kind: &VersionedKind<'_>,
    live: Option<&Value>,
    manager_info: &ManagerInfo<'_>,
) -> Managers {
    let Some(live) = live else { return Managers::default() };
    let managers = Managers::of(live);
    if !managers.is_empty() {
        return managers;
    }
    let blank = blank_object(kind.schema);
    update(kind, &blank, live, managers, BEFORE_FIRST_APPLY, manager_info).unwrap_or_default()
}

/// Why nothing was merged.
enum MergeError {
    /// In the order of their owners.
    Conflicts(Vec<LocatedConflict>),
    /// Some version does not know a field.
    Version(String),
}

impl From<MergeError> for ApplyError {
    fn from(error: MergeError) -> Self {
        match error {
            MergeError::Version(why) => Self::Version(why),
            MergeError::Conflicts(conflicts) => {
                Self::Conflicts(conflicts.into_iter().map(|(conflict, _)| conflict).collect())
            }
        }
    }
}

/// The merged object and its owners.
fn apply(
    kind: &VersionedKind<'_>,
    live: &Value,
    applied: &Value,
    managers: Managers,
    manager_info: &ManagerInfo<'_>,
    force: bool,
) -> Result<(Value, Managers), MergeError> {
    let schema = kind.schema;
    let mut managers =
        reconciled(kind, live, managers, manager_info).map_err(MergeError::Version)?;
    let identity =
        Identity::new(manager_info.name(), Operation::Apply, "", manager_info.subresource);
    let before = managers.0.remove(&identity);
    let set = field_set(schema, applied).recursive_difference(&dotted(manager_info.reset_fields));
    let merged = merge(schema, live, applied);
    let merged = match &before {
        None => merged,
        Some(before) => prune(kind, merged, before, &set, &managers, manager_info)
            .map_err(|why| MergeError::Version(format!("failed to prune fields: {why}")))?,
    };

    let changes = Changes::new(kind, live, &merged, &mut managers, manager_info)
        .map_err(MergeError::Version)?;
    let conflicts = conflicts(&managers, &changes);
    if !force && !conflicts.is_empty() {
        return Err(MergeError::Conflicts(conflicts));
    }
    changes.take_from(&mut managers);
    let set = set.difference(&unowned_fields());
    let unchanged = values_equal(live, &merged);
    let time = if unchanged {
        before.and_then(|before| before.time)
    } else {
        Some(manager_info.now.to_owned())
    };
    managers.0.insert(
        identity,
        OwnedFields { api_version: manager_info.api_version.to_owned(), time, set },
    );
    managers.drop_empty();
    let merged = if unchanged { live.clone() } else { merged };
    Ok((merged, managers))
}

/// Removes what the applier owned (`before`), no longer applies (`now`), and no other manager owns.
///
/// # Errors
/// When the object has fields that the version of some owner does not know.
///
/// Upstream: sigs.k8s.io/structured-merge-diff/v6/merge/update.go: prune
/// Upstream: sigs.k8s.io/structured-merge-diff/v6/merge/update.go: addBackOwnedItems
/// Upstream: sigs.k8s.io/structured-merge-diff/v6/merge/update.go: addBackDanglingItems
fn prune(
    kind: &VersionedKind<'_>,
    merged: Value,
    before: &OwnedFields,
    now: &FieldSet,
    others: &Managers,
    manager_info: &ManagerInfo<'_>,
) -> Result<Value, String> {
    // Of what is applied still, all that is taken away is given back: nothing is to be done, but
    // where other versions may not know a field.
    let is_one_version = before.api_version == manager_info.api_version
        && others.0.values().all(|other| other.api_version == manager_info.api_version);
    if before.set.is_empty() || (is_one_version && before.set.is_subset(now)) {
        return Ok(merged);
    }
    // Every owner's fields, by the version that they are named in.
    let mut owned: BTreeMap<&str, Vec<FieldSet>> =
        BTreeMap::from([(manager_info.api_version, vec![now.clone()])]);
    for other in others.0.values() {
        owned.entry(&other.api_version).or_default().push(other.set.clone());
    }
    let mut owned: BTreeMap<&str, FieldSet> =
        owned.into_iter().map(|(version, sets)| (version, FieldSet::union_of(sets))).collect();
    let version = |object: &Value, version: &str, what: &str| {
        let from = object.get("apiVersion").and_then(Value::as_str);
        if version == manager_info.api_version && from.is_none_or(|from| from == version) {
            return Ok(Some((kind.schema.clone(), object.clone())));
        }
        kind.at(object, version).map_err(|why| format!("{what}: {why}"))
    };
    let to_last = "failed to convert merged object to last applied version";
    let Some((schema, at_last)) = version(&merged, &before.api_version, to_last)? else {
        return Ok(merged);
    };

    // Remove all that was applied; add back what has an owner, in the applier's version first; then
    // add back what is nested in something removed but was never the applier's.
    let last = name_declared(&schema, &before.set);
    let mut pruned = remove(&schema, &at_last, &last);
    let first = owned.remove_entry(before.api_version.as_str());
    for (name, set) in first.into_iter().chain(owned) {
        let at = format!(
            "failed add back owned items: failed to convert merged object at version {name}"
        );
        let Some((schema, all)) = version(&merged, name, &at)? else { continue };
        let present = |value: &Value| name_declared(&schema, &field_set(&schema, value));
        let kept = present(&pruned).union(&name_declared(&schema, &set));
        pruned = remove(&schema, &all, &present(&all).difference(&kept));
    }
    let present = |value: &Value| name_declared(&schema, &field_set(&schema, value));
    let dangling = present(&at_last).difference(&present(&pruned)).intersection(&last);
    let rest = remove(&schema, &at_last, &dangling);
    Ok(version(&rest, manager_info.api_version, "failed to convert pruned object")?
        .map_or(rest, |(_, rest)| rest))
}

// Upstream: sigs.k8s.io/structured-merge-diff/v6/merge/conflict.go: ConflictsFromManagers
fn conflicts(managers: &Managers, changes: &Changes) -> Vec<LocatedConflict> {
    let mut out = Vec::new();
    let mut changed: BTreeMap<&str, FieldSet> = BTreeMap::new();
    for (identity, owned) in &managers.0 {
        let changed = changed.entry(&owned.api_version).or_insert_with(|| {
            let changed = changes.at(&owned.api_version);
            changed.added.union(&changed.modified)
        });
        for path in owned.set.intersection(changed).paths() {
            let conflict = Conflict {
                manager: identity.manager.clone(),
                api_version: owned.api_version.clone(),
                operation: identity.operation,
                subresource: identity.subresource.clone(),
                time: owned.time.clone(),
                path: path_text(&path),
            };
            out.push((conflict, path));
        }
    }
    out
}

/// What decoding does to the merged object: unknown fields go where ownership allowed them, and
/// defaults come.
fn complete(schema: &Schema, applied: &Value, object: &mut Value) {
    drop_unknown(schema, object);
    apply_defaults_after_merge(schema, object);
    if !schema.is_builtin() {
        return;
    }
    let text = |key: &str| applied.get(key).and_then(Value::as_str).unwrap_or("");
    let api_version = text("apiVersion");
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    apply_builtin_defaults(group, version, text("kind"), object);
}
