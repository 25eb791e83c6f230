//! Working out what an update changed, and who owns that now.
//!
//! Upstream: sigs.k8s.io/structured-merge-diff/v6/merge/update.go: Update
//! Upstream: k8s.io/apimachinery/pkg/util/managedfields/internal/structuredmerge.go: Update
use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::entry::{
    Identity, Managers, Operation, OwnedFields, dotted, keep_times, put_back, unowned_fields,
    write_managers,
};
use super::{ManagerInfo, VersionedKind};
use crate::Schema;
use crate::fields::FieldSet;
use crate::schema::node::{Edge, Shape};
use crate::typed::{Comparison, check_live, compare, reconcile};

/// Records what a create, update or patch changed; returns `new` with its `metadata.managedFields`.
///
/// The writer takes over the fields it adds or changes; fields it removes lose their owner. An object
/// that has no owners yet stays without when it is updated.
pub fn track_update<'a>(
    kind: impl Into<VersionedKind<'a>>,
    live: Option<&Value>,
    mut new: Value,
    manager_info: &ManagerInfo<'_>,
) -> Value {
    let kind = kind.into();
    let schema = kind.schema;
    let managers = known_managers(live, &new, manager_info);
    if let Some(metadata) = new.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("managedFields");
    }
    let is_create = live.is_none_or(|live| live.pointer("/metadata/uid").is_none());
    if managers.is_empty() && !is_create {
        return new;
    }
    let blank;
    let old = match live {
        Some(live) => live,
        None => {
            blank = blank_object(schema);
            &blank
        }
    };
    // What cannot be compared is not recorded.
    let mut managers = update(&kind, old, &new, managers, manager_info.name(), manager_info)
        .unwrap_or_else(|_| live.map(Managers::of).unwrap_or_default());
    managers.cap_updates();
    if live.is_some() {
        put_back(live, &mut new, manager_info.reset_fields);
    }
    write_managers(&mut new, &managers);
    if let Some(live) = live {
        keep_times(live, &mut new);
    }
    new
}

/// The owners before the write. A client may send its own list of them; an explicitly empty list
/// makes the object unowned; through a subresource it has no say.
///
/// Upstream: k8s.io/apimachinery/pkg/util/managedfields/internal/fieldmanager.go: decodeLiveOrNew
/// Upstream: k8s.io/apimachinery/pkg/util/managedfields/internal/fieldmanager.go: isResetManagedFields
fn known_managers(live: Option<&Value>, new: &Value, manager_info: &ManagerInfo<'_>) -> Managers {
    let of_live = || live.map(Managers::of).unwrap_or_default();
    if !manager_info.subresource.is_empty() {
        return of_live();
    }
    let sent = new.pointer("/metadata/managedFields").and_then(Value::as_array);
    let is_reset = sent.is_some_and(|entries| match entries.as_slice() {
        [] => true,
        [only] => only.as_object().is_some_and(|entry| entry.is_empty()),
        _ => false,
    });
    if is_reset {
        return Managers::default();
    }
    let managers = Managers::of(new);
    if managers.is_empty() { of_live() } else { managers }
}

/// The owners after `manager` has turned `old` into `new`.
///
/// # Errors
/// When an object cannot be compared in the version of some owner.
///
/// Upstream: sigs.k8s.io/structured-merge-diff/v6/merge/update.go: update
pub(super) fn update(
    kind: &VersionedKind<'_>,
    old: &Value,
    new: &Value,
    managers: Managers,
    manager: &str,
    manager_info: &ManagerInfo<'_>,
) -> Result<Managers, String> {
    for object in [old, new] {
        let defects = check_live(kind.schema, object);
        if !defects.is_empty() {
            return Err(super::defect_list(&defects));
        }
    }
    let mut managers = reconciled(kind, old, managers, manager_info)?;
    let changes = Changes::new(kind, old, new, &mut managers, manager_info)?;
    changes.take_from(&mut managers);
    let taken = changes.own.added.union(&changes.own.modified);
    let taken = taken
        .recursive_difference(&dotted(manager_info.reset_fields))
        .difference(&unowned_fields());
    if taken.is_empty() {
        return Ok(managers);
    }
    let identity = Identity::new(
        manager,
        Operation::Update,
        manager_info.api_version,
        manager_info.subresource,
    );
    let before = managers.0.remove(&identity).map_or_else(FieldSet::default, |owned| owned.set);
    managers.0.insert(
        identity,
        OwnedFields {
            api_version: manager_info.api_version.to_owned(),
            time: Some(manager_info.now.to_owned()),
            set: taken.union(&before),
        },
    );
    Ok(managers)
}

