//! Pruning, of custom resources and of built-in kinds.
#![expect(clippy::needless_pass_by_value, reason = "tables of owned values read better")]
use serde_json::{Value, json};

use super::{prune, unknown_fields};
use crate::{Schema, builtin};

fn custom(properties: Value) -> Schema {
    Schema::from_crd(&json!({"type": "object", "properties": properties}), false)
        .expect("a structural schema")
}

#[track_caller]
fn check(schema: &Schema, mut value: Value, expected: Value, dropped: &[&str]) {
    assert_eq!(unknown_fields(schema, &value), dropped);
    assert_eq!(prune(schema, &mut value), dropped);
    assert_eq!(value, expected);
}

#[test]
fn undeclared_fields_go_wherever_they_are() {
    let schema = custom(json!({
        "spec": {"type": "object", "properties": {
            "list": {"type": "array", "items": {"type": "object", "properties": {"a": {"type": "string"}}}},
            "map": {"type": "object", "additionalProperties": {"type": "object", "properties": {"a": {"type": "string"}}}},
        }},
    }));
    check(
        &schema,
        json!({"apiVersion": "v1", "kind": "A", "metadata": {"name": "n", "odd": 1},
               "extra": 1, "spec": {"list": [{"a": "1", "b": 2}], "map": {"k": {"a": "1", "b": 2}}}}),
        json!({"apiVersion": "v1", "kind": "A", "metadata": {"name": "n"},
               "spec": {"list": [{"a": "1"}], "map": {"k": {"a": "1"}}}}),
        &["extra", "metadata.odd", "spec.list[0].b", "spec.map.k.b"],
    );
}

#[test]
fn preserved_fields_stay_and_declared_ones_below_are_still_pruned() {
    let schema = custom(json!({
        "spec": {"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {
            "known": {"type": "object", "properties": {"a": {"type": "string"}}},
        }},
    }));
    check(
        &schema,
        json!({"spec": {"any": {"thing": 1}, "known": {"a": "1", "b": 2}}}),
        json!({"spec": {"any": {"thing": 1}, "known": {"a": "1"}}}),
        &["spec.known.b"],
    );
}

#[test]
fn a_list_keeps_unknown_fields_of_its_items() {
    let item = json!({"type": "object", "properties": {
        "a": {"type": "object", "properties": {"b": {"type": "string"}}},
    }});
    let list = |items: Value| json!({"type": "array", "x-kubernetes-preserve-unknown-fields": true, "items": items});
    let schema = custom(json!({
        "list": list(item.clone()),
        "nested": list(json!({"type": "array", "items": item})),
    }));
    let given = json!([{"a": {"b": "1", "c": 2}, "d": {"e": 3}}]);
    let kept = json!([{"a": {"b": "1"}, "d": {"e": 3}}]);
    check(
        &schema,
        json!({"list": given, "nested": [given]}),
        json!({"list": kept, "nested": [kept]}),
        &["list[0].a.c", "nested[0][0].a.c"],
    );
}

#[test]
fn an_embedded_resource_keeps_what_says_what_it_is() {
    let schema = custom(json!({
        "template": {"type": "object", "x-kubernetes-embedded-resource": true, "properties": {
            "spec": {"type": "object"},
        }},
    }));
    check(
        &schema,
        json!({"template": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}, "status": {}}}),
        json!({"template": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}}}),
        &["template.status"],
    );
}

#[test]
fn a_schema_for_items_is_pruned_as_one_without_a_word() {
    let crd = builtin::schema("apiextensions.k8s.io", "v1", "CustomResourceDefinition")
        .expect("built in");
    let with = |items: Value| json!({"spec": {"versions": [{"schema": {"openAPIV3Schema": {"items": items}}}]}});
    let items = json!({"type": "string", "anyOf": [{"required": ["a"], "optional": ["b"]}]});
    let kept = json!({"type": "string", "anyOf": [{"required": ["a"]}]});
    let mut value = with(items);
    assert_eq!(prune(&crd, &mut value), Vec::<String>::new());
    assert_eq!(value, with(kept));
}

#[test]
fn without_a_schema_everything_stays() {
    check(&Schema::untyped(), json!({"a": {"b": [1]}}), json!({"a": {"b": [1]}}), &[]);
}

#[test]
fn built_in_kinds_know_their_fields() {
    let schema = builtin::schema("apps", "v1", "Deployment").expect("built in");
    check(
        &schema,
        json!({"spec": {"replicas": 1, "bogus": 1, "template": {"spec": {"containers": [{"name": "c", "nope": 1}]}}}}),
        json!({"spec": {"replicas": 1, "template": {"spec": {"containers": [{"name": "c"}]}}}}),
        &["spec.bogus", "spec.template.spec.containers[0].nope"],
    );
    let crd = builtin::schema("apiextensions.k8s.io", "v1", "CustomResourceDefinition")
        .expect("built in");
    let properties = json!({"a": {"type": "string", "default": {"any": 1}, "odd": 1}});
    check(
        &crd,
        json!({"spec": {"versions": [{"schema": {"openAPIV3Schema": {"properties": properties}}}]}}),
        json!({"spec": {"versions": [{"schema": {"openAPIV3Schema": {"properties":
            {"a": {"type": "string", "default": {"any": 1}}}}}}]}}),
        &["spec.versions[0].schema.openAPIV3Schema.properties.a.odd"],
    );
}
