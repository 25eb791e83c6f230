//! Server-side apply.
use serde_json::{Value, json};

use super::entry::{
    Identity, Managers, Operation, Owned, dotted, keep_times, put_back, unowned_fields,
    write_managers,
};
use super::update::{blank_object, update};
use super::{Actor, ApplyError, Conflict, last_applied};
use crate::default::apply_defaults_after_merge;
use crate::fields::{FieldSet, path_text, values_equal};
use crate::typed::{check, compare, field_set, merge, name_declared, reconcile, remove};
use crate::{Schema, apply_builtin_defaults, prune as drop_unknown};

/// The owner of what was there before anybody's ownership was tracked.
const BEFORE_FIRST_APPLY: &str = "before-first-apply";

/// What the server alone writes; applying it (often as null, by tools that print whole objects)
/// has no effect on an object that exists.
const BOOKKEEPING: [&str; 7] = [
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
/// Fields that the applier owned, applies no more and nobody else owns are removed. The result is
/// the whole new object with its defaults and `metadata.managedFields`; when nothing changes it
/// equals `live`.
///
/// # Errors
/// When fields conflict and `force` is off, or when the object does not fit its schema.
pub fn server_side_apply(
    schema: &Schema,
    live: Option<&Value>,
    applied: &Value,
    actor: &Actor<'_>,
    force: bool,
) -> Result<Value, ApplyError> {
    if applied.pointer("/metadata/managedFields").is_some_and(|fields| !fields.is_null()) {
        return Err(ApplyError::ManagedFieldsInApply);
    }
    let defects = check(schema, applied);
    if !defects.is_empty() {
        return Err(ApplyError::Typed(defects));
    }
    let empty = json!({});
    let base = live.unwrap_or(&empty);
    let managers = managers_before(schema, live, actor);
    let mut outcome = apply(schema, base, applied, managers.clone(), actor, force);
    if let (Err(conflicts), "kubectl") = (&outcome, actor.manager) {
        let rest = last_applied::unexplained(schema, base, conflicts, actor.api_version);
        outcome = match rest {
            Some(rest) if rest.is_empty() => apply(schema, base, applied, managers, actor, true),
            Some(rest) => Err(rest),
            None => outcome,
        };
    }
    let (mut object, managers) = outcome.map_err(|conflicts| {
        ApplyError::Conflicts(conflicts.into_iter().map(|(conflict, _)| conflict).collect())
    })?;
    put_back(live, &mut object, actor.reset_fields);
    if live.is_some() {
        put_back(live, &mut object, &BOOKKEEPING);
    }
    complete(schema, applied, &mut object);
    if actor.manager == "kubectl" {
        last_applied::refresh(&mut object, applied);
    }
    write_managers(&mut object, &managers);
    if let Some(live) = live {
        keep_times(live, &mut object);
    }
    Ok(object)
}

/// Who owns what before the apply. All that an untracked object holds is one owner's.
fn managers_before(schema: &Schema, live: Option<&Value>, actor: &Actor<'_>) -> Managers {
    let Some(live) = live else { return Managers::default() };
    let managers = Managers::of(live);
    if !managers.is_empty() {
        return managers;
    }
    update(schema, &blank_object(schema), live, managers, BEFORE_FIRST_APPLY, actor)
}

/// A conflict and where it is.
pub(super) type Found = (Conflict, Vec<crate::fields::PathElement>);

/// The merged object and its owners, or the conflicts in the order of their owners.
fn apply(
    schema: &Schema,
    live: &Value,
    applied: &Value,
    mut managers: Managers,
    actor: &Actor<'_>,
    force: bool,
) -> Result<(Value, Managers), Vec<Found>> {
    let reset = dotted(actor.reset_fields);
    for owned in managers.0.values_mut() {
        owned.set = reconcile(schema, &owned.set);
    }
    let identity = Identity::new(actor.manager, Operation::Apply, "", actor.subresource);
    let before = managers.0.remove(&identity);
    let set = field_set(schema, applied).recursive_difference(&reset);
    let merged = merge(schema, live, applied);
    let merged = match &before {
        None => merged,
        Some(before) => prune(schema, merged, &before.set, &set, &managers),
    };

    let comparison = compare(schema, live, &merged).without(&reset);
    let changed = comparison.added.union(&comparison.modified);
    let conflicts = conflicts(&managers, &changed);
    if !force && !conflicts.is_empty() {
        return Err(conflicts);
    }
    for owned in managers.0.values_mut() {
        owned.set = owned.set.difference(&changed).difference(&comparison.removed);
    }
    let set = set.difference(&unowned_fields());
    let unchanged = values_equal(live, &merged);
    let time =
        if unchanged { before.and_then(|before| before.time) } else { Some(actor.now.to_owned()) };
    managers.0.insert(identity, Owned { api_version: actor.api_version.to_owned(), time, set });
    managers.drop_empty();
    let merged = if unchanged { live.clone() } else { merged };
    Ok((merged, managers))
}

/// Removes what the applier owned (`before`), applies no more (`now`), and nobody else owns.
fn prune(
    schema: &Schema,
    merged: Value,
    before: &FieldSet,
    now: &FieldSet,
    others: &Managers,
) -> Value {
    if before.difference(&unowned_fields()).difference(now).is_empty() {
        return merged;
    }
    let last = name_declared(schema, before);
    let owned = name_declared(schema, &others.union().union(now));
    let all = name_declared(schema, &field_set(schema, &merged));
    let without = |value: &Value, set: &FieldSet| remove(schema, value, set);
    let present = |value: &Value| name_declared(schema, &field_set(schema, value));

    // Take away all that was applied; give back what has an owner; then give back what lay below
    // something removed but was never the applier's.
    let bare = present(&without(&merged, &last));
    let kept = present(&without(&merged, &all.difference(&bare.union(&owned))));
    without(&merged, &all.difference(&kept).intersection(&last))
}

fn conflicts(managers: &Managers, changed: &FieldSet) -> Vec<Found> {
    let mut out = Vec::new();
    for (identity, owned) in &managers.0 {
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
