//! Updates of built-in kinds that change what may not change. What new objects are refused for is
//! held against recorded answers in the API server's tests.
#![expect(clippy::needless_pass_by_value, reason = "tables of owned values read better")]
use serde_json::json;

use super::*;

/// Checks what an update of `live` to `object` is refused for.
#[track_caller]
fn check(group: &str, kind: &str, live: Value, object: Value, expected: &[&str]) {
    let errors: Vec<String> = validate_builtin(group, kind, Some(&live), &object)
        .iter()
        .map(|error| error.to_string().chars().take(120).collect())
        .collect();
    assert_eq!(errors, expected);
}

fn pod(change: impl Fn(&mut Value)) -> Value {
    let mut pod = json!({"spec": {
        "containers": [{"name": "c", "image": "i"}],
        "restartPolicy": "Always",
        "nodeName": "n",
        "tolerations": [{"key": "a", "operator": "Exists"}],
    }});
    change(&mut pod["spec"]);
    pod
}

#[test]
fn a_pod_keeps_all_but_images_deadline_and_tolerations() {
    let check = |change: fn(&mut Value), expected: &[&str]| {
        check("", "Pod", pod(|_| ()), pod(change), expected);
    };
    check(|spec| spec["containers"][0]["image"] = json!("j"), &[]);
    check(|spec| spec["activeDeadlineSeconds"] = json!(5), &[]);
    check(
        |spec| {
            let more = json!({"key": "b", "operator": "Exists"});
            spec["tolerations"].as_array_mut().expect("a list").push(more);
        },
        &[],
    );
    check(
        |spec| spec["tolerations"] = json!([]),
        &[
            "spec.tolerations: Forbidden: existing toleration can not be modified except its tolerationSeconds",
        ],
    );
    check(
        |spec| spec["hostNetwork"] = json!(true),
        &[
            "spec: Forbidden: pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,",
        ],
    );
    check(
        |spec| spec["nodeName"] = json!("m"),
        &[
            "spec: Forbidden: pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,",
        ],
    );
}

#[test]
fn some_fields_never_change() {
    let class = |policy: &str| json!({"provisioner": "a/b", "reclaimPolicy": policy, "volumeBindingMode": "Immediate"});
    check(
        "storage.k8s.io",
        "StorageClass",
        class("Delete"),
        class("Retain"),
        &["reclaimPolicy: Invalid value: null: field is immutable"],
    );
    let priority = |value: i64| json!({"metadata": {"name": "a"}, "value": value});
    check(
        "scheduling.k8s.io",
        "PriorityClass",
        priority(1),
        priority(2),
        &["value: Forbidden: may not be changed in an update."],
    );
    let claim = |size: &str, phase: &str| {
        json!({"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}},
               "status": {"phase": phase}})
    };
    check(
        "",
        "PersistentVolumeClaim",
        claim("1Gi", "Pending"),
        claim("2Gi", "Pending"),
        &[
            "spec: Forbidden: spec is immutable after creation except resources.requests and volumeAttributesClassName for bound clai",
        ],
    );
    check("", "PersistentVolumeClaim", claim("1Gi", "Bound"), claim("2Gi", "Bound"), &[]);
}
