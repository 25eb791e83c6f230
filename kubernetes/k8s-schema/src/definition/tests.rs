//! Schemas that a definition may not have; most words are held against recorded answers in the API
//! server's tests.
use serde_json::json;

use super::*;

#[track_caller]
fn check(schema: &Value, has_status: bool, tolerance: Tolerance, expected: &[&str]) {
    let errors: Vec<String> = check_definition_schema(schema, "s", has_status, tolerance)
        .iter()
        .map(|error| error.to_string().chars().take(100).collect())
        .collect();
    assert_eq!(errors, expected);
}

#[test]
fn what_a_stored_definition_has_its_update_may_keep() {
    let schema = json!({"type": "object", "properties": {
        "set": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "object"}},
        "map": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"],
            "items": {"type": "object", "properties": {"k": {"type": "string"}}}},
    }});
    check(
        &schema,
        false,
        Tolerance::default(),
        &[
            "s.properties[map].items.properties[k].default: Required value: this property is in x-kubernetes-list",
            "s.properties[set].items.x-kubernetes-map-type: Invalid value: null: must be atomic as item of a list",
        ],
    );
    let tolerance = Tolerance::default().of(&schema);
    assert!(tolerance.non_atomic_sets && tolerance.loose_map_keys && !tolerance.unknown_types);
    check(&schema, false, tolerance, &[]);
}

#[test]
fn a_schema_with_a_status_endpoint_says_little_at_its_root() {
    let schema = json!({"type": "object", "minProperties": 1});
    check(&schema, false, Tolerance::default(), &[]);
    check(
        &schema,
        true,
        Tolerance::default(),
        &[
            "s: Invalid value: {\"minProperties\":1,\"type\":\"object\"}: only [Description Type Format Title Maximum E",
        ],
    );
}

#[test]
fn a_selectable_field_is_a_scalar_outside_of_metadata() {
    let schema = json!({"properties": {
        "spec": {"properties": {"a": {"type": "string"}, "o": {"type": "object"}}},
        "metadata": {"properties": {"name": {"type": "string"}}},
    }});
    let find = |path: &str| selectable_field(path, &schema).map_err(|problems| problems.len());
    assert_eq!(find(".spec.a"), Ok("spec.a".to_owned()));
    assert_eq!(find(".spec.o"), Err(1));
    assert_eq!(find(".metadata.name"), Err(1));
    assert_eq!(find(".spec.missing"), Err(1));
    assert_eq!(find("spec"), Err(1));
}
