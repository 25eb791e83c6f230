//! Changes of definitions, and what is said of each.

use serde_json::{Value, json};

use super::{DefinitionError, UpgradeVerdict, check, invalidated};

/// A definition with one version, `v1`, whose `spec` has the schema.
fn with_spec(spec: &Value) -> Value {
    definition(&[("v1", true, spec)])
}

/// A definition with versions (name, whether it is served, the schema of `spec`); objects are stored
/// in the last one.
fn definition(versions: &[(&str, bool, &Value)]) -> Value {
    let last = versions.len() - 1;
    let version = |(index, (name, served, spec)): (usize, &(&str, bool, &Value))| {
        json!({
            "name": name, "served": served, "storage": index == last,
            "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}},
        })
    };
    let versions: Vec<Value> = versions.iter().enumerate().map(version).collect();
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "lamps.example.org"},
        "spec": {
            "group": "example.org", "scope": "Namespaced", "names": {"kind": "Lamp"},
            "versions": versions,
        },
        "status": {"storedVersions": [versions[last]["name"]]},
    })
}

/// What is said: problems as `VERSION PROPERTY RULE`, differences with their reason.
fn said(verdict: &UpgradeVerdict) -> Vec<String> {
    let place = |version: &Option<String>, property: &Option<String>, rule: &str| {
        let parts = [version.as_deref(), property.as_deref(), Some(rule)];
        parts.into_iter().flatten().collect::<Vec<_>>().join(" ")
    };
    let problems =
        verdict.problems.iter().map(|it| place(&it.version, &it.property, it.rule.as_str()));
    let differences = verdict.differences.iter().map(|it| {
        format!("({}: {:?})", place(&it.version, &it.property, it.rule.as_str()), it.reason)
    });
    problems.chain(differences).collect()
}

/// A `spec` with one field, `x`.
fn with_x(field: &Value) -> Value {
    json!({"type": "object", "properties": {"x": field}})
}

#[test]
fn a_change_of_a_field_is_a_problem_unless_all_objects_stay_valid() {
    let table: Vec<(Value, Value, &[&str])> = vec![
        (json!({"type": "string"}), json!({"type": "string"}), &[]),
        (json!({"type": "string"}), json!({"type": "integer"}), &["v1 ^.spec.x type"]),
        (json!({"description": "a"}), json!({"description": "b"}), &[]),
        (json!({"title": "a"}), json!({"title": "b"}), &["(v1 ^.spec.x unhandled: Documentation)"]),
        (json!({"default": 1}), json!({"default": 1.0}), &[]),
        (json!({}), json!({"default": null}), &[]),
        (json!({}), json!({"default": "a"}), &["v1 ^.spec.x default"]),
        (json!({"default": "a"}), json!({}), &["v1 ^.spec.x default"]),
        (json!({"maximum": 5}), json!({"maximum": 6}), &[]),
        (json!({"maximum": 5}), json!({"maximum": 4}), &["v1 ^.spec.x maximum"]),
        (json!({}), json!({"minLength": 0}), &["v1 ^.spec.x minLength"]),
        (json!({"minItems": 2}), json!({}), &[]),
        (json!({"enum": ["a"]}), json!({"enum": ["b", "a"]}), &[]),
        (json!({"enum": ["a", "b"]}), json!({"enum": ["a"]}), &["v1 ^.spec.x enum"]),
        (json!({}), json!({"enum": ["a"]}), &["v1 ^.spec.x enum"]),
        (json!({"enum": ["a"]}), json!({}), &["(v1 ^.spec.x enum: Relaxed)"]),
        (json!({"pattern": "a"}), json!({}), &["v1 ^.spec.x pattern"]),
        (json!({}), json!({"nullable": true}), &["v1 ^.spec.x nullable"]),
        (json!({}), json!({"required": ["a"]}), &["v1 ^.spec.x required"]),
        (json!({"required": ["a", "b"]}), json!({"required": ["b"]}), &[]),
        (json!({}), json!({"properties": {"a": {"type": "string"}}}), &[]),
        (
            json!({"properties": {"a": {"type": "string"}}}),
            json!({}),
            &["existingFieldRemoval", "v1 ^.spec.x.a type"],
        ),
        (
            json!({"items": {"format": "int32"}}),
            json!({"items": {"format": "int64"}}),
            &["(v1 ^.spec.x.items unhandled: Relaxed)"],
        ),
        (json!({"format": "int64"}), json!({"format": "int32"}), &["v1 ^.spec.x unhandled"]),
        (json!({}), json!({"uniqueItems": true}), &["v1 ^.spec.x unhandled"]),
        (
            json!({}),
            json!({"x-kubernetes-list-type": "atomic"}),
            &["(v1 ^.spec.x unhandled: SameMeaning)"],
        ),
        (json!({}), json!({"x-kubernetes-map-type": "atomic"}), &["v1 ^.spec.x unhandled"]),
    ];
    for (old, new, expected) in table {
        let verdict = check(&with_spec(&with_x(&old)), &with_spec(&with_x(&new))).unwrap();
        assert_eq!(said(&verdict), expected, "{old} -> {new}");
        assert_eq!(verdict.allowed, verdict.problems.is_empty());
    }
}

