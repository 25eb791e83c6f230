//! Places in an object, and filling them.
//!
//! `a.b` is a field, created on the way where it is missing; `a?.b` only where `a` is there; `a[].b`
//! in each item of a list.
use serde_json::{Map, Value};

use super::table::{Default, Rules};

/// Fills in each rule below `root`, which is a place too.
pub(super) fn fill_all(value: &mut Value, root: &str, rules: Rules) {
    visit(value, root, &mut |value| {
        for (place, default) in rules {
            fill(value, place, default);
        }
    });
}

/// Calls `act` with every value at `place`.
pub(super) fn visit(value: &mut Value, place: &str, act: &mut dyn FnMut(&mut Value)) {
    if place.is_empty() {
        return act(value);
    }
    let (head, rest) = place.split_once('.').unwrap_or((place, ""));
    let Some(map) = value.as_object_mut() else { return };
    if let Some(name) = head.strip_suffix("[]") {
        if let Some(Value::Array(items)) = map.get_mut(name) {
            items.iter_mut().for_each(|item| visit(item, rest, act));
        }
    } else if let Some(name) = head.strip_suffix('?') {
        if let Some(inner) = map.get_mut(name).filter(|inner| !inner.is_null()) {
            visit(inner, rest, act);
        }
    } else {
        visit(child(map, head), rest, act);
    }
}

/// The object at `name`, created where it is missing.
pub(super) fn child<'a>(map: &'a mut Map<String, Value>, name: &str) -> &'a mut Value {
    let inner = map.entry(name).or_insert(Value::Null);
    if inner.is_null() {
        *inner = Value::Object(Map::new());
    }
    inner
}

fn fill(value: &mut Value, place: &str, default: &Default) {
    let (parent, name) = place.rsplit_once('.').unwrap_or(("", place));
    visit(value, parent, &mut |parent| {
        let Some(map) = parent.as_object_mut() else { return };
        if is_unset(map.get(name), default) {
            map.insert(name.to_owned(), default.value());
        }
    });
}

/// Go cannot tell an empty string from none, nor zero from none where the field is no pointer.
fn is_unset(value: Option<&Value>, default: &Default) -> bool {
    match (value, default) {
        (None | Some(Value::Null), _) => true,
        (Some(Value::String(text)), Default::Text(_)) => text.is_empty(),
        (Some(Value::Number(number)), Default::NonZero(_)) => number.as_i64() == Some(0),
        _ => false,
    }
}
