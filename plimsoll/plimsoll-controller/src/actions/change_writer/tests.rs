//! The patches of changes, and what guards them.

use std::collections::BTreeSet;

use kube::core::DynamicObject;
use plimsoll_api::olm::action::{ChangeOperation, PlannedChange};
use plimsoll_operators::actions::report::ActionObject;
use plimsoll_operators::observed::ObservedOperator;
use serde_json::{Value, json};

use super::{
    change_of_release, created, departure, is_as_requested, update, with_chain, withdrawal,
};

/// Applies a patch to an object, and to one of which the resourceVersion was changed meanwhile, as
/// an API server does: a patch that names another one is a conflict.
fn applied(object: &Value, operations: &[json_patch::PatchOperation]) -> Value {
    let mut after = object.clone();
    json_patch::patch(&mut after, operations).expect("a patch of the object");
    let first = serde_json::to_value(&operations[0]).expect("an operation");
    let guard = json!({
        "op": "replace", "path": "/metadata/resourceVersion",
        "value": object["metadata"]["resourceVersion"],
    });
    assert_eq!(first, guard, "the patch names the resourceVersion that was read");
    after
}

fn operator(annotations: &Value) -> Value {
    json!({
        "metadata": {
            "resourceVersion": "7",
            "annotations": annotations,
            "labels": { "team": "quay", "olm.io/installed-as": "dependency" },
        },
        "spec": { "version": "1.2.5" },
    })
}

#[test]
fn an_update_is_guarded_and_leaves_a_mark_in_the_same_write() {
    for annotations in [Value::Null, json!({}), json!({ "olm.io/changed-by-action": "a0/3" })] {
        for (requested, change_set) in [("1.3.0", ""), ("", "set-1")] {
            let object = operator(&annotations);
            let change = PlannedChange {
                requested: requested.to_owned(),
                change_set: change_set.to_owned(),
                ..PlannedChange::default()
            };
            let after = applied(&object, &update(&object, &change, "a1/2"));
            let there = &after["metadata"]["annotations"];
            assert_eq!(there["olm.io/changed-by-action"], "a1/2");
            let version = after["spec"]["version"].as_str().unwrap_or_default();
            assert_eq!(version, requested);
            let set = there["olm.io/change-set"].as_str().unwrap_or_default();
            assert_eq!(set, change_set);
        }
    }
}

#[test]
fn an_update_leaves_the_change_set_that_was_planned_and_no_other() {
    let check = |leaves: &str, joins: &str, expected: &str| {
        let object = operator(&json!({ "olm.io/change-set": "update-1/2" }));
        let change = PlannedChange {
            requested: "1.2.5".into(),
            change_set: joins.into(),
            leaves_change_set: leaves.into(),
            ..PlannedChange::default()
        };
        let there = ObservedOperator::read(&object);
        assert_eq!(is_as_requested(&change, &there), expected == "update-1/2", "{leaves} {joins}");
        let after = applied(&object, &update(&object, &change, "a1/0"));
        let set = after["metadata"]["annotations"]["olm.io/change-set"].as_str();
        assert_eq!(set.unwrap_or_default(), expected, "{leaves} {joins}");
    };
    check("", "", "update-1/2");
    check("update-1/2", "", "");
    check("update-1/2", "update-2/2", "update-2/2");
    check("update-0/2", "", "update-1/2");
}

#[test]
fn an_operator_leaves_each_of_the_change_sets_that_end_and_no_other() {
    let check = |set: &str, expected: bool| {
        let object = operator(&json!({ "olm.io/change-set": set, "other": "stays" }));
        let read: DynamicObject = serde_json::from_value(object.clone()).expect("an object");
        let operations = departure(&read, &BTreeSet::from(["update-1/2", "update-2/3"]));
        assert_eq!(operations.is_some(), expected, "{set}");
        if let Some(operations) = operations {
            let after = applied(&object, &operations);
            assert_eq!(after["metadata"]["annotations"], json!({ "other": "stays" }));
        }
    };
    check("update-1/2", true);
    check("update-2/3", true);
    check("update-1/3", false);
    let in_none = operator(&Value::Null);
    let read: DynamicObject = serde_json::from_value(in_none).expect("an object");
    assert_eq!(departure(&read, &BTreeSet::from([""])), None);
}

#[test]
fn a_change_of_the_release_is_guarded_and_leaves_a_mark_in_the_same_write() {
    let check = |spec: Value, change: PlannedChange, expected: Value| {
        let object = json!({ "metadata": { "resourceVersion": "7" }, "spec": spec });
        let after = applied(&object, &change_of_release(&object, &change, "a1/0"));
        assert_eq!(after["spec"], expected);
        let mark = json!({ "olm.io/changed-by-action": "a1/0" });
        assert_eq!(after["metadata"]["annotations"], mark);
    };
    let enable = || PlannedChange {
        operation: ChangeOperation::EnableCapability,
        capability: "Console".into(),
        ..PlannedChange::default()
    };
    let list = |names: Value| json!({ "capabilities": { "additionalEnabledCapabilities": names } });
    check(json!({}), enable(), list(json!(["Console"])));
    check(json!({ "capabilities": {} }), enable(), list(json!(["Console"])));
    check(list(json!(["Insights"])), enable(), list(json!(["Insights", "Console"])));
    let release = PlannedChange {
        operation: ChangeOperation::UpdateRelease,
        requested: "4.2.0".into(),
        ..PlannedChange::default()
    };
    check(json!({}), release, json!({ "desiredUpdate": { "version": "4.2.0" } }));
}

