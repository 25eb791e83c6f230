//! The patch formats.
#![expect(clippy::needless_pass_by_value, reason = "tables of owned values read better")]
use serde_json::{Value, json};

use super::{
    COPIED_LEN_MAX, DEPTH_MAX, PatchError, json_patch, merge_patch, strategic_merge_patch,
};
use crate::builtin;

#[track_caller]
fn check_strategic(kind: (&str, &str), object: Value, patch: Value, expected: Value) {
    let schema = builtin::schema(kind.0, "v1", kind.1).expect("built in");
    let patched = strategic_merge_patch(&schema, &object, &patch).expect("the patch applies");
    assert_eq!(patched, expected);
}

const POD: (&str, &str) = ("", "Pod");

#[test]
fn lists_merge_by_the_key_of_their_type() {
    let object = json!({"spec": {"containers": [
        {"name": "a", "image": "1", "env": [{"name": "X", "value": "1"}]}, {"name": "b", "image": "1"}]}});
    check_strategic(
        POD,
        object.clone(),
        json!({"spec": {"containers": [{"name": "a", "image": "2", "env": [{"name": "Y", "value": "2"}]}]}}),
        json!({"spec": {"containers": [
            {"name": "a", "image": "2", "env": [{"name": "Y", "value": "2"}, {"name": "X", "value": "1"}]},
            {"name": "b", "image": "1"}]}}),
    );
    check_strategic(
        POD,
        object.clone(),
        json!({"spec": {"containers": [{"name": "a", "$patch": "delete"}]}}),
        json!({"spec": {"containers": [{"name": "b", "image": "1"}]}}),
    );
    check_strategic(
        POD,
        object.clone(),
        json!({"spec": {"containers": [{"$patch": "replace"}, {"name": "c", "image": "3"}]}}),
        json!({"spec": {"containers": [{"name": "c", "image": "3"}]}}),
    );
    check_strategic(
        POD,
        object,
        json!({"spec": {"$setElementOrder/containers": [{"name": "b"}, {"name": "a"}],
                        "containers": [{"name": "b", "image": "2"}]}}),
        json!({"spec": {"containers": [
            {"name": "b", "image": "2"},
            {"name": "a", "image": "1", "env": [{"name": "X", "value": "1"}]}]}}),
    );
}

