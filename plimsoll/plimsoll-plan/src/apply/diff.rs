//! What differs between two forms of an object, field by field.
//!
//! Lists of objects are compared by what tells their items apart, as people do: containers by
//! name, conditions by type, ports by number. So an item that moves or goes does not make all that
//! follow it look different.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use plimsoll_content::Manifest;
use serde_json::{Map, Value};

use super::sensitive;

/// Fields that tell the items of a list apart, the likeliest first.
const ITEM_KEYS: [&str; 9] =
    ["name", "key", "type", "mountPath", "containerPort", "port", "ip", "topologyKey", "uid"];

/// Metadata that servers write into every object, and that no manifest has.
const BOOKKEEPING: [&str; 6] =
    ["creationTimestamp", "generation", "managedFields", "resourceVersion", "selfLink", "uid"];

/// A field that differs.
#[derive(Debug, Clone, PartialEq)]
pub struct FieldChange {
    /// Where it is: `spec.template.spec.containers[name=main].image`.
    pub path: String,
    /// What it was; `None` where there was none.
    pub before: Option<Value>,
    /// What it becomes; `None` where it goes.
    pub after: Option<Value>,
}

/// The fields that differ between two forms of a manifest's object, in the order of their paths,
/// without what servers keep about it. Sensitive values are hidden.
pub fn objects(manifest: &Manifest, before: &Value, after: &Value) -> Vec<FieldChange> {
    let (mut before, mut after) =
        (without_bookkeeping(before.clone()), without_bookkeeping(after.clone()));
    let annotated = [&before, &after].into_iter().any(sensitive::is_annotated);
    if annotated || manifest.is_sensitive() {
        sensitive::hide_changes(&mut before, &mut after);
    }
    fields(&before, &after)
}

/// The fields that differ between two values, in the order of their paths.
fn fields(before: &Value, after: &Value) -> Vec<FieldChange> {
    let mut changes = Vec::new();
    compare("", Some(before), Some(after), &mut changes);
    changes
}

/// An object without what its server keeps about it.
fn without_bookkeeping(mut object: Value) -> Value {
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        for field in BOOKKEEPING {
            metadata.remove(field);
        }
    }
    object
}

fn compare(
    path: &str,
    before: Option<&Value>,
    after: Option<&Value>,
    changes: &mut Vec<FieldChange>,
) {
    if before == after {
        return;
    }
    let found = changes.len();
    match (before, after) {
        (Some(Value::Object(before)), Some(Value::Object(after))) => {
            compare_maps(path, before, after, changes);
        }
        (Some(Value::Array(before)), Some(Value::Array(after))) => {
            compare_lists(path, before, after, changes);
        }
        _ => {}
    }
    // Of another kind, of another order, or just another value.
    if changes.len() == found {
        let (before, after) = (before.cloned(), after.cloned());
        changes.push(FieldChange { path: path.to_owned(), before, after });
    }
}

fn compare_maps(
    path: &str,
    before: &Map<String, Value>,
    after: &Map<String, Value>,
    changes: &mut Vec<FieldChange>,
) {
    let mut names: Vec<&String> = before.keys().chain(after.keys()).collect();
    names.sort_unstable();
    names.dedup();
    for name in names {
        compare(&field_path(path, name), before.get(name), after.get(name), changes);
    }
}

fn compare_lists(path: &str, before: &[Value], after: &[Value], changes: &mut Vec<FieldChange>) {
    let keyed = ITEM_KEYS.iter().find_map(|key| Some((*key, by(key, before)?, by(key, after)?)));
    if let Some((key, before, after)) = keyed {
        let mut ids: Vec<&String> = before.keys().chain(after.keys()).collect();
        ids.sort_unstable();
        ids.dedup();
        for id in ids {
            let path = format!("{path}[{key}={id}]");
            compare(&path, before.get(id).copied(), after.get(id).copied(), changes);
        }
    } else if before.len() == after.len() && before.iter().all(Value::is_object) {
        for (index, (before, after)) in before.iter().zip(after).enumerate() {
            compare(&format!("{path}[{index}]"), Some(before), Some(after), changes);
        }
    }
}

/// The items of a list by the value of one field, if that tells all of them apart.
fn by<'a>(key: &str, items: &'a [Value]) -> Option<BTreeMap<String, &'a Value>> {
    let mut found = BTreeMap::new();
    for item in items {
        let id = match item.as_object()?.get(key)? {
            Value::String(text) => text.clone(),
            Value::Number(number) => number.to_string(),
            _ => return None,
        };
        if found.insert(id, item).is_some() {
            return None;
        }
    }
    Some(found)
}

/// A name that has a dot or the like in it stands in brackets and quotes, as in JSONPath.
fn field_path(path: &str, name: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'$');
    let mut longer = path.to_owned();
    if !name.is_empty() && name.bytes().all(plain) {
        if !path.is_empty() {
            longer.push('.');
        }
        longer.push_str(name);
    } else {
        // Writing to a string does not fail.
        let _ = write!(longer, "['{name}']");
    }
    longer
}

#[cfg(test)]
mod tests;
