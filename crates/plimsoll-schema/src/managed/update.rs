//! Working out what an update changed, and who owns that now.
use serde_json::{Value, json};

use super::Actor;
use super::entry::{
    Identity, Managers, Operation, Owned, dotted, keep_times, put_back, unowned_fields,
    write_managers,
};
use crate::Schema;
use crate::fields::FieldSet;
use crate::schema::node::{Edge, Shape};
use crate::typed::{compare, reconcile};

/// Records what a create, update or patch changed; returns `new` with its `metadata.managedFields`.
///
/// The writer takes over the fields it adds or changes; fields it removes are nobody's. An object
/// that has no owners yet stays without when it is updated.
pub fn track_update(
    schema: &Schema,
    live: Option<&Value>,
    mut new: Value,
    actor: &Actor<'_>,
) -> Value {
    let managers = known_managers(live, &new, actor);
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
    let mut managers = update(schema, old, &new, managers, actor.manager, actor);
    managers.cap_updates();
    if live.is_some() {
        put_back(live, &mut new, actor.reset_fields);
    }
    write_managers(&mut new, &managers);
    if let Some(live) = live {
        keep_times(live, &mut new);
    }
    new
}

/// The owners before the write. A client may send its own idea of them; an explicitly empty list
/// makes the object unowned; through a subresource it has no say.
fn known_managers(live: Option<&Value>, new: &Value, actor: &Actor<'_>) -> Managers {
    let of_live = || live.map(Managers::of).unwrap_or_default();
    if !actor.subresource.is_empty() {
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
pub(super) fn update(
    schema: &Schema,
    old: &Value,
    new: &Value,
    mut managers: Managers,
    manager: &str,
    actor: &Actor<'_>,
) -> Managers {
    for owned in managers.0.values_mut() {
        owned.set = reconcile(schema, &owned.set);
    }
    let reset = dotted(actor.reset_fields);
    let comparison = compare(schema, old, new).without(&reset);
    let changed = comparison.added.union(&comparison.modified);
    for owned in managers.0.values_mut() {
        owned.set = owned.set.difference(&changed).difference(&comparison.removed);
    }
    managers.drop_empty();
    let taken = changed.recursive_difference(&reset).difference(&unowned_fields());
    if taken.is_empty() {
        return managers;
    }
    let identity = Identity::new(manager, Operation::Update, actor.api_version, actor.subresource);
    let before = managers.0.remove(&identity).map_or_else(FieldSet::default, |owned| owned.set);
    managers.0.insert(
        identity,
        Owned {
            api_version: actor.api_version.to_owned(),
            time: Some(actor.now.to_owned()),
            set: taken.union(&before),
        },
    );
    managers
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