#[test]
fn scalars_lists_and_maps_have_their_directives() {
    let finalizers = json!({"metadata": {"finalizers": ["a", "b"]}});
    check_strategic(
        POD,
        finalizers.clone(),
        json!({"metadata": {"finalizers": ["c"]}}),
        json!({"metadata": {"finalizers": ["c", "a", "b"]}}),
    );
    check_strategic(
        POD,
        finalizers,
        json!({"metadata": {"$deleteFromPrimitiveList/finalizers": ["a"]}}),
        json!({"metadata": {"finalizers": ["b"]}}),
    );
    check_strategic(
        POD,
        json!({"metadata": {"labels": {"a": "1", "b": "2"}}}),
        json!({"metadata": {"labels": {"$patch": "replace", "c": "3"}}}),
        json!({"metadata": {"labels": {"c": "3"}}}),
    );
    check_strategic(
        POD,
        json!({"metadata": {"labels": {"a": "1", "b": "2"}}}),
        json!({"metadata": {"labels": {"a": null, "new": {"x": null}}}}),
        json!({"metadata": {"labels": {"b": "2", "new": {}}}}),
    );
    check_strategic(
        ("apps", "Deployment"),
        json!({"spec": {"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}}}),
        json!({"spec": {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}}),
        json!({"spec": {"strategy": {"type": "Recreate"}}}),
    );
}

#[test]
fn lists_without_a_strategy_are_replaced() {
    check_strategic(
        POD,
        json!({"spec": {"containers": [{"name": "a", "args": ["1", "2"]}]}}),
        json!({"spec": {"containers": [{"name": "a", "args": ["3"]}]}}),
        json!({"spec": {"containers": [{"name": "a", "args": ["3"]}]}}),
    );
}

#[test]
fn a_list_item_without_its_key_is_refused() {
    let schema = builtin::schema("", "v1", "Pod").expect("built in");
    let (keyed, keyless) = (json!([{"name": "a"}]), json!([{"image": "x"}]));
    // Items of the live object are put in order with those of the patch.
    for (live, patch) in [(&keyed, &keyless), (&keyless, &keyed)] {
        let object = json!({"spec": {"containers": live}});
        let patch = json!({"spec": {"containers": patch}});
        let error = strategic_merge_patch(&schema, &object, &patch).expect_err("no key");
        let told = "map: map[image:x] does not contain declared merge key: name";
        assert_eq!(error.to_string(), told);
    }
}

#[test]
fn json_and_merge_patches_apply() {
    let object = json!({"a": 1, "b": {"c": 2}});
    let patch = json!([{"op": "test", "path": "/a", "value": 1}, {"op": "remove", "path": "/b/c"}]);
    assert_eq!(json_patch(&object, &patch).expect("it applies"), json!({"a": 1, "b": {}}));
    let failing = json!([{"op": "remove", "path": "/nope"}]);
    assert!(json_patch(&object, &failing).is_err());
    assert!(json_patch(&object, &json!({"op": "remove"})).is_err());
    assert_eq!(
        merge_patch(&object, &json!({"a": null, "b": {"d": 3}})),
        json!({"b": {"c": 2, "d": 3}})
    );
}

#[test]
fn json_patches_read_what_is_missing_as_null_and_count_from_the_end() {
    use super::json_patch;
    for (object, patch, expected) in [
        (
            json!({"a": 1}),
            json!([{"op": "replace", "path": "/b", "value": 2}]),
            json!({"a": 1, "b": 2}),
        ),
        (json!({}), json!([{"op": "copy", "from": "/a", "path": "/b"}]), json!({"b": null})),
        (json!({}), json!([{"op": "test", "path": "/a", "value": null}]), json!({})),
        (json!([1, 2]), json!([{"op": "remove", "path": "/-1"}]), json!([1])),
        (json!([1, 2]), json!([{"op": "add", "path": "/1", "value": 3}]), json!([1, 3, 2])),
        (json!({"m~/n": 1}), json!([{"op": "remove", "path": "/m~0~1n"}]), json!({})),
    ] {
        assert_eq!(json_patch(&object, &patch).ok(), Some(expected), "{patch}");
    }
    for patch in [
        json!([{"op": "move", "from": "/a", "path": "/a/b"}]),
        json!([{"op": "remove", "path": "/z"}]),
        json!([{"op": "add", "path": "/l/9", "value": 1}]),
        json!([{"op": "other", "path": "/a"}]),
        json!({"op": "remove"}),
    ] {
        assert!(json_patch(&json!({"a": {}, "l": []}), &patch).is_err(), "{patch}");
    }
}

#[test]
fn json_patches_have_bounds() {
    let doubled = json!({"op": "copy", "from": "/l", "path": "/l/-"});
    let copies = Value::Array(vec![doubled; 40]);
    let error = json_patch(&json!({"l": [1, 2, 3]}), &copies).expect_err("it grows without end");
    assert!(matches!(error, PatchError::CopiesTooMuch(found) if found > COPIED_LEN_MAX), "{error}");

    let nest = |levels: usize| (0..levels).fold(json!(1), |inner, _| json!({"a": inner}));
    let deep = "/a".repeat(DEPTH_MAX - 1);
    for (object, operation, fits) in [
        (json!({}), json!({"op": "add", "path": "/b", "value": nest(DEPTH_MAX - 1)}), true),
        (json!({}), json!({"op": "add", "path": "/b", "value": nest(DEPTH_MAX)}), false),
        (nest(DEPTH_MAX), json!({"op": "add", "path": format!("{deep}/b"), "value": 1}), true),
        (nest(DEPTH_MAX), json!({"op": "add", "path": format!("{deep}/b"), "value": {}}), false),
        (
            nest(70),
            json!({"op": "copy", "from": "/a", "path": format!("{}/b", "/a".repeat(60))}),
            false,
        ),
        (nest(70), json!({"op": "move", "from": "/a", "path": "/b"}), true),
    ] {
        let patched = json_patch(&object, &json!([operation.clone()]));
        assert_eq!(patched.is_ok(), fits, "{operation}");
    }
}

#[test]
fn merge_patches_leave_no_nulls_in_what_is_new() {
    use super::merge_patch;
    for (object, patch, expected) in [
        (json!({}), json!({"a": [{"b": null}]}), json!({"a": [{}]})),
        (
            json!({"a": {"b": 1}}),
            json!({"a": {"b": null, "c": {"d": null}}}),
            json!({"a": {"c": {}}}),
        ),
        (json!({"a": 1}), json!({"a": null}), json!({})),
    ] {
        assert_eq!(merge_patch(&object, &patch), expected, "{patch}");
    }
}
