//! Defaults that are in the way of another member of a union.
//!
//! Of some fields only one may be set: the handler of a probe, the source of a volume, and
//! `rollingUpdate` only with the strategy of that name. An API server completes what is applied with
//! defaults that no manager owns, and server-side apply removes only what the applier owned. So an
//! object that changes from one member to another keeps defaults of the former, and the server refuses
//! it. The refusal names the field; once it is ours, the next apply removes it.

use plimsoll_content::immutable;
use serde_json::{Map, Value, json};

use super::prepare::{PathPart, parse_path};
use super::takeover::{api_version, is_ours, is_selected, remove, subtract, takeover, unite};
use crate::plan::GroupVersionKind;

/// A field that an API server refuses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefusedField {
    path: Vec<PathPart>,
    /// Whether it may be set, but not beside others.
    is_one_of_several: bool,
}

impl RefusedField {
    /// Returns the field of a cause in a refusal; `None` if no default can be in its way. A field of the
    /// object itself, its metadata or its status is in no union, and one that never changes needs
    /// another object.
    pub fn new(field: &str, reason: &str, message: &str) -> Option<Self> {
        let path = parse_path(&format!(".{field}"))?;
        let outside = ["metadata", "status"].map(|it| PathPart::Field(it.to_owned()));
        let is_part = path.len() > 1 && !outside.contains(&path[0]);
        let is_one_of_several = reason == "FieldValueForbidden" && path.len() > 2;
        (is_part && !immutable::is_refusal(message)).then_some(Self { path, is_one_of_several })
    }
}

/// What is claimed so that the next apply removes it.
#[derive(Debug, Clone, PartialEq)]
pub struct Claim {
    /// The entries of `managedFields` in which the fields are ours, and those of earlier managers too.
    pub managed_fields: Vec<Value>,
    /// The object as the next apply leaves it, but for what the API server adds and for `managedFields`.
    pub object: Value,
}

/// Returns what is to be claimed of an object of a kind so that it can become the `applied` one; `None` if
/// nothing that it lacks is in the way.
///
/// A refused field that the applied object lacks is in the way itself. Of one that it has, and that may not
/// be set beside others, the others are that it lacks. What another manager owns stays: the server refuses
/// the object for that again.
pub fn claim(
    kind: &GroupVersionKind,
    live: &Value,
    applied: &Value,
    refused: &[RefusedField],
) -> Option<Claim> {
    let entries = live.pointer("/metadata/managedFields")?.as_array()?;
    let taken = takeover(kind, entries).map(|it| it.managed_fields);
    let mut managed_fields = taken.unwrap_or_else(|| entries.clone());
    let ours = managed_fields.iter_mut().find(|it| is_ours(it))?;
    if ours["apiVersion"] != api_version(kind) {
        return None;
    }
    let fields = ours["fieldsV1"].as_object_mut()?;
    let mut is_claimed = false;
    for field in refused {
        is_claimed |= claim_at(fields, live, applied, field, &field.path);
    }
    if !is_claimed {
        return None;
    }
    let object = updated(live, applied, &managed_fields);
    Some(Claim { managed_fields, object })
}

/// Returns an object as a server-side apply leaves it that is not refused, but for what the API server adds
/// and for `managedFields`: the given entries say which of its fields are ours.
pub fn updated(live: &Value, applied: &Value, managed_fields: &[Value]) -> Value {
    let (mut fields, mut others) = (Map::new(), Map::new());
    for entry in managed_fields {
        let owned = if is_ours(entry) { &mut fields } else { &mut others };
        unite(owned, entry["fieldsV1"].as_object().unwrap_or(&Map::new()));
    }
    let mut object = live.clone();
    remove(&mut object, &subtract(&lacking(&fields, applied), &others));
    merge(&mut object, applied, Some(&fields).filter(|it| !it.is_empty()));
    object
}

/// Claims what is in the way of a field, whose path leads on from here; returns whether there is any.
///
/// Positions in a list are those of the object that was refused, so that all items of the list are
/// considered that are ours and in both objects.
fn claim_at(
    fields: &mut Map<String, Value>,
    live: &Value,
    applied: &Value,
    refused: &RefusedField,
    path: &[PathPart],
) -> bool {
    let Some((part, rest)) = path.split_first() else { return false };
    let PathPart::Field(name) = part else {
        let mut is_claimed = false;
        for (element, below) in fields.iter_mut() {
            let (Some(selector), Some(below)) = (selector(element), below.as_object_mut()) else {
                continue;
            };
            let there = items(live).find(|it| is_selected(it, &selector));
            let wanted = items(applied).find(|it| is_meant(it, &selector));
            if let (Some(there), Some(wanted)) = (there, wanted) {
                is_claimed |= claim_at(below, there, wanted, refused, rest);
            }
        }
        return is_claimed;
    };
    if applied[name.as_str()].is_null() {
        return claim_field(fields, live, name);
    }
    if rest.is_empty() {
        return refused.is_one_of_several && claim_others(fields, live, applied);
    }
    let element = format!("f:{name}");
    let mut below = match fields.get(&element) {
        None => Map::new(),
        Some(Value::Object(below)) if !below.is_empty() => below.clone(),
        // It is ours as a whole, so that the apply has replaced it.
        Some(_) => return false,
    };
    let (live, applied) = (&live[name.as_str()], &applied[name.as_str()]);
    let is_claimed = claim_at(&mut below, live, applied, refused, rest);
    if is_claimed {
        fields.insert(element, below.into());
    }
    is_claimed
}

