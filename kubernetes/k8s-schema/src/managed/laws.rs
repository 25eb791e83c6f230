//! Laws of server-side apply on random objects.
use proptest::prelude::*;
use proptest::test_runner::FileFailurePersistence;
use serde_json::{Map, Value, json};

use super::{ManagerInfo, server_side_apply, track_update};
use crate::Schema;
use crate::fields::FieldSet;

fn schema() -> Schema {
    let item = json!({"type": "object", "required": ["k"], "properties": {
        "k": {"type": "string"}, "v": {"type": "string"},
        "inner": {"type": "object", "additionalProperties": {"type": "string"}}}});
    let schema = json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {
        "a": {"type": "string"}, "b": {"type": "string"},
        "set": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
        "atomic": {"type": "array", "items": {"type": "string"}},
        "map": {"type": "object", "additionalProperties": {"type": "string"}},
        "list": {"type": "array", "x-kubernetes-list-type": "map",
                 "x-kubernetes-list-map-keys": ["k"], "items": item},
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
    }}}});
    Schema::from_crd(&schema, false).expect("a structural schema")
}

fn word() -> impl Strategy<Value = String> {
    "[p-s]"
}

fn words() -> impl Strategy<Value = Vec<String>> {
    prop::sample::subsequence(vec!["p", "q", "r", "s"], 0..=4)
        .prop_shuffle()
        .prop_map(|words| words.into_iter().map(str::to_owned).collect())
}

fn map_of(names: Vec<String>, value: &str) -> Value {
    Value::Object(names.into_iter().map(|name| (name, json!(value))).collect())
}

fn any_item() -> impl Strategy<Value = (Option<String>, Option<Value>)> {
    let inner = (words(), word()).prop_map(|(names, value)| map_of(names, &value));
    (prop::option::of(word()), prop::option::of(inner))
}

