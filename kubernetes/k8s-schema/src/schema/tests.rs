//! Which schemas are structural.
#![expect(clippy::needless_pass_by_value, reason = "tables of owned values read better")]
use serde_json::{Value, json};

use crate::Schema;

#[track_caller]
fn check(schema: Value, expected: &[&str]) {
    let errors: Vec<String> = match Schema::from_crd(&schema, false) {
        Ok(_) => Vec::new(),
        Err(errors) => errors.iter().map(ToString::to_string).collect(),
    };
    assert_eq!(errors, expected);
}

#[test]
fn every_field_has_one_type() {
    check(json!({"type": "object", "properties": {"spec": {"type": "object"}}}), &[]);
    check(
        json!({"type": "object", "properties": {"spec": {}}}),
        &["properties[spec].type: Required value: must not be empty for specified object fields"],
    );
    check(json!({}), &["type: Required value: must not be empty at the root"]);
    check(
        json!({"type": "object", "properties": {"l": {"type": "array", "items": {}}}}),
        &["properties[l].items.type: Required value: must not be empty for specified array items"],
    );
    check(
        json!({"type": "object", "properties": {"l": {"type": "array"}}}),
        &["properties[l].items: Required value: must be specified"],
    );
    check(
        json!({"type": "string"}),
        &[r#"type: Invalid value: "string": must be object at the root"#],
    );
}

#[test]
fn types_may_be_left_out_where_the_extension_says_why() {
    check(
        json!({"type": "object", "properties": {
            "port": {"x-kubernetes-int-or-string": true, "anyOf": [{"type": "integer"}, {"type": "string"}]},
            "any": {"x-kubernetes-preserve-unknown-fields": true},
        }}),
        &[],
    );
}

#[test]
fn value_validations_declare_no_types() {
    check(
        json!({"type": "object", "anyOf": [{"type": "object"}, {"properties": {"a": {"description": "x"}}}]}),
        &[
            "anyOf[0].type: Forbidden: must be empty to be structural",
            "anyOf[1].properties[a].description: Forbidden: must be empty to be structural",
            "properties[a]: Required value: because it is defined in anyOf[1].properties[a]",
        ],
    );
}

#[test]
fn no_schema_is_no_type() {
    let schema = Schema::from_crd(&Value::Null, true).expect("no schema is fine");
    assert!(schema.is_untyped());
}