#[test]
fn the_values_of_a_map_are_compared_field_by_field() {
    let map = |values: Value| with_x(&json!({"type": "object", "additionalProperties": values}));
    let table: Vec<(Value, Value, &[&str])> = vec![
        (
            json!({"description": "a"}),
            json!({"description": "b"}),
            &["(v1 ^.spec.x unhandled: MapValues)"],
        ),
        (
            json!({"properties": {}}),
            json!({"properties": {"a": {"type": "string"}}}),
            &["(v1 ^.spec.x unhandled: MapValues)"],
        ),
        (
            json!({"type": "string"}),
            json!({"type": "integer"}),
            &["v1 ^.spec.x unhandled", "v1 ^.spec.x.additionalProperties type"],
        ),
        (
            json!({"type": "string"}),
            json!(true),
            &[
                "existingFieldRemoval",
                "v1 ^.spec.x unhandled",
                "v1 ^.spec.x.additionalProperties type",
            ],
        ),
    ];
    for (old, new, expected) in table {
        let verdict = check(&with_spec(&map(old.clone())), &with_spec(&map(new.clone()))).unwrap();
        assert_eq!(said(&verdict), expected, "{old} -> {new}");
    }
}

#[test]
fn alternatives_have_no_order_and_may_become_weaker() {
    let (a, b) = (json!({"required": ["a"]}), json!({"required": ["b"]}));
    let rule = |rule: &str, message: &str| json!({"x-kubernetes-validations": [{"rule": rule, "message": message}]});
    let table: Vec<(Value, Value, bool)> = vec![
        (json!({"oneOf": [a, b]}), json!({"oneOf": [b, a]}), true),
        (json!({"oneOf": [a]}), json!({"oneOf": [b, a]}), false),
        (json!({"oneOf": [a]}), json!({"oneOf": [a, b]}), false),
        (json!({"oneOf": [a]}), json!({"oneOf": [a, a]}), false),
        (json!({"oneOf": [a, b]}), json!({"oneOf": [a]}), false),
        (json!({"oneOf": [a, b]}), json!({}), false),
        (json!({}), json!({"oneOf": [a]}), false),
        (json!({"anyOf": [a]}), json!({"anyOf": [b, a]}), true),
        (json!({"anyOf": [a, b]}), json!({"anyOf": [a]}), false),
        (json!({"anyOf": [a, b]}), json!({}), true),
        (json!({}), json!({"anyOf": [a, b]}), false),
        (json!({"allOf": [a, b]}), json!({"allOf": [b]}), true),
        (json!({"allOf": [b]}), json!({"allOf": [a, b]}), false),
        (json!({"not": a}), json!({}), true),
        (json!({"not": a}), json!({"not": b}), false),
        (rule("self.a", "x"), json!({}), true),
        (rule("self.a", "x"), rule("self.a", "y"), true),
        (rule("self.a", "x"), rule("self.b", "x"), false),
    ];
    for (old, new, allowed) in table {
        let verdict = check(&with_spec(&with_x(&old)), &with_spec(&with_x(&new))).unwrap();
        assert_eq!(verdict.allowed, allowed, "{old} -> {new}: {:?}", said(&verdict));
    }
}

