//! Fields that no update of an object changes, and the replacement of objects that change in one.

use k8s_schema::{apply_builtin_defaults, builtin, changed_immutable_fields, go_round_trip};
use plimsoll_api::ObjectKey;
use serde_json::Value;

use crate::Manifest;

/// Annotation of what is deleted and created again when a field changes that no update changes.
pub const REPLACE: &str = "plimsoll.io/replace";

/// Kinds that are never replaced, by group: what they contain would go with them.
const CONTAINERS: [(&str, &str); 4] = [
    ("", "Namespace"),
    ("", "PersistentVolume"),
    ("", "PersistentVolumeClaim"),
    ("apiextensions.k8s.io", "CustomResourceDefinition"),
];

/// Parts of the messages with which an API server refuses to change a field at all.
const REFUSALS: [&str; 7] = [
    "immutable",
    "cannot change roleRef",
    "may not be changed in an update",
    "may not change once set",
    "pod updates may not change fields other than",
    "updates to ",
    NO_ADDRESS,
];
/// A part of the message with which an API server refuses a Service of a type that needs an address and has none:
/// one that was headless stays so, whatever its manifest says.
const NO_ADDRESS: &str = "may not be set to 'None' for";
/// The field of a claim that may grow only.
const CLAIM_SIZE: &str = "spec.resources.requests.storage";

/// Returns the fields in which a manifest differs from an earlier one of the same object and that no update
/// changes, as far as its kind is built in.
pub fn changed_fields(before: &Manifest, after: &Manifest) -> Vec<String> {
    let key = &after.key;
    let completed = |manifest: &Manifest| {
        let mut object = manifest.object();
        apply_builtin_defaults(&key.group, &manifest.version, &key.kind, &mut object);
        // An API server stores a field that is empty as one that is not there, and 1024Mi as 1Gi.
        let mut stored = object.clone();
        let schema = builtin::schema(&key.group, &manifest.version, &key.kind);
        let is_read = schema.is_some_and(|it| go_round_trip(&it, &mut stored).is_ok());
        if is_read { stored } else { object }
    };
    let (before, after) = (completed(before), completed(after));
    if is(key, "apiextensions.k8s.io", "CustomResourceDefinition") {
        let scope = |it: &Value| it["spec"]["scope"].clone();
        let is_changed = scope(&before) != scope(&after);
        return is_changed.then(|| "spec.scope".to_owned()).into_iter().collect();
    }
    changed_immutable_fields(&key.group, &key.kind, &before, &after)
}

/// Returns whether an API server that says this of a field refuses to change it at all.
pub fn is_refusal(message: &str) -> bool {
    REFUSALS.iter().any(|text| message.contains(text))
}

/// Returns whether the manifest itself has what an API server refuses with this message, so that another object
/// of it is refused, too.
pub fn is_own_fault(manifest: &Manifest, message: &str) -> bool {
    message.contains(NO_ADDRESS) && manifest.object()["spec"]["clusterIP"] == "None"
}

/// Returns whether an object may be deleted and created again if its manifest asks for that.
pub fn may_be_replaced(key: &ObjectKey) -> bool {
    !CONTAINERS.iter().any(|(group, kind)| is(key, group, kind))
}

/// Returns whether an object is deleted and created again when a field changes that no update changes.
pub fn is_replaced(manifest: &Manifest) -> bool {
    manifest.is_annotated_true(REPLACE) && may_be_replaced(&manifest.key)
}

/// Returns why an object is not deleted to be created again although its manifest asks for that, in one line
/// without a stop; `None` if it may be. With a StatefulSet the claims of its pods may go.
pub fn loss(key: &ObjectKey, live: &Value) -> Option<String> {
    let spec = &live["spec"];
    let has_claims = spec["volumeClaimTemplates"].as_array().is_some_and(|it| !it.is_empty());
    let policy = &spec["persistentVolumeClaimRetentionPolicy"]["whenDeleted"];
    (is(key, "apps", "StatefulSet") && has_claims && policy == "Delete").then(|| {
        "it is not replaced, since spec.persistentVolumeClaimRetentionPolicy.whenDeleted is Delete: the \
         claims of its pods and their data would go with it; set that to Retain first"
            .to_owned()
    })
}

