//! What is taken over, and what an apply then leaves of an object.

#![expect(clippy::needless_pass_by_value, reason = "tables of owned values read better")]

use serde_json::{Value, json};

use super::{earlier_managers, takeover};
use crate::plan::GroupVersionKind;

const BEFORE: &str = "2026-01-01T00:00:00Z";
const AFTER: &str = "2026-01-02T00:00:00Z";

fn kind(group: &str, kind: &str) -> GroupVersionKind {
    GroupVersionKind { group: group.to_owned(), version: "v1".to_owned(), kind: kind.to_owned() }
}

fn entry(manager: &str, operation: &str, fields: Value) -> Value {
    json!({
        "manager": manager, "operation": operation, "apiVersion": "apps/v1", "time": BEFORE,
        "fieldsType": "FieldsV1", "fieldsV1": fields,
    })
}

fn theirs(manager: &str, fields: Value) -> Value {
    entry(manager, "Update", fields)
}

fn ours(fields: Value) -> Value {
    with(entry("plimsoll", "Apply", fields), "time", AFTER)
}

fn with(mut entry: Value, field: &str, value: &str) -> Value {
    entry[field] = value.into();
    entry
}

/// Checks whose fields are taken over, and which the next apply leaves of an object. Once taken over,
/// nothing is any more.
#[track_caller]
fn check(entries: Vec<Value>, object: Value, managers: &[&str], expected: Value) {
    let found =
        takeover(&kind("apps", "Deployment"), &entries).expect("there is an earlier manager");
    assert_eq!(found.managers.iter().map(String::as_str).collect::<Vec<_>>(), managers);
    let mut completed = found.completed(&object);
    let metadata = completed["metadata"].as_object_mut().expect("it has metadata");
    assert_eq!(metadata.remove("managedFields"), Some(found.managed_fields.clone().into()));
    assert_eq!(completed, expected);
    assert_eq!(takeover(&kind("apps", "Deployment"), &found.managed_fields), None);
}

#[track_caller]
fn check_none(kind: &GroupVersionKind, entries: &[Value]) {
    assert_eq!(takeover(kind, entries), None, "{entries:?}");
}

#[test]
fn what_a_client_side_apply_left_goes_with_its_annotation() {
    let last_applied = "kubectl.kubernetes.io/last-applied-configuration";
    let fields = json!({
        "f:data": { ".": {}, "f:a": {}, "f:b": {} },
        "f:metadata": { "f:annotations": { ".": {}, (format!("f:{last_applied}")): {} } },
    });
    let object = json!({
        "metadata": { "name": "n", "annotations": { last_applied: "{}" } },
        "data": { "a": "1", "b": "2", "c": "3" },
    });
    let expected = json!({ "metadata": { "name": "n" }, "data": { "a": "1", "c": "3" } });
    let applied = || ours(json!({ "f:data": { "f:a": {} } }));
    for manager in ["kubectl-client-side-apply", "kubectl"] {
        let entries = vec![applied(), theirs(manager, fields.clone())];
        check(entries, object.clone(), &[manager], expected.clone());
    }
}

