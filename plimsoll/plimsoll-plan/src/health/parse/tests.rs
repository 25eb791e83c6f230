//! Odd objects read as if the odd part were missing.

use serde_json::{Value, json};

use super::{condition, is_terminating, namespaced_name, operator_version, versions};

#[test]
fn an_object_of_any_shape_is_read_without_panic() {
    for object in [
        json!(null),
        json!("text"),
        json!({"status": null}),
        json!({"status": {"conditions": {}, "versions": "x"}}),
        json!({"status": {"conditions": [null, 1, {"type": 5}], "versions": [[], {"name": 1}]}}),
    ] {
        assert_eq!(condition(&object, "Available"), None, "{object}");
        assert_eq!(operator_version(&object), None, "{object}");
    }
}

#[test]
fn conditions_and_versions_are_found_by_name() {
    let object: Value = json!({
        "metadata": {"name": "x", "namespace": "ns", "deletionTimestamp": "2026-01-01T00:00:00Z"},
        "status": {
            "conditions": [{"type": "Available", "status": "True", "reason": "AsExpected"}],
            "versions": [{"name": "operand", "version": "7"}, {"name": "operator", "version": "1.2.3"}],
        },
    });
    let available = condition(&object, "Available").expect("it is there");
    assert_eq!((available.status, available.reason, available.message), ("True", "AsExpected", ""));
    assert_eq!(operator_version(&object), Some("1.2.3"));
    assert_eq!(versions(&object).count(), 2);
    assert_eq!(namespaced_name(&object), "ns/x");
    assert!(is_terminating(&object));
}
