//! Reading of reports that another version of the program may have written.

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

/// Reads an object of which parts may not be readable: these fields, and these items of lists, count as absent.
/// It is for statuses and for what is shown. A spec that cannot be read as a whole is not followed.
pub fn read_usable<T: DeserializeOwned + Default>(value: &Value) -> T {
    if let Ok(whole) = serde_json::from_value(value.clone()) {
        return whole;
    }
    let mut usable = Map::new();
    for (field, value) in value.as_object().into_iter().flatten() {
        let is_readable = |it: &Value| {
            let alone = Map::from_iter([(field.clone(), it.clone())]);
            serde_json::from_value::<T>(Value::Object(alone)).is_ok()
        };
        if is_readable(value) {
            usable.insert(field.clone(), value.clone());
        } else if let Some(items) = value.as_array() {
            let items = items.iter().filter(|it| is_readable(&Value::Array(vec![(*it).clone()])));
            usable.insert(field.clone(), items.cloned().collect());
        }
    }
    serde_json::from_value(Value::Object(usable)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    //! What is read of objects.

    use serde_json::json;

    use super::*;
    use crate::olm::OperatorStatus;

    #[test]
    fn what_cannot_be_read_counts_as_absent_and_nothing_else_does() {
        let entry = |state: &str, revision: u32| {
            json!({
                "state": state, "startedTime": "2026-01-01T00:00:00Z", "completionTime": null,
                "revision": revision, "bundle": "bar.v1.0.0", "version": "1.0.0",
            })
        };
        let status: OperatorStatus = read_usable(&json!({
            "revision": 3, "namespace": 7, "later": true,
            "history": [entry("Halted", 4), entry("Completed", 3)],
        }));
        assert_eq!(status.revision, Some(3));
        assert_eq!(status.namespace, "");
        let revisions: Vec<u32> = status.history.iter().map(|it| it.revision).collect();
        assert_eq!(revisions, [3]);
        assert_eq!(read_usable::<OperatorStatus>(&Value::Null), OperatorStatus::default());
    }
}