/// Returns why a manifest that changes fields of an earlier one of the same object is refused, in one line
/// without a stop; `None` if it changes none, or the object is replaced.
pub fn refused(before: &Manifest, after: &Manifest, fields: &[String]) -> Option<String> {
    if fields.is_empty() {
        None
    } else if is_replaced(after) {
        loss(&after.key, &before.object())
    } else {
        Some(refusal(after, fields))
    }
}

/// Returns why a manifest that changes these fields is refused, and what to do, in one line without a stop.
pub fn refusal(manifest: &Manifest, fields: &[String]) -> String {
    let is_smaller = fields.len() == 1 && fields[0] == CLAIM_SIZE;
    let changed = if is_smaller { "made smaller" } else { "changed" };
    let (verb, them) = if let [_] = fields { ("is", "it") } else { ("are", "them") };
    let way = if may_be_replaced(&manifest.key) {
        format!(
            "or set the annotation {REPLACE} to \"true\": the object is deleted and, once it is gone, \
             created again"
        )
    } else {
        "or give the object another name: it is never replaced, since what it contains would go with it"
            .to_owned()
    };
    format!("{} {verb} {changed}, which no update can: keep {them}, {way}", fields.join(", "))
}

fn is(key: &ObjectKey, group: &str, kind: &str) -> bool {
    key.group == group && key.kind == kind
}

#[cfg(test)]
mod tests {
    //! What changes in manifests, and what is said about it.

    #![expect(clippy::needless_pass_by_value, reason = "tables of owned values read better")]

    use serde_json::{Value, json};

    use super::{REPLACE, changed_fields, is_own_fault, is_refusal, is_replaced, loss, refusal};
    use crate::Manifest;

    fn manifest(api_version: &str, kind: &str, extra: Value) -> Manifest {
        let mut object =
            json!({ "apiVersion": api_version, "kind": kind, "metadata": { "name": "a" } });
        for (field, value) in extra.as_object().expect("an object") {
            object[field] = value.clone();
        }
        Manifest::read("f.yaml".into(), 0, &object).expect("a manifest")
    }

    #[track_caller]
    fn check(api_version: &str, kind: &str, before: Value, after: Value, expected: &[&str]) {
        let [before, after] = [before, after].map(|it| manifest(api_version, kind, it));
        assert_eq!(changed_fields(&before, &after), expected, "{kind}");
    }

    fn selecting(label: &str) -> Value {
        json!({ "spec": { "selector": { "matchLabels": { "app": label } } } })
    }