/// The owners under today's schemas; those of versions that exist no more are left out.
///
/// Upstream: sigs.k8s.io/structured-merge-diff/v6/merge/update.go: reconcileManagedFieldsWithSchemaChanges
pub(super) fn reconciled(
    kind: &VersionedKind<'_>,
    live: &Value,
    mut managers: Managers,
    manager_info: &ManagerInfo<'_>,
) -> Result<Managers, String> {
    let mut gone: BTreeSet<Identity> = BTreeSet::new();
    for (identity, owned) in &mut managers.0 {
        if owned.api_version == manager_info.api_version {
            owned.set = reconcile(kind.schema, &owned.set);
        } else if let Some((schema, _)) = kind.at(live, &owned.api_version)? {
            owned.set = reconcile(&schema, &owned.set);
        } else {
            gone.insert(identity.clone());
        }
    }
    managers.0.retain(|identity, _| !gone.contains(identity));
    Ok(managers)
}

/// What a write changes, in the versions of all owners.
pub(super) struct Changes {
    /// In the version of the request.
    pub(super) own: Comparison,
    others: BTreeMap<String, Comparison>,
}

impl Changes {
    /// Compares; managers of versions that do not exist are dropped.
    ///
    /// # Errors
    /// When an object has fields that a version does not know.
    pub(super) fn new(
        kind: &VersionedKind<'_>,
        old: &Value,
        new: &Value,
        managers: &mut Managers,
        manager_info: &ManagerInfo<'_>,
    ) -> Result<Self, String> {
        let reset = dotted(manager_info.reset_fields);
        let mut changes =
            Self { own: compare(kind.schema, old, new).without(&reset), others: BTreeMap::new() };
        let mut missing: BTreeSet<String> = BTreeSet::new();
        for owned in managers.0.values() {
            let version = &owned.api_version;
            if version == manager_info.api_version || changes.others.contains_key(version) {
                continue;
            }
            let converted = |object: &Value, which: &str| {
                kind.at(object, version)
                    .map_err(|why| format!("failed to convert {which} object: {why}"))
            };
            match (converted(old, "old")?, converted(new, "new")?) {
                (Some((schema, old)), Some((_, new))) => {
                    // A definition resets the status for the version written to alone.
                    let comparison = compare(&schema, &old, &new);
                    let comparison = if schema.is_builtin() || !manager_info.subresource.is_empty()
                    {
                        comparison.without(&reset)
                    } else {
                        comparison
                    };
                    changes.others.insert(version.clone(), comparison);
                }
                _ => {
                    missing.insert(version.clone());
                }
            }
        }
        managers.0.retain(|_, owned| !missing.contains(&owned.api_version));
        Ok(changes)
    }

    /// What changes in the version of an owner.
    pub(super) fn at(&self, version: &str) -> &Comparison {
        self.others.get(version).unwrap_or(&self.own)
    }

    /// Takes what changes away from its owners.
    pub(super) fn take_from(&self, managers: &mut Managers) {
        for owned in managers.0.values_mut() {
            let Comparison { added, modified, removed } = self.at(&owned.api_version);
            for changed in [added, modified, removed].into_iter().filter(|set| !set.is_empty()) {
                owned.set = owned.set.difference(changed);
            }
        }
        managers.drop_empty();
    }
}

/// The object that a create starts from: empty, but for what Go writes always, which are structs
/// (an empty object is their default) and required fields at their zero value.
pub(super) fn blank_object(schema: &Schema) -> Value {
    blank(schema, &schema.root_edge())
}

fn blank(schema: &Schema, edge: &Edge) -> Value {
    let mut out = serde_json::Map::new();
    if let (true, Shape::Map(map, _)) = (schema.is_builtin(), schema.shape(edge, None)) {
        for (name, edge) in &map.fields {
            if edge.default.as_ref().is_some_and(|default| *default == json!({})) {
                out.insert(name.clone(), blank(schema, edge));
            } else if edge.written {
                out.insert(name.clone(), edge.default.clone().unwrap_or_default());
            }
        }
    }
    Value::Object(out)
}
