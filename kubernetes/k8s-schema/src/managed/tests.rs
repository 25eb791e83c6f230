//! Ownership: sequences of writes, and what they leave.
#![expect(clippy::needless_pass_by_value, reason = "tables of owned values read better")]
use serde_json::{Value, json};

use super::{ManagerInfo, server_side_apply, track_update};
use crate::{Schema, builtin};

/// One write of a sequence. The clock moves on a second with each.
enum Write {
    /// Manager, object, force.
    Apply(&'static str, Value, bool),
    /// Manager, merge patch to the live object.
    Update(&'static str, Value),
    /// An update whose outcome has no owners yet, as old objects have.
    Untracked(Value),
}

use Write::{Apply, Untracked, Update};

fn schema() -> Schema {
    let schema = json!({"type": "object", "properties": {
        "spec": {"type": "object", "properties": {
            "a": {"type": "string"}, "b": {"type": "string"}, "n": {"type": "number"},
            "set": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
            "atomic": {"type": "array", "items": {"type": "string"}},
            "struct": {"type": "object", "x-kubernetes-map-type": "atomic", "properties": {
                "x": {"type": "string"}, "y": {"type": "string"}}},
            "map": {"type": "object", "additionalProperties": {"type": "string"}},
            "list": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"],
                "items": {"type": "object", "required": ["k"], "properties": {
                    "k": {"type": "string"}, "v": {"type": "string"}, "w": {"type": "string"}}}},
            "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
        }},
        "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
    }});
    Schema::from_crd(&schema, false).expect("a structural schema")
}

/// Performs the writes; each error is a line, as is what is left of `spec` and who owns what.
fn run(schema: &Schema, writes: Vec<Write>) -> (Value, Vec<String>) {
    let mut live: Option<Value> = None;
    let mut errors = Vec::new();
    for (second, write) in writes.into_iter().enumerate() {
        let now = format!("2026-01-01T00:00:{second:02}Z");
        let manager_info = |manager| ManagerInfo {
            manager,
            api_version: "example.com/v1",
            subresource: "",
            now: &now,
            reset_fields: &["status"],
        };
        match write {
            Apply(manager, mut object, force) => {
                object["apiVersion"] = json!("example.com/v1");
                object["kind"] = json!("Thing");
                match server_side_apply(
                    schema,
                    live.as_ref(),
                    &object,
                    &manager_info(manager),
                    force,
                ) {
                    Ok(object) => live = Some(with_uid(object)),
                    Err(error) => errors.push(error.to_string()),
                }
            }
            Update(manager, patch) => {
                let old = live.clone().unwrap_or_else(|| json!({}));
                let new = crate::patch::merge_patch(&old, &patch);
                live = Some(with_uid(track_update(
                    schema,
                    live.as_ref(),
                    new,
                    &manager_info(manager),
                )));
            }
            Untracked(object) => live = Some(with_uid(object)),
        }
    }
    (live.unwrap_or_default(), errors)
}

fn with_uid(mut object: Value) -> Value {
    object["metadata"]["uid"] = json!("u");
    object
}

/// Each owner as `manager operation second: fields`.
fn owners(object: &Value) -> Vec<String> {
    let entries = object["metadata"]["managedFields"].as_array().cloned().unwrap_or_default();
    entries
        .iter()
        .map(|entry| {
            let text = |key: &str| entry[key].as_str().unwrap_or("-").to_owned();
            let fields = crate::fields::FieldSet::from_fields_v1(&entry["fieldsV1"])
                .expect("FieldsV1")
                .to_string()
                .replace('\n', " ");
            let second =
                text("time").trim_end_matches('Z').rsplit(':').next().unwrap_or("-").to_owned();
            format!("{} {} {second}: {fields}", text("manager"), text("operation"))
        })
        .collect()
}

#[track_caller]
fn check(writes: Vec<Write>, spec: Value, expected_owners: &[&str]) {
    check_with(&schema(), writes, spec, expected_owners, &[]);
}

#[track_caller]
fn check_with(
    schema: &Schema,
    writes: Vec<Write>,
    spec: Value,
    expected_owners: &[&str],
    expected_errors: &[&str],
) {
    let (object, errors) = run(schema, writes);
    assert_eq!(errors, expected_errors);
    assert_eq!(object["spec"], spec);
    assert_eq!(owners(&object), expected_owners);
}

fn spec(value: Value) -> Value {
    json!({"spec": value})
}

#[test]
fn an_applier_owns_what_it_applies() {
    check(
        vec![Apply("one", spec(json!({"a": "1", "map": {"x": "1"}, "atomic": ["p"]})), false)],
        json!({"a": "1", "map": {"x": "1"}, "atomic": ["p"]}),
        &["one Apply 00: .spec.a .spec.atomic .spec.map.x"],
    );
}

#[test]
fn applying_the_same_again_changes_nothing() {
    let object = || spec(json!({"a": "1", "list": [{"k": "x", "v": "1"}]}));
    check(
        vec![Apply("one", object(), false), Apply("one", object(), false)],
        json!({"a": "1", "list": [{"k": "x", "v": "1"}]}),
        &["one Apply 00: .spec.a .spec.list[k=\"x\"] .spec.list[k=\"x\"].k .spec.list[k=\"x\"].v"],
    );
}

#[test]
fn what_is_applied_no_more_is_removed_unless_others_own_it() {
    check(
        vec![
            Apply("one", spec(json!({"a": "1", "b": "1", "set": ["p", "q"]})), false),
            Apply("two", spec(json!({"b": "1", "set": ["q"]})), false),
            Apply("one", spec(json!({"a": "1"})), false),
        ],
        json!({"a": "1", "b": "1", "set": ["q"]}),
        // An apply that changes no value leaves no time.
        &["two Apply -: .spec.b .spec.set[=\"q\"]", "one Apply 02: .spec.a"],
    );
}

#[test]
fn a_whole_struct_goes_when_nothing_in_it_is_left() {
    check(
        vec![
            Apply("one", spec(json!({"a": "1", "map": {"x": "1"}, "list": [{"k": "x"}]})), false),
            Apply("one", json!({"metadata": {"labels": {"l": "1"}}}), false),
        ],
        Value::Null,
        &["one Apply 01: .metadata.labels.l"],
    );
}

#[test]
fn changing_what_others_own_is_a_conflict() {
    check_with(
        &schema(),
        vec![
            Apply("one", spec(json!({"a": "1", "b": "1"})), false),
            Apply("two", spec(json!({"a": "2"})), false),
            Update("three", spec(json!({"b": "3"}))),
            Apply("two", spec(json!({"a": "2", "b": "2"})), false),
        ],
        json!({"a": "1", "b": "3"}),
        &["one Apply 00: .spec.a", "three Update 02: .spec.b"],
        &[
            "Apply failed with 1 conflict: conflict with \"one\": .spec.a",
            "Apply failed with 2 conflicts: conflicts with \"one\":\n- .spec.a\nconflicts with \
             \"three\" using example.com/v1:\n- .spec.b",
        ],
    );
}

#[test]
fn force_takes_ownership() {
    check(
        vec![
            Apply("one", spec(json!({"a": "1", "b": "1"})), false),
            Apply("two", spec(json!({"a": "2"})), true),
        ],
        json!({"a": "2", "b": "1"}),
        &["one Apply 00: .spec.b", "two Apply 01: .spec.a"],
    );
}

#[test]
fn an_update_takes_over_what_it_changes_and_drops_what_it_removes() {
    check(
        vec![
            Apply("one", spec(json!({"a": "1", "b": "1", "map": {"x": "1"}})), false),
            Update("two", spec(json!({"a": "2", "b": null, "map": {"y": "2"}}))),
        ],
        json!({"a": "2", "map": {"x": "1", "y": "2"}}),
        &["one Apply 00: .spec.map.x", "two Update 01: .spec.a .spec.map.y"],
    );
    check(
        vec![Update("one", spec(json!({"a": "1"}))), Update("one", spec(json!({"b": "2"})))],
        json!({"a": "1", "b": "2"}),
        &["one Update 01: .spec .spec.a .spec.b"],
    );
    check(
        vec![Update("one", spec(json!({"a": "1"}))), Update("two", spec(json!({"a": "1"})))],
        json!({"a": "1"}),
        &["one Update 00: .spec .spec.a"],
    );
}

#[test]
fn atomic_fields_are_one() {
    check(
        vec![
            Apply("one", spec(json!({"struct": {"x": "1", "y": "1"}, "atomic": ["p"]})), false),
            Apply("two", spec(json!({"struct": {"x": "2"}, "atomic": ["q"]})), true),
        ],
        json!({"struct": {"x": "2"}, "atomic": ["q"]}),
        &["two Apply 01: .spec.atomic .spec.struct"],
    );
}

/// Checks the order of a set after a second manager applied its own.
#[track_caller]
fn check_order(live: Value, applied: Value, expected: Value) {
    let (object, errors) = run(
        &schema(),
        vec![
            Apply("one", spec(json!({"set": live})), false),
            Apply("two", spec(json!({"set": applied})), false),
        ],
    );
    assert!(errors.is_empty());
    assert_eq!(object["spec"]["set"], expected);
}

#[test]
fn lists_keep_the_order_of_what_is_applied() {
    check_order(json!(["a", "b"]), json!(["c"]), json!(["a", "b", "c"]));
    check_order(json!(["a", "b", "c"]), json!(["c", "a"]), json!(["b", "c", "a"]));
    check_order(json!(["a", "b", "c"]), json!(["x", "b"]), json!(["a", "x", "b", "c"]));
    check_order(
        json!(["a", "b", "c", "d"]),
        json!(["d", "x", "a"]),
        json!(["b", "c", "d", "x", "a"]),
    );
}

#[test]
fn what_was_there_before_is_one_owners() {
    check(
        vec![
            Untracked(spec(json!({"a": "1", "b": "1"}))),
            Apply("one", spec(json!({"a": "2"})), true),
        ],
        json!({"a": "2", "b": "1"}),
        &["one Apply 01: .spec.a", "before-first-apply Update 01: .spec .spec.b"],
    );
    check(
        vec![Untracked(spec(json!({"a": "1"}))), Update("one", spec(json!({"a": "2"})))],
        json!({"a": "2"}),
        &[],
    );
}

#[test]
fn empty_and_null_are_owned_as_they_are() {
    check(
        vec![Apply("one", spec(json!({"map": {}, "free": {"deep": {}}, "atomic": []})), false)],
        json!({"map": {}, "free": {"deep": {}}, "atomic": []}),
        &["one Apply 00: .spec.atomic .spec.map .spec.free.deep"],
    );
}

#[test]
fn numbers_compare_by_value() {
    check(
        vec![
            Apply("one", spec(json!({"n": 1})), false),
            Apply("two", spec(json!({"n": 1.0})), false),
        ],
        json!({"n": 1}),
        &["two Apply -: .spec.n", "one Apply 00: .spec.n"],
    );
}

#[test]
fn reset_fields_have_no_owner() {
    check(
        vec![Apply("one", json!({"spec": {"a": "1"}, "status": {"x": 1}}), false)],
        json!({"a": "1"}),
        &["one Apply 00: .spec.a"],
    );
}

#[test]
fn reset_fields_stay_as_they_are() {
    let object = || json!({"spec": {"a": "1"}, "status": {"x": 1}});
    let (once, _) = run(&schema(), vec![Apply("one", object(), false)]);
    // What a new object begins with is its kind's to say.
    assert_eq!(once["status"], json!({"x": 1}));
    let (twice, _) =
        run(&schema(), vec![Apply("one", object(), false), Apply("one", object(), false)]);
    assert_eq!(twice, once);
    let status = json!({"status": {"x": 2}});
    let (updated, _) = run(&schema(), vec![Apply("one", object(), false), Update("two", status)]);
    assert_eq!(updated, once);
}

#[test]
fn what_does_not_fit_is_refused() {
    check_with(
        &schema(),
        vec![
            Apply("one", spec(json!({"odd": 1})), false),
            Apply("one", spec(json!({"a": 1})), false),
            Apply("one", spec(json!({"list": [{"v": "1"}]})), false),
            Apply("one", spec(json!({"set": ["x", "x"]})), false),
            Apply("one", json!({"metadata": {"managedFields": []}}), false),
        ],
        Value::Null,
        &[],
        &[
            ".spec.odd: field not declared in schema",
            ".spec.a: expected string, got &value.valueUnstructured{Value:1}",
            ".spec.list: element 0: associative list with keys has an element that omits all key \
             fields [\"k\"] (and doesn't have default values for any key fields)",
            ".spec.set: duplicate entries for key [=\"x\"]",
            "metadata.managedFields must be nil",
        ],
    );
}

#[test]
fn an_empty_list_of_owners_forgets_them() {
    let (object, _) = run(
        &schema(),
        vec![
            Apply("one", spec(json!({"a": "1"})), false),
            Update("two", json!({"metadata": {"managedFields": [{}]}})),
        ],
    );
    assert_eq!(owners(&object), Vec::<String>::new());
}

#[test]
fn many_updaters_are_merged_into_one() {
    const MANAGERS: [&str; 12] =
        ["m00", "m01", "m02", "m03", "m04", "m05", "m06", "m07", "m08", "m09", "m10", "m11"];
    let writes = MANAGERS.iter().map(|name| {
        let mut map = serde_json::Map::new();
        map.insert((*name).to_owned(), json!("1"));
        Update(name, spec(json!({"map": map})))
    });
    let (object, _) = run(&schema(), writes.collect());
    let owners = owners(&object);
    assert_eq!(owners.len(), 10);
    assert_eq!(
        owners[0],
        "ancient-changes Update 02: .spec .spec.map .spec.map.m00 .spec.map.m01 .spec.map.m02"
    );
}

#[test]
fn without_a_schema_lists_are_atomic_and_maps_are_not() {
    check_with(
        &Schema::untyped(),
        vec![
            Apply("one", spec(json!({"list": [{"x": 1}], "map": {"p": {"q": 1}}})), false),
            Apply("two", spec(json!({"map": {"p": {"r": 1}}})), false),
        ],
        json!({"list": [{"x": 1}], "map": {"p": {"q": 1, "r": 1}}}),
        &[
            "one Apply 00: .spec .spec.list .spec.map .spec.map.p .spec.map.p.q",
            "two Apply 01: .spec .spec.map .spec.map.p .spec.map.p.r",
        ],
        &[],
    );
}

#[test]
fn keys_of_list_maps_may_be_defaults() {
    let schema = builtin::schema("", "v1", "Service").expect("built in");
    let object = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"},
        "spec": {"ports": [{"port": 53}, {"port": 53, "protocol": "UDP"}]}});
    let manager_info = ManagerInfo {
        manager: "one",
        api_version: "v1",
        subresource: "",
        now: "2026-01-01T00:00:00Z",
        reset_fields: &["status"],
    };
    let created =
        server_side_apply(&schema, None, &object, &manager_info, false).expect("it applies");
    let owned = created["metadata"]["managedFields"][0]["fieldsV1"].clone();
    assert_eq!(
        owned,
        json!({"f:spec": {"f:ports": {
            "k:{\"port\":53,\"protocol\":\"TCP\"}": {".": {}, "f:port": {}},
            "k:{\"port\":53,\"protocol\":\"UDP\"}": {".": {}, "f:port": {}, "f:protocol": {}}}}})
    );
    let later = ManagerInfo { now: "2026-01-01T00:00:09Z", ..manager_info };
    let again = server_side_apply(&schema, Some(&created), &object, &later, false);
    assert_eq!(again, Ok(created));
}

#[test]
fn kubectl_takes_over_from_its_client_side_self() {
    let last =
        json!({"apiVersion": "example.com/v1", "kind": "Thing", "spec": {"a": "1"}}).to_string();
    let live = json!({"spec": {"a": "1"}, "metadata": {"annotations":
        {"kubectl.kubernetes.io/last-applied-configuration": last}}});
    let (object, errors) = run(
        &schema(),
        vec![
            Update("kubectl-client-side-apply", live),
            Apply("other", spec(json!({"a": "2"})), false),
            Apply("kubectl", spec(json!({"a": "2"})), false),
        ],
    );
    assert_eq!(
        errors,
        ["Apply failed with 1 conflict: conflict with \"kubectl-client-side-apply\" using \
          example.com/v1: .spec.a"]
    );
    assert_eq!(object["spec"]["a"], "2");
    let annotation =
        &object["metadata"]["annotations"]["kubectl.kubernetes.io/last-applied-configuration"];
    let expected =
        "{\"apiVersion\":\"example.com/v1\",\"kind\":\"Thing\",\"spec\":{\"a\":\"2\"}}\n";
    assert_eq!(annotation, expected);
}
