//! The defaults that are code.
#![expect(clippy::needless_pass_by_value, reason = "tables of owned values read better")]
use serde_json::{Value, json};

use super::apply_builtin_defaults;

/// Checks the defaults of a kind, given as `group/version/kind`.
#[track_caller]
fn check(kind: &str, mut value: Value, expected: Value) {
    let parts: Vec<&str> = kind.split('/').collect();
    let [group, version, kind] = parts.as_slice() else { panic!("{kind} has three parts") };
    apply_builtin_defaults(group, version, kind, &mut value);
    assert_eq!(value, expected);
    let once = value.clone();
    apply_builtin_defaults(group, version, kind, &mut value);
    assert_eq!(value, once, "defaulting twice is defaulting once");
}

#[test]
fn a_deployment_and_its_pods_are_completed() {
    check(
        "apps/v1/Deployment",
        json!({"spec": {"template": {"spec": {"serviceAccount": "sa", "containers": [
            {"name": "c", "image": "example.com:5000/app:1", "livenessProbe": {"httpGet": {"port": 1}}}]}}}}),
        json!({"spec": {
            "replicas": 1, "revisionHistoryLimit": 10, "progressDeadlineSeconds": 600,
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"}},
            "template": {"spec": {
                "serviceAccount": "sa", "serviceAccountName": "sa", "dnsPolicy": "ClusterFirst",
                "restartPolicy": "Always", "securityContext": {}, "schedulerName": "default-scheduler",
                "terminationGracePeriodSeconds": 30,
                "containers": [{
                    "name": "c", "image": "example.com:5000/app:1", "imagePullPolicy": "IfNotPresent",
                    "terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File",
                    "livenessProbe": {"httpGet": {"port": 1, "path": "/", "scheme": "HTTP"},
                        "timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3},
                }],
            }},
        }}),
    );
}

#[test]
fn a_recreate_strategy_has_no_rolling_update() {
    let mut value = json!({"spec": {"replicas": 0, "strategy": {"type": "Recreate"}}});
    apply_builtin_defaults("apps", "v1", "Deployment", &mut value);
    assert_eq!(value["spec"]["strategy"], json!({"type": "Recreate"}));
    assert_eq!(value["spec"]["replicas"], json!(0));
}

#[test]
fn zero_surge_is_not_replaced() {
    let rolling = json!({"maxSurge": 0, "maxUnavailable": 0});
    let strategy = json!({"type": "RollingUpdate", "rollingUpdate": rolling});
    let mut value = json!({"spec": {"strategy": strategy}});
    apply_builtin_defaults("apps", "v1", "Deployment", &mut value);
    assert_eq!(value["spec"]["strategy"], strategy);
}

/// Checks the pull policy that an image gets.
#[track_caller]
fn check_image(image: &str, expected: &str) {
    let mut value = json!({"spec": {"containers": [{"image": image}]}});
    apply_builtin_defaults("", "v1", "Pod", &mut value);
    assert_eq!(value["spec"]["containers"][0]["imagePullPolicy"], expected, "{image}");
}

#[test]
fn images_that_may_change_are_always_pulled() {
    check_image("app", "Always");
    check_image("registry:5000/app", "Always");
    check_image("app:latest", "Always");
    check_image("app:1", "IfNotPresent");
    check_image("app@sha256:0123", "IfNotPresent");
    check_image("app:latest@sha256:0123", "Always");
}

#[test]
fn a_pod_requests_what_it_is_limited_to() {
    let mut value = json!({"spec": {"hostNetwork": true, "containers": [
        {"resources": {"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "500m"}},
         "ports": [{"containerPort": 80}]}], "volumes": [{"name": "v"}]}});
    apply_builtin_defaults("", "v1", "Pod", &mut value);
    let container = &value["spec"]["containers"][0];
    assert_eq!(container["resources"]["requests"], json!({"cpu": "500m", "memory": "1Gi"}));
    assert_eq!(
        container["ports"][0],
        json!({"containerPort": 80, "hostPort": 80, "protocol": "TCP"})
    );
    assert_eq!(value["spec"]["volumes"][0], json!({"name": "v", "emptyDir": {}}));
    assert_eq!(value["spec"]["enableServiceLinks"], json!(true));
}

#[test]
fn a_service_is_completed_by_its_type() {
    check(
        "/v1/Service",
        json!({"spec": {"ports": [{"port": 80}, {"port": 81, "targetPort": "web"}]}}),
        json!({"spec": {"type": "ClusterIP", "sessionAffinity": "None", "internalTrafficPolicy": "Cluster",
            "ports": [{"port": 80, "targetPort": 80, "protocol": "TCP"},
                      {"port": 81, "targetPort": "web", "protocol": "TCP"}]}}),
    );
    check(
        "/v1/Service",
        json!({"spec": {"type": "LoadBalancer", "sessionAffinity": "ClientIP"}}),
        json!({"spec": {"type": "LoadBalancer", "sessionAffinity": "ClientIP",
            "sessionAffinityConfig": {"clientIP": {"timeoutSeconds": 10800}},
            "internalTrafficPolicy": "Cluster", "externalTrafficPolicy": "Cluster",
            "allocateLoadBalancerNodePorts": true}}),
    );
}

#[test]
fn small_kinds_are_completed() {
    check(
        "rbac.authorization.k8s.io/v1/RoleBinding",
        json!({"roleRef": {"kind": "Role", "name": "r"},
               "subjects": [{"kind": "User", "name": "u"}, {"kind": "ServiceAccount", "name": "s"}]}),
        json!({"roleRef": {"kind": "Role", "name": "r", "apiGroup": "rbac.authorization.k8s.io"},
               "subjects": [{"kind": "User", "name": "u", "apiGroup": "rbac.authorization.k8s.io"},
                            {"kind": "ServiceAccount", "name": "s"}]}),
    );
    check("/v1/Secret", json!({}), json!({"type": "Opaque"}));
    check(
        "/v1/Secret",
        json!({"stringData": {"a": "x"}, "data": {"b": "eQ=="}}),
        json!({"type": "Opaque", "data": {"a": "eA==", "b": "eQ=="}}),
    );
    check(
        "networking.k8s.io/v1/NetworkPolicy",
        json!({"spec": {"egress": [{"ports": [{"port": 1}]}]}}),
        json!({"spec": {"egress": [{"ports": [{"port": 1, "protocol": "TCP"}]}],
               "policyTypes": ["Ingress", "Egress"]}}),
    );
    check(
        "apiextensions.k8s.io/v1/CustomResourceDefinition",
        json!({"spec": {"names": {"kind": "Widget", "plural": "widgets"}, "versions": [{"name": "v1", "storage": true}]}}),
        json!({"spec": {"names": {"kind": "Widget", "plural": "widgets", "singular": "widget", "listKind": "WidgetList"},
               "conversion": {"strategy": "None"}, "versions": [{"name": "v1", "storage": true}]},
               "status": {"storedVersions": ["v1"]}}),
    );
    check(
        "/v1/Namespace",
        json!({"metadata": {"name": "n"}}),
        json!({"metadata": {"name": "n", "labels": {"kubernetes.io/metadata.name": "n"}},
               "status": {"phase": "Active"}}),
    );
    check("/v1/ConfigMap", json!({"data": {}}), json!({"data": {}}));
}

#[test]
fn a_job_runs_once_unless_told_otherwise() {
    let mut value = json!({"spec": {"template": {"metadata": {"labels": {"a": "b"}}, "spec": {}}}});
    apply_builtin_defaults("batch", "v1", "Job", &mut value);
    let spec = &value["spec"];
    assert_eq!((&spec["completions"], &spec["parallelism"]), (&json!(1), &json!(1)));
    assert_eq!((&spec["backoffLimit"], &spec["completionMode"]), (&json!(6), &json!("NonIndexed")));
    assert_eq!(value["metadata"]["labels"], json!({"a": "b"}));
}
