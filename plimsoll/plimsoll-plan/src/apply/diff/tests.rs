//! Pairs of values and the paths at which they differ.

use plimsoll_content::Manifest;
use plimsoll_content::manifest::SENSITIVE;
use serde_json::{Value, json};

use super::{FieldChange, fields, objects, without_bookkeeping};

fn check(before: &Value, after: &Value, expected: &[&str]) {
    let found: Vec<String> = fields(before, after).iter().map(line).collect();
    assert_eq!(found, expected, "{before} -> {after}");
}

fn line(change: &FieldChange) -> String {
    let text = |value: &Option<Value>| value.as_ref().map_or("-".to_owned(), Value::to_string);
    format!("{}: {} -> {}", change.path, text(&change.before), text(&change.after))
}

#[test]
fn fields_are_named_by_their_path() {
    check(&json!({"a": 1}), &json!({"a": 1}), &[]);
    check(
        &json!({"a": 1, "b": 2}),
        &json!({"b": 3, "c": null}),
        &["a: 1 -> -", "b: 2 -> 3", "c: - -> null"],
    );
    check(
        &json!({"metadata": {"labels": {"example.com/tier": "one"}}}),
        &json!({"metadata": {"labels": {"example.com/tier": "two"}}}),
        &["metadata.labels['example.com/tier']: \"one\" -> \"two\""],
    );
    check(&json!({"a": {"b": 1}}), &json!({"a": [1]}), &["a: {\"b\":1} -> [1]"]);
    check(&json!({"a": {}}), &json!({}), &["a: {} -> -"]);
}

#[test]
fn items_of_lists_are_identified_by_name() {
    let list = |items: Value| json!({ "containers": items });
    check(
        &list(json!([{"name": "one", "image": "a"}, {"name": "two", "image": "b"}])),
        &list(json!([{"name": "two", "image": "c"}])),
        &[
            "containers[name=one]: {\"image\":\"a\",\"name\":\"one\"} -> -",
            "containers[name=two].image: \"b\" -> \"c\"",
        ],
    );
    check(
        &list(json!([{"port": 80, "x": 1}])),
        &list(json!([{"port": 80, "x": 2}, {"port": 443}])),
        &["containers[port=443]: - -> {\"port\":443}", "containers[port=80].x: 1 -> 2"],
    );
}

#[test]
fn other_lists_are_compared_by_place_or_as_a_whole() {
    check(&json!({"a": [1, 2]}), &json!({"a": [2, 1]}), &["a: [1,2] -> [2,1]"]);
    check(
        &json!({"rules": [{"verbs": ["get"]}, {"verbs": ["list"]}]}),
        &json!({"rules": [{"verbs": ["get"]}, {"verbs": ["watch"]}]}),
        &["rules[1].verbs: [\"list\"] -> [\"watch\"]"],
    );
    check(
        &json!({"rules": [{"verbs": ["get"]}]}),
        &json!({"rules": []}),
        &["rules: [{\"verbs\":[\"get\"]}] -> []"],
    );
    // The same items in another order are a change, although no item differs.
    check(
        &json!([{"name": "a"}, {"name": "b"}]),
        &json!([{"name": "b"}, {"name": "a"}]),
        &[": [{\"name\":\"a\"},{\"name\":\"b\"}] -> [{\"name\":\"b\"},{\"name\":\"a\"}]"],
    );
}

#[test]
fn what_a_server_keeps_about_an_object_is_no_difference() {
    let object = json!({"metadata": {"name": "a", "uid": "u", "resourceVersion": "1"}, "data": {}});
    assert_eq!(without_bookkeeping(object), json!({"metadata": {"name": "a"}, "data": {}}));
}

#[test]
fn values_of_secrets_and_of_what_is_marked_sensitive_are_hidden() {
    let check = |kind: &str, annotations: Value, before: Value, after: Value, expected: &[&str]| {
        let object = |fields: &Value| {
            let metadata = json!({"name": "keys", "annotations": annotations});
            let mut object = json!({"apiVersion": "v1", "kind": kind, "metadata": metadata});
            for (name, value) in fields.as_object().expect("a mapping") {
                object[name] = value.clone();
            }
            object
        };
        let (before, after) = (object(&before), object(&after));
        let manifest = Manifest::read("0000_10_a_1.yaml".into(), 0, &after).expect("a manifest");
        let found: Vec<String> = objects(&manifest, &before, &after).iter().map(line).collect();
        assert_eq!(found, expected, "{before} -> {after}");
    };
    let none = || json!({});
    check(
        "Secret",
        none(),
        json!({"data": {"same": "YQ==", "other": "YQ==", "gone": "Yg=="}, "type": "Opaque"}),
        json!({"data": {"same": "YQ==", "other": "Yg==", "new": "Yg=="}, "type": "kubernetes.io/tls"}),
        &[
            "data.gone: \"***\" -> -",
            "data.new: - -> \"***\"",
            "data.other: \"*** (before)\" -> \"*** (after)\"",
            "type: \"Opaque\" -> \"kubernetes.io/tls\"",
        ],
    );
    check(
        "Secret",
        none(),
        none(),
        json!({"stringData": {"pin": 1234, "more": {"a": "b"}}}),
        &["stringData: - -> {\"more\":{\"a\":\"***\"},\"pin\":\"***\"}"],
    );
    check("Secret", none(), json!({"data": {"a": "b"}}), json!({"data": {"a": "b"}}), &[]);
    let differs = (json!({"data": {"a": ["x"]}}), json!({"data": {"a": ["y"]}}));
    let shown = ["data.a: [\"x\"] -> [\"y\"]"];
    check("ConfigMap", none(), differs.0.clone(), differs.1.clone(), &shown);
    let hidden = ["data.a: \"*** (before)\" -> \"*** (after)\""];
    check("ConfigMap", json!({SENSITIVE: "true"}), differs.0, differs.1, &hidden);
    // What kubectl left in an annotation is a copy of the object.
    let copy = "kubectl.kubernetes.io/last-applied-configuration";
    let (before, after) = (json!({"metadata": {"annotations": {copy: "x"}}}), none());
    check(
        "Secret",
        none(),
        before,
        after,
        &[
            "metadata.annotations['kubectl.kubernetes.io/last-applied-configuration']: \"***\" -> -",
            "metadata.name: - -> \"keys\"",
        ],
    );
}