#[test]
fn changes_of_alternatives_are_problems_wherever_they_are_unless_known_to_be_harmless() {
    let places = [
        "/properties/x",
        "/properties/list/items",
        "/properties/map/additionalProperties",
        "/allOf/0",
        "/anyOf/0",
        "/oneOf/0",
        "/not",
        "/oneOf/1/not/anyOf/0",
    ];
    let (a, b) = (json!({"required": ["a"]}), json!({"required": ["b"]}));
    let changes = [
        (json!({}), json!({"oneOf": [a, b]})),
        (json!({}), json!({"anyOf": [a, b]})),
        (json!({}), json!({"allOf": [a]})),
        (json!({}), json!({"not": a})),
        (json!({"oneOf": [a]}), json!({"oneOf": [a, b]})),
        (json!({"oneOf": [a, b]}), json!({"oneOf": [a]})),
        (json!({"anyOf": [a, b]}), json!({"anyOf": [b]})),
        (json!({"allOf": [a]}), json!({"allOf": [a, b]})),
        (json!({"not": {"required": ["a", "b"]}}), json!({"not": a})),
    ];
    let spec = |place: &str, written: &Value| {
        let mut spec = json!({
            "type": "object",
            "properties": {
                "x": {"type": "object"},
                "list": {"type": "array", "items": {"type": "object"}},
                "map": {"type": "object", "additionalProperties": {"type": "object"}},
            },
            "allOf": [{"minProperties": 1}],
            "anyOf": [{"minProperties": 1}],
            "oneOf": [{"minProperties": 1}, {"not": {"anyOf": [{"minProperties": 1}]}}],
            "not": {"minProperties": 9},
        });
        let schema = spec.pointer_mut(place).and_then(Value::as_object_mut).expect(place);
        schema.extend(written.as_object().cloned().unwrap_or_default());
        with_spec(&spec)
    };
    for place in places {
        for (old, new) in &changes {
            let verdict = check(&spec(place, old), &spec(place, new)).unwrap();
            assert!(!verdict.allowed, "{place}: {old} -> {new}");
        }
    }
}

#[test]
fn served_versions_may_differ_no_more_than_before() {
    let at = |older: Value, newer: Value| {
        definition(&[("v1beta1", true, &with_x(&older)), ("v1", true, &with_x(&newer))])
    };
    let required = |names: &[&str]| json!({"required": names});
    let maximum = |maximum: u64| json!({"maximum": maximum});
    let table: Vec<(Value, Value, &[&str])> = vec![
        (at(json!({}), required(&["a"])), at(json!({}), required(&["a"])), &[]),
        // Upstream says the one or the other.
        (
            at(json!({}), required(&["a", "b"])),
            at(json!({}), required(&["a", "b"])),
            &["(v1beta1 -> v1 ^.spec.x required: Existing)"],
        ),
        (
            at(maximum(9), maximum(5)),
            at(maximum(9), maximum(6)),
            &["(v1beta1 -> v1 ^.spec.x maximum: Existing)"],
        ),
        (
            at(maximum(9), maximum(5)),
            at(maximum(9), maximum(4)),
            &["v1 ^.spec.x maximum", "v1beta1 -> v1 ^.spec.x maximum"],
        ),
        (
            at(json!({}), json!({})),
            at(json!({}), required(&["a"])),
            &["v1 ^.spec.x required", "v1beta1 -> v1 ^.spec.x required"],
        ),
    ];
    for (old, new, expected) in table {
        assert_eq!(said(&check(&old, &new).unwrap()), expected, "{new}");
    }
    let mut new = at(json!({"type": "string"}), json!({"type": "integer"}));
    let old = at(json!({"type": "string"}), json!({"type": "string"}));
    new["spec"]["conversion"] = json!({"strategy": "Webhook"});
    assert_eq!(said(&check(&old, &new).unwrap()), ["v1 ^.spec.x type"], "a webhook converts");
}