    #[test]
    fn fields_that_never_change_are_found_in_two_manifests() {
        for kind in ["Deployment", "DaemonSet", "StatefulSet"] {
            check("apps/v1", kind, selecting("a"), selecting("b"), &["spec.selector"]);
            check("apps/v1", kind, selecting("a"), selecting("a"), &[]);
        }
        let set = |replicas: i64, service: &str| {
            json!({ "spec": {
                "replicas": replicas, "serviceName": service, "minReadySeconds": replicas,
                "persistentVolumeClaimRetentionPolicy": { "whenScaled": "Delete" },
            } })
        };
        check("apps/v1", "StatefulSet", set(1, "a"), set(2, "b"), &["spec.serviceName"]);
        check("apps/v1", "StatefulSet", set(1, "a"), set(2, "a"), &[]);
        let job = |image: &str| {
            let pod = json!({ "containers": [{ "name": "c", "image": image }] });
            json!({ "spec": { "template": { "spec": pod } } })
        };
        check("batch/v1", "Job", job("a"), job("b"), &["spec.template"]);
        check("batch/v1", "CronJob", job("a"), job("b"), &[]);
        let role = |name: &str| {
            let group = "rbac.authorization.k8s.io";
            json!({ "roleRef": { "kind": "ClusterRole", "name": name, "apiGroup": group } })
        };
        let implied = json!({ "roleRef": { "kind": "ClusterRole", "name": "a" } });
        for kind in ["RoleBinding", "ClusterRoleBinding"] {
            let version = "rbac.authorization.k8s.io/v1";
            check(version, kind, role("a"), role("b"), &["roleRef"]);
            check(version, kind, implied.clone(), role("a"), &[]);
        }
        let priority = |value: i64| json!({ "value": value });
        check("scheduling.k8s.io/v1", "PriorityClass", priority(1), priority(2), &["value"]);
        let claim = |mode: &str, size: &str| {
            let resources = json!({ "requests": { "storage": size } });
            json!({ "spec": { "accessModes": [mode], "resources": resources } })
        };
        let (once, many) = (claim("ReadWriteOnce", "1Gi"), claim("ReadWriteMany", "1Gi"));
        check("v1", "PersistentVolumeClaim", once.clone(), many, &["spec"]);
        check("v1", "PersistentVolumeClaim", once.clone(), claim("ReadWriteOnce", "2Gi"), &[]);
        let smaller = claim("ReadWriteOnce", "512Mi");
        check("v1", "PersistentVolumeClaim", once, smaller, &["spec.resources.requests.storage"]);
        let driver = |spec: Value| json!({ "spec": spec });
        let (version, kind) = ("storage.k8s.io/v1", "CSIDriver");
        let other = driver(json!({ "attachRequired": false, "podInfoOnMount": true }));
        check(version, kind, driver(json!({})), other, &["spec.attachRequired"]);
        check(version, kind, driver(json!({})), driver(json!({ "attachRequired": true })), &[]);
        let ephemeral = driver(json!({ "volumeLifecycleModes": ["Ephemeral"] }));
        check(version, kind, driver(json!({})), ephemeral, &["spec.volumeLifecycleModes"]);
        let handler = |name: &str| json!({ "handler": name });
        check("node.k8s.io/v1", "RuntimeClass", handler("a"), handler("b"), &["handler"]);
        let frozen = |value: &str| json!({ "immutable": true, "data": { "a": value } });
        check("v1", "ConfigMap", frozen("1"), frozen("2"), &["data"]);
        let scope = |scope: &str| json!({ "spec": { "scope": scope } });
        let (version, kind) = ("apiextensions.k8s.io/v1", "CustomResourceDefinition");
        check(version, kind, scope("Cluster"), scope("Namespaced"), &["spec.scope"]);
    }

    #[test]
    fn what_is_stored_alike_is_no_change() {
        let pod = |spec: Value| json!({ "spec": { "template": { "spec": spec } } });
        let container = json!({ "name": "a", "resources": { "limits": { "memory": "1Gi" } } });
        let explicit = json!({
            "name": "a", "env": [], "resources": { "limits": { "memory": "1024Mi" } },
        });
        check(
            "batch/v1",
            "Job",
            pod(json!({ "containers": [container] })),
            pod(json!({ "containers": [explicit], "hostNetwork": false })),
            &[],
        );
        let volume = |nfs: Value| json!({ "spec": { "nfs": nfs } });
        check(
            "v1",
            "PersistentVolume",
            volume(json!({ "server": "a", "path": "/b" })),
            volume(json!({ "server": "a", "path": "/b", "readOnly": false })),
            &[],
        );
        let template = |spec: Value| json!({ "spec": { "spec": spec } });
        let devices = template(json!({ "devices": {} }));
        let (version, kind) = ("resource.k8s.io/v1", "ResourceClaimTemplate");
        check(version, kind, devices, template(json!({})), &[]);
    }

    #[test]
    fn the_address_of_a_service_stays() {
        let check = |before: Value, after: Value, expected: &[&str]| {
            let service = |spec: Value| json!({ "spec": spec });
            check("v1", "Service", service(before), service(after), expected);
        };
        let headless = || json!({ "clusterIP": "None" });
        let typed = |kind: &str| json!({ "type": kind });
        for kind in ["LoadBalancer", "NodePort"] {
            check(headless(), typed(kind), &["spec.clusterIP"]);
            check(typed(kind), headless(), &["spec.clusterIP"]);
        }
        check(json!({}), headless(), &["spec.clusterIP"]);
        check(headless(), json!({ "clusterIP": "10.0.0.1" }), &["spec.clusterIP"]);
        check(headless(), headless(), &[]);
        // It stays headless, which an API server accepts.
        check(headless(), json!({}), &[]);
        check(json!({}), typed("LoadBalancer"), &[]);
        check(headless(), json!({ "type": "ExternalName", "externalName": "a.b" }), &[]);
        check(json!({ "type": "ExternalName", "externalName": "a.b" }), headless(), &[]);
        let class = |name: &str| json!({ "type": "LoadBalancer", "loadBalancerClass": name });
        check(class("a/b"), class("a/c"), &["spec.loadBalancerClass"]);
        check(class("a/b"), json!({}), &[]);
        let families = |family: &str| json!({ "ipFamilies": [family] });
        check(families("IPv4"), families("IPv6"), &["spec.ipFamilies"]);
    }