/// Claims the members of a struct that the applied object lacks, but for single values: the defaults of
/// these are in nothing's way.
fn claim_others(fields: &mut Map<String, Value>, live: &Value, applied: &Value) -> bool {
    let mut is_claimed = false;
    for (name, value) in live.as_object().into_iter().flatten() {
        if (value.is_object() || value.is_array()) && applied[name.as_str()].is_null() {
            is_claimed |= claim_field(fields, live, name);
        }
    }
    is_claimed
}

/// Claims a field; returns false if the object lacks it.
fn claim_field(fields: &mut Map<String, Value>, live: &Value, name: &str) -> bool {
    if live[name].is_null() {
        return false;
    }
    let owned = fields.entry(format!("f:{name}")).or_insert_with(|| json!({}));
    // An empty set means the field itself; beside fields in it that is a dot.
    if let Some(owned) = owned.as_object_mut().filter(|it| !it.is_empty()) {
        owned.insert(".".to_owned(), json!({}));
    }
    true
}

/// Returns the fields that an applied object lacks. What an apply removes, it removes with the defaults in it.
fn lacking(fields: &Map<String, Value>, applied: &Value) -> Map<String, Value> {
    let mut found = Map::new();
    for (element, below) in fields {
        let value = match (element.strip_prefix("f:"), selector(element)) {
            (Some(name), _) => Some(&applied[name]).filter(|it| !it.is_null()),
            (None, Some(selector)) => items(applied).find(|it| is_meant(it, &selector)),
            // The item itself, or an item of a set, which the apply replaces.
            (None, None) => continue,
        };
        let Some(value) = value else {
            found.insert(element.clone(), as_members(below));
            continue;
        };
        let rest = below.as_object().map(|below| lacking(below, value)).unwrap_or_default();
        if !rest.is_empty() {
            found.insert(element.clone(), rest.into());
        }
    }
    found
}

/// Returns owned fields with every map among them owned itself.
///
/// Upstream: structured-merge-diff/fieldpath/set.go: EnsureNamedFieldsAreMembers
fn as_members(fields: &Value) -> Value {
    let Some(fields) = fields.as_object().filter(|it| !it.is_empty()) else {
        return json!({});
    };
    let below = fields.iter().map(|(element, below)| (element.clone(), as_members(below)));
    below.chain([(".".to_owned(), json!({}))]).collect::<Map<_, _>>().into()
}

/// Merges an applied object into another as a server-side apply does, as far as `fields` tell the keys of
/// lists. A field that is owned as a whole is replaced.
fn merge(object: &mut Value, applied: &Value, fields: Option<&Map<String, Value>>) {
    let is_whole = fields.is_some_and(Map::is_empty);
    match (&mut *object, applied) {
        (Value::Object(object), Value::Object(applied)) if !is_whole => {
            for (name, value) in applied.iter().filter(|(_, value)| !value.is_null()) {
                let below = fields.and_then(|it| it.get(&format!("f:{name}")));
                let there = object.entry(name.clone()).or_insert(Value::Null);
                merge(there, value, below.and_then(Value::as_object));
            }
        }
        (Value::Array(items), Value::Array(applied)) => {
            let fields = fields.into_iter().flatten();
            let keyed: Vec<_> =
                fields.filter_map(|(name, below)| Some((selector(name)?, below))).collect();
            if keyed.is_empty() {
                items.clone_from(applied);
                return;
            }
            let mut rest = std::mem::take(items);
            for value in applied {
                let key = keyed.iter().find(|(selector, _)| is_meant(value, selector));
                let place = key.and_then(|(selector, below)| {
                    Some((rest.iter().position(|it| is_selected(it, selector))?, below))
                });
                items.push(match place {
                    Some((place, below)) => {
                        let mut item = rest.remove(place);
                        merge(&mut item, value, below.as_object());
                        item
                    }
                    None => value.clone(),
                });
            }
            items.append(&mut rest);
        }
        (object, applied) => object.clone_from(applied),
    }
}

/// Returns the keys of an item of a list; `None` if an element of `fieldsV1` is something else.
fn selector(element: &str) -> Option<Value> {
    serde_json::from_str(element.strip_prefix("k:")?).ok()
}

fn items(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten()
}

/// Returns whether an item of an applied list is the one with some keys. Keys that it lacks get defaults.
fn is_meant(item: &Value, selector: &Value) -> bool {
    let mut keys = selector.as_object().into_iter().flatten();
    keys.all(|(key, value)| item[key.as_str()].is_null() || item[key.as_str()] == *value)
}

#[cfg(test)]
mod tests;