#[test]
fn arguments_and_items_that_only_helm_owns_go() {
    let containers = |items: Value| {
        let pod = json!({ "f:spec": { "f:containers": items } });
        json!({ "f:spec": { "f:template": pod } })
    };
    let item = json!({ ".": {}, "f:name": {}, "f:value": {} });
    let main = r#"k:{"name":"main"}"#;
    let applied = containers(json!({
        main: { ".": {}, "f:name": {}, "f:image": {}, "f:env": { r#"k:{"name":"A"}"#: item } },
    }));
    let helm = containers(json!({
        ".": {},
        main: {
            ".": {}, "f:name": {}, "f:image": {}, "f:args": {},
            "f:env": { ".": {}, r#"k:{"name":"A"}"#: item, r#"k:{"name":"B"}"#: item },
        },
        r#"k:{"name":"sidecar"}"#: { ".": {}, "f:name": {}, "f:image": {} },
    }));
    let object = |containers: Value| {
        let pod = json!({ "spec": { "containers": containers } });
        json!({ "metadata": {}, "spec": { "template": pod } })
    };
    let variable = |name: &str| json!({ "name": name, "value": "1" });
    let sidecar = |name: &str| json!({ "name": name, "image": "i" });
    let before = object(json!([
        {
            "name": "main", "image": "i", "args": ["--old"],
            "env": [variable("A"), variable("B"), variable("C")],
        },
        sidecar("sidecar"),
        sidecar("injected"),
    ]));
    let expected = object(json!([
        { "name": "main", "image": "i", "env": [variable("A"), variable("C")] },
        sidecar("injected"),
    ]));
    for operation in ["Update", "Apply"] {
        let entries = vec![ours(applied.clone()), entry("helm", operation, helm.clone())];
        check(entries, before.clone(), &["helm"], expected.clone());
    }
}

#[test]
fn fields_that_live_managers_own_too_stay() {
    let field = |names: &[&str]| -> Value {
        let fields = names.iter().map(|name| (format!("f:{name}"), json!({})));
        json!({ "f:spec": Value::Object(fields.collect()) })
    };
    let entries = vec![
        ours(field(&["a"])),
        theirs("catalog", field(&["a", "b", "shared"])),
        theirs("olm", json!({ "f:spec": { "f:c": {}, "f:set": { "v:\"x\"": {} } } })),
        theirs("cluster-version-operator", field(&["d"])),
        theirs("another-client", field(&["shared", "own"])),
    ];
    let object = json!({
        "metadata": {},
        "spec": {
            "a": 1, "b": 1, "c": 1, "d": 1, "shared": 1, "own": 1, "unowned": 1, "set": ["x", "y"],
        },
    });
    let left = json!({ "a": 1, "shared": 1, "own": 1, "unowned": 1, "set": ["y"] });
    let expected = json!({ "metadata": {}, "spec": left });
    check(entries, object, &["catalog", "cluster-version-operator", "olm"], expected);
}

#[test]
fn replicas_finalizers_and_the_status_stay_with_their_manager() {
    let kept = json!({
        "f:metadata": { "f:finalizers": { "v:\"guard\"": {} } },
        "f:spec": { "f:replicas": {} },
        "f:status": { "f:phase": {} },
    });
    check_none(&kind("apps", "Deployment"), &[theirs("helm", kept.clone())]);
    let mut all = kept.clone();
    all["f:spec"]["f:paused"] = json!({});
    let scale = with(theirs("kube-controller-manager", kept.clone()), "subresource", "scale");
    let entries = [theirs("helm", all), scale.clone()];
    let found =
        takeover(&kind("apps", "Deployment"), &entries).expect("helm is an earlier manager");
    let mut taken = entry("plimsoll", "Apply", json!({ "f:spec": { "f:paused": {} } }));
    taken.as_object_mut().expect("an entry").remove("time");
    assert_eq!(found.managed_fields, [taken, theirs("helm", kept), scale]);
}

#[test]
fn what_both_own_is_united() {
    let applied = ours(json!({ "f:a": {}, "f:b": { "f:x": {} }, "f:c": { ".": {}, "f:x": {} } }));
    let fields = json!({ "f:a": { "f:x": {} }, "f:b": {}, "f:c": { "f:y": {} }, "f:d": {} });
    let found = takeover(&kind("apps", "Deployment"), &[applied, theirs("olm", fields)]);
    let expected = ours(json!({
        "f:a": { ".": {}, "f:x": {} },
        "f:b": { ".": {}, "f:x": {} },
        "f:c": { ".": {}, "f:x": {}, "f:y": {} },
        "f:d": {},
    }));
    assert_eq!(found.expect("there is an earlier manager").managed_fields, [expected]);
}

#[test]
fn live_managers_other_versions_and_namespaces_are_not_taken_over() {
    let deployment = kind("apps", "Deployment");
    let fields = || json!({ "f:spec": { "f:paused": {} } });
    let managers = [
        "kubectl-edit",
        "kubectl-label",
        "kubectl-rollout",
        "kubectl",
        "argocd-controller",
        "kube-controller-manager",
        "before-first-apply",
        "unknown",
        "plimsoll",
    ];
    for manager in managers {
        check_none(&deployment, &[ours(json!({})), theirs(manager, fields())]);
    }
    let helm = || theirs("helm", fields());
    for other in [
        entry("kubectl", "Apply", fields()),
        with(helm(), "subresource", "status"),
        with(theirs("kubectl-client-side-apply", fields()), "subresource", "scale"),
        with(helm(), "apiVersion", "extensions/v1beta1"),
        with(helm(), "time", "2026-01-02T00:00:01Z"),
    ] {
        check_none(&deployment, &[ours(json!({})), other]);
    }
    check_none(&kind("", "Namespace"), &[with(helm(), "apiVersion", "v1")]);
}

#[test]
fn earlier_managers_are_named() {
    let entries = [theirs("olm", json!({})), ours(json!({})), theirs("another", json!({}))];
    let object = json!({ "metadata": { "managedFields": entries } });
    assert_eq!(earlier_managers(&object).into_iter().collect::<Vec<_>>(), ["olm"]);
    assert!(earlier_managers(&json!({})).is_empty());
}
