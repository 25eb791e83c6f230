//! Hides values that only an API server may see, as `kubectl diff` does: `***`, and where a
/// value changes, `*** (before)` and `*** (after)`.
use std::collections::BTreeSet;

use plimsoll_content::manifest::SENSITIVE;
use serde_json::Value;

/// In place of a value that is on one side only, or the same on both.
const HIDDEN: &str = "***";
/// In place of a value that changes.
const HIDDEN_BEFORE: &str = "*** (before)";
/// In place of what it becomes.
const HIDDEN_AFTER: &str = "*** (after)";

/// Fields of an object that hold nothing sensitive, but for [`LAST_APPLIED`].
const SHOWN: [&str; 5] = ["apiVersion", "immutable", "kind", "metadata", "type"];
/// The annotation in which kubectl keeps a copy of the whole object.
const LAST_APPLIED: &str =
    "/metadata/annotations/kubectl.kubernetes.io~1last-applied-configuration";

/// Whether an object says of itself that its values are sensitive.
pub fn is_annotated(object: &Value) -> bool {
    object["metadata"]["annotations"][SENSITIVE] == "true"
}

/// Hides the values of an object.
pub fn hide(object: &mut Value) {
    hide_changes(object, &mut Value::Null);
}

/// Hides the values of two forms of an object, so that only where they differ can be seen.
pub fn hide_changes(before: &mut Value, after: &mut Value) {
    for name in names(before, after).into_iter().filter(|name| !SHOWN.contains(&name.as_str())) {
        hide_pair(before.get_mut(&name), after.get_mut(&name));
    }
    hide_pair(before.pointer_mut(LAST_APPLIED), after.pointer_mut(LAST_APPLIED));
}

fn hide_pair(before: Option<&mut Value>, after: Option<&mut Value>) {
    match (before, after) {
        (Some(before), Some(after)) if before.is_object() && after.is_object() => {
            for name in names(before, after) {
                hide_pair(before.get_mut(&name), after.get_mut(&name));
            }
        }
        (Some(before), Some(after)) if before == after => {
            hide_one(before);
            hide_one(after);
        }
        (Some(before), Some(after)) => {
            *before = HIDDEN_BEFORE.into();
            *after = HIDDEN_AFTER.into();
        }
        (Some(one), None) | (None, Some(one)) => hide_one(one),
        (None, None) => {}
    }
}

fn hide_one(value: &mut Value) {
    match value {
        Value::Object(fields) => fields.values_mut().for_each(hide_one),
        _ => *value = HIDDEN.into(),
    }
}

/// The names of the fields that either of two values has.
fn names(before: &Value, after: &Value) -> BTreeSet<String> {
    let fields = [before, after].into_iter().filter_map(Value::as_object);
    fields.flat_map(|fields| fields.keys().cloned()).collect()
}
