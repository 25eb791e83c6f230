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
    let bound = |size: &str| {
        let mut claim = claim(size, "Bound");
        claim["status"]["capacity"] = json!({ "storage": "2Gi" });
        claim
    };
    let smaller =
        "spec.resources.requests.storage: Forbidden: field can not be less than status.capacity";
    check("", "PersistentVolumeClaim", bound("3Gi"), bound("1Gi"), &[smaller]);
    check("", "PersistentVolumeClaim", bound("4Gi"), bound("3Gi"), &[]);
}

#[test]
fn what_a_volume_is_made_of_never_changes() {
    let volume = |spec: Value| {
        let mut volume = json!({ "spec": {
            "accessModes": ["ReadWriteOnce"], "capacity": { "storage": "1Gi" },
        } });
        for (field, value) in spec.as_object().expect("an object") {
            volume["spec"][field] = value.clone();
        }
        volume
    };
    let csi = |handle: &str| json!({ "csi": { "driver": "d", "volumeHandle": handle } });
    let source = "spec.persistentvolumesource: Forbidden: spec.persistentvolumesource is immutable after creation";
    check("", "PersistentVolume", volume(csi("a")), volume(csi("b")), &[source]);
    let mut expanding = csi("a");
    expanding["csi"]["controllerExpandSecretRef"] = json!({ "name": "s", "namespace": "n" });
    check("", "PersistentVolume", volume(csi("a")), volume(expanding.clone()), &[]);
    check("", "PersistentVolume", volume(expanding), volume(csi("a")), &[source]);
    let driver = |attach: bool| json!({ "spec": { "attachRequired": attach } });
    let attached = "spec.attachedRequired: Invalid value: false: field is immutable";
    check("storage.k8s.io", "CSIDriver", driver(true), driver(false), &[attached]);
    let class = |name: &str| json!({ "driverName": name });
    let forbidden = "driverName: Forbidden: updates to driverName are forbidden.";
    check("storage.k8s.io", "VolumeAttributesClass", class("a"), class("b"), &[forbidden]);
    let ranges = |ranges: Value| json!({ "spec": { "cidrs": ranges } });
    let (one, two) = (ranges(json!(["10.0.0.0/16"])), ranges(json!(["10.0.0.0/16", "fd00::/64"])));
    check("networking.k8s.io", "ServiceCIDR", one.clone(), two, &[]);
    check(
        "networking.k8s.io",
        "ServiceCIDR",
        one,
        ranges(json!(["10.1.0.0/16"])),
        &["spec.cidrs[0]: Invalid value: \"10.1.0.0/16\": field is immutable"],
    );
}
