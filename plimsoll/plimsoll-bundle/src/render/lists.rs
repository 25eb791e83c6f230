//! The lists in an object.

use serde_json::{Value, json};

/// The items of a list, which is there afterwards.
pub(super) fn list<'v>(value: &'v mut Value, field: &str) -> &'v mut Vec<Value> {
    let list = &mut value[field];
    if !list.is_array() {
        *list = json!([]);
    }
    list.as_array_mut().expect("it is a list: made so above")
}

/// The items of a list, if there is one.
pub(super) fn items<'v>(
    value: &'v mut Value,
    field: &str,
) -> impl Iterator<Item = &'v mut Value> + use<'v> {
    value.get_mut(field).and_then(Value::as_array_mut).into_iter().flatten()
}