#[test]
fn the_definition_itself_is_compared() {
    let old = definition(&[("v1beta1", true, &json!({})), ("v1", true, &json!({}))]);
    let mut new = definition(&[("v2", true, &json!({}))]);
    new["spec"]["scope"] = json!("Cluster");
    let verdict = check(&old, &new).unwrap();
    assert_eq!(said(&verdict), ["scope", "storedVersionRemoval"]);
    let messages: Vec<&str> = verdict.problems.iter().map(|it| it.message.as_str()).collect();
    assert!(messages[0].contains("from Namespaced to Cluster"), "{messages:?}");
    assert!(messages[1].contains("stored in v1,"), "{messages:?}");
}

#[test]
fn a_version_without_a_schema_has_a_verdict() {
    let with = with_spec(&json!({}));
    let mut without = with.clone();
    without["spec"]["versions"][0]["schema"] = Value::Null;
    let check = |old: &Value, new: &Value, expected: &[&str]| {
        assert_eq!(said(&check(old, new).unwrap()), expected);
    };
    check(&without, &without, &[]);
    check(&with, &without, &["v1 schema"]);
    check(&without, &with, &["v1 schema"]);
}

#[test]
fn definitions_of_v1beta1_have_one_schema_for_all_versions() {
    let mut old = with_spec(&json!({"type": "string"}));
    let schema = old["spec"]["versions"][0]["schema"].clone();
    old["apiVersion"] = json!("apiextensions.k8s.io/v1beta1");
    old["spec"]["versions"] = Value::Null;
    old["spec"]["version"] = json!("v1");
    old["spec"]["validation"] = schema;
    let new = with_spec(&json!({"type": "integer"}));
    assert_eq!(said(&check(&old, &new).unwrap()), ["v1 ^.spec type"]);
}

#[test]
fn documents_that_are_not_two_states_of_a_definition_are_refused() {
    let good = with_spec(&json!({}));
    let check = |old: &Value, new: &Value, expected: &str| {
        let error: DefinitionError = check(old, new).unwrap_err();
        assert_eq!(error.to_string(), expected);
    };
    let mut other = good.clone();
    other["metadata"]["name"] = json!("cranes.example.org");
    let mut empty = good.clone();
    empty["spec"]["versions"] = json!([]);
    check(
        &json!(null),
        &good,
        "the old document is no CustomResourceDefinition of apiextensions.k8s.io/v1 or v1beta1",
    );
    check(&good, &empty, "the new document has no spec.versions");
    check(
        &good,
        &other,
        "they define two resources, lamps.example.org and cranes.example.org: compare definitions \
         of one name",
    );
}

#[test]
fn objects_that_the_new_schema_refuses_are_named() {
    let old = with_spec(&with_x(&json!({"type": "string"})));
    let new = with_spec(&with_x(&json!({
        "type": "string",
        "x-kubernetes-validations": [{"rule": "self != 'dim'", "message": "too dark"}],
        "maxLength": 6,
    })));
    let lamp = |name: &str, x: Value| {
        json!({
            "apiVersion": "example.org/v1", "kind": "Lamp",
            "metadata": {"name": name, "namespace": "hall"}, "spec": {"x": x},
        })
    };
    let objects = [
        lamp("bright", json!("bright")),
        lamp("dim", json!("dim")),
        lamp("glaring", json!("glaring")),
        // It is not valid today either.
        lamp("broken", json!(7)),
    ];
    let found = invalidated(&old, &new, &objects).unwrap();
    let found: Vec<String> = found
        .iter()
        .map(|it| format!("{} {}: {}", it.name, it.errors[0].path, it.errors[0].message()))
        .collect();
    assert_eq!(
        found,
        [
            "dim spec.x: Invalid value: \"dim\": too dark",
            "glaring spec.x: Too long: may not be more than 6 bytes",
        ]
    );
}