    #[test]
    fn what_a_manifest_lacks_itself_is_no_change() {
        let message =
            "Invalid value: [\"None\"]: may not be set to 'None' for LoadBalancer services";
        let service = |address: &str| {
            let spec = json!({ "type": "LoadBalancer", "clusterIP": address });
            manifest("v1", "Service", json!({ "spec": spec }))
        };
        assert!(is_refusal(message));
        assert!(is_own_fault(&service("None"), message));
        assert!(!is_own_fault(&service(""), message));
    }

    #[test]
    fn a_refusal_says_in_one_line_what_to_do() {
        let job = manifest("batch/v1", "Job", json!({}));
        let fields = ["spec.completions", "spec.template"].map(str::to_owned);
        assert_eq!(
            refusal(&job, &fields),
            "spec.completions, spec.template are changed, which no update can: keep them, or set the \
             annotation plimsoll.io/replace to \"true\": the object is deleted and, once it is gone, \
             created again"
        );
        let definition = manifest("apiextensions.k8s.io/v1", "CustomResourceDefinition", json!({}));
        assert_eq!(
            refusal(&definition, &["spec.scope".to_owned()]),
            "spec.scope is changed, which no update can: keep it, or give the object another name: it \
             is never replaced, since what it contains would go with it"
        );
        let claim = manifest("v1", "PersistentVolumeClaim", json!({}));
        assert_eq!(
            refusal(&claim, &["spec.resources.requests.storage".to_owned()]),
            "spec.resources.requests.storage is made smaller, which no update can: keep it, or give the \
             object another name: it is never replaced, since what it contains would go with it"
        );
    }

    #[test]
    fn what_contains_data_of_others_is_never_replaced() {
        let metadata =
            || json!({ "metadata": { "name": "a", "annotations": { REPLACE: "true" } } });
        assert!(is_replaced(&manifest("batch/v1", "Job", metadata())));
        assert!(!is_replaced(&manifest("batch/v1", "Job", json!({}))));
        assert!(!is_replaced(&manifest("v1", "PersistentVolumeClaim", metadata())));
    }

    #[test]
    fn a_stateful_set_that_takes_its_claims_with_it_is_not_replaced() {
        let set = |policy: &str, claims: Value| {
            json!({ "spec": {
                "volumeClaimTemplates": claims,
                "persistentVolumeClaimRetentionPolicy": { "whenDeleted": policy },
            } })
        };
        let claims = || json!([{ "metadata": { "name": "data" } }]);
        let is_lost = |kind: &str, live: Value| {
            loss(&manifest("apps/v1", kind, json!({})).key, &live).is_some()
        };
        assert!(is_lost("StatefulSet", set("Delete", claims())));
        assert!(!is_lost("StatefulSet", set("Retain", claims())));
        assert!(!is_lost("StatefulSet", set("Delete", json!([]))));
        assert!(!is_lost("StatefulSet", json!({ "spec": {} })));
        assert!(!is_lost("Deployment", set("Delete", claims())));
    }

    #[test]
    fn refusals_of_changes_are_known_by_their_text() {
        for message in [
            "Invalid value: core.PodTemplateSpec{}: field is immutable",
            "Forbidden: may not be changed in an update.",
            "Forbidden: updates to provisioner are forbidden.",
            "Invalid value: rbac.RoleRef{}: cannot change roleRef",
        ] {
            assert!(is_refusal(message), "{message}");
        }
        assert!(!is_refusal("Required value"));
        assert!(!is_refusal("Forbidden: may not specify more than 1 handler type"));
    }
}