#[test]
fn a_request_that_is_withdrawn_is_not_withdrawn_again() {
    let object = json!({
        "metadata": {
            "resourceVersion": "7",
            "annotations": { "olm.io/changed-by-action": "a1/0", "other": "stays" },
        },
        "spec": { "desiredUpdate": { "version": "4.2.0" }, "channel": "stable" },
    });
    let after = applied(&object, &withdrawal(&object));
    assert_eq!(after["spec"], json!({ "channel": "stable" }));
    assert_eq!(after["metadata"]["annotations"], json!({ "other": "stays" }));
}

#[test]
fn an_operator_is_created_under_the_planned_name_with_the_uid_of_the_action() {
    let manifest = json!({ "metadata": { "name": "other" }, "spec": { "version": "1.0.0" } });
    let change = PlannedChange {
        operator: "foo".into(),
        manifest: Some(manifest),
        change_set: "set-1".into(),
        ..PlannedChange::default()
    };
    let expected = json!({
        "name": "foo",
        "annotations": {
            "olm.io/created-by-action": "a1",
            "olm.io/created-in-namespace": "tea",
            "olm.io/change-set": "set-1",
        },
    });
    let (namespace, uid) = ("tea".to_owned(), "a1".to_owned());
    let action = ActionObject { namespace, uid, ..ActionObject::default() };
    assert_eq!(created(&action, &change)["metadata"], expected);
}

#[test]
fn the_label_of_a_dependency_that_is_asked_for_is_that_of_a_person() {
    for (becomes_requested, label) in [(false, "dependency"), (true, "user")] {
        let object = operator(&json!({}));
        let requested = "1.2.5".to_owned();
        let change = PlannedChange { requested, becomes_requested, ..PlannedChange::default() };
        let after = applied(&object, &update(&object, &change, "a1/0"));
        let labels = json!({ "team": "quay", "olm.io/installed-as": label });
        assert_eq!(after["metadata"]["labels"], labels);
    }
}

#[test]
fn an_action_leaves_what_led_to_it_with_the_generation_of_its_write() {
    let by = json!({ "olm.io/triggered-by": "a/x", "olm.io/triggered-generation": "4" });
    let check = |annotations: &Value, requested: &str, chain: &str, expected: Option<&str>| {
        let mut object = operator(annotations);
        object["metadata"]["generation"] = json!(4);
        let change = PlannedChange { requested: requested.to_owned(), ..PlannedChange::default() };
        let operations = with_chain(&object, update(&object, &change, "a1/2"), chain);
        let after = applied(&object, &operations);
        let there = &after["metadata"]["annotations"];
        assert_eq!(there["olm.io/changed-by-action"], "a1/2");
        let written = expected.map(|_| chain);
        assert_eq!(there["olm.io/triggered-by"].as_str(), written);
        assert_eq!(there["olm.io/triggered-generation"].as_str(), expected);
    };
    for annotations in [&Value::Null, &by] {
        check(annotations, "1.3.0", "a/x,b/y", Some("5"));
        check(annotations, "1.2.5", "a/x,b/y", Some("4"));
        check(annotations, "1.3.0", "", None);
    }
    let action = ActionObject {
        uid: "a1".to_owned(),
        triggered_by: "a/x".to_owned(),
        ..ActionObject::default()
    };
    let there = &created(&action, &PlannedChange::default())["metadata"]["annotations"];
    assert_eq!(there["olm.io/triggered-by"], "a/x");
    assert_eq!(there["olm.io/triggered-generation"], "1");
}

#[test]
fn an_operator_that_requests_what_was_inspected_says_so() {
    let inspected = |annotations: &Value, digest: Option<&str>, before: &str| {
        let digest = digest.map(|it| ("main/foo.v1.3.0".to_owned(), it.to_owned()));
        let change = PlannedChange {
            operation: ChangeOperation::Update,
            requested: "1.3.0".into(),
            requested_before: before.into(),
            inspected: digest.into_iter().collect(),
            ..PlannedChange::default()
        };
        let after =
            applied(&operator(annotations), &update(&operator(annotations), &change, "a1/0"));
        let made = created(&ActionObject::default(), &change);
        [after, made].map(|it| it["metadata"]["annotations"]["olm.io/inspected-content"].clone())
    };
    let earlier = json!({ "olm.io/inspected-content": "earlier", "other": "stays" });
    let expected = r#"{"bundles":{"main/foo.v1.3.0":"sha256:a"},"version":"1.3.0"}"#;
    assert_eq!(inspected(&earlier, Some("sha256:a"), "1.2.0"), [expected, expected]);
    assert_eq!(inspected(&earlier, Some("sha256:a"), "1.3.0"), [expected, expected]);
    assert_eq!(inspected(&Value::Null, Some("sha256:a"), "1.2.0"), [expected, expected]);
    assert_eq!(inspected(&earlier, None, "1.2.0"), [Value::Null, Value::Null]);
    // The same is requested as before.
    assert_eq!(inspected(&earlier, None, "1.3.0"), [json!("earlier"), Value::Null]);
}