/// An object that fits the schema.
fn any_object() -> impl Strategy<Value = Value> {
    let list = (words(), prop::collection::vec(any_item(), 4)).prop_map(|(keys, items)| {
        let items = keys.into_iter().zip(items).map(|(key, (value, inner))| {
            let mut item = Map::new();
            item.insert("k".to_owned(), json!(key));
            item.extend(value.map(|value| ("v".to_owned(), json!(value))));
            item.extend(inner.map(|inner| ("inner".to_owned(), inner)));
            Value::Object(item)
        });
        Value::Array(items.collect())
    });
    let field = |name: &'static str, value: BoxedStrategy<Value>| {
        prop::option::of(value).prop_map(move |value| value.map(|value| (name.to_owned(), value)))
    };
    let free = (words(), word())
        .prop_map(|(names, value)| json!({"deep": map_of(names, &value), "list": [value]}));
    (
        field("a", word().prop_map(Value::from).boxed()),
        field("b", word().prop_map(Value::from).boxed()),
        field("set", words().prop_map(Value::from).boxed()),
        field("atomic", words().prop_map(Value::from).boxed()),
        field("map", (words(), word()).prop_map(|(names, value)| map_of(names, &value)).boxed()),
        field("list", list.boxed()),
        field("free", free.boxed()),
    )
        .prop_map(|(a, b, set, atomic, map, list, free)| {
            let fields = [a, b, set, atomic, map, list, free].into_iter().flatten();
            let spec: Map<String, Value> = fields.collect();
            json!({"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "x"}, "spec": spec})
        })
}

fn apply(live: Option<&Value>, object: &Value, manager: &str, second: u32) -> Value {
    let now = format!("2026-01-01T00:00:{second:02}Z");
    let manager_info = manager_info(manager, &now);
    server_side_apply(&schema(), live, object, &manager_info, true)
        .expect("the object fits its schema")
}

fn manager_info<'a>(manager: &'a str, now: &'a str) -> ManagerInfo<'a> {
    ManagerInfo { manager, api_version: "example.com/v1", subresource: "", now, reset_fields: &[] }
}

fn owned_by(object: &Value, manager: &str) -> FieldSet {
    let entries = object["metadata"]["managedFields"].as_array().cloned().unwrap_or_default();
    entries
        .iter()
        .filter(|entry| entry["manager"] == manager)
        .map(|entry| FieldSet::from_fields_v1(&entry["fieldsV1"]).expect("FieldsV1"))
        .fold(FieldSet::default(), |all, set| all.union(&set))
}

fn spec_sorted(object: &Value) -> Value {
    let mut spec = object["spec"].clone();
    for name in ["set", "list"] {
        if let Some(items) = spec.get_mut(name).and_then(Value::as_array_mut) {
            items.sort_by_key(ToString::to_string);
        }
    }
    spec
}

/// The cases that failed once, which are played first.
const FAILED: FileFailurePersistence = FileFailurePersistence::Direct(concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../tests/seeds/properties.txt"
));

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: Some(Box::new(FAILED)), ..ProptestConfig::default() })]

    #[test]
    fn applying_twice_is_applying_once(first in any_object(), second in any_object()) {
        let live = apply(Some(&apply(None, &first, "one", 0)), &second, "two", 1);
        prop_assert_eq!(&apply(Some(&live), &second, "two", 2), &live);
    }

    #[test]
    fn what_is_applied_is_there_and_owned(first in any_object(), second in any_object()) {
        let live = apply(Some(&apply(None, &first, "one", 0)), &second, "two", 1);
        let alone = apply(None, &second, "two", 1);
        prop_assert_eq!(owned_by(&live, "two"), owned_by(&alone, "two"));
        let restated = apply(Some(&live), &alone_without_owners(&alone), "three", 2);
        prop_assert_eq!(&restated["spec"], &live["spec"]);
    }

    #[test]
    fn the_last_word_of_a_sole_applier_is_the_object(first in any_object(), second in any_object()) {
        let live = apply(Some(&apply(None, &first, "one", 0)), &second, "one", 1);
        let alone = apply(None, &second, "one", 1);
        prop_assert_eq!(owned_by(&live, "one"), owned_by(&alone, "one"));
        prop_assert_eq!(non_empty(&live), non_empty(&without_times(&live, &alone)));
    }

    #[test]
    fn managers_of_different_fields_may_come_in_any_order(object in any_object()) {
        let (mut left, mut right) = (object.clone(), object.clone());
        for (index, name) in ["a", "b", "set", "atomic", "map", "list", "free"].iter().enumerate() {
            let loser = if index % 2 == 0 { &mut left } else { &mut right };
            if let Some(spec) = loser["spec"].as_object_mut() {
                spec.remove(*name);
            }
        }
        let one_way = apply(Some(&apply(None, &left, "left", 0)), &right, "right", 0);
        let other_way = apply(Some(&apply(None, &right, "right", 0)), &left, "left", 0);
        prop_assert_eq!(spec_sorted(&one_way), spec_sorted(&other_way));
        prop_assert_eq!(owned_by(&one_way, "left"), owned_by(&other_way, "left"));
        prop_assert_eq!(owned_by(&one_way, "right"), owned_by(&other_way, "right"));
    }

    #[test]
    fn forced_values_have_one_owner(first in any_object(), second in any_object()) {
        let live = apply(Some(&apply(None, &first, "one", 0)), &second, "two", 1);
        let shared = owned_by(&live, "one").intersection(&owned_by(&live, "two"));
        for name in ["a", "b"] {
            let path = [
                crate::fields::PathElement::Field("spec".to_owned()),
                crate::fields::PathElement::Field(name.to_owned()),
            ];
            let same = first["spec"].get(name) == second["spec"].get(name);
            prop_assert!(!shared.contains(&path) || same);
        }
    }

    #[test]
    fn an_update_to_the_same_changes_nothing(first in any_object(), second in any_object()) {
        let live = apply(Some(&apply(None, &first, "one", 0)), &second, "two", 1);
        let live = { let mut live = live; live["metadata"]["uid"] = json!("u"); live };
        let now = "2026-01-01T00:00:09Z";
        prop_assert_eq!(&track_update(&schema(), Some(&live), live.clone(), &manager_info("three", now)), &live);
    }

    #[test]
    fn an_update_owns_exactly_what_it_changed(first in any_object(), second in any_object()) {
        let live = { let mut live = apply(None, &first, "one", 0); live["metadata"]["uid"] = json!("u"); live };
        let mut new = live.clone();
        new["spec"] = second["spec"].clone();
        let new = track_update(&schema(), Some(&live), new, &manager_info("two", "2026-01-01T00:00:01Z"));
        let shared = owned_by(&new, "one").intersection(&owned_by(&new, "two"));
        prop_assert!(shared.is_empty());
    }
}

/// The first object's owners with the spec of the second.
fn without_times(owners: &Value, object: &Value) -> Value {
    let mut object = object.clone();
    object["metadata"]["managedFields"] = owners["metadata"]["managedFields"].clone();
    object
}

fn alone_without_owners(object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(metadata) = object["metadata"].as_object_mut() {
        metadata.remove("managedFields");
    }
    object
}

/// A spec without what is empty: an applier that empties a list leaves nothing there.
fn non_empty(value: &Value) -> Value {
    match value {
        Value::Object(entries) => Value::Object(
            entries
                .iter()
                .map(|(key, value)| (key.clone(), non_empty(value)))
                .filter(|(_, value)| !is_empty(value))
                .collect(),
        ),
        Value::Array(items) => Value::Array(items.iter().map(non_empty).collect()),
        other => other.clone(),
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(entries) => entries.is_empty(),
        Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}
